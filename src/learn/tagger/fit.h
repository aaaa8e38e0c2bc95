/* fit.h - a tagger in training: fit.c trains it, state.c saves and restores it. */
#ifndef STRETTO_LEARN_TAGGER_FIT_H
#define STRETTO_LEARN_TAGGER_FIT_H

#include "learn/snapshots.h"
#include "learn/tagger/tagger.h"

/* The first of two fits: its figures stay those of the model. */
struct tag_first {
    i64 ended;              /* 1 = the second fit, on all sentences, has begun */
    i64 best_step;
    f64 valid_error, seconds;
};

struct tag_fit {
    const struct learn_job *job;
    struct split split;     /* the sentences of this fit */
    i64 until;              /* a fit without validation: steps; 0 = validation says when to stop */
    struct snapshots *shots;
    struct tag_first *first;
    const struct token_set *s;
    struct tagger *t;
    i32 *ids, *tag, *best;  /* [nfeature][ntoken]; [ntoken] true and decoded tags */
    u8 *rare;
    struct engine engine;
    struct tag_batcher train, valid;
    struct train_state state;
    i64 batches;            /* of an epoch */
};

/* state.c.  Of train_job. */
err tag_fit_checkpoint(void *fit, const struct train_state *s, bool last);
/* Which of the fits a resumed run continues with; E901. */
err tag_fit_begin(struct snapshots *shots, struct tag_first *first);
/* Takes the state of a resumed run, once; E901. */
err tag_fit_restore(struct tag_fit *f);

#endif
