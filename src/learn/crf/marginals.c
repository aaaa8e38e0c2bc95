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
    struct crf_scratch *scratch; /* [nworker] */
    i32 nworker;
    atomic_int next;             /* sentence */
};

/* The kernel gives P - Y, Y = 1 at the label of pass.gold. */
static void take_sentence(struct marginals *m, const struct crf_pass *p, f32 *pair, i32 sentence) {
    const i32 T = token_count(m->s, sentence);
    const i64 t0 = m->s->first[sentence];
    f32 *d = m->p + t0 * p->Lp;
    const f64 nll = m->kern->sentence(p, t0, T, d, pair);
    if (!isfinite(nll)) crf_kern_ref.sentence(p, t0, T, d, pair); /* scores that f32 without logarithms cannot hold */
    for (i32 t = 0; t < T; t++) d[(i64)t * p->Lp + p->gold[t0 + t]] += 1;
}

static void take_some(void *self, i32 worker) {
    struct marginals *m = self;
    const struct crf_pass p = crf_scratch_pass(&m->scratch[worker], &m->pass);
    for (i32 k; (k = atomic_fetch_add(&m->next, 1)) < m->s->nsentence;) take_sentence(m, &p, m->scratch[worker].pair, k);
}

static err make_room(const struct crf *f, struct marginals *m) {
    i32 longest = 0;
    for (i32 k = 0; k < m->s->nsentence; k++) longest = imax(longest, token_count(m->s, k));
    NEW(m->p, m->s->ntoken * f->Lp);
    NEW(m->scratch, m->nworker);
    for (i32 i = 0; i < m->nworker; i++) TRY(crf_scratch_new(f->L, f->Lp, longest, &m->scratch[i]));
    return 0;
}

err crf_marginals(const struct crf *f, const struct token_set *s, const struct features *x, const i32 *best,
                  const struct resources *use, f32 **out) {
    struct marginals m = {.kern = crf_kern_for((i32)use->kern->arch), .s = s, .nworker = pool_size(use->pool)};
    m.pass = crf_pass_of(f, x, best);
    const err e = make_room(f, &m);
    if (e >= 0) {
        pool_run(use->pool, take_some, &m);
        *out = m.p;
        m.p = NULL;
    }
    for (i32 i = 0; m.scratch && i < m.nworker; i++) crf_scratch_free(&m.scratch[i]);
    mem_free(m.scratch);
    mem_free(m.p);
    return e;
}
