/* mpi_allreduce.c - times MPI_Allreduce as allreduce.c times ours; run.py builds it with each mpicc.
 *
 *     mpi_allreduce [SECONDS]      -> BYTES SECONDS right|wrong */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 9, WARM = 3, MOST = 1 << 26 };

static float start_value(int rank, long i) { return (float)(rank + 1) * 0.25f + (float)(i % 64); }

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sum(float *v, int n) { MPI_Allreduce(MPI_IN_PLACE, v, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }

static int is_right(const float *v, int n, int size) {
    for (long i = 0; i < n; i++) {
        float sum = 0;
        for (int k = 0; k < size; k++) sum += start_value(k, i);
        if (v[i] != sum) return 0;
    }
    return 1;
}

static void one_size(float *v, long bytes, int rank, int size, double budget) {
    const int n = (int)(bytes / 4);
    double took[BATCHES], t0 = 0;
    for (long i = 0; i < n; i++) v[i] = start_value(rank, i);
    sum(v, n);
    int good = is_right(v, n, size), all = 0;
    memset(v, 0, (size_t)bytes);
    for (int k = 0; k < WARM + 1; k++) {
        if (k == WARM) t0 = MPI_Wtime();
        sum(v, n);
    }
    const double most = budget / (MPI_Wtime() - t0 + 1e-9);
    int count = most < 1 ? 1 : most > 20000 ? 20000 : (int)most;
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int b = 0; b < BATCHES; b++) {
        MPI_Barrier(MPI_COMM_WORLD);
        t0 = MPI_Wtime();
        for (int k = 0; k < count; k++) sum(v, n);
        took[b] = (MPI_Wtime() - t0) / count;
    }
    MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    qsort(took, BATCHES, sizeof *took, by_size);
    if (rank == 0) printf("%ld %.9f %s\n", bytes, took[BATCHES / 2], all ? "right" : "wrong");
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    float *v = malloc(MOST);
    if (!v) return 1;
    for (long bytes = 4; bytes <= MOST; bytes *= 4) one_size(v, bytes, rank, size, argc > 1 ? strtod(argv[1], NULL) : 0.01);
    free(v);
    MPI_Finalize();
    return 0;
}
