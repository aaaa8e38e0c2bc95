/* plan.c - the queries that every plan answers, and plan_free. */
#include "plan/plan.h"

#include "base/mem.h"

void plan_free(struct plan *p) {
    if (!p) return;
    arena_free(&p->arena);
    mem_free(p);
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
        if (hi > lo) sum += (i64)pbuf_bytes(&p->buf[b], lo, hi);
    }
    return sum;
}
