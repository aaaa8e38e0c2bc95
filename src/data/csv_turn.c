/* csv_turn.c - transposes a text table with a series per row.
 *
 *     store,2021-01-01,2021-01-02        store,A,B
 *     A,1,2                        ->    2021-01-01,1,3
 *     B,3,4                              2021-01-02,2,4
 *
 * Columns before the first time in the first line all name the series: "Aruba/ABW". Short rows end with missing cells. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/csv.h"

struct turn {
    struct arena memory;
    char *text;
    char **cell; /* [nrow][ncol] */
    i32 *len;
    i32 nrow, ncol;
};

/* Counts records and the fields of the longest. */
static err measure(const struct csv *c, struct turn *t) {
    const char *p = t->text, *end = p + c->src.size;
    while (p < end) {
        i32 n;
        const char *next = csv_count_fields(p, end, c->sep, &n);
        t->nrow += !csv_blank_at(p, end);
        t->ncol = imax(t->ncol, n);
        p = next;
    }
    if (t->ncol > CSV_FIELDS_MAX || t->nrow > CSV_FIELDS_MAX)
        return FAIL_AT(E202, c->src.name, "--orient columns", "%d rows of %d fields: too many to exchange", t->nrow, t->ncol);
    return 0;
}

static err split(const struct csv *c, struct turn *t) {
    char *p = t->text, *end = p + c->src.size;
    ARENA_NEW(&t->memory, t->cell, (i64)t->nrow * t->ncol);
    ARENA_NEW(&t->memory, t->len, (i64)t->nrow * t->ncol);
    for (i32 r = 0; r < t->nrow;) {
        const bool blank = csv_blank_at(p, end);
        i32 n;
        p = csv_split_record(p, end, c->sep, t->cell + (i64)r * t->ncol, t->len + (i64)r * t->ncol, t->ncol, &n);
        r += !blank;
    }
    return 0;
}

/* Columns before the first time of the first line, or 1. */
static i32 name_columns(const struct turn *t) {
    for (i32 f = 1; f < t->ncol && t->nrow > 1; f++) {
        const char *s = t->cell[f];
        i64 year;
        bool unused;
        const struct time_parser number = {.kind = TIME_YEAR}, compact = {.kind = TIME_COMPACT};
        if (t->len[f] == 0) continue;
        if (time_guess(&s, &t->len[f], 1, false, &unused) != TIME_NONE || time_parse(&number, s, (size_t)t->len[f], &year) ||
            time_parse(&compact, s, (size_t)t->len[f], &year) || time_short(s, t->len[f]))
            return f;
    }
    return 1;
}

static void put_cell(struct str *out, char sep, const char *s, i32 n) {
    bool quote = false;
    for (i32 i = 0; i < n; i++) quote |= s[i] == sep || s[i] == '"' || s[i] == '\n' || s[i] == '\r';
    if (quote) str_add(out, "\"");
    for (i32 i = 0; i < n; i++) {
        if (s[i] == '"') str_add(out, "\"");
        str_addn(out, s + i, 1);
    }
    if (quote) str_add(out, "\"");
}

/* The name of a series: its first cells. */
static void put_name(struct str *out, const struct turn *t, i32 row, i32 names, char sep) {
    struct str name = {0};
    for (i32 f = 0; f < names; f++) {
        const i64 i = (i64)row * t->ncol + f;
        if (t->len[i] == 0) continue;
        if (name.len) str_add(&name, "/");
        str_addn(&name, t->cell[i], (size_t)t->len[i]);
        if (row == 0) break; /* of the names themselves only the first */
    }
    out->failed |= name.failed;
    put_cell(out, sep, str_text(&name), (i32)name.len);
    str_free(&name);
}

static err put(struct csv *c, const struct turn *t, struct str *out) {
    const i32 names = name_columns(t);
    c->t->turned = names;
    for (i32 f = names - 1; f < t->ncol; f++) {
        for (i32 r = 0; r < t->nrow; r++) {
            const i64 i = (i64)r * t->ncol + f;
            if (r) str_addn(out, &c->sep, 1);
            if (f < names) put_name(out, t, r, names, c->sep);
            else put_cell(out, c->sep, t->cell[i], t->len[i]);
        }
        str_add(out, "\n");
    }
    return str_ok(out);
}

err csv_turn(struct csv *c) {
    struct turn t = {0};
    struct csv_buffer b = {0};
    struct str out = {0};
    char *p;
    err e = csv_read(&c->src, &b, c->data_from, c->src.size, &p);
    if (e >= 0) {
        t.text = p;
        c->src.size -= c->data_from;
        e = measure(c, &t);
    }
    if (e >= 0) e = split(c, &t);
    if (e >= 0) e = put(c, &t, &out);
    arena_free(&t.memory);
    csv_buffer_free(&b);
    if (e < 0) {
        str_free(&out);
        return e;
    }
    mem_free(c->src.mem);
    c->src.mem = out.s;
    c->src.size = (i64)out.len;
    c->data_from = 0;
    return 0;
}
