/* mpi_table.h - the function table that an MPI plug-in exports. Plain C without types of the project, so it builds against any
 * MPI library and is opened at run time. A program without MPI never opens one.
 *
 * Every function returns 0 or an MPI error code, whose text `say` returns. All calls come from the thread that called `open`. */
#ifndef STRETTO_COMM_PLUGIN_MPI_TABLE_H
#define STRETTO_COMM_PLUGIN_MPI_TABLE_H

enum { STRETTO_MPI_ABI = 2, STRETTO_MPI_REQUEST = 16 /* maximum size of an MPI_Request in bytes */ };

struct stretto_mpi {
    int abi;
    const char *library; /* "Open MPI", "MPICH" */
    int (*open)(int *rank, int *size);
    int (*send)(const void *data, unsigned bytes, int to, int channel, void *request);
    int (*recv)(void *data, unsigned bytes, int from, int channel, void *request);
    int (*test)(void *request, int *done); /* must not be called again after *done */
    int (*close)(void);
    void (*say)(int code, char text[256]);
};

/* The only exported symbol: `const struct stretto_mpi stretto_mpi`. */

#endif
