/* gpu.h - devices with memory of their own, found at run time: one face for all drivers.
 *
 *     driver (opencl.c, cuda.c) --gpu_cards--> cards --gpu_open--> struct gpu: one heap, some lanes
 *     thread: gpu_enter(g, lane)   gpu_put, kernels of gpu_kern(), gpu_get ...   in the order of the calls, asynchronously
 *
 * A heap is one range of device memory.  Its addresses, from gpu_heap on, are those of a range that the process has reserved and
 * that holds nothing: sums of addresses are valid, a read by the host stops the process at once.  So the code of a layer that
 * only passes addresses to kernels (kern.h) runs on a device unchanged, with the table of gpu_kern().
 *
 * A lane is a queue of the device: what it is given runs in order.  Lanes run beside each other; a lane sees what another one was
 * given after gpu_sync there, or behind gpu_mark and gpu_wait.  Kernels and transfers go to the lane that the calling thread has
 * entered.  The first failure of a device stays: calls after it do nothing, and gpu_sync and gpu_failed report it. */
#ifndef STRETTO_GPU_GPU_H
#define STRETTO_GPU_GPU_H

#include "kern/kern.h"

enum { GPU_CARDS = 64, GPU_LANES = 16, GPU_NAME = 96, GPU_WHY = 200 };
enum { GPU_GROUP = 256, GPU_SHARED = 48 << 10 }; /* work items of a group, and bytes that it shares, at most */

/* A device that a driver has found. */
struct gpu_card {
    char name[GPU_NAME], platform[GPU_NAME]; /* "NVIDIA H100 80GB HBM3", "CUDA 13.0" */
    char at[GPU_NAME + 24];                  /* for errors: "cuda:1 (NVIDIA H100 80GB HBM3)"; several cards may have one name */
    i64 memory, largest;                     /* bytes: of the device, of one heap */
    i32 units;                               /* compute units, multiprocessors */
    const char *lacks;                       /* what the kernels need and it has not, "double precision"; NULL = nothing */
    bool is_host;                            /* its kernels run on the cores of this host (PoCL) */
};

enum gpu_kernel {
#define GPU_KERNEL(name, args) GPU_##name,
#include "gpu/kernels.def"
#undef GPU_KERNEL
    GPU_NKERNEL
};
extern const char *const gpu_kernel_name[GPU_NKERNEL]; /* in the text; program.c */

struct gpu_size {
    i32 x, y, z;
};

/* Ranges of device memory and of host memory: n rows of `bytes`, whose first bytes lie that far apart. */
struct gpu_rows {
    i64 bytes, n, at, pitch, host_pitch; /* at: offset in the heap */
};
/* On both sides each row begins where the one before ends. */
static inline bool gpu_one_piece(const struct gpu_rows *r) {
    return r->n == 1 || (r->pitch == r->bytes && r->host_pitch == r->bytes);
}

/* One way to reach devices.  `dev` is what open() made.  Errors go to err.h; functions that return err leave one there. */
struct gpu_driver {
    const char *name; /* "opencl": the word of --device and of machine texts */
    const char *help;
    /* Lists at most `max` devices.  Returns their number; 0: `why` says in one sentence what is absent. */
    i32 (*cards)(struct gpu_card *out, i32 max, char why[GPU_WHY]);
    /* Opens device `index` of the list with `lanes` lanes and a heap of `bytes`, zeroed.  E601 where the memory is refused, E831
     * where the device or its compiler fails. */
    err (*open)(i32 index, i32 lanes, i64 bytes, void **dev);
    void (*close)(void *dev);
    /* Both return when the host memory may be used again; put: after what the lane was given before. */
    err (*put)(void *dev, i32 lane, const struct gpu_rows *r, const void *from);
    err (*get)(void *dev, i32 lane, const struct gpu_rows *r, void *to);
    err (*launch)(void *dev, i32 lane, enum gpu_kernel k, struct gpu_size groups, struct gpu_size local, const void *args,
                  size_t size);
    err (*mark)(void *dev, i32 lane, i32 slot);        /* slot of the lane, 0 .. GPU_SLOTS - 1: the work given so far */
    err (*wait)(void *dev, i32 lane, i32 of, i32 slot); /* work given from now on waits for that mark of lane `of` */
    /* Begins to watch the work given so far; is it done?  A lane is watched by one thread. */
    err (*watch)(void *dev, i32 lane);
    err (*idle)(void *dev, i32 lane, bool *is_idle);
    err (*sync)(void *dev, i32 lane);
    /* Seconds on the device's clock from mark `a` to mark `b` of a lane, after a sync; < 0 = not known. */
    f64 (*between)(void *dev, i32 lane, i32 a, i32 b);
    err (*free_memory)(i32 index, i64 *bytes);
    /* Graphs; all four NULL = the driver has none.  Between record() and recorded() the kernels, marks and waits that a lane is
     * given are kept, not run.  A lane that waits for such a mark belongs to the graph, until the first lane has waited for it in
     * turn.  No transfer, sync or between() meanwhile; marks in a graph say nothing outside of it.  replay() gives a lane all of
     * the graph at once. */
    err (*record)(void *dev, i32 lane);
    err (*recorded)(void *dev, i32 lane, void **graph);
    err (*replay)(void *dev, i32 lane, void *graph);
    void (*drop)(void *dev, void *graph); /* after a sync; NULL is fine */
};
enum { GPU_SLOTS = 4096 };

i32 gpu_drivers(void);
const struct gpu_driver *gpu_driver_at(i32 i);
const struct gpu_driver *gpu_driver_find(const char *name); /* NULL = none */

/* E830 for a number that none of the n cards has; it lists them, or says why there is none. */
err gpu_no_such(const struct gpu_driver *d, i32 index, const struct gpu_card *card, i32 n, const char *why);

struct gpu;
/* E830 if there is no such device (the message lists those that there are), E601, E831. */
err gpu_open(const struct gpu_driver *d, i32 index, i32 lanes, i64 bytes, struct gpu **out);
void gpu_close(struct gpu *g); /* NULL is fine */
/* True if a device of this process has failed since it was opened, or refused the memory that it was last asked for: a run goes
 * on without it.  False for one that has never worked, which is an error of the setup. */
bool gpu_is_lost(const struct gpu_driver *d, i32 index);
bool gpu_has_refused(const struct gpu_driver *d, i32 index); /* the memory that it was last asked for */
i32 gpu_lanes(const struct gpu *g);
void *gpu_heap(const struct gpu *g); /* address of its first byte; 4096-byte aligned */

/* What this process has asked of a device so far, over all of its heaps.  False: it was never opened. */
struct gpu_use {
    i64 heap, peak, capacity;     /* bytes: of the heaps that are open, with scratch; at most at a time; of the device */
    i64 to, from;                 /* bytes copied to it and from it */
    f64 to_seconds, from_seconds; /* that the host spent in these copies, without waiting for kernels before them */
};
bool gpu_used(const struct gpu_driver *d, i32 index, struct gpu_use *out);

/* The calling thread works on this lane until it leaves (g NULL).  Returns where it was, for going back. */
struct gpu_place {
    struct gpu *gpu;
    i32 lane;
};
struct gpu_place gpu_enter(struct gpu *g, i32 lane);
err gpu_failed(const struct gpu *g); /* the first failure, or 0 */

/* n rows of `bytes` each; device addresses lie in the heap.  On the thread's lane. */
void gpu_put(void *to, i64 to_pitch, const void *from, i64 from_pitch, i64 bytes, i64 n);
static inline void gpu_put_bytes(void *to, const void *from, i64 bytes) { gpu_put(to, bytes, from, bytes, bytes, 1); }
void gpu_get(void *to, i64 to_pitch, const void *from, i64 from_pitch, i64 bytes, i64 n);
f64 gpu_copied(f64 *begin);          /* the end of the last copy of the thread's lane, and its begin: clock_now */
i32 gpu_mark(void);                  /* a mark of the thread's lane; a lane keeps its last GPU_SLOTS marks */
void gpu_wait(i32 lane, i32 slot);   /* the thread's lane waits for the mark of another one */
/* Waits for the thread's lane; the first failure of the device.  One that does not end within STRETTO_DEADLINE (60 s; ten times
 * that where its kernels run on the host) has failed: E831. */
err gpu_sync(void);
f64 gpu_between(i32 a, i32 b);       /* seconds between marks of the thread's lane; < 0 = not known */
/* Graphs: what the lane is given between gpu_record and gpu_recorded is kept, not run; gpu_replay runs it, again and again, by
 * one call.  Kernels only: no transfers, marks and waits.  NULL: it failed. */
bool gpu_records(const struct gpu *g); /* has its driver graphs? */
void gpu_record(void);
void *gpu_recorded(void);
void gpu_replay(void *graph);
void gpu_drop(struct gpu *g, void *graph); /* after a sync; NULL is fine */

/* Device memory of the thread's lane for partial sums, GPU_SCRATCH bytes. */
void *gpu_scratch(void);
enum { GPU_SCRATCH = 16 << 20 };
void gpu_launch(enum gpu_kernel k, struct gpu_size groups, struct gpu_size local, const void *args, size_t size);
i64 gpu_offset(const void *at);      /* of an address in the heap of the thread's device, in bytes; -1 for NULL */

bool gpu_on_host(void); /* the device of the thread is the cores of this host: kernels of many unrolled steps are left out */

/* The kernels on the thread's lane, as a table like that of an instruction set.  Slots that a device lacks are NULL; cells have
 * neither bf16 nor teams. */
const struct kern *gpu_kern(void);

/* Text of all kernels, in the dialect of text/dialect.h. */
const char *gpu_text(void);
/* The program compiled for a device, from the cache on disk (program.c); key: device, driver and options.  NULL = none.  The
 * caller frees it (mem_free). */
void *gpu_program_load(const char *key, size_t *size);
void gpu_program_save(const char *key, const void *program, size_t size); /* failures are silent */

#endif
