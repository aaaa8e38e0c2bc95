/* slices.h - the same network twice: over whole sequences, and over their slices as rows; for the tests of time slices. */
#ifndef STRETTO_TESTS_EXEC_SLICES_H
#define STRETTO_TESTS_EXEC_SLICES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "comm/comm.h"
#include "step/slices/solver.h"
#include "step/step.h"
#include "model/nets.h"
#include "plan/slice.h"

/* W sequences of T steps in P slices (P 1: the rows are the sequences). */
struct sliced {
    i32 W, T, P, I, H, L;
    enum cell_kind cell;
    enum precision precision;
    bool state;     /* the sequences begin from states that are learnt */
    bool both;      /* every layer reads both ways */
    i32 projection; /* values that a step hands on; 0 = all (a state that is learnt has all) */
    bool end;       /* the loss is of the state at the end, of both ways where there are two, and not of every step */
    f32 spread;     /* of the recurrent weights: the larger the longer the memory */
    f32 rate;       /* dropout between layers */
    i32 rank;
    bool recompute;
    i32 slow;   /* units of an lstm, or minlstm, that remember long: */
    f32 forget; /* added to the bias of their forget gate */
    const char *parallel; /* of the plan; NULL = "time" */
};

static inline i32 sliced_steps(const struct sliced *s) { return ceil_div(s->T, s->P); }
static inline i32 sliced_rows(const struct sliced *s) { return s->W * s->P; }
static inline i32 sliced_len(const struct sliced *s, i32 k) {
    i32 from;
    return slice_steps(s->T, s->P, k, &from);
}
/* The first step of slice k, in its sequence. */
static inline i32 sliced_first(const struct sliced *s, i32 k) {
    i32 from;
    slice_steps(s->T, s->P, k, &from);
    return from;
}

/* What rows are told of their places; -1 = nothing. */
struct sliced_ids {
    i32 length, after, before, first;
};

static inline i32 sliced_recurrent(struct net *n, const struct sliced *s, const char *name, i32 x, i32 length, i32 after,
                                   i32 start) {
    struct op_spec c = net_spec(s->projection ? "projected" : "recurrent", name, x);
    c.projection = s->projection;
    c.cell = s->cell;
    c.hidden = s->H;
    c.in[1] = start;
    c.in[2] = length;
    c.in[3] = after;
    c.precision = s->precision;
    if (s->P > 1) c.slice_rank = s->rank, c.recompute = s->recompute;
    i32 l;
    T_OK(net_op(n, &c, &l));
    return l;
}

static inline i32 sliced_turn(struct net *n, const char *what, i32 k, i32 x, i32 length) {
    struct op_spec turn = net_spec("reverse", "", x);
    snprintf(turn.name, sizeof turn.name, "%s.%d", what, k);
    turn.in[1] = length;
    return nets_add(n, &turn);
}

static inline i32 sliced_join(struct net *n, const char *what, i32 k, i32 a, i32 b) {
    struct op_spec join = net_spec("concat", "", a);
    snprintf(join.name, sizeof join.name, "%s.%d", what, k);
    join.in[1] = b;
    return n->op[nets_add(n, &join)].out;
}

static inline i32 sliced_last(struct net *n, const char *name, i32 end, i32 from) {
    struct op_spec last = net_spec("last", name, end);
    last.in[1] = from;
    return n->op[nets_add(n, &last)].out;
}

/* A layer over x, one way or both; returns its output, and the state at its end. */
static inline i32 sliced_layer(struct net *n, const struct sliced *s, i32 k, i32 x, const struct sliced_ids *ids, i32 start,
                               i32 *end) {
    char name[2][24];
    snprintf(name[0], 24, "lstm.%d", k);
    snprintf(name[1], 24, "lstm.%d.reverse", k);
    if (!s->both) {
        const i32 l = sliced_recurrent(n, s, name[0], x, ids->length, ids->after, start);
        if (s->end && k + 1 == s->L) *end = sliced_last(n, "last", n->op[l].end, -1);
        return n->op[l].out;
    }
    const i32 t = sliced_turn(n, "turn", k, x, ids->length);
    const i32 there = sliced_recurrent(n, s, name[0], n->op[t].end, ids->length, ids->after, start);
    const i32 from = sliced_recurrent(n, s, name[1], n->op[t].out, ids->length, ids->before, -1);
    if (s->end && k + 1 == s->L) {
        const i32 a = sliced_last(n, "last", n->op[there].end, -1);
        return *end = sliced_join(n, "ends", k, a, sliced_last(n, "last.reverse", n->op[from].end, ids->first));
    }
    const i32 back = sliced_turn(n, "back", k, n->op[from].out, ids->length);
    return sliced_join(n, "both", k, n->op[there].out, n->op[back].out);
}

/* x -> dense -> L recurrent layers -> head at every step, or behind the end -> squared error. */
static inline void sliced_net(struct net *n, const struct sliced *s) {
    const i32 T = sliced_steps(s), states = cell_of(s->cell)->states;
    struct sliced_ids ids = {-1, -1, -1, -1};
    net_init(n);
    i32 in = nets_input(n, "x", T, s->I, false), start = -1, end = -1;
    if (s->T % s->P) ids.length = nets_input(n, "length", 1, 1, true);
    if (s->P > 1) ids.after = nets_input(n, "after", 1, 1, true);
    if (s->P > 1 && s->both) ids.before = nets_input(n, "before", 1, 1, true), ids.first = nets_input(n, "first", 1, 1, true);
    i32 x = nets_dense(n, "seg", in, s->I, ACT_TANH);
    if (s->state) start = nets_dense(n, "start", nets_input(n, "static", states, 3, false), s->H, ACT_TANH);
    for (i32 k = 0; k < s->L; k++) {
        x = sliced_layer(n, s, k, x, &ids, k == 0 ? start : -1, &end);
        if (s->rate > 0) {
            struct op_spec drop = net_spec("dropout", "drop", x);
            drop.dropout = s->rate;
            snprintf(drop.name, sizeof drop.name, "drop.%d", k);
            x = n->op[nets_add(n, &drop)].out;
        }
    }
    nets_loss(n, "loss_mse", nets_dense(n, "head", s->end ? end : x, 2, ACT_NONE), s->end ? 1 : T, 2, false);
    T_OK(net_check(n));
}

/* A net that is bound and has its inputs. */
struct sliced_run {
    struct sliced s;
    struct net net;
    struct machine machine;
    struct plan *plan;
    struct pool *pool;
    struct store store;
    struct step *x;
    f32 *input[NET_BUFS];
    struct arena arena;
    f64 loss;
};

static inline f32 sliced_noise(u32 what, i64 at) { return 2 * rng_uniform(11, RNG_TEST, what, (u64)at) - 1; }

/* A series with slow and fast parts; targets want both. */
static inline f32 sliced_x(i32 w, i32 t, i32 f) {
    return 0.6f * sinf(0.013f * (f32)t * (f32)(f + 1) + (f32)w) + 0.4f * sliced_noise(1, ((i64)w << 24) + (i64)t * 64 + f);
}
static inline f32 sliced_y(i32 w, i32 t, i32 f) { return 0.7f * sinf(0.02f * (f32)t + (f32)(w + f)) + 0.3f * sliced_x(w, t, 0); }

static inline void sliced_fill(struct sliced_run *g) {
    const struct sliced *s = &g->s;
    const i32 B = sliced_rows(s);
    for (i32 i = 0; i < g->net.nbuf; i++) {
        const struct buf *b = &g->net.buf[i];
        if (!b->input) continue;
        i32 *ids = (i32 *)(void *)g->input[i];
        for (i32 row = 0; row < B; row++) {
            const i32 k = row / s->W, w = row % s->W;
            const bool ends = k == s->P - 1;
            if (strcmp(b->name, "length") == 0) ids[row] = sliced_len(s, k);
            if (strcmp(b->name, "after") == 0) ids[row] = k > 0 ? row - s->W : -1;
            if (strcmp(b->name, "before") == 0) ids[row] = ends ? -1 : row + s->W;
            if (strcmp(b->name, "first") == 0) ids[row] = ends ? w : -1;
            if (b->ids) continue;
            for (i32 t = 0; t < b->T; t++)
                for (i32 f = 0; f < b->F; f++) {
                    f32 *to = &g->input[i][((i64)t * B + row) * buf_fp(b) + f];
                    const bool target = s->end ? ends : t < sliced_len(s, k);
                    const i32 at = sliced_first(s, k) + t;
                    if (b->name[0] == 'x') *to = t < sliced_len(s, k) ? sliced_x(w, at, f) : 0;
                    if (strcmp(b->name, "target") == 0) *to = target ? sliced_y(w, s->end ? s->T : at, f) : NAN;
                    if (strcmp(b->name, "static") == 0) *to = sliced_noise(3, (i64)w * 64 + t * 8 + f);
                }
        }
    }
}

/* Recurrent weights are made larger than PyTorch's start, so that there is memory to speak of. */
/* Unit u forgets slowly: by the bias of f of an lstm (gates i, f, g, o), of f and, the other way, of i of a minlstm (f, i, n). */
static inline void sliced_slow(const struct sliced_run *g, i32 tensor, i32 u, f32 *canonical) {
    const i32 H = g->s.H;
    const bool minlstm = (i32)g->s.cell == (i32)CELL_AT_minlstm;
    if (!minlstm && tensor == 2) canonical[H + u] += g->s.forget;
    if (minlstm && tensor == 1) canonical[u] += g->s.forget, canonical[H + u] -= g->s.forget;
}

static inline void sliced_weights(struct sliced_run *g) {
    net_weights_init(&g->net, 7, g->store.theta);
    static f32 canonical[1 << 18];
    for (i32 l = 0; l < g->net.nop; l++) {
        const struct op *op = &g->net.op[l];
        struct tensor_info info[8];
        if (op->layer->after == 0) continue;
        i32 n = op->layer->tensors(op, info);
        for (i32 t = 0; t < n; t++) {
            const i64 size = (i64)info[t].rows * imax(1, info[t].cols);
            assert_true(size <= (i64)COUNT(canonical));
            layer_store(op, t, g->store.theta + op->theta0, canonical);
            for (i64 i = 0; i < size && t == 1; i++) canonical[i] *= g->s.spread;
            for (i32 u = 0; u < g->s.slow; u++) sliced_slow(g, t, u, canonical);
            layer_load(op, t, canonical, g->store.theta + op->theta0);
        }
    }
}

/* comm NULL: alone; else as one of its ranks, each of so many threads. */
static inline void sliced_rank_new(struct sliced_run *g, const struct sliced *s, const struct kern *k, i32 threads,
                                   struct chain_course how, struct comm *comm) {
    char text[32];
    memset(g, 0, sizeof *g);
    g->s = *s;
    sliced_net(&g->net, s);
    if (comm)
        snprintf(text, sizeof text, "host*%d(cpu*%d)", comm_size(comm), threads);
    else
        snprintf(text, sizeof text, "cpu*%d", threads);
    T_OK(machine_parse(text, &g->machine));
    const struct optim *o = optim_find("sgd");
    struct plan_request q = {.net = &g->net,
                             .machine = &g->machine,
                             .B = sliced_rows(s),
                             .train = true,
                             .nstate = o->nstate,
                             .parallel = s->P == 1 ? "serial" : s->parallel ? s->parallel : "time",
                             .slices = s->P,
                             .course = how};
    T_OK(plan_make(&q, &g->plan));
    T_OK(pool_new(threads, &g->pool));
    T_OK(store_new(&g->net, o, &g->store));
    sliced_weights(g);
    T_OK(step_bind(g->plan, &g->net, k, g->pool, &g->store, comm, NULL, &g->x));
    for (i32 i = 0; i < g->net.nbuf; i++)
        if (g->net.buf[i].input)
            assert_non_null(g->input[i] = arena_new(&g->arena, (size_t)buf_floats(&g->net.buf[i], sliced_rows(s)) * 4));
    sliced_fill(g);
}

static inline void sliced_new(struct sliced_run *g, const struct sliced *s, const struct kern *k, i32 threads,
                              struct chain_course how) {
    sliced_rank_new(g, s, k, threads, how, NULL);
}

static inline void sliced_free(struct sliced_run *g) {
    step_free(g->x);
    store_free(&g->store);
    pool_free(g->pool);
    plan_free(g->plan);
    arena_free(&g->arena);
}

static inline err sliced_try(struct sliced_run *g, f32 lr, bool warm) {
    struct exec_result out = {0};
    struct step_args step = {
        .input = g->input, .loss_scale = 1.0f / (f32)(2 * g->s.W * g->s.T), .seed = 9, .step = 1, .warm = warm};
    step.hyper = (struct optim_hyper){.lr = lr, .step = 1, .grad_scale = 1};
    TRY(step_run(g->x, &step, &out));
    g->loss = out.loss;
    return 0;
}
static inline void sliced_train(struct sliced_run *g, f32 lr, bool warm) { T_OK(sliced_try(g, lr, warm)); }

/* One step that changes nothing but buffers and the gradient. */
static inline void sliced_step(struct sliced_run *g) { sliced_train(g, 0, false); }

/* Value (t, f) of sequence w in what op l puts out; that of one that reads backwards lies where its rows were turned to. */
static inline f32 sliced_at(const struct sliced_run *g, i32 l, i32 w, i32 t, i32 f) {
    const struct sliced *s = &g->s;
    const struct op *op = &g->net.op[l];
    i32 k = 0;
    while (k + 1 < s->P && sliced_first(s, k + 1) <= t) k++;
    const i32 at = t - sliced_first(s, k), step = strstr(op->spec.name, ".reverse") ? sliced_len(s, k) - 1 - at : at;
    const i64 row = (i64)step * sliced_rows(s) + k * s->W + w;
    return step_buf(g->x, op->out)[row * buf_fp(&g->net.buf[op->out]) + f];
}

/* The recurrent op of number i. */
static inline i32 sliced_chain(const struct sliced_run *g, i32 i) {
    for (i32 l = 0; l < g->net.nop; l++)
        if (g->net.op[l].layer->after > 0 && i-- == 0) return l;
    fail();
    return -1;
}

static inline f64 sliced_states_differ(const struct sliced_run *a, const struct sliced_run *b) {
    f64 most = 0;
    for (i32 l = 0; l < a->net.nop; l++) {
        if (a->net.op[l].layer->after == 0) continue;
        for (i32 w = 0; w < a->s.W; w++)
            for (i32 t = 0; t < a->s.T; t++)
                for (i32 u = 0; u < a->net.op[l].F; u++) {
                    const f64 d = fabs((f64)sliced_at(a, l, w, t, u) - (f64)sliced_at(b, l, w, t, u));
                    most = d > most ? d : most;
                }
    }
    return most;
}

/* The largest relative L2 distance of the gradients of an op. */
static inline f64 sliced_grads_differ(const struct sliced_run *a, const struct sliced_run *b) {
    f64 worst = 0;
    for (i32 l = 0; l < a->net.nop; l++) {
        const struct op *op = &a->net.op[l];
        f64 diff = 0, size = 0;
        for (i64 i = op->theta0; i < op->theta0 + op->ntheta; i++) {
            const f64 d = (f64)step_grad(a->x)[i] - (f64)step_grad(b->x)[i];
            diff += d * d;
            size += (f64)step_grad(b->x)[i] * (f64)step_grad(b->x)[i];
        }
        if (op->ntheta > 0 && size > 0) worst = fmax(worst, sqrt(diff / size));
    }
    return worst;
}

static const struct chain_course sliced_fine = {.slice_tol = 1e-6f};

static inline struct sliced sliced_small(enum cell_kind cell) {
    return (struct sliced){.W = 1, .T = 1200, .P = 1, .I = 3, .H = 20, .L = 1, .cell = cell, .state = true, .spread = 2};
}

/* One step over the slices, and one over the whole: states to within so much, gradients to within a share. */
static inline void sliced_compare(struct sliced s, i32 threads, const struct kern *k, f64 states, f64 grads) {
    struct sliced_run whole, cut;
    struct sliced one = s;
    one.P = 1;
    sliced_new(&whole, &one, k, 1, sliced_fine);
    sliced_new(&cut, &s, k, threads, sliced_fine);
    sliced_step(&whole);
    sliced_step(&cut);
    const f64 ds = sliced_states_differ(&cut, &whole), dg = sliced_grads_differ(&cut, &whole);
    const struct chain_trace *f = step_chain(cut.x, sliced_chain(&cut, 0), false);
    const struct chain_trace *b = step_chain(cut.x, sliced_chain(&cut, 0), true);
    if (!(ds <= states) || !(dg <= grads) || getenv("SHOW"))
        print_message(
            "cell %d W %d T %d P %d L %d threads %d: states %.2e grads %.2e rounds %d (serial %d) again %.2f back %d %.2f\n",
            s.cell, s.W, s.T, s.P, s.L, threads, ds, dg, f ? f->rounds : 0, f ? f->serial : 0,
            f ? (f64)f->again / (f64)f->first : 0, b ? b->rounds : 0, b ? (f64)b->again / (f64)b->first : 0);
    assert_true(ds <= states);
    assert_true(dg <= grads);
    assert_true(fabs(cut.loss - whole.loss) <= 1e-6 * whole.loss);
    sliced_free(&whole);
    sliced_free(&cut);
}

#endif
