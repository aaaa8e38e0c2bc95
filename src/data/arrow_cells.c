/* arrow_cells.c - cells of an Arrow column become cells of a column of the table: numbers, times, or words. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/spill.h"
#include "base/str.h"
#include "data/arrow.h"

enum { CELL = 64, EXACT_POWERS = 23, DIGITS = 40, DAY = 86400 };
static const i64 year_1 = -62135596800, year_10000 = 253402300800; /* seconds since 1970 */

const struct arrow_type *arrow_stored(const struct arrow_field *f) { return f->coded ? &f->index : &f->type; }

static bool is_text(const struct arrow_field *f) { return f->type.kind == ARROW_TEXT || f->role == AS_WORDS; }
static bool is_time(const struct arrow_field *f) { return f->type.kind == ARROW_TIME || f->type.kind == ARROW_DATE; }

err arrow_columns(struct arrow *a) {
    struct table *t = a->t;
    NEW(t->col, t->ncol);
    for (i32 i = 0; i < a->nfield; i++) {
        struct arrow_field *f = &a->field[i];
        struct column *c = f->col < 0 ? NULL : &t->col[f->col];
        if (!c) continue;
        TRY(arena_keep(&t->names, &c->name, f->name));
        c->field = i + 1;
        c->type = is_text(f) ? COL_CATEGORY : is_time(f) ? COL_TIME : COL_NUMBER;
        c->zoned = f->type.zoned;
        c->zone = f->type.zone;
        if (c->type == COL_TIME && f->type.zone_name[0]) TRY(zone_load(f->type.zone_name, &f->place));
        if (f->place) NEW_SPILL(c->offset, t->nrow);
        if (c->type == COL_CATEGORY) NEW_SPILL(c->code, t->nrow);
        else if (c->type == COL_TIME) NEW_SPILL(c->time, t->nrow);
        else if (!f->lent) NEW_SPILL(c->number, t->nrow);
    }
    return 0;
}

/* ------------------------------------------------------------------ one cell ------------------------------------------------ */

static bool bit_at(const u8 *p, i64 i) { return p[i >> 3] >> (i & 7) & 1; }

/* Digits of a decimal number with its point: the text that a CSV file would hold. */
static void decimal_text(const struct arrow_type *t, const u8 *p, i64 i, char out[CELL + 128]) {
    __extension__ typedef __int128 wide;
    wide v = 0;
    char digit[DIGITS];
    i32 n = 0;
    memcpy(&v, p + t->bytes * i, (size_t)t->bytes);
    const i32 unused = 128 - 8 * t->bytes;
    __extension__ typedef unsigned __int128 uwide;
    v = (wide)((uwide)v << unused) >> unused;
    uwide rest = v < 0 ? -(uwide)v : (uwide)v;
    for (; rest > 0; rest /= 10) digit[n++] = (char)('0' + (i32)(rest % 10));
    char *to = out;
    if (v < 0) *to++ = '-';
    for (i32 k = imax(n, t->scale + 1); k > 0; k--) {
        if (k == t->scale) *to++ = '.';
        *to++ = k <= n ? digit[k - 1] : '0';
    }
    for (i32 k = t->scale; k < 0 && n > 0; k++) *to++ = '0';
    *to = 0;
}

static f64 decimal_at(const struct arrow_type *t, const u8 *p, i64 i) {
    static const f64 power[EXACT_POWERS] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                            1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    char text[CELL + 128];
    i64 low, high;
    f64 v = (f64)NAN;
    memcpy(&low, p + t->bytes * i, (size_t)imin(t->bytes, 8));
    if (t->bytes == 16 && t->scale >= 0 && t->scale < EXACT_POWERS) {
        memcpy(&high, p + 16 * i + 8, 8);
        const i64 size = low < 0 ? -(low + 1) : low;
        if (high == (low < 0 ? -1 : 0) && size < (i64)1 << 53) return (f64)low / power[t->scale]; /* both exact: rounded once */
    }
    decimal_text(t, p, i, text);
    str_to_f64(text, strlen(text), '.', &v);
    return v;
}

static f64 number_at(const struct arrow_type *t, const u8 *p, i64 i) {
    f32 single;
    f64 v = 0;
    if (t->kind == ARROW_BOOL) return bit_at(p, i);
    if (t->kind == ARROW_DECIMAL) return decimal_at(t, p, i);
    if (t->kind == ARROW_INT) {
        const i64 whole = arrow_whole(t, p, i);
        return t->sign || t->bytes < 8 ? (f64)whole : (f64)(u64)whole;
    }
    if (t->bytes == 8) {
        memcpy(&v, p + 8 * i, 8);
        return v;
    }
    memcpy(&single, p + 4 * i, 4);
    return single;
}

/* A number as the word of a category. */
static void word_of(const struct arrow_type *t, const u8 *p, i64 i, char out[CELL + 128]) {
    const f64 v = t->kind == ARROW_FLOAT ? number_at(t, p, i) : 0;
    if (t->kind == ARROW_BOOL) snprintf(out, CELL, "%s", bit_at(p, i) ? "true" : "false");
    else if (t->kind == ARROW_DECIMAL) decimal_text(t, p, i, out);
    else if (t->kind == ARROW_FLOAT && isnan(v)) out[0] = 0;
    else if (t->kind == ARROW_FLOAT && t->bytes == 4) str_from_f32(out, (f32)v);
    else if (t->kind == ARROW_FLOAT) str_from_f64(out, v);
    else if (t->sign) snprintf(out, CELL, "%" PRId64, arrow_whole(t, p, i));
    else snprintf(out, CELL, "%" PRIu64, (u64)arrow_whole(t, p, i));
}

/* ------------------------------------------------------------------ a column of a batch ------------------------------------- */

/* Doubles and 64-bit numbers are most of what is read. */
static void put_plain(const struct arrow_type *t, const struct arrow_cells *c, f64 *to) {
    if (t->kind == ARROW_FLOAT && t->bytes == 8) memcpy(to, c->data, 8 * (size_t)c->rows);
    else
        for (i64 i = 0; i < c->rows; i++) to[i] = number_at(t, c->data, i);
}

static void put_numbers(struct arrow *a, struct arrow_field *f, const struct arrow_cells *c) {
    f64 *to = a->t->col[f->col].number + a->row;
    const bool all = f->type.kind != ARROW_NULL;
    if (all) put_plain(&f->type, c, to);
    if (c->nulls == 0 && f->type.kind != ARROW_FLOAT && a->na.nnumber == 0) return;
    for (i64 i = 0; i < c->rows; i++)
        if (!all || !arrow_valid(c, i) || isnan(to[i]) || missing_number(&a->na, to[i])) arrow_put_missing(a, f, a->row + i);
}

/* The column that gives the rows their time: named, or the first of its kind. */
static bool is_the_time(const struct arrow *a, const struct arrow_field *f) {
    const char *format = a->o->time_format;
    if (format && !strcmp(format, "row")) return false;
    if (a->o->time && *a->o->time) return f->role == AS_TIME;
    for (i32 c = 0; c < f->col; c++)
        if (a->t->col[c].type == COL_TIME) return false;
    return true;
}

static err put_times(struct arrow *a, struct arrow_field *f, const struct arrow_cells *c) {
    struct column *col = &a->t->col[f->col];
    const struct arrow_type type = {.bytes = f->type.bytes, .sign = true};
    const i64 per = f->type.per_second;
    for (i64 i = 0; i < c->rows; i++) {
        const i64 row = a->row + i;
        if (!arrow_valid(c, i)) {
            if (is_the_time(a, f)) return arrow_need_time(a, f, row);
            arrow_put_missing(a, f, row);
            if (f->place) col->offset[row] = DAY;
            continue;
        }
        const i64 v = arrow_whole(&type, c->data, i);
        const i64 t = per < 0 ? v * -per : v / per - (v % per < 0);
        if (t < year_1 || t >= year_10000) {
            char where[256];
            table_where(a->t, row, col, where);
            return FAIL_AT(E205, where, "--time-format row   (rows are the time)   or   another --time",
                           "%lld in time column \"%s\" (%s) is not in the years 1 to 9999", (long long)v, f->name, f->type.name);
        }
        col->time[row] = t + f->type.zone;
        if (f->place) col->offset[row] = zone_offset(f->place, t) + DAY; /* as offsets in a text: arrow_settle_words */
    }
    return 0;
}

static err put_as_words(struct arrow *a, struct arrow_field *f, const struct arrow_cells *c) {
    char text[CELL + 128];
    for (i64 i = 0; i < c->rows; i++) {
        if (f->type.kind == ARROW_NULL || !arrow_valid(c, i)) {
            arrow_put_missing(a, f, a->row + i);
            continue;
        }
        word_of(&f->type, c->data, i, text);
        TRY(arrow_put_word(a, f, a->row + i, text, (i64)strlen(text)));
    }
    return 0;
}

err arrow_put(struct arrow *a, struct arrow_field *f, const struct arrow_message *m, const struct arrow_cells *c) {
    if (f->type.kind == ARROW_TEXT) return arrow_put_words(a, f, m, c);
    if (f->role == AS_WORDS) return put_as_words(a, f, c);
    if (is_time(f)) return put_times(a, f, c);
    put_numbers(a, f, c);
    return 0;
}
