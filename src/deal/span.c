/* span.c - spans of rows that nobody has, and their queues: pairing heaps in one array of spans. */
#include "deal/inside.h"

#include "base/mem.h"

err span_reserve(struct dealer *d, i32 spans) {
    while (d->nfree < spans) {
        GROW(d->span, d->nspan, d->span_cap);
        for (; d->nspan < d->span_cap; d->nspan++, d->nfree++) {
            d->span[d->nspan].next = d->free_span;
            d->free_span = (i32)d->nspan;
        }
    }
    return 0;
}

i32 span_new(struct dealer *d, i32 part, i64 lo, i64 hi, i32 holder) {
    const i32 k = d->free_span;
    d->free_span = d->span[k].next;
    d->nfree--;
    d->span[k] = (struct span){part, holder, lo, hi, -1, -1};
    return k;
}

void span_drop(struct dealer *d, i32 k) {
    d->span[k].next = d->free_span;
    d->free_span = k;
    d->nfree++;
}

static bool before(const struct dealer *d, const struct span *a, const struct span *b) {
    if (d->policy->largest) {
        const f64 ca = span_cost(d, a), cb = span_cost(d, b);
        if (ca > cb || ca < cb) return ca > cb;
    }
    return a->part != b->part ? a->part < b->part : a->lo < b->lo;
}

static i32 meld(struct dealer *d, i32 a, i32 b) {
    if (a < 0 || b < 0) return a < 0 ? b : a;
    const bool a_first = before(d, &d->span[a], &d->span[b]);
    const i32 top = a_first ? a : b, under = a_first ? b : a;
    d->span[under].next = d->span[top].child;
    d->span[top].child = under;
    return top;
}

/* Pairs from left to right, then one by one from right to left. */
static i32 meld_children(struct dealer *d, i32 k) {
    i32 pairs = -1, root = -1;
    while (k >= 0) {
        const i32 a = k, b = d->span[a].next, rest = b >= 0 ? d->span[b].next : -1;
        d->span[a].next = -1;
        if (b >= 0) d->span[b].next = -1;
        const i32 pair = meld(d, a, b);
        d->span[pair].next = pairs;
        pairs = pair;
        k = rest;
    }
    while (pairs >= 0) {
        const i32 rest = d->span[pairs].next;
        d->span[pairs].next = -1;
        root = meld(d, root, pairs);
        pairs = rest;
    }
    return root;
}

void queue_push(struct dealer *d, struct queue *q, i32 k) {
    d->span[k].child = d->span[k].next = -1;
    q->root = meld(d, q->root, k);
    q->n++;
    q->cost += span_cost(d, &d->span[k]);
}

i32 queue_pop(struct dealer *d, struct queue *q) {
    const i32 k = q->root;
    if (k < 0) return -1;
    q->root = meld_children(d, d->span[k].child);
    q->n--;
    q->cost = q->n > 0 ? q->cost - span_cost(d, &d->span[k]) : 0;
    d->span[k].child = -1;
    return k;
}

void queue_take(struct dealer *d, struct queue *q, i64 rows) {
    const i32 k = queue_pop(d, q);
    d->span[k].lo += rows;
    if (d->span[k].lo < d->span[k].hi)
        queue_push(d, q, k);
    else
        span_drop(d, k);
}
