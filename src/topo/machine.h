/* machine.h - all that the planner knows of hardware: ranks, devices, links, as plain numbers.
 *
 * topo/host.c fills it for this host; a text of a few lines describes an imaginary one ('host*2(cpu*4)'). */
#ifndef STRETTO_TOPO_MACHINE_H
#define STRETTO_TOPO_MACHINE_H

#include "base/str.h"

enum { MACHINE_DEVICES = 1024 };

struct device {
    i32 rank;           /* process it belongs to */
    i32 core;           /* first core, -1 = any */
    char kind[8];       /* "cpu" */
    f64 gflops;         /* measured or stated fp32 rate */
    f64 gbytes;         /* memory bandwidth GB/s */
    i64 memory;         /* bytes */
    f64 weight;         /* share of the work; 1 = as fast as the others */
};

struct machine {
    char name[64];      /* "host" or the description it was made from */
    char cpu[64];       /* model name, for people */
    i32 nrank, ndevice, ncore;
    i64 memory, cache_l2, cache_l3;
    f64 link_gbytes, link_us; /* between ranks */
    struct device device[MACHINE_DEVICES];
};

/* This host: cores allowed (affinity, cgroup), caches, memory.  One device per worker thread; threads 0 = all cores allowed. */
err machine_host(i32 threads, struct machine *out);
err machine_parse(const char *text, struct machine *out);  /* 'host*2(cpu*4)' or 'cpu*4' */
void machine_print(const struct machine *m, struct str *out);

#endif
