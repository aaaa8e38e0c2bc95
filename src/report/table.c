/* table.c - the score table as aligned text and as JSON. */
#include "report/table.h"

#include <math.h>
#include <string.h>

#include "report/text.h"

enum { NAME_WIDTH = 18, VALUE_WIDTH = 7 };

i32 table_decimals(const struct score_table *t, i32 metric) {
    if (strcmp(t->metric[metric], "MASE") == 0) return 2;
    f64 least = INFINITY;
    for (i32 r = 0; r < t->nrow; r++) {
        f64 v = fabs(t->row[r].value[metric]);
        if (isfinite(v) && v > 0) least = dmin(least, v);
    }
    if (!isfinite(least)) return 2;
    return imin(3, imax(0, 2 - (i32)floor(log10(least))));
}

void table_value(struct str *b, const struct score_table *t, i32 row, i32 metric) {
    f64 v = t->row[row].value[metric];
    i32 decimals = table_decimals(t, metric);
    if (fabs(v) >= 1e5) decimals = 0;
    if (isfinite(v) && (fabs(v) >= 1e7 || (v != 0 && fabs(v) < .5 * pow(10, -decimals)))) text_digits(b, v, 2);
    else text_fixed(b, v, decimals);
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
    for (i32 r = 0; r < t->nrow; r++) {
        struct str s = {0};
        table_value(&s, t, r, m);
        width = imax(width, str_columns(str_text(&s)) + 2);
        str_free(&s);
    }
    return width;
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
        for (i32 m = 0; m < t->nmetric; m++) {
            struct str s = {0};
            table_value(&s, t, r, m);
            add_right(b, isnan(t->row[r].value[m]) ? "-" : str_text(&s), width[m]);
            str_free(&s);
        }
        if (!isnan(t->row[r].skill)) {
            str_add(b, "   ");
            text_skill(b, t->row[r].skill);
        }
        str_add(b, "\n");
    }
}

void table_json(struct str *b, const struct score_table *t) {
    str_add(b, "{\"title\":");
    text_json(b, t->title);
    if (t->windows > 0) str_addf(b, ",\"windows\":%lld", (long long)t->windows);
    if (t->band.from > 0) {
        str_add(b, ",\"band\":{\"from\":");
        text_json_number(b, t->band.from);
        str_add(b, ",\"to\":");
        text_json_number(b, t->band.to);
        str_add(b, ",\"coverage\":");
        text_json_number(b, t->band.coverage);
        str_add(b, "}");
    }
    str_add(b, ",\"rows\":[");
    for (i32 r = 0; r < t->nrow; r++) {
        str_add(b, r ? ",{\"name\":" : "{\"name\":");
        text_json(b, t->row[r].name);
        for (i32 m = 0; m < t->nmetric; m++) {
            str_add(b, ",");
            text_json(b, t->metric[m]);
            str_add(b, ":");
            text_json_number(b, t->row[r].value[m]);
        }
        if (!isnan(t->row[r].skill)) {
            str_add(b, ",\"skill\":");
            text_json_number(b, t->row[r].skill);
        }
        str_add(b, "}");
    }
    str_add(b, "]}");
}
