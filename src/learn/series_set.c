/* series_set.c - reads a table as a series and describes what was read. */
#include "learn/series_set.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/input.h"
#include "base/mem.h"
#include "data/share.h"
#include "data/time.h"
#include "report/report.h"

/* ------------------------------------------------------------------ from options -------------------------------------------- */

static char one_char(const char *word, char comma, char semicolon) {
    if (strcmp(word, "comma") == 0) return comma;
    if (strcmp(word, "semicolon") == 0) return semicolon;
    if (strcmp(word, "tab") == 0) return '\t';
    if (strcmp(word, "pipe") == 0) return '|';
    if (strcmp(word, "point") == 0) return '.';
    return 0;
}

struct read_options read_options_of(const struct options *o) {
    struct read_options r = READ_OPTIONS_DEFAULT;
    r.sep = one_char(o->sep, ',', ';');
    r.decimal = one_char(o->decimal, ',', 0);
    r.header = strcmp(o->header, "auto") == 0 ? -1 : strcmp(o->header, "yes") == 0;
    r.rows = strcmp(o->orient, "rows") == 0;
    r.more_na = o->na;
    r.time = o->time;
    r.time_format = strcmp(o->time_format, "auto") == 0 ? NULL : o->time_format;
    r.id = o->id;
    r.cat = o->cat;
    r.ignore = o->ignore;
    const struct learner *l = learner_find(o->task);
    r.numbers = l && l->numbers;
    struct machine *m = mem_alloc(sizeof *m);
    r.threads = opt_is_auto(o, OPT_threads) ? (m && machine_host(0, m) >= 0 ? m->ncore : 1) : (i32)o->threads;
    mem_free(m);
    return r;
}

struct series_options series_options_of(const struct options *o) {
    return (struct series_options){.id = o->id,
                                   .target = o->target,
                                   .past = o->past,
                                   .known = o->known,
                                   .cat = o->cat,
                                   .ignore = o->ignore,
                                   .time = o->time,
                                   .time_format = strcmp(o->time_format, "auto") == 0 ? NULL : o->time_format,
                                   .columns = strcmp(o->orient, "columns") == 0,
                                   .freq = o->freq,
                                   .season = o->season,
                                   .fixed = o->static_,
                                   .least_rows = opt_is_auto(o, OPT_least_rows) ? -1 : (i32)o->least_rows,
                                   .gaps = o->gaps,
                                   .dups = o->dups,
                                   .resample = o->resample,
                                   .time_delta = o->time_delta,
                                   .since = o->since,
                                   .until = o->until};
}

/* The rows of column c in which a cell may be missing: after the last target only columns known ahead have values; the series of
 * a panel have rows of their own. */
static void rows_of_column(const struct series *s, i32 c, i64 *from, i64 *to) {
    const bool ahead = c >= series_first_ahead(s);
    *from = s->panel ? s->from[c % s->ntarget] : 0;
    *to = ahead ? s->nrow : s->panel ? s->to[c % s->ntarget] : series_end(s);
    while (s->panel && ahead && *to > *from && isnan(series_col(s, c)[*to - 1])) --*to;
}

/* Counts empty cells of input columns, which the network reads as their mean. */
static i64 empty_inputs(const struct series *s) {
    i64 n = 0, from, to;
    for (i32 c = s->ntarget; c < s->ncol; c++) {
        rows_of_column(s, c, &from, &to);
        for (i64 i = from; i < to; i++) {
            const bool absent = s->panel && isnan(series_col(s, c % s->ntarget)[i]); /* a row that the series lacks */
            n += isnan(series_col(s, c)[i]) && !(s->line && s->line[i] < 0) && !absent;
        }
    }
    return n;
}

/* Counts cells of targets that are missing in existing rows. */
static void unseen_cells(const struct series *s, i64 *masked, i64 *filled) {
    i64 from, to;
    *masked = *filled = 0;
    for (i32 c = 0; c < s->ntarget; c++) {
        rows_of_column(s, c, &from, &to);
        for (i64 i = from; i < to; i++) {
            *masked += isnan(series_col(s, c)[i]) && !(s->line && s->line[i] < 0);
            *filled += series_filled(s, c, i);
        }
    }
}

/* "8 series of 996 to 1000 rows, 3 covariates" */
static i32 panel_text(const struct series *s, char *out, size_t size) {
    const i32 more = s->npast + s->nknown + s->ncat;
    i64 least = INT64_MAX, most = 0;
    char covariates[40] = "";
    for (i32 c = 0; c < s->ntarget; c++) {
        least = lmin(least, s->to[c] - s->from[c]);
        most = lmax(most, s->to[c] - s->from[c]);
    }
    if (more > 0) snprintf(covariates, sizeof covariates, ", %d covariate%s", more, more > 1 ? "s" : "");
    if (least == most) return snprintf(out, size, "%d series of %lld rows%s", s->ntarget, (long long)most, covariates);
    return snprintf(out, size, "%d series of %lld to %lld rows%s", s->ntarget, (long long)lmax(0, least), (long long)most,
                    covariates);
}

static void summarise(struct series_set *set) {
    struct dataset *d = &set->set;
    const struct series *s = set->s;
    char first[32], last[32];
    row_label(s, 0, first);
    row_label(s, s->nrow - 1, last);
    const char *slash = strrchr(d->path, '/');
    i64 absent = 0, empty = empty_inputs(s), masked, filled;
    unseen_cells(s, &masked, &filled);
    for (i64 i = 0; s->line && !s->panel && i < s->nrow; i++) absent += s->line[i] < 0;
    i32 n = snprintf(d->summary, sizeof d->summary, "read %s: ", slash ? slash + 1 : d->path);
    n += s->panel ? panel_text(s, d->summary + n, sizeof d->summary - (size_t)n)
                  : snprintf(d->summary + n, sizeof d->summary - (size_t)n, "%d target%s of %d column%s, %lld rows", s->ntarget,
                             s->ntarget > 1 ? "s" : "", s->ncol + s->ncat, s->ncol + s->ncat > 1 ? "s" : "", (long long)s->nrow);
    if (s->time && n < (i32)sizeof d->summary)
        n += snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", %s %s..%s", s->freq.name, first, last);
    if (n < (i32)sizeof d->summary && absent)
        n += snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", %lld rows inserted by --gaps", (long long)absent);
    if (n < (i32)sizeof d->summary && masked)
        n += snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", %lld missing cells excluded", (long long)masked);
    if (n < (i32)sizeof d->summary && filled)
        n += snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", %lld cells filled in by --gaps interpolate",
                      (long long)filled);
    if (n < (i32)sizeof d->summary && empty)
        n += snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", %lld empty input cells replaced by the column mean",
                      (long long)empty);
    if (n < (i32)sizeof d->summary && s->merged)
        n += snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", %lld rows merged by --%s", (long long)s->merged,
                      s->resampled ? "resample" : "dups");
    if (n < (i32)sizeof d->summary && s->time && absent + masked + filled + empty == 0)
        snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", no gaps");
}

err series_set_make(struct series *s, const char *path, struct series_set **out) {
    err e = dataset_new(&data_series, path, sizeof **out, out);
    if (e < 0) {
        series_free(s);
        return e;
    }
    struct series_set *d = *out;
    d->s = s;
    d->set.nrow = s->nrow;
    d->set.ncol = s->ncol;
    d->set.ntarget = s->ntarget;
    summarise(d);
    return 0;
}

/* What the reader found in numbers. */
static err keep_marks(struct series_set *d, const struct table *t) {
    const size_t n = strlen(d->set.summary);
    if (t->grouped)
        snprintf(d->set.summary + n, sizeof d->set.summary - n, ", %lld number%s with thousands separators",
                 (long long)t->grouped, t->grouped == 1 ? "" : "s");
    d->decimal = t->grouped ? t->decimal : 0;
    if (!t->doubt) return 0;
    TRY(arena_keep(&d->s->names, &d->doubt, t->doubt));
    return arena_keep(&d->s->names, &d->doubt_fix, t->doubt_fix);
}

err series_set_read(const struct options *o, bool of_model, const char *path, struct dataset **out) {
    struct read_options r = read_options_of(o);
    struct series_options so = series_options_of(o);
    so.of_model = of_model;
    r.guess_time = of_model;
    struct table *t = NULL;
    struct series *s = NULL;
    struct series_set *d = NULL;
    *out = NULL;
    err e = table_read(path, &r, &t);
    if (e >= 0) e = series_build(t, &so, &s);
    if (e >= 0) e = series_set_make(s, path, &d);
    if (e >= 0) e = keep_marks(d, t);
    table_free(t);
    if (e < 0 && d) dataset_free(&d->set);
    if (e >= 0) *out = &d->set;
    return e;
}

err series_set_scale(struct series_set *d, i64 rows) {
    if (d->scaled && d->scale_rows == rows) return 0;
    d->scaled = true;
    d->scale_rows = rows;
    return series_scale(d->s, rows);
}

err series_set_marks(const struct series_set *d, struct options *o, const struct events *to) {
    if (d->doubt) event_note(to, EVENT_WARNING, "%s: %s", d->doubt, d->doubt_fix);
    if (d->s->doubt) event_note(to, EVENT_WARNING, "%s: %s", d->s->doubt, d->s->doubt_fix);
    if (!d->decimal) return 0;
    return opt_resolve(o, OPT_decimal, d->decimal == ',' ? "comma" : "point", "the file has marks between thousands");
}

/* ------------------------------------------------------------------ the kind ------------------------------------------------ */

static err read_file(const struct options *o, const char *path, struct dataset **out) {
    return series_set_read(o, false, path, out);
}

static err wrap(const struct options *o, const struct memory_columns *m, struct dataset **out) {
    struct series_options so = series_options_of(o);
    struct series *s = NULL;
    struct series_set *d = NULL;
    if (!so.target || !*so.target) so.target = "all";
    TRY(series_wrap(m->value, m->nrow, m->ncol, m->name, m->first_time, m->step_seconds, &so, &s));
    TRY(series_set_make(s, INPUT_MEMORY, &d));
    *out = &d->set;
    return 0;
}

/* The options have made the series what it is. */
static err share(const struct options *o __attribute__((unused)), const char *path, struct share *x, struct dataset **d) {
    struct series_set *set = x->gives ? series_set_of(*d) : NULL;
    if (!x->gives) {
        TRY(dataset_new(&data_series, path, sizeof *set, &set));
        *d = &set->set;
        NEW(set->s, 1);
    }
    series_share(x, set->s);
    share_text(x, &set->s->names, &set->doubt);
    share_text(x, &set->s->names, &set->doubt_fix);
    share_bytes(x, &set->decimal, 1);
    share_bytes(x, set->set.summary, sizeof set->set.summary);
    set->set.nrow = set->s->nrow;
    set->set.ncol = set->s->ncol;
    set->set.ntarget = set->s->ntarget;
    return x->e;
}

static err before(const struct dataset *d, i64 rows, u64 seed, struct dataset **out) {
    struct series *s = NULL;
    struct series_set *set = NULL;
    (void)seed; /* rows have an order of time */
    TRY(series_before(series_of(d), rows, &s));
    TRY(series_set_make(s, d->path, &set));
    *out = &set->set;
    return 0;
}

static void free_set(struct dataset *d) {
    struct series_set *set = series_set_of(d);
    series_free(set->s);
    mem_free(set);
}

static u64 words_hash(u64 h, const struct series *s) {
    for (i32 k = 0; k < s->ncat; k++) {
        h = comm_hash(h, s->code[k], sizeof **s->code * (size_t)s->nrow);
        for (i32 w = 0; w < s->nword[k]; w++) h = comm_hash(h, s->word[k][w], strlen(s->word[k][w]) + 1);
    }
    return h;
}

static u64 hash(const struct dataset *d) {
    const struct series *s = series_of(d);
    u64 h = comm_hash(comm_hash(COMM_HASH, &s->nrow, sizeof s->nrow), &s->ncol, sizeof s->ncol);
    for (i32 c = 0; c < s->ncol; c++) h = comm_hash(h, series_col(s, c), sizeof(f32) * (size_t)s->nrow);
    if (s->time) h = comm_hash(h, s->time, sizeof *s->time * (size_t)s->nrow);
    return words_hash(h, s);
}

/* Hashes cover the values as read, before scaling. */
static err need_unscaled(const struct dataset *d) {
    if (!series_set_of(d)->scaled) return 0;
    return FAIL_AT(E106, NULL, "the data opened, or wrapped, once more", "an earlier training has scaled the data");
}

static err print(const struct dataset *d, const struct split *p, struct js **out) {
    struct fingerprint f;
    TRY(need_unscaled(d));
    TRY(fingerprint_make(series_of(d), p, &f));
    *out = fingerprint_json(&f);
    fingerprint_free(&f);
    return *out ? 0 : -E601;
}

static err compare(const struct dataset *d, const struct js *print, struct data_change *out) {
    struct fingerprint was;
    TRY(need_unscaled(d));
    TRY(fingerprint_read(print, &was));
    const err e = fingerprint_compare(&was, series_of(d), out);
    fingerprint_free(&was);
    return e;
}

/* The first line of one series in rows [from, to); 0 = it has none. */
static err find_line(const struct options *o, const char *path, const struct data_change *c, i32 nseries, i64 *line) {
    struct read_options r = read_options_of(o);
    struct series_options so = series_options_of(o);
    struct table *t = NULL;
    struct series *s = NULL;
    so.lines_of = 1 + c->column % nseries;
    err e = table_read(path, &r, &t);
    if (e >= 0) e = series_build(t, &so, &s);
    for (i64 i = c->from; e >= 0 && i < lmin(c->to, s->nrow) && *line <= 0; i++) *line = s->line[i];
    table_free(t);
    series_free(s);
    return e;
}

/* Of a panel, whose rows are lines of every series. */
static void place(const struct options *o, const struct dataset *d, struct data_change *c) {
    const struct series *s = series_of(d);
    const struct err_record before = *err_last();
    i64 line = 0;
    if (!s->panel || c->line > 0 || c->column < 0 || d->piped || d->in_memory) return;
    if (find_line(o, d->path, c, s->ntarget, &line) < 0) err_put(&before);
    if (line <= 0) return;
    c->file = fingerprint_file(s, &line);
    c->line = line;
}

static const char *column(const struct dataset *d, i32 i) { return series_of(d)->name[i]; }
static f64 value(const struct dataset *d, i32 c, i64 row) { return series_raw(series_of(d), c, row); }
static void label(const struct dataset *d, i64 row, char out[32]) { row_label(series_of(d), row, out); }

static i32 facts(const struct dataset *d, struct report_fact *fact, struct arena *a) {
    const struct series *s = series_of(d);
    fact[0] = (struct report_fact){"frequency", s->freq.name};
    const i32 season = s->freq.season, second = s->freq.season2;
    fact[1] = (struct report_fact){"season", second > 1 ? arena_printf(a, "%d and %d rows", season, second)
                                                        : arena_printf(a, "%d rows", season)};
    return 2;
}

const struct data_kind data_series = {
    .name = "series",
    .read = read_file,
    .wrap = wrap,
    .share = share,
    .before = before,
    .free = free_set,
    .hash = hash,
    .print = print,
    .compare = compare,
    .place = place,
    .column = column,
    .value = value,
    .label = label,
    .facts = facts,
};
