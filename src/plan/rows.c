/* rows.c - runs of rows, and the slots in which they lie one after another (rows.h). */
#include "plan/rows.h"

#include <stdlib.h>

enum { NO_SLOT = -1, NO_TASK = 0xffffffffu };

/* Places for runs that follow each other on a device. */
struct slot {
    u32 device, last; /* last: task after which it is free */
    i32 rows, at;     /* size, and its first place */
};

struct layout {
    const struct plan *p;
    const bool *mine;
    struct row_map *map;
    struct slot *slot; /* [nrun] */
    i32 nslot, *in;    /* in [nrun]: the slot of a run */
};

bool plan_rows_of(const struct plan *p, const struct task *t, i32 *b0, i32 *b1) {
    struct plan_range r = {0};
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++)
        if (p->buf[p->use[k].buf].by_row) plan_range_add(&r, p->use[k].lo, p->use[k].hi);
    *b0 = (i32)r.lo;
    *b1 = (i32)r.hi;
    return r.hi > r.lo;
}

static bool uses_rows(const struct layout *l, u32 task, i32 *b0, i32 *b1) {
    return (!l->mine || l->mine[task]) && plan_rows_of(l->p, &l->p->task[task], b0, b1);
}

/* ------------------------------------------------------------------ runs ---------------------------------------------------- */

/* Sets of[] to the run of each row: a border lies where no task uses the rows on both sides. */
static err find_runs(struct layout *l, struct arena *a) {
    struct row_map *m = l->map;
    const i32 B = l->p->B;
    i32 *rows, *inside, b0, b1, depth = 0, over = 0; /* changes of the tasks that use a row, that use it and the row before it */
    ARENA_NEW(a, m->of, B + 1);
    ARENA_NEW(a, rows, B + 2);
    ARENA_NEW(a, inside, B + 2);
    for (u32 i = 0; i < l->p->ntask; i++) {
        if (!uses_rows(l, i, &b0, &b1)) continue;
        rows[b0]++, rows[b1]--;
        inside[b0 + 1]++, inside[b1]--;
    }
    for (i32 b = 0; b < B; b++) {
        depth += rows[b];
        over += inside[b];
        m->nrun += depth > 0 && over == 0;
        m->of[b] = depth > 0 ? m->nrun - 1 : -1;
    }
    ARENA_NEW(a, m->run, m->nrun + 1);
    return 0;
}

static void fill_runs(struct layout *l) {
    struct row_map *m = l->map;
    i32 b0, b1;
    for (i32 b = 0; b < l->p->B; b++) {
        if (m->of[b] < 0) continue;
        struct row_run *r = &m->run[m->of[b]];
        if (r->b1 == 0) *r = (struct row_run){.b0 = b, .first = NO_TASK};
        r->b1 = b + 1;
    }
    for (u32 i = 0; i < l->p->ntask; i++) {
        if (!uses_rows(l, i, &b0, &b1)) continue;
        struct row_run *r = &m->run[m->of[b0]];
        const bool new = r->first == NO_TASK;
        const u32 device = l->p->task[i].device;
        r->device = new || r->device == device ? device : ROWS_SHARED;
        if (new) r->first = i;
        r->last = i;
    }
}

/* ------------------------------------------------------------------ slots --------------------------------------------------- */

/* The slot that is free when the run begins; NO_SLOT = none. */
static i32 free_slot(const struct layout *l, const struct row_run *r) {
    for (i32 s = 0; s < l->nslot && r->device != ROWS_SHARED; s++)
        if (l->slot[s].device == r->device && l->slot[s].last < r->first) return s;
    return NO_SLOT;
}

struct begin {
    u32 task;
    i32 run;
};

static int by_task(const void *a, const void *b) {
    const struct begin *x = a, *y = b;
    return x->task < y->task ? -1 : x->task > y->task;
}

static err give_slots(struct layout *l, struct arena *a) {
    const struct row_map *m = l->map;
    struct begin *order;
    ARENA_NEW(a, order, m->nrun + 1);
    ARENA_NEW(a, l->slot, m->nrun + 1);
    ARENA_NEW(a, l->in, m->nrun + 1);
    for (i32 k = 0; k < m->nrun; k++) order[k] = (struct begin){m->run[k].first, k};
    qsort(order, (size_t)m->nrun, sizeof *order, by_task);
    for (i32 i = 0; i < m->nrun; i++) {
        const struct row_run *r = &m->run[order[i].run];
        i32 s = free_slot(l, r);
        if (s == NO_SLOT) s = l->nslot++;
        l->slot[s].device = r->device;
        l->slot[s].last = r->last;
        l->slot[s].rows = imax(l->slot[s].rows, r->b1 - r->b0);
        l->in[order[i].run] = s;
    }
    return 0;
}

/* Slots begin at multiples of a micro-batch, as rows do, so that a micro-batch of a run is one of its places. */
static i32 place_slots(struct layout *l) {
    i32 at = 0, end = 0;
    for (i32 s = 0; s < l->nslot; s++) {
        l->slot[s].at = at;
        end = at + l->slot[s].rows;
        at = round_up(end, imax(1, l->p->grain));
    }
    return end;
}

err plan_rows(const struct plan *p, const bool *mine, bool still, struct arena *a, struct row_map *out) {
    struct layout l = {.p = p, .mine = mine, .map = out};
    *out = (struct row_map){0};
    TRY(find_runs(&l, a));
    fill_runs(&l);
    out->b0 = out->nrun && !still ? out->run[0].b0 : 0;
    out->b1 = out->nrun && !still ? out->run[out->nrun - 1].b1 : p->B;
    TRY(give_slots(&l, a));
    const i32 places = place_slots(&l);
    out->again = !still && places < out->b1 - out->b0;
    out->places = out->again ? places : out->b1 - out->b0;
    for (i32 k = 0; k < out->nrun; k++)
        out->run[k].row0 = out->again ? out->run[k].b0 - l.slot[l.in[k]].at : out->b0;
    return 0;
}
