/* graph.c - a model of sequences as an ONNX graph, and the graph beside the model (docs/onnx.md).
 *
 *     x DOUBLE [batch, steps, channels], lengths INT32 [batch]
 *       --scale, zeros behind the end, segments--> [segments, batch, S C] --members--> softmax, or number --> mean over the
 * members */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "learn/onnx/layers.h"
#include "learn/sequence/graph.h"
#include "onnx/ort.h"

struct building {
    const struct sequence_model *m;
    struct onnx_graph *g;
    struct arena room;
    val x, lengths; /* inputs */
    val mask;       /* DOUBLE [batch, steps, 1]: 1 = a step of the sequence */
};

static val f64s(const struct building *b, i32 n, const f64 *v) {
    return onnx_reshape(b->g, onnx_f64s(b->g, n, v), DIMS(1, 1, n));
}

static val present(const struct building *b, val v) {
    const val there = onnx_2(b->g, "Sub", onnx_f64(b->g, 1), onnx_cast(b->g, onnx_1(b->g, "IsNaN", v), ONNX_DOUBLE));
    return onnx_2(b->g, "Mul", there, b->mask);
}

static val or_zero(const struct building *b, val v, val there) {
    return onnx_where(b->g, onnx_cast(b->g, there, ONNX_BOOL), v, onnx_f64(b->g, 0));
}

static val step_mask(const struct building *b) {
    struct onnx_graph *g = b->g;
    const val steps = onnx_squeeze(g, onnx_slice(g, onnx_1(g, "Shape", b->x), 0, 1, 2), 0);
    const val row = onnx_op(g, "Range", VALS(onnx_i64(g, 0), steps, onnx_i64(g, 1)));
    const val inside = onnx_2(g, "Less", onnx_unsqueeze(g, row, 0), onnx_unsqueeze(g, onnx_cast(g, b->lengths, ONNX_INT64), 1));
    return onnx_unsqueeze(g, onnx_cast(g, inside, ONNX_DOUBLE), 2);
}

/* Mean and deviation of each channel of each sequence; a constant has deviation 1 (scale.c). */
static void spread_of(const struct building *b, val *mean, val *deviation) {
    struct onnx_graph *g = b->g;
    const val there = present(b, b->x), one = onnx_f64(g, 1), n = onnx_2(g, "Max", onnx_sum(g, there, 1), one);
    *mean = onnx_2(g, "Div", onnx_sum(g, or_zero(b, b->x, there), 1), n);
    const val d = or_zero(b, onnx_2(g, "Sub", b->x, *mean), there);
    const val var = onnx_2(g, "Div", onnx_sum(g, onnx_2(g, "Mul", d, d), 1), n);
    const val least = onnx_2(g, "Mul", onnx_f64(g, 1e-20), onnx_2(g, "Mul", *mean, *mean));
    const val moves = onnx_2(g, "And", onnx_2(g, "Greater", var, least), onnx_2(g, "Greater", var, onnx_f64(g, 0)));
    *deviation = onnx_where(g, moves, onnx_1(g, "Sqrt", var), one);
}

/* Scaled steps as segments: FLOAT [segments, batch, S C]. */
static val net_x(const struct building *b) {
    const struct sequence_model *m = b->m;
    struct onnx_graph *g = b->g;
    const i32 S = m->segment, C = m->nchannel;
    val mean = f64s(b, C, m->mean), deviation = f64s(b, C, m->deviation);
    if (m->scale == SCALE_EACH) spread_of(b, &mean, &deviation);
    const val z = or_zero(b, onnx_2(g, "Div", onnx_2(g, "Sub", b->x, mean), deviation), present(b, b->x));
    val v = onnx_cast(g, z, ONNX_FLOAT);
    if (S > 1) { /* zeros up to whole segments */
        const val steps = onnx_slice(g, onnx_1(g, "Shape", b->x), 0, 1, 2), size = onnx_i64s(g, DIMS(S));
        const val whole = onnx_2(g, "Mul", onnx_2(g, "Div", onnx_2(g, "Add", steps, onnx_i64s(g, DIMS(S - 1))), size), size);
        v = onnx_pad(g, v, 3, 1, 0, S - 1, onnx_f32(g, 0));
        v = onnx_op(g, "Slice", VALS(v, onnx_i64s(g, DIMS(0)), whole, onnx_i64s(g, DIMS(1))));
        v = onnx_reshape(g, v, DIMS(0, -1, (i64)S * C));
    }
    return onnx_transpose(g, v, 3, (i64[]){1, 0, 2});
}

static val net_lengths(const struct building *b) {
    const i64 S = b->m->segment;
    const val n = onnx_cast(b->g, b->lengths, ONNX_INT64), up = onnx_2(b->g, "Add", n, onnx_i64(b->g, S - 1));
    return onnx_cast(b->g, onnx_2(b->g, "Div", up, onnx_i64(b->g, S)), ONNX_INT32);
}

/* One member: probabilities or the number, DOUBLE [steps or 1, batch, K]. */
static err member(struct building *b, const struct net_graph *like, i32 k, val *out) {
    struct net_graph n = *like;
    char prefix[32];
    snprintf(prefix, sizeof prefix, b->m->members > 1 ? "member.%d." : "", k);
    n.prefix = prefix;
    n.theta = b->m->theta + k * n.net->ntheta;
    TRY(net_graph(&n, 0, n.net->nop - 1));
    const val u = n.buf[n.net->op[n.net->nop - 1].spec.in[0]];
    *out = onnx_cast(b->g, b->m->regress ? u : onnx_op_int(b->g, "Softmax", "axis", 2, 1, &u), ONNX_DOUBLE);
    return 0;
}

static err output(struct building *b, val sum) {
    const struct sequence_model *m = b->m;
    const char *name = m->regress ? "value" : "probabilities";
    struct onnx_graph *g = b->g;
    val v = onnx_2(g, "Mul", sum, onnx_f64(g, 1.0 / m->members));
    if (m->regress) v = onnx_2(g, "Add", onnx_2(g, "Mul", v, onnx_f64(g, m->y_deviation)), onnx_f64(g, m->y_mean));
    v = m->per_step ? onnx_transpose(g, v, 3, (i64[]){1, 0, 2}) : onnx_squeeze(g, v, 0);
    const struct onnx_dim each[] = {{"batch", 0}, {"steps", 0}, {NULL, sequence_outputs(m)}}, whole[] = {each[0], each[2]};
    onnx_output(g, v, name, ONNX_DOUBLE, m->per_step ? 3 : 2, m->per_step ? each : whole);
    return 0;
}

static err describe(const struct building *b) {
    struct js *o = js_object(), *channels = js_array(), *classes = js_array();
    struct str text = {0};
    for (i32 c = 0; c < b->m->nchannel; c++) js_push(channels, js_new_text(b->m->channel[c]));
    for (i32 k = 0; k < b->m->classes.n; k++) js_push(classes, js_new_text(vocab_word(&b->m->classes, k)));
    js_put(o, "channels", channels);
    js_put(o, "classes", classes);
    const err e = js_text(o, &text, 0);
    if (e >= 0) onnx_meta(b->g, "stretto.inputs", str_text(&text));
    js_free(o);
    str_free(&text);
    return e;
}

static err build(struct building *b) {
    const struct onnx_dim x[] = {{"batch", 0}, {"steps", 0}, {NULL, b->m->nchannel}};
    struct net_graph n = {.g = b->g, .net = &b->m->net, .arena = &b->room};
    val sum = -1, out;
    b->x = onnx_input(b->g, "x", ONNX_DOUBLE, 3, x);
    b->lengths = onnx_input(b->g, "lengths", ONNX_INT32, 1, x);
    b->mask = step_mask(b);
    for (i32 i = 0; i < NET_BUFS; i++) n.buf[i] = -1;
    for (i32 i = 0; i < n.net->nbuf; i++)
        if (n.net->buf[i].input && n.net->buf[i].role == SEQUENCE_X) n.buf[i] = net_x(b);
    n.lengths = net_lengths(b);
    for (i32 k = 0; k < b->m->members; k++) {
        TRY(member(b, &n, k, &out));
        sum = sum < 0 ? out : onnx_2(b->g, "Add", sum, out);
    }
    TRY(output(b, sum));
    return describe(b);
}

err sequence_graph(const struct model *m, struct onnx_graph *g, const struct graph_wishes *wish) {
    struct building b = {.m = sequence_of(m), .g = g};
    (void)wish;
    const err e = build(&b);
    arena_free(&b.room);
    return e;
}

/* ------------------------------------------------------------------ the comparison ------------------------------------------ */

enum { RECORDS = 64 };

static err inputs(const struct sequence_model *m, const struct sequence_set *s, i64 n, struct arena *a, struct ort_tensor in[2]) {
    const i32 T = sequence_longest(s, 0, n), C = m->nchannel;
    f64 *x;
    i32 *length;
    ARENA_NEW(a, x, n * T * C);
    ARENA_NEW(a, length, n);
    for (i64 k = 0; k < n; k++) {
        length[k] = s->length[s->at[k]];
        for (i32 i = 0; i < T; i++)
            for (i32 c = 0; c < C; c++) x[(k * T + i) * C + c] = i < length[k] ? sequence_value(s, s->at[k], i, c) : (f64)NAN;
    }
    in[0] = (struct ort_tensor){.name = "x", .type = ONNX_DOUBLE, .ndim = 3, .dim = {n, T, C}, .data = x};
    in[1] = (struct ort_tensor){.name = "lengths", .type = ONNX_INT32, .ndim = 1, .dim = {n}, .data = length};
    return 0;
}

static err compare(const struct sequence_model *m, const struct sequence_set *s, const struct sequence_out *own, struct ort *run,
                   struct arena *a, struct graph_gap *gap) {
    const i64 n = own->to - own->from, K = own->K;
    struct ort_tensor in[2], out = {.name = m->regress ? "value" : "probabilities", .type = ONNX_DOUBLE};
    TRY(inputs(m, s, n, a, in));
    TRY(ort_run(run, 2, in, 1, &out));
    const i64 T = m->per_step ? in[0].dim[1] : 1;
    TRY(ort_need(&out, n * T * K));
    const f64 unit = m->regress ? m->y_deviation : 1;
    for (i64 k = 0; k < n; k++)
        for (i64 i = 0; i < sequence_labels(m, s, s->at[k]) * K; i++)
            graph_gap_add(gap, fabs(own->p[own->first[k] * K + i] - ((const f64 *)out.data)[k * T * K + i]) / unit);
    gap->windows = n;
    return 0;
}

err sequence_graph_check(const struct model *m, const struct dataset *d, const struct resources *use, struct ort *run,
                         const struct graph_wishes *wish, struct graph_gap *gap) {
    const struct sequence_set *s = sequence_set_of(d);
    struct sequence_out own;
    struct arena room = {0};
    (void)wish;
    *gap = (struct graph_gap){0};
    TRY(sequence_out_new(sequence_of(m), s, 0, lmin(RECORDS, d->nrow), &own));
    err e = sequence_predict(sequence_of(m), s, use, &own);
    if (e >= 0) e = compare(sequence_of(m), s, &own, run, &room, gap);
    sequence_out_free(&own);
    arena_free(&room);
    return e;
}
