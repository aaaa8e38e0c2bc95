/* cells.c - recurrent cells as nodes: LSTM, GRU and RNN as the operators of these names, other cells as a Scan over the steps.
 *
 *     operators    W [1, G H, I], R [1, G H, H], B [1, 2 G H]         gates in ONNX's order: i o f c, z r h
 *     Scan         z = x W + b for all steps --> body: one step of the cell on z[t] and the state */
#include <string.h>

#include "learn/onnx/layers.h"
#include "model/cell/cell.h"

/* Our gate that stands at place k of ONNX: i f g o -> i o f c; r z n -> z r h. */
static const i32 lstm_order[] = {0, 3, 1, 2}, gru_order[] = {1, 0, 2}, rnn_order[] = {0};

static const i32 *order_of(const struct cell *c) {
    return c->kind == CELL_LSTM ? lstm_order : c->kind == CELL_GRU ? gru_order : rnn_order;
}

static f32 *room(struct net_graph *n, i64 count) {
    f32 *p = arena_array(n->arena, count, sizeof *p);
    if (!p) n->g->failed = true;
    return p;
}

/* Blocks of `block` floats in ONNX's order of gates. */
static void reorder(const struct cell *c, i64 block, const f32 *from, f32 *to) {
    const i32 *order = order_of(c);
    for (i32 k = 0; k < c->gates; k++) memcpy(to + k * block, from + order[k] * block, sizeof *to * (size_t)block);
}

/* Weights of x beside those of the known inputs: [rows][I + nknown]. */
static const f32 *beside(struct net_graph *n, i32 rows, i32 I, const f32 *w, i32 nknown, const f32 *known) {
    f32 *both = nknown > 0 ? room(n, (i64)rows * (I + nknown)) : NULL;
    for (i32 r = 0; both && r < rows; r++) {
        memcpy(both + (i64)r * (I + nknown), w + (i64)r * I, sizeof *w * (size_t)I);
        memcpy(both + (i64)r * (I + nknown) + I, known + (i64)r * nknown, sizeof *w * (size_t)nknown);
    }
    return nknown > 0 ? both : w;
}

static void operator_weights(struct net_graph *n, const struct op *op, struct cell_graph *c, const f32 *ih) {
    const i32 GH = c->cell->gates * c->H;
    const f32 *hh = net_tensor(n, op, 1), *bi = net_tensor(n, op, 2), *bh = net_tensor(n, op, 3);
    f32 *w = room(n, (i64)GH * c->I), *r = room(n, (i64)GH * c->H), *b = room(n, 2 * (i64)GH);
    if (n->g->failed) return;
    reorder(c->cell, (i64)c->H * c->I, ih, w);
    reorder(c->cell, (i64)c->H * c->H, hh, r);
    reorder(c->cell, c->H, bi, b);
    reorder(c->cell, c->H, bh, b + GH);
    c->W = net_constant(n, op, "W", 3, (i64[]){1, GH, c->I}, w);
    c->R = net_constant(n, op, "R", 3, (i64[]){1, GH, c->H}, r);
    c->B = net_constant(n, op, "B", 2, (i64[]){1, 2 * (i64)GH}, b);
}

static void diagonal_weights(struct net_graph *n, const struct op *op, struct cell_graph *c, const f32 *ih) {
    const i32 GH = c->cell->gates * c->H;
    c->W = net_turned(n, op, "weight_ih", GH, c->I, ih);
    c->B = net_constant(n, op, "bias", 1, (i64[]){GH}, net_tensor(n, op, 1));
    if (c->cell->state_rows > 0) c->hh = net_constant(n, op, "weight_hh_diag", 1, (i64[]){GH}, net_tensor(n, op, 2));
    if (c->cell->state_rows > 1) c->ch = net_constant(n, op, "weight_ch_diag", 1, (i64[]){2 * (i64)c->H}, net_tensor(n, op, 3));
}

struct cell_graph cell_graph_of(struct net_graph *n, const struct op *op, const struct cell *cell, i32 I, i32 H, i32 nknown,
                                const f32 *known) {
    struct cell_graph c = {.cell = cell, .I = I + nknown, .H = H, .P = H};
    const f32 *own = net_tensor(n, op, 0), *ih = own ? beside(n, cell->gates * H, I, own, nknown, known) : NULL;
    if (!ih) return c;
    if (cell->diagonal)
        diagonal_weights(n, op, &c, ih);
    else
        operator_weights(n, op, &c, ih);
    return c;
}

/* ------------------------------------------------------------------ operators ----------------------------------------------- */

static val run_operator(struct net_graph *n, const struct cell_graph *c, val x, val state, val *end) {
    static const char *const name[] = {"LSTM", "GRU", "RNN"};
    struct onnx_graph *g = n->g;
    const bool lstm = c->cell->kind == CELL_LSTM;
    const val h0 = state < 0 ? -1 : onnx_slice(g, state, 0, 0, 1), c0 = state < 0 || !lstm ? -1 : onnx_slice(g, state, 0, 1, 2);
    const struct onnx_attr attr[] = {{.name = "hidden_size", .type = ATTR_INT, .i = c->H},
                                     {.name = c->cell->kind == CELL_GRU ? "linear_before_reset" : NULL, .type = ATTR_INT, .i = 1},
                                     {0}};
    val out[3] = {0};
    onnx_node(g, name[c->cell->kind], VALS(x, c->W, c->R, c->B, n->lengths, h0, c0), lstm ? 3 : 2, out, attr);
    *end = lstm ? onnx_concat(g, 0, VALS(out[1], out[2])) : out[1];
    return onnx_squeeze(g, out[0], 1);
}

/* ------------------------------------------------------------------ Scan ---------------------------------------------------- */

/* A body under construction. */
struct step {
    struct onnx_graph *g;
    i32 H;
};

static val gate(const struct step *s, val z, i32 k) { return onnx_slice(s->g, z, 1, (i64)k * s->H, (i64)(k + 1) * s->H); }
/* Gate k of a vector [gates * H] of the outer graph. */
static val part(const struct step *s, val v, i32 k) {
    return onnx_slice(s->g, onnx_outer(s->g, v), 0, (i64)k * s->H, (i64)(k + 1) * s->H);
}
static val add(const struct step *s, val a, val b) { return onnx_2(s->g, "Add", a, b); }
static val sub(const struct step *s, val a, val b) { return onnx_2(s->g, "Sub", a, b); }
static val mul(const struct step *s, val a, val b) { return onnx_2(s->g, "Mul", a, b); }
static val sigmoid(const struct step *s, val a) { return onnx_1(s->g, "Sigmoid", a); }
static val tanh_of(const struct step *s, val a) { return onnx_1(s->g, "Tanh", a); }

static void paragru(const struct step *s, const struct cell_graph *c, val z, val *h) {
    const val u = sigmoid(s, add(s, gate(s, z, 0), mul(s, part(s, c->hh, 0), *h)));
    const val r = sigmoid(s, add(s, gate(s, z, 1), mul(s, part(s, c->hh, 1), *h)));
    const val new = tanh_of(s, add(s, gate(s, z, 2), mul(s, part(s, c->hh, 2), mul(s, r, *h))));
    *h = add(s, *h, mul(s, u, sub(s, new, *h)));
}

static void paralstm(const struct step *s, const struct cell_graph *c, val z, val *h, val *cc) {
    const val side = add(s, gate(s, z, 0), mul(s, part(s, c->hh, 0), *h));
    const val f = sigmoid(s, add(s, side, mul(s, part(s, c->ch, 0), *cc)));
    const val new = tanh_of(s, add(s, gate(s, z, 1), mul(s, part(s, c->hh, 1), *h)));
    *cc = add(s, mul(s, f, *cc), mul(s, sub(s, onnx_f32(s->g, 1), f), new));
    const val out = add(s, gate(s, z, 2), mul(s, part(s, c->hh, 2), *h));
    *h = mul(s, sigmoid(s, add(s, out, mul(s, part(s, c->ch, 1), *cc))), tanh_of(s, *cc));
}

static void minlstm(const struct step *s, val z, val *h) {
    const val least = onnx_f32(s->g, 0x1p-126f);
    const val f = onnx_2(s->g, "Max", sigmoid(s, gate(s, z, 0)), least),
              i = onnx_2(s->g, "Max", sigmoid(s, gate(s, z, 1)), least);
    const val new = gate(s, z, 2);
    *h = add(s, new, mul(s, onnx_2(s->g, "Div", f, add(s, f, i)), sub(s, *h, new)));
}

/* lstm with a projection: gates i f g o on z + h R. */
static void projected(const struct step *s, const struct cell_graph *c, val z, val *h, val *cc) {
    const val all = add(s, z, onnx_2(s->g, "MatMul", *h, onnx_outer(s->g, c->R)));
    *cc = add(s, mul(s, sigmoid(s, gate(s, all, 1)), *cc), mul(s, sigmoid(s, gate(s, all, 0)), tanh_of(s, gate(s, all, 2))));
    *h = onnx_2(s->g, "MatMul", mul(s, sigmoid(s, gate(s, all, 3)), tanh_of(s, *cc)), onnx_outer(s->g, c->hr));
}

static bool has_two(const struct cell_graph *c) { return c->hr > 0 || c->cell->states > 1; }

static void one_step(const struct step *s, const struct cell_graph *c, val z, val *h, val *cc) {
    if (c->hr > 0)
        projected(s, c, z, h, cc);
    else if (c->cell->kind == (enum cell_kind)CELL_AT_paragru)
        paragru(s, c, z, h);
    else if (c->cell->kind == (enum cell_kind)CELL_AT_paralstm)
        paralstm(s, c, z, h, cc);
    else if (c->cell->kind == (enum cell_kind)CELL_AT_minlstm)
        minlstm(s, z, h);
    else
        onnx_refuse(s->g, "the cell %s", c->cell->name);
}

/* The state where live is 1; what it was before where live is 0. */
static val held(const struct step *s, val live, val before, val after) {
    return live < 0 || before < 0 ? after : add(s, before, mul(s, live, sub(s, after, before)));
}

/* live: rows have lengths of their own, and a further input of the scan tells which rows are at a step [rows, 1]. */
static void body_of(const struct cell_graph *c, bool lengths, struct onnx_graph *outer, struct onnx_graph *g) {
    const struct step s = {.g = g, .H = c->H};
    onnx_body(outer, g);
    const char *p = g->prefix, *rows = arena_printf(&g->arena, "%srows", p);
    const struct onnx_dim state[] = {{rows, 0}, {NULL, c->P}}, cell[] = {{rows, 0}, {NULL, c->H}}, one[] = {{rows, 0}, {NULL, 1}};
    const struct onnx_dim wide[] = {{rows, 0}, {NULL, (i64)c->cell->gates * c->H}};
    const val h0 = onnx_input(g, arena_printf(&g->arena, "%sh", p), ONNX_FLOAT, 2, state);
    const val c0 = has_two(c) ? onnx_input(g, arena_printf(&g->arena, "%sc", p), ONNX_FLOAT, 2, cell) : -1;
    const val z = onnx_input(g, arena_printf(&g->arena, "%sz", p), ONNX_FLOAT, 2, wide);
    const val live = lengths ? onnx_input(g, arena_printf(&g->arena, "%slive", p), ONNX_FLOAT, 2, one) : -1;
    val h = h0, cc = c0;
    one_step(&s, c, z, &h, &cc);
    h = held(&s, live, h0, h), cc = held(&s, live, c0, cc);
    onnx_output(g, h, arena_printf(&g->arena, "%sh1", p), ONNX_FLOAT, 2, state);
    if (cc >= 0) onnx_output(g, cc, arena_printf(&g->arena, "%sc1", p), ONNX_FLOAT, 2, cell);
    onnx_output(g, lengths ? mul(&s, live, h) : h, arena_printf(&g->arena, "%sy", p), ONNX_FLOAT, 2, state);
}

/* Zeros [batch, H] for a state of x [T, batch, I]. */
static val zeros(struct onnx_graph *g, val x, i32 H) {
    const val batch = onnx_slice(g, onnx_1(g, "Shape", x), 0, 1, 2);
    return onnx_1(g, "ConstantOfShape", onnx_concat(g, 0, VALS(batch, onnx_i64s(g, DIMS(H)))));
}

/* FLOAT [T, batch, 1]: 1 = the row has this step. */
static val live_rows(struct net_graph *n, val x) {
    struct onnx_graph *g = n->g;
    const val steps = onnx_squeeze(g, onnx_slice(g, onnx_1(g, "Shape", x), 0, 0, 1), 0);
    const val t = onnx_unsqueeze(g, onnx_op(g, "Range", VALS(onnx_i64(g, 0), steps, onnx_i64(g, 1))), 1);
    const val inside = onnx_2(g, "Less", t, onnx_unsqueeze(g, onnx_cast(g, n->lengths, ONNX_INT64), 0));
    return onnx_unsqueeze(g, onnx_cast(g, inside, ONNX_FLOAT), 2);
}

static val run_scan(struct net_graph *n, const struct cell_graph *c, val x, val state, val *end) {
    struct onnx_graph *g = n->g, body;
    const bool two = has_two(c), lengths = n->lengths >= 0;
    val in[4], out[3] = {0};
    i32 nin = 0;
    in[nin++] = state < 0 ? zeros(g, x, c->P) : onnx_squeeze(g, onnx_slice(g, state, 0, 0, 1), 0);
    if (two) in[nin++] = state < 0 ? zeros(g, x, c->H) : onnx_squeeze(g, onnx_slice(g, state, 0, 1, 2), 0);
    in[nin++] = onnx_2(g, "Add", onnx_2(g, "MatMul", x, c->W), c->B);
    if (lengths) in[nin++] = live_rows(n, x);
    body_of(c, lengths, g, &body);
    onnx_node(g, "Scan", nin, in, two ? 3 : 2, out,
              (struct onnx_attr[]){{.name = "num_scan_inputs", .type = ATTR_INT, .i = lengths ? 2 : 1},
                                   {.name = "body", .type = ATTR_GRAPH, .graph = &body},
                                   {0}});
    const val h1 = onnx_unsqueeze(g, out[0], 0);
    *end = two && c->hr <= 0 ? onnx_concat(g, 0, VALS(h1, onnx_unsqueeze(g, out[1], 0))) : h1;
    return out[two ? 2 : 1];
}

val cell_graph_run(struct net_graph *n, const struct cell_graph *c, val x, val state, val *end) {
    return c->cell->diagonal || c->hr > 0 ? run_scan(n, c, x, state, end) : run_operator(n, c, x, state, end);
}

void graph_recurrent(struct net_graph *n, const struct op *op) {
    const struct cell_graph c = cell_graph_of(n, op, cell_of(op->spec.cell), op->I, op->F, 0, NULL);
    n->buf[op->out] = cell_graph_run(n, &c, net_in(n, op, 0), net_in(n, op, 1), &n->buf[op->end]);
}

void graph_projected(struct net_graph *n, const struct op *op) {
    const i32 H = op->spec.hidden;
    struct cell_graph c = {.cell = cell_of(CELL_LSTM), .I = op->I, .H = H, .P = op->F};
    c.W = net_turned(n, op, "weight_ih", 4 * H, op->I, net_tensor(n, op, 0));
    c.R = net_turned(n, op, "weight_hh", 4 * H, op->F, net_tensor(n, op, 1));
    c.B = net_constant(n, op, "bias", 1, (i64[]){4 * (i64)H}, net_tensor(n, op, 2));
    c.hr = net_turned(n, op, "weight_hr", op->F, H, net_tensor(n, op, 4));
    n->buf[op->out] = cell_graph_run(n, &c, net_in(n, op, 0), -1, &n->buf[op->end]);
}
