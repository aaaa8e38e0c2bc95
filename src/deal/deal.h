/* deal.h - deals independent work to unlike devices: who does which rows of which partition next.
 *
 *     struct dealer *d;                                     devices and partitions as plain numbers
 *     deal_new(device, n, &work, "auto", &d);
 *     a lane is idle:   deal_next(d, device, lane, &piece) == DEAL_PIECE     -> do rows piece.lo .. piece.hi of piece.part
 *     a piece is done:  deal_done(d, device, lane, &piece, seconds, now)          false: drop the result, another device has it
 *     all is done:      deal_results(d, &n)                 in order of partition and row: the order of merging
 *     once more:        deal_again(d)                       iterative work: pieces stay where their rows are
 *
 * A dealer is arithmetic: it has no threads, no locks and no clock (`now` is an argument, in seconds), so a virtual clock
 * (simulate.h) and real lanes (run.h) drive the same code.  Costs are units of the caller (rows, tokens * L^2), never seconds.
 *
 * Every row is done exactly once: one lane has a piece at a time, and the piece returns to the work that is left when its device
 * refuses the memory or is lost.  Which device does which rows depends on time.  A caller that needs the same bits on any number
 * of devices merges at fixed boundaries (multiples of `grain`), along a fixed tree.
 *
 * Errors: E103 unknown policy, E401 invalid devices or work, E601 no memory. */
#ifndef STRETTO_DEAL_DEAL_H
#define STRETTO_DEAL_DEAL_H

#include "base/err.h"

enum { DEAL_LANES = 16 };

/* What is believed of a device before it is measured. */
struct deal_device {
    f64 rate;        /* cost units per second of one lane; 0 = unknown */
    f64 weight;      /* free fraction of the device, multiplies `rate`; 0 = 1 */
    f64 overhead_s;  /* of a piece, whatever its size; 0 = 100 us */
    f64 bytes_per_s; /* transfer to the device; 0 = it reads the memory of the host */
    i64 free_bytes;  /* memory for work sets; 0 = no limit */
    i32 lanes_most;  /* 1 .. DEAL_LANES pieces at once; 0 = 1 */
    i32 lanes;       /* to begin with; 0 = 1 */
    bool lanes_fixed; /* no other number is tried */
};

struct deal_part {
    i64 rows;
    f64 cost; /* of one row, > 0 */
};

struct deal_work {
    i32 nparts;
    const struct deal_part *part; /* [nparts] */
    i64 row_bytes;                /* work set of one row on a device, and what is transferred; 0 = none */
    i64 grain;                    /* pieces begin at multiples of it; >= 1 */
    const i32 *home;              /* [nparts] device that holds the rows, -1 = none; NULL = none */
};

struct deal_piece {
    i64 id; /* in the order of dealing */
    i32 part, device;
    i64 lo, hi; /* rows */
    f64 cost;
    bool resident; /* the device holds the rows: no transfer */
};

enum deal_answer {
    DEAL_PIECE, /* *out is to be done */
    DEAL_WAIT,  /* nothing for this lane now: ask again after the next done, refused or lost */
    DEAL_NONE   /* nothing for this lane any more: all is done, or the device is out */
};
enum deal_state {
    DEAL_RUNNING,
    DEAL_FINISHED,
    DEAL_STUCK /* work is left, and every device is out */
};
enum deal_status { DEAL_IN, DEAL_REFUSED, DEAL_LOST };

struct dealer;

/* Copies all it needs.  policy: a name of policies.def. */
err deal_new(const struct deal_device *device, i32 n, const struct deal_work *work, const char *policy, struct dealer **out);
void deal_free(struct dealer *d); /* NULL is fine */

/* enum deal_answer, or -E601. */
int deal_next(struct dealer *d, i32 device, i32 lane, struct deal_piece *out);

/* These take the piece that the lane has.  False: the lane has no such piece (any more), nothing changed.
 * done: `seconds` from begin to end of the piece on the lane.  False: drop its result, another device does the rows.
 * refused: the device lacks memory; its pieces are at least halved, below one grain it gets fewer lanes, then it is out. */
bool deal_done(struct dealer *d, i32 device, i32 lane, const struct deal_piece *p, f64 seconds, f64 now);
bool deal_refused(struct dealer *d, i32 device, i32 lane, const struct deal_piece *p);
void deal_lost(struct dealer *d, i32 device); /* its unfinished pieces go back */

enum deal_state deal_state(const struct dealer *d);
/* The done pieces in order of partition and row; they cover every row once when the dealer has finished. */
const struct deal_piece *deal_results(struct dealer *d, i64 *n);
/* Seconds that a piece should take on the device; 0 = no rate of any device is known. */
f64 deal_expected(const struct dealer *d, i32 device, f64 cost);

/* The same work once more, after DEAL_FINISHED.  With the policy `auto` each device keeps the pieces that it did; what a device
 * has above 5 % of its share moves.  *moved: cost that changes the device (may be NULL). */
err deal_again(struct dealer *d, f64 *moved);

/* What was learned of a device; `as` can start the dealer of the next stage of the same kernel. */
struct deal_report {
    struct deal_device as;
    enum deal_status status;
    bool measured;
    i32 lanes; /* in use */
    i64 pieces, refused, stolen; /* stolen: spans taken from another device's queue */
    i64 lanes_pieces;            /* pieces until the number of lanes was settled; 0 = it is not */
    f64 cost, busy;
};
void deal_report(const struct dealer *d, i32 device, struct deal_report *out);
i32 deal_devices(const struct dealer *d);

/* The policies of policies.def in order; NULL behind the last one. */
const char *deal_policy_name(i32 index);
const char *deal_policy_help(i32 index);

#endif
