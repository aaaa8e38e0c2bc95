/* bands.c - the residual quantiles that bands are made of, from rows that the forecast was not fitted on.
 *
 *     [ training, first half | second half  ][ validation ]     r = (target - forecast) / deviation of the window ^ power
 *        a base is fitted here --> its          the model's      quantiles of r by column and step; the power is the one whose
 *                                  residuals    residuals        quantiles of one half of the origins fit the other half best
 *
 * Validation alone may hold less than one horizon of independent targets.  The residuals of a base on training rows are scaled
 * by the ratio of the model's to the base's on validation; a rule without parameters gives them on all training rows.  Both parts
 * have origins at one distance, so that each row counts alike.
 *
 * Residuals of windows that overlap are worth fewer independent ones (overlap.h), and few of them know little of the tails:
 * outer quantiles lie half way to those that split conformal prediction takes of so few.
 *
 * With a distribution of the network (--head normal, ..) r is the score of the target instead (struct family), on validation
 * alone: its quantile at a level is where the distribution is read for this level. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "learn/forecast/fit.h"
#include "learn/forecast/out.h"
#include "learn/forecast/overlap.h"
#include "learn/forecast/paths.h"

enum { SPREAD_CELLS = 500000, POOL_ORIGINS = 60 };

static const f32 powers[] = {0, 0.5F, 1};

struct residuals {
    const struct fit *t;
    const struct window_set *set;
    i64 at;          /* index of the first origin of the current set */
    i64 n, before;   /* origins of all sets, and those on training rows */
    bool scores;     /* of a distribution instead of residuals: r is standard normal where the distribution is true */
    f32 *r;          /* [ntarget][horizon][n] in deviations of the series */
    f32 *deviation;  /* [ntarget][n] of the window; NaN = nothing seen */
    f32 *scratch;    /* [horizon][n] */
    f64 *time;       /* [horizon] integrated autocorrelation time: n residuals count as n / time; NULL = 1 */
    f64 model, base; /* sums of absolute errors of the model and of the base in the current set */
    struct workload *work;
};

static err on_residual(void *self, const struct forecast_row *row) {
    struct residuals *d = self;
    const struct series *s = d->t->series;
    const struct forecast_spec *spec = &d->t->f->spec;
    const f32 *around = head_output_of(spec, d->t->f->nmember > 0)->centre(row);
    const i64 at = d->at + (row->origin - d->set->first) / d->set->stride;
    TRY(workload_advance(d->work, 1));
    d->deviation[row->col * d->n + at] = row->seen ? row_deviation(d->t->f, s, row->origin, row->col) : (f32)NAN;
    for (i64 k = 0; k < spec->horizon; k++) {
        const f32 y = series_target(s, row->col, row->origin + k);
        f32 *r = &d->r[(row->col * spec->horizon + k) * d->n + at];
        const f32 a = forecast_weight(d->t->f, (i32)k);
        *r = !row->seen ? (f32)NAN : d->scores ? head_score(spec, row, a, y, (i32)k) : y - around[k];
        if (isnan(y) || !row->seen) continue;
        d->model += fabs((f64)y - (f64)around[k]);
        d->base += fabs((f64)y - (f64)row->base[k]);
    }
    return 0;
}

/* ------------------------------------------------------------------ quantiles ----------------------------------------------- */

static int ascending(const void *a, const void *b) {
    f32 x = *(const f32 *)a, y = *(const f32 *)b;
    return isnan(x) ? !isnan(y) : isnan(y) ? -1 : (x > y) - (x < y);
}

/* The value at a place from 0 to n - 1 of the sorted v[n], linear between neighbours. */
static f64 value_at(const f32 *v, i64 n, f64 place) {
    const f64 at = dmin((f64)(n - 1), dmax(0, place));
    const i64 i = (i64)at;
    const f64 part = at - (f64)i;
    return i + 1 < n ? (f64)v[i] * (1 - part) + (f64)v[i + 1] * part : (f64)v[n - 1];
}

/* Quantile q of the sorted values v[n]: of n values at place q (n + 1) - 1, so that bands of few values widen.  Where n are worth
 * m < n independent ones: half way between that and the place of m values, stretched to n. */
static f32 quantile(const f32 *v, i64 n, f64 q, f64 worth) {
    const f64 plain = value_at(v, n, q * (f64)(n + 1) - 1), m = dmax(2, worth);
    if (!(m < (f64)n)) return (f32)plain;
    return (f32)((plain + value_at(v, n, (q * (m + 1) - 1) / (m - 1) * (f64)(n - 1))) / 2);
}

/* Sorts residuals in place; returns the number of residuals that are not NaN. */
static i64 sorted(f32 *v, i64 n) {
    qsort(v, (size_t)n, sizeof *v, ascending);
    while (n > 0 && isnan(v[n - 1])) n--;
    return n;
}

/* Quantiles of one step from n sorted residuals, of which `time` are worth an independent one; NaN if n is too small, which means
 * unknown, not zero error. The forecast is the median of its bands, so no quantile crosses it. */
static void quantiles_of(const struct forecast_spec *spec, const f32 *v, i64 n, f64 time, f32 *spread, i32 k) {
    for (i32 q = 0; q < spec->nband; q++) {
        const f64 level = spec->quantiles.v[q];
        const f32 r = n >= SPREAD_WINDOWS ? quantile(v, n, level, (f64)n / time) : (f32)NAN;
        spread[(i64)q * spec->horizon + k] = isnan(r) ? r : level < 0.5 ? fminf(r, 0) : level > 0.5 ? fmaxf(r, 0) : 0;
    }
}

/* Quantiles per step of a column, r [horizon][n]. A step with too few residuals gets those of all steps of the column.
 * False if these are too few, too. */
static bool column_quantiles(const struct forecast_spec *spec, f32 *r, i64 n, const f64 *time, f32 *spread) {
    bool whole = true;
    for (i32 k = 0; k < spec->horizon; k++) {
        quantiles_of(spec, r + k * n, sorted(r + k * n, n), time ? time[k] : 1, spread, k);
        whole = whole && !isnan(spread[k]);
    }
    if (whole) return true;
    const i64 all = sorted(r, spec->horizon * n);
    for (i32 k = 0; k < spec->horizon; k++)
        if (isnan(spread[k])) quantiles_of(spec, r, all, 1, spread, k);
    return all >= SPREAD_WINDOWS;
}

/* Mean absolute score of each step, drawn to that of all, relative to it. */
static void step_sizes(const f32 *r, i32 horizon, i64 n, f32 *size) {
    f64 all = 0, cells = 0;
    for (i64 i = 0; i < horizon * n; i++)
        if (!isnan(r[i])) all += fabs((f64)r[i]), cells++;
    for (i32 k = 0; k < horizon; k++) {
        f64 sum = horizon * all / cells, many = horizon;
        for (i64 i = k * n; i < (k + 1) * n; i++)
            if (!isnan(r[i])) sum += fabs((f64)r[i]), many++;
        size[k] = all > 0 ? (f32)(sum / many / (all / cells)) : 1;
    }
}

/* Quantiles of scores, r [horizon][n]: each step has a size, all steps together the shape, since a step alone has few scores that
 * are independent. False if there are too few. */
static bool score_quantiles(const struct forecast_spec *spec, f32 *r, i64 n, f32 *spread) {
    const i32 h = spec->horizon;
    step_sizes(r, h, n, spread); /* kept in the place of the first quantile until this is known */
    for (i64 i = 0; i < h * n; i++) r[i] /= spread[i / n];
    const i64 all = sorted(r, h * n);
    for (i32 k = 0; k < h; k++) {
        const f32 size = spread[k];
        quantiles_of(spec, r, all, 1, spread, k);
        for (i32 q = 0; q < spec->nband; q++) spread[(i64)q * h + k] *= size;
    }
    return all >= SPREAD_WINDOWS;
}

/* Copies the residuals of a column at origins [from, to), in units of deviation^power, into scratch [horizon][to - from]. */
static void take_column(struct residuals *d, i64 col, i64 from, i64 to, f32 power) {
    const i64 h = d->t->f->spec.horizon, n = to - from;
    const f32 *deviation = d->deviation + col * d->n + from;
    for (i64 k = 0; k < h; k++) {
        const f32 *r = d->r + (col * h + k) * d->n + from;
        for (i64 i = 0; i < n; i++) d->scratch[k * n + i] = power > 0 ? r[i] / powf(deviation[i], power) : r[i];
    }
}

/* ------------------------------------------------------------------ pooled over series -------------------------------------- */

/* A panel of many series may have few origins: each series then gives its size, and all together the shape of the quantiles. */
static bool pools(const struct residuals *d) { return d->t->series->panel && d->n < POOL_ORIGINS; }

/* Mean absolute residual of each series in units of deviation^power, drawn to the mean of all where few cells say it. */
static void sizes_of(const struct residuals *d, f32 power, f64 *size) {
    const i64 h = d->t->f->spec.horizon, ncol = d->t->series->ntarget;
    f64 all = 0, cells = 0;
    for (i32 pass = 0; pass < 2; pass++)
        for (i64 c = 0; c < ncol; c++) {
            f64 sum = 0, n = 0;
            for (i64 i = 0; i < h * d->n; i++) {
                const f64 unit = power > 0 ? pow((f64)d->deviation[c * d->n + i % d->n], (f64)power) : 1;
                const f64 r = fabs((f64)d->r[c * h * d->n + i]) / unit;
                if (!isnan(r)) sum += r, n++;
            }
            if (pass == 0) all += sum, cells += n;
            else size[c] = cells > 0 ? (sum + (f64)h * all / cells) / (n + (f64)h) : (f64)NAN;
        }
}

/* Quantiles of a step in sizes of the series: pool[nband]. */
static void pool_step(const struct residuals *d, i64 k, f32 power, const f64 *size, f32 *v, f32 *spread) {
    const i64 h = d->t->f->spec.horizon, ncol = d->t->series->ntarget;
    for (i64 c = 0; c < ncol; c++)
        for (i64 i = 0; i < d->n; i++) {
            const f32 unit = power > 0 ? powf(d->deviation[c * d->n + i], power) : 1;
            v[c * d->n + i] = d->r[(c * h + k) * d->n + i] / (unit * (f32)size[c]);
        }
    quantiles_of(&d->t->f->spec, v, sorted(v, ncol * d->n), 1, spread, (i32)k);
}

static err pooled_quantiles(const struct residuals *d, f32 power, f32 *spread) {
    const i64 h = d->t->f->spec.horizon, ncol = d->t->series->ntarget, cells = d->t->f->spec.nband * h;
    f64 *size = NULL;
    f32 *v = NULL, *pool = NULL;
    err e = mem_new((void **)&size, ncol, sizeof *size);
    if (e >= 0) e = mem_new((void **)&v, ncol * d->n, sizeof *v);
    if (e >= 0) e = mem_new((void **)&pool, cells, sizeof *pool);
    if (e >= 0) sizes_of(d, power, size);
    for (i64 k = 0; k < h && e >= 0; k++) pool_step(d, k, power, size, v, pool);
    for (i64 i = 0; i < ncol * cells && e >= 0; i++) spread[i] = pool[i % cells] * (f32)size[i / cells];
    mem_free(size);
    mem_free(v);
    mem_free(pool);
    return e;
}

/* Gives the series without quantiles those of all series together. */
static err lend_quantiles(const struct residuals *d, f32 power, f32 *spread) {
    const i64 ncol = d->t->series->ntarget, cells = d->t->f->spec.nband * d->t->f->spec.horizon;
    f32 *all;
    NEW(all, ncol * cells);
    const err e = pooled_quantiles(d, power, all);
    for (i64 i = 0; i < ncol * cells && e >= 0; i++)
        if (isnan(spread[i])) spread[i] = all[i];
    mem_free(all);
    return e;
}

/* ------------------------------------------------------------------ the power ----------------------------------------------- */

/* Adds the pinball losses of a column at origins [from, to) under quantiles in units of deviation^power. */
static void add_loss(const struct residuals *d, i64 col, i64 from, i64 to, f32 power, const f32 *spread, f64 *loss, f64 *cells) {
    const struct forecast_spec *spec = &d->t->f->spec;
    for (i64 i = from; i < to; i++) {
        const f64 unit = power > 0 ? pow((f64)d->deviation[col * d->n + i], (f64)power) : 1;
        for (i64 k = 0; k < spec->horizon; k++) {
            const f64 r = (f64)d->r[(col * spec->horizon + k) * d->n + i];
            for (i32 q = 0; q < spec->nband; q++) {
                const f64 e = r - unit * (f64)spread[(i64)q * spec->horizon + k];
                if (isnan(e)) continue;
                *loss += e >= 0 ? spec->quantiles.v[q] * e : (spec->quantiles.v[q] - 1) * e;
                *cells += 1;
            }
        }
    }
}

/* Mean pinball loss of each half of the origins under the quantiles of the other one. */
static f64 loss_of(struct residuals *d, f32 power, f32 *spread) {
    const struct forecast_spec *spec = &d->t->f->spec;
    const i64 half = d->n / 2;
    f64 loss = 0, cells = 0;
    for (i64 c = 0; c < d->t->series->ntarget; c++)
        for (i32 second = 0; second < 2; second++) {
            const i64 from = second ? half : 0, to = second ? d->n : half;
            take_column(d, c, from, to, power);
            column_quantiles(spec, d->scratch, to - from, NULL, spread);
            add_loss(d, c, second ? 0 : half, second ? half : d->n, power, spread, &loss, &cells);
        }
    return cells > 0 ? loss / cells : INFINITY;
}

static f32 choose_power(struct residuals *d, f32 *spread) {
    f32 best = powers[0];
    f64 least = (f64)INFINITY;
    for (size_t i = 0; i < COUNT(powers); i++) {
        const f64 loss = loss_of(d, powers[i], spread);
        if (!(loss < least)) continue;
        least = loss;
        best = powers[i];
    }
    return best;
}

/* Sets time[k]: how many overlapping residuals of step k, in units of deviation^power, carry the information of one independent
 * residual. */
static err measure_overlap(struct residuals *d, i64 stride, f32 power) {
    const i32 h = d->t->f->spec.horizon;
    struct overlap o;
    NEW(d->time, h);
    err e = overlap_new(h, d->n, d->before, stride, &o);
    for (i64 c = 0; c < d->t->series->ntarget && e >= 0; c++) {
        take_column(d, c, 0, d->n, power);
        overlap_add(&o, d->scratch);
    }
    for (i32 k = 0; k < h && e >= 0; k++) d->time[k] = overlap_time(&o, k);
    overlap_free(&o);
    return e;
}

/* Share of the calibration scores of all columns in each bin. */
static void fill_scores(const struct residuals *d, const f32 *spread, f32 power, f32 *share) {
    const struct forecast_spec *spec = &d->t->f->spec;
    const i64 h = spec->horizon, ends = (spec->nband - 1) * h;
    f64 count[BAND_BINS] = {0}, all = 0;
    for (i64 c = 0; c < d->t->series->ntarget; c++)
        for (i64 i = 0; i < d->n; i++) {
            const f32 unit = power > 0 ? powf(d->deviation[c * d->n + i], power) : 1;
            for (i64 k = 0; k < h; k++) {
                const f32 *q = spread + c * spec->nband * h + k;
                const i32 bin = forecast_bin(d->r[(c * h + k) * d->n + i] / unit, 0, q[0], q[ends]);
                if (bin >= 0) count[bin]++, all++;
            }
        }
    for (i32 b = 0; b < BAND_BINS; b++) share[b] = all > 0 ? (f32)(count[b] / all) : 0;
}

/* ------------------------------------------------------------------ the rows ------------------------------------------------ */

/* The weights of a mix were found on the many series of a panel, and few rows would find others: residuals are measured with the
 * same weights, and a ridge fitted again. */
static bool keeps_mix(const struct fit *t) { return t->series->panel && t->f->has_mix; }

/* A mix weighed and fitted on [0, spec->train), with the trees that the base has. */
static err mix_again(const struct fit *t, const struct base_spec *spec, struct base **out) {
    struct mix table;
    TRY(base_mix(t->series, spec, &table, out));
    const err e = base_trees_again(t->series, spec, t->f->base, *out);
    if (e < 0) base_free(*out);
    return e;
}

/* The base that residuals on training and validation rows are measured with. A mix was weighed on validation rows and a
 * refitted ridge has seen them, so these are fitted again without them. NULL: use the base itself. */
static err unseen_base(const struct fit *t, struct base **out) {
    const struct base_spec spec = forecast_base_spec(t, NULL);
    *out = NULL;
    if (keeps_mix(t)) {
        const err e = base_again(t->series, &spec, t->f->base, out);
        if (e != -E301) return e;
        err_clear(); /* the training rows are too few for the ridge of the mix: one of them alone has rules that need less */
        return mix_again(t, &spec, out);
    }
    if (t->f->spec.refit_all && strcmp(t->f->spec.base, "ridge") == 0) return base_ridge(t->series, &spec, out);
    return t->f->has_mix ? mix_again(t, &spec, out) : 0;
}

/* Fits a base of the same kind on the first half of the training rows; *from = the first row after it. The base itself and
 * row 0 if it has no fitted parameters. NULL if the fit is impossible. */
static struct base *half_base(const struct fit *t, i64 *from) {
    struct base_spec spec = forecast_base_spec(t, NULL);
    struct base *b = NULL, *own = t->f->base;
    err e = 0;
    *from = 0;
    if (!own || (!t->f->has_mix && !base_is_ridge(own) && !own->trees)) return own;
    spec.train = spec.valid = *from = t->job->split.train / 2;
    const bool weighs = t->f->has_mix && !keeps_mix(t);
    e = weighs ? mix_again(t, &spec, &b) : base_again(t->series, &spec, own, &b);
    if (e < 0) err_clear();
    return e < 0 ? NULL : b;
}

/* Chooses origins of both sets at one distance, for at most about SPREAD_CELLS residuals, from every phase of the season. */
static void thin(const struct fit *t, struct window_set *train, struct window_set *valid) {
    const i64 cells = (window_origins(train) + window_origins(valid)) * t->series->ntarget * t->f->spec.horizon;
    const i64 apart = lmax(valid->stride, (cells + SPREAD_CELLS - 1) / SPREAD_CELLS);
    train->stride = valid->stride = forecast_stride(apart, t->series->freq.season);
}

static err measure(struct residuals *d, const struct window_set *set, i64 at, i32 nmember, struct base *base) {
    struct forecaster *f = d->t->f;
    struct base *own = f->base;
    const i32 members = f->nmember;
    d->set = set;
    d->at = at;
    d->model = d->base = 0;
    f->base = base;
    f->nmember = nmember;
    const err e = forecast_rows_of(f, d->t->series, set, &d->t->job->use, on_residual, d);
    f->base = own;
    f->nmember = members;
    return e;
}

/* Collects residuals in order of time: training rows first. */
static err measure_all(struct residuals *d, const struct window_set *train, struct base *half, const struct window_set *valid,
                       struct base *fair) {
    const i64 before = d->before, ncol = d->t->series->ntarget, h = d->t->f->spec.horizon;
    TRY(measure(d, valid, before, d->t->f->nmember, fair));
    const f32 ratio = d->base > 0 ? (f32)(d->model / d->base) : 1;
    if (before == 0) return 0;
    TRY(measure(d, train, 0, 0, half));
    for (i64 i = 0; i < ncol * h; i++)
        for (i64 k = 0; k < before; k++) d->r[i * d->n + k] *= ratio;
    return 0;
}

/* Reports columns without bands: they end before the validation split, or have a gap there. */
static void tell_bare(const struct fit *t, i32 bare, i32 first) {
    const struct series *s = t->series;
    if (bare > 0)
        event_note(t->job->use.events, EVENT_NOTE, "no quantiles for %d of %d columns (\"%s\"%s): fewer than %d targets to "
                   "measure errors from", bare, s->ntarget, s->name[first], bare > 1 ? ", ..." : "", SPREAD_WINDOWS);
}

/* Templates of sample paths: windows from all of time, of each series, or of all series in turn. */
static void keep_paths(struct residuals *d, f32 power, f32 *u) {
    const struct forecast_spec *spec = &d->t->f->spec;
    const i64 ncol = d->t->series->ntarget;
    const struct path_shape shape = paths_shape(spec, (i32)ncol);
    for (i64 c = 0; c < ncol; c++) {
        take_column(d, c, 0, d->n, power);
        for (i64 j = 0; j < shape.n; j++) {
            const i64 at = shape.ncol > 1 || ncol == 1 ? j * d->n / shape.n : j * ncol * d->n / shape.n - c * d->n;
            if (at < 0 || at >= d->n) continue;
            paths_rank(d->scratch, spec->horizon, d->n, at, u + (j * shape.ncol + (shape.ncol > 1 ? c : 0)) * spec->horizon);
        }
    }
}

static err spread_of(struct fit *t, struct residuals *d, i64 stride) {
    struct forecaster *f = t->f;
    const struct forecast_spec *spec = &f->spec;
    const i64 ncol = t->series->ntarget, facts = forecast_quantiles(f, (i32)ncol);
    i32 bare = 0, first = 0;
    f32 *spread;
    NEW(d->scratch, spec->horizon * d->n);
    NEW(spread, forecast_spread_floats(f, (i32)ncol));
    f->spread = spread;
    const f32 power = d->scores ? 0 : choose_power(d, spread);
    if (pools(d)) TRY(pooled_quantiles(d, power, spread));
    else if (!d->scores) TRY(measure_overlap(d, stride, power));
    for (i64 c = ncol - 1; c >= 0 && !pools(d); c--) {
        take_column(d, c, 0, d->n, power);
        f32 *to = spread + c * spec->nband * spec->horizon;
        const bool whole = d->scores ? score_quantiles(spec, d->scratch, d->n, to)
                                     : column_quantiles(spec, d->scratch, d->n, d->time, to);
        if (!whole) bare++, first = (i32)c;
    }
    if (bare > 0 && t->series->panel) {
        TRY(lend_quantiles(d, power, spread));
        bare = 0;
    }
    spread[facts] = power;
    keep_paths(d, power, spread + facts + BAND_FACTS);
    fill_scores(d, spread, power, spread + facts + 1);
    tell_bare(t, bare, first);
    return 0;
}

/* Without a network a distribution has no parameters. */
static bool scores_of(const struct fit *t) { return t->f->spec.family && t->f->nmember > 0; }

static err calibrate(struct fit *t, struct base *half, i64 from, struct base *fair) {
    struct window_set valid = t->set.valid_all, train = windows_in(&t->f->spec, from, t->job->split.train);
    const i64 ncol = t->series->ntarget;
    if (!half) train.end = train.first;
    thin(t, &train, &valid);
    struct workload work = workload_start("measuring the bands", t->job->use.events, forecast_stop(t));
    struct residuals d = {.t = t, .scores = scores_of(t), .work = &work};
    d.before = window_origins(&train);
    d.n = d.before + window_origins(&valid);
    if (d.n * (t->series->panel ? ncol : 1) < SPREAD_WINDOWS) {
        event_note(t->job->use.events, EVENT_NOTE, "no quantiles: %lld origins to measure errors from, at least %d are needed",
                   (long long)d.n, SPREAD_WINDOWS);
        t->f->spec.nband = 0;
        return 0;
    }
    work.all = (f64)(d.n * ncol);
    err e = mem_new((void **)&d.r, ncol * t->f->spec.horizon * d.n, sizeof *d.r);
    if (e >= 0) e = mem_new((void **)&d.deviation, ncol * d.n, sizeof *d.deviation);
    if (e >= 0) e = measure_all(&d, &train, half, &valid, fair ? fair : t->f->base);
    if (e >= 0) e = spread_of(t, &d, valid.stride);
    workload_end(&work);
    mem_free(d.r);
    mem_free(d.deviation);
    mem_free(d.scratch);
    mem_free(d.time);
    return e;
}

err forecast_spread(struct fit *t) {
    struct base *fair = NULL, *half;
    i64 from = 0;
    if (t->f->spec.nband == 0 || t->f->spread) return 0;
    TRY(unseen_base(t, &fair));
    half = scores_of(t) ? NULL : half_base(t, &from);
    const err e = calibrate(t, half, from, fair);
    if (half != t->f->base) base_free(half);
    base_free(fair);
    return e;
}
