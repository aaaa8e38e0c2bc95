/* mix.c - the base of preset `short`: the best rule of each family, weighted by its error at rolling origins.  For the base of a
 * model `train` is the end of the validation split.
 *
 *     rows [0, train)  |------ 40 % ------|--o---o---o---o---o---o---o---o---o--|    up to 80 rolling origins
 *     weight = (error / best)^-8, below .05 dropped; fewer than 3 horizons behind the 40 %: theta alone
 *
 * A forecast uses rows before its origin only, and counts only for columns with an observed row before it.  For each
 * fifth of the origins, the ridge is fitted again on the rows before it. */
#include <math.h>

#include "bases/linear.h"

enum { ORIGINS = 80, FOLDS = 5 };
static const f64 ALPHAS[] = {0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9};
static const f64 ALPHA_USUAL = 0.3;

struct search {
    const struct series *s;
    const struct base_spec *p;
    struct mix *t;
    i32 n;
    i64 origin[ORIGINS];
    f32 *out;
    struct ridge *ridge[FOLDS]; /* fitted on the rows before each fold; NULL = too few windows, forecast the last value */
    i64 fold_start[FOLDS];      /* first origin of each fold */
};

static err find_seasons(struct search *q, bool *strong) {
    const struct base_spec *p = q->p;
    i32 peak;
    TRY(season_scan(q->s, p->ncol, p->train, p->season, &peak, strong));
    const i32 candidates[MIX_SEASONS] = {p->season, peak, p->H, p->season2};
    for (i32 i = 0; i < MIX_SEASONS; i++) {
        bool fits = candidates[i] > 1 && candidates[i] <= p->train * 4 / 10, known = false;
        for (i32 j = 0; j < q->t->nseason; j++) known = known || q->t->season[j] == candidates[i];
        if (fits && !known) q->t->season[q->t->nseason++] = candidates[i];
    }
    return 0;
}

/* --- errors over the rolling origins --- */

/* Before the first observed value of a column every rule forecasts 0, which would give all of them the same error. */
static bool has_begun(const struct series *s, i32 col, i64 origin) {
    for (i64 i = 0; i < origin; i++)
        if (series_is_target(s, col, i)) return true;
    return false;
}

static f64 error_of(struct search *q, const struct base_part *part) {
    struct base b = {.npart = 1, .part = {*part}};
    const i32 H = q->p->H;
    f64 sum = 0, n = 0;
    for (i32 i = 0, k = 0; i < q->n; i++) {
        const i64 o = q->origin[i];
        while (k + 1 < FOLDS && q->fold_start[k + 1] <= o) k++;
        if (part->kind == BASE_RIDGE) {
            b.ridge = q->ridge[k];
            b.part[0].kind = b.ridge ? BASE_RIDGE : BASE_LAST;
        }
        for (i32 c = 0; c < q->p->ncol; c++) {
            if (!has_begun(q->s, c, o)) continue;
            base_predict(&b, q->s, c, o, H, q->out);
            for (i32 h = 0; h < H; h++) {
                f64 y = (f64)series_target(q->s, c, o + h);
                if (!isnan(y)) sum += fabs(y - (f64)q->out[h]), n += 1;
            }
        }
    }
    return n > 0 ? sum / n : NAN;
}

/* Keep the better of two candidates of a family. */
static void consider(struct search *q, struct base_part part, struct mix_row *best) {
    part.weight = 1;
    f64 e = error_of(q, &part);
    if (isnan(e) || (!isnan(best->mae) && best->mae <= e)) return;
    *best = (struct mix_row){.part = part, .mae = e};
}

static void add_family(struct search *q, struct mix_row best) {
    if (!isnan(best.mae)) q->t->row[q->t->nrow++] = best;
}

static void add_plain(struct search *q, enum base_kind kind) {
    struct mix_row best = {.mae = NAN};
    consider(q, (struct base_part){.kind = kind}, &best);
    add_family(q, best);
}

/* A seasonal family of one or two kinds: tries each with every season found. */
static void add_seasonal(struct search *q, enum base_kind kind, enum base_kind other) {
    struct mix_row best = {.mae = NAN};
    for (i32 i = 0; i < q->t->nseason; i++) {
        consider(q, (struct base_part){.kind = kind, .season = q->t->season[i]}, &best);
        if (other != kind) consider(q, (struct base_part){.kind = other, .season = q->t->season[i]}, &best);
    }
    add_family(q, best);
}

/* A smoothing family: chooses the season with alpha = 0.3, then alpha with that season. */
static void add_smooth(struct search *q, enum base_kind kind) {
    struct mix_row best = {.mae = NAN};
    consider(q, (struct base_part){.kind = kind, .season = 1, .alpha = ALPHA_USUAL}, &best);
    for (i32 i = 0; kind == BASE_THETA && i < q->t->nseason; i++)
        consider(q, (struct base_part){.kind = kind, .season = q->t->season[i], .alpha = ALPHA_USUAL}, &best);
    for (i32 i = 0; i < (i32)COUNT(ALPHAS); i++) {
        struct base_part part = best.part;
        part.alpha = ALPHAS[i];
        consider(q, part, &best);
    }
    add_family(q, best);
}

/* Cuts the origins into FOLDS folds and fits the ridge on the rows before each. */
static err fit_ridges(struct search *q, struct chain *c) {
    const i64 start = q->origin[0], end = q->p->train;
    f64 loss;
    for (i32 k = 0; k < FOLDS; k++) {
        i64 from = start + (end - start) * k / FOLDS, to = start + (end - start) * (k + 1) / FOLDS;
        q->fold_start[k] = from;
        TRY(chain_fold(c, from, to, &loss, &q->ridge[k]));
    }
    return 0;
}

/* --- the mix --- */

static void weigh(struct mix *t) {
    f64 best = INFINITY, sum = 0, kept = 0;
    for (i32 i = 0; i < t->nrow; i++) best = dmin(best, t->row[i].mae);
    for (i32 i = 0; i < t->nrow; i++) {
        f64 ratio = best > 0 ? t->row[i].mae / best : t->row[i].mae > 0 ? INFINITY : 1;
        sum += t->row[i].part.weight = pow(ratio, -8);
    }
    for (i32 i = 0; i < t->nrow; i++) {
        struct base_part *p = &t->row[i].part;
        p->weight = p->weight / sum < 0.05 ? 0 : p->weight / sum;
        kept += p->weight;
    }
    for (i32 i = 0; i < t->nrow; i++) t->row[i].part.weight /= kept;
}

static err make_mix(const struct mix *t, const struct chain *c, struct base **out) {
    struct base *b;
    NEW(b, 1);
    for (i32 i = 0; i < t->nrow; i++) {
        if (t->row[i].part.weight <= 0) continue;
        if (t->row[i].part.kind == BASE_RIDGE) {
            err e = chain_ridge(c, 0, &b->ridge);
            if (e < 0) {
                base_free(b);
                return e;
            }
        }
        b->part[b->npart++] = t->row[i].part;
    }
    *out = b;
    return 0;
}

static void search_families(struct search *q, bool ridge) {
    add_plain(q, BASE_LAST);
    add_smooth(q, BASE_SES);
    add_smooth(q, BASE_THETA);
    add_seasonal(q, BASE_SEASON, BASE_SEASON);
    add_seasonal(q, BASE_GROWTH, BASE_RATIO);
    add_seasonal(q, BASE_AVERAGE, BASE_AVERAGE);
    add_plain(q, BASE_DRIFT);
    add_plain(q, BASE_MEAN);
    if (ridge) add_plain(q, BASE_RIDGE);
}

/* Too few rows for rolling origins: theta with the season of the frequency if the autocorrelation shows it clearly; alpha has
 * the smallest one-step error of smoothing. */
static void theta_alone(struct search *q, bool strong) {
    const struct base_spec *p = q->p;
    struct mix_row *row = &q->t->row[q->t->nrow++];
    f64 best = INFINITY;
    *row = (struct mix_row){.part = {.kind = BASE_THETA, .weight = 1, .alpha = ALPHA_USUAL}, .mae = NAN};
    row->part.season = strong ? p->season : 1;
    for (i32 i = 0; i < (i32)COUNT(ALPHAS); i++) {
        f64 sum = 0;
        for (i32 c = 0; c < p->ncol; c++) sum += smooth_error(q->s, c, p->train, row->part.season, ALPHAS[i]);
        if (sum < best) best = sum, row->part.alpha = ALPHAS[i];
    }
}

/* Chooses the best rule of each family by its error over the origins, and weighs the families. */
static err fit_mix(struct search *q, struct chain *c) {
    f64 loss;
    TRY(fit_ridges(q, c));
    TRY(chain_fold(c, q->p->train, q->p->train, &loss, NULL)); /* extends the sums of the final fit to [0, train) */
    search_families(q, c->past.n >= WINDOWS_MIN);
    weigh(q->t);
    return 0;
}

/* The first of the rolling origins, of which `end` is the last.  The many series of a panel give a ridge enough windows as soon
 * as one fits into the rows before an origin; earlier origins would not show what it can do. */
static i64 first_origin(const struct series *s, const struct base_spec *p, i64 end) {
    const i64 usual = p->train * 4 / 10;
    return s->panel ? lmax(usual, lmin((i64)p->L + p->H + p->H / 2, end - p->H)) : usual;
}

err base_mix(const struct series *s, const struct base_spec *p, struct mix *table, struct base **out) {
    struct search q = {.s = s, .p = p, .t = table};
    struct chain *c = NULL;
    bool strong;
    const i64 end = p->train - p->H, start = first_origin(s, p, end);
    *table = (struct mix){0};
    TRY(find_seasons(&q, &strong));
    if (p->train - start < (s->panel ? 2 : 3) * (i64)p->H || start < 1) {
        theta_alone(&q, strong);
        return make_mix(table, NULL, out);
    }
    q.n = table->norigin = (i32)lmin(ORIGINS, end - start + 1);
    for (i32 i = 0; i < q.n; i++) q.origin[i] = q.n > 1 ? start + (end - start) * i / (q.n - 1) : start;
    TRY(mem_new((void **)&q.out, p->H, sizeof(f32)));
    err e = chain_new(s, p, &c);
    if (e >= 0) {
        c->work = p->work;
        if (c->work) c->work->all += chain_cost(c, FOLDS);
        e = fit_mix(&q, c);
    }
    if (e >= 0) e = make_mix(table, c, out);
    for (i32 k = 0; k < FOLDS; k++) mem_free(q.ridge[k]);
    chain_free(c);
    mem_free(q.out);
    return e;
}
