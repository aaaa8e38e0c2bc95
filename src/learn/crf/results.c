/* results.c - tags of new sentences, on the threads of the pool. */
#include <math.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "learn/crf/crf.h"
#include "learn/crf/devices.h"

/* ------------------------------------------------------------------ decoding ------------------------------------------------ */

struct decoding {
    const struct crf *f;
    const struct crf_kern *kern;
    const struct token_set *s;
    struct features x;
    i32 longest, nworker;
    i32 *best;          /* [ntoken] */
    f32 *u;             /* [nworker][longest][Lp] */
    i32 *from;          /* the same */
    f32 *v;             /* [nworker][2][Lp] */
    atomic_int next;    /* sentence */
};

static void decode_some(void *arg, i32 worker) {
    enum { TOGETHER = 16 };
    struct decoding *d = arg;
    const struct crf *f = d->f;
    const i64 room = (i64)worker * d->longest * f->Lp;
    const struct crf_pass p = crf_pass_of(f, &d->x, NULL);
    for (i32 k; (k = atomic_fetch_add(&d->next, TOGETHER)) < d->s->nsentence;)
        for (i32 j = k; j < imin(k + TOGETHER, d->s->nsentence); j++) {
            d->kern->score(&p, d->s->first[j], token_count(d->s, j), d->u + room);
            d->kern->decode(d->u + room, f->w + f->nattr * f->Lp, f->L, f->Lp, token_count(d->s, j), d->from + room,
                            d->v + (i64)worker * 2 * f->Lp, d->best + d->s->first[j]);
        }
}

static void decoding_free(struct decoding *d) {
    features_free(&d->x);
    mem_free(d->best);
    mem_free(d->u);
    mem_free(d->from);
    mem_free(d->v);
}

static err decode(struct decoding *d, struct pool *pool) {
    const struct crf *f = d->f;
    for (i32 j = 0; j < d->s->nsentence; j++) d->longest = imax(d->longest, token_count(d->s, j));
    d->nworker = pool_size(pool);
    const i64 room = (i64)d->nworker * d->longest * f->Lp;
    NEW(d->u, room);
    NEW(d->from, room);
    NEW(d->v, (i64)d->nworker * 2 * f->Lp);
    pool_run(pool, decode_some, d);
    return 0;
}

/* The same on devices, in partitions of about equal numbers of sentences. */
static err decode_shared(const struct decoding *d, const struct resources *use) {
    i32 cut[CRF_GRAINS + 1];
    struct shared_sentences q = {.pass = crf_pass_of(d->f, &d->x, NULL), .nrow = d->f->nattr + d->f->L, .first = d->s->first,
                                 .cut = cut, .ncut = imin(CRF_GRAINS, d->s->nsentence)};
    struct shared_crf *shared;
    for (i32 k = 0; k <= q.ncut; k++) cut[k] = (i32)((i64)d->s->nsentence * k / imax(1, q.ncut));
    if (q.ncut == 0) return 0;
    err e = shared_crf_open(&q, use, &shared);
    if (e >= 0) e = shared_crf_paths(shared, d->best);
    if (e >= 0) shared_crf_note(shared, use->events);
    shared_crf_close(shared);
    return e;
}

static err label_tokens(struct decoding *d, const struct resources *use) {
    TRY(features_map(&d->f->t, d->s, use->pool, &d->f->attribute, &d->x));
    NEW(d->best, d->s->ntoken);
    return offload_wanted(use) ? decode_shared(d, use) : decode(d, use->pool);
}

/* The best labels of all tokens and, if p is not NULL, the probabilities of all; the caller frees *best and *p. */
static err find_labels(const struct crf *f, const struct dataset *d, const struct resources *use, i32 **best, f32 **p) {
    struct decoding x = {.f = f, .kern = crf_kern_for((i32)use->kern->arch), .s = token_set_of(d)};
    err e = label_tokens(&x, use);
    if (e >= 0 && p) e = crf_marginals(f, x.s, &x.x, x.best, use, p);
    if (e >= 0) {
        *best = x.best;
        x.best = NULL;
    }
    decoding_free(&x);
    return e;
}

err crf_open(const struct model *m, const struct options *o, const char *path, const struct events *to, struct dataset **out) {
    const struct crf *f = crf_of(m);
    (void)o, (void)to;
    if (f->items) return token_set_read_items(path, out);
    return token_set_read_as(path, f->ncolumn, f->tag, out);
}

/* ------------------------------------------------------------------ operations of the model --------------------------------- */

err crf_predict(const struct model *m, const struct dataset *d, const struct resources *use, const struct prediction_sink *to) {
    const struct crf *f = crf_of(m);
    i32 *best;
    f32 *p = NULL;
    TRY(find_labels(f, d, use, &best, to->marginals ? &p : NULL));
    const struct tag_marginals all = {p, f->Lp};
    const err e = tags_write(token_set_of(d), &f->label, best, p ? &all : NULL, to);
    mem_free(best);
    mem_free(p);
    return e;
}

err crf_score(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
              struct scores *out) {
    const struct crf *f = crf_of(m);
    struct tags_scored t = {.label = &f->label, .rule = &f->rule};
    i32 *best;
    *out = (struct scores){.skill = (f64)NAN, .error = (f64)NAN, .baseline = (f64)NAN};
    TRY(tags_range(token_set_of(d), q, &t));
    if (t.to <= t.from) return 0;
    TRY(find_labels(f, d, use, &best, NULL));
    t.best = best;
    const err e = tags_score(token_set_of(d), &t, out);
    mem_free(best);
    return e;
}

err crf_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a, struct report *r) {
    (void)job;
    return tags_report(&crf_of(m)->label, s, a, r);
}
