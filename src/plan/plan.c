/* plan.c - the queries that every plan answers, and plan_free.
 *
 * The list schedule: devices run their tasks in plan order, each task waits for those it depends on. */
#include "plan/plan.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

void plan_free(struct plan *p) {
    if (!p) return;
    arena_free(&p->arena);
    mem_free(p);
}

bool plan_is_split(const struct plan *p) {
    for (u32 i = 0; i < p->ntask; i++)
        if (p->task[i].split) return true;
    return false;
}

const struct plan_table *plan_table_at(const struct plan *p, i64 at, i64 *end) {
    *end = INT64_MAX;
    for (i32 k = 0; k < p->ntable; k++) {
        const struct plan_table *t = &p->table[k];
        if (at >= t->hi) continue;
        *end = at < t->lo ? t->lo : t->hi;
        return at < t->lo ? NULL : t;
    }
    return NULL;
}

err plan_group(const struct plan *p, bool by_rank, struct arena *a, struct plan_groups *out) {
    const i32 groups = by_rank ? p->nrank : p->ndevice;
    u32 *at;
    ARENA_NEW(a, out->first, groups + 1);
    ARENA_NEW(a, out->task, p->ntask + 1);
    ARENA_NEW(a, at, groups + 1);
    for (i32 pass = 0; pass < 2; pass++) {
        for (u32 i = 0; i < p->ntask; i++) {
            const u32 device = p->task[i].device, g = by_rank ? (u32)p->place[device].rank : device;
            if (pass) out->task[at[g]++] = i;
            else out->first[g + 1]++;
        }
        for (i32 g = 0; g < groups && !pass; g++) out->first[g + 1] += out->first[g];
        memcpy(at, out->first, ((size_t)groups + 1) * sizeof *at);
    }
    return 0;
}

/* Bytes of the ranges of a task's buffers, of each that is not empty; leaves them empty. */
static i64 take_bytes(const struct plan *p, const struct task *t, struct plan_range *range) {
    i64 sum = 0;
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        struct plan_range *r = &range[p->use[k].buf];
        if (r->hi > r->lo) sum += (i64)pbuf_bytes(&p->buf[p->use[k].buf], r->lo, r->hi);
        *r = (struct plan_range){0};
    }
    return sum;
}

static err group_bytes(const struct plan *p, struct arena *a, i64 *bytes) {
    struct plan_groups by;
    struct plan_range *range;
    TRY(plan_group(p, false, a, &by));
    ARENA_NEW(a, range, p->nbuf + 1);
    for (i32 d = 0; d < p->ndevice; d++) {
        bytes[d] = 0;
        for (u32 i = by.first[d]; i < by.first[d + 1]; i++) plan_add_uses(p, &p->task[by.task[i]], range);
        for (u32 i = by.first[d]; i < by.first[d + 1]; i++) bytes[d] += take_bytes(p, &p->task[by.task[i]], range);
    }
    return 0;
}

err plan_device_bytes(const struct plan *p, i64 *bytes) {
    struct arena a = {0};
    const err e = group_bytes(p, &a, bytes);
    arena_free(&a);
    return e;
}

/* When a task can start: its device is free, what it needs is done. */
static f64 ready(const struct plan *p, const struct plan_span *span, const struct task *t, const f64 *free_at) {
    f64 at = free_at[t->device];
    for (u32 k = t->dep0; k < t->dep0 + t->ndep; k++) {
        u32 from = p->dep[k];
        const struct task *before = &p->task[from];
        const bool crosses = p->place[before->device].rank != p->place[t->device].rank;
        const f64 seen = span[from].t1 + (before->device != t->device ? p->waits.seen : 0);
        at = dmax(at, seen + (crosses ? (f64)before->link : 0));
    }
    return at;
}

/* Members of a team run together: from when the last of them can start. */
f64 plan_schedule(const struct plan *p, struct plan_span *span) {
    f64 free_at[MACHINE_DEVICES] = {0}, end = 0;
    struct plan_span *own = NULL;
    if (!span) span = own = mem_alloc((p->ntask + 1) * sizeof *span);
    if (!span) return (f64)INFINITY; /* no plan of which nothing is known is chosen */
    for (i32 d = 1; d < p->ndevice; d++) free_at[d] = p->waits.wake;
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
    return end + p->waits.around + p->waits.fetch;
}
