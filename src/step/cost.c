/* cost.c - predicted seconds of every task, and of the step by a list schedule.
 *
 *     task   max(flops / rate, bytes / bandwidth, activations written) + overhead
 *            + link time for gradients that come from another rank
 *     team   a member has its panels of the units to do, and waits once a step of the sequence for the others' flags
 *     chain  round by round what is expected to run again, of the member that has most of it to do
 *     step   the devices walk their tasks in plan order, each waiting for the tasks it depends on
 *
 * rate and bandwidth are numbers of the machine text, measured or assumed; the constants below are fractions of peak that kernels
 * reach.  Good enough to choose between strategies; `train` reports how far it was off. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/layer.h"
#include "step/costs.h"
#include "step/planner.h"

#define TASK_S 0.4e-6     /* calling a task */
#define RATE_SHARE 0.60   /* of the machine's multiply-add rate that products reach */
#define CACHE_GAIN 3.0    /* bandwidth for a task that fits in the L2 cache, against memory */
#define TEAM_S 0.10e-6    /* members seeing each other's flags and units, once per step of the sequence */
#define TURNS_S 50e-6     /* the same where members take turns on a core */
#define PREP_SHARE 0.35   /* of the memory bandwidth that transposing reaches */

/* Micro-batches whose samples a use of a table covers: each sample touches few rows of it. */
static i32 grains_of(const struct plan *p, const struct task *t, const struct pbuf *b) {
    if (t->kind == TASK_MERGE) return merge_grains(p, t, b->index);
    return b->kind == PBUF_GRAD ? 1 : ceil_div(t->box.b1 - t->box.b0, p->grain);
}

static f64 use_bytes(const struct plan *p, const struct task *t, const struct use *u) {
    const struct pbuf *b = &p->buf[u->buf];
    if (u->t1 > 0 && (t->kind == TASK_GATHER || b->kind == PBUF_UNITS || b->kind == PBUF_DUNITS))
        return pbuf_bytes(b, u->lo, u->hi) * (u->t1 - u->t0) / b->repeat;
    if ((t->kind == TASK_GATHER || t->kind == TASK_DGATHER) && (b->kind == PBUF_SAVED || b->kind == PBUF_SCRATCH))
        return 0; /* it copies what it reads of the exchange buffer */
    const bool touches = t->kind == TASK_FWD || t->kind == TASK_BWD || t->kind == TASK_ZERO || t->kind == TASK_MERGE;
    if (touches && (b->kind == PBUF_GRAD || b->kind == PBUF_THETA))
        return (f64)plan_touched_bytes(p, u->lo, u->hi, grains_of(p, t, b));
    return pbuf_bytes(b, u->lo, u->hi);
}

/* Merges of one range are done block by block in the cache: the vector that is added comes from memory, the sum half of the time.
 * Zeroing reads a line before it writes it. */
static f64 task_bytes(const struct plan *p, const struct task *t) {
    f64 sum = 0;
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        u8 mode = p->use[k].mode;
        bool twice = mode == USE_RW || mode == USE_SUM || t->kind == TASK_ZERO;
        f64 bytes = use_bytes(p, t, &p->use[k]);
        if (t->kind == TASK_MERGE)
            sum += mode == USE_R ? 1.5 * bytes : 0;
        else
            sum += twice ? 2 * bytes : bytes;
    }
    return sum;
}

/* Activations (or their gradients) that a task writes. */
static f64 floats_written(const struct plan *p, const struct task *t) {
    f64 sum = 0;
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        u8 kind = p->buf[p->use[k].buf].kind;
        if (p->use[k].mode != USE_R && (kind == PBUF_ACT || kind == PBUF_DACT)) sum += use_bytes(p, t, &p->use[k]) / 4;
    }
    return sum;
}

/* Bytes that a merge reads of the range that task `from` wrote. */
static i64 written_bytes(const struct plan *p, const struct task *t, const struct use *u, const struct task *from) {
    i64 lo = u->hi, hi = u->lo;
    for (u32 j = from->use0; j < from->use0 + from->nuse; j++) {
        const struct use *w = &p->use[j];
        if (w->buf != u->buf || w->mode == USE_R) continue;
        lo = lmin(lo, lmax(w->lo, u->lo));
        hi = lmax(hi, lmin(w->hi, u->hi));
    }
    return hi > lo ? plan_touched_bytes(p, lo, hi, merge_grains(p, t, p->buf[u->buf].index)) : 0;
}

/* Bytes of gradients that a merge reads from the last writers where those are other devices; no range counts twice. */
static i64 foreign_bytes(const struct plan *p, const struct task *t, i64 *across_ranks) {
    i64 sum = 0;
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        const struct use *u = &p->use[k];
        i64 all = 0, across = 0, most = (u->hi - u->lo) * 4;
        for (u32 d = t->dep0; d < t->dep0 + t->ndep; d++) {
            const struct task *from = &p->task[p->dep[d]];
            if (from->device == t->device) continue;
            i64 bytes = written_bytes(p, t, u, from);
            all += bytes;
            if (p->place[from->device].rank != p->place[t->device].rank) across += bytes;
        }
        sum += lmin(all, most);
        *across_ranks += lmin(across, most);
    }
    return sum;
}

/* Bytes that a member reads of what the rest of its team writes: outputs in forward, saved values in backward. */
static i64 team_bytes(const struct plan *p, const struct task *t) {
    f64 sum = 0;
    for (u32 k = t->use0; t->members > 1 && k < t->use0 + t->nuse; k++) {
        u8 kind = p->buf[p->use[k].buf].kind;
        bool read = t->kind == TASK_FWD ? kind == PBUF_ACT && p->use[k].mode == USE_W : kind == PBUF_SAVED;
        if (read) sum += use_bytes(p, t, &p->use[k]) * (t->members - 1) / t->members;
    }
    return (i64)sum;
}

/* Seconds of one member: its share of the whole task, and the waits for the others. */
static f64 member_seconds(const struct plan *p, const struct net *n, const struct machine *m, const struct task *t, f64 whole) {
    i32 panels = op_panels(&n->op[t->op]);
    f64 wait = t->split ? 0 : p->ndevice > m->ncore ? TURNS_S : TEAM_S;
    return whole * ceil_div(panels, t->members) / panels + wait * (t->box.t1 - t->box.t0);
}

/* A recurrent layer reads its weights once per time step; with few rows it is limited by the cache. Half of backward, the
 * weight gradient, is one product over all steps. */
static f64 few_rows(const struct op *op, const struct task *t, f64 rows) {
    f64 share = rows / (rows + 1);
    if (!op->layer->team) return 1;
    return t->kind == TASK_FWD ? share : 2 * share / (1 + share);
}

/* Bandwidth of a device for a task with this working set. */
static f64 bandwidth(const struct machine *m, const struct device *d, f64 bytes) {
    return d->gbytes * 1e9 * (bytes < (f64)m->cache_l2 ? CACHE_GAIN : 1);
}

/* Seconds of a forward or backward task over n of its rows, all steps. */
static f64 walk(const struct plan *p, const struct net *n, const struct machine *m, const struct task *t, i32 rows) {
    const struct device *d = &m->device[t->device];
    const struct op *op = &n->op[t->op];
    const f64 part = (f64)rows / (t->box.b1 - t->box.b0), bytes = part * task_bytes(p, t);
    const f64 speed = bandwidth(m, d, bytes), rate = d->gflops * d->share * 1e9;
    const f64 all = op->layer->flops ? op->layer->flops(op, n, rows, t->kind != TASK_FWD) : 0;
    const f64 products = all / (rate * RATE_SHARE * few_rows(op, t, rows));
    return dmax(dmax(products, bytes / speed), part * floats_written(p, t) * FLOAT_FLOPS / rate);
}

/* What is expected of a chain.  Slices begin from a guess: what was wrong with it is forgotten after w steps, or a quarter of a
 * slice if w is not known.  In round 2 every slice but the first runs again for as long, in round 3 every slice but two for what
 * is left, and so on; the others sleep.
 *
 *     w = 1.5 L   round 1  0 1 2 3 4 5    round 2  . 1 2 3 4 5    round 3  . . 2 3 4 5, each half
 *
 * Backward makes the gates anew of what it runs again; where slices are longer than their heads (1.25 w) these are walked first,
 * and nothing else runs again.  Where the gradient comes from the ends of sequences alone, it wakes slices one by one, from
 * the last one on, as many as w is long: the others are never walked. */
#define HEAD 1.25
#define GATES_AGAIN 1.5

struct expected {
    f64 w, T;
    i32 rounds, sequences, slices;
    bool heads, asleep;
};

/* Does a gradient of every step come to a buffer?  The end of a recurrence is of no step. */
static bool of_every_step(const struct net *n, i32 buf) {
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        bool reads = false;
        for (i32 i = 0; i < NET_IN; i++) reads = reads || op->spec.in[i] == buf;
        const bool goes_on = op->out >= 0 && n->buf[op->out].T == n->buf[buf].T;
        if (reads && (op_is_loss(op) || (goes_on && of_every_step(n, op->out)))) return true;
    }
    return false;
}

static struct expected expect(const struct plan *p, const struct net *n, const struct task *t) {
    const struct op *op = &n->op[t->op];
    struct expected x = {
        .w = netplan(p)->forgets > 0 ? netplan(p)->forgets : 0.25 * op->T, .T = op->T, .slices = imax(1, netplan(p)->slices)};
    x.sequences = imax(1, p->B / x.slices);
    x.heads = t->kind == TASK_BWD && HEAD * x.w < x.T && buf_sends(&n->buf[op->out]);
    x.asleep = t->kind == TASK_BWD && op->spec.slice_rank == 0 && !of_every_step(n, op->out);
    x.rounds = imin(x.slices, (x.asleep ? 0 : 1) + (i32)ceil(x.w / x.T));
    if (x.heads) x.rounds = 1; /* what they hand on is good enough */
    return x;
}

/* Seconds of a member in round k (from 1). */
static f64 member_round(const struct plan *p, const struct net *n, const struct machine *m, const struct task *t,
                        const struct expected *x, i32 round) {
    const i32 first = x->asleep ? x->slices - round : round - 1, end = x->asleep ? first + 1 : x->slices;
    const i32 rows = imin(t->box.b1, end * x->sequences) - imax(t->box.b0, first * x->sequences);
    const f64 steps = round == 1 ? x->T : dmin(x->T, x->w - (round - 2) * x->T), back = t->kind == TASK_BWD ? GATES_AGAIN : 1;
    const f64 heads = round == 1 && x->heads ? walk(p, n, m, t, t->box.b1 - t->box.b0) * HEAD * x->w / x->T : 0;
    return heads + (rows <= 0 ? 0 : walk(p, n, m, t, rows) * (round == 1 ? 1 : back * steps / x->T));
}

/* Messages between ranks before and after each comparison, and at the end: small ones, in every round. */
static f64 between_ranks(const struct plan *p, i32 rounds) {
    return p->nrank > 1 ? 3e-6 * p->link_us * (1 + rounds) : 0;
}

/* All members of a chain run until it is done, and wait for the slowest member in each round. */
static f64 chain_seconds(const struct plan *p, const struct net *n, const struct machine *m, u32 first) {
    const struct task *t = &p->task[first];
    const struct expected x = expect(p, n, t);
    f64 sum = between_ranks(p, x.rounds), slowest = 0;
    for (i32 round = 1; round <= imin(x.rounds, CHAIN_ROUNDS); round++) {
        slowest = 0;
        for (u32 k = first; k < p->ntask && p->task[k].op == t->op && p->task[k].kind == t->kind; k++)
            slowest = dmax(slowest, member_round(p, n, m, &p->task[k], &x, round));
        sum += slowest + (t->members > 1 ? 2 * PLAN_SYNC_S : 0);
    }
    return sum + slowest * imax(0, x.rounds - CHAIN_ROUNDS);
}

/* The members of a chain stand next to each other. */
static f64 of_chain(const struct plan *p, const struct net *n, const struct machine *m, u32 i) {
    const struct task *t = &p->task[i];
    return t->member > 0 && i > 0 ? (f64)t[-1].cost - TASK_S : chain_seconds(p, n, m, i);
}

/* Cost of a chunk: its share of the steps. */
static f64 seconds(const struct plan *p, const struct net *n, const struct machine *m, u32 i) {
    const struct task *t = &p->task[i];
    const struct device *d = &m->device[t->device];
    const f64 bytes = task_bytes(p, t);
    if (t->kind == TASK_PREP) return bytes / (d->gbytes * 1e9 * PREP_SHARE);
    if (!task_walks(t) && t->kind != TASK_DW && t->kind != TASK_DX) return bytes / bandwidth(m, d, bytes);
    const struct op *op = &n->op[t->op];
    if (op_is_chain(op)) return of_chain(p, n, m, i);
    const f64 part = plan_part_of_op(p, n, t), s = walk(p, n, m, t, t->box.b1 - t->box.b0);
    return t->members > 1 ? member_seconds(p, n, m, t, part * s) : part * s;
}

/* Bytes of the panels that a member of a split op gives to others. */
static f64 given_bytes(const struct plan *p, const struct task *t) {
    f64 sum = 0;
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        const u8 kind = p->buf[p->use[k].buf].kind;
        if (use_writes(&p->use[k]) && (kind == PBUF_UNITS || kind == PBUF_DUNITS)) sum += use_bytes(p, t, &p->use[k]);
    }
    return sum;
}

/* Bytes of all members of a split op that the ranks send each other before a gather.  A rank receives what all others have, one
 * message after another. */
static i64 gathered_bytes(struct plan *p, const struct task *t) {
    f64 sum = 0, far = 0;
    i32 ranks = 0, rank = -1;
    if (t->kind != TASK_GATHER && t->kind != TASK_DGATHER) return 0;
    const i64 end = t - p->task;
    i64 first = end; /* of the members before it */
    while (first > 0 && p->task[first - 1].split && (first == end || p->task[first].member > 0)) first--;
    for (i64 i = first; i < end; i++) {
        const i32 of = p->place[p->task[i].device].rank;
        sum += given_bytes(p, &p->task[i]);
        far += of != p->place[t->device].rank ? given_bytes(p, &p->task[i]) : 0;
        ranks += of != rank;
        rank = of;
    }
    for (i64 i = first; i < end; i++)
        p->task[i].link = (f32)(far / (p->link_gbytes * 1e9) + p->link_us * 1e-6 * imax(1, ranks - 1));
    return (i64)sum * imax(0, ranks - 1);
}

/* Bytes of activations and their gradients that task `from` writes and a task reads: a chunk of steps passes its own alone. */
static f64 bytes_between(const struct plan *p, const struct task *from, const struct task *t) {
    f64 sum = 0;
    for (u32 k = from->use0; k < from->use0 + from->nuse; k++)
        for (u32 j = t->use0; j < t->use0 + t->nuse; j++) {
            const struct use *w = &p->use[k], *r = &p->use[j];
            const struct pbuf *b = &p->buf[w->buf];
            if (w->buf != r->buf || !use_writes(w) || r->mode == USE_W || !use_meets(w, r)) continue;
            if (b->kind != PBUF_ACT && b->kind != PBUF_DACT) continue;
            const i32 steps = w->t1 == 0 ? r->t1 - r->t0 : r->t1 == 0 ? w->t1 - w->t0 : imin(w->t1, r->t1) - imax(w->t0, r->t0);
            sum += pbuf_bytes(b, lmax(w->lo, r->lo), lmin(w->hi, r->hi)) * (steps > 0 ? (f64)steps / b->repeat : 1);
        }
    return sum;
}

/* Bytes that a task reads from tasks of other ranks; sets the time that those need to send. */
static i64 passed_bytes(struct plan *p, const struct task *t) {
    i64 sum = 0;
    for (u32 d = t->dep0; task_walks(t) && !t->split && d < t->dep0 + t->ndep; d++) {
        struct task *from = &p->task[p->dep[d]];
        if (!task_walks(from) || from->split || t->member > 0) continue;
        if (p->place[from->device].rank == p->place[t->device].rank) continue;
        const f64 bytes = bytes_between(p, from, t);
        from->link = fmaxf(from->link, (f32)(bytes / (p->link_gbytes * 1e9) + p->link_us * 1e-6));
        sum += (i64)bytes;
    }
    return sum;
}

/* Does a rank prepare, or run, an op whose weights lie in a range?  ops: a bit for each op. */
enum { OP_WORDS = (NET_OPS + 63) / 64 };
static i64 read_bytes(const struct net *n, const u64 ops[OP_WORDS], i64 lo, i64 hi) {
    i64 sum = 0;
    for (i32 l = 0; l < n->nop; l++) {
        const i64 a = lmax(lo, n->op[l].theta0), b = lmin(hi, n->op[l].theta0 + n->op[l].ntheta);
        if (b > a && ops[l / 64] >> l % 64 & 1) sum += 4 * (b - a);
    }
    return sum;
}

/* Seconds in which the ranks of one host fetch the weights that other ranks have updated: their workers copy them between two
 * steps (exec/async_gather.c).  Between hosts messages go meanwhile. */
static f64 fetch_seconds(const struct plan *p, const struct net *n, const struct costs *c) {
    u64 ops[MACHINE_THREADS][OP_WORDS] = {0};
    f64 of_rank[MACHINE_THREADS] = {0}, most = 0;
    if (!c || p->nrank < 2 || c->ranks < p->nrank || p->nrank > MACHINE_THREADS) return 0;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if (task_walks(t) || t->kind == TASK_PREP) ops[p->place[t->device].rank][t->op / 64] |= (u64)1 << t->op % 64;
    }
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        for (i32 r = 0; t->kind == TASK_UPDATE && !t->everywhere && r < p->nrank; r++) {
            const i64 bytes = p->place[t->device].rank == r ? 0 : read_bytes(n, ops[r], t->lo, t->hi);
            if (bytes > 0) of_rank[r] += (f64)bytes / (p->link_gbytes * 1e9) + p->link_us * 1e-6;
        }
    }
    for (i32 r = 0; r < p->nrank; r++) most = dmax(most, of_rank[r]);
    return most;
}

/* Devices that the machine has on a rank. */
static i32 workers_of(const struct machine *m, i32 rank) {
    i32 n = 0;
    for (i32 d = 0; d < m->ndevice; d++) n += m->device[d].rank == rank;
    return n;
}

/* Share of the other workers of rank 0's host that have work. */
static f64 load_of(const struct plan *p, const struct machine *m, const struct costs *c) {
    const i32 ranks = c ? imax(1, c->ranks) : 1;
    i32 used = 0, all = 0;
    for (i32 d = 0; d < p->ndevice; d++) used += p->place[d].rank < ranks;
    for (i32 d = 0; d < m->ndevice; d++) all += m->device[d].rank < ranks;
    return all < 2 ? 0 : (f64)imax(0, used - 1) / (all - 1);
}

/* Of each op the device that runs all of it, and so has its weights and what belongs to them in its cache; SEVERAL, NONE. */
enum { SEVERAL = -1, NONE = -2 };
struct owners {
    i32 device[NET_OPS];
    f64 cache; /* bytes of a worker: L2, or its share of the L3 of its host */
};

static void owned_by(struct owners *o, i32 op, i32 device) {
    o->device[op] = o->device[op] == NONE || o->device[op] == device ? device : SEVERAL;
}

static void find_owners(const struct plan *p, const struct net *n, const struct machine *m, const struct costs *c,
                        struct owners *o) {
    const i32 cores = m->ncore / imax(1, m->nrank) * imin(imax(1, c->ranks), imax(1, m->nrank));
    o->cache = dmax((f64)m->cache_l2, (f64)m->cache_l3 / imax(1, cores));
    for (i32 l = 0; l < n->nop; l++) o->device[l] = NONE;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if (!task_walks(t)) continue;
        owned_by(o, t->op, (i32)t->device);
        const i32 share = n->op[t->op].spec.share;
        if (share >= 0) owned_by(o, share, (i32)t->device);
    }
}

/* Share of the weights that a task merges, updates or prepares which other devices use, too. */
static f64 foreign_share(const struct net *n, const struct owners *o, const struct task *t) {
    i64 all = 0, foreign = 0;
    if (t->kind == TASK_PREP) return o->device[t->op] != (i32)t->device;
    for (i32 l = 0; l < n->nop; l++) {
        const i64 lo = lmax(t->lo, n->op[l].theta0), hi = lmin(t->hi, n->op[l].theta0 + n->op[l].ntheta);
        if (hi <= lo) continue;
        all += hi - lo;
        if (o->device[l] != (i32)t->device) foreign += hi - lo;
    }
    return all > 0 ? (f64)foreign / (f64)all : 1;
}

/* The load that a task feels.  Vectors in the cache of their device are as fast as alone: what makes them slower in plans whose
 * workers share all weights are lines that another worker has written or read. */
static f64 load_on(const struct plan *p, const struct net *n, const struct owners *o, const struct task *t, f64 load) {
    const bool vector = t->kind == TASK_MERGE || t->kind == TASK_NORM || t->kind == TASK_UPDATE || t->kind == TASK_PREP;
    return vector && task_bytes(p, t) <= o->cache ? load * foreign_share(n, o, t) : load;
}

/* Speed of a device against that of device 0, where costs are measured while nothing else runs. */
static f64 speed_of(const struct machine *m, u32 device) {
    const struct device *d = &m->device[device];
    return m->device[0].gflops > 0 && d->gflops > 0 ? d->share * d->gflops / m->device[0].gflops : d->share;
}

/* Measured seconds of a task: of a team that was not measured, a member's share of what the task takes alone.  -1 = unknown. */
static f64 measured(const struct plan *p, const struct net *n, const struct machine *m, const struct costs *c,
                    const struct task *t, f64 load) {
    struct task whole = *t;
    if (task_walks(t) && op_is_chain(&n->op[t->op])) return -1;
    const f64 s = costs_of(c, p, n, t, load), speed = dmax(1e-3, speed_of(m, t->device));
    if (s >= 0 || t->members < 2) return s < 0 ? -1 : s / speed;
    whole.members = 1;
    const f64 alone = costs_of(c, p, n, &whole, load);
    return alone < 0 ? -1 : member_seconds(p, n, m, t, alone / speed);
}

/* A measured cost besides those of tasks, or what is assumed without one. */
static f64 known_or(const struct costs *c, u8 kind, i32 workers, f64 assumed) {
    const struct cost like = {.kind = kind, .size = 1, .members = (u16)workers}, *found = c ? costs_find(c, &like) : NULL;
    return found ? found->seconds : assumed;
}

/* Waits between the workers of this machine, and its links. */
static void set_waits(struct plan *p, const struct machine *m, const struct costs *c) {
    const i32 workers = workers_of(m, 0);
    p->waits.around = known_or(c, COST_AROUND, workers, p->waits.around);
    p->waits.wake = known_or(c, COST_WAKE, workers, p->waits.wake);
    p->waits.seen = known_or(c, COST_SEEN, workers, p->waits.seen);
    p->link_us = 1e6 * known_or(c, COST_LATENCY, 0, 1e-6 * p->link_us);
    p->link_gbytes = 1e-9 / known_or(c, COST_BYTE, 0, 1e-9 / p->link_gbytes);
}

void plan_cost(struct plan *p, const struct net *n, const struct machine *m, const struct costs *costs) {
    const f64 load = load_of(p, m, costs), gap = known_or(costs, COST_TASK, workers_of(m, 0), TASK_S);
    struct owners owners;
    p->exchange_bytes = 0;
    set_waits(p, m, costs);
    if (costs) find_owners(p, n, m, costs, &owners);
    for (u32 i = 0; i < p->ntask; i++) p->task[i].link = p->task[i].kind == TASK_NORM ? (f32)(p->link_us * 1e-6) : 0;
    for (u32 i = 0; i < p->ntask; i++) {
        struct task *t = &p->task[i];
        const f64 known = costs ? measured(p, n, m, costs, t, load_on(p, n, &owners, t, load)) : -1;
        f64 s = known >= 0 ? known + gap : seconds(p, n, m, i) + TASK_S;
        i64 across = 0;
        if (t->kind == TASK_MERGE) p->exchange_bytes += foreign_bytes(p, t, &across);
        p->exchange_bytes += (t->split ? 0 : team_bytes(p, t)) + passed_bytes(p, t) + gathered_bytes(p, t);
        if (across > 0) s += (f64)across / (p->link_gbytes * 1e9) + p->link_us * 1e-6;
        t->cost = (f32)s;
    }
    p->waits.fetch = fetch_seconds(p, n, costs);
    p->predicted = plan_schedule(p, NULL);
}
