/* wave.c - layers and chunks of time as a wave: a layer begins a chunk as soon as the one below is done with it.
 *
 *     device 0   lstm.0  | 0 | 1 | 2 | 3 |            backward the same from the other corner:
 *     device 1   lstm.1      | 0 | 1 | 2 | 3 |        lstm.1 from chunk 3 down, lstm.0 one behind
 *     device 0   lstm.2          | 0 | 1 | 2 | 3 |    more layers than devices: layer l on device l mod 2
 *
 * A wave is a run of ops that follow each other and can be walked in parts of their steps (layer.steps), with two that have
 * a state or more.  The two directions of a layer are a wave too, both at the same chunk.  Every chunk has all rows of its piece,
 * and chunks of an op are done in order: the bits are those of `serial`.  On several ranks chunks of activations and of their
 * gradients are messages, and a rank has the weights of its own layers.  Layer wavefront: Appleyard, Kocisky, Blunsom, arXiv
 * 1604.01946. */
#include <math.h>

#include "model/layer.h"
#include "step/planner.h"

#define CHUNK_S 4e-6 /* overhead of a chunk: a task, the first and last step of a kernel, the wait of the other device */
#define RATE 0.3     /* share of the device's multiply-add rate reached with few rows */

enum { CHUNKS_MOST = 256, CHUNK_STEPS = 4 };

struct wave {
    i32 l0, l1;          /* ops */
    i32 width;           /* ops with a state */
    i32 behind[NET_OPS]; /* chunks between the start of the wave and that of this op; -1: an op before the first with a state */
    i32 nth[NET_OPS];    /* index of the last op with a state up to this one */
};

static bool has_state(const struct op *op) { return op->end >= 0; }

/* The op of the wave that op `l` reads, the one most chunks behind if there are several; -1 = none. *late: l reads a final
 * state, which exists only after the last chunk. */
static i32 reads(const struct net *n, const struct wave *w, i32 l, bool *late) {
    i32 from = -1;
    for (i32 i = 0; i < n->op[l].layer->nin; i++)
        for (i32 k = w->l0; k < l; k++) {
            i32 in = n->op[l].spec.in[i];
            if (in < 0) continue;
            if (in == n->op[k].end) *late = true;
            if (in == n->op[k].out && (from < 0 || w->behind[k] > w->behind[from])) from = k;
        }
    return from;
}

/* The wave that starts at op l0; empty (l1 = l0) if that op cannot run in chunks. */
static void wave_of(const struct net *n, i32 l0, struct wave *w) {
    *w = (struct wave){.l0 = l0, .l1 = l0};
    for (i32 l = l0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        bool late = false;
        i32 from = reads(n, w, l, &late);
        if (!op->layer->steps || op_is_chain(op) || late || op->T != n->op[l0].T) return;
        w->behind[l] = (from < 0 ? -1 : w->behind[from]) + has_state(op);
        w->nth[l] = has_state(op) ? w->width++ : from < 0 ? 0 : w->nth[from];
        w->l1 = l + 1;
    }
}

static bool rolls(const struct wave *w) { return w->width > 1; }

i32 wave_width(const struct net *n) {
    i32 most = 0;
    struct wave w;
    for (i32 l = 0; l < n->nop; l = imax(w.l1, l + 1)) {
        wave_of(n, l, &w);
        most = imax(most, w.width);
    }
    return most;
}

/* Seconds of forward in C chunks: T(C) = (L C / P + P - 1) (W / (L C) + o), for L layers on P devices, W seconds of work, and
 * o = CHUNK_S.  The minimum is at C = sqrt(P (P - 1) W / o) / L. */
i32 wave_chunks(const struct planner *p, i32 devices) {
    const struct net *n = p->net;
    const i32 rows = ceil_div(p->q->B, p->nrow);
    f64 work = 0, layers = 0;
    i32 T = 0;
    struct wave w;
    for (i32 l = 0; l < n->nop; l = imax(w.l1, l + 1)) {
        wave_of(n, l, &w);
        for (i32 k = w.l0; rolls(&w) && k < w.l1; k++) {
            if (!has_state(&n->op[k])) continue;
            work += n->op[k].layer->flops(&n->op[k], n, rows, false) / (p->machine->device[0].gflops * 1e9 * RATE * p->team.n);
            T = imax(T, n->op[k].T);
            layers++;
        }
    }
    if (layers == 0) return 1;
    f64 best = sqrt(devices * (devices - 1) * work / CHUNK_S) / layers;
    const i32 least = p->chosen ? 2 : 1; /* a wave that --parallel names does not depend on the speed of the machine */
    return imax(1, imin(imax(least, (i32)dmin(best, CHUNKS_MOST)), T / CHUNK_STEPS));
}

static err chunk(struct planner *p, const struct piece *c, const struct wave *w, enum task_kind kind, i32 l, i32 k) {
    i64 T = p->net->op[l].T;
    if (k < 0 || k >= p->chunks || (kind == TASK_BWD && !op_has_backward(p->net, &p->net->op[l]))) return 0;
    struct task t = {.kind = (u8)kind, .op = (u16)l};
    t.box.t0 = (i32)(T * k / p->chunks);
    t.box.t1 = (i32)(T * (k + 1) / p->chunks);
    return planner_op(p, t, c, w->nth[l] % p->layers.n);
}

/* Adds the tasks by diagonals, so that a device that becomes free finds its next chunk ready. */
static err roll(struct planner *p, const struct piece *c, const struct wave *w) {
    for (i32 d = 0; d < p->chunks + w->width; d++)
        for (i32 l = w->l0; l < w->l1; l++) TRY(chunk(p, c, w, TASK_FWD, l, d - imax(0, w->behind[l])));
    return 0;
}

static err roll_back(struct planner *p, const struct piece *c, const struct wave *w) {
    for (i32 d = p->chunks + w->width; d >= 0; d--)
        for (i32 l = w->l1 - 1; l >= w->l0; l--) TRY(chunk(p, c, w, TASK_BWD, l, d - imax(0, w->behind[l])));
    return 0;
}

/* Ops outside of waves run on the first device along the wave axis. */
static err forward(struct planner *p, const struct piece *c) {
    struct wave w;
    for (i32 l = 0; l < p->net->nop; l = rolls(&w) ? w.l1 : l + 1) {
        wave_of(p->net, l, &w);
        TRY(rolls(&w) ? roll(p, c, &w) : planner_whole(p, TASK_FWD, c, l));
    }
    return 0;
}

static err backward(struct planner *p, const struct piece *c) {
    struct wave w;
    i32 first[NET_OPS], n = 0;
    for (i32 l = 0; l < p->net->nop; l = rolls(&w) ? w.l1 : l + 1) {
        first[n++] = l;
        wave_of(p->net, l, &w);
    }
    while (n-- > 0) {
        wave_of(p->net, first[n], &w);
        TRY(rolls(&w) ? roll_back(p, c, &w) : planner_whole(p, TASK_BWD, c, first[n]));
    }
    return 0;
}

/* Between ranks each device has the weights of its own ops, as in a pipeline. */
void wave_stages(struct planner *p) {
    struct wave w;
    p->staged = true;
    for (i32 l = 0; l < p->net->nop; l = rolls(&w) ? w.l1 : l + 1) {
        wave_of(p->net, l, &w);
        p->stage[l] = 0;
        for (i32 k = w.l0; rolls(&w) && k < w.l1; k++) p->stage[k] = (u16)(w.nth[k] % p->layers.n);
    }
}

/* Each device zeroes the gradients of its own ops. */
static err zero_stages(struct planner *p, const struct piece *c) {
    for (i32 l = 0, end; l < p->net->nop; l = end) {
        for (end = l + 1; end < p->net->nop && p->stage[end] == p->stage[l];) end++;
        TRY(pipeline_zero(p, c, l, end, p->stage[l]));
    }
    return 0;
}

err wave_tasks(struct planner *p) {
    p->chunks = imax(1, wave_chunks(p, p->layers.n));
    for (i32 i = 0; i < p->npiece; i++) TRY(forward(p, &p->piece[i]));
    for (i32 i = 0; p->q->train && i < p->npiece; i++) {
        TRY(p->staged ? zero_stages(p, &p->piece[i]) : planner_zero(p, &p->piece[i]));
        TRY(backward(p, &p->piece[i]));
    }
    return 0;
}
