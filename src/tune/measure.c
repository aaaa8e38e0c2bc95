/* measure.c - times a recurrent layer in each variant (execution mode or precision), interleaved, on its own buffers.
 *
 *     variant 0, variant 1, variant 0, ...   at least ROUNDS_LEAST times, then until ENOUGH seconds; lower quartile of each:
 *                                            other load only adds time, so the upper half carries little information
 *
 * Rows are limited to ROWS_MOST (kernels use smaller blocks) and steps to about STEP_FLOPS of work, so that a measurement takes
 * milliseconds: variants differ within a step or chunk of steps, not by repetition. Results are scaled to all rows and steps. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "tune/tune.h"

enum { ROUNDS_LEAST = 5, ROUNDS_MOST = 25, STEPS_LEAST = 4, ROWS_MOST = 384 };
#define STEP_FLOPS 25e6 /* flops of a forward run: half a millisecond on a core of 50 GF/s */
#define ENOUGH 4e-3     /* seconds per variant */
#define SLOW_RATE 30e9  /* flops per second assumed by tune_cost: a low estimate */

struct variant {
    const struct cell_kern *kern;
    struct cell_args box;
    f32 *dw, *dbias; /* NULL = forward only */
    f64 seconds[ROUNDS_MOST];
};

static i32 rows_of(const struct tune_shape *s) { return imin(s->rows, ROWS_MOST); }

static f64 step_flops(const struct tune_shape *s) { return 2.0 * rows_of(s) * cell_gates(s->cell) * s->H * ((f64)s->I + s->H); }

static i32 steps_of(const struct tune_shape *s) {
    f64 n = STEP_FLOPS / step_flops(s);
    return imin(s->T, imax(STEPS_LEAST, (i32)dmin(n, 1 << 20)));
}

f64 tune_cost(enum tune_kind kind, const struct tune_shape *s) {
    f64 one = step_flops(s) * steps_of(s) * (kind == TUNE_PRECISION ? 3 : 1) / SLOW_RATE;
    return TUNE_VARIANTS * dmax(ENOUGH, (ROUNDS_LEAST + 1) * one);
}

/* Deterministic numbers between -scale and scale. */
static void fill(f32 *v, i64 n, f32 scale) {
    u32 x = 1;
    for (i64 i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        v[i] = scale * ((f32)(x >> 8) / (f32)(1 << 23) - 1);
    }
}

static err buffers(const struct tune_shape *s, bool backward, struct arena *a, struct variant *w) {
    i32 T = steps_of(s), B = rows_of(s), I = s->I, H = s->H, Hp = round_up(H, LANES), Ip = round_up(I, LANES);
    const struct cell_kern *k = w->kern;
    struct cell_args *b = &w->box;
    i64 nw = cell_w_floats(s->cell, I, H), nbias = cell_bias_floats(s->cell, H), plane = (i64)B * Hp;
    f32 *x, *weights, *bias, *wt, *end;
    ARENA_NEW(a, x, (i64)T * B * Ip);
    ARENA_NEW(a, b->y, T * plane);
    ARENA_NEW(a, b->act, k->act_floats(T, B, I, H));
    ARENA_NEW(a, weights, nw);
    ARENA_NEW(a, bias, nbias);
    ARENA_NEW(a, wt, k->wt_floats(I, H) + LANES);
    ARENA_NEW(a, end, 2 * plane);
    fill(x, (i64)T * B * Ip, 1);
    fill(weights, nw, 0.1f);
    k->prep(I, H, weights, wt);
    b->T = T, b->B = B, b->I = I, b->H = H;
    b->x = x, b->x_ld = b->dx_ld = Ip;
    b->w = weights, b->bias = bias, b->wt = wt;
    b->hT = end;
    b->cT = s->cell == CELL_LSTM ? end + plane : NULL;
    if (!backward) return 0;
    f32 *dy;
    ARENA_NEW(a, dy, T * plane);
    ARENA_NEW(a, b->carry, 2 * plane);
    ARENA_NEW(a, w->dw, nw);
    ARENA_NEW(a, w->dbias, nbias);
    fill(dy, T * plane, 0.1f);
    b->dy = dy;
    return 0;
}

static f64 once(const struct variant *w) {
    const struct cell_args *b = &w->box;
    f64 t0 = clock_now();
    w->kern->fwd(b, 0, b->B, 0, b->T);
    if (w->dw) {
        w->kern->bwd(b, 0, b->B, 0, b->T);
        w->kern->dw(b, 0, b->B, 0, b->T, w->dw, w->dbias);
    }
    return clock_now() - t0;
}

static int by_size(const void *a, const void *b) {
    f64 x = *(const f64 *)a, y = *(const f64 *)b;
    return x < y ? -1 : x > y;
}

static void race(struct variant *w, f64 seconds[TUNE_VARIANTS], f64 scale) {
    f64 spent = 0;
    i32 n = 0;
    for (i32 i = 0; i < TUNE_VARIANTS; i++) once(&w[i]); /* warm up pages, caches and clock frequency */
    for (; n < ROUNDS_MOST && (n < ROUNDS_LEAST || spent < TUNE_VARIANTS * ENOUGH); n++)
        for (i32 i = 0; i < TUNE_VARIANTS; i++) spent += w[i].seconds[n] = once(&w[i]);
    for (i32 i = 0; i < TUNE_VARIANTS; i++) {
        qsort(w[i].seconds, (size_t)n, sizeof w[i].seconds[0], by_size);
        seconds[i] = dmax(1e-9, w[i].seconds[n / 4] * scale);
    }
}

err tune_measure(const struct kern *k, enum tune_kind kind, const struct tune_shape *s, f64 seconds[TUNE_VARIANTS]) {
    struct arena a = {0};
    struct variant *w = arena_new(&a, TUNE_VARIANTS * sizeof *w);
    err e = w ? 0 : -E601;
    for (i32 i = 0; i < TUNE_VARIANTS && e >= 0; i++) {
        enum precision p = kind == TUNE_HOW ? s->precision : i ? PREC_BF16 : PREC_F32;
        w[i].kern = cell_at(k, s->cell, p);
        if (!w[i].kern) e = FAIL(E1, "the kernels %s have no cells to measure", k->name);
        if (e >= 0) e = buffers(s, kind == TUNE_PRECISION, &a, &w[i]);
        w[i].box.how = kind == TUNE_HOW ? (i ? CELL_AHEAD : CELL_FOLD) : 0;
    }
    if (e >= 0) race(w, seconds, (f64)s->T / steps_of(s) * s->rows / rows_of(s));
    arena_free(&a);
    return e;
}
