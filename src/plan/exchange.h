/* exchange.h - what ranks send each other in a step: derived from uses, as edges are; no client writes a message. */
#ifndef STRETTO_PLAN_EXCHANGE_H
#define STRETTO_PLAN_EXCHANGE_H

#include "plan/plan.h"

/* The range [lo,hi) of a buffer, of its steps [t0,t1), goes from the rank that wrote it last, in task `after`, to one that reads
 * it or is its home.  Where `after` is of a team, the message waits for all members.  sparse: it is sent as sparse rows; the
 * message holds their number. */
struct plan_message {
    u32 buf, after;
    i32 from, to;
    u8 when; /* enum message_when */
    bool sparse;
    i32 t0, t1; /* of repeat steps; 0 of 1 where the buffer has no steps */
    i64 lo, hi;
};

/* All messages of a step in the order of `after`: ranks that walk the list in order agree on every pair's messages.  What a task
 * that runs everywhere has written is on every rank already.  In the arena; *n may be 0. */
err plan_exchange(const struct plan *p, struct arena *a, struct plan_message **out, u32 *n);
i64 plan_message_bytes(const struct plan *p, const struct plan_message *m); /* of its range, not as sparse rows */

/* The tasks that a rank runs: out [ntask], in the arena. */
err plan_runs(const struct plan *p, i32 rank, struct arena *a, bool **out);

/* Which rank writes elements [lo,hi) of a buffer last in a step; in order, without holes.  A range that no task writes
 * counts as rank 0's, one that a task writes everywhere as that of its device. */
struct plan_share {
    i64 lo, hi;
    i32 rank;
};
err plan_writers(const struct plan *p, u32 buf, struct arena *a, struct plan_share **out, i32 *n);

/* A message of sparse rows ("lines"): their count, their numbers unless all n are sent, their values.
 *
 *     | count, 4 bytes | numbers, 2 bytes each, to a multiple of 4 | LINE_FLOATS floats each |
 *
 * Where the line numbers would make the message longer than all lines, all lines are sent, untouched ones as zeros.
 * LINES_MOST: lines of a message; longer ranges are sent in parts. */
enum { LINES_MOST = 1 << 16, LINE_FLOATS = 16 };
static inline i64 lines_numbers(i64 n, i64 count) { return count < n ? round_up64(2 * count, 4) : 0; }
static inline i64 lines_bytes(i64 n, i64 count) { return 4 + lines_numbers(n, count) + count * LINE_FLOATS * 4; }
static inline i64 lines_sent(i64 n, i64 touched) { return lines_bytes(n, touched) < lines_bytes(n, n) ? touched : n; }

#endif
