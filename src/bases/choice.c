/* choice.c - chooses the base of preset `long` (last, season or ridge) by forward-chaining cross-validation.
 *
 *     rows [0, valid)  |------- 40 % -------|-- 1 --|-- 2 --|-- 3 --|-- 4 --|-- 5 --|
 *                      fit on all before a fold, measure on the fold; ridge only if it beats the better naive row with t > 2
 *
 * The test split, rows from `valid` on, is not used.  For a fold, the ridge's penalty is the best one on the folds before. */
#include <math.h>

#include "bases/linear.h"

/* MSE of a naive rule over the windows of a fold, at the forecast steps that the ridge is measured on. */
static f64 naive_loss(const struct series *s, const struct chain *c, const struct base *b, i64 from, i64 to, f32 *out) {
    const i32 H = c->w.H, stride = c->test.stride;
    f64 sum = 0, n = 0;
    for (i32 col = 0; col < c->w.ncol; col++) {
        const f32 *x = series_col(s, col);
        for (i64 o = lmax(from, c->w.L); o + H <= to; o++) {
            if (!window_counts(&c->w, col, o)) continue;
            base_predict(b, s, col, o, H, out);
            for (i32 h = 0; h < H; h += stride) {
                f64 d = (f64)x[o + h] - (f64)out[h];
                sum += d * d;
            }
            n += c->test.N;
        }
    }
    return n > 0 ? sum / n : NAN;
}

static err measure(const struct series *s, const struct base_spec *p, struct chain *c, struct choice *t, f32 *out) {
    const i32 ridge = t->nrow - 1;
    const i64 start = p->valid - p->valid * 6 / 10;
    for (i32 k = 0; k < CHOICE_FOLDS; k++) {
        t->from[k] = start + (p->valid - start) * k / CHOICE_FOLDS;
        t->to[k] = start + (p->valid - start) * (k + 1) / CHOICE_FOLDS;
        for (i32 i = 0; i < ridge; i++) {
            const struct base naive = {.npart = 1, .part = {{.kind = t->row[i], .weight = 1, .season = t->season[i]}}};
            t->loss[i][k] = naive_loss(s, c, &naive, t->from[k], t->to[k], out);
        }
        TRY(chain_fold(c, t->from[k], t->to[k], &t->loss[ridge][k], NULL));
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

static err make_chosen(const struct series *s, const struct base_spec *p, const struct choice *t, struct base **out) {
    return t->row[t->chosen] == BASE_RIDGE ? base_ridge(s, p, out) : base_naive(t->season[t->chosen], out);
}

static void add_season(struct choice *t, i32 season) {
    if (season <= 1) return;
    t->season[t->nrow] = season;
    t->row[t->nrow++] = BASE_SEASON;
}

err base_choose(const struct series *s, const struct base_spec *p, struct choice *table, struct base **out) {
    struct chain *c = NULL;
    f32 *scratch = NULL;
    *table = (struct choice){.nrow = 0};
    table->row[table->nrow++] = BASE_LAST;
    add_season(table, p->season);
    if (p->season2 != p->season) add_season(table, p->season2);
    table->row[table->nrow++] = BASE_RIDGE;
    err e = chain_new(s, p, &c);
    if (e >= 0) e = mem_new((void **)&scratch, p->H, sizeof *scratch);
    if (e >= 0) {
        c->work = p->work;
        if (c->work) c->work->all += chain_cost(c, CHOICE_FOLDS + 1);
        e = measure(s, p, c, table, scratch);
    }
    chain_free(c);
    mem_free(scratch);
    if (e < 0) return e;
    decide(table);
    return make_chosen(s, p, table, out);
}
