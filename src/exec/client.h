/* client.h - what exec needs of a learner: its kernels, and its answers to a few questions.
 *
 *     plan: task.kind = 2  -->  client.kernel[2].run(self, mem, task)        exec orders the calls, moves the bytes, keeps the
 * time
 *
 * A net (step/run.c) is one client, k-means (tests/exec/t_kmeans.c) another.  Every pointer may be NULL unless its line says
 * otherwise.  exec calls the questions from one thread, kernels from any worker. */
#ifndef STRETTO_EXEC_CLIENT_H
#define STRETTO_EXEC_CLIENT_H

#include "plan/plan.h"

struct exec;

/* One call of a kernel. */
struct kernel_call {
    const struct task *task;
    void *const *mem; /* [nbuf] address of each buffer of the plan; NULL = this rank does not use it */
    void *const *host; /* the same on the host; of a device only buffers that it `sees`, and those of tasks on the host */
    i32 row0;         /* on a device: row b of the task lies at place b - row0 of a buffer with by_row */
    bool on_device;   /* mem is in the heap of a device (gpu/gpu.h): the kernel reads and writes it by gpu_kern() only */
    bool alone;       /* member 0 of a team does the work of all members of this process */
    i64 lo, hi;       /* range of a kernel with `blocks`: part of the task's */
};

struct kernel {
    const char *name;
    void (*run)(void *self, const struct kernel_call *c);
    bool rows;    /* works row by row: its duration measures the cost of a row on this rank (load.h) */
    bool compute; /* messages may wait until all of these are done (policy linear) */
    bool blocks;  /* tasks of it over one range run together, block by block, so that the sum stays in the cache */
    bool commits; /* changes state that a failed step must not change: if every rank runs it, either all do or none */
};

struct exec_result {
    f64 loss, norm; /* of the objective; of the merged gradient, or what the client reports instead */
    bool finite;    /* the update was made */
    bool none;      /* delay1: there was no previous step; otherwise all fields describe the previous step */
};

struct client {
    const struct kernel *kernel; /* [nkernel], required */
    i32 nkernel;
    void *self;
    /* Bytes of a buffer on this rank, or with so many places for rows (by_row), places < 0: with those of all rows that the rank
     * has; NULL = all of it if a task of this rank uses it, else none. */
    i64 (*room)(void *self, const struct pbuf *b, i32 places);
    /* Called once when the memory is bound, before the first step; may fail. */
    err (*bound)(void *self, struct exec *x, void *const *mem);
    /* On a device with memory of its own: true for tasks that run there (NULL = none; the others run on the host); the addresses
     * of buffers there, told once after `bound`, and the places for rows that each buffer with by_row has there. */
    bool (*on_device)(void *self, const struct task *t);
    void (*heap)(void *self, void *const *mem, i32 places);
    /* A hash of all that kernels on a device take from the client in this step beside buffers: steps with the same one may replay
     * what was recorded.  0, or NULL: it is another one in every step. */
    u64 (*constants)(void *self);
    /* Result of the step whose gradients were just summed; mem: its buffers.  Required. */
    struct exec_result (*result)(void *self, void *const *mem);
    /* For policies that defer tasks: from now on deferred tasks belong to the step just computed. */
    void (*defer)(void *self);
    /* True if the policy that defers sums runs the task with the next step. NULL = no task is deferred. */
    bool (*deferred)(void *self, const struct task *t);
    /* Seconds that the last task waited for other ranks. */
    f64 (*waited)(void *self, const struct task *t);
    /* "fwd lstm.0 b[0,224)"; NULL = the name of the kernel. */
    void (*task_name)(void *self, u32 task, char out[64]);
    void (*buffer_name)(void *self, u32 buf, char out[24]); /* "grad.3", for messages and errors */
};

#endif
