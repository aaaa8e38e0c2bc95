/* scratch.c - what a thread needs beside weights and sentences; see kernel.h. */
#include "base/mem.h"
#include "learn/crf/kernel.h"

err crf_scratch_new(i32 L, i32 Lp, i32 longest, struct crf_scratch *c) {
    const i64 square = (i64)Lp * Lp;
    NEW(c->E, square);
    NEW(c->back, square);
    NEW(c->pair, square);
    NEW(c->u, (i64)longest * Lp);
    NEW(c->a, (i64)(longest + 1) * Lp); /* a row more than tokens */
    NEW(c->inverse, longest);
    NEW(c->mask, Lp);
    for (i32 y = 0; y < L; y++) c->mask[y] = 1;
    return 0;
}

void crf_scratch_free(struct crf_scratch *c) {
    f32 *all[] = {c->E, c->back, c->pair, c->u, c->a, c->inverse, c->mask};
    for (size_t i = 0; i < COUNT(all); i++) mem_free(all[i]);
    *c = (struct crf_scratch){0};
}

struct crf_pass crf_scratch_pass(const struct crf_scratch *c, const struct crf_pass *p) {
    struct crf_pass x = *p;
    x.E = c->E;
    x.back = c->back;
    x.mask = c->mask;
    x.u = c->u;
    x.a = c->a;
    x.inverse = c->inverse;
    x.top = crf_transitions(p->L, p->Lp, p->A, c->E, c->back);
    return x;
}
