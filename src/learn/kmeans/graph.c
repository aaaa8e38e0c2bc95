/* graph.c - clusters as an ONNX graph: x DOUBLE [rows, inputs] -> cluster INT64 [rows] from 1, distance DOUBLE [rows]. */
#include "learn/kmeans/graph.h"

#include <math.h>

#include "base/mem.h"
#include "learn/table_rows.h"
#include "onnx/ops.h"
#include "onnx/ort.h"

enum { ROWS = 1024 };

err kmeans_graph(const struct model *m, struct onnx_graph *g, const struct graph_wishes *wish) {
    const struct kmeans *f = kmeans_of(m);
    const struct onnx_dim dim[] = {{"rows", 0}, {NULL, f->d}};
    (void)wish;
    const val x = onnx_input(g, "x", ONNX_DOUBLE, 2, dim);
    const val moved = onnx_2(g, "Sub", x, onnx_tensor(g, "scale.center", ONNX_DOUBLE, 2, (i64[]){1, f->d}, f->scale.center));
    const val z = onnx_2(g, "Div", moved, onnx_tensor(g, "scale.spread", ONNX_DOUBLE, 2, (i64[]){1, f->d}, f->scale.spread));
    const val center = onnx_tensor(g, "center", ONNX_DOUBLE, 3, (i64[]){1, f->k, f->d}, f->center);
    const val d = onnx_2(g, "Sub", onnx_unsqueeze(g, z, 1), center);
    const val far = onnx_squeeze(g, onnx_sum(g, onnx_2(g, "Mul", d, d), 2), 2); /* [rows, k] */
    const val near = onnx_op_int(g, "ArgMin", "axis", 1, 1, &far);
    const val least = onnx_op_int(g, "GatherElements", "axis", 1, 2, (val[]){far, near});
    onnx_output(g, onnx_2(g, "Add", onnx_squeeze(g, near, 1), onnx_i64(g, 1)), "cluster", ONNX_INT64, 1, dim);
    onnx_output(g, onnx_1(g, "Sqrt", onnx_squeeze(g, least, 1)), "distance", ONNX_DOUBLE, 1, dim);
    return table_rows_describe(g, f->d, f->scale.name);
}

static i64 rows_of(const struct kmeans *f) {
    i64 n = 0;
    for (i32 k = 0; k < f->k; k++) n += f->count[k];
    return n;
}

static err compare(const struct kmeans *f, const struct dataset *d, const struct resources *use, struct ort *run, struct arena *a,
                   struct graph_gap *gap) {
    const i64 n = lmin(ROWS, d->nrow);
    i32 *label;
    f64 *x, *distance;
    struct ort_tensor out[2] = {{.name = "cluster", .type = ONNX_INT64}, {.name = "distance", .type = ONNX_DOUBLE}};
    ARENA_NEW(a, x, n * f->d);
    ARENA_NEW(a, label, n);
    ARENA_NEW(a, distance, n);
    for (i32 k = 0; k < f->d; k++)
        for (i64 i = 0; i < n; i++) x[i * f->d + k] = table_input(table_set_of(d), k)->number[i];
    TRY(kmeans_label(f, d, use, 0, n, label, distance, NULL));
    const struct ort_tensor in = {.name = "x", .type = ONNX_DOUBLE, .ndim = 2, .dim = {n, f->d}, .data = x};
    TRY(ort_run(run, 1, &in, 2, out));
    TRY(ort_need(&out[0], n));
    TRY(ort_need(&out[1], n));
    const f64 unit = f->inertia > 0 && rows_of(f) > 0 ? sqrt(f->inertia / (f64)rows_of(f)) : 1;
    for (i64 i = 0; i < n; i++) {
        const f64 gap_here = fabs(((const f64 *)out[1].data)[i] - distance[i]) / unit;
        const bool other = ((const i64 *)out[0].data)[i] != label[i] + 1; /* a tie may fall to either */
        graph_gap_add(gap, gap_here);
        graph_gap_add(gap, other && !(gap_here <= 1e-9) ? (f64)INFINITY : 0);
    }
    gap->windows = n;
    return 0;
}

err kmeans_graph_check(const struct model *m, const struct dataset *d, const struct resources *use, struct ort *run,
                       const struct graph_wishes *wish, struct graph_gap *gap) {
    struct arena room = {0};
    (void)wish;
    *gap = (struct graph_gap){0};
    const err e = compare(kmeans_of(m), d, use, run, &room, gap);
    arena_free(&room);
    return e;
}
