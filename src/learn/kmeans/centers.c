/* centers.c - centers as panels of f32, and the distances between them; see assign.h. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/kmeans/assign.h"

#define E 0x1p-24

err centers_new(i32 k, i32 d, const struct near_ops *near, struct centers *out) {
    *out = (struct centers){.k = k, .d = d, .near = near, .groups = ceil_div(k, LANES)};
    out->stride = round_up(out->groups, LANES);
    out->rounding = E * (imin(d, NEAR_CHAIN) + ceil_div(d, NEAR_CHAIN) + 8) * 1.1;
    TRY(mem_check(k, sizeof(f32) * (size_t)d * LANES));
    NEW(out->row, (i64)k * d);
    NEW(out->at, k);
    NEW(out->panel, (i64)out->groups * d * LANES);
    NEW(out->start, (i64)out->groups * LANES);
    NEW(out->half, (i64)k * out->stride);
    for (i32 i = 0; i < k; i++) out->at[i] = out->row + (i64)i * d;
    return 0;
}

void centers_free(struct centers *c) {
    mem_free(c->row);
    mem_free(c->at);
    mem_free(c->panel);
    mem_free(c->start);
    mem_free(c->half);
    *c = (struct centers){0};
}

static void set_panels(struct centers *c, const struct points *p) {
    c->far = 0;
    for (i32 i = 0; i < c->groups * LANES; i++) c->start[i] = INFINITY;
    for (i32 i = 0; i < c->k; i++) {
        f32 *row = c->row + (i64)i * c->d, *panel = c->panel + (i64)(i / LANES) * c->d * LANES + i % LANES;
        f64 sum = 0;
        for (i32 j = 0; j < c->d; j++) {
            row[j] = (f32)((c->c[(i64)i * c->d + j] - p->mean[j]) * p->unit);
            panel[(i64)j * LANES] = -2 * row[j];
            sum += (f64)row[j] * (f64)row[j];
        }
        c->start[i] = (f32)sum;
        c->far = dmax(c->far, sqrt(sum));
    }
}

/* Half of the distance from center i to the nearest other center of group g, less what the products may round. */
static f32 half_distance(const struct centers *c, i32 i, i32 g, f32 *value, f32 low) {
    const f64 norm = (f64)c->start[i], error = c->rounding * 3 * c->far * c->far + 8 * E * norm;
    if (i / LANES == g) {
        low = INFINITY;
        value[i % LANES] = INFINITY;
        for (i32 s = 0; s < LANES; s++) if (value[s] < low) low = value[s];
    }
    return (f32)dmax(0, 0.5 * sqrt(dmax(0, (f64)low + norm - error)) * (1 - 4 * E) - 8 * E);
}

static void set_half(struct centers *c) {
    enum { TOGETHER = 48 };
    f32 value[TOGETHER * LANES], least[TOGETHER];
    for (i32 g = 0; g < c->groups; g++)
        for (i32 from = 0; from < c->k; from += TOGETHER) {
            const i32 n = imin(TOGETHER, c->k - from);
            c->near->product(n, c->d, c->at + from, c->panel + (i64)g * c->d * LANES, c->start + g * LANES, value, least);
            for (i32 r = 0; r < n; r++)
                c->half[(i64)(from + r) * c->stride + g] = half_distance(c, from + r, g, value + r * LANES, least[r]);
        }
}

void centers_set(struct centers *c, const struct points *p, const f64 *center, bool half) {
    c->c = center;
    set_panels(c, p);
    if (half) set_half(c);
    else memset(c->half, 0, sizeof *c->half * (size_t)c->k * (size_t)c->stride);
}
