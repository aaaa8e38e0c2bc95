/* check.c - is this a step?  Every op, merge and update exactly once, in an order that gives the bits of the serial plan.
 *
 * Two facts are enough.  (1) The boxes and ranges of each kind of task tile what they must cover.  (2) Every derived edge leads
 * forward in the order of the serial plan (prep < forward by op < zero < backward by op, reversed, each before its dw < merge by
 * level < norm < update). Then any two tasks that touch the same range run in the serial order, on any device.
 * Where rows of an op are done in chunks of its steps, the chunks must follow each other in steps.
 * A team counts as the one task that its members are together (the layer's contract gives its bits): member 0 stands for it, and
 * the members are all there, next to each other, on devices of one process, so that each of them can start.  The members of a
 * split op may be on any devices, but on the same ones in all its tasks: each keeps what it computed for its panels. */
#include <stdlib.h>

#include "base/mem.h"
#include "model/layer.h"
#include "plan/exchange.h"
#include "step/planner.h"

/* One task as an interval of what its group must cover, rows or elements of theta, and the steps that it does of these rows. */
struct cover {
    u32 group, task;
    i64 t0, t1, lo, hi; /* zero: [t0,t1) of theta */
};

_Static_assert(NET_OPS < 99, "forward, zero and backward have numbers of their own in serial_order");

enum { KINDS = TASK_NKIND + PLAN_PARTS, GROUPS = KINDS * NET_OPS, NOWHERE = 0x7fffffff }; /* each part of a dw is a kind */

static int by_group_and_place(const void *a, const void *b) {
    const struct cover *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->lo != y->lo) return x->lo < y->lo ? -1 : 1;
    if (x->t0 != y->t0) return x->t0 < y->t0 ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

/* The pairs of the merge tree, and which of them takes a gradient vector away: each but vector 0 is the second one of a pair. */
struct pairs {
    struct merge_pair *pair; /* [ngrain] */
    i32 n, ngrain, *of; /* [ngrain] */
};

static i32 pair_index(const struct pairs *p, i32 a, i32 b) {
    return b > 0 && b < p->ngrain && p->pair[p->of[b]].a == a ? p->of[b] : -1;
}

static bool find_pairs(i32 ngrain, struct arena *a, struct pairs *out) {
    *out = (struct pairs){.ngrain = ngrain};
    out->pair = arena_new(a, ((size_t)ngrain + 1) * sizeof *out->pair);
    out->of = arena_new(a, ((size_t)ngrain + 1) * sizeof *out->of);
    if (!out->pair || !out->of) return false;
    out->n = merge_pairs(ngrain, out->pair);
    for (i32 k = 0; k < out->n; k++) out->of[out->pair[k].b] = k;
    return true;
}

/* True for tasks over rows; all others cover a range of theta. */
static bool by_rows(u8 kind) { return !task_forms[kind].range; }

static i32 ranks_of(const struct plan *p, const struct task *t) {
    i32 n = 1;
    for (i32 k = 1; k < t->members; k++) n += p->place[t[k].device].rank != p->place[t[k - 1].device].rank;
    return n;
}

/* True if two tasks belong to the same team, or follow each other in the same chain. */
static bool same_work(const struct task *a, const struct task *b, bool chain) {
    if (a->kind != b->kind || a->op != b->op || a->members != b->members) return false;
    if (chain) return b->box.b0 == a->box.b1;
    return a->box.b0 == b->box.b0 && a->box.b1 == b->box.b1 && a->box.t0 == b->box.t0 && a->box.t1 == b->box.t1;
}

/* What is wrong with member i of a team or chain; NULL = nothing. The others must follow the first one, on other devices. */
static const char *members(const struct plan *p, u32 i, bool chain) {
    const struct task *t = &p->task[i];
    if (t->member >= t->members || (!chain && t->members > TEAM_MAX)) return "this member is outside of its team or chain";
    if (t->member > 0) {
        const bool follows = i > 0 && same_work(t - 1, t, chain) && t[-1].member + 1 == t->member;
        return follows ? NULL : "members of a team or a chain must follow each other from 0";
    }
    if (i + t->members > p->ntask) return "members of this team or chain are missing";
    for (u32 k = 1; k < t->members; k++) {
        if (!same_work(&t[k - 1], &t[k], chain) || t[k].member != k) return "members of this team or chain are missing";
        for (u32 j = 0; j < k; j++)
            if (t[j].device == t[k].device) return "two members of this team or chain are on one device";
    }
    return NULL;
}

/* What is wrong with the chain at task i; NULL = nothing. Its members have all rows, and every rank has some of them. */
static const char *chain(const struct plan *p, u32 i) {
    const struct task *t = &p->task[i];
    if (t->members <= 1 && p->nrank > 1) return "every rank must have slices of each chain";
    if (t->members <= 1) return t->box.b0 == 0 && t->box.b1 == p->B ? NULL : "time slices must run together";
    const char *bad = members(p, i, true);
    if (bad || t->member > 0) return bad;
    if (t->box.b0 != 0 || t[t->members - 1].box.b1 != p->B) return "members of this team or chain are missing";
    for (u32 k = 1; k < t->members; k++)
        if (p->place[t[k].device].rank < p->place[t[k - 1].device].rank) return "slices of a rank must follow each other";
    return ranks_of(p, t) == p->nrank ? NULL : "every rank must have slices of each chain";
}

/* True for the tasks of an op whose units ranks share. */
static bool is_split(const struct plan *p, const struct task *t) {
    const bool some = task_walks(t) || t->kind == TASK_DW || t->kind >= TASK_GATHER;
    return some && netplan(p)->at.units[t->op] != PBUF_NONE;
}

/* The grains that a task's rows touch, of those that there are. */
static void grains_of(const struct plan *p, const struct task *t, i32 *g0, i32 *g1) {
    *g0 = imax(0, t->box.b0 / p->grain);
    *g1 = imin(p->ngrain, ceil_div(t->box.b1, p->grain));
}

/* The first split task of each op over each grain, a team: [nop][ngrain]; NULL without memory. */
static u32 *find_firsts(const struct plan *p, const struct net *n, struct arena *a) {
    i32 g0, g1;
    u32 *firsts = arena_new(a, ((size_t)n->nop * (size_t)p->ngrain + 1) * sizeof *firsts);
    for (u32 i = p->ntask; firsts && i-- > 0;) {
        const struct task *t = &p->task[i];
        if (!t->split || t->op >= n->nop) continue;
        grains_of(p, t, &g0, &g1);
        for (i32 g = g0; g < g1; g++) firsts[t->op * p->ngrain + g] = i;
    }
    return firsts;
}

/* True if the members are on the devices of this op's first split task over these rows. */
static bool same_places(const struct plan *p, const u32 *firsts, const struct task *t) {
    i32 g0, g1;
    grains_of(p, t, &g0, &g1);
    u32 at = (u32)(t - p->task);
    for (i32 g = g0; g < g1; g++) at = (u32)lmin(at, firsts[t->op * p->ngrain + g]);
    const struct task *first = &p->task[at];
    bool same = first->members == t->members && first->box.b0 <= t->box.b0 && first->box.b1 >= t->box.b1;
    for (u32 k = 0; k < t->members && same; k++) same = first[k].device == t[k].device;
    return same;
}

static const char *split_team(const struct plan *p, const struct net *n, const u32 *firsts, u32 i) {
    const struct task *t = &p->task[i];
    const bool gathers = t->kind == TASK_GATHER || t->kind == TASK_DGATHER;
    const bool one_step = t->box.t1 == t->box.t0 + 1, all = t->box.t0 == 0 && t->box.t1 == n->op[t->op].T;
    if (!one_step && (task_walks(t) || gathers)) return "a task of an op whose units ranks share has one step";
    if (gathers) return t->members > 1 ? "this task has no members" : NULL;
    if (!t->split || t->members < 2) return "ranks share the units of this op: a member as split 0/2 is needed";
    if (t->kind == TASK_DW && !all) return "a weight gradient has all steps";
    const char *bad = members(p, i, false);
    if (bad || t->member > 0 || same_places(p, firsts, t)) return bad;
    return "members of an op must be on the same devices in all its tasks";
}

/* Describes what is wrong with the team or chain that starts at task i, or with a member without a team; NULL = nothing. */
static const char *team(const struct plan *p, const struct net *n, const u32 *firsts, u32 i) {
    const struct task *t = &p->task[i];
    const bool walks = task_walks(t) && t->op < n->nop;
    if (t->op < n->nop && is_split(p, t)) return split_team(p, n, firsts, i);
    if (t->split || t->kind >= TASK_GATHER) return "ranks of this plan do not share the units of this op";
    if (walks && op_is_chain(&n->op[t->op])) return chain(p, i);
    if (task_is_chunk(t, n) && !n->op[t->op].layer->steps) return "this op cannot be done in parts of its steps";
    if (t->members <= 1) return t->member ? "this member has no team" : NULL;
    if (!walks || !n->op[t->op].layer->team) return "this op does not support tensor parallelism";
    const char *bad = members(p, i, false);
    for (u32 k = 1; !bad && t->member == 0 && k < t->members; k++)
        if (p->place[t[k].device].rank != p->place[t->device].rank) bad = "members of a team must share memory: one process";
    return bad;
}

/* Group of a task (merges: one per pair, after the others); false when a range or an index is outside. */
static bool classify(const struct plan *p, const struct net *n, const struct pairs *pairs, const struct task *t,
                     struct cover *out) {
    if (t->op >= n->nop) return false;
    if (t->member > 0 && !op_is_chain(&n->op[t->op])) { /* checked with its team */
        *out = (struct cover){.group = NOWHERE};
        return true;
    }
    const bool walks = task_forms[t->kind].steps, zeroes = t->kind == TASK_ZERO;
    out->t0 = walks ? t->box.t0 : zeroes ? t->lo : 0;
    out->t1 = walks ? t->box.t1 : zeroes ? lmax(1, t->hi) : 1;
    out->group = (u32)t->kind * NET_OPS + (by_rows(t->kind) && !zeroes ? t->op : 0);
    if (t->kind == TASK_DW && !t->split) {
        if (t->op != netplan(p)->parted.op || t->node_b != netplan(p)->parted.n || t->node_a < 0 ||
            t->node_a >= netplan(p)->parted.n)
            return false;
        out->group = (u32)(TASK_NKIND + t->node_a) * NET_OPS + t->op;
    }
    out->lo = by_rows(t->kind) ? t->box.b0 : t->lo;
    out->hi = by_rows(t->kind) ? t->box.b1 : t->hi;
    i64 end = by_rows(t->kind) ? p->B : netplan(p)->ntheta, step = by_rows(t->kind) ? p->grain : LANES;
    if (t->kind == TASK_NORM) step = netplan(p)->norm_block;
    if (zeroes && (out->t0 < 0 || out->t1 <= out->t0 || out->t1 > lmax(1, netplan(p)->ntheta))) return false;
    if (walks && (out->t0 < 0 || out->t1 <= out->t0 || out->t1 > n->op[t->op].T)) return false;
    if (t->kind == TASK_MERGE) {
        const i32 k = pair_index(pairs, t->node_a, t->node_b);
        if (k < 0) return false;
        out->group = GROUPS + (u32)k;
    }
    return out->lo >= 0 && out->hi > out->lo && out->hi <= end && out->lo % step == 0 && (out->hi % step == 0 || out->hi == end);
}

/* Length of the range that the tasks of this group must cover: rows, or elements of theta; 0 = the plan must have none. */
static i64 wanted(const struct plan *p, const struct net *n, u32 group) {
    if (group >= GROUPS) return netplan(p)->train ? netplan(p)->ntheta : 0;
    u32 kind = group / NET_OPS, l = group % NET_OPS;
    bool first = l == 0, train = netplan(p)->train && netplan(p)->ntheta > 0;
    if (kind == TASK_FWD) return l < (u32)n->nop ? p->B : 0;
    if (kind == TASK_PREP) return l < (u32)n->nop && n->op[l].nderived > 0 ? p->B : 0;
    if (kind == TASK_BWD) return l < (u32)n->nop && netplan(p)->train && op_has_backward(n, &n->op[l]) ? p->B : 0;
    const bool split = l < (u32)n->nop && netplan(p)->at.units[l] != PBUF_NONE;
    const bool back = split && netplan(p)->train && op_has_backward(n, &n->op[l]);
    if (kind == TASK_GATHER) return split ? p->B : 0;
    if (kind == TASK_DGATHER || kind == TASK_DW) return back ? p->B : 0;
    if (kind == TASK_DX) return back && op_sends_dx(n, &n->op[l]) ? p->B : 0;
    if (kind >= TASK_NKIND) return l == (u32)netplan(p)->parted.op && kind < (u32)(TASK_NKIND + netplan(p)->parted.n) ? p->B : 0;
    if (kind == TASK_ZERO) return first && netplan(p)->train ? p->B : 0;
    if (kind == TASK_NORM || kind == TASK_UPDATE) return first && train ? netplan(p)->ntheta : 0;
    return 0;
}

/* Steps of an op, elements of a gradient to zero; 1 for other tasks. */
static i64 steps_of(const struct net *n, u32 group) {
    const u32 kind = group / NET_OPS;
    if (kind == TASK_ZERO) return lmax(1, n->ntheta);
    return kind < TASK_NKIND && task_forms[kind].steps ? n->op[group % NET_OPS].T : 1;
}

/* The intervals of a group, from `at` on: each row once, of each the steps in chunks that follow each other.  *done: how far. */
static const char *tile_group(const struct cover *cover, u32 npart, u32 g, i64 T, u32 *at, i64 *done, u32 *task) {
    i64 to = 0, t = T;
    *done = 0;
    for (; *at < npart && cover[*at].group == g; ++*at) {
        const struct cover *c = &cover[*at];
        *task = c->task;
        if (t < T && (c->lo != *done || c->hi != to)) return "chunks of steps are not of the same rows";
        if (t == T && c->lo < *done) return "part of this task is done twice";
        if (t == T && c->lo > *done) return "something before this task's range is left out";
        if (t == T) to = c->hi, t = 0;
        if (c->t0 < t) return "part of this task is done twice";
        if (c->t0 > t) return "something before this task's range is left out";
        t = c->t1;
        if (t == T) *done = to;
    }
    return NULL;
}

static const char *tiles(const struct plan *p, const struct net *n, const struct cover *cover, u32 npart, i32 npair, u32 *task) {
    u32 at = 0;
    for (u32 g = 0; g < GROUPS + (u32)npair; g++) {
        const i64 end = wanted(p, n, g);
        const u32 first = at;
        i64 done = 0;
        if (end == 0 && at < npart && cover[at].group == g) {
            *task = cover[at].task;
            return "this task has nothing to do in this plan";
        }
        const char *bad = end > 0 ? tile_group(cover, npart, g, steps_of(n, g), &at, &done, task) : NULL;
        if (bad) return bad;
        if (end == 0 || done == end) continue;
        if (at > first) return "something after this task's range is left out";
        *task = p->ntask;
        return "an op, a merge or an update is missing";
    }
    return NULL;
}

/* Place of a task in the serial order; tasks of equal place never touch the same range.  Chunks of an op follow each other. */
static f64 serial_order(const struct net *n, const struct task *t, const struct pairs *pairs) {
    const f64 T = task_forms[t->kind].steps || t->split ? n->op[t->op].T : 1;
    switch (t->kind) {
        case TASK_PREP:
            return 0;
        case TASK_FWD:
            return 1 + t->op + t->box.t0 / T;
        case TASK_ZERO:
            return 100;
        case TASK_BWD:
            return 200 - t->op + (T - t->box.t1) / T;
        case TASK_GATHER:
            return 1 + t->op + (t->box.t1 - 0.5) / T;
        case TASK_DGATHER:
            return 200 - t->op + (T - t->box.t0 - 0.5) / T;
        case TASK_DX:
            return 200 - t->op + (T - t->box.t0 - 0.25) / T;
        case TASK_DW:
            if (t->split) return 200 - t->op + (T - 0.125) / T;
            return 200.5 - t->op + 0.4 * t->node_a / t->node_b;
        case TASK_MERGE:
            return 300 + pairs->pair[pair_index(pairs, t->node_a, t->node_b)].level;
        case TASK_NORM:
            return 400;
        default:
            return 500;
    }
}

/* order: [ntask] scratch. */
static const char *ordered(const struct plan *p, const struct net *n, const struct pairs *pairs, f64 *order, u32 *task) {
    for (u32 i = 0; i < p->ntask; i++) order[i] = serial_order(n, &p->task[i], pairs);
    for (u32 i = 0; i < p->ntask; i++)
        for (u32 k = p->task[i].dep0; k < p->task[i].dep0 + p->task[i].ndep; k++)
            if (order[p->dep[k]] >= order[i]) {
                *task = i;
                return "this task comes after one that needs its result";
            }
    return NULL;
}

/* Do two tasks, one after the other, share what only their op reads: what it keeps for backward, its scratch? */
static bool share_memory(const struct plan *p, const struct task *a, const struct task *b) {
    for (u32 i = a->use0; i < a->use0 + a->nuse; i++)
        for (u32 k = b->use0; k < b->use0 + b->nuse; k++) {
            const struct pbuf *buf = &p->buf[p->use[i].buf];
            bool meet = p->use[i].buf == p->use[k].buf && use_meets(&p->use[i], &p->use[k]);
            if (meet && !buf->local && (buf->kind == PBUF_SAVED || buf->kind == PBUF_SCRATCH)) return true;
        }
    return false;
}

static const char *ranks(const struct plan *p, u32 *task) {
    for (u32 i = 0; p->nrank > 1 && i < p->ntask; i++)
        for (u32 k = p->task[i].dep0; k < p->task[i].dep0 + p->task[i].ndep; k++) {
            const struct task *from = &p->task[p->dep[k]];
            if (p->place[from->device].rank == p->place[p->task[i].device].rank || !share_memory(p, from, &p->task[i])) continue;
            *task = i;
            return "this task needs what its op kept in another process: forward and backward of a row belong to one rank";
        }
    return NULL;
}

const char *plan_check(const struct plan *p, const struct net *n, u32 *task) {
    struct arena a = {0};
    *task = p->ntask;
    const char *bad = NULL;
    struct cover *cover = arena_new(&a, (p->ntask + 1) * sizeof *cover);
    f64 *order = arena_new(&a, (p->ntask + 1) * sizeof *order);
    struct pairs pairs;
    const u32 *firsts = find_firsts(p, n, &a);
    if (!cover || !order || !find_pairs(p->ngrain, &a, &pairs) || !firsts) {
        arena_free(&a);
        return "there is not enough memory to check the plan";
    }
    for (u32 i = 0; i < p->ntask && !bad; i++) {
        bad = team(p, n, firsts, i);
        if (!bad && !classify(p, n, &pairs, &p->task[i], &cover[i]))
            bad = "a range is outside the step, empty, or not cut at a grain";
        cover[i].task = i;
        if (bad) *task = i;
    }
    if (!bad && p->ntask) qsort(cover, p->ntask, sizeof *cover, by_group_and_place);
    if (!bad) bad = tiles(p, n, cover, p->ntask, pairs.n, task);
    if (!bad) bad = ordered(p, n, &pairs, order, task);
    if (!bad) bad = ranks(p, task);
    arena_free(&a);
    return bad;
}
