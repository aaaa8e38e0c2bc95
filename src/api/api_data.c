/* api_data.c - data handles: files and memory become a series. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "data/sample.h"
#include "data/series_build.h"

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
    r.more_na = o->na;
    r.time = o->time;
    r.time_format = strcmp(o->time_format, "auto") == 0 ? NULL : o->time_format;
    r.cat = o->cat;
    r.ignore = o->ignore;
    struct machine *m = mem_alloc(sizeof *m);
    r.threads = opt_is_auto(o, OPT_threads) ? (m && machine_host(0, m) >= 0 ? m->ncore : 1) : (i32)o->threads;
    mem_free(m);
    return r;
}

struct series_options series_options_of(const struct options *o) {
    return (struct series_options){.target = o->target, .past = o->past, .known = o->known, .cat = o->cat, .ignore = o->ignore,
                                   .time = o->time, .time_format = strcmp(o->time_format, "auto") == 0 ? NULL : o->time_format,
                                   .freq = o->freq, .gaps = o->gaps, .dups = o->dups, .since = o->since, .until = o->until};
}

/* Cells of other columns that are empty, where a network is given their mean; behind the last target only what is known ahead has
 * any. */
static i64 empty_inputs(const struct series *s) {
    const i64 end = series_end(s);
    i64 n = 0;
    for (i32 c = s->ntarget; c < s->ncol; c++)
        for (i64 i = 0; i < (c < s->ntarget + s->npast ? end : s->nrow); i++)
            n += isnan(series_col(s, c)[i]) && !(s->line && s->line[i] < 0);
    return n;
}

/* Cells of targets that were not observed, in rows that are there. */
static void unseen_cells(const struct series *s, i64 *masked, i64 *filled) {
    const i64 end = series_end(s);
    *masked = *filled = 0;
    for (i32 c = 0; c < s->ntarget; c++)
        for (i64 i = 0; i < end; i++) {
            if (s->line && s->line[i] < 0) continue;
            *masked += isnan(series_col(s, c)[i]);
            *filled += series_filled(s, c, i);
        }
}

static void summary(stretto_data *d) {
    const struct series *s = d->s;
    char first[32], last[32];
    row_label(s, 0, first);
    row_label(s, s->nrow - 1, last);
    const char *slash = strrchr(d->path, '/');
    i64 absent = 0, empty = empty_inputs(s), masked, filled;
    unseen_cells(s, &masked, &filled);
    for (i64 i = 0; s->line && i < s->nrow; i++) absent += s->line[i] < 0;
    i32 n = snprintf(d->summary, sizeof d->summary, "read %s: %d target%s of %d column%s, %lld rows",
                     slash ? slash + 1 : d->path, s->ntarget, s->ntarget > 1 ? "s" : "", s->ncol + s->ncat,
                     s->ncol + s->ncat > 1 ? "s" : "", (long long)s->nrow);
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
        n += snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", %lld rows merged by --dups", (long long)s->merged);
    if (n < (i32)sizeof d->summary && s->time && absent + masked + filled + empty == 0)
        snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", no gaps");
}

err data_of_series(struct series *s, const char *path, stretto_data **out) {
    stretto_data *d = mem_alloc(sizeof *d);
    if (!d || !(d->path = mem_strdup(path))) {
        series_free(s);
        mem_free(d);
        return -E601;
    }
    d->s = s;
    summary(d);
    *out = d;
    return 0;
}

err data_scale(stretto_data *d, i64 rows) {
    if (d->scaled && d->scale_rows == rows) return 0;
    d->scaled = true;
    d->scale_rows = rows;
    return series_scale(d->s, rows);
}

/* What the reader found in numbers. */
static err keep_marks(stretto_data *d, const struct table *t) {
    const size_t n = strlen(d->summary);
    if (t->grouped)
        snprintf(d->summary + n, sizeof d->summary - n, ", %lld number%s with thousands separators", (long long)t->grouped,
                 t->grouped == 1 ? "" : "s");
    d->decimal = t->grouped ? t->decimal : 0;
    if (t->doubt && (!(d->doubt = mem_strdup(t->doubt)) || !(d->doubt_fix = mem_strdup(t->doubt_fix)))) return -E601;
    return 0;
}

err data_read(const struct options *o, bool of_model, const char *path, stretto_data **out) {
    struct read_options r = read_options_of(o);
    struct series_options so = series_options_of(o);
    so.of_model = of_model;
    struct table *t = NULL;
    struct series *s = NULL;
    *out = NULL;
    TRY(opt_check(o));
    mem_set_limit(o->memory);
    err e = table_read(path, &r, &t);
    if (e >= 0) e = series_build(t, &so, &s);
    if (e >= 0) e = data_of_series(s, path, out);
    if (e >= 0) e = keep_marks(*out, t);
    if (e < 0) {
        stretto_data_free(*out);
        *out = NULL;
    }
    table_free(t);
    return e;
}

stretto_err stretto_data_open(stretto_config *config, const char *path, stretto_data **out) {
    return data_read(&config->o, false, path, out);
}

stretto_err stretto_data_wrap(stretto_config *config, const double *values, int64_t nrow, int ncol, const char *const *names,
                              int64_t first_time, int64_t step_seconds, stretto_data **out) {
    struct series_options so = series_options_of(&config->o);
    struct series *s = NULL;
    *out = NULL;
    if (!so.target || !*so.target) so.target = "all";
    TRY(series_wrap(values, nrow, ncol, names, first_time, step_seconds, &so, &s));
    return data_of_series(s, "memory", out);
}

void stretto_data_free(stretto_data *self) {
    if (!self) return;
    series_free(self->s);
    mem_free(self->path);
    mem_free(self->doubt);
    mem_free(self->doubt_fix);
    mem_free(self);
}

int64_t stretto_data_rows(const stretto_data *self) { return self->s->nrow; }
int stretto_data_columns(const stretto_data *self) { return self->s->ncol; }
int stretto_data_targets(const stretto_data *self) { return self->s->ntarget; }
const char *stretto_data_summary(stretto_data *self) { return self->summary; }

const char *stretto_data_column(const stretto_data *self, int i) { return i >= 0 && i < self->s->ncol ? self->s->name[i] : NULL; }

double stretto_data_value(const stretto_data *self, int column, int64_t row) {
    const struct series *s = self->s;
    return column >= 0 && column < s->ncol && row >= 0 && row < s->nrow ? series_raw(s, column, row) : (f64)NAN;
}

stretto_err stretto_cache(stretto_config *config, const char *path, const char *out_path) {
    struct read_options r = read_options_of(&config->o);
    struct table *t = NULL;
    err e = table_read(path, &r, &t);
    if (e >= 0) e = table_write_cache(t, out_path);
    table_free(t);
    return e;
}

stretto_err stretto_sample(const char *name, int64_t rows, uint64_t seed, char **csv_out) {
    struct str text = {0};
    err e = sample_write(name, rows, seed, &text);
    return text_end(e, &text, csv_out);
}

const char *stretto_samples(void) { return sample_list(); }
