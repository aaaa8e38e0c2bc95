/* mpi_table.h - what a plug-in over an MPI library exports: plain C, no types of ours, so that it can be built on its own against
 * any MPI and opened at run time.  A program without MPI never looks for one.
 *
 * Every function returns 0, or an MPI error code whose text `say` gives.  One thread calls: that which called `open`. */
#ifndef STRETTO_COMM_MPI_TABLE_H
#define STRETTO_COMM_MPI_TABLE_H

enum { STRETTO_MPI_ABI = 2, STRETTO_MPI_REQUEST = 16 /* bytes that a request takes at most */ };

struct stretto_mpi {
    int abi;
    const char *library; /* "Open MPI", "MPICH" */
    int (*open)(int *rank, int *size);
    int (*send)(const void *data, unsigned bytes, int to, int channel, void *request);
    int (*recv)(void *data, unsigned bytes, int from, int channel, void *request);
    int (*test)(void *request, int *done); /* once done, done for good */
    int (*close)(void);
    void (*say)(int code, char text[256]);
};

/* The one symbol: `const struct stretto_mpi stretto_mpi`. */

#endif
