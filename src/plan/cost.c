/* cost.c - predicted seconds of every task, and of the step by a list schedule.
 *
 *     task   max(flops / rate, bytes / bandwidth, activations written) + overhead
 *            + link time for gradients that come from another rank
 *     team   a member has its panels of the units to do, and waits once a step of the sequence for the others' flags
 *     step   the devices walk their tasks in plan order, each waiting for the tasks it depends on
 *
 * rate and bandwidth are numbers of the machine text, measured or assumed; the constants below are fractions of peak that kernels
 * reach.  Good enough to choose between strategies; `train` reports how far it was off. */
#include <string.h>

#include "base/mem.h"
#include "model/layer.h"
#include "plan/planner.h"

#define TASK_S 0.4e-6     /* calling a task */
#define RATE_SHARE 0.60   /* of the machine's multiply-add rate that products reach */
#define FLOAT_FLOPS 200.0 /* flops in whose time element-wise work (exp, masks, losses) writes one activation */
#define CACHE_GAIN 3.0    /* bandwidth for a task that fits in the L2 cache, against memory */
#define TEAM_S 0.10e-6    /* members seeing each other's flags and units, once per step of the sequence */
#define TURNS_S 50e-6     /* the same where members take turns on a core */
#define PREP_SHARE 0.35   /* of the memory bandwidth that transposing reaches */

/* Rows, and what is made of them, touch few lines of a table. */
static i32 grains_of(const struct plan *p, const struct task *t, const struct pbuf *b) {
    if (t->kind == TASK_MERGE) return merge_grains(p, t, b->index);
    return b->kind == PBUF_GRAD ? 1 : ceil_div(t->box.b1 - t->box.b0, p->grain);
}

static f64 use_bytes(const struct plan *p, const struct task *t, const struct use *u) {
    const struct pbuf *b = &p->buf[u->buf];
    const bool touches = t->kind == TASK_FWD || t->kind == TASK_BWD || t->kind == TASK_ZERO || t->kind == TASK_MERGE;
    if (touches && (b->kind == PBUF_GRAD || b->kind == PBUF_THETA))
        return (f64)plan_touched_bytes(p, u->lo, u->hi, grains_of(p, t, b));
    return (f64)b->bytes * (f64)(u->hi - u->lo) / (f64)b->extent;
}

/* Merges of one range are done block by block in the cache: the vector that is added comes from memory, the sum half of the time.
 * Zeroing reads a line before it writes it. */
static f64 task_bytes(const struct plan *p, const struct task *t) {
    f64 sum = 0;
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        u8 mode = p->use[k].mode;
        bool twice = mode == USE_RW || mode == USE_SUM || t->kind == TASK_ZERO;
        f64 bytes = use_bytes(p, t, &p->use[k]);
        if (t->kind == TASK_MERGE)
            sum += mode == USE_R ? 1.5 * bytes : 0;
        else
            sum += twice ? 2 * bytes : bytes;
    }
    return sum;
}

/* Activations (or their gradients) that a task writes. */
static f64 floats_written(const struct plan *p, const struct task *t) {
    f64 sum = 0;
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        u8 kind = p->buf[p->use[k].buf].kind;
        if (p->use[k].mode != USE_R && (kind == PBUF_ACT || kind == PBUF_DACT)) sum += use_bytes(p, t, &p->use[k]) / 4;
    }
    return sum;
}

/* Bytes of a use of a merge that `from` wrote. */
static i64 written_bytes(const struct plan *p, const struct task *t, const struct use *u, const struct task *from) {
    i64 lo = u->hi, hi = u->lo;
    for (u32 j = from->use0; j < from->use0 + from->nuse; j++) {
        const struct use *w = &p->use[j];
        if (w->buf != u->buf || w->mode == USE_R) continue;
        lo = lmin(lo, lmax(w->lo, u->lo));
        hi = lmax(hi, lmin(w->hi, u->hi));
    }
    return hi > lo ? plan_touched_bytes(p, lo, hi, merge_grains(p, t, p->buf[u->buf].index)) : 0;
}

/* Bytes of gradients that a merge reads from the last writers where those are other devices; no range counts twice. */
static i64 foreign_bytes(const struct plan *p, const struct task *t, i64 *across_ranks) {
    i64 sum = 0;
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        const struct use *u = &p->use[k];
        i64 all = 0, across = 0, most = (u->hi - u->lo) * 4;
        for (u32 d = t->dep0; d < t->dep0 + t->ndep; d++) {
            const struct task *from = &p->task[p->dep[d]];
            if (from->device == t->device) continue;
            i64 bytes = written_bytes(p, t, u, from);
            all += bytes;
            if (p->place[from->device].rank != p->place[t->device].rank) across += bytes;
        }
        sum += lmin(all, most);
        *across_ranks += lmin(across, most);
    }
    return sum;
}

/* Bytes that a member reads of what the others of its team write: outputs forward, what is kept for backward backward. */
static i64 team_bytes(const struct plan *p, const struct task *t) {
    f64 sum = 0;
    for (u32 k = t->use0; t->members > 1 && k < t->use0 + t->nuse; k++) {
        u8 kind = p->buf[p->use[k].buf].kind;
        bool read = t->kind == TASK_FWD ? kind == PBUF_ACT && p->use[k].mode == USE_W : kind == PBUF_SAVED;
        if (read) sum += use_bytes(p, t, &p->use[k]) * (t->members - 1) / t->members;
    }
    return (i64)sum;
}

/* A member's share of the seconds of the whole task, and its waiting for the others. */
static f64 member_seconds(const struct plan *p, const struct net *n, const struct machine *m, const struct task *t, f64 whole) {
    i32 panels = op_panels(&n->op[t->op]);
    f64 wait = p->ndevice > m->ncore ? TURNS_S : TEAM_S;
    return whole * ceil_div(panels, t->members) / panels + wait * (t->box.t1 - t->box.t0);
}

/* A layer that goes step by step reads its weights for the rows of one step: with few of them it waits for the cache.  Half of
 * backward, the weight gradient, is one product over all steps. */
static f64 few_rows(const struct op *op, const struct task *t) {
    f64 rows = t->box.b1 - t->box.b0, share = rows / (rows + 1);
    if (!op->layer->team) return 1;
    return t->kind == TASK_FWD ? share : 2 * share / (1 + share);
}

/* Slices begin from a guess, so the first steps of each are done twice: as many as the recurrence remembers, or a quarter of the
 * slice where nobody knows.  Backward it is the gates of those steps besides. */
static f64 rounds(const struct op *op, const struct task *t, i32 forgets) {
    f64 again = forgets > 0 ? (f64)forgets / op->T : 0.25;
    return 1 + (t->kind == TASK_FWD ? again : 1.5 * again);
}

/* What ranks tell each other before and after they compare, and at the end: small messages, round after round. */
static f64 between_ranks(const struct plan *p, const struct machine *m, const struct op *op) {
    const i32 n = 2 + ceil_div(imax(0, p->forgets - 1), op->T);
    return p->nrank > 1 ? 3e-6 * m->link_us * n : 0;
}

/* Of a chunk: its share of the steps. */
static f64 seconds(const struct plan *p, const struct net *n, const struct machine *m, const struct task *t) {
    const struct device *d = &m->device[t->device];
    f64 part = task_is_chunk(t, n) ? (f64)(t->box.t1 - t->box.t0) / n->op[t->op].T : 1;
    f64 bytes = task_bytes(p, t), speed = d->gbytes * 1e9 * (bytes < (f64)m->cache_l2 ? CACHE_GAIN : 1);
    if (t->kind == TASK_PREP) return bytes / (d->gbytes * 1e9 * PREP_SHARE);
    if (t->kind != TASK_FWD && t->kind != TASK_BWD) return bytes / speed;
    const struct op *op = &n->op[t->op];
    f64 flops = op->layer->flops ? op->layer->flops(op, n, t->box.b1 - t->box.b0, t->kind == TASK_BWD) : 0;
    f64 rate = d->gflops * d->share * 1e9, per_float = FLOAT_FLOPS / rate, share = RATE_SHARE * few_rows(op, t);
    f64 s = dmax(dmax(flops / (rate * share), bytes / speed), floats_written(p, t) * per_float);
    if (op_is_chain(op)) return s * rounds(op, t, p->forgets) + between_ranks(p, m, op);
    return t->members > 1 ? member_seconds(p, n, m, t, s) : part * s;
}

void plan_cost(struct plan *p, const struct net *n, const struct machine *m) {
    p->exchange_bytes = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        struct task *t = &p->task[i];
        f64 s = seconds(p, n, m, t) + TASK_S;
        i64 across = 0;
        if (t->kind == TASK_MERGE) p->exchange_bytes += foreign_bytes(p, t, &across);
        p->exchange_bytes += team_bytes(p, t);
        if (across > 0) s += (f64)across / (m->link_gbytes * 1e9) + m->link_us * 1e-6;
        t->cost = (f32)s;
    }
    p->predicted = plan_schedule(p, NULL);
}

/* When a task can start: its device is free, what it needs is done. */
static f64 ready(const struct plan *p, const struct plan_span *span, const struct task *t, const f64 *free_at) {
    f64 at = free_at[t->device];
    for (u32 k = t->dep0; k < t->dep0 + t->ndep; k++) {
        u32 from = p->dep[k];
        at = dmax(at, span[from].t1 + (p->task[from].device != t->device ? PLAN_SYNC_S : 0));
    }
    return at;
}

/* Members of a team run together: from when the last of them can start. */
f64 plan_schedule(const struct plan *p, struct plan_span *span) {
    f64 free_at[MACHINE_DEVICES] = {0}, end = 0;
    struct plan_span *own = NULL;
    if (!span) span = own = mem_alloc((p->ntask + 1) * sizeof *span);
    if (!span) return 0;
    for (i32 d = 1; d < p->ndevice; d++) free_at[d] = PLAN_START_S;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        f64 at = ready(p, span, t, free_at);
        if (t->member > 0) at = dmax(at, span[plan_team_first(p, i)].t0);
        for (u32 k = 1; t->member == 0 && k < t->members && i + k < p->ntask; k++) at = dmax(at, ready(p, span, t + k, free_at));
        span[i] = (struct plan_span){at, at + (f64)t->cost};
        free_at[t->device] = span[i].t1;
        end = dmax(end, span[i].t1);
    }
    mem_free(own);
    return end;
}

i64 plan_device_bytes(const struct plan *p, u32 device) {
    i64 sum = 0;
    for (u32 b = 0; b < p->nbuf; b++) {
        i64 lo = p->buf[b].extent, hi = 0;
        for (u32 i = 0; i < p->ntask; i++) {
            const struct task *t = &p->task[i];
            for (u32 k = t->use0; t->device == device && k < t->use0 + t->nuse; k++) {
                if (p->use[k].buf != b) continue;
                lo = lmin(lo, p->use[k].lo);
                hi = lmax(hi, p->use[k].hi);
            }
        }
        if (hi > lo) sum += (i64)((f64)p->buf[b].bytes * (f64)(hi - lo) / (f64)p->buf[b].extent);
    }
    return sum;
}
