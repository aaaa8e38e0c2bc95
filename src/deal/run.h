/* run.h - runs the pieces of a dealer on real devices: one host thread per lane, which blocks while its piece is computed.
 *
 *     piece() fails with E601   the device refused memory: its pieces become smaller (deal_refused)
 *             fails with E831   the device is lost: the others do its work (deal_lost)
 *             fails otherwise   the run stops with that error, after the pieces that are running
 *             takes 20 times what it should and a second more: the device counts as lost, its thread is left behind
 *
 * piece() writes only what belongs to its lane; accept() makes its result count.  accept() is called once for all rows, never for
 * a piece that came back late, and never by two threads at once. */
#ifndef STRETTO_DEAL_RUN_H
#define STRETTO_DEAL_RUN_H

#include "deal/deal.h"

struct deal_job {
    void *self;
    err (*piece)(void *self, i32 device, i32 lane, const struct deal_piece *p);
    /* The result of a piece counts.  On the thread of the lane, under a lock: short.  NULL = nothing to do.  An error stops. */
    err (*accept)(void *self, i32 device, i32 lane, const struct deal_piece *p);
    /* No thread uses `self` or the buffers of the lanes any more: before deal_run returns, or later, on a thread that had been
     * left behind.  NULL = nothing to do. */
    void (*ended)(void *self);
    f64 patience_s; /* beyond 20 times the expected seconds; 0 = 1 s */
    f64 first_s;    /* for a piece while no rate is known; 0 = 60 s */
};

struct deal_ran {
    i64 pieces, refused, dropped; /* accepted, refused, late */
    i32 lost, left_behind;        /* devices; threads that had not come back */
    f64 seconds;
};

/* Until all work is done.  E601 or E831 with the last reason when no device is left.  The dealer may go on with deal_again. */
err deal_run(struct dealer *d, const struct deal_job *job, struct deal_ran *out);

#endif
