/* train.h - trains the weights of a CRF: evaluations of the objective as a plan of tasks, and L-BFGS or OWL-QN on top.  SGD,
 * which has mini-batches in place of these: sgd.h.
 *
 *     objective F(w) = sum over sentences of -log p(y|x) + |w|^2 / (2 C) + l1 |w|_1
 *
 * One step of the plan, on devices 0, 1, ..:
 *
 *     dots     rows of w: s = w - w0, y = g - g0; products of the history, for each grain of rows
 *     move     direction from the history (two loops on the products), w = w0 + t d
 *     pass     grains of sentences: P - Y of each token, expected label pairs, log-likelihood
 *     columns  grains of rows: g = sum over the tokens that have the attribute of P - Y: each row has one owner
 *
 * Grains are functions of the data alone and sums go in the order of grains, so weights have equal bits on any number of threads
 * and ranks.  Sources: Nocedal (Math. Comp. 1980); Andrew and Gao (ICML 2007); products of the history as in Chen, Wang, Zhou
 * (Large-scale L-BFGS using MapReduce, NIPS 2014). */
#ifndef STRETTO_LEARN_CRF_TRAIN_H
#define STRETTO_LEARN_CRF_TRAIN_H

#include "learn/crf/features.h"
#include "learn/crf/kernel.h"
#include "learn/map_run.h"
#include "learn/snapshots.h"

enum { CRF_GRAINS = 64, CRF_HISTORY = 8, CRF_TOGETHER = 32 }; /* TOGETHER: sentences whose label pairs are summed as f32 */

/* The data of a training. */
struct crf_problem {
    i32 L, Lp;
    i64 nattr, nrow;       /* nrow = nattr + L: the transitions are the last L rows */
    i64 ntoken;
    i32 nsentence, longest;
    const i64 *first;      /* [nsentence + 1] */
    struct features f;
    i64 *column_at;        /* [nattr + 1] */
    i32 *column_token;     /* tokens of each attribute, in order */
    i32 *gold;             /* [ntoken] */
    f64 *pair;             /* [Lp][Lp] gold pairs of neighbouring labels */
    bool bigram;           /* false: transitions stay 0 */
    i32 ngrain, npass;     /* grains of rows and of sentences */
    i32 row[CRF_GRAINS + 1], sentence[CRF_GRAINS + 1];
};
/* Fills what follows from L, nattr, ntoken, first, f and gold; E601. */
err crf_problem_index(struct crf_problem *p);
void crf_problem_free(struct crf_problem *p);

/* QUASI_NEWTON: L-BFGS, with l1 OWL-QN. */
enum crf_method { CRF_QUASI_NEWTON, CRF_SGD, CRF_ASGD };
struct crf_settings {
    enum crf_method method;
    f64 c, l1, epsilon;  /* c 0 = no squared penalty; not of SGD */
    i32 history;         /* pairs of L-BFGS, at most CRF_HISTORY; 0 = another method */
    i64 iterations;      /* of SGD: passes */
    u64 seed;            /* of SGD: order of the sentences */
};

/* Sums of an evaluation over all rows. */
struct crf_sums {
    f64 nll, slope, slope0, norm, squares, ones, moved; /* g.d, g0.d, q.q, w.w, |w|_1, q.(w - w0) */
};
enum { CRF_NSUM = 7, CRF_NDOT = 2 * CRF_HISTORY * CRF_HISTORY + 2 * CRF_HISTORY };

/* direction.c: coefficients of the direction d = -(gamma (q + sum cy_i y_i) + sum cs_i s_i) from the products of the history. */
struct crf_direction {
    f64 gamma, cs[CRF_HISTORY], cy[CRF_HISTORY];
};

/* Weights and history of the optimiser; every vector is [nrow][Lp]. */
struct crf_run {
    const struct crf_problem *p;
    const struct crf_settings *s;
    const struct crf_kern *kern;
    f32 *w, *w0, *g, *g0, *d, *q; /* q: pseudo-gradient of OWL-QN; else g0 */
    f32 *S[CRF_HISTORY], *Y[CRF_HISTORY];
    f64 *table;        /* [ngrain][CRF_NDOT] products of the history, for the grains of this rank */
    i32 n, slot;       /* pairs in the history; where the next one goes */
    bool turn;         /* the next step takes a new direction from w */
    bool learn;        /* .. and the last move becomes a pair of the history */
    f32 t;             /* length of the next move */
    struct crf_scratch *scratch; /* [ndevice] */
    struct crf_direction *direction; /* [ndevice] */
    struct shared_crf *shared;   /* the devices that compute the pass (devices.h); NULL = the plan does */
    enum crf_half { CRF_WHOLE, CRF_TO_PASS, CRF_FROM_PASS } half; /* tasks of the plan that a step runs */
    i32 ndevice;
    struct map_run run;
};
err crf_run_open(const struct crf_problem *p, const struct crf_settings *s, const struct resources *use, struct crf_run *out);
void crf_run_close(struct crf_run *r); /* allowed after a failure, and on {0} */
/* Rows that device d updates. */
struct slice crf_rows_of(const struct crf_run *r, i32 device);
/* The expected label pairs of some sentences, pair [L][Lp] times E, added to `to` [Lp][Lp]. */
void crf_add_pairs(i32 L, i32 Lp, const f32 *pair, const f32 *E, f64 *to);
/* One step of the plan: F at the new point, and its sums. */
err crf_evaluate(struct crf_run *r, struct crf_sums *sums, f64 *value);

/* Of direction.c. */
void crf_direction(const struct crf_run *r, const f64 *dots, struct crf_direction *out);
/* Places of the products in a table of CRF_NDOT; i, j: slots. */
static inline i32 dot_sy(i32 i, i32 j) { return i * CRF_HISTORY + j; }
static inline i32 dot_yy(i32 i, i32 j) { return CRF_HISTORY * CRF_HISTORY + i * CRF_HISTORY + j; }
static inline i32 dot_sq(i32 i) { return 2 * CRF_HISTORY * CRF_HISTORY + i; }
static inline i32 dot_yq(i32 i) { return 2 * CRF_HISTORY * CRF_HISTORY + CRF_HISTORY + i; }

/* Where the iterations are. */
struct crf_course {
    struct crf_run *r;
    struct snapshots *shots;
    f64 objective, norm;
    i64 iterations, evaluations;
    i64 calm;        /* iterations in a row that gained less than epsilon */
    bool late;       /* the time limit is over */
};
/* Minimises F from r->w on, or from the checkpoint of a resumed run.  STOP_SIGNAL behind a checkpoint. */
err crf_minimise(struct crf_run *r, struct snapshots *shots, struct crf_course *out);
/* The same by SGD (sgd.h), from weights 0 on. */
err crf_descend(struct crf_run *r, struct snapshots *shots, struct crf_course *out);

/* state.c.  Of struct snapshots; takes the state of a resumed run, E901. */
err crf_gather(void *course);
err crf_list_state(void *course, struct snapshot *to);
err crf_take_state(struct crf_course *c);

#endif
