/* again.c - trees as a part of a base: added to one, and fitted again on other rows with the number of trees that it has. */
#include "bases/trees/fit.h"

bool base_trees_needs(const struct base *b, struct trees_needs *out) {
    if (!b->trees) return false;
    const struct trees_shape *q = &b->trees->in.shape;
    *out = (struct trees_needs){q->H, q->ncol, q->npast, q->nknown, q->ncat, q->calendar != 0};
    return true;
}

void base_add_trees(struct base *b, struct trees *t, f64 weight) {
    i32 n = 0;
    for (i32 i = 0; i < b->npart; i++) {
        b->part[i].weight *= 1 - weight;
        if (b->part[i].weight > 0) b->part[n++] = b->part[i];
    }
    if (weight >= 1) {
        mem_free(b->ridge);
        b->ridge = NULL;
    }
    b->npart = n;
    b->part[b->npart++] = (struct base_part){.kind = BASE_TREES, .weight = weight};
    b->trees = t;
}

void base_join(struct base *b, struct base *from) {
    if (!from->trees || b->trees) return;
    base_add_trees(b, from->trees, from->part[--from->npart].weight);
    from->trees = NULL;
}

err base_trees_again(const struct series *s, const struct base_spec *p, const struct base *like, struct base *b) {
    const struct trees_effort work = trees_effort_of(p->absolute, false);
    struct trees_found found;
    struct trees *t;
    if (!like->trees || b->trees) return 0;
    TRY(trees_fit(s, p, &like->trees->in.shape, &work, like->trees->ntree, &found, &t));
    if (!t) return FAIL(E301, "trees: too few rows with a target before row %lld", (long long)p->train);
    base_add_trees(b, t, like->part[like->npart - 1].weight);
    return 0;
}

static enum inputs inputs_if(bool has) { return has ? INPUTS_ALWAYS : INPUTS_NEVER; }

static err ridge_again(const struct series *s, const struct base_spec *p, const struct ridge *like, struct ridge **out) {
    struct base_spec spec = *p;
    struct base *b;
    spec.refit = false;
    spec.penalty = like->penalty;
    spec.constant = inputs_if(like->constant);
    spec.calendar = inputs_if(like->calendar);
    spec.ahead = inputs_if(like->ahead.ncol > 0);
    TRY(base_ridge(s, &spec, &b));
    *out = b->ridge;
    b->ridge = NULL;
    base_free(b);
    return 0;
}

/* The parts of `like` but its trees, with the weights among each other that they had before the trees came. */
static err others_again(const struct series *s, const struct base_spec *p, const struct base *like, struct base *b) {
    const f64 rest = like->trees ? 1 - like->part[like->npart - 1].weight : 1;
    for (i32 i = 0; i < like->npart; i++) {
        if (like->part[i].kind == BASE_TREES) continue;
        b->part[b->npart] = like->part[i];
        b->part[b->npart++].weight /= rest;
    }
    return like->ridge ? ridge_again(s, p, like->ridge, &b->ridge) : 0;
}

err base_again(const struct series *s, const struct base_spec *p, const struct base *like, struct base **out) {
    struct base *b;
    NEW(b, 1);
    err e = others_again(s, p, like, b);
    if (e >= 0) e = base_trees_again(s, p, like, b);
    if (e < 0)
        base_free(b);
    else
        *out = b;
    return e;
}
