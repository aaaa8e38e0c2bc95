/* folds.c - windows a ridge may use, and forward chaining over folds.
 *
 *     rows  |---- past ----|-- fold 1 --|-- fold 2 --| ...      past grows by the fold just measured, and by the windows that
 *                                                               straddle its border; nothing is summed twice */
#include <math.h>

#include "bases/linear.h"

static err windows_init(struct arena *a, const struct series *s, i32 ncol, i32 L, i32 H, struct windows *w) {
    *w = (struct windows){.s = s, .ahead = ahead_of(s, L, H), .nrow = s->nrow, .ncol = ncol, .L = L, .H = H};
    ARENA_SPILL(a, w->z, ncol * (s->nrow + 1));
    ARENA_SPILL(a, w->clear, ncol * s->nrow);
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
        moments_take(m, w, c, a, b);
    }
}

/* Multiplications, the unit of struct workload here. */
static f64 take_cost(const struct moments *m, i64 n) { return 2.0 * (f64)n * (1 + m->X) * (m->L + m->H + m->X); }

err windows_take(const struct windows *w, i64 from, i64 to, struct moments *m, struct workload *work) {
    from = lmax(from, w->L);
    to = lmin(to, w->nrow - w->H + 1);
    for (i32 c = 0; c < w->ncol; c++) {
        TRY(workload_advance(work, take_cost(m, lmax(0, to - from))));
        take_column(w, c, from, to, m);
    }
    return 0;
}

static bool allows(enum inputs inputs, bool has) { return inputs == INPUTS_TRIED || has == (inputs == INPUTS_ALWAYS); }

/* The sets of inputs to try: first the smallest one, last the one with all inputs of the others. */
static void choose_sets(struct chain *c, const struct base_spec *p) {
    const bool slow = p->constant == INPUTS_TRIED && c->w.L > INPUTS_MANY;
    const enum inputs constant = slow ? INPUTS_ALWAYS : p->constant;
    const enum inputs calendar = c->w.s->time ? p->calendar : INPUTS_NEVER;
    const enum inputs ahead = c->w.ahead.ncol > 0 ? p->ahead : INPUTS_NEVER;
    for (i32 i = 0; i < SETS; i++) {
        const struct input_set set = {.constant = i & 1, .calendar = i & 2, .ahead = i & 4};
        if (allows(constant, set.constant) && allows(calendar, set.calendar) && allows(ahead, set.ahead)) c->set[c->nset++] = set;
    }
}

#define YEARS_S (2 * 365 * 86400LL)

/* A month that training has seen in one year only cannot be told from a trend. */
static i32 marks_of(const struct series *s, const struct base_spec *p) {
    const i64 rows = p->train > 0 ? p->train : s->nrow;
    return s->time[rows - 1] - s->time[0] < YEARS_S ? 2 : 3;
}

static err chain_init(struct chain *c, const struct series *s, const struct base_spec *p) {
    const i32 L = imax(2, p->L), H = p->H, stride = ceil_div(H, STEPS_MEASURED), N = ceil_div(H, stride);
    struct arena *a = &c->memory;
    TRY(windows_init(a, s, p->ncol, L, H, &c->w));
    choose_sets(c, p);
    const struct input_set *last = &c->set[c->nset - 1]; /* has all inputs that any set has */
    const i32 X = last->ahead ? ahead_count(&c->w.ahead, H) : 0, marks = last->calendar ? marks_of(s, p) : 0;
    TRY(moments_init(a, L, H, marks, X, &c->past));
    TRY(moments_init(a, L, H, marks, X, &c->fold));
    const i32 K = moments_inputs(&c->past, *last);
    c->step = K > INPUTS_MANY ? 2 : 1;
    TRY(system_init(a, K, N, stride, &c->fit));
    TRY(system_init(a, K, N, stride, &c->test));
    return solution_init(a, K, N, &c->x);
}

err chain_new(const struct series *s, const struct base_spec *spec, struct chain **out) {
    struct chain *c;
    NEW(c, 1);
    const err e = chain_init(c, s, spec);
    if (e < 0) chain_free(c);
    else *out = c;
    return e;
}

void chain_free(struct chain *c) {
    if (!c) return;
    arena_free(&c->memory);
    mem_free(c);
}

static i32 best_penalty(const struct chain *c, i32 set) {
    i32 best = PENALTY_USUAL;
    for (i32 i = 0; i < PENALTIES; i += c->step)
        if (c->loss[set][i] < c->loss[set][best]) best = i;
    return best;
}

/* More inputs have to lower the loss by more than chance does, a share of about 1 / sqrt(windows that it is a mean of). */
struct chain_best chain_best(const struct chain *c) {
    struct chain_best best = {0, best_penalty(c, 0)};
    const f64 gain = 1 / sqrt((f64)lmax(1, c->measured));
    for (i32 k = 1; k < c->nset; k++) {
        const i32 i = best_penalty(c, k);
        if (c->loss[k][i] < (1 - gain) * c->loss[best.set][best.penalty]) best = (struct chain_best){k, i};
    }
    return best;
}

err chain_ridge(const struct chain *c, f64 penalty, struct ridge **out) {
    const struct chain_best best = chain_best(c);
    return ridge_from(&c->past, c->set[best.set], &c->w.ahead, penalty > 0 ? penalty : penalty_grid[best.penalty], out);
}

/* Of one solution. */
static f64 solve_cost(f64 K, f64 N) { return K * K * (K / 3.0 + 2.0 * N); }

f64 chain_cost(const struct chain *c, i32 folds) {
    f64 solve = 0;
    for (i32 k = 0; k < c->nset; k++) solve += solve_cost(moments_inputs(&c->past, c->set[k]), c->fit.N);
    return folds * ceil_div(PENALTIES, c->step) * solve + take_cost(&c->past, c->w.nrow) * c->w.ncol;
}

/* Adds the losses of one set of inputs, fitted on `past` and measured on `fold`. */
static err measure_set(struct chain *c, i32 k, struct chain_best known, f64 *loss) {
    system_from(&c->fit, &c->past, c->set[k]);
    system_from(&c->test, &c->fold, c->set[k]);
    for (i32 i = 0; i < PENALTIES; i += c->step) {
        TRY(workload_advance(c->work, solve_cost(c->fit.K, c->fit.N)));
        TRY(ridge_solve(&c->fit, penalty_grid[i], &c->x));
        const f64 v = ridge_loss(&c->test, &c->x);
        if (k == known.set && i == known.penalty) *loss = v;
        c->loss[k][i] += v;
    }
    return 0;
}

err chain_fold(struct chain *c, i64 from, i64 to, f64 *loss, struct ridge **fitted) {
    const i32 H = c->w.H;
    const struct chain_best known = chain_best(c);
    *loss = NAN;
    if (fitted) *fitted = NULL;
    TRY(windows_take(&c->w, c->upto - H + 1, from - H + 1, &c->past, c->work));
    c->upto = from;
    if (c->past.n >= WINDOWS_MIN && fitted) TRY(chain_ridge(c, 0, fitted));
    if (to <= from) return 0;
    moments_clear(&c->fold);
    TRY(windows_take(&c->w, from, to - H + 1, &c->fold, c->work));
    if (c->past.n < WINDOWS_MIN || c->fold.n == 0) return 0;
    for (i32 k = 0; k < c->nset; k++) TRY(measure_set(c, k, known, loss));
    c->measured += c->fold.n;
    return 0;
}
