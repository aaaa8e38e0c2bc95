/* shares.c - see shares.h. */
#include "learn/forecast/shares.h"

#include <math.h>
#include <stdio.h>

enum { CANDIDATES = 21 }; /* 0, 0.05, .. 1 */

static f64 candidate(i32 i) { return (f64)i / (CANDIDATES - 1); }

/* Losses of each candidate on each piece of the horizon, over the windows so far. */
struct search {
    const struct fit *t;
    bool squared;
    i32 pieces;
    f64 loss[SHARES_MOST][CANDIDATES];
    i64 cells[SHARES_MOST];
    struct workload *work;
};

/* e: error of the base; d: distance of the network from it. */
static void add_cell(struct search *f, i32 piece, f64 e, f64 d) {
    for (i32 i = 0; i < CANDIDATES; i++) {
        const f64 r = e - candidate(i) * d;
        f->loss[piece][i] += f->squared ? r * r : fabs(r);
    }
    f->cells[piece]++;
}

static err on_row(void *self, const struct forecast_row *row) {
    struct search *f = self;
    const struct series *s = f->t->series;
    const i32 h = f->t->f->spec.horizon;
    TRY(workload_advance(f->work, 1));
    for (i32 k = 0; k < h && row->seen > 0; k++) {
        const f64 y = (f64)series_target(s, row->col, row->origin + k), div = (f64)row->div;
        if (isnan(y)) continue;
        add_cell(f, (i32)((i64)k * f->pieces / h), (y - (f64)row->base[k]) / div, ((f64)row->both[k] - (f64)row->base[k]) / div);
    }
    return 0;
}

/* The mean loss of a candidate over all pieces, as one piece more: a piece alone has few independent errors. */
static f64 everywhere(const struct search *f, i32 i) {
    f64 sum = 0, cells = 0;
    for (i32 p = 0; p < f->pieces; p++) sum += f->loss[p][i], cells += (f64)f->cells[p];
    return sum / dmax(1, cells);
}

static f64 best_of(const struct search *f, i32 piece) {
    const f64 cells = (f64)f->cells[piece];
    i32 best = -1;
    f64 least = (f64)INFINITY;
    for (i32 i = 0; i < CANDIDATES && cells > 0; i++) {
        const f64 loss = f->loss[piece][i] / cells + everywhere(f, i);
        if (!(loss < least)) continue;
        least = loss;
        best = i;
    }
    return best < 0 ? 0.5 : candidate(best);
}

err shares_find(struct fit *t, i32 members) {
    struct forecaster *f = t->f;
    const i32 all = f->nmember;
    struct workload work = workload_start("weighing the recurrent part", t->job->use.events, forecast_stop(t));
    struct search found = {.t = t, .squared = forecast_squares(&f->spec), .work = &work,
                           .pieces = imin(SHARES_MOST, f->shape.nout > 1 ? f->shape.nout : 1)};
    work.all = (f64)(window_origins(&t->set.valid) * t->series->ntarget);
    f->shares.n = 0; /* the network's own forecast, in full */
    f->nmember = members;
    const err e = forecast_rows_of(f, t->series, &t->set.valid, &t->job->use, on_row, &found);
    f->nmember = all;
    workload_end(&work);
    TRY(e);
    f->shares.n = found.pieces;
    for (i32 p = 0; p < found.pieces; p++) f->shares.of[p] = best_of(&found, p);
    return 0;
}

const char *shares_text(const struct shares *s, char out[SHARES_TEXT]) {
    i32 at = 0;
    out[0] = 0;
    for (i32 i = 0; i < s->n; i++) at += snprintf(out + at, (size_t)(SHARES_TEXT - at), "%s%.2f", i ? ", " : "", s->of[i]);
    return out;
}

struct js *shares_json(const struct shares *s) {
    struct js *list = js_array();
    for (i32 i = 0; i < s->n; i++) js_push(list, js_new_f64(s->of[i]));
    return list;
}

void shares_read(const struct js *list, struct shares *out) {
    out->n = (i32)lmin(SHARES_MOST, js_len(list));
    for (i32 i = 0; i < out->n; i++) out->of[i] = js_f64(js_at(list, i), (f64)NAN);
}

bool shares_sound(const struct shares *s) {
    bool good = s->n >= 0 && s->n <= SHARES_MOST;
    for (i32 i = 0; good && i < s->n; i++) good = s->of[i] >= 0 && s->of[i] <= 1;
    return good;
}
