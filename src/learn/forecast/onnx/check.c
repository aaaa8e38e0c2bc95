/* check.c - the graph beside the model: the same windows through ONNX Runtime and through forecast_rows_of.
 *
 *     windows of the data --own forecast--> mean, bands          largest |difference| / deviation of the column
 *             '--inputs in original units--> ONNX Runtime --> mean, quantiles */
#include <math.h>
#include <string.h>

#include "learn/forecast/ops.h"
#include "data/time.h"
#include "learn/series_set.h"
#include "onnx/ort.h"

enum { WINDOWS = 256, ORIGINS = 32, INPUTS = 6 };

/* One window, and what the model forecasts from it. */
struct own {
    i64 origin;
    i32 col;
    f64 *mean, *band; /* original units: [horizon], [horizon][nband] or NULL */
};

struct compare {
    const struct forecaster *f;
    const struct series *s;
    i32 rows, ahead; /* of the inputs */
    i32 n;
    struct own *of; /* [WINDOWS] */
    struct arena room;
};

/* Cells that were interpolated reach a graph as observed values, so windows with such cells say nothing. */
static bool whole(const struct compare *c, i64 origin, i32 col) {
    for (i64 i = lmax(0, origin - c->rows); c->s->filled && i < origin; i++)
        if (series_filled(c->s, col, i)) return false;
    return true;
}

static err keep(void *self, const struct forecast_row *row) {
    struct compare *c = self;
    struct forecast_sample sample;
    if (c->n == WINDOWS || row->seen == 0 || !whole(c, row->origin, row->col) || forecast_column(c->s, row->col) < 0) return 0;
    TRY(forecast_sample(c->f, c->s, row, &c->room, &sample));
    c->of[c->n++] = (struct own){row->origin, row->col, sample.mean, sample.band};
    return 0;
}

/* Origins from the whole file, the last one behind its last target. A pass that carries a state has one origin. */
static err own_forecasts(struct compare *c, const struct resources *use) {
    const i64 end = series_end(c->s), first = lmin(end, c->f->spec.context), n = end - first + 1;
    const i64 most = lmax(1, lmin(ORIGINS, WINDOWS / lmax(1, c->s->ntarget))), stride = lmax(1, n / most);
    const bool apart = c->f->spec.decoder->every_step;
    for (i64 at = end; at >= first && at > 0 && c->n < WINDOWS; at -= stride) {
        const struct window_set set = {.first = at, .end = at + 1, .stride = 1};
        if (apart || at == end) TRY(forecast_rows_of(c->f, c->s, &set, use, keep, c));
        if (!apart) break;
    }
    if (apart || end - stride < first) return 0;
    const i64 from = end - (end - first) / stride * stride;
    const struct window_set set = {.first = from, .end = end, .stride = stride};
    return forecast_rows_of(c->f, c->s, &set, use, keep, c);
}

/* ------------------------------------------------------------------ inputs -------------------------------------------------- */

static f64 cell(const struct series *s, i32 col, i64 row) {
    return row < 0 || row >= s->nrow || isnan(series_col(s, col)[row]) ? (f64)NAN : series_raw(s, col, row);
}

static err new_input(struct compare *c, const char *name, enum onnx_type type, i32 rows, i32 cols, struct ort_tensor *t) {
    *t = (struct ort_tensor){.name = name, .type = type, .ndim = rows == 0 ? 1 : cols > 0 ? 3 : 2, .dim = {c->n, rows, cols}};
    t->data = arena_array(&c->room, (i64)c->n * imax(1, rows) * imax(1, cols), sizeof(f64));
    return t->data ? 0 : -E601;
}

/* Values of n columns of each window; covariate k of column col is at `first`. */
static void fill_values(const struct compare *c, struct ort_tensor *t, bool target, i32 first) {
    f64 *to = t->data;
    const i64 rows = t->dim[1], n = target ? 1 : t->dim[2];
    for (i32 w = 0; w < c->n; w++)
        for (i64 i = 0; i < rows; i++)
            for (i32 k = 0; k < n; k++) {
                const i32 col = target ? c->of[w].col : series_past_of(c->s, first + k, c->of[w].col);
                *to++ = cell(c->s, col, c->of[w].origin - c->rows + i);
            }
}

static void fill_times(const struct compare *c, struct ort_tensor *t) {
    i64 *to = t->data;
    for (i32 w = 0; w < c->n; w++)
        for (i64 i = 0; i < t->dim[1]; i++) *to++ = series_time(c->s, lmax(0, c->of[w].origin - c->rows + i));
}

static void fill_words(const struct compare *c, struct ort_tensor *t) {
    i64 *to = t->data;
    for (i32 w = 0; w < c->n; w++)
        for (i64 i = 0; i < t->dim[1]; i++)
            for (i32 k = 0; k < t->dim[2]; k++) {
                const i64 row = c->of[w].origin - c->rows + i;
                *to++ = row < 0 ? -1 : series_code(c->s, k, c->of[w].col, row);
            }
}

static err inputs(struct compare *c, i32 *n, struct ort_tensor *in) {
    const struct schema *m = &c->f->schema;
    const struct forecaster *f = c->f;
    const i32 both = c->rows + c->ahead;
    *n = 0;
    TRY(new_input(c, "target", ONNX_DOUBLE, c->rows, 0, &in[*n]));
    fill_values(c, &in[(*n)++], true, 0);
    if (m->ntarget > 1) {
        TRY(new_input(c, "series", ONNX_INT64, 0, 0, &in[*n]));
        for (i32 w = 0; w < c->n; w++) ((i64 *)in[*n].data)[w] = forecast_column(c->s, c->of[w].col);
        (*n)++;
    }
    if (m->npast > 0) {
        TRY(new_input(c, "past", ONNX_DOUBLE, c->rows, m->npast, &in[*n]));
        fill_values(c, &in[(*n)++], false, 0);
    }
    if (m->nknown > 0) {
        TRY(new_input(c, "known", ONNX_DOUBLE, both, m->nknown, &in[*n]));
        fill_values(c, &in[(*n)++], false, m->npast);
    }
    if (forecast_reads_time(f)) {
        TRY(new_input(c, "time", ONNX_INT64, both, 0, &in[*n]));
        fill_times(c, &in[(*n)++]);
    }
    if (m->ncat > 0) {
        TRY(new_input(c, "category", ONNX_INT64, c->rows, m->ncat, &in[*n]));
        fill_words(c, &in[(*n)++]);
    }
    return 0;
}

/* ------------------------------------------------------------------ the comparison ------------------------------------------ */

static void look(f64 own, f64 graph, f64 unit, struct graph_gap *out) {
    graph_gap_add(out, isnan(own) && isnan(graph) ? 0 : fabs(own - graph) / unit);
}

static void compare(const struct compare *c, const f64 *mean, const f64 *band, struct graph_gap *out) {
    const i64 h = c->f->spec.horizon, nq = c->f->spec.nband;
    for (i64 w = 0; w < c->n; w++) {
        const f64 unit = c->s->dev[c->of[w].col];
        for (i64 k = 0; k < h; k++) look(c->of[w].mean[k], mean[w * h + k], unit, out);
        for (i64 k = 0; k < h * nq && band; k++) look(c->of[w].band[k], band[w * h * nq + k], unit, out);
    }
}

static err run(struct compare *c, struct ort *run, bool quantiles, struct graph_gap *out) {
    struct ort_tensor in[INPUTS], result[2] = {{.name = "mean", .type = ONNX_DOUBLE}, {.name = "quantiles", .type = ONNX_DOUBLE}};
    i32 nin;
    TRY(inputs(c, &nin, in));
    TRY(ort_run(run, nin, in, quantiles ? 2 : 1, result));
    const i64 cells = (i64)c->n * c->f->spec.horizon;
    TRY(ort_need(&result[0], cells));
    if (quantiles) TRY(ort_need(&result[1], cells * c->f->spec.nband));
    compare(c, result[0].data, quantiles ? result[1].data : NULL, out);
    out->windows = c->n;
    return 0;
}

err forecast_graph_check(const struct model *m, const struct dataset *d, const struct resources *use, struct ort *o,
                         const struct graph_wishes *wish, struct graph_gap *out) {
    const struct forecaster *f = forecaster_in(m);
    struct compare c = {.f = f, .s = series_of(d)};
    *out = (struct graph_gap){0};
    c.ahead = forecast_graph_ahead(f);
    c.rows = (i32)lmax(1, lmin(forecast_graph_rows(f), series_end(c.s)));
    err e = mem_new((void **)&c.of, WINDOWS, sizeof *c.of);
    if (e >= 0) e = own_forecasts(&c, use);
    if (e >= 0 && c.n > 0) e = run(&c, o, f->spec.nband > 0 && !wish->mean_only, out);
    mem_free(c.of);
    arena_free(&c.room);
    return e;
}
