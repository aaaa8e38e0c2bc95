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

/* How a buffer is divided: cells of `rows` elements of its extent by `steps` of its repeats, none smaller than the smallest use.
 * first: number of its first list. */
struct cells {
    i64 rows, steps;
    u32 nrow, nstep, first;
};

/* A use in a list, and what comes before it there. */
struct node {
    u32 use, before, before_write;
};

/* The uses of each cell of a buffer as a list from last to first, and those that write as another: a read needs those alone.  A
 * large plan has many cells: uses of other rows, elements or steps are not looked at. */
struct history {
    struct cells *cells;    /* [nbuf] */
    u32 *last, *last_write; /* [cells of all buffers] node */
    struct node *node;
    u32 *task_of; /* [nuse] */
    u32 *seen;    /* [ntask] 1 + the task that has an edge to it already */
    u32 *dep;
    u32 ncell, nnode, ndep;
    i64 capnode, cap;
};

static u32 parts(i64 all, i64 size) { return (u32)lmax(1, (all + size - 1) / size); }

/* The smallest use of each buffer in both directions; then the cells. */
static void divide(struct history *h, const struct plan *p) {
    const i64 most = p->ntask > LARGE ? CELLS : 1;
    for (u32 b = 0; b < p->nbuf; b++) h->cells[b] = (struct cells){.rows = lmax(1, p->buf[b].extent), .steps = p->buf[b].repeat};
    for (u32 k = 0; k < p->nuse; k++) {
        const struct use *u = &p->use[k];
        struct cells *c = &h->cells[u->buf];
        c->rows = lmax(1, lmin(c->rows, u->hi - u->lo));
        if (u->t1 > u->t0) c->steps = lmin(c->steps, u->t1 - u->t0);
    }
    for (u32 b = 0; b < p->nbuf; b++) {
        struct cells *c = &h->cells[b];
        const i64 extent = p->buf[b].extent, repeat = imax(1, p->buf[b].repeat);
        c->rows = lmax(c->rows, (extent + most - 1) / most);
        c->steps = lmax(lmax(1, c->steps), (repeat + most - 1) / most);
        c->nrow = parts(extent, c->rows);
        c->nstep = parts(repeat, c->steps);
        c->first = h->ncell;
        h->ncell += c->nrow * c->nstep;
    }
}

/* The cells of a use: of steps [s0,s1), of rows [r0,r1). */
struct area {
    const struct cells *c;
    u32 s0, s1, r0, r1;
};

static struct area area_of(const struct history *h, const struct use *u) {
    const struct cells *c = &h->cells[u->buf];
    const bool all = u->t1 == 0;
    return (struct area){c, all ? 0 : (u32)lmin(c->nstep - 1, u->t0 / c->steps),
                         all ? c->nstep : (u32)lmin(c->nstep - 1, (u->t1 - 1) / c->steps) + 1,
                         (u32)lmin(c->nrow - 1, u->lo / c->rows), (u32)lmin(c->nrow - 1, (u->hi - 1) / c->rows) + 1};
}

static u32 cell_at(const struct area *a, u32 s, u32 r) { return a->c->first + s * a->c->nrow + r; }

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
    task->dep0 = h->ndep;
    for (u32 k = task->use0; k < task->use0 + task->nuse; k++) {
        const struct area a = area_of(h, &p->use[k]);
        for (u32 s = a.s0; s < a.s1; s++)
            for (u32 r = a.r0; r < a.r1; r++) TRY(look_back(h, p, t, &p->use[k], cell_at(&a, s, r)));
    }
    task->ndep = h->ndep - task->dep0;
    for (u32 k = task->use0; k < task->use0 + task->nuse; k++) {
        const struct area a = area_of(h, &p->use[k]);
        h->task_of[k] = t;
        for (u32 s = a.s0; s < a.s1; s++)
            for (u32 r = a.r0; r < a.r1; r++) TRY(remember(h, p, k, cell_at(&a, s, r)));
    }
    return 0;
}

static err derive(struct plan *p, struct history *h, struct arena *a) {
    ARENA_NEW(a, h->cells, p->nbuf + 1);
    ARENA_NEW(a, h->task_of, p->nuse + 1);
    ARENA_NEW(a, h->seen, p->ntask + 1);
    divide(h, p);
    ARENA_NEW(a, h->last, h->ncell + 1);
    ARENA_NEW(a, h->last_write, h->ncell + 1);
    for (u32 i = 0; i < h->ncell; i++) h->last[i] = h->last_write[i] = NOTHING;
    for (u32 t = 0; t < p->ntask; t++) TRY(derive_task(p, h, t));
    ARENA_NEW(&p->arena, p->dep, h->ndep + 1);
    if (h->ndep) memcpy(p->dep, h->dep, h->ndep * sizeof *p->dep);
    p->ndep = h->ndep;
    return 0;
}

err plan_deps(struct plan *p) {
    struct history h = {0};
    struct arena a = {0};
    const err e = derive(p, &h, &a);
    mem_free(h.node);
    mem_free(h.dep);
    arena_free(&a);
    return e;
}
