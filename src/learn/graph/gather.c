/* gather.c - sums over the edges of rows; see gather.h.
 *
 * Four sums in turn for the blocks of four edges, then one by one.  What is slow are the loads of y from all over the memory;
 * several rows are in flight at once, as no sum depends on another's.  Compiled without automatic vectors: one made of single
 * loads is slower than the loads. */
#include "learn/graph/gather.h"

#include <stddef.h>

/* The loop over rows; TERM(e): what edge e brings. */
#define SUM_ROWS(type)                                                                                                           \
    for (i64 r = 0; r < n; r++) {                                                                                                \
        type s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                                                     \
        i64 e = row[r];                                                                                                          \
        const i64 end = row[r + 1];                                                                                              \
        for (; e + 4 <= end; e += 4) {                                                                                           \
            s0 += TERM(e);                                                                                                       \
            s1 += TERM(e + 1);                                                                                                   \
            s2 += TERM(e + 2);                                                                                                   \
            s3 += TERM(e + 3);                                                                                                   \
        }                                                                                                                        \
        for (; e < end; e++) s0 += TERM(e);                                                                                      \
        sum[r] = (s0 + s1) + (s2 + s3);                                                                                          \
    }

void gather_f32(const i64 *row, const u32 *from, const f64 *weight, i64 n, const f32 *y, f32 *sum) {
    if (weight) {
#define TERM(e) (f32)weight[e] * y[from[e]]
        SUM_ROWS(f32)
#undef TERM
        return;
    }
#define TERM(e) y[from[e]]
    SUM_ROWS(f32)
#undef TERM
}

void gather_f64(const i64 *row, const u32 *from, const f64 *weight, i64 n, const f32 *y, f64 *sum) {
    if (weight) {
#define TERM(e) weight[e] * (f64)y[from[e]]
        SUM_ROWS(f64)
#undef TERM
        return;
    }
#define TERM(e) (f64)y[from[e]]
    SUM_ROWS(f64)
#undef TERM
}

void add_f32(const u32 *from, const u16 *to, const f64 *weight, i64 n, const f32 *y, f32 *sum) {
    if (weight)
        for (i64 e = 0; e < n; e++) sum[to[e]] += (f32)weight[e] * y[from[e]];
    else
        for (i64 e = 0; e < n; e++) sum[to[e]] += y[from[e]];
}

void add_f64(const u32 *from, const u16 *to, const f64 *weight, i64 n, f64 factor, const f32 *y, f64 *sum) {
    if (weight)
        for (i64 e = 0; e < n; e++) sum[to[e]] += factor * weight[e] * (f64)y[from[e]];
    else
        for (i64 e = 0; e < n; e++) sum[to[e]] += factor * (f64)y[from[e]];
}
