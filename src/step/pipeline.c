/* pipeline.c - in which order the stages of a pipeline work on their micro-batches.
 *
 *     stage 0   F0 F1 F2 .  .  B0 F3 .  B1 ..      1F1B: a stage that holds as many micro-batches as there are stages from it on
 *     stage 1   .  F0 F1 .  B0 F2 B1 F3 B2 ..      to the last one prefers backward, so no more are alive at a time
 *
 *     stage 0   F0 F1 F2 F3 .  .  .  B0 B1 ..      GPipe: all forward, then all backward
 *
 * The order follows from a simulation with the predicted work of each stage, or from that of a method of placement (placed.c); a
 * device then works in this order and waits where it has to.  Micro-batches are whole grains, so every order has the bits of
 * `serial`. */
#include "base/mem.h"
#include "model/layer.h"
#include "plan/slice.h"
#include "step/planner.h"

/* A run of consecutive ops of one stage, and how far its micro-batches are. */
struct segment {
    i32 l0, l1, stage;
    f64 work;
    i32 fwd, bwd; /* micro-batches done, or under way */
};

struct order {
    struct planner *p;
    const struct piece *c;
    i32 n, m; /* segments, micro-batches */
    struct segment seg[NET_OPS];
    struct slice rows[MACHINE_DEVICES];
    f64 *done[2];         /* [n][m] when forward, backward of a micro-batch by a segment is done */
    f64 free_at[NET_OPS]; /* of each stage */
};

static void find_segments(struct order *o) {
    const struct net *n = o->p->net;
    o->n = 0;
    for (i32 l = 0; l < n->nop; l++) {
        struct segment *s = o->n > 0 ? &o->seg[o->n - 1] : NULL;
        if (!s || s->stage != o->p->stage[l]) {
            s = &o->seg[o->n++];
            *s = (struct segment){.l0 = l, .stage = o->p->stage[l]};
        }
        s->l1 = l + 1;
        s->work += pipeline_work(n, l, o->p->grain);
    }
}

/* When forward (back 0) or backward of the next micro-batch of a segment can start; -1 = not yet, or there is none. */
static f64 ready(const struct order *o, i32 k, i32 back) {
    const struct segment *s = &o->seg[k];
    const i32 m = back ? s->bwd : s->fwd;
    if (m == o->m) return -1;
    f64 at = 0;
    if (back && (!o->p->q->train || s->fwd <= m)) return -1;
    if (back && o->p->q->all_forward && s->fwd < o->m) return -1;
    if (back && k + 1 < o->n) {
        if (o->seg[k + 1].bwd <= m) return -1;
        at = o->done[1][(k + 1) * o->m + m];
    } else if (back) {
        at = o->done[0][k * o->m + m];
    }
    if (!back && k > 0) {
        if (o->seg[k - 1].fwd <= m) return -1;
        at = o->done[0][(k - 1) * o->m + m];
    }
    const i32 alive = s->fwd - s->bwd;
    if (!back && o->p->q->train && !o->p->q->all_forward && alive >= o->n - k) return -1; /* 1F1B */
    return dmax(at, o->free_at[s->stage]);
}

/* The next work of any stage: the earliest, backward first, of forward that of the last segment. */
static bool choose(const struct order *o, i32 *seg, i32 *back, f64 *at) {
    *seg = -1;
    for (i32 b = 1; b >= 0; b--)
        for (i32 k = o->n - 1; k >= 0; k--) {
            const f64 t = ready(o, k, b);
            if (t < 0 || (*seg >= 0 && t >= *at)) continue;
            *seg = k;
            *back = b;
            *at = t;
        }
    return *seg >= 0;
}

err pipeline_zero(struct planner *p, const struct piece *c, i32 l0, i32 l1, i32 j) {
    const struct net *n = p->net;
    if (p->split) return split_zero(p, c, l0, l1, j);
    struct task t = {.kind = TASK_ZERO, .device = planner_device(p, c, p->team.n - 1, j), .box = c->box};
    t.lo = l0 == 0 ? 0 : n->op[l0].theta0;
    t.hi = l1 < n->nop ? n->op[l1].theta0 : n->ntheta;
    return t.hi > t.lo ? planner_task(p, t) : 0;
}

/* Forward or backward tasks of ops [l0,l1) for the rows of c, on device j along the layers. */
static err node_tasks(struct planner *p, const struct piece *c, i32 l0, i32 l1, i32 j, bool back) {
    for (i32 i = l0; i < l1; i++) {
        const i32 l = back ? l1 - 1 - (i - l0) : i;
        if (back && !op_has_backward(p->net, &p->net->op[l])) continue;
        TRY(planner_op(p, (struct task){.kind = back ? TASK_BWD : TASK_FWD, .op = (u16)l}, c, j));
    }
    return 0;
}

/* The tasks of a segment for one micro-batch. */
static err run(const struct order *o, struct segment *s, i32 back) {
    struct planner *p = o->p;
    struct piece c = *o->c;
    const i32 m = back ? s->bwd : s->fwd;
    c.box.b0 = o->rows[m].b0;
    c.box.b1 = o->rows[m].b1;
    if (back && m == 0) TRY(pipeline_zero(p, o->c, s->l0, s->l1, s->stage));
    return node_tasks(p, &c, s->l0, s->l1, s->stage, back);
}

static err roll(struct order *o) {
    i32 k, back;
    f64 at;
    while (choose(o, &k, &back, &at)) {
        struct segment *s = &o->seg[k];
        const f64 end = at + s->work * (back ? BACKWARD_WORK : 1) / (1 + BACKWARD_WORK);
        TRY(run(o, s, back));
        i32 *m = back ? &s->bwd : &s->fwd;
        o->done[back][k * o->m + *m] = o->free_at[s->stage] = end;
        ++*m;
    }
    return 0;
}

static err one_piece(struct planner *p, const struct piece *c, struct order *o) {
    *o = (struct order){.p = p, .c = c};
    o->m = pipeline_rows(p, c, o->rows);
    find_segments(o);
    NEW(o->done[0], (i64)2 * o->n * o->m);
    o->done[1] = o->done[0] + (i64)o->n * o->m;
    const err e = roll(o);
    mem_free(o->done[0]);
    return e;
}

err pipeline_tasks(struct planner *p) {
    struct order *o;
    NEW(o, 1);
    err e = 0;
    for (i32 i = 0; i < p->npiece && e >= 0; i++) e = one_piece(p, &p->piece[i], o);
    mem_free(o);
    return e;
}

/* The tasks of a node of a piece. */
static err run_node(struct planner *p, const struct piece *of, const struct placed *at, i32 node) {
    const i32 cells = p->unit.n * at->micro, unit = node % cells / at->micro, m = node % at->micro;
    const i32 l0 = p->unit.first[unit], l1 = p->unit.first[unit + 1];
    const i32 j = placed_stage(p, unit, at->rows[m].b0 / p->grain);
    struct piece c = *of;
    c.box.b0 = at->rows[m].b0;
    c.box.b1 = at->rows[m].b1;
    if (node >= cells) TRY(pipeline_zero(p, &c, l0, l1, j));
    return node_tasks(p, &c, l0, l1, j, node >= cells);
}

err pipeline_placed(struct planner *p) {
    for (i32 i = 0; i < p->npiece; i++)
        for (i32 k = 0; k < p->placed[i].nnode; k++) TRY(run_node(p, &p->piece[i], &p->placed[i], p->placed[i].node[k]));
    return 0;
}
