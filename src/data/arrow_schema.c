/* arrow_schema.c - the schema of an Arrow stream: names and types of the columns, and how many buffers each has in a batch. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "data/arrow.h"
#include "data/mend.h"
#include "data/names.h"

enum { SCHEMA_ENDIAN, SCHEMA_FIELDS };
enum { FIELD_NAME, FIELD_TYPE_KIND = 2, FIELD_TYPE, FIELD_DICTIONARY, FIELD_CHILDREN };
enum { DICTIONARY_ID, DICTIONARY_INDEX };
enum { PART_FIRST, PART_SECOND }; /* fields of the small tables of types */

/* The union Type of Schema.fbs, in its order. */
enum wire {
    WIRE_NONE, WIRE_NULL, WIRE_INT, WIRE_FLOAT, WIRE_BINARY, WIRE_UTF8, WIRE_BOOL, WIRE_DECIMAL, WIRE_DATE, WIRE_CLOCK,
    WIRE_TIMESTAMP, WIRE_INTERVAL, WIRE_LIST, WIRE_STRUCT, WIRE_UNION, WIRE_FIXED_BINARY, WIRE_FIXED_LIST, WIRE_MAP,
    WIRE_DURATION, WIRE_LARGE_BINARY, WIRE_LARGE_UTF8, WIRE_LARGE_LIST, WIRES
};

/* Buffers of a column itself, without its children. */
static const struct {
    const char *name;
    i32 buffers;
} wires[WIRES] = {{"no type", 0}, {"null", 0}, {"int", 2}, {"float", 2}, {"binary", 3}, {"text", 3}, {"bool", 2}, {"decimal", 2},
                  {"date", 2}, {"time of day", 2}, {"timestamp", 2}, {"interval", 2}, {"list", 2}, {"struct", 1}, {"union", 1},
                  {"fixed-size binary", 2}, {"fixed-size list", 1}, {"map", 2}, {"duration", 2}, {"large binary", 3},
                  {"large text", 3}, {"large list", 2}};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* "+02:00"; 0 for a name. */
static i32 zone_of(const char *s, i64 n) {
    if (n != 6 || (s[0] != '+' && s[0] != '-') || s[3] != ':') return 0;
    if (!is_digit(s[1]) || !is_digit(s[2]) || !is_digit(s[4]) || !is_digit(s[5])) return 0;
    const i32 seconds = 3600 * (10 * (s[1] - '0') + s[2] - '0') + 60 * (10 * (s[4] - '0') + s[5] - '0');
    return seconds > 18 * 3600 ? 0 : s[0] == '-' ? -seconds : seconds;
}

void arrow_set_zone(struct arrow_type *t, const char *zone, i64 n) {
    if (n < 1 || n >= ARROW_ZONE) return;
    t->zone = zone_of(zone, n);
    if (zone[0] == '+' || zone[0] == '-') return;
    memcpy(t->zone_name, zone, (size_t)n);
    t->zone_name[n] = 0;
}

static void type_timestamp(const struct flat_table *t, struct arrow_type *out) {
    static const i64 per[] = {1, 1000, 1000000, 1000000000};
    static const char *const unit[] = {"s", "ms", "us", "ns"};
    const char *zone;
    i64 n;
    const i64 u = flat_number(t, PART_FIRST, 2, 0);
    if (u < 0 || u > 3) return;
    out->kind = ARROW_TIME;
    out->bytes = 8;
    out->per_second = per[u];
    snprintf(out->name, sizeof out->name, "timestamp[%s]", unit[u]);
    out->zoned = flat_text(t, PART_SECOND, &zone, &n) && n > 0;
    if (out->zoned) arrow_set_zone(out, zone, n);
}

/* The types whose cells are read; others stay ARROW_OTHER. */
static void type_cells(enum wire w, const struct flat_table *t, struct arrow_type *out) {
    if (w == WIRE_NULL) {
        out->kind = ARROW_NULL;
    } else if (w == WIRE_INT) {
        const i64 bits = flat_number(t, PART_FIRST, 4, 0);
        out->sign = flat_number(t, PART_SECOND, 1, 0) != 0;
        out->bytes = (i32)(bits / 8);
        snprintf(out->name, sizeof out->name, "%sint%lld", out->sign ? "" : "u", (long long)bits);
        if (bits == 8 || bits == 16 || bits == 32 || bits == 64) out->kind = ARROW_INT;
    } else if (w == WIRE_FLOAT) {
        const i64 precision = flat_number(t, PART_FIRST, 2, 0);
        if (precision == 1 || precision == 2) out->kind = ARROW_FLOAT;
        out->bytes = precision == 2 ? 8 : 4;
        snprintf(out->name, sizeof out->name, "%s", precision == 0 ? "half float" : precision == 1 ? "float" : "double");
    } else if (w == WIRE_BOOL) {
        out->kind = ARROW_BOOL;
    } else if (w == WIRE_DECIMAL) {
        const i64 bits = flat_number(t, 2, 4, 128);
        out->scale = (i32)flat_number(t, PART_SECOND, 4, 0);
        out->bytes = (i32)(bits / 8);
        snprintf(out->name, sizeof out->name, "decimal%lld", (long long)bits);
        if ((bits == 32 || bits == 64 || bits == 128) && out->scale >= -100 && out->scale <= 100) out->kind = ARROW_DECIMAL;
    } else if (w == WIRE_DATE) {
        const bool days = flat_number(t, PART_FIRST, 2, 1) == 0;
        out->kind = ARROW_DATE;
        out->bytes = days ? 4 : 8;
        out->per_second = days ? -86400 : 1000;
    } else if (w == WIRE_TIMESTAMP) {
        type_timestamp(t, out);
    } else if (w == WIRE_UTF8 || w == WIRE_LARGE_UTF8) {
        out->kind = ARROW_TEXT;
        out->bytes = w == WIRE_UTF8 ? 4 : 8;
    }
}

/* Types of later versions have buffers that the schema does not count, so no column behind them could be found. */
static err refuse_view(const struct arrow_message *m, const struct flat_table *field, i64 w) {
    static const char *const names[] = {"run-end encoded", "binary view", "text view", "list view", "large list view"};
    const char *s = "";
    i64 n = 0;
    flat_text(field, FIELD_NAME, &s, &n);
    return FAIL_AT(E214, m->path, "write it as utf8   (polars: compat_level=pl.CompatLevel.oldest(); pyarrow: cast)",
                   "column \"%.*s\" is a %s: this Arrow type is not read", (int)lmin(n, 100), s, names[w - WIRES]);
}

/* The type of a field, and the nodes and buffers of its tree; *budget: fields that may still follow. */
static err read_type(struct arrow_message *m, const struct flat_table *field, i32 depth, i64 *budget, struct arrow_type *out) {
    const i64 w = flat_number(field, FIELD_TYPE_KIND, 1, WIRE_NONE);
    struct flat_table t, child;
    i64 at = 0, n = 0;
    if (--*budget < 0 || depth > ARROW_DEPTH) return arrow_damaged(m, "the schema has too many fields");
    if (w >= WIRES && w < WIRES + 5) return refuse_view(m, field, w);
    if (w <= WIRE_NONE || w >= WIRES || !flat_child(field, FIELD_TYPE, &t) || m->flat.bad)
        return arrow_damaged(m, "a field of a type that this version does not know");
    *out = (struct arrow_type){.nodes = 1, .buffers = wires[w].buffers};
    snprintf(out->name, sizeof out->name, "%s", wires[w].name);
    if (w == WIRE_UNION) out->buffers += flat_number(&t, PART_FIRST, 2, 0) == 1; /* dense: offsets beside the types */
    type_cells((enum wire)w, &t, out);
    if (flat_child(field, FIELD_DICTIONARY, &child)) { /* its cells are numbers, the children belong to the dictionary */
        out->buffers = 2;
        return 0;
    }
    if (!flat_vector(field, FIELD_CHILDREN, 4, &at, &n)) return m->flat.bad ? arrow_damaged(m, "the schema lies outside") : 0;
    if (n > 0 && out->kind != ARROW_OTHER) return arrow_damaged(m, "a column of numbers or text has children");
    for (i64 i = 0; i < n; i++) {
        struct arrow_type inner;
        if (!flat_table_at(&m->flat, at + 4 * i, &child)) return arrow_damaged(m, "a field lies outside");
        TRY(read_type(m, &child, depth + 1, budget, &inner));
        out->nodes += inner.nodes;
        out->buffers += inner.buffers;
    }
    return 0;
}

static void read_dictionary(const struct flat_table *field, struct arrow_field *f) {
    struct flat_table d, index;
    f->coded = flat_child(field, FIELD_DICTIONARY, &d);
    if (!f->coded) return;
    f->dictionary = flat_number(&d, DICTIONARY_ID, 8, 0);
    f->index = (struct arrow_type){.kind = ARROW_INT, .bytes = 4, .sign = true, .nodes = 1, .buffers = 2};
    if (!flat_child(&d, DICTIONARY_INDEX, &index)) return;
    f->index.kind = ARROW_OTHER;
    type_cells(WIRE_INT, &index, &f->index);
    if (f->index.kind != ARROW_INT) f->type.kind = ARROW_OTHER;
}

bool arrow_clean_name(const char *s, i64 n, char to[ARROW_NAME]) {
    i64 i = 0;
    while (i < n && s[i]) {
        const i32 bytes = str_utf8(s + i, (size_t)(n - i));
        if (bytes == 0) return false;
        if (i + bytes >= ARROW_NAME) break;
        for (i32 k = 0; k < bytes; k++) to[i + k] = (u8)s[i + k] < 32 ? ' ' : s[i + k];
        i += bytes;
    }
    to[i] = 0;
    return i == n || s[i];
}

static err read_field(struct arrow *a, struct arrow_message *m, i64 at, i32 i, i64 *budget, struct arrow_field *f) {
    struct flat_table t;
    const char *s = "";
    char name[ARROW_NAME + 32];
    i64 n = 0;
    if (!flat_table_at(&m->flat, at, &t)) return arrow_damaged(m, "a field lies outside");
    flat_text(&t, FIELD_NAME, &s, &n);
    if (!arrow_clean_name(s, n, name)) return arrow_damaged(m, "the name of a column is not UTF-8");
    if (!name[0]) snprintf(name, sizeof name, "column%d", i + 1);
    TRY(arena_keep(&a->memory, &f->name, name));
    TRY(read_type(m, &t, 0, budget, &f->type));
    read_dictionary(&t, f);
    return m->flat.bad ? arrow_damaged(m, "a field lies outside") : 0;
}

static err read_fields(struct arrow *a, struct arrow_message *m, i32 *nfield, struct arrow_field **field) {
    i64 at, n, budget = ARROW_FIELDS_MAX;
    if (flat_number(&m->header, SCHEMA_ENDIAN, 2, 0) != 0)
        return FAIL_AT(E202, m->path, "write the file on a little-endian machine", "the Arrow stream is big-endian");
    if (!flat_vector(&m->header, SCHEMA_FIELDS, 4, &at, &n) || n == 0) return arrow_damaged(m, "the schema has no fields");
    if (n > ARROW_FIELDS_MAX) return arrow_damaged(m, "the schema has too many fields");
    ARENA_NEW(&a->memory, *field, n);
    for (i64 i = 0; i < n; i++) TRY(read_field(a, m, at + 4 * i, (i32)i, &budget, *field + i));
    *nfield = (i32)n;
    return 0;
}

/* Marks what the user assigned. */
static err mark(struct arrow *a) {
    const struct {
        const char *list, *flag;
        enum arrow_role role;
    } lists[] = {{a->o->cat, "--cat", AS_WORDS},
                 {a->o->id, "--id", AS_WORDS},
                 {a->o->time, "--time", AS_TIME},
                 {a->o->ignore, "--ignore", AS_NOTHING}};
    const char **names;
    ARENA_NEW(&a->memory, names, a->nfield);
    for (i32 f = 0; f < a->nfield; f++) names[f] = a->field[f].name;
    for (size_t i = 0; i < COUNT(lists); i++) {
        const char *list = lists[i].list;
        char name[256];
        while (name_next(&list, name)) {
            i32 f = vocab_find(&a->index, name, (i64)strlen(name));
            if (f < 0) TRY(name_need(a->t->path, names, a->nfield, name, lists[i].flag, &f));
            a->field[f].role = lists[i].role;
        }
    }
    return 0;
}

err arrow_refuse(const struct arrow *a, const struct arrow_field *f, const char *why) {
    char fix[MEND_PATH + 80], name[MEND_PATH];
    snprintf(fix, sizeof fix, "--ignore %s   or   write it as numbers, text or timestamps", mend_word(f->name, name));
    return FAIL_AT(E214, a->t->path, fix, "column \"%s\" is a %s%s; %s", f->name, f->coded ? "dictionary of " : "", f->type.name,
                   why);
}

err arrow_define(struct arrow *a) {
    for (i32 i = 0; i < a->nfield; i++) {
        struct arrow_field *f = &a->field[i];
        TRY(name_new(&a->index, &a->memory, i, f->name, &f->name));
        a->nodes += f->type.nodes;
        a->buffers += f->type.buffers;
    }
    TRY(mark(a));
    for (i32 i = 0; i < a->nfield; i++) {
        struct arrow_field *f = &a->field[i];
        f->col = f->role == AS_NOTHING ? -1 : a->t->ncol++;
        const bool time = f->type.kind == ARROW_TIME || f->type.kind == ARROW_DATE;
        if (f->col < 0) continue;
        if (f->type.kind == ARROW_OTHER || (f->coded && f->type.kind != ARROW_TEXT))
            return arrow_refuse(a, f, "numbers, text, dates and timestamps can be read");
        if (f->role == AS_WORDS && time) return arrow_refuse(a, f, "it cannot be read as a category");
    }
    return a->t->ncol ? 0 : FAIL_AT(E201, a->t->path, NULL, "--ignore leaves no column");
}

static bool same_type(const struct arrow_field *x, const struct arrow_field *y) {
    const struct arrow_type *a = &x->type, *b = &y->type;
    const bool cells = a->kind == b->kind && a->bytes == b->bytes && a->sign == b->sign && a->scale == b->scale;
    const bool zone = a->zoned == b->zoned && a->zone == b->zone && !strcmp(a->zone_name, b->zone_name);
    const bool times = a->per_second == b->per_second && zone;
    const bool place = a->nodes == b->nodes && a->buffers == b->buffers && !strcmp(a->name, b->name);
    return cells && times && place && x->coded == y->coded && x->index.bytes == y->index.bytes && x->index.sign == y->index.sign;
}

/* The fields of a later part against those of the first. */
static err agree(struct arrow *a, struct arrow_message *m, i32 n, struct arrow_field *field) {
    static const char fix[] = "parts of one table, with the same columns in the same order";
    const char *first = a->part[0].path;
    struct vocab index = {0};
    err e = 0;
    if (n != a->nfield)
        return FAIL_AT(E202, m->path, fix, "%d column%s, but %s has %d", n, n == 1 ? "" : "s", first, a->nfield);
    for (i32 i = 0; i < n && e >= 0; i++) {
        struct arrow_field *was = &a->field[i], *is = &field[i];
        e = name_new(&index, &a->memory, i, is->name, &is->name);
        if (e >= 0 && (strcmp(was->name, is->name) != 0 || !same_type(was, is)))
            e = FAIL_AT(E202, m->path, fix, "column %d is \"%.100s\" (%s), but \"%.100s\" (%s) in %s", i + 1, is->name,
                        is->type.name, was->name, was->type.name, first);
        was->dictionary = is->dictionary; /* numbered for each part */
    }
    vocab_free(&index);
    return e;
}

err arrow_schema(struct arrow *a, struct arrow_message *m, i32 part) {
    struct arrow_field *field = NULL;
    i32 n = 0;
    if (m->header_kind != ARROW_SCHEMA) return arrow_damaged(m, "the stream does not begin with a schema");
    TRY(read_fields(a, m, &n, &field));
    if (part > 0 || a->field) return agree(a, m, n, field);
    a->field = field;
    a->nfield = n;
    return arrow_define(a);
}
