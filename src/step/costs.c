/* costs.c - see costs.h: a table of measured seconds, and what tasks cost by it. */
#include "step/costs.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "model/layer.h"
#include "step/planner.h"

const char *const cost_names[COST_NKIND] = {
    [TASK_FWD] = "fwd", [TASK_BWD] = "bwd", [TASK_MERGE] = "merge", [TASK_NORM] = "norm", [TASK_UPDATE] = "update",
    [TASK_PREP] = "prep", [TASK_ZERO] = "zero", [TASK_DW] = "dw", [TASK_GATHER] = "gather", [TASK_DGATHER] = "dgather",
    [TASK_DX] = "dx", [COST_AROUND] = "around", [COST_WAKE] = "wake",
    [COST_SEEN] = "seen", [COST_TASK] = "task", [COST_LATENCY] = "latency", [COST_BYTE] = "byte"};

/* Sizes of what an op reads and writes.  Of an embedding the rows of its table count: they decide whether it fits a cache. */
u64 costs_shape(const struct net *n, i32 l, i32 grain) {
    const struct op *op = &n->op[l];
    const struct op_spec *s = &op->spec;
    const i64 shared = s->share >= 0 ? n->op[s->share].ntheta : -1, sends = op->out >= 0 && buf_sends(&n->buf[op->out]);
    const i64 sizes[] = {op->T, op->I, op->F, op->ntheta, op->nderived, grain, s->units, s->act, s->vocab, s->steps,
                         s->nquantile, s->how, shared, sends, op_is_chain(op)};
    u64 hash = hash_bytes(HASH_SEED, s->layer, strlen(s->layer));
    hash = hash_bytes(hash, sizes, sizeof sizes);
    for (i32 i = 0; i < NET_IN; i++) {
        const struct buf *b = s->in[i] >= 0 ? &n->buf[s->in[i]] : NULL;
        const i64 in[] = {b ? b->T : -1, b ? b->F : -1, b && buf_sends(b) && b->consumer == l};
        hash = hash_bytes(hash, in, sizeof in);
    }
    return hash_bytes(hash, &s->options, sizeof s->options);
}

/* ------------------------------------------------------------------ the table ----------------------------------------------- */

static bool same_work(const struct cost *a, const struct cost *b) {
    return a->shape == b->shape && a->kind == b->kind && a->busy == b->busy && a->members == b->members &&
           a->steps == b->steps;
}

const struct cost *costs_find(const struct costs *c, const struct cost *like) {
    for (i32 i = 0; i < c->n; i++)
        if (same_work(&c->at[i], like) && c->at[i].size == like->size) return &c->at[i];
    return NULL;
}

void costs_put(struct costs *c, struct cost what) {
    if (c->n < COSTS_MAX && !costs_find(c, &what)) c->at[c->n++] = what;
}

const struct cost *costs_nearest(const struct costs *c, const struct cost *like, bool smaller) {
    const struct cost *best = NULL;
    for (i32 i = 0; i < c->n; i++) {
        const struct cost *k = &c->at[i];
        if (!same_work(k, like) || (smaller ? k->size > like->size : k->size < like->size)) continue;
        if (!best || (smaller ? k->size > best->size : k->size < best->size)) best = k;
    }
    return best;
}

static f64 interpolate(const struct costs *c, const struct cost *like) {
    const struct cost *low = costs_nearest(c, like, true), *high = costs_nearest(c, like, false);
    const f64 size = (f64)like->size;
    if (!low && !high) return -1;
    if (!low) return high->seconds * size / (f64)high->size;
    if (low->size == like->size) return low->seconds;
    if (!high) return low->seconds * size / (f64)low->size;
    return low->seconds + (high->seconds - low->seconds) * (size - (f64)low->size) / (f64)(high->size - low->size);
}

/* Seconds of busy workers against a worker alone, at the size measured that is nearest. */
static f64 crowding(const struct costs *c, const struct cost *like) {
    const struct cost *near = costs_nearest(c, like, true);
    if (!near) near = costs_nearest(c, like, false);
    if (!near) return 1;
    struct cost alone = *near;
    alone.busy = false;
    const f64 s = interpolate(c, &alone);
    return s > 0 && near->seconds > 0 ? near->seconds / s : 1;
}

f64 costs_get(const struct costs *c, const struct cost *like) {
    struct cost alone = *like;
    if (!like->busy || costs_find(c, like)) return interpolate(c, like);
    alone.busy = false;
    const f64 s = interpolate(c, &alone);
    return s < 0 ? interpolate(c, like) : s * crowding(c, like);
}

/* ------------------------------------------------------------------ tasks --------------------------------------------------- */

/* Elements of theta or a gradient that a task over a range touches. */
static i64 touched(const struct plan *p, const struct task *t) {
    if (t->kind == TASK_ZERO) return plan_touched_bytes(p, t->lo, t->hi, 1) / 4 * ceil_div(t->box.b1 - t->box.b0, p->grain);
    return t->kind == TASK_MERGE ? plan_touched_bytes(p, t->lo, t->hi, merge_grains(p, t, t->node_b)) / 4 : t->hi - t->lo;
}

/* Tasks over rows and steps of an op. */
static bool is_product(const struct task *t) { return task_walks(t) || t->kind == TASK_DW || t->kind == TASK_DX; }

struct cost costs_key(const struct plan *p, const struct net *n, const struct task *t) {
    struct cost k = {.kind = t->kind, .size = 1, .members = t->members > 1 ? t->members : 0};
    if (task_is_chunk(t, n)) k.steps = (t->box.t1 - t->box.t0) * (t->kind == TASK_BWD && t->box.t0 == 0 ? -1 : 1);
    if (is_product(t)) k.size = t->box.b1 - t->box.b0;
    else if (t->kind != TASK_PREP) k.size = touched(p, t);
    if (is_product(t) || t->kind == TASK_PREP) k.shape = costs_shape(n, t->op, p->grain);
    else if (t->kind == TASK_UPDATE) k.shape = (u64)netplan(p)->nstate;
    return k;
}

f64 costs_amount(const struct task *t) {
    return is_product(t) ? t->box.t1 - t->box.t0 : 1;
}

/* Of the slowest member of a team, or of the one that did the work of all (exec/pace.h). */
static f64 team_seconds(const struct plan *p, u32 first, const f64 *seconds) {
    f64 most = seconds[first];
    for (u32 k = 1; k < p->task[first].members; k++) most = dmax(most, seconds[first + k]);
    return most;
}

/* A task that tells nothing of others of its kind: of another rank, which measures for itself; of a chain; a copy of a split op's
 * panels; a backward pass without the weight gradient, which is made in parts. */
static bool is_special(const struct plan *p, const struct net *n, const struct task *t) {
    if (p->place[t->device].rank > 0 || t->kind == TASK_GATHER || t->kind == TASK_DGATHER) return true;
    if (t->kind == TASK_BWD && netplan(p)->parted.n > 0 && netplan(p)->parted.op == t->op) return true;
    return task_walks(t) && op_is_chain(&n->op[t->op]);
}

/* Sums the tasks of one key: merges that were done together are seen as one. */
static void learn_key(struct costs *c, const struct plan *p, const struct net *n, const struct cost *key,
                      u32 first, const f64 *seconds, bool busy) {
    struct cost found = key[first];
    f64 sum = 0, all = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        if (!same_work(&key[i], &found) || key[i].size != found.size || is_special(p, n, &p->task[i])) continue;
        if (i < first) return; /* an earlier task has the key */
        if (p->task[i].member > 0) continue;
        sum += team_seconds(p, i, seconds);
        all += costs_amount(&p->task[i]);
    }
    found.busy = busy;
    found.seconds = sum / all;
    if (sum > 0) costs_put(c, found);
}

err costs_learn(struct costs *c, const struct plan *p, const struct net *n, const f64 *seconds, bool busy) {
    struct cost *key;
    NEW(key, p->ntask + 1);
    for (u32 i = 0; i < p->ntask; i++) key[i] = costs_key(p, n, &p->task[i]);
    for (u32 i = 0; i < p->ntask; i++)
        if (!is_special(p, n, &p->task[i])) learn_key(c, p, n, key, i, seconds, busy);
    mem_free(key);
    return 0;
}

void costs_correct(struct costs *c, const struct costs *now) {
    for (i32 i = 0; i < c->n; i++) {
        const struct cost *found = costs_find(now, &c->at[i]);
        if (found) c->at[i].seconds = found->seconds;
    }
    for (i32 i = 0; i < now->n; i++) costs_put(c, now->at[i]); /* which leaves those that were found */
}

/* The weight gradient has as many multiplications as the forward pass. */
static f64 weight_part(const struct plan *p, const struct net *n, const struct op *op) {
    if (!op->layer->flops) return 0;
    return op->layer->flops(op, n, p->B, false) / op->layer->flops(op, n, p->B, true);
}

/* Recurrent layers compute the weight gradient as one product over all steps, in the chunk that backward reaches last. */
static f64 part_of_chunk(const struct plan *p, const struct net *n, const struct task *t) {
    const struct op *op = &n->op[t->op];
    const f64 part = (f64)(t->box.t1 - t->box.t0) / op->T;
    if (!task_is_chunk(t, n)) return 1;
    if (t->kind == TASK_FWD || !op->layer->team) return part;
    const f64 dw = weight_part(p, n, op);
    return part * (1 - dw) + (t->box.t0 == 0 ? dw : 0);
}

/* Of a split op: the products of a step, of the inputs' gradient over some steps, of the weights'. */
static f64 part_of_split(const struct plan *p, const struct net *n, const struct task *t) {
    const struct op *op = &n->op[t->op];
    const f64 steps = (f64)(t->box.t1 - t->box.t0) / op->T, dw = weight_part(p, n, op);
    const f64 dx = op_sends_dx(n, op) ? (1 - dw) * op->I / (op->I + op->F) : 0;
    return t->kind == TASK_DW ? dw : t->kind == TASK_FWD ? steps : steps * (t->kind == TASK_DX ? dx : 1 - dw - dx);
}

f64 plan_part_of_op(const struct plan *p, const struct net *n, const struct task *t) {
    const struct op *op = &n->op[t->op];
    if (t->split) return part_of_split(p, n, t);
    const bool parted = netplan(p)->parted.n > 0 && t->op == netplan(p)->parted.op && op->layer->flops;
    if (!parted || t->kind == TASK_FWD) return part_of_chunk(p, n, t);
    const f64 dw = weight_part(p, n, op);
    return t->kind == TASK_DW ? dw / t->node_b : 1 - dw;
}

/* Alone, busy, or between. */
static f64 under_load(const struct costs *c, struct cost key, f64 load) {
    const f64 alone = costs_get(c, &key);
    key.busy = true;
    const f64 busy = costs_get(c, &key);
    return alone < 0 ? busy : alone + load * (busy - alone);
}

f64 costs_of(const struct costs *c, const struct plan *p, const struct net *n, const struct task *t, f64 load) {
    struct cost key = costs_key(p, n, t);
    const f64 exact = t->kind == TASK_BWD && netplan(p)->parted.n > 0 ? -1 : under_load(c, key, load);
    if (exact >= 0) return exact * costs_amount(t);
    if (!is_product(t)) return -1;
    key.kind = t->kind == TASK_FWD ? TASK_FWD : TASK_BWD; /* measured as one pass over all steps */
    key.steps = 0;
    const f64 step = under_load(c, key, load);
    return step < 0 ? -1 : step * n->op[t->op].T * plan_part_of_op(p, n, t);
}
