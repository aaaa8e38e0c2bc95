/* run.h - a fit whose ranks train through a parameter store (store/store.h) in place of the plan's messages.
 *
 *     training_prepare  store_split: a worker's batch is its part of the batch, its plan is of this rank alone
 *     begin_member      store_fresh: the store begins with the weights of the member
 *     train_run         store_leg: tickets until the next validation; a ticket is one or more local steps (worker.c)
 *     checkpoint        store_private: what this rank alone knows */
#ifndef STRETTO_LEARN_STORE_RUN_H
#define STRETTO_LEARN_STORE_RUN_H

#include "learn/forecast/fit.h"
#include "learn/store/account.h"
#include "store/store.h"

struct store_run;

/* Once for a fit: local steps where the codec needs them and no option says how workers push. */
void store_settle(struct fit *t);
/* Ranks train through a store, and not by the messages of the plan. */
bool store_used(const struct resources *use);
/* Windows of a step become those of a worker's part: *B rows of `rows` a window; *use becomes that of this rank alone.  E106
 * where there are fewer windows than workers. */
err store_split(struct fit *t, i32 rows, i32 *B, struct resources *use);
i32 store_parts(const struct fit *t); /* of a step; 1 = there is no store */
/* Each worker goes through a span of time, and the net forecasts at every step: its state runs on from tile to tile. */
bool store_carries(const struct fit *t);
/* The optimiser that the engine holds: of the servers where workers push gradients, else of the workers. */
const char *store_engine_optim(const struct fit *t);

err store_prepare(struct fit *t); /* after the engine is made; nothing where no store is used */
void store_drop(struct fit *t);
err store_fresh(struct fit *t);                                 /* a member begins: nothing is left of the one before */
void store_begin_run(struct fit *t, const struct train_job *j); /* borrowed until the next one */
err store_leg(void *fit, struct train_state *s, i64 until);
/* After the death of a rank, before replanning. store_lost: removes dead servers and keeps the optimiser states;
 * store_salvage: all survivors take the state of the failed leg. */
err store_lost(struct fit *t, const struct comm_loss *loss);
err store_salvage(struct fit *t, const struct comm_loss *loss);
err store_report(struct fit *t); /* after training: what was sent, how stale pushes were */

/* Shards of the servers, for checkpoints of the optimiser that the engine holds; 0 where every rank has its own. */
i32 store_owned(const struct fit *t, const struct store_shard **out);
bool store_is_local(const struct fit *t); /* the optimiser that the engine holds is this rank's own */
/* Decisions that depended on measured time, for checkpoints: the same on all ranks; NULL = no store.  go_on: applies those that
 * it holds now. */
struct store_reached *store_reached(const struct fit *t);
void store_go_on(struct fit *t);
/* What a leg that a stop has ended early leaves for the next one (store/store.h): the same on all ranks. */
i64 store_pause_floats(const struct fit *t); /* 0 = never any */
i64 store_pause_key(const struct fit *t);    /* equal: it fits */
const f32 *store_paused(const struct fit *t);
err store_pause_load(struct fit *t, const f32 *from);
/* Floats of this rank alone: codecs, optimiser states that are not the engine's, weights of its own. */
i64 store_private(const struct fit *t);
const i64 *store_private_first(const struct fit *t); /* [ranks + 1] where those of each rank begin in a vector of all */
void store_private_save(const struct fit *t, f32 *to);
void store_private_load(struct fit *t, const f32 *from);

#endif
