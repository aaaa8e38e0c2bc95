/* net_state.h - the checkpoint of a net in training, for learners with one engine and the loop of train/loop.h: the counters of
 * the loop, weights, the optimiser's state.  On ranks each brings the range that it updates. */
#ifndef STRETTO_LEARN_NET_STATE_H
#define STRETTO_LEARN_NET_STATE_H

#include "learn/snapshots.h"

#define NET_STATE_MOST 1000000000000 /* steps, and what there is one of in each */

/* Adds the state to a list; theta and the states are those of the engine's store. */
void net_state_list(struct train_state *s, const struct store *st, struct snapshot *to);
/* Gives every rank the whole state, between two steps; called on all ranks.  Nothing happens on one. */
err net_state_gather(struct comm *c, const struct engine *e, const struct train_state *s);
bool net_state_sound(const struct train_state *s); /* counters that a run can have */

#endif
