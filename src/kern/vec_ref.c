/* vec_ref.c - scalar reference implementations of the vector functions in kern.h. */
#define _GNU_SOURCE
#include "kern/fill.h"

#include <math.h>
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
    k->fma_rate = fma_rate;
}
