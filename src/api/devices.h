/* devices.h - the devices that --device names, and those of this host.
 *
 *     --device opencl:0         one rank, whose tasks run on that device      opencl:0*2: on two lanes (queues) of it
 *     --device cpu,opencl:0     a rank for each, as threads of this process; ranks of a launcher take them in turn
 *     --device all              every device of every driver, and no core */
#ifndef STRETTO_API_DEVICES_H
#define STRETTO_API_DEVICES_H

#include "base/json.h"
#include "opt/opt.h"
#include "topo/machine.h"

enum { DEVICE_WISHES = 64 };
struct device_wishes {
    i32 n; /* 0 = cores of the host, as ever */
    struct device_wish {
        char kind[8]; /* of topo/devices.def */
        i32 card, lanes;
        f64 gflops; /* 0 = that of the kind */
        f64 share;  /* fraction that other programs leave free, as NVML sees it; 1 where it does not */
        i64 memory;
    } at[DEVICE_WISHES];
};
/* Reads --device.  E103 where the text is wrong, E830 where there is no such device. */
err devices_read(const struct options *o, const struct machine *host, struct device_wishes *out);
/* Replaces the devices of rank `rank` at the end of `m`, or adds them: those of the wish that is its turn. */
void devices_add(const struct device_wishes *w, i32 rank, const struct machine *host, struct machine *m);
bool devices_differ(const struct device_wishes *w);
/* The devices of the wish whose turn is `which`, as a machine of one rank; the caller frees *out. */
err devices_machine(const struct device_wishes *w, i32 which, const struct machine *host, struct machine **out);
/* The devices of one rank of a machine, as rank 0 of a machine of its own; the caller frees *out. */
err devices_of_rank(const struct machine *all, i32 rank, const struct machine *host, struct machine **out);

/* Every device of every driver, a line each ("# opencl:0  NAME, ..") or into the list; what is absent, and why. */
void devices_list(struct str *text, struct js *list);
/* "opencl:0 (pthread..), no CUDA: .." for doctor. */
void devices_summary(char *out, size_t size);

#endif
