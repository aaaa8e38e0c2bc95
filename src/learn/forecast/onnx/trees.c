/* trees.c - boosted trees as a TreeEnsembleRegressor over their inputs (src/bases/trees).
 *
 *     history, covariates --inputs, each [batch, 1] or [batch, steps]--> [batch * steps, n] --trees--> [batch, steps] + shift
 *
 * An input is rounded to FLOAT where the library rounds it: a comparison with the cut of a node must give the same answer. */
#include <math.h>

#include "bases/base.h"
#include "bases/trees/trees.h"
#include "learn/forecast/onnx/window.h"
#include "learn/onnx/ensemble.h"

struct inputs_graph {
    const struct window_graph *w;
    const struct trees_inputs *in;
    i32 steps;
    val hist;        /* DOUBLE [batch, W + 1]: the history and a missing value */
    val level, last; /* [batch, 1] */
    struct calendar_graph at;
};

static val minus(const struct inputs_graph *p, val a, val b) { return wg_rounded(p->w, wg_2(p->w, "Sub", a, b)); }
static val none(const struct inputs_graph *p) { return wg_f64(p->w, (f64)NAN); }
/* Rows that end `back` rows before the end of v. */
static val rows_back(const struct inputs_graph *p, val v, i32 rows, i32 back) {
    return onnx_slice(p->w->g, v, 1, -(i64)rows - back, back > 0 ? -(i64)back : ONNX_ALL);
}

/* Mean over an axis of what is there; NaN where nothing is. *count: cells that are there. */
static val mean_of(const struct inputs_graph *p, val v, i32 axis, val *count) {
    const struct window_graph *w = p->w;
    const val sum = onnx_sum(w->g, wg_present(w, v, wg_f64(w, 0)), axis);
    *count = onnx_sum(w->g, wg_mask(w, v), axis);
    const val some = wg_2(w, "Greater", *count, wg_f64(w, 0));
    return onnx_where(w->g, some, wg_2(w, "Div", sum, wg_2(w, "Max", *count, wg_f64(w, 1))), none(p));
}

static val mean_back(const struct inputs_graph *p, val v, i32 rows) {
    val count;
    return mean_of(p, rows_back(p, v, rows, 0), 1, &count);
}

static val deviation_back(const struct inputs_graph *p, i32 rows) {
    const struct window_graph *w = p->w;
    val count;
    const val v = rows_back(p, w->hist, rows, 0), d = wg_2(w, "Sub", v, mean_of(p, v, 1, &count));
    const val dev = onnx_1(w->g, "Sqrt", mean_of(p, wg_2(w, "Mul", d, d), 1, &count));
    return wg_rounded(w, onnx_where(w->g, wg_2(w, "Greater", count, wg_f64(w, 1)), dev, none(p)));
}

/* Columns index[steps] of v [batch, n]. */
static val at_steps(const struct inputs_graph *p, val v, const i64 *index, i32 n) {
    return onnx_gather(p->w->g, v, onnx_i64s(p->w->g, n, index), 1);
}

static i64 *index_room(const struct inputs_graph *p, i64 n) {
    i64 *at = arena_array(p->w->arena, n, sizeof *at);
    if (!at) p->w->g->failed = true;
    return at;
}

static i64 phase_back(i32 h, i32 season) { return (i64)(h / season + 1) * season; }

/* The value of the history `add` rows after the phase of each step in the last season, less `seasons` more of these. */
static val phase_value(const struct inputs_graph *p, i32 season, i64 seasons, i32 add) {
    i64 *at = index_room(p, p->steps);
    for (i32 h = 0; at && h < p->steps; h++) {
        const i64 back = h - phase_back(h, season) - seasons * season + add;
        at[h] = back < 0 && p->w->W + back >= 0 ? p->w->W + back : p->w->W; /* the last column is missing */
    }
    return at ? at_steps(p, p->hist, at, p->steps) : 0;
}

static val phase_mean(const struct inputs_graph *p, i32 seasons, i32 season) {
    const struct window_graph *w = p->w;
    val part[8], count;
    for (i32 k = 0; k < seasons; k++) part[k] = onnx_unsqueeze(w->g, phase_value(p, season, k, 0), 2);
    return onnx_squeeze(w->g, mean_of(p, onnx_concat(w->g, 2, seasons, part), 2, &count), 2);
}

/* A column known ahead: [batch, W + ahead]. */
static val known(const struct inputs_graph *p, i32 k) {
    const struct window_graph *w = p->w;
    const val rows = onnx_slice(w->g, onnx_pad(w->g, w->known, 3, 1, w->W, 0, none(p)), 1, -(i64)w->W - w->ahead, ONNX_ALL);
    return wg_covariate(w, rows, k, w->f->schema.npast + k);
}

/* The value `add` rows after each step; missing behind the forecast of the trees. */
static val known_at(const struct inputs_graph *p, val v, i32 add) {
    const struct window_graph *w = p->w;
    const val more = onnx_pad(w->g, v, 2, 1, 0, 1, none(p));
    i64 *at = index_room(p, p->steps);
    for (i32 h = 0; at && h < p->steps; h++) at[h] = h + add < p->in->shape.H ? w->W + h + add : w->W + w->ahead;
    return at ? at_steps(p, more, at, p->steps) : 0;
}

static val known_season(const struct inputs_graph *p, val v, i32 season) {
    i64 *at = index_room(p, p->steps);
    for (i32 h = 0; at && h < p->steps; h++) at[h] = lmax(0, p->w->W + h - phase_back(h, season));
    return at ? minus(p, known_at(p, v, 0), at_steps(p, v, at, p->steps)) : 0;
}

static val known_mean(const struct inputs_graph *p, val v, i32 rows) {
    struct onnx_graph *g = p->w->g;
    i64 *at = index_room(p, (i64)p->steps * rows);
    val count;
    for (i32 h = 0; at && h < p->steps; h++)
        for (i32 i = 0; i < rows; i++) at[(i64)h * rows + i] = p->w->W + h - i;
    if (!at) return 0;
    const val all = onnx_reshape(g, at_steps(p, v, at, p->steps * rows), DIMS(-1, p->steps, rows));
    return wg_rounded(p->w, onnx_squeeze(g, mean_of(p, all, 2, &count), 2));
}

static val past(const struct inputs_graph *p, i32 k) {
    const struct window_graph *w = p->w;
    return wg_covariate(w, wg_last_rows(w, w->past, 3, 0, w->W, none(p)), k, k);
}

/* The category of the last row; NaN = missing. */
static val word(const struct inputs_graph *p, i32 cat) {
    const struct window_graph *w = p->w;
    struct onnx_graph *g = w->g;
    const val code = onnx_squeeze(g, onnx_slice(g, onnx_slice(g, w->category, 1, -1, ONNX_ALL), 2, cat, cat + 1), 2);
    const val low = onnx_2(g, "Less", code, onnx_i64(g, 0)),
              high = onnx_2(g, "GreaterOrEqual", code, onnx_i64(g, w->f->schema.nword[cat]));
    return onnx_where(g, onnx_2(g, "Or", low, high), none(p), onnx_cast(g, code, ONNX_DOUBLE));
}

static val field(const struct inputs_graph *p, val v, f64 add) {
    return wg_2(p->w, "Add", onnx_cast(p->w->g, v, ONNX_DOUBLE), wg_f64(p->w, add));
}

static val steps_of(const struct inputs_graph *p) {
    f64 *h = arena_array(p->w->arena, p->steps, sizeof *h);
    for (i32 k = 0; h && k < p->steps; k++) h[k] = k;
    if (!h) p->w->g->failed = true;
    return h ? onnx_tensor(p->w->g, NULL, ONNX_DOUBLE, 2, (i64[]){1, p->steps}, h) : 0;
}

static val series_number(const struct inputs_graph *p) {
    const struct window_graph *w = p->w;
    if (w->series < 0) return wg_f64(w, 0);
    return onnx_unsqueeze(w->g, onnx_cast(w->g, w->series, ONNX_DOUBLE), 1);
}

static val hours(const struct inputs_graph *p) {
    return wg_rounded(p->w,
                      wg_2(p->w, "Add", field(p, p->at.hour, 0), wg_2(p->w, "Div", field(p, p->at.minute, 0), wg_f64(p->w, 60))));
}

static val one_input(const struct inputs_graph *p, const struct trees_input *q) {
    const struct window_graph *w = p->w;
    switch ((enum trees_kind)q->kind) {
        case IN_LEVEL:
            return p->level;
        case IN_COLUMN:
            return series_number(p);
        case IN_LAG:
            return minus(p, rows_back(p, w->hist, 1, q->a - 1), p->level);
        case IN_MEAN:
            return minus(p, wg_rounded(w, mean_back(p, w->hist, q->a)), p->level);
        case IN_DEV:
            return deviation_back(p, q->a);
        case IN_CHANGE:
            return minus(p, rows_back(p, w->hist, 1, 0), rows_back(p, w->hist, 1, q->a));
        case IN_PAST:
            return rows_back(p, past(p, q->a), 1, 0);
        case IN_PAST_MEAN:
            return wg_rounded(w, mean_back(p, past(p, q->a), q->b));
        case IN_WORD:
            return word(p, q->a);
        case IN_STEP:
            return steps_of(p);
        case IN_SEASON:
            return minus(p, phase_value(p, q->b, q->a, 0), p->level);
        case IN_NEAR:
            return minus(p, phase_value(p, q->b, 0, q->a), p->level);
        case IN_PHASE:
            return minus(p, wg_rounded(w, phase_mean(p, q->a, q->b)), p->level);
        case IN_HOUR:
            return hours(p);
        case IN_WEEKDAY:
            return field(p, p->at.weekday, 0);
        case IN_MONTH:
            return field(p, p->at.month, 1);
        case IN_YEARDAY:
            return field(p, p->at.yearday, 0);
        case IN_KNOWN:
            return known_at(p, known(p, q->a), q->b);
        case IN_KNOWN_ON:
            return minus(p, known_at(p, known(p, q->a), 0), onnx_slice(w->g, known(p, q->a), 1, w->W - 1, w->W));
        case IN_KNOWN_SEASON:
            return known_season(p, known(p, q->a), q->b);
        case IN_KNOWN_MEAN:
            return known_mean(p, known(p, q->a), q->b);
    }
    return p->level;
}

/* All inputs side by side: FLOAT [batch * steps, n]. */
static val table(const struct inputs_graph *p) {
    struct onnx_graph *g = p->w->g;
    val *part = arena_array(p->w->arena, p->in->n, sizeof *part);
    f64 *zero = arena_array(p->w->arena, p->steps, sizeof *zero);
    if (!part || !zero) {
        g->failed = true;
        return 0;
    }
    /* every input has a row and a column for each: zeros [batch, steps] are added to it */
    const val like = wg_2(p->w, "Add", wg_2(p->w, "Mul", p->last, wg_f64(p->w, 0)),
                          onnx_tensor(g, NULL, ONNX_DOUBLE, 2, (i64[]){1, p->steps}, zero));
    for (i32 i = 0; i < p->in->n; i++) part[i] = onnx_unsqueeze(g, wg_2(p->w, "Add", one_input(p, &p->in->list[i]), like), 2);
    return onnx_cast(g, onnx_reshape(g, onnx_concat(g, 2, p->in->n, part), DIMS(-1, p->in->n)), ONNX_FLOAT);
}

static val shift_of(const struct inputs_graph *p) {
    const struct trees_shape *q = &p->in->shape;
    if (q->shift == SHIFT_LEVEL) return p->level;
    if (q->shift == SHIFT_LAST || q->season <= 1) return p->last;
    return wg_present(p->w, phase_value(p, q->season, 0, 0), p->last);
}

/* Nodes of a tree are numbered from its root; the left child follows its parent. */
static err add_tree(struct ensemble *e, const struct trees *t, i32 k) {
    const i32 end = k + 1 < t->ntree ? t->root[k + 1] : t->nnode;
    for (i32 i = t->root[k]; i < end; i++) {
        const struct trees_node *q = &t->node[i];
        const i64 at = i - t->root[k];
        const struct ensemble_branch b = {.tree = k,
                                          .node = at,
                                          .input = q->input,
                                          .yes = at + 1,
                                          .no = at + q->right,
                                          .cut = q->cut,
                                          .missing_left = !q->missing_right};
        if (q->input >= 0)
            TRY(ensemble_branch(e, &b));
        else
            TRY(ensemble_leaf(e, k, at));
        if (q->input < 0) TRY(ensemble_weight(e, k, at, 0, q->cut));
    }
    return 0;
}

static val sums_of(const struct window_graph *w, const struct trees *t, val x) {
    struct ensemble e = {0};
    for (i32 k = 0; k < t->ntree && !w->g->failed; k++)
        if (add_tree(&e, t, k) < 0) w->g->failed = true;
    return ensemble_node(&e, w->g, x, 1, &t->start);
}

val wg_trees(const struct window_graph *w, const struct trees *t) {
    struct onnx_graph *g = w->g;
    const i32 H = w->f->spec.horizon;
    struct inputs_graph p = {.w = w, .in = &t->in, .steps = imin(H, t->in.shape.H)};
    p.hist = onnx_pad(g, w->hist, 2, 1, 0, 1, none(&p));
    p.last = wg_present(w, onnx_slice(g, wg_hold(w, w->hist, w->W, 1), 1, -1, ONNX_ALL), wg_f64(w, 0));
    p.level = wg_present(w, wg_rounded(w, mean_back(&p, w->hist, t->in.level)), p.last);
    if (t->in.shape.calendar) p.at = wg_calendar(w, onnx_slice(g, onnx_slice(g, w->time, 1, -w->ahead, ONNX_ALL), 1, 0, p.steps));
    const val sums = onnx_reshape(g, sums_of(w, t, table(&p)), DIMS(-1, p.steps));
    const val out = wg_rounded(w, wg_2(w, "Add", onnx_cast(g, sums, ONNX_DOUBLE), shift_of(&p)));
    if (p.steps == H) return out;
    const val more = onnx_2(g, "Expand", onnx_slice(g, out, 1, -1, ONNX_ALL), onnx_i64s(g, DIMS(1, H - p.steps)));
    return onnx_concat(g, 1, VALS(out, more));
}
