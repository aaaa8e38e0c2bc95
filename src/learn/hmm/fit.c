/* fit.c - fits a hidden Markov model: counts of tags, or Baum-Welch iterations, as map, merge and update.
 *
 *     map     sequences of a micro-batch -> (expected) counts of starts, transitions and emissions, log-likelihood
 *     merge   part a += part b, along the fixed tree: the same bits for any number of threads and ranks
 *     update  probability = count / sum
 *
 * Each iteration of Baum-Welch does not decrease the likelihood (Baum, Petrie, Soules, Weiss, Ann. Math. Stat. 41(1), 1970), so
 * the iterations use no smoothing; the model that is kept is smoothed once, at the end. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "learn/hmm/hmm.h"
#include "learn/map_run.h"
#include "learn/snapshots.h"

enum { PARTS = 32, PART_BYTES = 256 << 20 };

struct fitting {
    struct hmm *h;
    const struct learn_job *job;
    struct hmm_rows rows;
    const struct plan *plan;
    struct climb *climb; /* of Baum-Welch */
    i64 part;     /* floats of a partial result: those of theta */
    f64 **room;   /* [ndevice] scratch of hmm_expect; NULL on devices of other ranks */
    f64 started;
};

/* ------------------------------------------------------------------ kernels ------------------------------------------------- */

static void count_tags(const struct hmm *h, const i32 *word, const i32 *label, i64 n, f64 *part) {
    const i32 L = h->L;
    f64 *trans = part + L, *emitted = trans + (i64)L * L;
    if (n == 0) return;
    part[label[0]]++;
    for (i64 t = 0; t < n; t++) {
        emitted[(i64)word[t] * L + label[t]]++;
        if (t > 0) trans[(i64)label[t - 1] * L + label[t]]++;
    }
}

static void map(void *self, const struct kernel_call *c) {
    const struct fitting *f = self;
    const struct slice *box = &c->task->box;
    for (i32 i = box->b0; i < box->b1; i++) {
        f64 *part = c->mem[map_part(i / f->plan->grain)];
        const i64 at = f->rows.first[i], n = f->rows.first[i + 1] - at;
        if (i % f->plan->grain == 0) memset(part, 0, (size_t)f->part * sizeof *part);
        part[f->part - 2]++;
        if (f->rows.label) count_tags(f->h, f->rows.word + at, f->rows.label + at, n, part);
        else part[f->part - 1] += hmm_expect(f->h, f->rows.word + at, n, part, f->room[c->task->device]);
    }
}

static void merge(void *self, const struct kernel_call *c) {
    (void)self;
    f64 *a = c->mem[map_part(c->task->node_a)];
    const f64 *b = c->mem[map_part(c->task->node_b)];
    for (i64 i = c->lo; i < c->hi; i++) a[i] += b[i];
}

/* to[k] = count[k] / their sum, elements `step` apart; unchanged where there is no count.  Returns the sum. */
static f64 normalize(const f64 *count, i64 n, i64 step, f64 *to) {
    f64 sum = 0;
    for (i64 k = 0; k < n; k++) sum += count[k * step];
    for (i64 k = 0; k < n && sum > 0; k++) to[k * step] = count[k * step] / sum;
    return sum;
}

static void update(void *self, const struct kernel_call *c) {
    const struct fitting *f = self;
    const struct hmm *h = f->h;
    const i32 L = h->L;
    const f64 *start = c->mem[map_part(0)], *trans = start + L, *emitted = trans + (i64)L * L;
    normalize(start, L, 1, h->start);
    for (i32 l = 0; l < L; l++) {
        h->left[l] = normalize(trans + (i64)l * L, L, 1, h->trans + (i64)l * L);
        h->emitted[l] = normalize(emitted + l, h->W, L, h->emit + l);
    }
    h->sums[0] = start[f->part - 2];
    h->sums[1] = start[f->part - 1];
}

static struct exec_result result(void *self, void *const *mem) {
    (void)mem;
    return (struct exec_result){.loss = -((struct fitting *)self)->h->sums[1], .finite = true};
}

static const struct kernel kernels[MAP_NKERNEL] = {
    [MAP_MAP] = {.name = "expect", .run = map, .rows = true, .compute = true},
    [MAP_MERGE] = {.name = "merge", .run = merge, .blocks = true},
    [MAP_UPDATE] = {.name = "update", .run = update, .commits = true},
};

/* ------------------------------------------------------------------ the plan ------------------------------------------------ */

static err open_run(struct fitting *f, struct map_run *run) {
    const struct hmm *h = f->h;
    const i64 bytes = f->part * (i64)sizeof(f64);
    const i32 parts = (i32)lmax(1, lmin(PARTS, PART_BYTES / bytes));
    const f64 tokens = (f64)f->rows.first[f->rows.n] / f->rows.n;
    const struct map_job job = {.use = &f->job->use,
                                .kernel = kernels,
                                .self = f,
                                .result = result,
                                .model = h->theta,
                                .request = {.rows = f->rows.n,
                                            .microbatch = map_run_microbatch(f->rows.n, parts),
                                            .model_bytes = bytes,
                                            .part = f->part,
                                            .element = ELEMENT_F64,
                                            .row_seconds = tokens * (f->rows.label ? 2e-8 : 3e-9 * h->L * h->L)}};
    TRY(map_run_open(&job, run));
    f->plan = run->plan;
    return 0;
}

static err make_room(struct fitting *f) {
    const struct comm *comm = f->job->use.comm;
    i64 longest = 0;
    if (f->rows.label) return 0;
    for (i32 i = 0; i < f->rows.n; i++) longest = lmax(longest, f->rows.first[i + 1] - f->rows.first[i]);
    NEW(f->room, f->plan->ndevice);
    for (i32 d = 0; d < f->plan->ndevice; d++)
        if (comm_size(comm) == 1 || f->plan->place[d].rank == comm_rank(comm)) NEW(f->room[d], hmm_room(f->h, longest));
    return 0;
}

static void free_room(struct fitting *f) {
    for (i32 d = 0; f->room && d < f->plan->ndevice; d++) mem_free(f->room[d]);
    mem_free(f->room);
}

/* ------------------------------------------------------------------ Baum-Welch ---------------------------------------------- */

/* Every label emits each word with its share in the training, times a random factor; transitions and starts are nearly equal. */
static void guess(const struct fitting *f, i32 restart) {
    struct hmm *h = f->h;
    const u64 seed = (u64)f->job->o->seed;
    const i64 emitted = (i64)h->W * h->L, tokens = f->rows.first[f->rows.n];
    u64 at = 0;
    memset(h->emit, 0, (size_t)emitted * sizeof *h->emit);
    for (i64 i = 0; i < tokens; i++) h->emit[(i64)f->rows.word[i] * h->L]++;
    for (i64 w = 0; w < h->W; w++)
        for (i32 l = h->L - 1; l >= 0; l--)
            h->emit[w * h->L + l] = h->emit[w * h->L] * (0.2 + (f64)rng_uniform(seed, RNG_INIT, (u32)restart, at++));
    for (i32 k = 0; k <= h->L; k++) /* start and trans are one array */
        for (i32 l = 0; l < h->L; l++) h->start[k * h->L + l] = 1 + (f64)rng_uniform(seed, RNG_INIT, (u32)restart, at++);
    for (i32 k = 0; k <= h->L; k++) normalize(h->start + k * h->L, h->L, 1, h->start + k * h->L);
    for (i32 l = 0; l < h->L; l++) normalize(h->emit + l, h->W, h->L, h->emit + l);
}

struct climb {
    struct snapshots shots;
    struct map_run *run;
    i64 restart, n;       /* iterations of the restart that are done */
    i32 room;             /* iterations at most */
    f64 *curve;           /* [room] log-likelihood per token before each update */
    f64 *best;            /* [hmm_floats] parameters of the best restart; its curve is h->curve */
    i64 ncurve;           /* of h->curve; 0 = no restart has ended */
    bool late;
};

static void report_iteration(const struct fitting *f, const struct climb *c) {
    const struct options *o = f->job->o;
    const f64 seconds = clock_now() - f->started, done = (f64)c->restart * c->room + (f64)c->n;
    const f64 all = (f64)o->restarts * c->room;
    char text[96];
    snprintf(text, sizeof text, "Baum-Welch %lld: log-likelihood per token %.6f", (long long)c->n, c->curve[c->n - 1]);
    event_note(f->job->use.events, EVENT_DETAIL, "%s", text);
    event_emit(f->job->use.events, &(struct event){.kind = EVENT_WORK,
                                                   .text = "Baum-Welch",
                                                   .step = (i64)done,
                                                   .steps = (i64)all,
                                                   .seconds = seconds,
                                                   .left = seconds / done * (all - done)});
}

static err list_state(void *self, struct snapshot *to) {
    const struct fitting *f = self;
    const struct climb *c = f->climb;
    const struct hmm *h = f->h;
    snapshot_add(to, "restart", DTYPE_I64, &c->restart, 1);
    snapshot_add(to, "iterations", DTYPE_I64, &c->n, 1);
    snapshot_add(to, "best.iterations", DTYPE_I64, &c->ncurve, 1);
    snapshot_add(to, "curve", DTYPE_F64, c->curve, c->room);
    snapshot_add(to, "best.curve", DTYPE_F64, h->curve, c->room);
    snapshot_add(to, "parameters", DTYPE_F64, h->theta, hmm_floats(h));
    snapshot_add(to, "best.parameters", DTYPE_F64, c->best, hmm_floats(h));
    return 0;
}

static err take_state(struct fitting *f) {
    struct climb *c = f->climb;
    struct snapshot state = {0};
    if (!c->shots.resumes) return 0;
    TRY(list_state(f, &state));
    TRY(snapshots_take(&c->shots, &state));
    const bool counts = c->n >= 0 && c->n <= c->room && c->ncurve >= 0 && c->ncurve <= c->room;
    if (counts && c->restart >= 0 && c->restart < f->job->o->restarts) return 0;
    return snapshots_unsound(&c->shots);
}

/* The likelihood gains no more, or this was the last iteration. */
static bool has_settled(const struct climb *c, f64 tolerance) {
    return c->n >= c->room || (c->n > 1 && c->curve[c->n - 1] - c->curve[c->n - 2] < tolerance);
}

/* Iterates from a guess, or from where a checkpoint was, to the end of the restart or of the time limit. */
static err climb(struct fitting *f, struct climb *c) {
    const f64 tokens = (f64)lmax(1, f->rows.first[f->rows.n]);
    if (c->n == 0) guess(f, (i32)c->restart);
    while (!has_settled(c, f->job->o->tolerance)) {
        if (c->late && c->n > 0) return 0;
        TRY(map_run_step(c->run, NULL));
        c->curve[c->n++] = f->h->sums[1] / tokens;
        report_iteration(f, c);
        const err e = snapshots_turn(&c->shots, c->restart * (c->room + 1) + c->n, list_state, f, &c->late);
        if (e != 0) return e;
    }
    return 0;
}

static void keep_better(struct fitting *f, struct climb *c) {
    struct hmm *h = f->h;
    if (c->ncurve > 0 && c->curve[c->n - 1] <= h->curve[c->ncurve - 1]) return;
    memcpy(c->best, h->theta, (size_t)hmm_floats(h) * sizeof *c->best);
    memcpy(h->curve, c->curve, (size_t)c->n * sizeof *c->curve);
    c->ncurve = c->n;
}

/* Keeps the best of all restarts in h->theta and h->curve. */
static err climb_all(struct fitting *f, struct climb *c) {
    struct hmm *h = f->h;
    TRY(take_state(f));
    for (; c->restart < f->job->o->restarts && !c->late; c->restart++, c->n = 0) {
        const err e = climb(f, c);
        if (e != 0) return e;
        keep_better(f, c);
    }
    memcpy(h->theta, c->best, (size_t)hmm_floats(h) * sizeof *c->best);
    h->ncurve = (i32)c->ncurve;
    h->model.stopped = c->late ? STOP_TIME : STOP_STEPS;
    event_note(f->job->use.events, EVENT_NOTE, "Baum-Welch: log-likelihood per token %.6f after %d iterations (%.6f at first)",
               h->curve[h->ncurve - 1], h->ncurve, h->curve[0]);
    return 0;
}

static err baum_welch(struct fitting *f, struct map_run *run) {
    struct climb c = {.run = run, .room = (i32)f->job->o->iterations};
    f->climb = &c;
    NEW(f->h->curve, c.room);
    err e = mem_new((void **)&c.best, hmm_floats(f->h), sizeof *c.best);
    if (e >= 0) e = mem_new((void **)&c.curve, c.room, sizeof *c.curve);
    if (e >= 0) e = snapshots_open(f->job, &c.shots);
    if (e >= 0) e = climb_all(f, &c);
    snapshots_close(&c.shots);
    mem_free(c.best);
    mem_free(c.curve);
    return e;
}

/* ------------------------------------------------------------------ the fit ------------------------------------------------- */

/* Adds `add` to the n counts behind probabilities that sum to 1, or that are all 0 where there was no count. */
static void smooth(f64 *p, i64 n, i64 step, f64 count, f64 add) {
    const f64 sum = count + add * (f64)n;
    for (i64 k = 0; k < n; k++) p[k * step] = (p[k * step] * count + add) / sum;
}

/* What the naive rows of scores need; before smoothing. */
static void count_words(struct hmm *h, f64 add) {
    const i32 L = h->L;
    i32 most = 0;
    f64 all = 0;
    for (i32 l = 1; l < L; l++)
        if (h->emitted[l] > h->emitted[most]) most = l;
    for (i32 l = 0; l < L; l++) all += h->emitted[l];
    for (i64 w = 0; w < h->W; w++) {
        f64 sum = 0, best = 0;
        h->usual[w] = most;
        for (i32 l = 0; l < L; l++) {
            const f64 n = h->emit[w * L + l] * h->emitted[l];
            sum += n;
            if (n > best * (1 + 1e-9)) best = n, h->usual[w] = l;
        }
        h->rate[w] = (sum + add) / (all + add * h->W);
    }
}

static void smooth_all(struct hmm *h, f64 add) {
    smooth(h->start, h->L, 1, h->sums[0], add);
    for (i32 l = 0; l < h->L; l++) {
        smooth(h->trans + (i64)l * h->L, h->L, 1, h->left[l], add);
        smooth(h->emit + l, h->W, h->L, h->emitted[l], add);
    }
}

static err check_labels(const struct hmm *h, const struct token_set *s) {
    char where[256];
    i64 t = 0;
    if (s->tag >= 0 && h->L == 1) return token_one_tag(s, s->first[h->model.train_records]);
    if (h->L <= VITERBI_LABELS) return 0;
    while (token_tag(s)->code[t] < VITERBI_LABELS) t++; /* codes are in the order of first appearance */
    token_where(s, t, where);
    return FAIL_AT(E214, where, "--target with another column, or --states N",
                   "%s holds %d different tags, this one is the first beyond %d", token_tag(s)->name, h->L, VITERBI_LABELS);
}

static err run_fit(struct fitting *f) {
    struct map_run run = {0};
    err e = open_run(f, &run);
    if (e >= 0) e = make_room(f);
    if (e >= 0) e = f->rows.label ? map_run_step(&run, NULL) : baum_welch(f, &run);
    if (e == 0) e = map_run_keep(&run, &f->h->model);
    if (f->plan) free_room(f);
    map_run_close(&run);
    return e;
}

static err fit_rows(struct hmm *h, const struct learn_job *job, const struct token_set *s) {
    struct hmm_tokens t;
    TRY(hmm_tokens_of(h, s, &t));
    struct fitting f = {.h = h,
                        .job = job,
                        .rows = {(i32)job->split.train, s->first, t.word, t.label},
                        .part = hmm_floats(h),
                        .started = clock_now()};
    const err e = run_fit(&f);
    hmm_tokens_free(&t);
    if (e != 0) return e;
    count_words(h, job->o->smoothing);
    smooth_all(h, job->o->smoothing);
    h->model.seconds = clock_now() - f.started;
    return hmm_fix(h);
}

err hmm_fit(const struct learn_job *job, struct model **out) {
    const struct token_set *s = token_set_of(job->data);
    struct hmm *h;
    NEW(h, 1);
    *out = &h->model;
    h->ncolumn = s->ncolumn;
    h->tag = s->tag;
    h->model.stopped = STOP_STEPS;
    h->model.train_records = job->split.train;
    TRY(hmm_learn_words(h, s, (i32)job->split.train));
    h->W = h->word.n + 1;
    h->L = s->tag >= 0 ? h->label.n : (i32)job->o->states;
    TRY(check_labels(h, s));
    TRY(hmm_alloc(h));
    return fit_rows(h, job, s);
}
