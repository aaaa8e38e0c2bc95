/* sent.h - what the ranks of a net's plan send in a step, and which ranks hold the state of the optimiser. */
#ifndef STRETTO_STEP_SENT_H
#define STRETTO_STEP_SENT_H

#include "plan/exchange.h"
#include "step/netplan.h"

/* Bytes of a step's messages, all ranks together: at most, and if everything went whole; `lines` is the part of both that is
 * gradients of tables.  parts: batches that make a step (--accumulate), each with messages of its own. */
struct plan_sent {
    i64 messages, most, whole, lines_most, lines_whole;
};
err plan_sent(const struct plan *p, i32 parts, struct plan_sent *out);

/* Which rank updates elements [lo,hi) of the optimiser's state, and so has them; in order, without holes.  None where the
 * optimiser has no state.  Where all ranks make all updates: the ranks that would be first. */
err plan_shares(const struct plan *p, struct arena *a, struct plan_share **out, i32 *n);

#endif
