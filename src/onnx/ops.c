/* ops.c - see ops.h. */
#include "onnx/ops.h"

val onnx_op(struct onnx_graph *g, const char *op, i32 nin, const val *in) {
    val out = 0;
    onnx_node(g, op, nin, in, 1, &out, NULL);
    return out;
}

val onnx_op_int(struct onnx_graph *g, const char *op, const char *name, i64 v, i32 nin, const val *in) {
    val out = 0;
    onnx_node(g, op, nin, in, 1, &out, (struct onnx_attr[]){{.name = name, .type = ATTR_INT, .i = v}, {0}});
    return out;
}

val onnx_f32(struct onnx_graph *g, f32 v) { return onnx_tensor(g, NULL, ONNX_FLOAT, 0, NULL, &v); }
val onnx_f64(struct onnx_graph *g, f64 v) { return onnx_tensor(g, NULL, ONNX_DOUBLE, 0, NULL, &v); }
val onnx_i64(struct onnx_graph *g, i64 v) { return onnx_tensor(g, NULL, ONNX_INT64, 0, NULL, &v); }
val onnx_i64s(struct onnx_graph *g, i32 n, const i64 *v) { return onnx_tensor(g, NULL, ONNX_INT64, 1, (i64[]){n}, v); }
val onnx_f64s(struct onnx_graph *g, i32 n, const f64 *v) { return onnx_tensor(g, NULL, ONNX_DOUBLE, 1, (i64[]){n}, v); }

val onnx_cast(struct onnx_graph *g, val v, enum onnx_type type) { return onnx_op_int(g, "Cast", "to", type, 1, &v); }

val onnx_slice(struct onnx_graph *g, val v, i32 axis, i64 from, i64 to) {
    return onnx_op(g, "Slice", VALS(v, onnx_i64s(g, DIMS(from)), onnx_i64s(g, DIMS(to)), onnx_i64s(g, DIMS(axis))));
}

val onnx_reverse(struct onnx_graph *g, val v, i32 axis) {
    return onnx_op(
        g, "Slice",
        VALS(v, onnx_i64s(g, DIMS(-1)), onnx_i64s(g, DIMS(INT64_MIN)), onnx_i64s(g, DIMS(axis)), onnx_i64s(g, DIMS(-1))));
}

val onnx_reshape(struct onnx_graph *g, val v, i32 n, const i64 *dim) { return onnx_2(g, "Reshape", v, onnx_i64s(g, n, dim)); }

val onnx_transpose(struct onnx_graph *g, val v, i32 n, const i64 *perm) {
    val out = 0;
    onnx_node(g, "Transpose", 1, &v, 1, &out,
              (struct onnx_attr[]){{.name = "perm", .type = ATTR_INTS, .n = n, .ints = perm}, {0}});
    return out;
}

val onnx_concat(struct onnx_graph *g, i32 axis, i32 n, const val *v) {
    return n == 1 ? v[0] : onnx_op_int(g, "Concat", "axis", axis, n, v);
}

val onnx_gather(struct onnx_graph *g, val v, val index, i32 axis) {
    return onnx_op_int(g, "Gather", "axis", axis, 2, (val[]){v, index});
}

val onnx_pad(struct onnx_graph *g, val v, i32 ndim, i32 axis, i64 before, i64 after, val fill) {
    i64 pads[2 * ONNX_DIMS] = {0};
    val out = 0;
    pads[axis] = before;
    pads[ndim + axis] = after;
    onnx_node(g, "Pad", 3, (val[]){v, onnx_i64s(g, 2 * ndim, pads), fill}, 1, &out,
              (struct onnx_attr[]){{.name = "mode", .type = ATTR_STRING, .s = fill < 0 ? "edge" : "constant"}, {0}});
    return out;
}

val onnx_where(struct onnx_graph *g, val yes, val a, val b) { return onnx_op(g, "Where", 3, (val[]){yes, a, b}); }
val onnx_squeeze(struct onnx_graph *g, val v, i32 axis) { return onnx_2(g, "Squeeze", v, onnx_i64s(g, DIMS(axis))); }
val onnx_unsqueeze(struct onnx_graph *g, val v, i32 axis) { return onnx_2(g, "Unsqueeze", v, onnx_i64s(g, DIMS(axis))); }
val onnx_sum(struct onnx_graph *g, val v, i32 axis) { return onnx_2(g, "ReduceSum", v, onnx_i64s(g, DIMS(axis))); }
