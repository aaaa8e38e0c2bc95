/* fixed.c - Viterbi paths of many sequences under a hidden Markov model, in fixed point. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "learn/hmm/devices.h"
#include "learn/map_run.h"


/* ------------------------------------------------------------------ fixed point --------------------------------------------- */

static f64 least_log(const f64 *p, i64 n) {
    f64 least = 0;
    for (i64 i = 0; i < n; i++)
        if (p[i] > 0) least = dmin(least, log(p[i]));
    return least;
}

/* Probability 0 becomes the lowest score, which is below that of every probability of the model. */
static i32 fixed_log(f64 p, f64 scale, i32 limit) { return p > 0 ? (i32)lrint(log(p) * scale) : -limit; }

static err alloc_fixed(const struct hmm *h, struct hmm_fixed *f, i32 Lp) {
    NEW(f->packed, (i64)h->L * Lp);
    NEW(f->start, h->L);
    NEW(f->trans, (i64)h->L * h->L);
    NEW(f->emit, (i64)h->W * Lp);
    return 0;
}

err hmm_fix(struct hmm *h) {
    struct hmm_fixed *f = &h->fixed;
    const i32 L = h->L, Lp = viterbi_padded(L), limit = viterbi_limit(L);
    hmm_fixed_free(f);
    TRY(alloc_fixed(h, f, Lp));
    f64 least = dmin(least_log(h->start, L), least_log(h->trans, (i64)L * L));
    least = dmin(dmin(least, least_log(h->emit, (i64)h->W * L)), -1);
    f->scale = exp2(floor(log2((f64)limit / (1 - least))));
    for (i32 l = 0; l < L; l++) f->start[l] = fixed_log(h->start[l], f->scale, limit);
    for (i32 i = 0; i < L * L; i++) f->trans[i] = fixed_log(h->trans[i], f->scale, limit);
    for (i64 w = 0; w < h->W; w++)
        for (i32 l = 0; l < L; l++)
            f->emit[w * Lp + l] = fixed_log(h->emit[w * L + l], f->scale, limit) * (1 << viterbi_shift(L));
    viterbi_pack(kern_best()->arch, L, f->trans, f->packed, &f->kern);
    return 0;
}

void hmm_fixed_free(struct hmm_fixed *f) {
    mem_free(f->packed);
    mem_free(f->start);
    mem_free(f->trans);
    mem_free(f->emit);
    *f = (struct hmm_fixed){0};
}

/* ------------------------------------------------------------------ many sequences ------------------------------------------ */

/* One stream of the kernels, and the sequence in it. */
struct seat {
    i64 at, n, done; /* first token; tokens; steps done */
    i32 row;         /* sequence, -1 = none */
    i32 v[VITERBI_LABELS];
    u8 *back;
};

struct decoding {
    const struct hmm *h;
    const struct hmm_rows *rows;
    const i32 *order; /* [rows->n] longest first: streams then end together */
    i32 from, to;     /* those of `order` that the workers decode */
    struct pool *pool;
    u8 *path;
    f64 *logp;
    u8 **back;        /* [workers] VITERBI_STREAMS arrays of the longest sequence */
    i64 longest;
    i32 workers;
};

/* log P(words, path) in f64. */
static f64 path_log(const struct hmm *h, const i32 *word, const u8 *path, i64 n) {
    const i32 L = h->L;
    f64 sum = log(h->start[path[0]]);
    for (i64 t = 0; t < n; t++) {
        sum += log(h->emit[(i64)word[t] * L + path[t]]);
        if (t > 0) sum += log(h->trans[path[t - 1] * L + path[t]]);
    }
    return sum;
}

/* Writes the paths of n sequences that have ended. */
static void finish(const struct decoding *d, struct seat *const *s, i32 n) {
    const struct viterbi *m = &d->h->fixed.kern;
    struct viterbi_walk w[VITERBI_STREAMS];
    i64 score;
    for (i32 i = 0; i < n; i++) {
        const struct viterbi_stream end = {.v = s[i]->v};
        w[i] = (struct viterbi_walk){s[i]->back, s[i]->n - 1, viterbi_best(m, &end, &score), d->path + s[i]->at + 1};
    }
    viterbi_trace(m, n, w);
    for (i32 i = 0; i < n; i++) {
        u8 *path = d->path + s[i]->at;
        path[0] = (u8)w[i].label;
        if (d->logp) d->logp[s[i]->row] = path_log(d->h, d->rows->word + s[i]->at, path, s[i]->n);
    }
}

/* Puts the next sequence of this worker into the seat; *next counts its sequences. */
static void sit_down(const struct decoding *d, i32 *next, struct seat *s) {
    const struct hmm_fixed *f = &d->h->fixed;
    s->row = -1;
    while (*next < d->to && s->row < 0) {
        const i32 row = d->order[*next];
        *next += d->workers;
        s->at = d->rows->first[row];
        s->n = d->rows->first[row + 1] - s->at;
        if (s->n > 0) s->row = row;
    }
    if (s->row < 0) return;
    struct viterbi_stream first = {.v = s->v};
    viterbi_start(&f->kern, f->start, f->emit + (i64)d->rows->word[s->at] * f->kern.Lp, &first);
    s->done = 1;
}

/* Runs all streams up to the end of the shortest one. */
static void advance(const struct decoding *d, struct seat *seat, i32 n) {
    const struct hmm_fixed *f = &d->h->fixed;
    struct viterbi_stream s[VITERBI_STREAMS];
    i64 steps = seat[0].n - seat[0].done;
    for (i32 k = 1; k < n; k++) steps = lmin(steps, seat[k].n - seat[k].done);
    for (i32 k = 0; k < n; k++) {
        s[k] = (struct viterbi_stream){.unary = f->emit,
                                       .ld = f->kern.Lp,
                                       .row = d->rows->word + seat[k].at + seat[k].done,
                                       .v = seat[k].v,
                                       .back = seat[k].back + (seat[k].done - 1) * f->kern.Lb};
        seat[k].done += steps;
    }
    if (steps > 0) f->kern.set->steps(&f->kern, n, s, steps);
}

static void decode(void *self, i32 worker) {
    const struct decoding *d = self;
    struct seat seat[VITERBI_STREAMS];
    i32 next = d->from + worker, n = 0;
    for (; n < VITERBI_STREAMS; n++) {
        seat[n].back = d->back[worker] + n * d->longest * d->h->fixed.kern.Lb;
        sit_down(d, &next, &seat[n]);
        if (seat[n].row < 0) break;
    }
    while (n > 0) {
        struct seat *ended[VITERBI_STREAMS];
        i32 count = 0;
        advance(d, seat, n);
        for (i32 k = 0; k < n; k++)
            if (seat[k].done == seat[k].n) ended[count++] = &seat[k];
        finish(d, ended, count);
        for (i32 k = n - 1; k >= 0; k--) {
            if (seat[k].done < seat[k].n) continue;
            sit_down(d, &next, &seat[k]);
            if (seat[k].row < 0) seat[k] = seat[--n];
        }
    }
}

struct by_length {
    i64 n;
    i32 row;
};
static int longer(const void *a, const void *b) {
    const struct by_length *x = a, *y = b;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static err sort_rows(const struct hmm_rows *r, i32 *order) {
    struct by_length *all;
    NEW(all, r->n + 1);
    for (i32 i = 0; i < r->n; i++) all[i] = (struct by_length){r->first[i + 1] - r->first[i], i};
    qsort(all, (size_t)r->n, sizeof *all, longer);
    for (i32 i = 0; i < r->n; i++) order[i] = all[i].row;
    mem_free(all);
    return 0;
}

static void decode_some(void *self, i32 from, i32 to) {
    struct decoding *d = self;
    d->from = from;
    d->to = to;
    pool_run(d->pool, decode, d);
}

static err share(struct decoding *d, const struct resources *use) {
    const struct shared_paths q = {.h = d->h, .rows = d->rows, .order = d->order, .path = d->path, .self = d,
                                   .on_host = decode_some};
    TRY(shared_paths_run(&q, use));
    for (i32 i = 0; d->logp && i < d->rows->n; i++) {
        const i64 at = d->rows->first[i], n = d->rows->first[i + 1] - at;
        if (n > 0) d->logp[i] = path_log(d->h, d->rows->word + at, d->path + at, n);
    }
    return 0;
}

static err decode_all(struct decoding *d, i32 *order, const struct resources *use) {
    TRY(sort_rows(d->rows, order));
    d->order = order;
    d->longest = d->rows->n > 0 ? d->rows->first[order[0] + 1] - d->rows->first[order[0]] : 0;
    for (i32 w = 0; w < d->workers; w++) NEW(d->back[w], VITERBI_STREAMS * d->longest * d->h->fixed.kern.Lb + 1);
    if (offload_wanted(use)) return share(d, use);
    decode_some(d, 0, d->rows->n);
    return 0;
}

err hmm_decode(const struct hmm *h, const struct hmm_rows *r, const struct resources *use, u8 *path, f64 *logp) {
    struct decoding d = {.h = h, .rows = r, .path = path, .logp = logp, .pool = use->pool,
                         .workers = pool_size(use->pool)};
    i32 *order = NULL;
    NEW(d.back, d.workers);
    err e = mem_new((void **)&order, r->n + 1, sizeof *order);
    if (e >= 0) e = decode_all(&d, order, use);
    for (i32 w = 0; w < d.workers; w++) mem_free(d.back[w]);
    mem_free(d.back);
    mem_free(order);
    return e;
}
