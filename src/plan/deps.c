/* deps.c - edges from uses: two tasks that touch the same range of a buffer, one of them writing, keep the plan's order.
 *
 *     first      then R        then W, RW, SUM
 *     R          -             edge (write after read)
 *     W RW SUM   edge          edge (write after write)
 *
 * Two SUMs into the same vector keep their order too: floats do not commute to the bit.  What SUM gives is that contributions of
 * different grains go to different vectors, which the tree of merge.c adds.
 * A range that was overwritten as a whole hides what came before it: those edges follow from the ones that are kept.
 * Members of a team have no edge among them; a range that a team overwrote hides what came before the whole team. */
#include <string.h>

#include "base/mem.h"
#include "plan/plan.h"

enum { NOTHING = 0xffffffffu };

/* The uses of each buffer as a list from last to first, and those that write as another: a read needs those alone. */
struct history {
    u32 *last, *last_write;     /* [nbuf] use */
    u32 *before, *before_write; /* [nuse] use of the same buffer before this one, and the last one that writes */
    u32 *task_of; /* [nuse] */
    u32 *seen;    /* [ntask] 1 + the task that has an edge to it already */
    u32 *dep;
    u32 ndep;
    i64 cap;
};

/* v is of everything that u is of. */
static bool covers(const struct use *v, const struct use *u) {
    bool steps = v->t1 == 0 || (u->t1 > 0 && v->t0 <= u->t0 && v->t1 >= u->t1);
    return v->lo <= u->lo && v->hi >= u->hi && steps;
}

static err edge(struct history *h, u32 to, u32 from) {
    if (h->seen[from] == to + 1) return 0;
    h->seen[from] = to + 1;
    GROW(h->dep, h->ndep, h->cap);
    h->dep[h->ndep++] = from;
    return 0;
}

static err look_back(struct history *h, const struct plan *p, u32 task, const struct use *u) {
    u32 team = plan_team_first(p, task), hidden = 0; /* tasks below `hidden` are */
    const bool writes = use_writes(u);
    const u32 *before = writes ? h->before : h->before_write;
    for (u32 k = writes ? h->last[u->buf] : h->last_write[u->buf]; k != NOTHING; k = before[k]) {
        const struct use *v = &p->use[k];
        if (h->task_of[k] < hidden) return 0;
        if (h->task_of[k] >= team || !use_meets(u, v)) continue;
        TRY(edge(h, task, h->task_of[k]));
        if (use_writes(v) && covers(v, u)) hidden = plan_team_first(p, h->task_of[k]);
    }
    return 0;
}

static err derive(struct plan *p, struct history *h) {
    for (u32 i = 0; i < p->nbuf; i++) h->last[i] = h->last_write[i] = NOTHING;
    for (u32 t = 0; t < p->ntask; t++) {
        struct task *task = &p->task[t];
        task->dep0 = h->ndep;
        for (u32 k = task->use0; k < task->use0 + task->nuse; k++) TRY(look_back(h, p, t, &p->use[k]));
        task->ndep = h->ndep - task->dep0;
        for (u32 k = task->use0; k < task->use0 + task->nuse; k++) {
            const u32 buf = p->use[k].buf;
            h->before[k] = h->last[buf];
            h->before_write[k] = h->last_write[buf];
            h->last[buf] = k;
            if (use_writes(&p->use[k])) h->last_write[buf] = k;
            h->task_of[k] = t;
        }
    }
    ARENA_NEW(&p->arena, p->dep, h->ndep + 1);
    if (h->ndep) memcpy(p->dep, h->dep, h->ndep * sizeof *p->dep);
    p->ndep = h->ndep;
    return 0;
}

err plan_deps(struct plan *p) {
    struct history h = {0};
    struct arena a = {0};
    h.last = arena_new(&a, (p->nbuf + 1) * sizeof *h.last);
    h.last_write = arena_new(&a, (p->nbuf + 1) * sizeof *h.last_write);
    h.before = arena_new(&a, (p->nuse + 1) * sizeof *h.before);
    h.before_write = arena_new(&a, (p->nuse + 1) * sizeof *h.before_write);
    h.task_of = arena_new(&a, (p->nuse + 1) * sizeof *h.task_of);
    h.seen = arena_new(&a, (p->ntask + 1) * sizeof *h.seen);
    err e = h.last && h.last_write && h.before && h.before_write && h.task_of && h.seen ? derive(p, &h) : -E601;
    mem_free(h.dep);
    arena_free(&a);
    return e;
}
