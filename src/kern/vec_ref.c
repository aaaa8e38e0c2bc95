/* vec_ref.c - scalar reference implementations of the vector functions in kern.h. */
#define _GNU_SOURCE
#include "kern/fill.h"

#include <math.h>
#include <string.h>
#include <time.h>

static void add(i64 n, f32 *y, const f32 *x) {
    for (i64 i = 0; i < n; i++) y[i] += x[i];
}

static void sigmoid(i64 n, f32 *y, const f32 *x) {
    for (i64 i = 0; i < n; i++) y[i] = 1.0f / (1.0f + expf(-x[i]));
}

static void tanh_of(i64 n, f32 *y, const f32 *x) {
    for (i64 i = 0; i < n; i++) y[i] = tanhf(x[i]);
}

/* Element i is added to partial sum i mod 16, then the partial sums are added as a binary tree. The square of an f32 is exact
 * in f64, so FMA contraction changes nothing and all instruction sets give the same bits. */
static f64 sumsq(i64 n, const f32 *x) {
    f64 s[LANES] = {0};
    for (i64 i = 0; i < n; i++) s[i % LANES] += (f64)x[i] * (f64)x[i];
    for (i32 half = LANES / 2; half > 0; half /= 2)
        for (i32 j = 0; j < half; j++) s[j] += s[j + half];
    return s[0];
}

static void sumsq_blocks(i64 n, i64 block, const f32 *x, f64 *sum) {
    for (i64 at = 0; at < n; at += block) sum[at / block] = sumsq(lmin(block, n - at), x + at);
}

static void copy(i64 rows, i64 n, f32 *to, i64 to_ld, const f32 *from, i64 from_ld) {
    for (i64 r = 0; r < rows; r++) copy_or_zero(to + r * to_ld, from ? from + r * from_ld : NULL, n);
}

static void add_rows(i32 runs, i64 run, i64 rows, i32 n, f32 *y, const f32 *x, i64 ldx) {
    for (i32 i = 0; i < runs; i++)
        for (i64 r = 0; r < rows; r++) add(n, y, x + i * run + r * ldx);
}

static void transpose(i64 rows, i32 n, const f32 *from, i64 from_ld, f32 *to, i64 to_ld) {
    for (i64 k = 0; k < rows; k++)
        for (i32 j = 0; j < n; j++) to[j * to_ld + k] = from[k * from_ld + j];
}

static void relu(i64 n, f32 *y, const f32 *x) {
    for (i64 i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0;
}

static void tanh_slope(i64 n, f32 *dy, const f32 *y) {
    for (i64 i = 0; i < n; i++) dy[i] *= 1 - y[i] * y[i];
}

static void relu_slope(i64 n, f32 *dy, const f32 *y) {
    for (i64 i = 0; i < n; i++) dy[i] = y[i] > 0 ? dy[i] : 0;
}

static f64 fma_rate(i64 n) {
    struct timespec a, b;
    f32 s[LANES];
    for (i32 j = 0; j < LANES; j++) s[j] = (f32)j;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (i64 i = 0; i < n; i++)
        for (i32 j = 0; j < LANES; j++) s[j] = s[j] * 0.999f + 0.5f;
    clock_gettime(CLOCK_MONOTONIC, &b);
    f64 keep = 0;
    for (i32 j = 0; j < LANES; j++) keep += (f64)s[j];
    const f64 seconds = (f64)(b.tv_sec - a.tv_sec) + 1e-9 * (f64)(b.tv_nsec - a.tv_nsec);
    return keep > 0 && seconds > 0 ? 2e-9 * (f64)LANES * (f64)n / seconds : 0;
}

void kern_fill_vec_ref(struct kern *k) {
    k->add = add;
    k->sigmoid = sigmoid;
    k->tanh = tanh_of;
    k->sumsq = sumsq;
    k->sumsq_blocks = sumsq_blocks;
    k->copy = copy;
    k->add_rows = add_rows;
    k->transpose = transpose;
    k->relu = relu;
    k->tanh_slope = tanh_slope;
    k->relu_slope = relu_slope;
    k->fma_rate = fma_rate;
}
