/* page_test.c - what the report shows of the test part and of the data: worst, median and best series, the forecast after the
 * last record, errors by calendar, calibration, worth of the columns, quality. */
#include <math.h>
#include <stdio.h>

#include "data/series_pick.h"
#include "learn/forecast/columns.h"
#include "learn/forecast/examples.h"
#include "learn/forecast/ops.h"
#include "learn/forecast/page.h"
#include "learn/series_quality.h"
#include "report/text.h"

/* ------------------------------------------------------------------ examples ------------------------------------------------ */

static const char *note_of(const struct page *p, const struct examples *x, const struct example *e) {
    const char *metric = x->mase ? "MASE" : "MAE";
    return arena_printf(p->a, "%s, %s %s", e->rank, metric, text_digits(e->error, 3).s);
}

static err fill_examples(struct page *p, struct examples *x) {
    struct report_forecast *out;
    TRY(forecast_examples(p->f, p->s, p->scores, p->use, p->a, x));
    if (x->n == 0) return 0;
    ARENA_NEW(p->a, out, x->n);
    for (i32 i = 0; i < x->n; i++) {
        TRY(page_forecast(p->f, x->at[i].of, &x->at[i].sample, true, p->a, &out[i]));
        out[i].note = note_of(p, x, &x->at[i]);
    }
    p->r->series = out;
    p->r->nseries = x->n;
    p->r->series_lead = x->windows
                            ? arena_printf(p->a, "of %lld windows of the test part, by their MAE", (long long)x->among)
                            : arena_printf(p->a, "of %lld series, by %s on the test part; the last window of each",
                                           (long long)x->among, x->mase ? "MASE, which compares series of unlike size" : "MAE");
    return 0;
}

/* The forecast after the last record: of the median series, or of the first where none was chosen.  Columns known ahead may lack
 * what it needs; the report then does without. */
static err fill_ahead(struct page *p, const struct examples *x) {
    struct report_forecast *out;
    struct forecast_sample *w;
    struct series *s;
    ARENA_NEW(p->a, out, 1);
    if (x->n > 0) {
        s = x->at[x->n / 2].of;
    } else {
        bool fits;
        ARENA_NEW(p->a, s, 1);
        TRY(series_alone(p->s, 0, p->a, s, &fits));
        if (!fits) return 0;
    }
    const err e = forecast_ahead(p->f, s, p->use, p->a, &w);
    if (e == -E301 || e == -E302) return err_clear(), 0;
    TRY(e);
    TRY(page_forecast(p->f, s, w, false, p->a, out));
    out->title = arena_printf(p->a, "%.200s after the last record", s->name[0]);
    p->r->ahead = out;
    p->r->nahead = 1;
    return 0;
}

/* ------------------------------------------------------------------ calendar ------------------------------------------------ */

/* The error that the table compares: MAE, or RMSE or MSE of a model of means. */
static f64 error_of(const struct page *p, const struct calendar_sums *s) {
    if (s->n == 0) return (f64)NAN;
    if (!forecast_squares(&p->f->spec)) return (page_original(p) ? s->absolute : s->scaled_absolute) / s->n;
    return page_original(p) ? sqrt(s->square / s->n) : s->scaled_square / s->n;
}

static err fill_part(struct page *p, enum calendar_part part, i32 naive, struct report_calendar *out) {
    static const char *const name[CALENDAR_PARTS] = {"Error by hour of the day", "Error by day of the week", "Error by month"};
    const char **label;
    f64 *v;
    const i32 n = calendar_size(part);
    i32 shown = 0;
    ARENA_NEW(p->a, label, n);
    ARENA_NEW(p->a, v, 2 * n);
    for (i32 i = 0; i < n; i++) {
        const struct calendar_sums model = calendar_of(&p->scores->calendar, SCORE_MODEL, part, i);
        if (model.n == 0) continue; /* no record of that hour, day or month */
        label[shown] = calendar_label(part, i);
        v[shown] = error_of(p, &model);
        v[n + shown] = (f64)NAN;
        if (naive >= 0) {
            const struct calendar_sums other = calendar_of(&p->scores->calendar, naive, part, i);
            v[n + shown] = error_of(p, &other);
        }
        shown++;
    }
    *out =
        (struct report_calendar){.name = name[part], .n = shown, .label = label, .model = v, .naive = naive >= 0 ? v + n : NULL};
    return 0;
}

static err fill_calendar(struct page *p) {
    struct report_calendar *out;
    const struct calendar *c = &p->scores->calendar;
    const i32 naive = forecast_best_naive(p->f, p->scores, -1, page_original(p));
    ARENA_NEW(p->a, out, CALENDAR_PARTS);
    p->r->calendar = out;
    p->r->calendar_naive = naive >= 0 ? p->scores->name[naive] : NULL;
    for (enum calendar_part part = 0; part < CALENDAR_PARTS; part++)
        if (calendar_matters(c, &p->s->freq, part)) TRY(fill_part(p, part, naive, &out[p->r->ncalendar++]));
    return 0;
}

/* ------------------------------------------------------------------ calibration --------------------------------------------- */

static err fill_calibration(struct page *p) {
    const struct metrics *m = p->scores->row[SCORE_MODEL];
    const i32 nq = p->f->spec.nband, h = p->scores->horizon;
    struct score all, one;
    f64 *v;
    metrics_score(m, -1, -1, true, &all);
    if (nq < 2 || all.n == 0 || !isfinite(all.pinball)) return 0;
    ARENA_NEW(p->a, v, nq + h);
    for (i32 q = 0; q < nq; q++) v[q] = all.below[q];
    for (i32 k = 0; k < h; k++) {
        metrics_score(m, k, -1, true, &one);
        v[nq + k] = one.n > 0 ? 100 * one.coverage[0] : (f64)NAN;
    }
    p->r->calibration = (struct report_calibration){.n = nq,
                                                    .level = p->f->spec.quantiles.v,
                                                    .below = v,
                                                    .cells = all.n,
                                                    .nstep = h,
                                                    .step = v + nq,
                                                    .from = p->f->spec.quantiles.v[0],
                                                    .to = p->f->spec.quantiles.v[nq - 1]};
    return 0;
}

/* ------------------------------------------------------------------ columns, quality ---------------------------------------- */

static const char *how_measured(const struct page *p, const struct columns_worth *w) {
    const char *few = w->n < w->all ? arena_printf(p->a, "; %d of %d columns, in the time allowed", w->n, w->all) : "";
    const char *series = w->series > 1 ? arena_printf(p->a, " of %d series", w->series) : "";
    return arena_printf(
        p->a,
        "how much the %s grows on %lld windows%s of the validation part when the windows see the column as it was "
        "at another time%s: mean of %d shift%s%s",
        forecast_squares(&p->f->spec) ? "RMSE" : "MAE", (long long)w->windows, series,
        p->s->panel ? " and in another series" : "", w->turns, w->turns == 1 ? "" : "s", few);
}

static err fill_columns(struct page *p) {
    struct columns_worth w;
    struct report_column *out;
    if (!p->split || p->split->validation <= p->split->train) return 0;
    TRY(forecast_columns(p->f, p->s, p->split->train, p->split->validation, p->seconds, p->use, p->a, &w));
    if (w.n == 0) return 0;
    ARENA_NEW(p->a, out, w.n);
    for (i32 i = 0; i < w.n; i++)
        out[i] = (struct report_column){.name = w.of[i].name, .value = w.of[i].mean, .low = w.of[i].low, .high = w.of[i].high};
    p->r->columns = (struct report_columns){.how = how_measured(p, &w), .n = w.n, .of = out};
    return 0;
}

static err fill_quality(struct page *p) {
    struct report_fact *fact;
    ARENA_NEW(p->a, fact, QUALITY_FACTS);
    p->r->quality.nfact = series_quality(p->s, p->a, fact);
    p->r->quality.fact = fact;
    return 0;
}

err page_test(struct page *p) {
    struct examples x = {0};
    TRY(fill_quality(p));
    TRY(fill_columns(p));
    if (p->scores) {
        TRY(fill_examples(p, &x));
        TRY(fill_calendar(p));
        TRY(fill_calibration(p));
    }
    return fill_ahead(p, &x);
}
