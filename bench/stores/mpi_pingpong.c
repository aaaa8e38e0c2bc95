/* mpi_pingpong.c - times a message to another rank and back by MPI, beside which timing.py puts the way of a vector to a server.
 *
 *     mpirun -n 2 mpi_pingpong BYTES SECONDS      -> pingpong BYTES SECONDS     median over batches of there and back */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 15 };

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double round_trips(int rank, char *v, int bytes, int count) {
    const double t0 = MPI_Wtime();
    for (int k = 0; k < count; k++) {
        if (rank == 0) MPI_Send(v, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(v, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(v, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - t0) / count;
}

int main(int argc, char **argv) {
    int rank, count;
    double took[BATCHES];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 3) return 2;
    const int bytes = atoi(argv[1]);
    char *v = malloc((size_t)bytes);
    if (!v) return 1;
    memset(v, 1, (size_t)bytes);
    count = (int)(atof(argv[2]) / (round_trips(rank, v, bytes, 10) + 1e-9));
    if (count < 3) count = 3;
    if (count > 100000) count = 100000;
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int k = 0; k < BATCHES; k++) {
        MPI_Barrier(MPI_COMM_WORLD);
        took[k] = round_trips(rank, v, bytes, count);
    }
    qsort(took, BATCHES, sizeof *took, by_size);
    if (rank == 0) printf("pingpong %d %.9f\n", bytes, took[BATCHES / 2]);
    free(v);
    MPI_Finalize();
    return 0;
}
