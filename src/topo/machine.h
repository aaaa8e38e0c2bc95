/* machine.h - the planner's model of the hardware: ranks, devices and links as plain numbers.
 *
 * topo/host.c fills it for this host; a text of one line describes an imaginary one ('host*2(cpu*4)'). */
#ifndef STRETTO_TOPO_MACHINE_H
#define STRETTO_TOPO_MACHINE_H

#include <stddef.h>
#include <string.h>

#include "base/str.h"

enum { MACHINE_DEVICES = 16384, MACHINE_THREADS = 1024 }; /* THREADS: of this host */

struct device {
    i32 rank;     /* rank that owns it */
    i32 core;     /* first core, -1 = any */
    i32 card;     /* number of the device at its driver, of kinds with memory of their own: the 1 of opencl:1 */
    char kind[8]; /* "cpu" */
    f64 gflops;   /* measured or stated fp32 rate */
    f64 gbytes;   /* memory bandwidth GB/s */
    i64 memory;   /* bytes */
    f64 share;    /* fraction that is free for this run, 0..1 */
    f64 weight;   /* relative share of the work; 1 = average speed */
    f64 overhead_us; /* start-up time per task; 0 = default of the cost model */
};

struct machine {
    char name[64]; /* "host" or the description it was made from */
    char cpu[64];  /* CPU model name, informational */
    i32 nrank, ndevice, ncore;
    i64 memory, cache_l2, cache_l3;
    f64 link_gbytes, link_us; /* between ranks */
    struct device device[MACHINE_DEVICES]; /* the rest of a megabyte is there for imaginary machines: copy with machine_copy */
};

static inline size_t machine_bytes(const struct machine *m) {
    return offsetof(struct machine, device) + (size_t)m->ndevice * sizeof *m->device;
}
/* Copies the devices that there are. */
static inline void machine_copy(struct machine *to, const struct machine *from) { memcpy(to, from, machine_bytes(from)); }
/* Replaces a machine on the heap by one with room for its own devices alone.  E601. */
err machine_trim(struct machine **m);

/* This host: cores allowed (affinity, cgroup), caches, memory.  One device per worker thread; threads 0 = all cores allowed. */
err machine_host(i32 threads, struct machine *out);

/* A set of processors of this host, by number. */
enum { CORES_WORDS = 16 };
struct cores {
    u64 word[CORES_WORDS];
};
bool cores_allowed(struct cores *out); /* processors this thread may run on; false if unknown */
i32 cores_count(const struct cores *c);
bool cores_meet(const struct cores *a, const struct cores *b);
/* Part `part` of `parts`: whole cores, grouped by shared cache. *enough: false if there are fewer cores than parts. */
err cores_cut(const struct cores *all, i32 parts, i32 part, struct cores *out, bool *enough);
void cores_stay(const struct cores *c); /* pins this thread and threads it creates later */

f64 machine_quota(void); /* CPU quota of the control groups in processors; 0 = no limit */

/* Parses a machine: '[host*N](cpu*4,gpu*2) [key=value ...]' or 'gpu:1*2 cpu*4'; '#' starts a comment. Keys, for all devices or
 * links: gflops, gbytes (memory GB/s), memory (bytes, or 16GiB), overhead_us (per task), link_gbytes, link_us, l2, l3 (bytes);
 * shares=1,0.4,..: free fraction per host or per device. E103 with the column. */
err machine_parse(const char *text, struct machine *out);
void machine_print(const struct machine *m, struct str *out); /* the form machine_parse reads */

/* Sets kind, default rates and memory of a device. E1 for an unknown kind. */
err machine_kind(const char *kind, struct device *out);

/* `ranks` processes, each with the devices of `one`. E401 if that exceeds MACHINE_DEVICES. */
err machine_ranks(const struct machine *one, i32 ranks, struct machine *out);

/* Removes n dead ranks (increasing); later ranks are renumbered. */
void machine_without(struct machine *m, const i32 *died, i32 n);

/* Sets the measured rate of every device of a kind: gflops of fp32 multiply-add; 0 = unchanged. */
void machine_set_rate(struct machine *m, const char *kind, f64 gflops);

/* Sets the free fraction of every device of each rank, 0..1, and the weights that follow. */
void machine_set_shares(struct machine *m, const f64 *share);

/* Number of devices that share memory with the first one: those of its rank, which come first. */
i32 machine_together(const struct machine *m);

enum { DEVICE_NAME = 32 };
void machine_device_name(const struct machine *m, i32 device, char out[DEVICE_NAME]); /* "r0.cpu1": second cpu of rank 0 */

#endif
