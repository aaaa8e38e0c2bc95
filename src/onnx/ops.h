/* ops.h - operators of ONNX as functions of values: short names for what builders of graphs write most. */
#ifndef STRETTO_ONNX_OPS_H
#define STRETTO_ONNX_OPS_H

#include "onnx/graph.h"

#define VALS(...) \
    (i32)(sizeof((val[]){__VA_ARGS__}) / sizeof(val)), (val[]) { __VA_ARGS__ }
#define DIMS(...) \
    (i32)(sizeof((i64[]){__VA_ARGS__}) / sizeof(i64)), (i64[]) { __VA_ARGS__ }
enum { ONNX_ALL = INT32_MAX }; /* the end of an axis */

/* One output, no attributes; with one attribute that is a whole number. */
val onnx_op(struct onnx_graph *g, const char *op, i32 nin, const val *in);
val onnx_op_int(struct onnx_graph *g, const char *op, const char *name, i64 v, i32 nin, const val *in);

static inline val onnx_1(struct onnx_graph *g, const char *op, val a) { return onnx_op(g, op, 1, (val[]){a}); }
static inline val onnx_2(struct onnx_graph *g, const char *op, val a, val b) { return onnx_op(g, op, 2, (val[]){a, b}); }

/* Constants: scalars, and lists of whole numbers or reals. */
val onnx_f32(struct onnx_graph *g, f32 v);
val onnx_f64(struct onnx_graph *g, f64 v);
val onnx_i64(struct onnx_graph *g, i64 v);
val onnx_i64s(struct onnx_graph *g, i32 n, const i64 *v);
val onnx_f64s(struct onnx_graph *g, i32 n, const f64 *v);

val onnx_cast(struct onnx_graph *g, val v, enum onnx_type type);
val onnx_slice(struct onnx_graph *g, val v, i32 axis, i64 from, i64 to); /* below 0: from the end */
val onnx_reverse(struct onnx_graph *g, val v, i32 axis);
val onnx_reshape(struct onnx_graph *g, val v, i32 n, const i64 *dim); /* 0: keeps v's dimension; -1: inferred */
val onnx_transpose(struct onnx_graph *g, val v, i32 n, const i64 *perm);
val onnx_concat(struct onnx_graph *g, i32 axis, i32 n, const val *v);
val onnx_gather(struct onnx_graph *g, val v, val index, i32 axis);
/* Puts `before` and `after` cells of a constant around an axis of ndim; fill -1 = the cells at the ends are repeated. */
val onnx_pad(struct onnx_graph *g, val v, i32 ndim, i32 axis, i64 before, i64 after, val fill);
val onnx_where(struct onnx_graph *g, val yes, val a, val b);
val onnx_squeeze(struct onnx_graph *g, val v, i32 axis);
val onnx_unsqueeze(struct onnx_graph *g, val v, i32 axis);
val onnx_sum(struct onnx_graph *g, val v, i32 axis); /* the axis stays, with one cell */

#endif
