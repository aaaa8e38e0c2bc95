/* exchange.h - what ranks send each other in a step: derived from uses, as edges are; no strategy writes a message. */
#ifndef STRETTO_PLAN_EXCHANGE_H
#define STRETTO_PLAN_EXCHANGE_H

#include "plan/plan.h"

/* STEP: in every step.  KEEP: only where the gradient is kept for the next step to add to.  GATHER: only when asked for (another
 * plan wants the optimiser's state elsewhere). */
enum message_when { MESSAGE_STEP, MESSAGE_KEEP, MESSAGE_GATHER };

/* The range [lo,hi) of a buffer goes from the rank that wrote it last, in task `after`, to one that is to read it.  Elements are
 * f32, of PBUF_NORM and PBUF_LOSS f64.  Gradients of a table go by lines: how many there are only the sender knows, and says. */
struct plan_message {
    u32 buf, after;
    i32 from, to;
    u8 when;
    bool lines;
    i64 lo, hi;
};

/* All messages of a step in the order of `after`: ranks that walk the list in order agree on every pair's messages.  Weights are
 * read by every rank after the step, the loss and the partial norms too; copies of weights (PREP) are made by every rank for
 * itself and never sent; so are updates where p->whole, and then the sums of gradients go to every rank in place of weights.  In
 * the arena; *n may be 0.
 * plan_is_sent: buffers whose ranges can be; activations and what goes with them stay in one process (plan_check). */
bool plan_is_sent(const struct pbuf *b);
err plan_exchange(const struct plan *p, struct arena *a, struct plan_message **out, u32 *n);

/* Lines on their way: how many there are, which of n (not said when it is all), their values.
 *
 *     | count, 4 bytes | numbers, 2 bytes each, to a multiple of 4 | LANES floats each |
 *
 * Where their numbers would make it longer than all lines, all go: whoever has not touched one sends zeros.  LINES_MOST: of a
 * message; longer ones go in parts. */
enum { LINES_MOST = 1 << 16 };
static inline i64 lines_numbers(i64 n, i64 count) { return count < n ? round_up64(2 * count, 4) : 0; }
static inline i64 lines_bytes(i64 n, i64 count) { return 4 + lines_numbers(n, count) + count * LANES * 4; }
static inline i64 lines_sent(i64 n, i64 touched) { return lines_bytes(n, touched) < lines_bytes(n, n) ? touched : n; }

/* Bytes of a step's messages, all ranks together: at most, and if everything went whole; `lines` is the part of both that is
 * gradients of tables.  parts: batches that make a step (--accumulate), each with messages of its own. */
struct plan_sent {
    i64 messages, most, whole, lines_most, lines_whole;
};
err plan_sent(const struct plan *p, i32 parts, struct plan_sent *out);

/* Which rank updates elements [lo,hi) of the optimiser's state, and so has them; in order, without holes.  None where the
 * optimiser has no state.  Where p->whole all have all: the ranks that would be first. */
struct plan_share {
    i64 lo, hi;
    i32 rank;
};
err plan_shares(const struct plan *p, struct arena *a, struct plan_share **out, i32 *n);

#endif
