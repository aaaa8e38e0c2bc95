/* missing.c - missing values (NaN) of a history: where they are, and what stands in for them. */
#include <math.h>

#include "learn/forecast/onnx/window.h"

val wg_present(const struct window_graph *w, val v, val other) { return onnx_where(w->g, onnx_1(w->g, "IsNaN", v), other, v); }

val wg_mask(const struct window_graph *w, val v) {
    return wg_2(w, "Sub", wg_f64(w, 1), onnx_cast(w->g, onnx_1(w->g, "IsNaN", v), ONNX_DOUBLE));
}

/* v[i] = v[i - k] where v[i] is missing, for k = stride, 2 stride, 4 stride, ..: the nearest earlier value at any distance. */
val wg_hold(const struct window_graph *w, val v, i32 rows, i32 stride) {
    const val none = wg_f64(w, (f64)NAN);
    for (i64 k = stride; k < rows; k *= 2) {
        const val before = onnx_slice(w->g, onnx_pad(w->g, v, 2, 1, k, 0, none), 1, 0, rows);
        v = wg_present(w, v, before);
    }
    return v;
}
