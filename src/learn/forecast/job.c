/* job.c - from options and a data set to the fit of a forecaster. */
#include <stdio.h>
#include <string.h>

#include "data/time.h"
#include "learn/forecast/ops.h"
#include "learn/forecast/resolve.h"
#include "learn/series_set.h"
#include "plan/slice.h"

/* ------------------------------------------------------------------ before the fit ------------------------------------------ */

/* Replaces what each rank measured (--precision auto) by the choice of rank 0. */
static err same_answers(struct learn_job *job) {
    static const struct opt_from from = {.rank = OPT_RANK_PRESET, .origin = "as rank 0 measured"};
    struct forecast_spec *spec = job->spec;
    i32 mine = (i32)spec->precision, told = mine;
    TRY(comm_broadcast(job->use.comm, "precision", &told, sizeof told));
    if (told == mine) return 0;
    spec->precision = (u32)told;
    return opt_set_id(job->o, OPT_precision, told == PREC_BF16 ? "bf16" : "fp32", &from);
}

/* --season auto: from the sampling interval, or else from the rows that precede every default test split. */
static err resolve_season(struct options *o, struct series *s) {
    char text[32];
    struct split p = {.validation = series_end(s) * 3 / 5};
    const char *why = s->freq.name[0] ? "by the sampling interval" : "the rows have no times and show no season";
    if (!opt_is_auto(o, OPT_season)) return 0;
    if (!s->time && s->freq.season <= 1) {
        i32 found;
        if (!opt_is_auto(o, OPT_test)) TRY(split_make(s, series_end(s), "0", o->test, &p));
        TRY(season_find(s, s->ntarget, p.validation, &found));
        if (found > 1) s->freq.season = found, why = "the autocorrelation of the rows before the test part peaks there";
    }
    i32 n = snprintf(text, sizeof text, "%d", imax(1, s->freq.season));
    if (s->freq.season2 > 1) snprintf(text + n, sizeof text - (size_t)n, ",%d", s->freq.season2);
    return opt_resolve(o, OPT_season, text, why);
}

err forecast_job_resolve(struct learn_job *job) {
    const struct series_set *d = series_set_of(job->data);
    TRY(forecast_check_by(job->o, d->s));
    TRY(resolve_season(job->o, d->s));
    TRY(resolve_counts(job->o, d->s, job->data->path));
    TRY(resolve_forecast(job->o, d->s, job->use.events, job->spec, &job->split));
    if (d->s->roles) event_note(job->use.events, EVENT_NOTE, "columns: %s", d->s->roles);
    TRY(series_set_marks(d, job->o, job->use.events));
    return same_answers(job);
}

/* "slices 16" of a plan's first line; 0 = its rows are whole windows. */
static i32 slices_of_plan(const char *text) {
    size_t line = strcspn(text, "\n");
    const char *at = strstr(text, " slices ");
    i64 n = 0;
    if (!at || (size_t)(at - text) > line) return 0;
    at += 8;
    return str_to_i64(at, strcspn(at, " \n"), &n) && n > 0 && n <= SLICES_MAX ? (i32)n : 0;
}

/* Takes the number of slices from a saved plan. */
static err slices_by_plan(const struct learn_job *job) {
    struct forecast_spec *spec = job->spec;
    if (!job->use.plan_text) return 0;
    i32 slices = slices_of_plan(job->use.plan_text);
    /* otherwise plan_parse compares the plan with the net */
    if (spec->cut.slices > 1 || slices < 2 || !forecast_can_slice(spec)) return 0;
    if (slices > forecast_steps(spec))
        return FAIL_AT(E402, job->use.plan_path, "stretto plan --save FILE   (writes a plan that fits)",
                       "%d time slices out of a context of %d steps", slices, forecast_steps(spec));
    spec->cut.slices = spec->cut.least = slices;
    return 0;
}

err forecast_job_prepare(struct learn_job *job) {
    const struct forecast_spec *spec = job->spec;
    struct series_set *d = series_set_of(job->data);
    const i32 n = job->use.machine->ndevice;
    TRY(forecast_check_length(&job->split, spec, 1));
    TRY(schema_limit_words(d->s, job->split.train, job->use.events));
    TRY(series_set_scale(d, job->split.train));
    TRY(slices_by_plan(job));
    event_note(job->use.events, EVENT_DETAIL, "kernels %s%s, %d thread%s", job->use.kern->name,
               spec->precision == PREC_BF16 ? " in bf16" : "", n, n > 1 ? "s" : "");
    return 0;
}

/* ------------------------------------------------------------------ on several ranks ---------------------------------------- */

static i32 shares_of(const struct forecast_spec *spec, i32 rows, i32 slices) {
    return slice_grains(rows / spec->cut.slices * slices);
}

/* E401 if the time slices form fewer groups of rows than there are ranks. `auto` chooses the number of slices from the data
 * alone, not from the ranks: that makes the bits equal for any number of ranks. */
err forecast_job_ranks(const struct learn_job *job, i32 size) {
    const struct forecast_spec *spec = job->spec;
    char fix[80];
    i32 nwin, rows, enough = spec->cut.slices;
    if (spec->cut.slices < 2) return 0;
    TRY(policy_fits(job->use.policy, spec->cut.slices, size));
    if (spec->bidirectional)
        return FAIL_AT(E401, "--parallel", "--ranks 1   or   --parallel data",
                       "%d time slices of a bidirectional model must stay on one rank (the backward direction ends in the first "
                       "slice); this run has %d ranks",
                       spec->cut.slices, size);
    TRY(forecast_rows(spec, forecast_epoch(spec, series_of(job->data), job->split.train),
                      forecast_width(spec, series_of(job->data)), &nwin, &rows));
    const i32 have = shares_of(spec, rows, spec->cut.slices);
    if (have >= size) return 0;
    while (shares_of(spec, rows, enough) < size && enough < forecast_steps(spec)) enough *= 2;
    snprintf(fix, sizeof fix, "--ranks %d   or   --parallel time:%d", have, enough);
    return FAIL_AT(E401, "--parallel", fix, "%d time slices in %d sequence%s form %d groups, this run has %d ranks",
                   spec->cut.slices, rows, rows > 1 ? "s" : "", have, size);
}

/* ------------------------------------------------------------------ folds --------------------------------------------------- */

/* Rows of all folds together: the test split if --test is set, otherwise as many as the folds need. */
static void fold_rows(struct learn_job *job, i32 n, i64 *from, i64 *rows) {
    const struct forecast_spec *spec = job->spec;
    struct split *p = &job->split;
    *from = p->validation;
    *rows = p->test - *from;
    if (!opt_is_auto(job->o, OPT_test) && opt_given(job->o, OPT_test)) return;
    const i64 held = p->validation - p->train;
    *rows = lmin(lmax(*rows, (i64)n * spec->horizon), job->data->nrow / 2);
    *from = p->test - *rows;
    p->validation = *from;
    p->train = *from - held;
}

err forecast_job_folds(struct learn_job *job, i32 n, bool refit_each, i64 *border) {
    const struct events *to = job->use.events;
    const struct forecast_spec *spec = job->spec;
    struct series_set *d = series_set_of(job->data);
    char fix[96];
    i64 from, rows;
    job->split = (struct split){0};
    TRY(resolve_season(job->o, d->s));
    TRY(resolve_counts(job->o, d->s, job->data->path));
    TRY(resolve_forecast(job->o, d->s, NULL, job->spec, &job->split));
    TRY(series_set_marks(d, job->o, to));
    fold_rows(job, n, &from, &rows);
    const i64 before = job->split.validation - job->split.train + spec->context + spec->horizon, all = job->split.test;
    const i64 fit = lmax(1, lmin(rows, all - before) / spec->horizon); /* most folds that leave a window to train on */
    snprintf(fix, sizeof fix, "--folds %lld --test %lld", (long long)fit, (long long)fit * spec->horizon);
    if (before + (i64)n * spec->horizon <= all) snprintf(fix, sizeof fix, "--test %lld", (long long)n * spec->horizon);
    if (rows / n < spec->horizon)
        return FAIL_AT(E301, NULL, fix, "%d folds of a horizon of %d need %lld test rows, there are %lld", n, spec->horizon,
                       (long long)n * spec->horizon, (long long)rows);
    TRY(forecast_check_length(&job->split, spec, n)); /* the first fold has the fewest training rows */
    resolve_notes(job->o, d->s, &job->split, to);
    if (!refit_each)
        TRY(schema_limit_words(d->s, job->split.train, to)); /* with a refit per fold, later folds learn more words */
    for (i32 k = 0; k <= n; k++) border[k] = from + rows * k / n;
    return series_set_scale(d, job->split.train);
}
