/* near.c - the scalar reference of the inner loops of k-means, and the choice by instruction set; see near.h. */
#include "learn/kmeans/near.h"

#include <math.h>

static void product(i32 n, i32 d, const f32 *const *row, const f32 *panel, const f32 *start, f32 *out, f32 *least) {
    for (i32 r = 0; r < n; r++) {
        least[r] = INFINITY;
        for (i32 k = 0; k < LANES; k++) {
            f32 sum = start[k];
            for (i32 j0 = 0; j0 < d; j0 += NEAR_CHAIN) {
                f32 chain = 0;
                for (i32 j = j0; j < imin(d, j0 + NEAR_CHAIN); j++) chain += row[r][j] * panel[j * LANES + k];
                sum += chain;
            }
            out[r * LANES + k] = sum;
            least[r] = fminf(least[r], sum);
        }
    }
}

static f32 distance(i32 d, const f32 *a, const f32 *b) {
    f32 sum = 0;
    for (i32 j0 = 0; j0 < d; j0 += NEAR_CHAIN) {
        f32 chain = 0;
        for (i32 j = j0; j < imin(d, j0 + NEAR_CHAIN); j++) chain += (a[j] - b[j]) * (a[j] - b[j]);
        sum += chain;
    }
    return sum;
}

static i32 open_groups(i32 n, f32 u, const f32 *bound, const f32 *drift, const f32 *half, i32 *list) {
    i32 found = 0;
    for (i32 g = 0; g < n; g++)
        if (u >= bound[g] - drift[g] && u >= half[g]) list[found++] = g;
    return found;
}

static void pick(i32 n, const f32 *value, const f32 *least, f32 margin, f32 share, u32 *mask) {
    for (i32 r = 0; r < n; r++) {
        const f32 limit = least[r] + margin + share * fabsf(least[r]);
        mask[r] = 0;
        for (i32 k = 0; k < LANES; k++) mask[r] |= (u32)!(value[r * LANES + k] > limit) << k;
    }
}

const struct near_ops near_ref = {.product = product, .distance = distance, .open = open_groups, .pick = pick};

extern const struct near_ops near_base;
#if defined(__x86_64__)
extern const struct near_ops near_avx2, near_avx512;
#elif defined(__aarch64__)
extern const struct near_ops near_neon;
#endif

const struct near_ops *near_choose(enum kern_arch arch) {
#if defined(__x86_64__)
    if (arch >= KERN_AVX512) return &near_avx512; /* the bf16 sets include avx512 */
    if (arch == KERN_AVX2) return &near_avx2;
#elif defined(__aarch64__)
    if (arch == KERN_NEON) return &near_neon;
#endif
    return arch == KERN_REF ? &near_ref : &near_base;
}
