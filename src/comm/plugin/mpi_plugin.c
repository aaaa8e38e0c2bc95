/* mpi_plugin.c - implements mpi_table.h over MPI: built once per MPI library, with that library's compiler wrapper. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "comm/plugin/mpi_table.h"

_Static_assert(sizeof(MPI_Request) <= STRETTO_MPI_REQUEST, "a request fits");

enum { TAG = 17 }; /* MPI tag of channel 0 */

static MPI_Comm world;

/* MPICH puts a handler of its own in the place of ours, which asks for a checkpoint (Slurm sends it before the time is over). */
static int init_keeping_signals(void) {
    struct sigaction ours;
    int level;
    const int kept = sigaction(SIGUSR1, NULL, &ours) == 0 && ours.sa_handler != SIG_DFL;
    const int e = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (kept) sigaction(SIGUSR1, &ours, NULL);
    return e;
}

static int open_(int *rank, int *size) {
    int have = 0, e = MPI_Initialized(&have);
    if (e == MPI_SUCCESS && !have) e = init_keeping_signals();
    if (e == MPI_SUCCESS) e = MPI_Comm_dup(MPI_COMM_WORLD, &world);
    if (e == MPI_SUCCESS) e = MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    if (e == MPI_SUCCESS) e = MPI_Comm_rank(world, rank);
    if (e == MPI_SUCCESS) e = MPI_Comm_size(world, size);
    return e == MPI_SUCCESS ? 0 : e;
}

static int send_(const void *data, unsigned bytes, int to, int channel, void *request) {
    MPI_Request r;
    int e = MPI_Isend(data, (int)bytes, MPI_BYTE, to, TAG + channel, world, &r);
    memcpy(request, &r, sizeof r);
    return e == MPI_SUCCESS ? 0 : e;
}

static int recv_(void *data, unsigned bytes, int from, int channel, void *request) {
    MPI_Request r;
    int e = MPI_Irecv(data, (int)bytes, MPI_BYTE, from, TAG + channel, world, &r);
    memcpy(request, &r, sizeof r);
    return e == MPI_SUCCESS ? 0 : e;
}

static int test(void *request, int *done) {
    MPI_Request r;
    memcpy(&r, request, sizeof r);
    int e = MPI_Test(&r, done, MPI_STATUS_IGNORE);
    memcpy(request, &r, sizeof r);
    return e == MPI_SUCCESS ? 0 : e;
}

static int close_(void) { return MPI_Finalize() == MPI_SUCCESS ? 0 : 1; }

static void say(int code, char text[256]) {
    char full[MPI_MAX_ERROR_STRING + 1] = "";
    int n = 0;
    MPI_Error_string(code, full, &n);
    snprintf(text, 256, "%.200s", full);
}

extern const struct stretto_mpi stretto_mpi;
const struct stretto_mpi stretto_mpi = {
    .abi = STRETTO_MPI_ABI,
#ifdef OPEN_MPI
    .library = "Open MPI",
#else
    .library = "MPICH",
#endif
    .open = open_,
    .send = send_,
    .recv = recv_,
    .test = test,
    .close = close_,
    .say = say,
};
