/* dev.h - a device type: how the queues of a process run.  One file and one const struct each, one line in topo/devices.def.
 *
 *     exec --queues of items--> dev_type.run --> items, in the order of each queue, after the items they wait for
 *
 * A type with a virtual clock runs the same items with the same kernels, hence with the same bits; its seconds follow from the
 * machine text.  Nothing outside src/dev names a type. */
#ifndef STRETTO_DEV_DEV_H
#define STRETTO_DEV_DEV_H

#include "base/pool.h"
#include "plan/plan.h"

/* An item waits until `queue` has done `count` items. */
struct dev_wait {
    u32 queue, count;
};

/* The properties of an item that a virtual clock needs. */
struct dev_item {
    const struct device *device;
    const struct dev_wait *wait; /* [nwait] */
    u32 nwait;
    f64 seconds; /* predicted, on this device */
    f64 bytes;   /* that it uses */
    f64 moved;   /* of these: what other devices wrote last, and a transfer must bring */
    bool across; /* some of it from another rank */
};

/* The queues of a step. */
struct dev_work {
    struct pool *pool;
    u32 nqueue;
    void *arg;
    void (*run_queue)(void *arg, i32 queue); /* all items of a queue; waits where it must; for pool_run */
    /* Item `at` of a queue; returns the item after it, 0 = there is no item `at`. */
    u32 (*item)(void *arg, u32 queue, u32 at, struct dev_item *out);
    void (*run_item)(void *arg, u32 queue, u32 at, f64 t0, f64 t1); /* one item; t0, t1: seconds on the virtual clock */
    f64 *finish;                                                    /* [nqueue][longest + 1] room for a virtual clock */
    u32 longest;
    f64 link_bytes, link_seconds; /* per second between ranks; of a message */
};

struct dev_type {
    const char *name; /* the word of the machine text */
    const char *help;
    bool is_virtual;
    /* Of devices with memory of their own: the driver (gpu/drivers.def), a queue for each lane.  NULL = the host's memory. */
    const char *driver;
    i32 (*workers)(const struct pool *pool, i32 devices); /* queues that run at the same time */
    /* is_virtual: can the device hold so many bytes?  E601.  Others share the memory of the host, which is checked as a whole. */
    err (*fits)(const struct device *d, const char *name, i64 bytes);
    f64 (*run)(const struct dev_work *w); /* returns the seconds of the virtual clock, 0 = it has none */
};

/* The type of the devices of a rank in a plan.  E401 where they differ, or where no type of that name is built in. */
err dev_of_rank(const struct plan *p, i32 rank, const struct dev_type **out);
const struct dev_type *dev_find(const char *kind); /* NULL = none is built in */

/* Queues on the workers of a pool, in real time. */
i32 dev_workers(const struct pool *pool, i32 devices);
f64 dev_run(const struct dev_work *w);

#endif
