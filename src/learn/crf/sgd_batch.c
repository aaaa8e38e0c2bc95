/* sgd_batch.c - one mini-batch of stochastic gradient descent: pass, exchange between ranks, update; see sgd.h. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "learn/crf/sgd.h"

static i64 part_size(const struct crf_problem *p) { return 1 + (i64)p->Lp * p->Lp; }

static i32 length(const struct crf_problem *p, i32 sentence) { return (i32)(p->first[sentence + 1] - p->first[sentence]); }

/* Sentence i of the batch. */
static i32 member(const struct sgd *s, i32 i) { return s->order[s->at + i]; }

/* ------------------------------------------------------------------ memory -------------------------------------------------- */

/* Ranges of rows with about equal numbers of tokens. */
static void cut_rows(struct sgd *s) {
    const struct crf_problem *p = s->p;
    const i64 all = p->column_at[p->nattr];
    i32 k = 1;
    for (i64 row = 0; row < p->nattr; row++)
        while (k < s->nworker && p->column_at[row + 1] * s->nworker >= all * k) s->cut[k++] = (i32)row + 1;
    while (k <= s->nworker) s->cut[k++] = (i32)p->nattr;
}

static err allocate(struct sgd *s) {
    const struct crf_problem *p = s->p;
    NEW(s->v, p->nrow * p->Lp);
    if (s->s->method == CRF_ASGD) NEW(s->lag, p->nrow * p->Lp);
    NEW(s->order, p->nsentence);
    NEW(s->part, (SGD_GROUPS + 1) * part_size(p));
    NEW(s->cut, s->nworker + 1);
    NEW(s->scratch, s->nworker);
    for (i32 k = 0; k < s->nworker; k++) TRY(crf_scratch_new(p->L, p->Lp, p->longest, &s->scratch[k]));
    return 0;
}

err sgd_open(const struct crf_run *r, struct sgd *out) {
    const struct crf_problem *p = r->p;
    *out = (struct sgd){.p = p, .s = r->s, .use = r->run.use, .kern = r->kern, .scale = 1,
                        .batch = imax(1, imin(SGD_BATCH, p->nsentence / SGD_BATCH)), /* fewer sentences need as many steps */
                        .lambda = 1 / (r->s->c * p->nsentence), .nworker = pool_size(r->run.use->pool)};
    TRY(allocate(out));
    cut_rows(out);
    return 0;
}

void sgd_close(struct sgd *s) {
    for (i32 k = 0; s->scratch && k < s->nworker; k++) crf_scratch_free(&s->scratch[k]);
    mem_free(s->scratch);
    mem_free(s->cut);
    mem_free(s->part);
    mem_free(s->d);
    mem_free(s->order);
    mem_free(s->lag);
    mem_free(s->v);
    *s = (struct sgd){0};
}

void sgd_reset(struct sgd *s) {
    const size_t bytes = sizeof *s->v * (size_t)(s->p->nrow * s->p->Lp);
    memset(s->v, 0, bytes);
    if (s->lag) memset(s->lag, 0, bytes);
    s->scale = 1;
    s->sum = 0;
    s->averaged = s->seen = 0;
    s->averages = false;
}

/* ------------------------------------------------------------------ a pass -------------------------------------------------- */

/* Makes d hold the batch of the pass that has most tokens. */
static err make_room(struct sgd *s) {
    i64 most = 0;
    for (i64 at = 0; at < s->n; at += s->batch) {
        i64 tokens = 0;
        for (i64 i = at; i < lmin(at + s->batch, s->n); i++) tokens += length(s->p, s->order[i]);
        most = lmax(most, tokens);
    }
    if (most <= s->room) return 0;
    mem_free(s->d);
    s->d = NULL;
    s->room = 0;
    NEW(s->d, most * s->p->Lp);
    s->room = most;
    return 0;
}

err sgd_begin(struct sgd *s, i64 pass, i64 n) {
    s->pass = pass;
    s->n = n;
    s->at = 0;
    s->nll = 0;
    for (i32 i = 0; i < s->p->nsentence; i++) s->order[i] = (i32)rng_shuffle(s->s->seed, (u32)pass, s->p->nsentence, i);
    return make_room(s);
}

static void take_batch(struct sgd *s) {
    s->count = (i32)lmin(s->batch, s->n - s->at);
    s->ngroup = (s->count + SGD_GROUP - 1) / SGD_GROUP;
    s->slot[0] = 0;
    for (i32 i = 0; i < s->count; i++) s->slot[i + 1] = s->slot[i] + length(s->p, member(s, i));
}

static void group(struct sgd *s, const struct crf_pass *x, struct crf_scratch *mine, i32 g) {
    const struct crf_problem *p = s->p;
    f64 *part = s->part + g * part_size(p);
    memset(part, 0, sizeof *part * (size_t)part_size(p));
    memset(mine->pair, 0, sizeof *mine->pair * (size_t)p->Lp * (size_t)p->Lp);
    for (i32 i = g * SGD_GROUP; i < imin((g + 1) * SGD_GROUP, s->count); i++) {
        const i32 j = member(s, i);
        part[0] += s->kern->sentence(x, p->first[j], length(p, j), s->d + s->slot[i] * p->Lp, mine->pair);
    }
    crf_add_pairs(p->L, p->Lp, mine->pair, mine->E, part + 1);
}

static void pass(void *arg, i32 worker) {
    struct sgd *s = arg;
    const struct crf_problem *p = s->p;
    struct crf_scratch *mine = &s->scratch[worker];
    const struct crf_pass data = {.L = p->L, .Lp = p->Lp, .w = s->v, .scale = (f32)s->scale, .A = s->v + p->nattr * p->Lp,
                                  .at = p->f.at, .attribute = p->f.attribute, .gold = p->gold},
                          x = crf_scratch_pass(mine, &data);
    for (i32 g; (g = atomic_fetch_add(&s->next, 1)) < s->end;) group(s, &x, mine, g);
}

static i32 group_of_rank(const struct sgd *s, i32 rank) { return (i32)((i64)s->ngroup * rank / comm_size(s->use->comm)); }

/* What each rank computed, to all. */
static err share(const struct sgd *s) {
    struct comm *c = s->use->comm;
    const struct crf_problem *p = s->p;
    for (i32 r = 0; comm_size(c) > 1 && r < comm_size(c); r++) {
        const i32 lo = group_of_rank(s, r), hi = group_of_rank(s, r + 1);
        const i64 from = s->slot[imin(lo * SGD_GROUP, s->count)], to = s->slot[imin(hi * SGD_GROUP, s->count)];
        if (lo == hi) continue;
        TRY(comm_broadcast_from(c, r, "errors", s->d + from * p->Lp, (to - from) * p->Lp * (i64)sizeof *s->d));
        TRY(comm_broadcast_from(c, r, "pairs", s->part + lo * part_size(p), (hi - lo) * part_size(p) * (i64)sizeof *s->part));
    }
    return 0;
}

/* ------------------------------------------------------------------ update -------------------------------------------------- */

f64 sgd_step_length(const struct sgd *s) {
    const f64 t = 1 + s->lambda * s->eta0 * (f64)s->seen;
    return s->eta0 / (s->lag ? pow(t, 0.75) : t);
}

/* Pairs of neighbouring labels of the batch, less those that are expected, for labels [L][L] in rows of Lp. */
static void pairs_less_expected(const struct sgd *s, f64 *out) {
    const struct crf_problem *p = s->p;
    memset(out, 0, sizeof *out * (size_t)p->Lp * (size_t)p->Lp);
    for (i32 i = 0; i < s->count; i++) {
        const i32 j = member(s, i);
        for (i64 t = p->first[j] + 1; t < p->first[j + 1]; t++) out[(i64)p->gold[t - 1] * p->Lp + p->gold[t]]++;
    }
    for (i32 g = 0; g < s->ngroup; g++)
        for (i64 k = 0; k < (i64)p->Lp * p->Lp; k++) out[k] -= s->part[g * part_size(p) + 1 + k];
}

static void update_transitions(struct sgd *s) {
    const struct crf_problem *p = s->p;
    const i64 at = p->nattr * p->Lp;
    f64 *up = s->part + SGD_GROUPS * part_size(p);
    pairs_less_expected(s, up);
    for (i64 k = 0; k < (i64)p->L * p->Lp; k++) {
        s->v[at + k] = (f32)(s->keep * (f64)s->v[at + k] + s->step * up[k]);
        if (s->averages) s->lag[at + k] += s->v[at + k];
    }
}

static void update_rows(const struct sgd *s, i32 worker, f32 *to, f32 factor) {
    const struct crf_problem *p = s->p;
    const struct crf_spread x = {.Lp = p->Lp, .at = p->f.at, .attribute = p->f.attribute, .to = to, .factor = factor,
                                 .lo = s->cut[worker], .hi = s->cut[worker + 1]};
    for (i32 i = 0; i < s->count; i++) {
        const i32 j = member(s, i);
        s->kern->spread(&x, p->first[j], length(p, j), s->d + s->slot[i] * p->Lp);
    }
}

static void update(void *arg, i32 worker) {
    struct sgd *s = arg;
    update_rows(s, worker, s->v, s->factor);
    if (s->lag_factor != 0) update_rows(s, worker, s->lag, s->lag_factor);
    if (worker == s->nworker - 1 && s->p->bigram) update_transitions(s);
}

/* Small scales would make v large. */
static void fold(struct sgd *s) {
    const f32 scale = (f32)s->scale;
    for (i64 i = 0; i < s->p->nattr * s->p->Lp; i++) s->v[i] *= scale;
    s->sum /= (f64)scale;
    s->scale = 1;
}

static void make_step(struct sgd *s) {
    s->step = sgd_step_length(s);
    s->keep = 1 - s->step * s->lambda * s->count;
    s->scale *= s->keep;
    s->factor = (f32)(-s->step / s->scale);
    s->lag_factor = (f32)(-s->step / s->scale * s->sum);
    for (i32 k = 0; !(s->mode & SGD_WORKERS) && k < s->nworker; k++) update(s, k);
    if (s->mode & SGD_WORKERS) pool_run(s->use->pool, update, s);
    s->seen += s->count;
    if (s->averages) {
        s->sum += s->scale;
        s->averaged++;
    }
    if (s->scale < 1e-3) fold(s);
}

err sgd_batch(struct sgd *s, bool learns) {
    take_batch(s);
    const bool shared = s->mode & SGD_SHARED;
    atomic_store(&s->next, shared ? group_of_rank(s, comm_rank(s->use->comm)) : 0);
    s->end = shared ? group_of_rank(s, comm_rank(s->use->comm) + 1) : s->ngroup;
    if (s->mode & SGD_WORKERS) pool_run(s->use->pool, pass, s);
    else pass(s, 0);
    if (shared) TRY(share(s));
    for (i32 g = 0; g < s->ngroup; g++) s->nll += s->part[g * part_size(s->p)];
    if (learns) make_step(s);
    s->at += s->count;
    return 0;
}

/* ------------------------------------------------------------------ weights ------------------------------------------------- */

f64 sgd_penalty(const struct sgd *s) {
    const i64 n = s->p->nattr * s->p->Lp, rest = (i64)s->p->L * s->p->Lp;
    const f64 squares = s->scale * s->scale * s->kern->dot(s->v, s->v, n) + s->kern->dot(s->v + n, s->v + n, rest);
    return squares / (2 * s->s->c);
}

void sgd_weights(const struct sgd *s, f32 *w) {
    const i64 n = s->p->nattr * s->p->Lp, all = s->p->nrow * s->p->Lp;
    const f64 batches = (f64)s->averaged;
    for (i64 i = 0; i < all; i++) {
        const f64 v = (f64)s->v[i];
        if (s->averaged == 0) w[i] = (f32)(i < n ? s->scale * v : v);
        else w[i] = (f32)((i < n ? s->sum * v - (f64)s->lag[i] : (f64)s->lag[i]) / batches);
    }
}
