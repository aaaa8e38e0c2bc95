/* score.c - scores of classes and numbers beside the plain rows: the most frequent class or the median, and the linear rule. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "learn/sequence/sequence.h"
#include "report/report.h"

enum class_metric { ACCURACY, BALANCED, F1, LOG_LOSS, CLASS_METRICS };
enum number_metric { MAE, RMSE, R2, NUMBER_METRICS };
enum row { MODEL, PLAIN, RULE, ROWS };

#define LEAST_PROBABILITY 1e-15 /* as scikit-learn clips */

/* Counts of classes over the labels that are known. */
struct sequence_detail {
    i32 K;
    i64 *confusion;    /* [K + 1][K] by true class (the last: unknown to the model) and predicted class */
    const char **name; /* [K + 1] */
    struct arena arena;
};

static void free_detail(void *detail) {
    arena_free(&((struct sequence_detail *)detail)->arena);
    mem_free(detail);
}

/* ------------------------------------------------------------------ classes ------------------------------------------------- */

static i32 likeliest(const f64 *p, i32 n) {
    i32 best = 0;
    for (i32 k = 1; k < n; k++)
        if (p[k] > p[best]) best = k;
    return best;
}

/* Sums over the labels of a set, of one row of the table. */
struct class_sums {
    i64 n;       /* labels that are known */
    i64 unknown; /* of classes that the training did not have */
    i64 first;   /* place of the first of these */
    f64 log_loss;
    i64 *confusion; /* [K + 1][K] */
};

/* A label that the training did not have: its class is K. */
static i32 true_class(const struct sequence_data *d, i64 sequence, i32 i, i32 K) {
    const i32 known = d->class[d->s->first[sequence] + i];
    return known >= 0 ? known : sequence_class(d->s, sequence, i) >= 0 ? K : -1;
}

static void sum_classes(const struct sequence_model *m, const struct sequence_data *d, const struct sequence_out *o,
                        struct class_sums *sum) {
    const i32 K = o->K;
    for (i64 k = o->from; k < o->to; k++)
        for (i32 i = 0; i < sequence_labels(m, d->s, d->s->at[k]); i++) {
            const f64 *p = o->p + (o->first[k - o->from] + i) * K;
            const i32 y = true_class(d, d->s->at[k], i, K);
            if (y < 0) continue;
            if (y == K && sum->unknown++ == 0) sum->first = d->s->row[d->s->first[d->s->at[k]] + i];
            sum->confusion[(i64)y * K + likeliest(p, K)]++;
            sum->log_loss -= log(dmax(LEAST_PROBABILITY, y < K ? p[y] : 0));
            sum->n++;
        }
}

/* Recall, precision and F1 of class k; NaN where there is nothing to divide by. */
static void class_figures(const i64 *confusion, i32 K, i32 k, f64 *recall, f64 *precision, f64 *f1) {
    i64 is = 0, said = 0;
    const i64 right = confusion[(i64)k * K + k];
    for (i32 j = 0; j < K; j++) is += confusion[(i64)k * K + j];
    for (i32 j = 0; j <= K; j++) said += confusion[(i64)j * K + k];
    *recall = is > 0 ? (f64)right / (f64)is : (f64)NAN;
    *precision = said > 0 ? (f64)right / (f64)said : (f64)NAN;
    *f1 = is + said > 0 ? 2 * (f64)right / (f64)(is + said) : (f64)NAN;
}

static void class_row(const struct class_sums *s, i32 K, bool probabilities, f64 *value) {
    f64 right = 0, recalls = 0, classes = 0, f1s = 0, named = 0;
    for (i32 k = 0; k < K; k++) {
        f64 recall, precision, f1;
        class_figures(s->confusion, K, k, &recall, &precision, &f1);
        right += (f64)s->confusion[(i64)k * K + k];
        if (!isnan(recall)) recalls += recall, classes++;
        if (!isnan(f1)) f1s += f1, named++;
    }
    if (s->unknown > 0) classes++, named++; /* never named: recall and F1 are 0 */
    value[ACCURACY] = right / (f64)s->n;
    value[BALANCED] = recalls / classes;
    value[F1] = f1s / named;
    value[LOG_LOSS] = probabilities ? s->log_loss / (f64)s->n : (f64)NAN;
}

/* The shares of the classes in the training as probabilities, or the median of its numbers. */
static void say_plain(const struct sequence_model *m, struct sequence_out *o) {
    for (i64 i = 0; i < o->first[o->to - o->from]; i++)
        for (i32 k = 0; k < o->K; k++) o->p[i * o->K + k] = m->regress ? m->y_median : m->share[k];
}

static err keep_confusion(const struct sequence_model *m, const struct class_sums *s, struct scores *out) {
    struct sequence_detail *d;
    const i32 K = m->classes.n;
    NEW(d, 1);
    out->detail = d;
    out->free_detail = free_detail;
    d->K = K;
    ARENA_NEW(&d->arena, d->confusion, (i64)(K + 1) * (K + 1));
    ARENA_NEW(&d->arena, d->name, K + 1);
    for (i32 y = 0; y <= K; y++) {
        d->name[y] = "unknown";
        if (y < K) TRY(arena_keep(&d->arena, &d->name[y], vocab_word(&m->classes, y)));
        for (i32 k = 0; k < K; k++) d->confusion[(i64)y * (K + 1) + k] = s->confusion[(i64)y * K + k];
    }
    return 0;
}

/* Rows of the table behind the plain ones: the confusion matrix, a row for each true class. */
static err confusion_rows(const struct sequence_model *m, const struct class_sums *s, struct score_table *t,
                          struct score_row *row, struct scores *out) {
    const i32 K = m->classes.n;
    if (CLASS_METRICS + K > METRICS_MAX) return 0;
    for (i32 k = 0; k < K; k++) t->metric[t->nmetric + k] = arena_printf(&out->arena, "as %.20s", vocab_word(&m->classes, k));
    for (i32 r = 0; r < t->nrow; r++)
        for (i32 k = 0; k < K; k++) row[r].value[CLASS_METRICS + k] = (f64)NAN;
    for (i32 y = 0; y < K + (s->unknown > 0); y++) {
        struct score_row *to = &row[t->nrow++];
        *to = (struct score_row){.role = ROLE_QUIET, .skill = (f64)NAN};
        to->name = y < K ? arena_printf(&out->arena, "%.40s", vocab_word(&m->classes, y)) : "unknown class";
        for (i32 k = 0; k < CLASS_METRICS; k++) to->value[k] = (f64)NAN;
        if (y < K) {
            f64 precision;
            class_figures(s->confusion, K, y, &to->value[ACCURACY], &precision, &to->value[F1]);
        }
        for (i32 k = 0; k < K; k++) to->value[CLASS_METRICS + k] = (f64)s->confusion[(i64)y * K + k];
    }
    t->counts = CLASS_METRICS;
    t->nmetric += K;
    return 0;
}

struct scoring_of {
    const struct sequence_model *m;
    const struct sequence_data *d;
    struct sequence_out *out[ROWS]; /* NULL = there is no such row */
    const char *what;
    bool whole; /* the data are read to be scored, not as a part of the training data */
    struct score_table *t;
    struct score_row *row;
};

static err tell_unknown(const struct scoring_of *q, const struct class_sums *s, struct scores *out) {
    char where[256];
    const struct sequence_set *set = q->d->s;
    if (s->unknown == 0) return 0;
    const struct column *c = &set->t->col[set->target];
    table_where(set->t, s->first, c, where);
    str_print(out->said, sizeof out->said,
              "%lld label%s that the training did not have, first \"%.30s\" at %.80s: counted as wrong", (long long)s->unknown,
              s->unknown == 1 ? " is of a class" : "s are of classes", c->word[c->code[s->first]], where);
    return 0;
}

static err score_classes(struct scoring_of *q, struct scores *out) {
    const struct sequence_model *m = q->m;
    const i32 K = m->classes.n;
    struct class_sums sum[ROWS] = {0};
    static const char *const metric[] = {"accuracy", "balanced", "F1", "log loss"};
    for (i32 r = 0; r < ROWS; r++) {
        ARENA_NEW(&out->arena, sum[r].confusion, (i64)(K + 1) * K);
        if (q->out[r]) sum_classes(m, q->d, q->out[r], &sum[r]);
        if (q->out[r] && sum[r].n > 0) class_row(&sum[r], K, r != RULE, q->row[r].value);
    }
    out->cells = sum[MODEL].n;
    if (out->cells == 0) return 0;
    memcpy(q->t->metric, metric, sizeof metric);
    q->t->nmetric = CLASS_METRICS;
    q->t->skill_metric = ACCURACY;
    q->row[PLAIN].name = arena_printf(&out->arena, "always %.40s", vocab_word(&m->classes, likeliest(m->share, K)));
    TRY(confusion_rows(m, &sum[MODEL], q->t, q->row, out));
    TRY(tell_unknown(q, &sum[MODEL], out));
    return keep_confusion(m, &sum[MODEL], out);
}

/* ------------------------------------------------------------------ numbers ------------------------------------------------- */

struct number_sums {
    f64 n, absolute, square, sum, squares; /* errors; labels about the mean of the training */
};

static void sum_numbers(const struct sequence_model *m, const struct sequence_data *d, const struct sequence_out *o,
                        struct number_sums *s) {
    for (i64 k = o->from; k < o->to; k++)
        for (i32 i = 0; i < sequence_labels(m, d->s, d->s->at[k]); i++) {
            const f64 y = sequence_number(d->s, d->s->at[k], i), e = o->p[o->first[k - o->from] + i] - y;
            if (isnan(y)) continue;
            s->n++;
            s->absolute += fabs(e);
            s->square += e * e;
            s->sum += y - m->y_mean;
            s->squares += (y - m->y_mean) * (y - m->y_mean);
        }
}

static void score_numbers(struct scoring_of *q, struct scores *out) {
    static const char *const metric[] = {"MAE", "RMSE", "R2"};
    for (i32 r = 0; r < ROWS && q->out[r]; r++) {
        struct number_sums s = {0};
        sum_numbers(q->m, q->d, q->out[r], &s);
        out->cells = (i64)s.n;
        if (s.n == 0) return;
        const f64 about = s.squares - s.sum * s.sum / s.n;
        q->row[r].value[MAE] = s.absolute / s.n;
        q->row[r].value[RMSE] = sqrt(s.square / s.n);
        q->row[r].value[R2] = about > 0 ? 1 - s.square / about : (f64)NAN;
    }
    memcpy(q->t->metric, metric, sizeof metric);
    q->t->nmetric = NUMBER_METRICS;
    q->t->skill_metric = strcmp(q->m->loss, "mae") == 0 ? MAE : RMSE;
    q->row[PLAIN].name = "median";
}

/* ------------------------------------------------------------------ the table ----------------------------------------------- */

static f64 error_of(const struct scoring_of *q, i32 row) {
    const f64 v = q->row[row].value[q->t->skill_metric];
    return q->m->regress ? v : 1 - v;
}

static err fill_table(struct scoring_of *q, struct scores *out) {
    ARENA_NEW(&out->arena, q->t, 1);
    ARENA_NEW(&out->arena, q->row, ROWS + METRICS_MAX + 1);
    q->t->row = q->row;
    q->t->nrow = q->out[RULE] ? ROWS : RULE;
    q->row[MODEL] = (struct score_row){.name = "model", .role = ROLE_MODEL, .skill = (f64)NAN};
    q->row[PLAIN] = (struct score_row){.role = ROLE_NAIVE, .skill = (f64)NAN};
    q->row[RULE] = (struct score_row){.name = q->m->per_step       ? "ridge of the step"
                                              : q->m->rule.per > 1 ? "ridge of mean, sd, slope"
                                                                   : "ridge of means",
                                      .role = ROLE_RIDGE,
                                      .skill = (f64)NAN};
    if (q->m->regress)
        score_numbers(q, out);
    else
        TRY(score_classes(q, out));
    if (out->cells == 0 && q->whole)
        return FAIL_AT(E903, q->d->s->set.path, "stretto predict MODEL DATA", "all labels are missing: nothing to score");
    if (out->cells == 0) return 0;
    q->t->title = arena_printf(&out->arena, "%s, %lld %s%s", q->what, (long long)out->cells, q->m->per_step ? "step" : "sequence",
                               out->cells == 1 ? "" : "s");
    q->t->best_naive = q->out[RULE] && error_of(q, RULE) < error_of(q, PLAIN) ? RULE : PLAIN;
    out->table = q->t;
    out->error = error_of(q, MODEL);
    out->baseline = error_of(q, q->t->best_naive);
    out->best = q->row[q->t->best_naive].name;
    if (out->baseline > 0) out->skill = q->row[MODEL].skill = 1 - out->error / out->baseline;
    return 0;
}

static err score_with(struct scoring_of *q, const struct resources *use, struct scores *out) {
    TRY(sequence_predict(q->m, q->d->s, use, q->out[MODEL]));
    say_plain(q->m, q->out[PLAIN]);
    if (q->out[RULE]) sequence_rule_apply(q->m, q->d, q->out[RULE]);
    return fill_table(q, out);
}

static err need_labels(const struct sequence_model *m, const struct sequence_set *s) {
    if (s->target < 0)
        return FAIL_AT(E903, s->set.path, "stretto predict MODEL DATA", "the sequences have no labels to score against");
    if (!s->per_step || m->per_step) return 0;
    char where[256];
    table_where(s->t, s->change, &s->t->col[s->target], where);
    return FAIL_AT(E903, where, "one label for each sequence, as in the training",
                   "the label changes within a sequence; the model gives one to each");
}

static err score_range(const struct sequence_model *m, const struct sequence_set *s, const struct scoring *q,
                       const struct resources *use, struct scores *out) {
    const i64 from = q->what ? q->from : 0, to = q->what ? q->to : s->set.nrow;
    struct sequence_data d;
    struct sequence_out o[ROWS] = {0};
    struct scoring_of all = {.m = m, .d = &d, .what = q->what ? q->what : "all", .whole = !q->what};
    TRY(sequence_data_new(m, s, &d));
    err e = 0;
    for (i32 r = 0; r < ROWS && e >= 0; r++) {
        if (r == RULE && m->rule.n == 0) continue;
        e = sequence_out_new(m, s, from, to, &o[r]);
        all.out[r] = &o[r];
    }
    if (e >= 0) e = score_with(&all, use, out);
    for (i32 r = 0; r < ROWS; r++) sequence_out_free(&o[r]);
    sequence_data_free(&d);
    out->records = to - from;
    return e;
}

err sequence_score(const struct model *model, const struct dataset *d, const struct scoring *q, const struct resources *use,
                   struct scores *out) {
    *out = (struct scores){.skill = (f64)NAN, .error = (f64)NAN, .baseline = (f64)NAN};
    if (q->what && q->to <= q->from) return 0;
    TRY(need_labels(sequence_of(model), sequence_set_of(d)));
    return score_range(sequence_of(model), sequence_set_of(d), q, use, out);
}

/* ------------------------------------------------------------------ pictures ------------------------------------------------ */

static err draw(const struct scores *s, bool alone, struct str *svg) {
    const struct sequence_detail *d = s->detail;
    svg_matrix(svg, d->name, d->K + 1, d->confusion, alone);
    return str_ok(svg);
}

err sequence_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a,
                    struct report *r) {
    struct report_figure *figure;
    struct str svg = {0};
    (void)m, (void)job;
    if (!s || !s->detail) return 0;
    ARENA_NEW(a, figure, 1);
    err e = draw(s, false, &svg);
    *figure = (struct report_figure){
        .id = "confusion", .heading = "Classes", .lead = "Rows: classes of the file; columns: classes of the model."};
    if (e >= 0) e = arena_keep(a, &figure->svg, str_text(&svg));
    str_free(&svg);
    r->figure = figure;
    r->nfigure = 1;
    return e;
}
