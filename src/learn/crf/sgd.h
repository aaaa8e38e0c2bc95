/* sgd.h - stochastic gradient descent for a CRF, plain or averaged, in mini-batches of sentences.
 *
 *     order of a pass   | batch 0: 16 sentences | batch 1 | ..
 *     a batch    pass   groups of 2 sentences, on any worker of any rank: P - Y of the tokens, expected label pairs
 *                share  ranks exchange both, unless each computes all (sgd.c)
 *                update each worker, on every rank: its range of rows -= step (P - Y) of the tokens with the attribute
 *
 * Weights are scale * v: the penalty shrinks all of them by the one number, and a batch touches the rows of its attributes alone.
 * So does averaging: the sum of the weights after the batches k = 1, 2, .. is sum * v - lag, where sum is the sum of the scales,
 * and lag gets the change of v at batch k times the sum before k.  The rows of the transitions are dense: there v is the weight,
 * and lag its sum.
 *
 * Each row of the weights adds the tokens of a batch in their order, whichever worker updates it, and sums over groups are formed
 * in the order of the groups.  So the weights have equal bits on any number of threads and ranks.
 *
 * Sources: Bottou, Stochastic Gradient Descent Tricks (2012): step eta0 / (1 + lambda eta0 t), eta0 from a sample, the scale; Xu,
 * Towards Optimal One Pass Large Scale Learning with Averaged SGD (arXiv 1107.2490): power 3/4 and lazy averages; Okazaki's
 * CRFsuite, algorithm l2sgd: the search for eta0. */
#ifndef STRETTO_LEARN_CRF_SGD_H
#define STRETTO_LEARN_CRF_SGD_H

#include <stdatomic.h>

#include "learn/crf/train.h"

/* Bits of a mode: on all workers, else on the calling thread; a part on each rank, else all of it on every rank. */
enum { SGD_WORKERS = 1, SGD_SHARED = 2, SGD_MODES = 4 };
enum { SGD_BATCH = 16, SGD_GROUP = 2, SGD_GROUPS = SGD_BATCH / SGD_GROUP };

struct sgd {
    const struct crf_problem *p;
    const struct crf_settings *s;
    const struct resources *use;
    const struct crf_kern *kern;
    i32 batch;           /* sentences of a mini-batch */
    f64 lambda;          /* penalty of a sentence: 1 / (C sentences) */
    f32 *v, *lag;        /* [nrow][Lp]; lag: of averaged SGD */
    f64 eta0, scale, sum;
    i64 averaged;        /* batches in the average */
    bool averages;       /* batches from now on belong to it */
    i64 seen;            /* sentences that changed the weights, with repetitions */
    /* the pass: over all sentences or the first n of its order */
    i32 *order;          /* [nsentence] */
    i64 pass, n, at;     /* its number; its sentences; done of them */
    f64 nll;             /* of these, each with the weights that it met */
    /* the batch: sentences order[at] .. order[at + count - 1] */
    i32 count, ngroup;
    i64 slot[SGD_BATCH + 1]; /* first token of each in d */
    f32 *d;              /* [tokens][Lp] P - Y */
    i64 room;            /* tokens of d */
    f64 *part;           /* [SGD_GROUPS + 1][1 + Lp Lp] log-likelihood and pairs of each group; scratch of the update */
    f32 factor, lag_factor; /* of d in the update of v and of lag */
    f64 step, keep;      /* the length, and what the penalty leaves of a weight */
    /* workers */
    i32 mode;            /* who computes a batch, on all ranks alike but for SGD_WORKERS; no bits depend on it */
    f64 cost[SGD_MODES]; /* seconds per token of each mode in this pass */
    bool shared;         /* ranks share the batches from the turn on that follows the trials */
    i32 nworker;
    i32 *cut;            /* [nworker + 1] rows that each updates */
    struct crf_scratch *scratch; /* [nworker] */
    atomic_int next;     /* group */
    i32 end;             /* .. of this rank */
};

/* sgd_batch.c */
err sgd_open(const struct crf_run *r, struct sgd *out); /* E601 */
void sgd_close(struct sgd *s);                          /* allowed after a failure, and on {0} */
void sgd_reset(struct sgd *s);                          /* weights 0, no step made */
/* Draws the order of a pass over n sentences; E601. */
err sgd_begin(struct sgd *s, i64 pass, i64 n);
/* The next batch: adds its log-likelihood to s->nll and, if it learns, makes a step.  Collective. */
err sgd_batch(struct sgd *s, bool learns);
f64 sgd_step_length(const struct sgd *s);
f64 sgd_penalty(const struct sgd *s);                  /* |w|^2 / (2 C) of the weights that are not averaged */
void sgd_weights(const struct sgd *s, f32 *w);         /* [nrow][Lp] of the model: averaged if there is an average */

#endif
