/* graph.c - see graph.h. */
#include "learn/network/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "learn/onnx/layers.h"
#include "learn/table_set.h"

enum { TEST_BYTES_MOST = 1 << 30, PATH_ROOM = 4352 };

/* ------------------------------------------------------------------ export -------------------------------------------------- */

static err build(const struct network *w, struct onnx_graph *g, struct arena *a) {
    const struct onnx_dim in[] = {{"steps", 0}, {"batch", 0}, {NULL, w->I}},
                          out[] = {{"steps_out", 0}, {"batch", 0}, {NULL, w->O}};
    struct net_graph n = {.g = g, .net = &w->net, .theta = w->theta, .prefix = "", .lengths = -1, .arena = a};
    for (i32 i = 0; i < NET_BUFS; i++) n.buf[i] = -1;
    n.buf[0] = onnx_input(g, "x", ONNX_FLOAT, 3, in);
    TRY(net_graph(&n, 0, w->net.nop));
    val y = n.buf[w->net.op[w->net.nop - 1].out];
    if (w->reads == READS_LAST) y = onnx_slice(g, y, 0, -1, ONNX_ALL);
    onnx_output(g, y, "y", ONNX_FLOAT, 3, out);
    return 0;
}

err network_graph(const struct model *m, struct onnx_graph *g, const struct graph_wishes *wish) {
    struct arena room = {0};
    (void)wish;
    const err e = build(network_of(m), g, &room);
    arena_free(&room);
    return e;
}

static err beside(const struct network *w, const struct table_set *s, const struct resources *use, struct ort *run,
                  struct arena *a, struct graph_gap *out) {
    const i32 T = (i32)s->set.nrow;
    const i64 n = (i64)network_steps(w, T) * w->O;
    f32 *x, *y;
    ARENA_NEW(a, x, (i64)T * w->I);
    ARENA_NEW(a, y, n);
    for (i32 k = 0; k < w->I; k++)
        for (i32 t = 0; t < T; t++) x[(i64)t * w->I + k] = (f32)table_input(s, k)->number[t];
    TRY(network_run(w, use->kern, T, 1, x, y));
    const struct ort_tensor in = {.name = "x", .type = ONNX_FLOAT, .ndim = 3, .dim = {T, 1, w->I}, .data = x};
    struct ort_tensor got = {.name = "y", .type = ONNX_FLOAT};
    TRY(ort_run(run, 1, &in, 1, &got));
    TRY(ort_need(&got, n));
    for (i64 i = 0; i < n; i++) graph_gap_add(out, fabs((f64)y[i] - (f64)((const f32 *)got.data)[i]));
    out->windows = 1;
    return 0;
}

err network_graph_check(const struct model *m, const struct dataset *d, const struct resources *use, struct ort *run,
                        const struct graph_wishes *wish, struct graph_gap *out) {
    struct arena room = {0};
    (void)wish;
    *out = (struct graph_gap){0};
    const err e = beside(network_of(m), table_set_of(d), use, run, &room, out);
    arena_free(&room);
    return e;
}

/* ------------------------------------------------------------------ test data ----------------------------------------------- */

static err load(const char *folder, const char *what, i32 k, struct arena *a, struct onnx_constant *t) {
    char path[PATH_ROOM];
    char *bytes;
    i64 n;
    snprintf(path, sizeof path, "%.4000s/%s_%d.pb", folder, what, k);
    TRY(file_load(path, TEST_BYTES_MOST, &bytes, &n));
    const err e = onnx_read_tensor(bytes, n, path, a, t);
    mem_free(bytes);
    return e;
}

err network_test_bind(struct onnx_file *f, const char *folder, struct arena *a) {
    const i32 n = f->ninput;
    const char **name;
    ARENA_NEW(a, name, n);
    for (i32 i = 0; i < n; i++) name[i] = f->input[i].name;
    for (i32 i = 0; i < n; i++) {
        struct onnx_constant t;
        if (!network_is_weight(f, name[i])) continue;
        TRY(load(folder, "input", i, a, &t));
        onnx_bind(f, name[i], &t);
    }
    return 0;
}

/* Where [t][b][j] of our output lies in one of this form, with B rows and steps T. */
static i64 place(const struct network_io *io, i64 T, i64 B, i64 O, i64 t, i64 b, i64 j) {
    const i64 H = O / io->dirs, d = j / H, h = j % H;
    switch (io->out) {
        case FORM_BTF:
        case FORM_BTDH:
            return (b * T + t) * O + j;
        case FORM_TDBH:
            return ((t * io->dirs + d) * B + b) * H + h;
        case FORM_DBH:
            return (d * B + b) * H + h;
        default:
            return (t * B + b) * O + j;
    }
}

static err compare(const struct network *w, const struct network_io *io, const struct onnx_constant *x,
                   const struct onnx_constant *want, const struct kern *k, struct arena *a, struct graph_gap *gap) {
    const bool turned = io->in == FORM_BTF;
    const i64 T = x->dim[turned ? 1 : 0], B = x->dim[turned ? 0 : 1], I = w->I;
    if (x->ndim != 3 || x->dim[2] != I || !x->f || !want->f || T > NETWORK_STEPS || B > INT32_MAX)
        return FAIL_AT(E905, x->name, NULL, "the input of the test data is not [steps][batch][%d]", w->I);
    const i64 steps = network_steps(w, (i32)T), n = steps * B * w->O;
    f32 *in, *y;
    if (want->n != n)
        return FAIL_AT(E905, want->name, NULL, "the output of the test data has %lld numbers, not %lld", (long long)want->n,
                       (long long)n);
    ARENA_NEW(a, in, x->n);
    ARENA_NEW(a, y, n);
    for (i64 t = 0; t < T; t++)
        for (i64 b = 0; b < B; b++)
            memcpy(in + (t * B + b) * I, x->f + (turned ? b * T + t : t * B + b) * I, sizeof *in * (size_t)I);
    TRY(network_run(w, k, (i32)T, (i32)B, in, y));
    for (i64 i = 0; i < n; i++) {
        const i64 t = i / (B * w->O), b = i / w->O % B, j = i % w->O;
        const f64 v = (f64)want->f[place(io, steps, B, w->O, t, b, j)];
        graph_gap_add(gap, fabs((f64)y[i] - v) / (1e-7 + 1e-3 * fabs(v))); /* the tolerances of ONNX's own tests */
    }
    return 0;
}

err network_test_run(const struct network *w, const struct network_io *io, const char *folder, const struct kern *k, f64 *worst) {
    struct arena room = {0};
    struct onnx_constant x, want;
    struct graph_gap gap = {0};
    err e = load(folder, "input", 0, &room, &x);
    if (e >= 0) e = load(folder, "output", 0, &room, &want);
    if (e >= 0) e = compare(w, io, &x, &want, k, &room, &gap);
    arena_free(&room);
    *worst = gap.worst;
    return e;
}
