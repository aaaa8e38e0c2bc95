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

enum { NOTHING = 0xffffffffu, CELLS = 64, LARGE = 4096 };

/* A use in a list, and what comes before it there. */
struct node {
    u32 use, before, before_write;
};

/* The uses of each cell of a buffer, a part of its extent, as a list from last to first, and those that write as another: a read
 * needs those alone.  A large plan has many cells: uses of other rows or elements are not looked at. */
struct history {
    u32 cells;
    u32 *last, *last_write; /* [nbuf][cells] node */
    struct node *node;
    u32 *task_of; /* [nuse] */
    u32 *seen;    /* [ntask] 1 + the task that has an edge to it already */
    u32 *dep;
    u32 nnode, ndep;
    i64 capnode, cap;
};

/* The cells [*first, *end) of a use, as numbers of lists. */
static void cells_of(const struct history *h, const struct plan *p, const struct use *u, u32 *first, u32 *end) {
    const i64 width = lmax(1, (p->buf[u->buf].extent + h->cells - 1) / h->cells), last = h->cells - 1;
    *first = u->buf * h->cells + (u32)lmin(last, u->lo / width);
    *end = u->buf * h->cells + (u32)lmin(last, (u->hi - 1) / width) + 1;
}

/* v's range contains u's range. */
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

static err look_back(struct history *h, const struct plan *p, u32 task, const struct use *u, u32 cell) {
    u32 team = plan_team_first(p, task), hidden = 0; /* tasks below `hidden` are */
    const bool writes = use_writes(u);
    for (u32 k = writes ? h->last[cell] : h->last_write[cell]; k != NOTHING;
         k = writes ? h->node[k].before : h->node[k].before_write) {
        const u32 of = h->node[k].use;
        const struct use *v = &p->use[of];
        if (h->task_of[of] < hidden) return 0;
        if (h->task_of[of] >= team || !use_meets(u, v)) continue;
        TRY(edge(h, task, h->task_of[of]));
        if (use_writes(v) && covers(v, u)) hidden = plan_team_first(p, h->task_of[of]);
    }
    return 0;
}

static err remember(struct history *h, const struct plan *p, u32 use, u32 cell) {
    GROW(h->node, h->nnode, h->capnode);
    h->node[h->nnode] = (struct node){use, h->last[cell], h->last_write[cell]};
    h->last[cell] = h->nnode;
    if (use_writes(&p->use[use])) h->last_write[cell] = h->nnode;
    h->nnode++;
    return 0;
}

static err derive_task(struct plan *p, struct history *h, u32 t) {
    struct task *task = &p->task[t];
    u32 first, end;
    task->dep0 = h->ndep;
    for (u32 k = task->use0; k < task->use0 + task->nuse; k++) {
        cells_of(h, p, &p->use[k], &first, &end);
        for (u32 c = first; c < end; c++) TRY(look_back(h, p, t, &p->use[k], c));
    }
    task->ndep = h->ndep - task->dep0;
    for (u32 k = task->use0; k < task->use0 + task->nuse; k++) {
        h->task_of[k] = t;
        cells_of(h, p, &p->use[k], &first, &end);
        for (u32 c = first; c < end; c++) TRY(remember(h, p, k, c));
    }
    return 0;
}

static err derive(struct plan *p, struct history *h) {
    for (u32 i = 0; i < p->nbuf * h->cells; i++) h->last[i] = h->last_write[i] = NOTHING;
    for (u32 t = 0; t < p->ntask; t++) TRY(derive_task(p, h, t));
    ARENA_NEW(&p->arena, p->dep, h->ndep + 1);
    if (h->ndep) memcpy(p->dep, h->dep, h->ndep * sizeof *p->dep);
    p->ndep = h->ndep;
    return 0;
}

err plan_deps(struct plan *p) {
    struct history h = {.cells = p->ntask > LARGE ? CELLS : 1};
    struct arena a = {0};
    h.last = arena_new(&a, (p->nbuf * h.cells + 1) * sizeof *h.last);
    h.last_write = arena_new(&a, (p->nbuf * h.cells + 1) * sizeof *h.last_write);
    h.task_of = arena_new(&a, (p->nuse + 1) * sizeof *h.task_of);
    h.seen = arena_new(&a, (p->ntask + 1) * sizeof *h.seen);
    err e = h.last && h.last_write && h.task_of && h.seen ? derive(p, &h) : -E601;
    mem_free(h.node);
    mem_free(h.dep);
    arena_free(&a);
    return e;
}
