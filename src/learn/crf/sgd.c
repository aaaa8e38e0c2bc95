/* sgd.c - the training by stochastic gradient descent: eta0 from a sample, passes, checkpoints; see sgd.h. */
#include "learn/crf/sgd.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

enum { TOGETHER = 16 }; /* batches between two looks at signals and times */

/* Messages of a trial that does not pay may take as long as the rest of a pass: few passes try to share. */
static bool tries_sharing(const struct sgd *s) {
    enum { EVERY = 4 };
    return comm_size(s->use->comm) > 1 && s->n == s->p->nsentence && s->pass % EVERY == 0;
}

static i32 mode_of_trial(const struct sgd *s, i32 turn) {
    const i32 sharing = tries_sharing(s) ? turn & SGD_SHARED : s->shared ? SGD_SHARED : 0;
    return sharing | (s->nworker > 1 ? turn & SGD_WORKERS : 0);
}

/* The cheaper mode of this rank among those that share, or do not. */
static i32 cheaper(const struct sgd *s, i32 shared) {
    const bool workers = s->nworker > 1 && s->cost[shared | SGD_WORKERS] < s->cost[shared];
    return shared | (workers ? SGD_WORKERS : 0);
}

/* Do the slowest ranks gain by sharing?  Collective. */
static err agree(struct sgd *s) {
    f64 mine[2] = {s->cost[cheaper(s, 0)], s->cost[cheaper(s, SGD_SHARED)]}, all[2 * COMM_RANKS], worst[2] = {0};
    TRY(comm_allgather(s->use->comm, "costs", mine, sizeof mine, all));
    for (i32 k = 0; k < 2 * comm_size(s->use->comm); k++) worst[k % 2] = dmax(worst[k % 2], all[k]);
    s->shared = worst[1] < worst[0];
    return 0;
}

/* The next batches of a pass, up to TOGETHER.  The first turns of a pass try modes, the others take the one that needed less
 * time for a token: on a busy machine, where threads and ranks wait for each other, one thread may be faster. */
static err some_batches(struct sgd *s, bool learns) {
    const i64 turn = s->at / (TOGETHER * s->batch);
    const f64 began = clock_now();
    i64 tokens = 0;
    if (turn == SGD_MODES && tries_sharing(s)) TRY(agree(s));
    s->mode = turn < SGD_MODES ? mode_of_trial(s, (i32)turn) : cheaper(s, s->shared ? SGD_SHARED : 0);
    for (i32 k = 0; k < TOGETHER && s->at < s->n; k++) {
        TRY(sgd_batch(s, learns));
        tokens += s->slot[s->count];
    }
    s->cost[s->mode] = (clock_now() - began) / (f64)tokens;
    return 0;
}

/* ------------------------------------------------------------------ eta0 ---------------------------------------------------- */

/* Sentences of the sample, in the order of pass 0: of no more tokens than take a second or so. */
static i64 sample_size(const struct sgd *s) {
    enum { SENTENCES = 1000, TOKENS = 50000 };
    i64 tokens = 0, n = 0;
    while (n < lmin(SENTENCES, s->p->nsentence) && (n < s->batch || tokens < TOKENS)) {
        const i32 j = s->order[n++];
        tokens += s->p->first[j + 1] - s->p->first[j];
    }
    return n;
}

/* Objective of the sample behind a pass over it with steps from `eta0` on. */
static err try_eta(struct sgd *s, f64 eta0, i64 n, f64 *objective) {
    sgd_reset(s);
    s->eta0 = eta0;
    for (i32 learns = 1; learns >= 0; learns--) {
        TRY(sgd_begin(s, 0, n));
        while (s->at < s->n) TRY(some_batches(s, learns));
    }
    *objective = s->nll + sgd_penalty(s) * (f64)n / s->p->nsentence;
    if (!isfinite(*objective)) *objective = (f64)INFINITY;
    return 0;
}

/* Doubles or halves eta0 from 0.1 on as long as the objective of the sample falls. */
static err choose_eta(struct sgd *s) {
    enum { TRIALS = 20 };
    const f64 most = 0.5 / (s->lambda * s->batch); /* a batch leaves at least half of the weights */
    f64 best = dmin(0.1, most), low, f, factor = 2;
    bool moved = false;
    TRY(sgd_begin(s, 0, s->p->nsentence));
    const i64 n = sample_size(s);
    TRY(try_eta(s, best, n, &low));
    for (i32 k = 0; k < TRIALS; k++) {
        f = (f64)INFINITY;
        if (best * factor <= most) TRY(try_eta(s, best * factor, n, &f));
        if (f < low || (factor < 1 && !isfinite(low))) {
            best *= factor;
            low = f;
            moved = true;
        } else if (factor > 1 && !moved) factor = 0.5;
        else break;
    }
    sgd_reset(s);
    s->eta0 = best;
    event_note(s->use->events, EVENT_NOTE, "first step length %g, which is best for %lld sentences", best, (long long)n);
    return 0;
}

/* ------------------------------------------------------------------ checkpoints --------------------------------------------- */

struct descent {
    struct sgd *s;
    struct crf_course *o;
    f64 started;
    i64 spent; /* sentences of trainings that were begun anew: checkpoints are numbered through */
};

/* Every rank has all of it. */
static err list_state(void *self, struct snapshot *to) {
    struct descent *d = self;
    struct sgd *s = d->s;
    const i64 n = s->p->nrow * s->p->Lp;
    snapshot_add(to, "passes", DTYPE_I64, &d->o->iterations, 1);
    snapshot_add(to, "calm", DTYPE_I64, &d->o->calm, 1);
    snapshot_add(to, "objective", DTYPE_F64, &d->o->objective, 1);
    snapshot_add(to, "eta0", DTYPE_F64, &s->eta0, 1);
    snapshot_add(to, "scale", DTYPE_F64, &s->scale, 1);
    snapshot_add(to, "sum", DTYPE_F64, &s->sum, 1);
    snapshot_add(to, "averaged", DTYPE_I64, &s->averaged, 1);
    snapshot_add(to, "seen", DTYPE_I64, &s->seen, 1);
    snapshot_add(to, "spent", DTYPE_I64, &d->spent, 1);
    snapshot_add(to, "at", DTYPE_I64, &s->at, 1);
    snapshot_add(to, "nll", DTYPE_F64, &s->nll, 1);
    snapshot_add(to, "v", DTYPE_F32, s->v, n);
    if (s->lag) snapshot_add(to, "lag", DTYPE_F32, s->lag, n);
    return 0;
}

/* The next pass over all sentences; averages begin with the second one. */
static err begin_pass(struct descent *d) {
    d->s->averages = d->s->lag && d->o->iterations > 0;
    return sgd_begin(d->s, d->o->iterations, d->s->p->nsentence);
}

static err take_state(struct descent *d) {
    struct sgd *s = d->s;
    struct snapshot state = {0};
    TRY(list_state(d, &state));
    TRY(snapshots_take(d->o->shots, &state));
    const i64 at = s->at, n = s->p->nsentence;
    const f64 nll = s->nll;
    if (!(s->eta0 > 0 && s->eta0 <= 0.5 / (s->lambda * s->batch) && s->scale > 0 && s->scale <= 1 && s->sum >= 0) ||
        d->o->iterations < 0 || d->o->iterations > UINT32_MAX || d->o->calm < 0 || at < 0 || at >= n || at % s->batch != 0 ||
        s->averaged < 0 || s->seen < 0 || d->spent < 0)
        return snapshots_unsound(d->o->shots);
    TRY(begin_pass(d));
    s->at = at;
    s->nll = nll;
    return 0;
}

/* ------------------------------------------------------------------ passes -------------------------------------------------- */

static void report(const struct descent *d) {
    const struct crf_course *o = d->o;
    const struct event e = {.kind = EVENT_STEP, .step = o->iterations, .steps = o->r->s->iterations, .train = o->objective,
                            .epoch = (f64)o->iterations, .valid = (f64)NAN, .grad_norm = (f64)NAN, .lr = sgd_step_length(d->s),
                            .windows_per_s = (f64)NAN, .seconds = clock_now() - d->started, .left = -1, .members = 1};
    if (comm_rank(d->s->use->comm) == 0) event_emit(d->s->use->events, &e);
}

/* Is the objective of a pass far above that of weights 0?  One very long sentence can bring this about. */
static bool diverged(const struct sgd *s, f64 objective) {
    return !isfinite(objective) || objective > 1.5 * (f64)s->p->ntoken * log(s->p->L);
}

/* Begins once more with shorter steps. */
static err restart(struct descent *d) {
    struct sgd *s = d->s;
    const i64 pass = d->o->iterations + 1;
    if (s->eta0 < 1e-9)
        return FAIL_AT(E501, NULL, "--trainer lbfgs", "the objective grows without bound in pass %lld with the shortest steps",
                       (long long)pass);
    s->eta0 *= 0.25;
    d->spent += s->seen;
    sgd_reset(s);
    d->o->iterations = d->o->calm = 0;
    event_note(s->use->events, EVENT_NOTE, "pass %lld was worse than no weights at all: from the beginning, first step length %g",
               (long long)pass, s->eta0);
    return begin_pass(d);
}

/* The objective of a pass is that of its sentences when each was visited. */
static err end_pass(struct descent *d) {
    struct crf_course *o = d->o;
    const f64 before = o->objective, now = d->s->nll + sgd_penalty(d->s);
    if (diverged(d->s, now)) return restart(d);
    o->calm = o->iterations > 0 && fabs(before - now) < o->r->s->epsilon * fabs(now) ? o->calm + 1 : 0;
    o->objective = now;
    o->iterations++;
    report(d);
    return begin_pass(d);
}

/* STOP_SIGNAL behind a checkpoint. */
static err descend(struct descent *d) {
    struct crf_course *o = d->o;
    TRY(begin_pass(d));
    if (o->shots->resumes) TRY(take_state(d));
    else {
        TRY(choose_eta(d->s));
        TRY(begin_pass(d));
    }
    while (o->iterations < o->r->s->iterations && o->calm < 3) {
        const err e = snapshots_turn(o->shots, d->spent + d->s->seen + 1, list_state, d, &o->late);
        if (e != 0) return e;
        if (o->late) break;
        TRY(some_batches(d->s, true));
        if (d->s->at == d->s->n) TRY(end_pass(d));
    }
    return 0;
}

/* The weights become those of the run, and the plan evaluates their objective. */
static err finish(const struct sgd *s, struct crf_run *r, struct crf_course *o) {
    struct crf_sums at;
    sgd_weights(s, r->w0);
    memcpy(r->w, r->w0, sizeof *r->w * (size_t)(r->p->nrow * r->p->Lp));
    TRY(crf_evaluate(r, &at, &o->objective));
    o->norm = sqrt(at.norm);
    o->evaluations = o->iterations;
    return 0;
}

err crf_descend(struct crf_run *r, struct snapshots *shots, struct crf_course *o) {
    struct sgd s;
    struct descent d = {.s = &s, .o = o, .started = clock_now()};
    *o = (struct crf_course){.r = r, .shots = shots};
    err e = sgd_open(r, &s);
    if (e >= 0) e = descend(&d);
    if (e == 0) e = finish(&s, r, o);
    sgd_close(&s);
    return e;
}
