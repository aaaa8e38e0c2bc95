/* offload.h - the hot kernel of a learner on the devices of --device: deals its rows to devices of unlike speed.
 *
 *     rows     0 ......................................... n      of a kernel whose rows do not depend on each other, in one
 *     dealer   | opencl:0 | cpu | opencl:0 | opencl:1 | ..        partition or several: an idle device takes the next piece
 *
 *     offload_open --> offload_run, offload_run, ..  --> offload_close
 *
 * The plan of the learner stays on the cores: between two of its steps offload_run computes what a kernel of the plan would
 * have computed.  The learner makes sure that the values do not depend on the device.  From the second run of the same rows
 * on, devices keep their rows (deal_again).
 *
 * A device that fails, hangs for STRETTO_DEADLINE or refuses its memory is left for the rest of the run, with one warning; the
 * other devices compute its pieces, and the cores of this host do where no device is left.  No thread is left behind: a piece
 * on a device ends by the deadline of gpu_sync.
 */
#ifndef STRETTO_LEARN_OFFLOAD_H
#define STRETTO_LEARN_OFFLOAD_H

#include "deal/deal.h"
#include "learn/learner.h"

/* One lane of a device, whose thread has entered the lane (gpu_enter); or the cores. */
struct offload_lane {
    i32 device, lane;  /* 0 .. offload_devices - 1, 0 .. offload_lanes - 1 */
    i32 slot;          /* 0 .. offload_slots - 1: a number of its own for each lane of each device, and for the cores */
    char *heap;        /* first byte of the device's memory, zeroed when it was opened; NULL = the cores */
};

struct offload_kernel {
    void *self;
    i64 bytes;   /* heap of each device */
    i64 grain;   /* pieces begin at multiples of it */
    /* On lane 0 of every device, before the first run: copies what all runs need.  NULL = nothing. */
    void (*prepare)(void *self, const struct offload_lane *at);
    /* The same before the pieces of each run: what all its rows need. */
    void (*begin)(void *self, const struct offload_lane *at);
    /* A piece on a device; writes only what belongs to the lane.  Failures of the device need no code. */
    void (*on_device)(void *self, const struct offload_lane *at, const struct deal_piece *p);
    /* A piece on the cores, to its end.  By one thread at a time, which may use the pool.  All rows of the piece will count. */
    void (*on_host)(void *self, const struct offload_lane *at, const struct deal_piece *p);
    /* The piece counts: copies or adds what the lane holds.  Once for each row, never by two threads at once; short. */
    void (*accept)(void *self, const struct offload_lane *at, const struct deal_piece *p);
};

struct offload;
/* The devices of use->forward; E831 where one never worked, E106 on several ranks. */
err offload_open(const struct offload_kernel *k, const struct resources *use, struct offload **out);
void offload_close(struct offload *o); /* NULL is fine */
/* The devices, and one for the cores, which compute what is left when all devices have failed. */
i32 offload_devices(const struct offload *o);
i32 offload_slots(const struct offload *o);
i32 offload_lanes(const struct resources *use); /* of the device that has most */

/* All rows of n partitions, once.  again: the partitions are those of the last run, and devices keep their rows.  E601; never
 * for a device that fails. */
err offload_run(struct offload *o, const struct deal_part *part, i32 n, bool again);

/* Shares of the work of all runs: "opencl:0 61 %, cpu 39 %". */
void offload_shares(const struct offload *o, char *out, size_t size);
static inline bool offload_wanted(const struct resources *use) { return use->nforward > 0; }

#endif
