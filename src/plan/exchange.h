/* exchange.h - what ranks send each other in a step: derived from uses, as edges are; no strategy writes a message. */
#ifndef STRETTO_PLAN_EXCHANGE_H
#define STRETTO_PLAN_EXCHANGE_H

#include "plan/plan.h"

/* STEP: in every step.  KEEP: only where the gradient is kept for the next step to add to.  GATHER: only when asked for (another
 * plan wants the optimiser's state elsewhere). */
enum message_when { MESSAGE_STEP, MESSAGE_KEEP, MESSAGE_GATHER };

/* The range [lo,hi) of a buffer goes from the rank that wrote it last, in task `after`, to one that is to read it.  Elements are
 * f32, of PBUF_NORM and PBUF_LOSS f64. */
struct plan_message {
    u32 buf, after;
    i32 from, to;
    u8 when;
    i64 lo, hi;
};

/* All messages of a step in the order of `after`: ranks that walk the list in order agree on every pair's messages.  Weights are
 * read by every rank after the step, the loss and the partial norms too; copies of weights (PREP) are made by every rank for
 * itself and never sent; so are updates where p->whole, and then the sums of gradients go to every rank in place of weights.  In
 * the arena; *n may be 0.
 * plan_is_sent: buffers whose ranges can be; activations and what goes with them stay in one process (plan_check). */
bool plan_is_sent(const struct pbuf *b);
err plan_exchange(const struct plan *p, struct arena *a, struct plan_message **out, u32 *n);

/* Which rank updates elements [lo,hi) of the optimiser's state, and so has them; in order, without holes.  None where the
 * optimiser has no state.  Where p->whole all have all: the ranks that would be first. */
struct plan_share {
    i64 lo, hi;
    i32 rank;
};
err plan_shares(const struct plan *p, struct arena *a, struct plan_share **out, i32 *n);

#endif
