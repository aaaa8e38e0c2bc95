/* choice.c - which base preset `long` stands on: forward-chaining folds for last, season and ridge.
 *
 *     rows [0, valid)  |------- 40 % -------|-- 1 --|-- 2 --|-- 3 --|-- 4 --|-- 5 --|
 *                      fit on all before a fold, measure on the fold; ridge only if it beats the better naive row with t > 2
 *
 * Nothing after `valid` is looked at.  Ridge's penalty for a fold is the one that was best on the folds before. */
#include <math.h>

#include "bases/linear.h"

/* MSE of a naive row over the windows of a fold, the steps that the ridge is measured on. */
static f64 naive_loss(const struct series *s, const struct chain *c, const struct base *b, i64 from, i64 to, f32 *out) {
    const i32 H = c->w->H, stride = c->test->stride;
    f64 sum = 0, n = 0;
    for (i32 col = 0; col < c->w->ncol; col++) {
        const f32 *x = series_col(s, col);
        for (i64 o = lmax(from, c->w->L); o + H <= to; o++) {
            if (!window_counts(c->w, col, o)) continue;
            base_predict(b, s, col, o, H, out);
            for (i32 h = 0; h < H; h += stride) {
                f64 d = (f64)x[o + h] - (f64)out[h];
                sum += d * d;
            }
            n += c->test->N;
        }
    }
    return n > 0 ? sum / n : NAN;
}

static err measure(const struct series *s, const struct choice_spec *p, struct chain *c, struct choice *t,
                   const struct base *naive[], f32 *out) {
    const i64 start = p->valid - p->valid * 6 / 10;
    for (i32 k = 0; k < CHOICE_FOLDS; k++) {
        t->from[k] = start + (p->valid - start) * k / CHOICE_FOLDS;
        t->to[k] = start + (p->valid - start) * (k + 1) / CHOICE_FOLDS;
        for (i32 i = 0; i < t->nrow; i++)
            if (naive[i]) t->loss[i][k] = naive_loss(s, c, naive[i], t->from[k], t->to[k], out);
        TRY(chain_fold(c, t->from[k], t->to[k], &t->loss[t->nrow - 1][k], NULL));
    }
    t->nfold = CHOICE_FOLDS;
    return 0;
}

static f64 mean_loss(const struct choice *t, i32 row) {
    f64 sum = 0, n = 0;
    for (i32 k = 0; k < t->nfold; k++)
        if (!isnan(t->loss[row][k])) sum += t->loss[row][k], n += 1;
    return n > 0 ? sum / n : NAN;
}

/* t of the log ratios over the folds where both could be measured; ridge is the last row. */
static void decide(struct choice *t) {
    f64 n = 0, mean = 0, square = 0;
    const i32 ridge = t->nrow - 1;
    for (i32 i = 1; i < ridge; i++)
        if (mean_loss(t, i) < mean_loss(t, t->naive)) t->naive = i;
    for (i32 k = 0; k < t->nfold; k++) {
        f64 d = log(t->loss[t->naive][k] / t->loss[ridge][k]);
        if (!isfinite(d)) continue;
        n += 1;
        square += (d - mean) * (d - mean) * (n - 1) / n;
        mean += (d - mean) / n;
    }
    f64 error = n > 1 ? sqrt(square / (n - 1) / n) : 0;
    t->gain = mean;
    t->t = n > 2 && error > 0 ? mean / error : 0;
    t->chosen = t->t > 2 ? ridge : t->naive;
}

static err make_chosen(const struct series *s, const struct choice_spec *p, const struct choice *t, struct base **out) {
    struct ridge_spec r = {.L = p->L, .H = p->H, .ncol = p->ncol, .calendar = p->calendar, .train = p->train, .valid = p->valid,
                           .work = p->work};
    switch (t->row[t->chosen]) {
    case BASE_RIDGE: return base_ridge(s, &r, out);
    case BASE_SEASON: return base_season(p->season, out);
    default: return base_last(out);
    }
}

err base_choose(const struct series *s, const struct choice_spec *p, struct choice *table, struct base **out) {
    struct base *last = NULL, *season = NULL;
    struct chain *c = NULL;
    f32 *scratch = NULL;
    *table = (struct choice){0};
    err e = base_last(&last);
    if (e >= 0 && p->season > 1) e = base_season(p->season, &season);
    if (e >= 0) e = chain_new(s, p->ncol, p->L, p->H, p->calendar, &c);
    if (e >= 0) e = mem_new((void **)&scratch, p->H, sizeof *scratch);
    if (e >= 0) {
        c->work = p->work;
        if (c->work) c->work->all += chain_cost(c, CHOICE_FOLDS + 1);
        const struct base *naive[CHOICE_ROWS] = {last, season, NULL};
        table->row[table->nrow++] = BASE_LAST;
        if (season) table->row[table->nrow++] = BASE_SEASON;
        table->row[table->nrow++] = BASE_RIDGE;
        e = measure(s, p, c, table, naive, scratch);
    }
    chain_free(c);
    base_free(last);
    base_free(season);
    mem_free(scratch);
    if (e < 0) return e;
    decide(table);
    return make_chosen(s, p, table, out);
}
