/* save.h - checkpoints of a fit on their way to the disk: each rank's share of the optimiser's state by itself, what all
 * ranks have alike by rank 0.
 *
 *     stage 0  none in flight
 *           1  every rank's thread writes its shard; when no rank is busy their sums are told to all
 *           2  rank 0's thread writes the manifest and gives the folder its name; then all are told how that went
 *
 * From stage to stage ranks go together (train_job.saved), and so they agree at every step on whether one is in flight.  A
 * checkpoint that could not be written is a warning, and the one before it stays; at the end of a run it is the failure. */
#ifndef STRETTO_LEARN_FORECAST_SAVE_H
#define STRETTO_LEARN_FORECAST_SAVE_H

#include "ckpt/saver.h"
#include "learn/forecast/fit.h"
#include "plan/exchange.h"

struct saving {
    struct ckpt_saver *saver;
    struct ckpt_sum *sum;     /* [ranks] of the checkpoint in flight */
    struct plan_share *share; /* who updates which range of the optimiser's state */
    i32 nshare, stage;
    struct err_record why;    /* of the last one, code 0 = it is whole */
    struct arena arena;       /* of share */
    i64 room, step;           /* of the copy; of the one in flight */
    i64 begun;                /* while steps went on */
    i64 count, bytes;         /* of all that are whole, and of all ranks' parts in sum */
    f64 began, stall, worst;  /* clock of the first; seconds that steps had to wait, in sum and for one */
    f64 waited;               /* for the one in flight */
};

/* By the plan that is now bound; again after another layout. */
err saving_shares(struct fit *t);
/* Before training, where there is a run folder: makes t->save.saving, with memory for this rank's copy. */
err saving_prepare(struct fit *t);
void saving_free(struct saving *s, i32 rank);

/* The calls of struct train_job. */
err saving_begin(void *fit, const struct train_state *s, bool last);
enum train_saving saving_now(void *fit);
err saving_next(void *fit);

/* Asked to stop after the last step (e is E806): what was learnt becomes a checkpoint, and e a STOP_SIGNAL, where there is a run
 * folder.  Any other e as it is. */
err saving_after(struct fit *t, err e);

/* After training: nothing is left in flight, and what it cost is told. */
err saving_end(struct fit *t);

/* state.c: what a checkpoint holds, the memory that a copy of it takes, and handing it to the saver. */
err forecast_state_room(struct fit *t, i64 *bytes);
err forecast_checkpoints(const struct fit *t, char dir[4096]); /* their folder; E702 where its name is too long */
err forecast_save_state(struct fit *t, const struct train_state *s);

#endif
