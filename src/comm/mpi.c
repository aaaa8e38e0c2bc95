/* mpi.c - transport over MPI: ranks as processes of an MPI job. A plug-in brings in the MPI library at run time
 * (plugin/mpi_table.h), so the program runs without MPI.
 *
 *     a message   | header, 40 bytes | data |      two MPI messages, both posted at once; MPI keeps their order
 *
 * With elastic recovery MPI never gets the program's buffers: a request to a dead rank cannot be cancelled, and a late fragment
 * would overwrite reused memory. Each message then has a parcel of its own, at one more copy per side. After a death pending
 * parcels are abandoned and messages use other tags, so nothing of before can match (docs/adr/017).
 *
 *     tag     control | step, round of n ranks | step, round of n - 1 ranks | ..        peers: indices into left[] */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/plugin/mpi_table.h"
#include "comm/transport.h"

/* The buffer of a message when recovery is enabled. */
struct parcel {
    struct parcel *next, **place; /* list of pending, spare or abandoned parcels */
    struct comm_head head;
    i32 size; /* capacity 2^size bytes */
    _Alignas(16) unsigned char data[];
};

/* The last set of dead ranks received from another rank. */
struct control {
    unsigned char request[STRETTO_MPI_REQUEST];
    struct rank_set received, last;
};

enum { SIZES = 32 };

struct mpi {
    const struct stretto_mpi *table;
    i32 rank, size, promised;
    const char *launcher;
    struct control *control; /* [promised], NULL = no recovery */
    struct parcel *out;      /* pending */
    struct parcel *spare[SIZES]; /* free list by size */
    i32 *left, nleft;        /* MPI ranks of the survivors */
};

/* MPI may write to abandoned parcels until the process ends, so they are never freed. */
static struct parcel *aside;
static struct mpi *left_behind;

/* The contents of comm_message.inside. */
struct parts {
    unsigned char head[STRETTO_MPI_REQUEST], data[STRETTO_MPI_REQUEST];
    struct comm_head *got; /* received header; NULL once it is checked */
    struct parcel *parcel; /* NULL = MPI uses the program's buffer */
};
_Static_assert(sizeof(struct parts) <= sizeof((struct comm_message){0}.inside), "it fits");

static struct parts *parts_of(struct comm_message *m) { return (struct parts *)(void *)m->inside; }

static err failed(const struct mpi *x, int code, const char *what) {
    char text[256] = "";
    x->table->say(code, text);
    return FAIL_AT(E801, NULL, "stretto resume RUN", "rank %d: %s failed in %s: %s", x->rank, what, x->table->library, text);
}

/* Detects singletons: with a mismatched launcher and library each process becomes a job of one rank. */
static err open_(void *self) {
    struct mpi *x = self;
    int rank = 0, size = 0, code = x->table->open(&rank, &size);
    x->rank = rank;
    x->size = size;
    if (code) return failed(x, code, "MPI_Init");
    if (size == x->promised) return 0;
    return FAIL_AT(E803, NULL, "mpirun of that library, or under Slurm:  srun --mpi=pmix (Open MPI), srun --mpi=pmi2 (MPICH)",
                   "%s started %d ranks, but %s sees %d: the launcher and the MPI library do not belong together", x->launcher,
                   x->promised, x->table->library, size);
}

/* ------------------------------------------------------------------ messages ------------------------------------------------ */

static err parcel_new(struct mpi *x, const struct comm_head *head, struct parcel **out) {
    i32 size = 0;
    while (size < SIZES - 1 && (u32)1 << size < head->bytes) size++;
    struct parcel *p = x->spare[size];
    if (p) x->spare[size] = p->next;
    else p = mem_alloc(sizeof *p + ((size_t)1 << size));
    if (!p) return -E601;
    p->size = size;
    p->head = *head;
    p->next = x->out;
    p->place = &x->out;
    if (x->out) x->out->place = &p->next;
    x->out = p;
    *out = p;
    return 0;
}

static void parcel_done(struct mpi *x, struct parcel *p) {
    *p->place = p->next;
    if (p->next) p->next->place = p->place;
    p->next = x->spare[p->size];
    x->spare[p->size] = p;
}

static int tag_of(const struct mpi *x, const struct comm_message *m) {
    return (x->promised - x->nleft) * COMM_CHANNELS + m->channel;
}

static int post(struct mpi *x, struct comm_message *m, struct parts *p, struct comm_head *head, void *data) {
    const i32 peer = x->left[m->peer], tag = tag_of(x, m);
    int code = m->sends ? x->table->send(head, sizeof *head, peer, tag, p->head) :
                          x->table->recv(head, sizeof *head, peer, tag, p->head);
    if (!code)
        code = m->sends ? x->table->send(data, m->head.bytes, peer, tag, p->data) :
                          x->table->recv(data, m->head.bytes, peer, tag, p->data);
    return code;
}

/* Starts a send or a receive. */
static err start(void *self, struct comm_message *m) {
    struct mpi *x = self;
    struct parts *p = parts_of(m);
    p->got = NULL;
    p->parcel = NULL;
    if (x->control) {
        TRY(parcel_new(x, &m->head, &p->parcel));
        if (m->sends) memcpy(p->parcel->data, m->data, m->head.bytes);
        else p->got = &p->parcel->head;
    } else if (!m->sends) {
        p->got = mem_alloc(sizeof *p->got);
        if (!p->got) return -E601;
    }
    struct comm_head *head = p->parcel ? &p->parcel->head : p->got ? p->got : &m->head;
    const int code = post(x, m, p, head, p->parcel ? p->parcel->data : m->data);
    return code ? failed(x, code, m->sends ? "MPI_Isend" : "MPI_Irecv") : 0;
}

static void unpack(struct mpi *x, struct comm_message *m, struct parts *p) {
    if (!p->parcel) return;
    if (!m->sends) memcpy(m->data, p->parcel->data, m->head.bytes);
    parcel_done(x, p->parcel);
    p->parcel = NULL;
}

static err test(void *self, struct comm_message *m, bool *done) {
    struct mpi *x = self;
    struct parts *p = parts_of(m);
    int head = 0, data = 0, code = x->table->test(p->head, &head);
    *done = false;
    if (code) return failed(x, code, "MPI_Test");
    if (!head) return 0;
    if (p->got) {
        err e = head_check(m, p->got);
        if (!p->parcel) mem_free(p->got);
        p->got = NULL;
        TRY(e);
    }
    code = x->table->test(p->data, &data);
    if (code) return failed(x, code, "MPI_Test");
    *done = data != 0;
    if (*done) unpack(x, m, p);
    return 0;
}

/* ------------------------------------------------------------------ healing ------------------------------------------------- */

enum { CONTROL = -1 }; /* tag of control messages */

static err await_control(struct mpi *x, i32 from) {
    struct control *c = &x->control[from];
    const int code = x->table->recv(&c->received, sizeof c->received, from, CONTROL, c->request);
    return code ? failed(x, code, "MPI_Irecv") : 0;
}

static err allow_recovery(void *self) {
    struct mpi *x = self;
    const char *recovers = getenv("OMPI_MCA_orte_enable_recovery"); /* set by mpirun --enable-recovery */
    if (strcmp(x->table->library, "Open MPI") != 0 || !recovers || strcmp(recovers, "0") == 0)
        return FAIL_AT(E803, "--heal", "mpirun --enable-recovery (Open MPI)",
                       "%s (%s) ends all ranks when one dies, unless it is Open MPI's mpirun --enable-recovery", x->launcher,
                       x->table->library);
    NEW(x->control, x->promised);
    for (i32 k = 0; k < x->promised; k++)
        if (k != x->rank) TRY(await_control(x, k));
    return 0;
}

/* Delivery need not succeed: other ranks report or observe the same death. */
static err send_dead(void *self, const struct rank_set *dead) {
    struct mpi *x = self;
    const struct comm_head head = {.bytes = sizeof *dead};
    unsigned char request[STRETTO_MPI_REQUEST];
    for (i32 k = 0; k < x->promised; k++) {
        struct parcel *p;
        if (k == x->rank || rank_set_has(dead, k)) continue;
        TRY(parcel_new(x, &head, &p));
        memcpy(p->data, dead, sizeof *dead);
        const int code = x->table->send(p->data, head.bytes, k, CONTROL, request);
        if (code) return failed(x, code, "MPI_Isend");
    }
    return 0;
}

static err recv_dead(void *self, i32 from, struct rank_set *dead) {
    struct mpi *x = self;
    struct control *c = &x->control[from];
    for (int come = 1; come;) {
        const int code = x->table->test(c->request, &come);
        if (code) return failed(x, code, "MPI_Test");
        if (!come) break;
        c->last = c->received;
        TRY(await_control(x, from));
    }
    *dead = c->last;
    return 0;
}

static err reconnect(void *self, const i32 *left, i32 n) {
    struct mpi *x = self;
    while (x->out) {
        struct parcel *p = x->out;
        x->out = p->next;
        p->next = aside;
        aside = p;
    }
    memcpy(x->left, left, (size_t)n * sizeof *left);
    x->nleft = n;
    return 0;
}

/* After a failure the other ranks may be blocked in MPI: exit without MPI_Finalize, and the launcher ends them. MPI_Finalize
 * would also wait for dead ranks; mpirun --enable-recovery accepts that it is not called. */
static void close_(void *self, bool well) {
    struct mpi *x = self;
    if (well && x->table && x->nleft == x->promised) x->table->close();
    left_behind = x->control ? x : NULL;
    if (left_behind) return;
    mem_free(x->left);
    mem_free(x); /* no dlclose: the library's exit handlers must stay mapped */
}

static const struct transport mpi = {.name = "mpi",
                                     .by_host = true,
                                     .open = open_,
                                     .send = start,
                                     .recv = start,
                                     .test = test,
                                     .close = close_,
                                     .allow_recovery = allow_recovery,
                                     .send_dead = send_dead,
                                     .recv_dead = recv_dead,
                                     .reconnect = reconnect};

/* ------------------------------------------------------------------ finding it ---------------------------------------------- */

/* Known launchers, most specific first. mpirun and mpiexec use srun inside a Slurm job, so Slurm's step variables are set as
 * well but describe the helper processes. */
static const struct launcher {
    const char *name, *size, *rank; /* environment variables: number of ranks, this rank */
    const char *mark;               /* another variable that must be set; NULL = none */
    const char *flavour;            /* matching MPI library; NULL = none */
} launchers[] = {
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", NULL, "openmpi"},
    {"mpiexec of MPICH", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "mpich"},
    {"Slurm (pmix)", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", "PMIX_RANK", "openmpi"},
    {"Slurm (pmi2)", "PMI_SIZE", "PMI_RANK", "SLURM_STEP_ID", "mpich"},
    {"mpiexec of MPICH", "PMI_SIZE", "PMI_RANK", NULL, "mpich"},
    {"Slurm (--mpi=none)", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", NULL, NULL},
};

static i32 number(const char *variable) {
    const char *text = getenv(variable);
    return text ? (i32)strtol(text, NULL, 10) : 0;
}

static const struct launcher *launched_by(void) {
    for (size_t i = 0; i < COUNT(launchers); i++) {
        const struct launcher *l = &launchers[i];
        if (number(l->size) > 0 && (!l->mark || getenv(l->mark))) return l;
    }
    return NULL;
}

const char *comm_launched(i32 *size) {
    const struct launcher *l = launched_by();
    *size = l ? number(l->size) : 1;
    return l ? l->name : NULL;
}

i32 comm_launched_rank(void) {
    const struct launcher *l = launched_by();
    return l ? number(l->rank) : 0;
}

const char *comm_mpi_library(void) {
    const char *wish = getenv("STRETTO_MPI");
    if (wish && *wish) return wish;
    const struct launcher *l = launched_by();
    return l ? l->flavour : NULL;
}

/* Rejects combinations that are known to produce singletons or an abort in MPI_Init. */
static err fits(const struct mpi *x, const char *flavour) {
    if (!flavour)
        return FAIL_AT(E803, NULL, "srun --mpi=pmix (Open MPI)   or   srun --mpi=pmi2 (MPICH)",
                       "%s started %d ranks that cannot find each other: each would train alone", x->launcher, x->promised);
    if (strcmp(x->launcher, "Slurm (pmi2)") == 0 && strcmp(flavour, "openmpi") == 0)
        return FAIL_AT(E803, NULL, "srun --mpi=pmix", "%s started %d ranks, but Open MPI speaks pmix only", x->launcher,
                       x->promised);
    return 0;
}

/* Searches STRETTO_PLUGINS, next to the program, and the installation. */
bool comm_plugin(const char *flavour, char path[COMM_PATH]) {
    static const char *const where[] = {"", "../comm/", "../src/comm/", "../lib/stretto/", "../../src/comm/"};
    const char *wish = getenv("STRETTO_PLUGINS");
    char exe[400] = "";
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    char *slash = n > 0 ? strrchr(exe, '/') : NULL;
    if (slash) slash[1] = 0;
    if (wish) {
        snprintf(path, COMM_PATH, "%.400s/stretto-mpi-%.40s.so", wish, flavour);
        if (access(path, R_OK) == 0) return true;
    }
    for (size_t i = 0; i < COUNT(where); i++) {
        snprintf(path, COMM_PATH, "%.390s%sstretto-mpi-%.40s.so", exe, where[i], flavour);
        if (access(path, R_OK) == 0) return true;
    }
    path[0] = 0;
    return false;
}

/* Uses a child process, since a loaded library leaves threads, handlers and symbols behind. */
bool comm_plugin_loads(const char *path, char why[COMM_PATH]) {
    int ends[2], status = -1;
    ssize_t n = 0;
    snprintf(why, COMM_PATH, "it cannot be tried");
    if (pipe(ends) != 0) return false;
    const pid_t child = fork();
    if (child == 0) {
        const bool good = dlopen(path, RTLD_NOW | RTLD_GLOBAL) != NULL; /* Open MPI's own plug-ins need its symbols */
        const char *text = good ? "" : dlerror();
        if (!good && write(ends[1], text, strlen(text)) < 0) _exit(2);
        _exit(good ? 0 : 1);
    }
    close(ends[1]);
    if (child > 0) {
        n = read(ends[0], why, COMM_PATH - 1);
        if (waitpid(child, &status, 0) != child) status = -1;
    }
    close(ends[0]);
    if (n > 0) why[n] = 0;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static err find(struct mpi *x) {
    char path[COMM_PATH];
    const char *name = comm_mpi_library(), *why = "it is not there";
    void *library = NULL;
    TRY(fits(x, name));
    if (comm_plugin(name, path)) {
        library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (!library) why = dlerror();
    }
    if (!library)
        return FAIL_AT(E803, NULL, "install that MPI's mpicc and build again, or STRETTO_PLUGINS=FOLDER, or --ranks 1 (alone)",
                       "%s started %d ranks; the plug-in stretto-mpi-%s.so that joins them: %s", x->launcher, x->promised, name,
                       why);
    x->table = dlsym(library, "stretto_mpi");
    if (x->table && x->table->abi == STRETTO_MPI_ABI) return 0;
    return FAIL_AT(E803, NULL, "build it again with this program", "stretto-mpi-%s.so is of another version of Stretto", name);
}

err comm_mpi(struct comm **out) {
    i32 size;
    const char *launcher = comm_launched(&size);
    *out = NULL;
    if (!launcher || size < 2) return 0;
    struct mpi *x = mem_alloc(sizeof *x);
    if (!x) return -E601;
    *x = (struct mpi){.launcher = launcher, .promised = size, .nleft = size};
    err e = mem_new((void **)&x->left, size, sizeof *x->left);
    for (i32 k = 0; k < size && e >= 0; k++) x->left[k] = k;
    if (e >= 0) e = find(x);
    if (e < 0) {
        mem_free(x->left);
        mem_free(x);
        return e;
    }
    return comm_new(&mpi, x, comm_launched_rank(), size, out);
}
