/* vec_tile.c - the vector functions of kern.h on simd.h; compiled once per instruction set. */
#define _GNU_SOURCE
#include "kern/fill.h"
#include "kern/tile.h"

#include <time.h>

static void add(i64 n, f32 *y, const f32 *x) {
    i64 i = 0;
    for (; i + VL <= n; i += VL) v_store(y + i, v_load(y + i) + v_load(x + i));
    for (; i < n; i++) y[i] += x[i];
}

/* y = f(x). The last n % VL elements go through a padded vector, so the result of an element does not depend on its position. */
#define MAP(name, f)                                                   \
    static void name(i64 n, f32 *y, const f32 *x) {                    \
        i64 i = 0;                                                     \
        for (; i + VL <= n; i += VL) v_store(y + i, f(v_load(x + i))); \
        if (i == n) return;                                            \
        f32 tail[VL] = {0};                                            \
        memcpy(tail, x + i, (size_t)(n - i) * sizeof *x);              \
        v_store(tail, f(v_load(tail)));                                \
        memcpy(y + i, tail, (size_t)(n - i) * sizeof *y);              \
    }
MAP(sigmoid, v_sigmoid)
MAP(tanh_of, v_tanh)

/* Same order as sumsq in vec_ref.c; plain loops that the compiler vectorizes. */
static f64 sumsq(i64 n, const f32 *x) {
    f64 s[LANES] = {0};
    i64 i = 0;
    for (; i + LANES <= n; i += LANES) UNROLL for (int j = 0; j < LANES; j++) s[j] += (f64)x[i + j] * (f64)x[i + j];
    for (int j = 0; i + j < n; j++) s[j] += (f64)x[i + j] * (f64)x[i + j];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) s[j] += s[j + half];
    return s[0];
}

static void sumsq_blocks(i64 n, i64 block, const f32 *x, f64 *sum) {
    for (i64 at = 0; at < n; at += block) sum[at / block] = sumsq(lmin(block, n - at), x + at);
}

static void sum_of_rows(i32 runs, i64 run, i64 rows, i32 n, f32 *y, const f32 *x, i64 ldx) {
    for (i32 i = 0; i < runs; i++)
        for (i64 r = 0; r < rows; r++) add(n, y, x + i * run + r * ldx);
}

/* Independent chains of v_fma in registers, enough to hide the latency on every set. */
static f64 fma_rate(i64 n) {
    enum { CHAINS = VL == 4 ? 8 : 12 };
    struct timespec a, b;
    vf s[CHAINS];
    const vf m = v_set1(0.999f), c = v_set1(0.5f);
    UNROLL for (int j = 0; j < CHAINS; j++) s[j] = v_set1((f32)j);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (i64 i = 0; i < n; i++) UNROLL for (int j = 0; j < CHAINS; j++) s[j] = v_fma(s[j], m, c);
    clock_gettime(CLOCK_MONOTONIC, &b);
    UNROLL for (int j = 1; j < CHAINS; j++) s[0] += s[j];
    f32 keep[VL];
    v_store(keep, s[0]);
    const f64 seconds = (f64)(b.tv_sec - a.tv_sec) + 1e-9 * (f64)(b.tv_nsec - a.tv_nsec);
    return keep[0] > 0 && seconds > 0 ? 2e-9 * CHAINS * VL * (f64)n / seconds : 0;
}

void ISA_NAME(kern_fill_vec)(struct kern *k) {
    k->add = add;
    k->sigmoid = sigmoid;
    k->tanh = tanh_of;
    k->sumsq = sumsq;
    k->sumsq_blocks = sumsq_blocks;
    k->add_rows = sum_of_rows;
    k->fma_rate = fma_rate;
}
