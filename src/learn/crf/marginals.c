/* marginals.c - the probability of each label of a token, given its sentence: forward-backward with the kernel that trains. */
#include <math.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "learn/crf/crf.h"

struct marginals {
    const struct crf_kern *kern;
    struct crf_pass pass;        /* but for the scratch of a worker */
    const struct token_set *s;
    f32 *p;                      /* [ntoken][Lp] */
    f32 *E, *back, *mask, *pair; /* [Lp][Lp], [Lp][Lp], [Lp], [workers][Lp][Lp] */
    f32 *u, *a, *inverse;        /* [workers][longest][Lp], the same, [workers][longest] */
    i32 longest;
    atomic_int next;             /* sentence */
};

/* The kernel gives P - Y, Y = 1 at the label of pass.gold. */
static void take_sentence(struct marginals *m, i32 worker, i32 sentence) {
    const i32 Lp = m->pass.Lp, T = token_count(m->s, sentence);
    const i64 t0 = m->s->first[sentence], room = (i64)worker * m->longest;
    f32 *d = m->p + t0 * Lp, *pair = m->pair + (i64)worker * Lp * Lp;
    struct crf_pass p = m->pass;
    p.u = m->u + room * Lp;
    p.a = m->a + (room + worker) * Lp;
    p.inverse = m->inverse + room;
    const f64 nll = m->kern->sentence(&p, t0, T, d, pair);
    if (!isfinite(nll)) crf_kern_ref.sentence(&p, t0, T, d, pair); /* scores that f32 without logarithms cannot hold */
    for (i32 t = 0; t < T; t++) d[(i64)t * Lp + p.gold[t0 + t]] += 1;
}

static void take_some(void *self, i32 worker) {
    struct marginals *m = self;
    for (i32 k; (k = atomic_fetch_add(&m->next, 1)) < m->s->nsentence;) take_sentence(m, worker, k);
}

static err make_room(const struct crf *f, i32 nworker, struct marginals *m) {
    const i64 square = (i64)f->Lp * f->Lp, rows = (i64)nworker * m->longest;
    NEW(m->p, m->s->ntoken * f->Lp);
    NEW(m->E, square);
    NEW(m->back, square);
    NEW(m->mask, f->Lp);
    NEW(m->pair, nworker * square);
    NEW(m->u, rows * f->Lp);
    NEW(m->a, (rows + nworker) * f->Lp); /* a row more than tokens */
    NEW(m->inverse, rows);
    return 0;
}

err crf_marginals(const struct crf *f, const struct token_set *s, const struct features *x, const i32 *best,
                  const struct resources *use, f32 **out) {
    struct marginals m = {.kern = crf_kern_for((i32)use->kern->arch), .s = s};
    m.pass = (struct crf_pass){.L = f->L, .Lp = f->Lp, .w = f->w, .A = f->w + f->nattr * f->Lp, .at = x->at,
                               .attribute = x->attribute, .gold = best};
    for (i32 k = 0; k < s->nsentence; k++) m.longest = imax(m.longest, token_count(s, k));
    const err e = make_room(f, pool_size(use->pool), &m);
    if (e >= 0) {
        m.pass.E = m.E;
        m.pass.back = m.back;
        m.pass.mask = m.mask;
        m.pass.top = crf_transitions(f->L, f->Lp, m.pass.A, m.E, m.back);
        for (i32 y = 0; y < f->L; y++) m.mask[y] = 1;
        pool_run(use->pool, take_some, &m);
        *out = m.p;
        m.p = NULL;
    }
    f32 *all[] = {m.p, m.E, m.back, m.mask, m.pair, m.u, m.a, m.inverse};
    for (size_t i = 0; i < COUNT(all); i++) mem_free(all[i]);
    return e;
}
