/* lines.c - the scores of series and groups: from sums to values, ranks, CSV and JSON. */
#include "report/lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

enum { FEW_SERIES = 5, WORST = 3 };

void lines_values(const struct score_lines *l, i32 i, struct line_values *out) {
    const struct score_line *s = &l->line[i];
    const f64 n = (f64)s->n;
    *out = (struct line_values){.mae = s->ae / n, .rmse = sqrt(s->ee / n), .best = -1, .naive = (f64)NAN, .skill = (f64)NAN};
    out->mase = s->nmase > 0 ? s->mase / s->nmase : (f64)NAN;
    out->wql = l->band && s->ay > 0 ? 2 * s->pin / s->ay : (f64)NAN;
    out->coverage = l->band ? s->inside / n : (f64)NAN;
    for (i32 k = 0; k < l->nnaive; k++) {
        const f64 mae = s->naive[k] / n;
        if (isnan(mae) || (out->best >= 0 && mae >= out->naive)) continue;
        out->best = k;
        out->naive = mae;
    }
    if (out->naive > 0) out->skill = 1 - out->mae / out->naive;
}

void lines_add(struct score_lines *a, const struct score_lines *b) {
    for (i32 i = 0; i < a->n; i++) {
        struct score_line *to = &a->line[i];
        const struct score_line *from = &b->line[i];
        if (from->n == 0) continue; /* nothing was observed: its sums are not numbers */
        to->n += from->n;
        to->ae += from->ae, to->ee += from->ee, to->ay += from->ay, to->pin += from->pin, to->inside += from->inside;
        to->mase += from->mase, to->nmase += from->nmase;
        for (i32 k = 0; k < LINE_NAIVES; k++) to->naive[k] += from->naive[k];
    }
}

err lines_copy(struct arena *a, const struct score_lines *from, struct score_lines **out) {
    struct score_lines *l;
    ARENA_NEW(a, l, 1);
    *l = *from;
    TRY(arena_keep(a, &l->by, from->by));
    ARENA_NEW(a, l->line, from->n);
    for (i32 k = 0; k < l->nnaive; k++) TRY(arena_keep(a, &l->naive[k], from->naive[k]));
    for (i32 i = 0; i < l->n; i++) {
        l->line[i] = from->line[i];
        TRY(arena_keep(a, &l->line[i].name, from->line[i].name));
    }
    *out = l;
    return 0;
}

/* ------------------------------------------------------------------ files --------------------------------------------------- */

static void csv_number(struct str *b, f64 v) {
    str_add(b, ",");
    if (isfinite(v)) str_add(b, text_json_number(v).s);
}

void lines_csv(struct str *b, const struct score_lines *l) {
    str_add_csv(b, l->by);
    str_add(b, ",n,MAE,RMSE,MASE,wQL,coverage,best_naive,naive_MAE,skill\n");
    for (i32 i = 0; i < l->n; i++) {
        struct line_values v;
        lines_values(l, i, &v);
        str_add_csv(b, l->line[i].name);
        str_addf(b, ",%lld", (long long)l->line[i].n);
        csv_number(b, v.mae);
        csv_number(b, v.rmse);
        csv_number(b, v.mase);
        csv_number(b, v.wql);
        csv_number(b, v.coverage);
        str_add(b, ",");
        if (v.best >= 0) str_add_csv(b, l->naive[v.best]);
        csv_number(b, v.naive);
        csv_number(b, v.skill);
        str_add(b, "\n");
    }
}

static void json_number(struct str *b, const char *name, f64 v) { str_addf(b, ",\"%s\":%s", name, text_json_number(v).s); }

void lines_json(struct str *b, const struct score_lines *l) {
    if (l->groups) {
        str_add(b, ",\"by\":");
        text_json(b, l->by);
    }
    str_add(b, l->groups ? ",\"groups\":[" : ",\"series\":[");
    for (i32 i = 0; i < l->n; i++) {
        struct line_values v;
        lines_values(l, i, &v);
        str_add(b, i ? ",{\"name\":" : "{\"name\":");
        text_json(b, l->line[i].name);
        str_addf(b, ",\"n\":%lld", (long long)l->line[i].n);
        json_number(b, "MAE", v.mae);
        json_number(b, "RMSE", v.rmse);
        json_number(b, "MASE", v.mase);
        if (l->band) json_number(b, "wQL", v.wql);
        if (l->band) json_number(b, "coverage", v.coverage);
        if (v.best >= 0) {
            str_add(b, ",\"best_naive\":");
            text_json(b, l->naive[v.best]);
            json_number(b, "naive_MAE", v.naive);
            json_number(b, "skill", v.skill);
        }
        str_add(b, "}");
    }
    str_add(b, "]");
}

/* ------------------------------------------------------------------ for the user -------------------------------------------- */

struct ranked {
    f64 error;
    i32 line;
};

/* Worst first; equal errors in the order of the lines. */
static int by_error(const void *pa, const void *pb) {
    const struct ranked *a = pa, *b = pb;
    if (a->error > b->error) return -1;
    if (a->error < b->error) return 1;
    return a->line - b->line;
}

static bool has_mase(const struct score_lines *l) {
    struct line_values v;
    for (i32 i = 0; i < l->n; i++) {
        lines_values(l, i, &v);
        if (!isnan(v.mase)) return true;
    }
    return false;
}

/* Lines that have an error, worst first; returns their number. *all: with the others that have cells, which follow. */
static i32 rank(const struct score_lines *l, struct ranked *of, i32 *all) {
    struct line_values v;
    const bool mase = has_mase(l);
    i32 n = 0;
    for (i32 i = 0; i < l->n; i++) {
        lines_values(l, i, &v);
        const f64 error = mase ? v.mase : v.mae;
        if (!isnan(error)) of[n++] = (struct ranked){error, i};
    }
    qsort(of, (size_t)n, sizeof *of, by_error);
    *all = n;
    for (i32 i = 0; i < l->n; i++) {
        lines_values(l, i, &v);
        if (l->line[i].n > 0 && isnan(mase ? v.mase : v.mae)) of[(*all)++] = (struct ranked){0, i};
    }
    return n;
}

err lines_order(const struct score_lines *l, i32 *order, i32 *n, bool *mase) {
    struct ranked *of;
    i32 all;
    NEW(of, imax(1, l->n));
    *n = rank(l, of, &all);
    *mase = has_mase(l);
    for (i32 i = 0; i < *n; i++) order[i] = of[i].line;
    mem_free(of);
    return 0;
}

static void show(struct lines_shown *out, i32 line, const char *text) {
    out->line[out->n] = line;
    out->rank[out->n++] = text;
}

err lines_pick(const struct score_lines *l, struct lines_shown *out) {
    struct ranked *of;
    *out = (struct lines_shown){0};
    NEW(of, imax(1, l->n));
    i32 all;
    const i32 n = rank(l, of, &all);
    const bool few = all <= (l->groups ? LINES_SHOWN : FEW_SERIES);
    if (few || n <= WORST + 1) {
        for (i32 i = 0; i < (few ? all : n); i++) show(out, of[i].line, "");
    } else {
        for (i32 i = 0; i < WORST; i++) show(out, of[i].line, "worst ");
        show(out, of[n / 2].line, "median ");
        show(out, of[n - 1].line, "best ");
    }
    mem_free(of);
    return 0;
}
