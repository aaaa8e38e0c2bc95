/* frame_schema.c - the columns of a frame: names, and types from the format strings of the Arrow C data interface.
 *
 *     "g" f64   "l" i64   "u" text, 32-bit offsets   "vu" text views   "tsu:Europe/Berlin" timestamps in us   "+l" a list */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "data/arrow.h"
#include "data/frame.h"

struct plain {
    const char *format, *name;
    enum arrow_kind kind;
    i32 bytes;
    bool sign;
    i64 per_second;
};

static const struct plain plains[] = {
    {"n", "null", ARROW_NULL, 0, false, 0},       {"b", "bool", ARROW_BOOL, 0, false, 0},
    {"c", "int8", ARROW_INT, 1, true, 0},         {"C", "uint8", ARROW_INT, 1, false, 0},
    {"s", "int16", ARROW_INT, 2, true, 0},        {"S", "uint16", ARROW_INT, 2, false, 0},
    {"i", "int32", ARROW_INT, 4, true, 0},        {"I", "uint32", ARROW_INT, 4, false, 0},
    {"l", "int64", ARROW_INT, 8, true, 0},        {"L", "uint64", ARROW_INT, 8, false, 0},
    {"f", "float", ARROW_FLOAT, 4, true, 0},      {"g", "double", ARROW_FLOAT, 8, true, 0},
    {"u", "text", ARROW_TEXT, 4, false, 0},       {"U", "large text", ARROW_TEXT, 8, false, 0},
    {"vu", "text view", ARROW_TEXT, 0, false, 0}, {"tdD", "date", ARROW_DATE, 4, true, -86400},
    {"tdm", "date", ARROW_DATE, 8, true, 1000},
};

/* What the other formats are called in messages, by their first characters. */
static const char *const others[][2] = {
    {"e", "half float"}, {"z", "binary"},   {"Z", "large binary"}, {"vz", "binary view"},       {"w:", "fixed-size binary"},
    {"tt", "time of day"}, {"tD", "duration"}, {"ti", "interval"},   {"+r", "run-end encoded"},   {"+s", "struct"},
    {"+m", "map"},       {"+u", "union"},   {"+w", "fixed-size list"}, {"+", "list"},
};

static bool begins(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

/* "tsu:Europe/Berlin" */
static void type_of_timestamp(const char *format, struct arrow_type *t) {
    static const char units[] = "smun";
    static const i64 per[] = {1, 1000, 1000000, 1000000000};
    const char *unit = strchr(units, format[2]);
    if (!format[2] || !unit || format[3] != ':') return;
    *t = (struct arrow_type){.kind = ARROW_TIME, .bytes = 8, .sign = true, .per_second = per[unit - units]};
    snprintf(t->name, sizeof t->name, "timestamp[%c%s]", *unit, *unit == 's' ? "" : "s");
    const char *zone = format + 4;
    t->zoned = *zone != 0;
    if (t->zoned) arrow_set_zone(t, zone, (i64)strlen(zone));
}

/* "d:19,10" or "d:19,10,64" */
static void type_of_decimal(const char *format, struct arrow_type *t) {
    int digits = 0, scale = 0, bits = 128;
    if (sscanf(format, "d:%d,%d,%d", &digits, &scale, &bits) < 2) return;
    snprintf(t->name, sizeof t->name, "decimal%d", bits);
    t->bytes = bits / 8;
    t->scale = scale;
    if ((bits == 32 || bits == 64 || bits == 128) && scale >= -100 && scale <= 100) t->kind = ARROW_DECIMAL;
}

static void type_of(const char *format, struct arrow_type *t) {
    *t = (struct arrow_type){.kind = ARROW_OTHER};
    snprintf(t->name, sizeof t->name, "%.40s", format);
    for (size_t i = 0; i < COUNT(plains); i++) {
        const struct plain *p = &plains[i];
        if (strcmp(p->format, format) != 0) continue;
        *t = (struct arrow_type){.kind = p->kind, .bytes = p->bytes, .sign = p->sign, .per_second = p->per_second};
        snprintf(t->name, sizeof t->name, "%s", p->name);
        return;
    }
    if (begins(format, "ts")) type_of_timestamp(format, t);
    else if (begins(format, "d:")) type_of_decimal(format, t);
    else
        for (size_t i = 0; i < COUNT(others); i++)
            if (begins(format, others[i][0])) {
                snprintf(t->name, sizeof t->name, "%s", others[i][1]);
                return;
            }
}

static err field_of(struct arrow *a, const struct ArrowSchema *s, i32 i, struct arrow_field *f) {
    char name[ARROW_NAME] = "";
    if (!s->format) return FAIL_AT(E202, a->t->path, NULL, "column %d has no type", i + 1);
    if (s->name && !arrow_clean_name(s->name, (i64)strlen(s->name), name))
        return FAIL_AT(E202, a->t->path, "rename it", "the name of column %d is not UTF-8", i + 1);
    if (!name[0]) snprintf(name, sizeof name, "column%d", i + 1);
    TRY(arena_keep(&a->memory, &f->name, name));
    f->coded = s->dictionary != NULL;
    type_of(f->coded ? s->dictionary->format : s->format, &f->type);
    if (f->coded) type_of(s->format, &f->index);
    if (f->coded && f->index.kind != ARROW_INT) f->type.kind = ARROW_OTHER;
    return 0;
}

err frame_fields(struct arrow *a, const struct ArrowSchema *schema) {
    const i64 n = schema->n_children;
    if (n < 1 || n > ARROW_FIELDS_MAX) return FAIL_AT(E201, a->t->path, NULL, n < 1 ? "it has no columns" : "too many columns");
    a->nfield = (i32)n;
    ARENA_NEW(&a->memory, a->field, n);
    for (i32 i = 0; i < a->nfield; i++) TRY(field_of(a, schema->children[i], i, &a->field[i]));
    return arrow_define(a);
}
