/* cost.c - predicted seconds of every task, and of the step by a list schedule.
 *
 *     task  = max(flops / rate, bytes / bandwidth) + overhead (+ link time for gradients that come from another rank)
 *     step  = the devices walk their tasks in plan order, each waiting for the tasks it depends on
 *
 * rate and bandwidth are numbers of the machine text, measured or assumed; the constants below are fractions of peak that kernels
 * reach.  Good enough to choose between strategies; `train` reports how far it was off. */
#include <string.h>

#include "base/mem.h"
#include "model/layer.h"
#include "plan/planner.h"

#define TASK_S 0.4e-6  /* calling a task */
#define SYNC_S 0.5e-6  /* seeing that another device is done */
#define START_S 3e-6   /* waking the workers */
#define FWD_SHARE 0.55 /* of the machine's multiply-add rate */
#define BWD_SHARE 0.50
#define CACHE_GAIN 4.0 /* bandwidth inside the caches against memory */

static f64 use_bytes(const struct plan *p, const struct use *u) {
    const struct pbuf *b = &p->buf[u->buf];
    return (f64)b->bytes * (f64)(u->hi - u->lo) / (f64)b->extent;
}

static f64 task_bytes(const struct plan *p, const struct task *t) {
    f64 sum = 0;
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        u8 mode = p->use[k].mode;
        sum += use_bytes(p, &p->use[k]) * (mode == USE_RW || mode == USE_SUM ? 2 : 1);
    }
    return sum;
}

/* Bytes of gradients that a merge reads from the last writer when that is another device. */
static i64 foreign_bytes(const struct plan *p, const struct task *t, i64 *across_ranks) {
    i64 sum = 0;
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++)
        for (u32 d = t->dep0; d < t->dep0 + t->ndep; d++) {
            const struct task *from = &p->task[p->dep[d]];
            if (from->device == t->device) continue;
            i64 lo = p->use[k].hi, hi = p->use[k].lo; /* the part of the range that `from` writes */
            for (u32 j = from->use0; j < from->use0 + from->nuse; j++) {
                const struct use *w = &p->use[j];
                if (w->buf != p->use[k].buf || w->mode == USE_R) continue;
                lo = lmin(lo, lmax(w->lo, p->use[k].lo));
                hi = lmax(hi, lmin(w->hi, p->use[k].hi));
            }
            if (hi <= lo) continue;
            sum += (hi - lo) * 4;
            if (p->place[from->device].rank != p->place[t->device].rank) *across_ranks += (hi - lo) * 4;
        }
    return sum;
}

static f64 flops_of(const struct plan *p, const struct net *n, const struct task *t) {
    (void)p;
    if (t->kind != TASK_FWD && t->kind != TASK_BWD) return 0;
    const struct op *op = &n->op[t->op];
    return op->layer->flops ? op->layer->flops(op, n, t->box.b1 - t->box.b0, t->kind == TASK_BWD) : 0;
}

/* What a device touches in a step decides whether its bytes come from a cache. */
static f64 bandwidth(const struct plan *p, const struct machine *m, u32 device) {
    f64 gbytes = m->device[device].gbytes * 1e9;
    i64 near = m->cache_l2 + (m->ndevice > 0 ? m->cache_l3 / m->ndevice : 0);
    return plan_device_bytes(p, device) < near ? gbytes * CACHE_GAIN : gbytes;
}

void plan_cost(struct plan *p, const struct net *n, const struct machine *m) {
    p->exchange_bytes = 0;
    for (i32 d = 0; d < p->ndevice; d++) {
        f64 speed = bandwidth(p, m, (u32)d), rate = m->device[d].gflops * 1e9;
        for (u32 i = 0; i < p->ntask; i++) {
            struct task *t = &p->task[i];
            if (t->device != (u32)d) continue;
            f64 share = t->kind == TASK_BWD ? BWD_SHARE : FWD_SHARE;
            f64 s = dmax(flops_of(p, n, t) / (rate * share), task_bytes(p, t) / speed) + TASK_S;
            i64 across = 0;
            if (t->kind == TASK_MERGE) p->exchange_bytes += foreign_bytes(p, t, &across);
            if (across > 0) s += (f64)across / (m->link_gbytes * 1e9) + m->link_us * 1e-6;
            t->cost = (f32)s;
        }
    }
    p->predicted = plan_schedule(p, NULL);
}

f64 plan_schedule(const struct plan *p, struct plan_span *span) {
    f64 free_at[MACHINE_DEVICES] = {0}, end = 0;
    struct plan_span *own = NULL;
    if (!span) span = own = mem_alloc((p->ntask + 1) * sizeof *span);
    if (!span) return 0;
    for (i32 d = 1; d < p->ndevice; d++) free_at[d] = START_S;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        f64 at = free_at[t->device];
        for (u32 k = t->dep0; k < t->dep0 + t->ndep; k++) {
            u32 from = p->dep[k];
            at = dmax(at, span[from].t1 + (p->task[from].device != t->device ? SYNC_S : 0));
        }
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
