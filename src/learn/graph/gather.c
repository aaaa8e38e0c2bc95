/* gather.c - sums over the edges of a row; see gather.h.
 *
 * Four sums in turn for the blocks of four edges, then one by one: the order follows from the length of the row alone.  What is
 * slow are the loads of y from all over the memory; several rows are in flight at once, as no sum depends on another's. */
#include "learn/graph/gather.h"

#include <stddef.h>

f64 gather_f64(const u32 *from, const f64 *weight, i64 n, const f64 *y) {
    f64 s[4] = {0};
    i64 i = 0;
    if (weight) {
        for (; i + 4 <= n; i += 4)
            for (i32 k = 0; k < 4; k++) s[k] += weight[i + k] * y[from[i + k]];
        for (; i < n; i++) s[0] += weight[i] * y[from[i]];
    } else {
        for (; i + 4 <= n; i += 4)
            for (i32 k = 0; k < 4; k++) s[k] += y[from[i + k]];
        for (; i < n; i++) s[0] += y[from[i]];
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}

f64 gather_f32(const u32 *from, const f64 *weight, i64 n, const f32 *y) {
    f64 s[4] = {0};
    i64 i = 0;
    if (weight) {
        for (; i + 4 <= n; i += 4)
            for (i32 k = 0; k < 4; k++) s[k] += weight[i + k] * (f64)y[from[i + k]];
        for (; i < n; i++) s[0] += weight[i] * (f64)y[from[i]];
    } else {
        for (; i + 4 <= n; i += 4)
            for (i32 k = 0; k < 4; k++) s[k] += (f64)y[from[i + k]];
        for (; i < n; i++) s[0] += (f64)y[from[i]];
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}
