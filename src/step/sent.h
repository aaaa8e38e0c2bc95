/* sent.h - what the ranks of a net's plan send in a step, and which ranks hold weights and the state of the optimiser. */
#ifndef STRETTO_STEP_SENT_H
#define STRETTO_STEP_SENT_H

#include "plan/exchange.h"
#include "step/netplan.h"

/* Bytes of a step's messages, all ranks together: at most, and without sparse rows; `lines` is the share of both that is
 * gradients of tables. parts: batches per step (--accumulate), each with its own messages. */
struct plan_sent {
    i64 messages, most, whole, lines_most, lines_whole;
};
err plan_sent(const struct plan *p, i32 parts, struct plan_sent *out);

/* Which rank updates elements [lo,hi) of the weights, and so holds them and their optimizer state; in order, without gaps.  If
 * all ranks make all updates: the ranks that would otherwise make them. */
err plan_shares(const struct plan *p, struct arena *a, struct plan_share **out, i32 *n);

#endif
