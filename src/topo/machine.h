/* machine.h - all that the planner knows of hardware: ranks, devices, links, as plain numbers.
 *
 * topo/host.c fills it for this host; a text of one line describes an imaginary one ('host*2(cpu*4)'). */
#ifndef STRETTO_TOPO_MACHINE_H
#define STRETTO_TOPO_MACHINE_H

#include "base/str.h"

enum { MACHINE_DEVICES = 1024 };

struct device {
    i32 rank;     /* process it belongs to */
    i32 core;     /* first core, -1 = any */
    char kind[8]; /* "cpu" */
    f64 gflops;   /* measured or stated fp32 rate */
    f64 gbytes;   /* memory bandwidth GB/s */
    i64 memory;   /* bytes */
    f64 share;    /* of it that is free for us, 0..1; 1 = all of it */
    f64 weight;   /* share of the work; 1 = as fast as the others */
    f64 overhead_us; /* of starting a task; 0 = what the cost model takes for it */
};

struct machine {
    char name[64]; /* "host" or the description it was made from */
    char cpu[64];  /* model name, for people */
    i32 nrank, ndevice, ncore;
    i64 memory, cache_l2, cache_l3;
    f64 link_gbytes, link_us; /* between ranks */
    struct device device[MACHINE_DEVICES];
};

/* This host: cores allowed (affinity, cgroup), caches, memory.  One device per worker thread; threads 0 = all cores allowed. */
err machine_host(i32 threads, struct machine *out);

/* Processors of this host by number. */
enum { CORES_WORDS = 16 };
struct cores {
    u64 word[CORES_WORDS];
};
bool cores_allowed(struct cores *out); /* those that this thread may run on; false where they cannot be told */
i32 cores_count(const struct cores *c);
bool cores_meet(const struct cores *a, const struct cores *b);
/* Part `part` of `parts`: whole cores, those that share a cache together.  false where there are fewer cores than parts. */
err cores_cut(const struct cores *all, i32 parts, i32 part, struct cores *out, bool *enough);
void cores_stay(const struct cores *c); /* this thread, and those that it makes from here on, run there alone */

f64 machine_quota(void); /* processors that control groups grant this process; 0 = no limit */

/* An imaginary machine: '[host*N](cpu*4,gpu*2) [key=value ...]' or 'cpu*4'; '#' begins a comment.  Keys, for all devices or
 * links: gflops, gbytes (GB/s of memory), memory (bytes, or 16GiB), overhead_us (of a task), link_gbytes, link_us, l2, l3
 * (bytes); and shares=1,0.4,..: what is free of each host, or of each device.  E103 with the column. */
err machine_parse(const char *text, struct machine *out);
void machine_print(const struct machine *m, struct str *out); /* the form machine_parse reads */

/* `ranks` processes with the devices of `one` each.  E401 where that is more than MACHINE_DEVICES. */
err machine_ranks(const struct machine *one, i32 ranks, struct machine *out);

/* The same without the ranks that died: n of them, rising; those behind move up. */
void machine_without(struct machine *m, const i32 *died, i32 n);

/* Measured rates for every device of a kind: gflops of fp32 multiply-add, gbytes GB/s of memory; 0 = leave as it is. */
void machine_set_rate(struct machine *m, const char *kind, f64 gflops, f64 gbytes);

/* What is free of every device of each rank, 0..1: rates stay, weights follow. */
void machine_set_shares(struct machine *m, const f64 *share);

/* Devices that share memory with the first one: those of its rank, which come first. */
i32 machine_together(const struct machine *m);

enum { DEVICE_NAME = 32 };
void machine_device_name(const struct machine *m, i32 device, char out[DEVICE_NAME]); /* "r0.cpu1": second cpu of rank 0 */

#endif
