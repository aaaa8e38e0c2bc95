/* stages.c - contiguous ranges of units on a row of devices (base/cut.h).  The row may be longer than needed: a stage may be
 * empty. */
#include <math.h>

#include "base/cut.h"
#include "place/inside.h"

struct costs {
    const struct problem *p;
    const struct stages *s;
    f64 *work, *bytes; /* [U + 1] prefix sums of the row's part */
    f64 *transfers;    /* [U + 1] seconds of the edges across a cut before unit u */
};

static f64 weights(const struct problem *p, i32 u) { return (f64)p->g->unit[u].memory; }

static err prefix_sums(struct problem *p, struct costs *c) {
    const f64 share = c->s->share;
    ARENA_NEW(&p->arena, c->work, p->U + 1);
    ARENA_NEW(&p->arena, c->bytes, p->U + 1);
    ARENA_NEW(&p->arena, c->transfers, p->U + 2);
    for (i32 u = 0; u < p->U; u++) {
        f64 work = 0, bytes = 0;
        for (i32 i = p->unit0[u]; i < p->unit0[u + 1]; i++) {
            work += p->group_work[p->unit_group[i]];
            bytes += (f64)p->group_memory[p->unit_group[i]];
        }
        c->work[u + 1] = c->work[u] + share * work;
        c->bytes[u + 1] = c->bytes[u] + share * bytes + weights(p, u);
    }
    if (!c->s->transfers) return 0;
    for (i32 k = 0; k < p->g->nedge; k++) { /* an edge between units a < b crosses the cuts before a + 1 .. b */
        const struct place_edge *e = &p->g->edge[k];
        const i32 a = imin(p->unit[e->from], p->unit[e->to]), b = imax(p->unit[e->from], p->unit[e->to]);
        const f64 seconds = share * (p->mean.seconds + (f64)e->bytes / p->mean.rate);
        c->transfers[a + 1] += seconds;
        c->transfers[b + 1] -= seconds;
    }
    for (i32 u = 1; u <= p->U; u++) c->transfers[u] += c->transfers[u - 1];
    c->transfers[p->U] = 0;
    return 0;
}

static f64 stage_cost(const void *costs, i32 lo, i32 hi, i32 k) {
    const struct costs *c = costs;
    if (lo == hi) return 0;
    const f64 bytes = c->bytes[hi] - c->bytes[lo];
    if (c->s->aim == STAGES_MEMORY) return bytes;
    const struct place_device *d = &c->p->m->device[c->s->row[k]];
    if (c->s->aim == STAGES_FIT && d->memory > 0 && bytes > (f64)d->memory) return INFINITY;
    return (c->work[hi] - c->work[lo]) / d->speed + c->transfers[lo] + c->transfers[hi];
}

err stages_cut(struct problem *p, const struct stages *s, i32 *stage, f64 *value) {
    struct costs c = {.p = p, .s = s};
    i32 *border;
    TRY(prefix_sums(p, &c));
    ARENA_NEW(&p->arena, border, s->k + 1);
    TRY(cut_row(&(struct cut){.items = p->U, .parts = s->k, .cost = stage_cost, .self = &c}, border, value));
    for (i32 k = 0; k < s->k && isfinite(*value); k++)
        for (i32 u = border[k]; u < border[k + 1]; u++) stage[u] = k;
    return 0;
}

i32 stages_devices(const struct problem *p, i64 memory) {
    i32 n = 1;
    i64 used = 0;
    for (i32 u = 0; u < p->U; u++) {
        i64 bytes = p->g->unit[u].memory;
        for (i32 i = p->unit0[u]; i < p->unit0[u + 1]; i++) bytes += p->group_memory[p->unit_group[i]];
        if (bytes > memory) return 0;
        if (used + bytes > memory) {
            n++;
            used = 0;
        }
        used += bytes;
    }
    return n;
}
