/* plan.c - the queries that every plan answers, and plan_free.
 *
 * The list schedule: devices run their tasks in plan order, each task waits for those it depends on. */
#include "plan/plan.h"

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

i64 plan_device_bytes(const struct plan *p, u32 device) {
    struct plan_range *range = mem_alloc((p->nbuf + 1) * sizeof *range);
    i64 sum = 0;
    for (u32 i = 0; range && i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        for (u32 k = t->use0; t->device == device && k < t->use0 + t->nuse; k++) {
            const struct use *u = &p->use[k];
            plan_range_add(&range[u->buf], u->lo, u->hi);
        }
    }
    for (u32 b = 0; range && b < p->nbuf; b++)
        if (range[b].hi > range[b].lo) sum += (i64)pbuf_bytes(&p->buf[b], range[b].lo, range[b].hi);
    mem_free(range);
    return sum;
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
    if (!span) return 0;
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
    return end + p->waits.around;
}
