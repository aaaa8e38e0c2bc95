/* score.c - predictions as a table, and scores beside the majority class or the mean; see forest.h. */
#include <math.h>
#include <string.h>

#include "learn/forest/forest.h"

enum { CHUNK_ROWS = 1 << 16 };

/* ------------------------------------------------------------------ predictions -------------------------------------------- */

static err heading(const struct forest *f, const struct prediction_sink *to, struct arena *a, struct prediction_cell **cell) {
    struct prediction_column *column;
    ARENA_NEW(a, column, f->nclass + 1);
    ARENA_NEW(a, *cell, f->nclass + 1);
    column[0] = (struct prediction_column){.name = f->nclass > 0 ? "class" : "value", .value = true};
    for (i32 k = 0; k < f->nclass; k++) {
        const struct prediction_column one = {.name = arena_printf(a, "p_%s", f->class[k]), .value = true};
        column[k + 1] = one;
    }
    return to->head ? to->head(to->self, f->nclass + 1, column) : 0;
}

static err rows(const struct forest *f, const struct table_set *s, struct pool *pool, const struct prediction_sink *to,
                struct arena *a) {
    const i32 C = imax(1, f->nclass);
    struct prediction_cell *cell;
    f64 *vote;
    ARENA_NEW(a, vote, lmin(CHUNK_ROWS, s->t->nrow) * C);
    TRY(heading(f, to, a, &cell));
    for (i64 from = 0; from < s->t->nrow; from += CHUNK_ROWS) {
        const i64 n = lmin(CHUNK_ROWS, s->t->nrow - from);
        TRY(forest_predict(f, s, from, from + n, pool, vote));
        for (i64 i = 0; i < n; i++) {
            const f64 *v = vote + i * C;
            cell[0] = f->nclass > 0 ? (struct prediction_cell){.text = f->class[vote_argmax(v, C)]}
                                    : (struct prediction_cell){.number = *v};
            for (i32 k = 0; k < f->nclass; k++) cell[k + 1] = (struct prediction_cell){.number = v[k], .digits = 6};
            TRY(to->row(to->self, f->nclass + 1, cell));
        }
    }
    return 0;
}

err forest_predict_rows(const struct model *m, const struct dataset *d, const struct resources *use,
                        const struct prediction_sink *to) {
    struct arena a = {0};
    const err e = rows(forest_of(m), table_set_of(d), use->pool, to, &a);
    arena_free(&a);
    return e;
}

/* ------------------------------------------------------------------ sums ---------------------------------------------------- */

static void add_class(const struct forest *f, const f64 *vote, u32 truth, struct forest_score *s, i64 *confusion) {
    const i32 said = vote_argmax(vote, f->nclass);
    s->rows++;
    s->error += (u32)said != truth;
    s->naive += truth != (u32)f->common;
    if (truth < (u32)f->nclass) confusion[(i64)truth * f->nclass + said]++;
}

static err sum_rows(const struct forest *f, const struct table_set *t, i64 from, i64 to, struct pool *pool, struct arena *a,
                    struct forest_score *s, i64 *confusion) {
    const struct column *c = table_target(t);
    const i32 C = imax(1, f->nclass);
    u32 *class = NULL;
    f64 *vote;
    ARENA_NEW(a, vote, lmin(CHUNK_ROWS, to - from) * C);
    if (f->nclass > 0) TRY(forest_classes(f, c, &class));
    err e = 0;
    for (i64 at = from; at < to && e >= 0; at += CHUNK_ROWS) {
        const i64 n = lmin(CHUNK_ROWS, to - at);
        e = forest_predict(f, t, at, at + n, pool, vote);
        for (i64 i = 0; e >= 0 && i < n; i++) {
            if (f->nclass == 0 && !isnan(c->number[at + i])) forest_add_number(s, vote[i], c->number[at + i], f->common);
            if (f->nclass > 0 && c->code[at + i] >= 0) add_class(f, vote + i * C, class[c->code[at + i]], s, confusion);
        }
    }
    mem_free(class);
    return e;
}

/* ------------------------------------------------------------------ the table ----------------------------------------------- */

/* Mean share of right rows over the classes that have rows. */
static f64 balanced(const i64 *confusion, i32 n) {
    f64 sum = 0, classes = 0;
    for (i32 k = 0; k < n; k++) {
        i64 rows = 0;
        for (i32 j = 0; j < n; j++) rows += confusion[(i64)k * n + j];
        if (rows == 0) continue;
        sum += (f64)confusion[(i64)k * n + k] / (f64)rows;
        classes++;
    }
    return classes > 0 ? sum / classes : (f64)NAN;
}

static void class_rows(const struct forest *f, const struct forest_score *s, const i64 *confusion, struct score_table *t,
                       struct score_row *row) {
    t->nmetric = 3;
    t->metric[0] = "accuracy";
    t->metric[1] = "balanced";
    t->metric[2] = "error %";
    t->skill_metric = 2;
    row[0].value[0] = 1 - s->error / s->rows;
    row[0].value[1] = balanced(confusion, f->nclass);
    row[0].value[2] = 100 * s->error / s->rows;
    row[1].value[0] = 1 - s->naive / s->rows;
    row[1].value[1] = 1.0 / f->nclass;
    row[1].value[2] = 100 * s->naive / s->rows;
}

static void number_rows(const struct forest_score *s, struct score_table *t, struct score_row *row) {
    const f64 deviation = s->square - s->sum * s->sum / s->rows;
    t->nmetric = 3;
    t->metric[0] = "RMSE";
    t->metric[1] = "MAE";
    t->metric[2] = "R2";
    row[0].value[0] = sqrt(s->error / s->rows);
    row[0].value[1] = s->absolute / s->rows;
    row[0].value[2] = deviation > 0 ? 1 - s->error / deviation : (f64)NAN;
    row[1].value[0] = sqrt(s->naive / s->rows);
    row[1].value[1] = s->naive_absolute / s->rows;
    row[1].value[2] = deviation > 0 ? floor((1 - s->naive / deviation) * 1e9 + 0.5) / 1e9 : (f64)NAN; /* 0, but for rounding */
}

static err fill(const struct forest *f, const char *title, const struct forest_score *s, const i64 *confusion,
                struct scores *out) {
    struct score_table *t;
    struct score_row *row;
    if (!(s->rows > 0)) return 0;
    ARENA_NEW(&out->arena, t, 1);
    ARENA_NEW(&out->arena, row, 2);
    row[0] = (struct score_row){.name = "model", .role = ROLE_MODEL};
    row[1] = (struct score_row){.role = ROLE_NAIVE, .skill = (f64)NAN};
    row[1].name = f->nclass > 0 ? arena_printf(&out->arena, "always %s", f->class[(i32)f->common]) : "mean";
    *t = (struct score_table){.title = title, .nrow = 2, .row = row, .best_naive = 1};
    if (f->nclass > 0) class_rows(f, s, confusion, t, row);
    else number_rows(s, t, row);
    const i32 metric = f->nclass > 0 ? 2 : 0;
    out->error = row[0].value[metric];
    out->baseline = row[1].value[metric];
    out->skill = row[0].skill = out->baseline > 0 ? 1 - out->error / out->baseline : (f64)NAN;
    out->best = row[1].name;
    out->table = t;
    out->records = out->cells = (i64)s->rows;
    return 0;
}

static void say_oob(const struct forest *f, char *out, size_t size) {
    if (!(f->oob.rows > 0)) return;
    if (f->nclass > 0) str_print(out, size, "out of bag the accuracy is %.4f", 1 - f->oob.error / f->oob.rows);
    else str_print(out, size, "out of bag the RMSE is %.4g", sqrt(f->oob.error / f->oob.rows));
}

err forest_score(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
                 struct scores *out) {
    const struct forest *f = forest_of(m);
    const struct table_set *t = table_set_of(d);
    const i64 from = q->what ? q->from : 0, to = q->what ? q->to : d->nrow;
    struct forest_score s = {0};
    i64 *confusion;
    *out = (struct scores){.skill = (f64)NAN};
    if (q->what && from == to)
        return fill(f, arena_printf(&out->arena, "out of bag, %.0f rows", f->oob.rows), &f->oob, f->confusion, out);
    const struct column *c = table_target(t);
    if (!c)
        return FAIL_AT(E903, t->t->path, "stretto predict MODEL DATA", "there is no column \"%s\" to score against", f->target);
    if (c->type != (f->nclass > 0 ? COL_CATEGORY : COL_NUMBER))
        return FAIL_AT(E903, t->t->path, "a file with columns as in the training", "column \"%s\" does not hold %s, as in the "
                       "training", f->target, f->nclass > 0 ? "words" : "numbers");
    ARENA_NEW(&out->arena, confusion, (i64)f->nclass * f->nclass + 1);
    TRY(sum_rows(f, t, from, to, use->pool, &out->arena, &s, confusion));
    if (q->what) say_oob(f, out->said, sizeof out->said);
    return fill(f, arena_printf(&out->arena, "%s, %.0f rows", q->what ? q->what : "scored", s.rows), &s, confusion, out);
}
