/* predict.c - forecasts after the last row, as numbers and as a table, and samples of them; reads new data with the settings of
 * the model. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/time.h"
#include "learn/forecast/ops.h"
#include "learn/forecast/paths.h"
#include "learn/series_set.h"

/* ------------------------------------------------------------------ data ---------------------------------------------------- */

/* E903 if the data lack a column of the model. The message names the model, not a flag. */
static err lacks_column(void) {
    struct err_record r = *err_last();
    char *flag = strstr(r.text, " (given by --"), *rest = flag ? strchr(flag, ')') : NULL;
    if (!rest) return -E102;
    *flag = 0;
    return FAIL_AT(E903, r.where, "data with the columns of the training (stretto info MODEL lists them)",
                   "%s, which the model was trained on%s", r.text, rest + 1);
}

enum { LISTED = 255 }; /* characters of a name in a list */

/* Replaces "all" in a list option by the names of the training columns: another file may have other columns. */
static err name_columns(struct options *o, enum opt_id id, const char *const *name, i32 n) {
    static const struct opt_from model = {.rank = OPT_RANK_FLAG, .origin = "columns of the model"};
    struct str list = {0};
    for (i32 i = 0; i < n; i++)
        if (strlen(name[i]) > LISTED) return 0; /* keep the option as given */
    for (i32 i = 0; i < n; i++) str_list_add(&list, name[i]);
    err e = str_ok(&list);
    if (e >= 0) e = opt_set_id(o, id, str_text(&list), &model);
    str_free(&list);
    return e;
}

static err name_all(struct options *o, const struct schema *c) {
    const i32 ahead = 1 + c->npast, fixed = ahead + c->nknown - c->nstatic;
    if (c->panel) {
        TRY(name_columns(o, OPT_target, c->column, 1));
        TRY(name_columns(o, OPT_past, c->column + 1, c->npast));
        TRY(name_columns(o, OPT_known, c->column + ahead, c->nknown - c->nstatic));
        TRY(name_columns(o, OPT_static_, c->column + fixed, c->nstatic));
        return name_columns(o, OPT_cat, c->cat_name, c->ncat);
    }
    TRY(name_columns(o, OPT_target, c->name, c->ntarget));
    TRY(name_columns(o, OPT_past, c->name + c->ntarget, c->npast));
    TRY(name_columns(o, OPT_known, c->name + c->ntarget + c->npast, c->nknown));
    return name_columns(o, OPT_cat, c->cat_name, c->ncat);
}

/* Drops --since and --until of the training: new data are read whole unless this command sets them. */
static err read_whole(const struct forecaster *f, const struct options *own, const char *path, struct dataset **out) {
    static const enum opt_id cuts[] = {OPT_since, OPT_until};
    static const struct opt_from whole = {.rank = OPT_RANK_FILE, .origin = "new data are read whole"};
    struct options o;
    err e = opt_copy(&o, own);
    for (size_t i = 0; e >= 0 && i < COUNT(cuts); i++) e = opt_set_id(&o, cuts[i], "", &whole);
    if (e >= 0) e = name_all(&o, &f->schema);
    if (e >= 0) e = opt_check(&o);
    if (e >= 0) e = series_set_read(&o, true, path, out);
    opt_free(&o);
    return e;
}

bool forecast_reads_time(const struct forecaster *f) {
    struct trees_needs needs;
    const bool trees = f->base && base_trees_needs(f->base, &needs) && needs.time;
    return f->shape.calendar > 0 || trees || (f->base && f->base->ridge && f->base->ridge->calendar);
}

err forecast_take(const struct model *m, struct dataset *data, const struct events *to) {
    const struct forecaster *f = forecaster_in(m);
    struct series_set *d = series_set_of(data);
    if (d->scaled) return schema_fits(&f->schema, d->s);
    if (forecast_reads_time(f) && !d->s->time)
        return FAIL_AT(E903, NULL, "data with a time column", "the model uses the calendar, the rows of the data have no time");
    if (d->doubt) event_note(to, EVENT_WARNING, "%s: %s", d->doubt, d->doubt_fix);
    TRY(schema_apply(&f->schema, d->s, to));
    d->scaled = true;
    d->scale_rows = -1;
    return 0;
}

err forecast_open(const struct model *m, const struct options *o, const char *path, const struct events *to,
                  struct dataset **out) {
    struct dataset *d = NULL;
    *out = NULL;
    err e = read_whole(forecaster_in(m), o, path, &d);
    if (e == -E102) return lacks_column();
    if (e >= 0) e = forecast_take(m, d, to);
    if (e >= 0)
        *out = d;
    else
        dataset_free(d);
    return e;
}

/* ------------------------------------------------------------------ after the last row -------------------------------------- */

/* The row after the last one of a target: its own where series end apart. */
static i64 origin_of(const struct series *s, i32 col) { return s->to ? s->to[col] : series_end(s); }

static const char known_fix[] = "rows for the horizon with the known columns filled in and the target left empty";

/* E302 if a known-future value is missing in the horizon. Training tolerates missing cells; a forecast must not depend on
 * an invented one. */
static err check_known(const struct series *s, i32 col, i32 h) {
    const i64 origin = origin_of(s, col);
    char when[32];
    for (i32 k = 0; k < s->nknown - s->nstatic; k++) {
        const i32 c = series_ahead_of(s, k, col);
        i64 i = origin;
        while (i < lmin(origin + h, s->nrow) && !isnan(series_col(s, c)[i])) i++;
        if (i == origin + h) continue;
        if (i == s->nrow)
            return FAIL_AT(
                E302, NULL, known_fix, "known-future columns must reach %d rows past the last target%s%s%s, they reach %lld", h,
                s->panel ? " of \"" : "", s->panel ? s->name[col] : "", s->panel ? "\"" : "", (long long)(s->nrow - origin));
        row_label(s, i, when);
        return FAIL_AT(E302, NULL, known_fix, "known-future column \"%s\" has no value at %s, which is to be forecast",
                       s->name[c], when);
    }
    return 0;
}

/* In a panel, rows before the first one of a series count as missing. */
static err check_room(const struct forecaster *f, const struct series *s) {
    i32 context = f->spec.context, h = f->spec.horizon;
    const i64 end = series_end(s);
    if (end < 1) return FAIL(E301, "the data have no target value to forecast from");
    for (i32 c = 0; c < (s->to ? s->ntarget : 1); c++) {
        if (origin_of(s, c) < 1)
            return FAIL_AT(E301, NULL, "a value in each series, or data without this one",
                           "series \"%s\" has no target value to forecast from", s->name[c]);
        if (origin_of(s, c) < context && !s->panel)
            return FAIL_AT(E301, NULL, "data with a longer history", "the model looks back on %d rows, the data have %lld",
                           context, (long long)end);
        TRY(check_known(s, c, h));
    }
    return 0;
}

/* True if the series end at different times. */
static bool ends_apart(const struct series *s) {
    bool apart = false;
    for (i32 c = 1; s->to && c < s->ntarget; c++) apart |= s->to[c] != s->to[0];
    return apart;
}

/* The origin of each series, if they end at different times. */
static err own_origins(const struct series *s, struct arena *room, struct window_set *set) {
    i64 *at;
    if (!ends_apart(s)) return 0;
    ARENA_NEW(room, at, s->ntarget);
    for (i32 c = 0; c < s->ntarget; c++) at[c] = origin_of(s, c);
    set->at = at;
    return 0;
}

struct ahead {
    const struct forecaster *f;
    const struct series *s;
    struct arena *room;
    struct forecast_sample *of; /* [ntarget] */
};

static err keep(void *self, const struct forecast_row *row) {
    struct ahead *a = self;
    return forecast_sample(a->f, a->s, row, a->room, &a->of[row->col]);
}

/* Series of a panel that are shorter than the context are forecast from what is there. */
static void tell_short(const struct forecaster *f, const struct series *s, const struct events *to) {
    i32 n = 0, first = 0;
    for (i32 c = s->ntarget - 1; s->panel && c >= 0; c--)
        if (s->to[c] - s->from[c] < f->spec.context) n++, first = c;
    if (n > 0)
        event_note(to, EVENT_WARNING,
                   "%d of %d series have fewer rows than the %d that the model looks back on (\"%s\" has %lld): "
                   "their forecasts are less certain than their bands say",
                   n, s->ntarget, f->spec.context, s->name[first], (long long)(s->to[first] - s->from[first]));
}

/* Streams the forecasts after the last row to fn: in the order of the series, unless each origin takes a pass of its own. */
static err each_ahead(const struct forecaster *f, const struct series *s, const struct resources *use, forecast_row_fn *fn,
                      void *self) {
    const i64 origin = series_end(s);
    struct window_set set = {.first = origin, .end = origin + 1, .stride = 1};
    struct arena room = {0};
    TRY(check_room(f, s));
    tell_short(f, s, use->events);
    err e = own_origins(s, &room, &set);
    if (e >= 0) e = forecast_windows(f, s, &set, use, fn, self);
    arena_free(&room);
    return e;
}

err forecast_ahead(const struct forecaster *f, const struct series *s, const struct resources *use, struct arena *room,
                   struct forecast_sample **out) {
    struct ahead a = {.f = f, .s = s, .room = room};
    ARENA_NEW(room, a.of, s->ntarget);
    *out = a.of;
    return each_ahead(f, s, use, keep, &a);
}

/* ------------------------------------------------------------------ as a table ---------------------------------------------- */

enum { CLOSE = 64, DIGITS = 8, DIGITS_MOST = 17, COLUMNS = 5 + OPTION_NUMS };

/* Prints the digits of an f32 for the distance from the mean. A column far from zero relative to its deviation (1e9 + 3)
 * needs more digits than an f32 holds. NaN: unknown quantile. */
static struct prediction_cell number(const struct series *s, i32 col, f64 v) {
    const f64 far = fabs(s->mean[col]) / s->dev[col];
    const i32 digits = far <= CLOSE ? 0 : (i32)dmin(DIGITS_MOST, DIGITS + ceil(log10(far)));
    return (struct prediction_cell){.number = v, .digits = digits};
}

static struct prediction_cell word(const char *text) { return (struct prediction_cell){.text = text}; }

/* Columns of times, or of the numbers of rows where the series have no times. */
static struct prediction_column time_column(const struct series *s, const char *name) {
    const enum prediction_key key = s->time ? KEY_TIME : KEY_COUNT;
    return (struct prediction_column){.name = name, .key = key, .zoned = s->freq.zoned, .zone = s->freq.zone};
}
static struct prediction_column step_column(void) { return (struct prediction_column){.name = "step", .key = KEY_COUNT}; }

static struct prediction_cell time_cell(const struct series *s, i64 row, char text[32]) {
    row_label(s, row, text);
    const i64 count = !s->time ? row : series_time(s, row) - (s->freq.zoned ? s->freq.zone : 0);
    return (struct prediction_cell){.text = text, .count = count};
}

static struct prediction_cell step_cell(i32 k, char text[16]) {
    snprintf(text, 16, "%d", k + 1);
    return (struct prediction_cell){.text = text, .count = k + 1};
}

/* The long table: one row for each series and step. A forecast goes to the sink once those of the series before it have, and is
 * kept until then, so memory does not grow with the series. */
struct long_table {
    struct ahead a;
    const struct prediction_sink *to;
    i32 next;         /* series that the sink gets next */
    struct arena one; /* the forecast of that series */
};

static err long_head(const struct long_table *t) {
    const struct series *s = t->a.s;
    struct prediction_column head[COLUMNS] = {{.name = "id"}, time_column(s, "origin"), time_column(s, "time"), step_column(),
                                              {.name = "mean", .value = true}};
    char name[OPTION_NUMS][32];
    const i32 nq = t->a.f->spec.nband;
    for (i32 q = 0; q < nq; q++) {
        snprintf(name[q], sizeof name[q], "q%g", t->a.f->spec.quantiles.v[q]);
        head[5 + q] = (struct prediction_column){.name = name[q], .value = true};
    }
    return t->to->head ? t->to->head(t->to->self, 5 + nq, head) : 0;
}

static err long_rows(const struct long_table *t, i32 c, const struct forecast_sample *of) {
    struct prediction_cell cell[COLUMNS];
    char origin[32], time[32], step[16];
    const struct series *s = t->a.s;
    const i32 nq = t->a.f->spec.nband;
    const i64 end = origin_of(s, c);
    cell[0] = word(s->name[c]), cell[1] = time_cell(s, end - 1, origin);
    for (i32 k = 0; k < t->a.f->spec.horizon; k++) {
        cell[2] = time_cell(s, end + k, time), cell[3] = step_cell(k, step);
        cell[4] = number(s, c, of->mean[k]);
        for (i32 q = 0; q < nq; q++) cell[5 + q] = number(s, c, of->band[k * nq + q]);
        TRY(t->to->row(t->to->self, 5 + nq, cell));
    }
    return 0;
}

static err on_series(void *self, const struct forecast_row *row) {
    struct long_table *t = self;
    struct forecast_sample of;
    const i32 n = t->a.s->ntarget;
    if (row->col != t->next) return keep(&t->a, row);
    TRY(forecast_sample(t->a.f, t->a.s, row, &t->one, &of));
    TRY(long_rows(t, t->next++, &of));
    arena_free(&t->one);
    for (; t->next < n && t->a.of[t->next].mean; t->next++) TRY(long_rows(t, t->next, &t->a.of[t->next]));
    return 0;
}

static err long_table(struct ahead *a, const struct resources *use, const struct prediction_sink *to) {
    struct long_table t = {.a = *a, .to = to};
    ARENA_NEW(a->room, t.a.of, a->s->ntarget);
    TRY(long_head(&t));
    err e = each_ahead(a->f, a->s, use, on_series, &t);
    arena_free(&t.one);
    return e;
}

/* One row for each step, one column for each series. */
static err wide_table(struct ahead *a, const struct resources *use, const struct prediction_sink *to) {
    const struct series *s = a->s;
    const i32 n = 2 + s->ntarget;
    struct prediction_column *head;
    struct prediction_cell *cell;
    char time[32], step[16];
    TRY(forecast_ahead(a->f, s, use, a->room, &a->of));
    ARENA_NEW(a->room, head, n);
    ARENA_NEW(a->room, cell, n);
    head[0] = time_column(s, "time"), head[1] = step_column();
    for (i32 c = 0; c < s->ntarget; c++) head[2 + c] = (struct prediction_column){.name = s->name[c], .value = true};
    if (to->head) TRY(to->head(to->self, n, head));
    for (i32 k = 0; k < a->f->spec.horizon; k++) {
        cell[0] = time_cell(s, series_end(s) + k, time), cell[1] = step_cell(k, step);
        for (i32 c = 0; c < s->ntarget; c++) cell[2 + c] = number(s, c, a->of[c].mean[k]);
        TRY(to->row(to->self, n, cell));
    }
    return 0;
}

/* One row for each series and step, a column for each sample. */
static err sample_rows(const struct ahead *a, const struct prediction_sink *to, struct prediction_cell *cell, f64 *v) {
    const struct series *s = a->s;
    const i32 n = to->samples, h = a->f->spec.horizon;
    char origin[32], time[32], step[16];
    for (i32 c = 0; c < s->ntarget; c++) {
        const i64 end = origin_of(s, c);
        TRY(paths_draw(a->f, forecast_column(s, c), c, a->of[c].band, to->seed, n, v));
        cell[0] = word(s->name[c]), cell[1] = time_cell(s, end - 1, origin);
        for (i32 k = 0; k < h; k++) {
            cell[2] = time_cell(s, end + k, time), cell[3] = step_cell(k, step);
            for (i32 i = 0; i < n; i++) cell[4 + i] = number(s, c, v[(i64)k * n + i]);
            TRY(to->row(to->self, 4 + n, cell));
        }
    }
    return 0;
}

static err sample_table(struct ahead *a, const struct resources *use, const struct prediction_sink *to) {
    const i32 n = to->samples;
    struct prediction_column *head;
    struct prediction_cell *cell;
    char(*name)[24];
    f64 *v;
    TRY(forecast_ahead(a->f, a->s, use, a->room, &a->of));
    ARENA_NEW(a->room, head, 4 + n);
    ARENA_NEW(a->room, cell, 4 + n);
    ARENA_NEW(a->room, name, n);
    ARENA_NEW(a->room, v, (i64)n * a->f->spec.horizon);
    head[0].name = "id", head[1] = time_column(a->s, "origin"), head[2] = time_column(a->s, "time"), head[3] = step_column();
    for (i32 i = 0; i < n; i++) {
        snprintf(name[i], sizeof name[i], "sample.%d", i + 1);
        head[4 + i] = (struct prediction_column){.name = name[i], .value = true};
    }
    if (to->head) TRY(to->head(to->self, 4 + n, head));
    return sample_rows(a, to, cell, v);
}

/* E106 if the model has nothing that samples could be made of. */
static err check_samples(const struct forecaster *f, const struct prediction_sink *to) {
    if (to->samples == 0) return 0;
    if (f->spec.nband < 2)
        return FAIL_AT(E106, NULL, "a model trained with --quantiles 0.1,0.5,0.9 and rows for validation",
                       "--samples follows the quantiles that are forecast, and the model has %d", f->spec.nband);
    if (!forecast_paths(f))
        return FAIL_AT(E106, NULL, "stretto train   (again, with this program)",
                       "--samples needs errors of whole windows, which files of older programs do not hold");
    return 0;
}

err forecast_predict(const struct model *m, const struct dataset *d, const struct resources *use,
                     const struct prediction_sink *to) {
    struct arena room = {0};
    struct ahead a = {.f = forecaster_in(m), .s = series_of(d), .room = &room};
    if (to->wide && ends_apart(a.s))
        return FAIL_AT(E106, NULL, "no --wide-output",
                       "--wide-output has a row for each time, and the series end at different times");
    TRY(check_samples(a.f, to));
    err e = to->samples > 0 ? sample_table(&a, use, to) : to->wide ? wide_table(&a, use, to) : long_table(&a, use, to);
    arena_free(&room);
    return e;
}
