/* save.h - writes the checkpoints of a fit in the background: each rank writes its share of the optimizer state as a shard,
 * rank 0 also writes what is equal on all ranks.
 *
 *     stage 0  no checkpoint is being written
 *           1  a thread of each rank writes its shard; when all have finished, the ranks exchange the results (struct ckpt_sum)
 *           2  the thread of rank 0 writes the manifest and renames the folder; then rank 0 broadcasts the outcome
 *
 * All ranks change stage together (train_job.saved), so at every step they agree whether a checkpoint is being written.  If one
 * cannot be written, a warning says so and the previous checkpoint stays; at the end of a run it is an error. */
#ifndef STRETTO_LEARN_FORECAST_SAVE_H
#define STRETTO_LEARN_FORECAST_SAVE_H

#include "ckpt/saver.h"
#include "learn/forecast/fit.h"
#include "plan/exchange.h"

struct saving {
    struct ckpt_saver *saver;
    struct ckpt_sum *sum;     /* [ranks] results of the checkpoint being written */
    struct plan_share *share; /* which rank updates which range of the optimizer state */
    i32 nshare, stage;
    struct err_record why;    /* error of the last checkpoint; code 0 = it is complete */
    struct arena arena;       /* memory of `share` */
    i64 room, step;           /* bytes of the copy of the state; step of the checkpoint being written */
    i64 begun;                /* checkpoints begun while training continued */
    i64 count, bytes;         /* complete checkpoints; bytes of all their shards */
    f64 began, stall, worst;  /* time of the first; seconds that steps waited: total, most for one checkpoint */
    f64 waited;               /* seconds that steps waited for the checkpoint being written */
};

/* Computes `share` from the plan that is bound; call it again after binding another plan. */
err saving_shares(struct fit *t);
/* Before training: allocates t->save.saving with memory for this rank's copy of the state; no effect without a run folder. */
err saving_prepare(struct fit *t);
void saving_free(struct saving *s, i32 rank);
/* Before training: fails on all ranks if there is no room for the model (learn_job.foresee). */
err saving_foresee(struct fit *t);

/* The calls of struct train_job. */
err saving_begin(void *fit, const struct train_state *s, bool last);
enum train_saving saving_now(void *fit);
err saving_next(void *fit);

/* If a signal stopped training after the last step (e = E806) and there is a run folder: writes a checkpoint and returns
 * STOP_SIGNAL.  Otherwise returns e. */
err saving_after(struct fit *t, err e);

/* After training: waits until the checkpoint being written is complete, and reports what checkpoints cost. */
err saving_end(struct fit *t);

/* state.c: the contents of a checkpoint; forecast_state_room: bytes of a copy; forecast_save_state: hands a copy to the saver. */
err forecast_state_room(struct fit *t, i64 *bytes);
err forecast_checkpoints(const struct fit *t, char dir[4096]); /* their folder; E702: its name is too long */
err forecast_save_state(struct fit *t, const struct train_state *s);

#endif
