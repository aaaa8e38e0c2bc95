/* folds.c - windows a ridge may use, and forward chaining over folds.
 *
 *     rows  |---- past ----|-- fold 1 --|-- fold 2 --| ...      past grows by the fold just measured, and by the windows that
 *                                                               straddle its border; nothing is summed twice */
#include <math.h>

#include "bases/linear.h"

static err windows_init(struct arena *a, const struct series *s, i32 ncol, i32 L, i32 H, struct windows *w) {
    *w = (struct windows){.nrow = s->nrow, .ncol = ncol, .L = L, .H = H, .time = s->time};
    ARENA_NEW(a, w->z, ncol * (s->nrow + 1));
    ARENA_NEW(a, w->clear, ncol * s->nrow);
    ARENA_NEW(a, w->first, ncol);
    for (i32 c = 0; c < ncol; c++) {
        const f32 *x = series_col(s, c);
        f64 *z = w->z + c * (s->nrow + 1);
        i64 first = 0;
        while (first < s->nrow && !series_is_target(s, c, first)) first++;
        w->first[c] = first;
        for (i64 i = first; i < s->nrow; i++) z[i] = series_is_target(s, c, i) ? (f64)x[i] : z[i - 1];
        i32 run = 0;
        for (i64 i = s->nrow - 1; i >= 0; i--) w->clear[c * s->nrow + i] = run = series_is_target(s, c, i) ? imin(run + 1, H) : 0;
    }
    return 0;
}

static void take_column(const struct windows *w, i32 c, i64 from, i64 to, struct moments *m) {
    for (i64 a = from, b; a < to; a = b + 1) {
        while (a < to && !window_counts(w, c, a)) a++;
        for (b = a; b < to && window_counts(w, c, b);) b++;
        moments_take(m, w->z + c * (w->nrow + 1), w->time, a, b);
    }
}

err windows_take(const struct windows *w, i64 from, i64 to, struct moments *m, struct workload *work) {
    from = lmax(from, w->L);
    to = lmin(to, w->nrow - w->H + 1);
    for (i32 c = 0; c < w->ncol; c++) {
        TRY(workload_advance(work, 2.0 * (f64)lmax(0, to - from) * (w->L + w->H)));
        take_column(w, c, from, to, m);
    }
    return 0;
}

static err chain_init(struct chain *c, const struct series *s, i32 ncol, i32 L, i32 H, bool calendar) {
    const i32 K = L - 1 + (calendar ? RIDGE_CALENDAR : 0), stride = ceil_div(H, STEPS_MEASURED), N = ceil_div(H, stride);
    struct arena *a = &c->memory;
    c->step = K > INPUTS_MANY ? 2 : 1;
    TRY(windows_init(a, s, ncol, L, H, &c->w));
    TRY(moments_init(a, L, H, calendar, &c->past));
    TRY(moments_init(a, L, H, calendar, &c->fold));
    TRY(system_init(a, K, N, stride, &c->fit));
    TRY(system_init(a, K, N, stride, &c->test));
    return solution_init(a, K, N, &c->x);
}

err chain_new(const struct series *s, i32 ncol, i32 L, i32 H, bool calendar, struct chain **out) {
    struct chain *c;
    NEW(c, 1);
    const err e = chain_init(c, s, ncol, L, H, calendar && s->time);
    if (e < 0) chain_free(c);
    else *out = c;
    return e;
}

void chain_free(struct chain *c) {
    if (!c) return;
    arena_free(&c->memory);
    mem_free(c);
}

i32 chain_penalty(const struct chain *c) {
    i32 best = PENALTY_USUAL;
    for (i32 i = 0; i < PENALTIES; i += c->step)
        if (c->loss[i] < c->loss[best]) best = i;
    return best;
}

/* Multiplications of one solution: the unit of struct workload here. */
static f64 solve_cost(const struct system *q) { return (f64)q->K * q->K * (q->K / 3.0 + 2.0 * q->N); }

f64 chain_cost(const struct chain *c, i32 folds) {
    return folds * ceil_div(PENALTIES, c->step) * solve_cost(&c->fit) + 2.0 * (f64)c->w.nrow * c->w.ncol * (c->w.L + c->w.H);
}

err chain_fold(struct chain *c, i64 from, i64 to, f64 *loss, struct ridge **fitted) {
    const i32 H = c->w.H, known = chain_penalty(c);
    *loss = NAN;
    if (fitted) *fitted = NULL;
    TRY(windows_take(&c->w, c->upto - H + 1, from - H + 1, &c->past, c->work));
    c->upto = from;
    if (c->past.n >= WINDOWS_MIN && fitted) TRY(ridge_from(&c->past, penalty_grid[known], fitted));
    if (to <= from) return 0;
    moments_clear(&c->fold);
    TRY(windows_take(&c->w, from, to - H + 1, &c->fold, c->work));
    if (c->past.n < WINDOWS_MIN || c->fold.n == 0) return 0;
    system_from(&c->fit, &c->past);
    system_from(&c->test, &c->fold);
    for (i32 i = 0; i < PENALTIES; i += c->step) {
        TRY(workload_advance(c->work, solve_cost(&c->fit)));
        TRY(ridge_solve(&c->fit, penalty_grid[i], &c->x));
        f64 v = ridge_loss(&c->test, &c->x);
        if (i == known) *loss = v;
        c->loss[i] += v;
    }
    return 0;
}
