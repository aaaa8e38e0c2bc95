/* plan.c - what every plan can be asked, whoever made it. */
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
