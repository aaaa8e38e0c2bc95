/* table.c - the score table as aligned text and as JSON. */
#include "report/table.h"

#include <math.h>
#include <string.h>

#include "report/text.h"

enum { NAME_WIDTH = 18, VALUE_WIDTH = 7 };

/* Number of decimals that shows a metric with about three digits. */
static i32 decimals_of(const struct score_table *t, i32 metric) {
    if (t->counts > 0 && metric >= t->counts) return 0;
    if (t->decimals > 0) return t->decimals;
    if (strcmp(t->metric[metric], "MASE") == 0) return 2;
    f64 least = INFINITY;
    for (i32 r = 0; r < t->nrow; r++) {
        f64 v = fabs(t->row[r].value[metric]);
        if (isfinite(v) && v > 0) least = dmin(least, v);
    }
    if (!isfinite(least)) return 2;
    return imin(3, imax(0, 2 - (i32)floor(log10(least))));
}

struct figure table_value(const struct score_table *t, i32 row, i32 metric) {
    f64 v = t->row[row].value[metric];
    i32 decimals = fabs(v) >= 1e5 ? 0 : decimals_of(t, metric);
    if (isfinite(v) && (fabs(v) >= 1e7 || (v != 0 && fabs(v) < .5 * pow(10, -decimals)))) return text_digits(v, 2);
    return text_fixed(v, decimals);
}

static void pad(struct str *b, i32 n) {
    for (i32 i = 0; i < n; i++) str_add(b, " ");
}

static void add_right(struct str *b, const char *text, i32 width) {
    pad(b, imax(1, width - str_columns(text)));
    str_add(b, text);
}

/* Width of metric m's column: every figure and the heading, with at least two spaces before it. */
static i32 column_width(const struct score_table *t, i32 m) {
    i32 width = imax(VALUE_WIDTH, str_columns(t->metric[m]) + 2);
    for (i32 r = 0; r < t->nrow; r++) width = imax(width, str_columns(table_value(t, r, m).s) + 2);
    return width;
}

err lines_table(const struct score_lines *l, struct arena *a, struct score_table *out) {
    static const struct score_table head = {.nmetric = 3, .metric = {"MAE", "RMSE", "MASE", "wQL", "coverage"}, .best_naive = -1};
    struct score_row *row;
    struct lines_shown shown = {0};
    *out = head;
    if (l->n > 1 || l->groups) TRY(lines_pick(l, &shown)); /* of one series the table above says it all */
    ARENA_NEW(a, row, LINES_SHOWN);
    out->title = arena_printf(a, l->groups ? "%d groups by %.200s" : "%d %s", l->n, l->by);
    out->nmetric += l->band ? 2 : 0;
    out->row = row;
    out->nrow = shown.n;
    for (i32 i = 0; i < shown.n; i++) {
        struct line_values v;
        lines_values(l, shown.line[i], &v);
        row[i] = (struct score_row){.role = ROLE_QUIET,
                                    .name = arena_printf(a, "%s%.200s", shown.rank[i], l->line[shown.line[i]].name),
                                    .value = {v.mae, v.rmse, v.mase, v.wql, v.coverage},
                                    .skill = v.skill};
    }
    return 0;
}

void lines_text(struct str *b, const struct score_lines *l) {
    struct arena a = {0};
    struct score_table t;
    if (lines_table(l, &a, &t) < 0) b->failed = true;
    else if (t.nrow > 0) table_text(b, &t);
    arena_free(&a);
}

void table_text(struct str *b, const struct score_table *t) {
    i32 name = imax(NAME_WIDTH, str_columns(t->title)), width[METRICS_MAX];
    bool skill = false;
    for (i32 r = 0; r < t->nrow; r++) {
        name = imax(name, str_columns(t->row[r].name) + 2);
        skill = skill || !isnan(t->row[r].skill);
    }
    str_add(b, t->title);
    pad(b, name - str_columns(t->title));
    for (i32 m = 0; m < t->nmetric; m++) {
        width[m] = column_width(t, m);
        add_right(b, t->metric[m], width[m]);
    }
    if (skill) str_add(b, "   skill (vs best naive)");
    str_add(b, "\n");
    for (i32 r = 0; r < t->nrow; r++) {
        str_addf(b, "  %s", t->row[r].name);
        pad(b, name - 2 - str_columns(t->row[r].name));
        for (i32 m = 0; m < t->nmetric; m++)
            add_right(b, isnan(t->row[r].value[m]) ? "-" : table_value(t, r, m).s, width[m]);
        if (!isnan(t->row[r].skill)) str_addf(b, "   %s", text_skill(t->row[r].skill).s);
        str_add(b, "\n");
    }
    if (t->lines) lines_text(b, t->lines);
}

static void band_json(struct str *b, const struct score_band *band) {
    str_addf(b, ",\"band\":{\"from\":%s,\"to\":%s,\"coverage\":%s", text_json_number(band->from).s,
             text_json_number(band->to).s, text_json_number(band->coverage).s);
    for (i32 k = 0; k < band->npart; k++)
        str_addf(b, "%s{\"last_step\":%d,\"coverage\":%s}", k ? "," : ",\"by_step\":[", band->last[k],
                 text_json_number(band->part[k]).s);
    if (band->npart > 0) str_add(b, "]");
    for (i32 k = 0; k < band->nstep; k++) str_addf(b, "%s%s", k ? "," : ",\"steps\":[", text_json_number(band->step[k]).s);
    str_add(b, band->nstep > 0 ? "]}" : "}");
}

void table_json(struct str *b, const struct score_table *t) {
    str_add(b, "{\"title\":");
    text_json(b, t->title);
    if (t->windows > 0) str_addf(b, ",\"windows\":%lld", (long long)t->windows);
    if (t->band.from > 0) band_json(b, &t->band);
    str_add(b, ",\"rows\":[");
    for (i32 r = 0; r < t->nrow; r++) {
        str_add(b, r ? ",{\"name\":" : "{\"name\":");
        text_json(b, t->row[r].name);
        for (i32 m = 0; m < t->nmetric; m++) {
            str_add(b, ",");
            text_json(b, t->metric[m]);
            str_addf(b, ":%s", text_json_number(t->row[r].value[m]).s);
        }
        if (!isnan(t->row[r].skill)) str_addf(b, ",\"skill\":%s", text_json_number(t->row[r].skill).s);
        str_add(b, "}");
    }
    str_add(b, "]");
    if (t->lines) lines_json(b, t->lines);
    str_add(b, "}");
}
