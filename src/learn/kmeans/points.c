/* points.c - tables as points; see points.h. */
#include "learn/kmeans/points.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "data/mend.h"

#define LARGEST 1e150 /* squares of it are finite */

static err fail_square_overflows(const struct table_set *s, const struct column *c, i64 row) {
    char where[256], fix[MEND_IGNORE];
    table_where(s->t, row, c, where);
    return FAIL_AT(E208, where, mend_ignore(c->name, fix), "%g in column \"%s\" has no finite square", c->number[row], c->name);
}

static err gather(const struct table_set *s, const struct column_scale *c, i64 from, struct points *p) {
    for (i32 j = 0; j < p->d; j++) {
        const struct column *col = table_input(s, j);
        for (i64 i = 0; i < p->n; i++) {
            const f64 v = col->number[from + i];
            if (!(fabs(v) < LARGEST)) return fail_square_overflows(s, col, from + i);
            p->x[i * p->d + j] = (v - c->center[j]) / c->spread[j] + 0.0; /* -0 becomes 0: equal points have equal bytes */
        }
    }
    return 0;
}

static void find_mean(struct points *p) {
    for (i64 i = 0; i < p->n; i++)
        for (i32 j = 0; j < p->d; j++) p->mean[j] += p->x[i * p->d + j] / (f64)p->n;
}

/* The unit and the sum of squares. */
static void find_unit(struct points *p) {
    f64 far = 0;
    int exponent = 0;
    for (i64 i = 0; i < p->n; i++) {
        const f64 d2 = points_distance(p->d, p->x + i * p->d, p->mean);
        p->total += d2;
        far = dmax(far, d2);
    }
    p->unit = 1;
    if (!(far > 0)) return;
    frexp(sqrt(far), &exponent);
    p->unit = ldexp(1, -exponent);
}

static void copy_scaled(struct points *p) {
    for (i64 i = 0; i < p->n; i++) {
        f64 sum = 0;
        for (i32 j = 0; j < p->d; j++) {
            const f32 v = (f32)((p->x[i * p->d + j] - p->mean[j]) * p->unit);
            p->f[i * p->d + j] = v;
            sum += (f64)v * (f64)v;
        }
        p->norm[i] = (f32)sum;
    }
}

err points_make(const struct table_set *s, const struct column_scale *c, i64 from, i64 to, struct points *out) {
    *out = (struct points){.n = to - from, .d = c->d};
    TRY(mem_check(out->n, (size_t)c->d * sizeof *out->x));
    NEW(out->x, out->n * c->d);
    NEW(out->f, out->n * c->d);
    NEW(out->norm, out->n);
    NEW(out->mean, c->d);
    TRY(gather(s, c, from, out));
    find_mean(out);
    find_unit(out);
    copy_scaled(out);
    return 0;
}

void points_free(struct points *p) {
    mem_free(p->x);
    mem_free(p->f);
    mem_free(p->norm);
    mem_free(p->mean);
    *p = (struct points){0};
}

err points_distinct(const struct points *p, i64 most, i64 *out) {
    const size_t bytes = sizeof *p->x * (size_t)p->d;
    i64 size = 64, *slot;
    while (size < 4 * lmin(most, p->n)) size *= 2;
    NEW(slot, size); /* row + 1; 0 = free */
    *out = 0;
    for (i64 i = 0; i < p->n && *out < most; i++) {
        const f64 *x = p->x + i * p->d;
        i64 at = (i64)(hash_bytes(HASH_SEED, x, bytes) & (u64)(size - 1));
        while (slot[at] && memcmp(p->x + (slot[at] - 1) * p->d, x, bytes) != 0) at = (at + 1) & (size - 1);
        if (slot[at]) continue;
        slot[at] = i + 1;
        ++*out;
    }
    mem_free(slot);
    return 0;
}
