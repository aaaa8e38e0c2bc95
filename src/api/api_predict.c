/* api_predict.c - forecasts after the last row, and scores on given rows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/file.h"
#include "data/series_build.h"
#include "report/report.h"

/* A column that the data lack was named by the model, not by a flag: E903. */
static err lacks_column(void) {
    struct err_record r = *err_last();
    char *flag = strstr(r.text, " (given by --"), *rest = flag ? strchr(flag, ')') : NULL;
    if (!rest) return -E102;
    *flag = 0;
    return FAIL_AT(E903, r.where, "data with the columns of the training (stretto info MODEL lists them)",
                   "%s, which the model was trained on%s", r.text, rest + 1);
}

enum { LISTED = 255 }; /* characters of a name in a list */

/* A list option that names the columns of training one by one: "all" would be those of another file. */
static err name_columns(struct options *o, enum opt_id id, const char *const *name, i32 n) {
    static const struct opt_from model = {.rank = OPT_RANK_FLAG, .origin = "columns of the model"};
    struct str list = {0};
    for (i32 i = 0; i < n; i++)
        if (strlen(name[i]) > LISTED) return 0; /* stays as it was given */
    for (i32 i = 0; i < n; i++) str_list_add(&list, name[i]);
    err e = str_ok(&list);
    if (e >= 0) e = opt_set_id(o, id, str_text(&list), &model);
    str_free(&list);
    return e;
}

static err name_all(struct options *o, const struct schema *c) {
    TRY(name_columns(o, OPT_target, c->name, c->ntarget));
    TRY(name_columns(o, OPT_past, c->name + c->ntarget, c->npast));
    TRY(name_columns(o, OPT_known, c->name + c->ntarget + c->npast, c->nknown));
    return name_columns(o, OPT_cat, c->cat_name, c->ncat);
}

/* --since and --until of the training cut the training data; new data are read whole unless a flag of now says otherwise. */
static err open_whole(const stretto_model *m, const char *path, stretto_data **out) {
    static const enum opt_id cuts[] = {OPT_since, OPT_until};
    static const struct opt_from whole = {.rank = OPT_RANK_FILE, .origin = "new data are read whole"};
    struct options o;
    err e = opt_copy(&o, &m->config.o);
    for (size_t i = 0; e >= 0 && i < COUNT(cuts); i++) e = opt_set_id(&o, cuts[i], "", &whole);
    if (e >= 0) e = name_all(&o, &m->f->schema);
    if (e >= 0) e = data_read(&o, true, path, out);
    opt_free(&o);
    return e;
}

static void keep_warning(void *self, const struct event *e) {
    stretto_model *m = self;
    if (e->kind == EVENT_WARNING) str_addf(&m->warnings, "%s%s", m->warnings.len ? "\n" : "", e->text);
}

const char *stretto_model_warnings(const stretto_model *self) { return str_text(&self->warnings); }

/* The model's scale and vocabularies on data that have none yet: a file just read, or rows from memory. */
static err take(stretto_model *m, stretto_data *d) {
    const struct events events = {.sink = {{keep_warning, m}}, .n = 1};
    if (d->scaled) return schema_fits(&m->f->schema, d->s);
    if (m->f->shape.calendar > 0 && !d->s->time)
        return FAIL_AT(E903, NULL, "data with a time column", "the model uses the calendar, the rows of the data have no time");
    str_free(&m->warnings);
    if (d->doubt) event_note(&events, EVENT_WARNING, "%s: %s", d->doubt, d->doubt_fix);
    TRY(schema_apply(&m->f->schema, d->s, &events));
    d->scaled = true;
    d->scale_rows = -1;
    return 0;
}

stretto_err stretto_model_open(stretto_model *self, const char *path, stretto_data **out) {
    stretto_data *d = NULL;
    *out = NULL;
    err e = open_whole(self, path, &d);
    if (e == -E102) return lacks_column();
    if (e >= 0) e = take(self, d);
    if (e >= 0) *out = d;
    else stretto_data_free(d);
    return e;
}

/* What is not known ahead of time is not made up: in training a missing cell is one of many, here it is the forecast. */
static err check_known(const struct series *s, i64 origin, i32 h) {
    char when[32];
    for (i32 c = s->ntarget + s->npast; c < s->ncol; c++)
        for (i64 i = origin; i < origin + h; i++) {
            if (!isnan(series_col(s, c)[i])) continue;
            row_label(s, i, when);
            return FAIL_AT(E302, NULL, "rows for the horizon with the known columns filled in and the target left empty",
                           "known-future column \"%s\" has no value at %s, which is to be forecast", s->name[c], when);
        }
    return 0;
}

static err check_room(const stretto_model *m, const struct series *s, i64 origin) {
    i32 context = m->f->spec.context, h = m->f->spec.horizon;
    if (origin < 1) return FAIL(E301, "the data have no target value to forecast from");
    if (origin < context)
        return FAIL_AT(E301, NULL, "data with a longer history", "the model looks back on %d rows, the data have %lld", context,
                       (long long)origin);
    if (s->nknown > 0 && s->nrow < origin + h)
        return FAIL_AT(E302, NULL, "rows for the horizon with the known columns filled in and the target left empty",
                       "known-future columns must reach %d rows past the last target, they reach %lld", h,
                       (long long)(s->nrow - origin));
    return check_known(s, origin, h);
}


/* A note of a forecast, kept for stretto_model_note. */
static void keep_note(void *self, const struct event *e) {
    stretto_model *m = self;
    if (e->kind == EVENT_NOTE && m->note.len == 0) str_add(&m->note, e->text);
}

static struct events notes_to(stretto_model *m) {
    str_free(&m->note);
    return (struct events){.sink = {{keep_note, m}}, .n = 1};
}

const char *stretto_model_note(const stretto_model *self) { return str_text(&self->note); }

static err forecast_last(stretto_model *m, const struct series *s, forecast_row_fn *fn, void *self) {
    struct workshop shop;
    struct events events = notes_to(m);
    i64 origin = series_end(s);
    TRY(check_room(m, s, origin));
    TRY(workshop_open(&m->config.o, &events, NULL, false, &shop));
    struct window_set set = {.first = origin, .end = origin + 1, .stride = 1};
    err e = forecast_windows(m->f, s, &set, &shop.use, fn, self);
    workshop_close(&shop);
    return e;
}

/* --- into arrays --- */
struct arrays {
    const stretto_model *m;
    const struct series *s;
    double *mean, *quantiles;
};

static err to_arrays(void *self, const struct forecast_row *row) {
    struct arrays *a = self;
    i32 n = a->s->ntarget, nq = a->m->f->spec.nband;
    f64 mean = a->s->mean[row->col], dev = a->s->dev[row->col];
    for (i32 k = 0; k < a->m->f->spec.horizon; k++) {
        i64 at = (i64)k * n + row->col;
        if (a->mean) a->mean[at] = (f64)row->mean[k] * dev + mean;
        for (i32 q = 0; a->quantiles && row->band && q < nq; q++)
            a->quantiles[at * nq + q] = (f64)row->band[(i64)k * nq + q] * dev + mean;
    }
    return 0;
}

stretto_err stretto_predict(stretto_model *self, stretto_data *data, double *mean, double *quantiles) {
    struct arrays a = {self, data->s, mean, quantiles};
    TRY(take(self, data));
    return forecast_last(self, data->s, to_arrays, &a);
}

/* --- into CSV --- */
enum { CLOSE = 64, DIGITS = 8, DIGITS_MOST = 17 };

/* With the digits that an f32 has of the distance from the mean; a column far from zero against its spread (1e9 + 3) needs more
 * of them than an f32 holds. */
static void add_number(struct str *out, const struct series *s, i32 col, f64 v) {
    const f64 far = fabs(s->mean[col]) / s->dev[col];
    char text[32];
    if (isnan(v)) return; /* a quantile that is not known: an empty cell */
    if (far <= CLOSE) str_from_f32(text, (f32)v);
    else str_print(text, sizeof text, "%.*g", (i32)dmin(DIGITS_MOST, DIGITS + ceil(log10(far))), v);
    str_add(out, text);
}

/* A name as a CSV field: quoted when it must be. */
static void add_name(struct str *out, const char *name) {
    if (!strpbrk(name, ",\"\n\r")) {
        str_add(out, name);
        return;
    }
    str_add(out, "\"");
    for (const char *p = name; *p; p++) str_addf(out, *p == '"' ? "\"\"" : "%c", *p);
    str_add(out, "\"");
}

static void long_csv(const stretto_model *m, const struct series *s, const f64 *mean, const f64 *band, struct str *out) {
    const struct forecast_spec *spec = &m->f->spec;
    char origin[32], time[32];
    i64 o = series_end(s);
    row_label(s, o - 1, origin);
    str_add(out, "id,origin,time,step,mean");
    for (i32 q = 0; q < spec->nband; q++) str_addf(out, ",q%g", spec->band[q]);
    str_add(out, "\n");
    for (i32 c = 0; c < s->ntarget; c++)
        for (i32 k = 0; k < spec->horizon; k++) {
            i64 at = (i64)k * s->ntarget + c;
            row_label(s, o + k, time);
            add_name(out, s->name[c]);
            str_addf(out, ",%s,%s,%d,", origin, time, k + 1);
            add_number(out, s, c, mean[at]);
            for (i32 q = 0; q < spec->nband; q++) {
                str_add(out, ",");
                add_number(out, s, c, band[at * spec->nband + q]);
            }
            str_add(out, "\n");
        }
}

static void wide_csv(const stretto_model *m, const struct series *s, const f64 *mean, struct str *out) {
    char time[32];
    i64 o = series_end(s);
    str_add(out, "time,step");
    for (i32 c = 0; c < s->ntarget; c++) {
        str_add(out, ",");
        add_name(out, s->name[c]);
    }
    str_add(out, "\n");
    for (i32 k = 0; k < m->f->spec.horizon; k++) {
        row_label(s, o + k, time);
        str_addf(out, "%s,%d", time, k + 1);
        for (i32 c = 0; c < s->ntarget; c++) {
            str_add(out, ",");
            add_number(out, s, c, mean[(i64)k * s->ntarget + c]);
        }
        str_add(out, "\n");
    }
}

stretto_err stretto_predict_file(stretto_model *self, stretto_data *data, const char *path, int wide, char **out) {
    struct arena a = {0};
    struct str text = {0};
    i64 cells = (i64)self->f->spec.horizon * data->s->ntarget;
    f64 *mean = arena_new(&a, sizeof(f64) * (size_t)cells);
    f64 *band = arena_new(&a, sizeof(f64) * (size_t)(cells * imax(1, self->f->spec.nband)));
    err e = mean && band ? stretto_predict(self, data, mean, band) : -E601;
    if (e >= 0) {
        if (wide) wide_csv(self, data->s, mean, &text);
        else long_csv(self, data->s, mean, band, &text);
        e = str_ok(&text);
    }
    arena_free(&a);
    if (e >= 0 && strcmp(path, "-") == 0) return text_give(&text, out);
    if (e >= 0) e = file_write_all(path, text.s, (i64)text.len);
    str_free(&text);
    return e;
}

/* --- scores --- */
/* First row that the model has not seen; the number of rows when it has seen them all. */
static i64 first_unseen(const struct forecaster *f, const struct series *s) {
    if (!s->time || f->seen_time == INT64_MIN) return lmin(f->seen_rows, s->nrow);
    i64 i = 0;
    while (i < s->nrow && s->time[i] <= f->seen_time) i++;
    return i;
}

/* The windows to score: those after the rows seen in training, or all when there are none. */
static err eval_windows(const stretto_model *m, const struct series *s, i64 stride, struct window_set *set, const char **what) {
    const struct forecast_spec *spec = &m->f->spec;
    *set = (struct window_set){.first = spec->context, .end = series_end(s) - spec->horizon + 1, .stride = stride};
    if (window_origins(set) <= 0)
        return FAIL_AT(E301, NULL, "more rows", "context %d + horizon %d = %d rows are needed, the data have %lld",
                       spec->context, spec->horizon, spec->context + spec->horizon, (long long)series_end(s));
    struct window_set unseen = *set;
    unseen.first = lmax(set->first, first_unseen(m->f, s));
    *what = window_origins(&unseen) > 0 ? "eval" : "rows seen in training (no test!)";
    if (window_origins(&unseen) > 0) *set = unseen;
    return 0;
}

static err eval(stretto_model *m, stretto_data *d, const struct options *o, struct forecast_scores *scores, struct str *text,
                int json, f64 *skill) {
    struct workshop shop;
    struct window_set set;
    struct events events = notes_to(m);
    const char *what = "eval";
    TRY(take(m, d));
    TRY(eval_windows(m, d->s, o && !opt_is_auto(o, OPT_stride) ? o->stride : m->f->spec.stride, &set, &what));
    TRY(workshop_open(&m->config.o, &events, NULL, false, &shop));
    err e = forecast_score(m->f, d->s, &set, &shop.use, scores);
    workshop_close(&shop);
    if (e < 0) return e;
    char title[128], span[72];
    struct score_view v;
    const struct options *show = o ? o : &m->config.o;
    span_label(d->s, set.first, series_end(d->s), span);
    snprintf(title, sizeof title, "%s %s", what, span);
    TRY(score_view(m->f, scores, show, title, &v));
    char said[BAND_SAID];
    if (*score_band_said(&v.table->band, said)) str_addf(&m->note, "%s%s", m->note.len ? "\n" : "", said);
    if (json) table_json(text, v.table);
    else table_text(text, v.table);
    score_view_free(&v);
    if (skill) *skill = score_skill(m->f, scores, show);
    return 0;
}

stretto_err stretto_eval(stretto_model *self, stretto_data *data, stretto_config *config, int json, char **out, double *skill) {
    struct forecast_scores scores = {0};
    struct str text = {0};
    err e = eval(self, data, config ? &config->o : NULL, &scores, &text, json, skill);
    forecast_scores_free(&scores);
    return text_end(e, &text, out);
}

/* --- picture --- */
static err plot(stretto_model *m, stretto_data *d, struct arena *a, const char *path) {
    const struct forecast_spec *spec = &m->f->spec;
    const struct series *s = d->s;
    i32 h = spec->horizon, nq = spec->nband, past = (i32)lmin(series_end(s), lmax(3 * h, 24));
    i64 n = s->ntarget, o = series_end(s);
    f64 *mean, *band, *v, *time;
    ARENA_NEW(a, mean, h * n);
    ARENA_NEW(a, band, h * n * imax(1, nq));
    ARENA_NEW(a, v, past + 3 * h);
    ARENA_NEW(a, time, past + h);
    TRY(stretto_predict(m, d, mean, band));
    for (i32 i = 0; i < past; i++) v[i] = series_raw(s, 0, o - past + i);
    for (i32 k = 0; k < h; k++) {
        v[past + k] = mean[k * n];
        v[past + h + k] = nq ? band[k * n * nq] : 0;
        v[past + 2 * h + k] = nq ? band[k * n * nq + nq - 1] : 0;
    }
    for (i32 i = 0; s->time && i < past + h; i++) time[i] = row_seconds(s, o - past + i);
    struct report_forecast f = {.title = s->name[0], .nhistory = past, .horizon = h, .time = s->time ? time : NULL, .history = v,
                                .model = v + past};
    if (nq > 1) {
        f.low = v + past + h;
        f.high = v + past + 2 * h;
        f.low_q = spec->band[0];
        f.high_q = spec->band[nq - 1];
    }
    return report_plot(&f, path);
}

stretto_err stretto_model_plot(stretto_model *self, stretto_data *data, const char *svg_path) {
    struct arena a = {0};
    err e = plot(self, data, &a, svg_path);
    arena_free(&a);
    return e;
}
