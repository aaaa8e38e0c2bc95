/* parquet_meta.c - the metadata at the end of a Parquet file: columns, row groups, and where their pages lie. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/parquet.h"
#include "data/thrift.h"

enum { TAIL = 8, META_MAX = 256 << 20, NAME_MOST = 255 };
enum { REQUIRED, OPTIONAL, REPEATED };
/* The logical types, and the older converted ones. */
enum {
    LOGIC_STRING = 1,
    LOGIC_ENUM = 4,
    LOGIC_DECIMAL,
    LOGIC_DATE,
    LOGIC_TIME,
    LOGIC_STAMP,
    LOGIC_INTEGER = 10,
    LOGIC_NULL,
    LOGIC_JSON
};
enum {
    OLD_UTF8 = 0,
    OLD_ENUM = 4,
    OLD_DECIMAL,
    OLD_DATE,
    OLD_TIME_MS,
    OLD_TIME_US,
    OLD_STAMP_MS,
    OLD_STAMP_US,
    OLD_UINT8 = 11,
    OLD_UINT64 = 14,
    OLD_INT64 = 18,
    OLD_JSON
};

/* One line of the schema: a column, or a group of them. */
struct element {
    i64 type, length, repetition, children, old, scale;
    i64 logic; /* 0 = none */
    i64 unit;  /* of LOGIC_STAMP: 1 ms, 2 us, 3 ns */
    bool utc;
    bool is_signed;
    const char *name;
    i64 name_n;
};

err parquet_damaged(const char *path, const char *why) {
    return FAIL_AT(E202, path, "write the file again", "the Parquet file is damaged or cut off: %s", why);
}

/* ------------------------------------------------------------------ the schema ---------------------------------------------- */

static void read_unit(struct thrift *t, struct element *e) {
    struct thrift_field f = {0};
    while (thrift_next(t, &f)) {
        e->unit = f.id;
        thrift_skip(t, &f);
    }
}

/* The parts of a decimal, a timestamp or an integer. */
static void read_logic_parts(struct thrift *t, struct element *e) {
    struct thrift_field f = {0};
    while (thrift_next(t, &f)) {
        if (e->logic == LOGIC_DECIMAL && f.id == 1)
            e->scale = thrift_whole(t, &f);
        else if (e->logic == LOGIC_STAMP && f.id == 1)
            e->utc = thrift_whole(t, &f) != 0;
        else if (e->logic == LOGIC_STAMP && f.id == 2 && thrift_struct(t, &f))
            read_unit(t, e);
        else if (e->logic == LOGIC_INTEGER && f.id == 2)
            e->is_signed = thrift_whole(t, &f) != 0;
        else
            thrift_skip(t, &f);
    }
}

static void read_logic(struct thrift *t, struct element *e) {
    struct thrift_field f = {0};
    while (thrift_next(t, &f)) {
        e->logic = f.id;
        if (thrift_struct(t, &f)) read_logic_parts(t, e);
    }
}

static void read_element(struct thrift *t, struct element *e) {
    struct thrift_field f = {0};
    *e = (struct element){.type = -1, .old = -1, .is_signed = true, .name = ""};
    while (thrift_next(t, &f)) {
        switch (f.id) {
            case 1:
                e->type = thrift_whole(t, &f);
                break;
            case 2:
                e->length = thrift_whole(t, &f);
                break;
            case 3:
                e->repetition = thrift_whole(t, &f);
                break;
            case 4:
                thrift_text(t, &f, &e->name, &e->name_n);
                break;
            case 5:
                e->children = thrift_whole(t, &f);
                break;
            case 6:
                e->old = thrift_whole(t, &f);
                break;
            case 7:
                e->scale = thrift_whole(t, &f);
                break;
            case 10:
                if (thrift_struct(t, &f)) read_logic(t, e);
                break;
            default:
                thrift_skip(t, &f);
        }
    }
}

/* Older files have converted types alone. */
static void settle_logic(struct element *e) {
    if (e->logic || e->old < 0) return;
    if (e->old == OLD_UTF8)
        e->logic = LOGIC_STRING;
    else if (e->old == OLD_ENUM || e->old == OLD_JSON)
        e->logic = e->old == OLD_ENUM ? LOGIC_ENUM : LOGIC_JSON;
    else if (e->old == OLD_DECIMAL || e->old == OLD_DATE)
        e->logic = e->old == OLD_DATE ? LOGIC_DATE : LOGIC_DECIMAL;
    else if (e->old == OLD_TIME_MS || e->old == OLD_TIME_US)
        e->logic = LOGIC_TIME;
    else if (e->old == OLD_STAMP_MS || e->old == OLD_STAMP_US)
        e->logic = LOGIC_STAMP, e->unit = e->old - OLD_STAMP_MS + 1, e->utc = true;
    else if (e->old >= OLD_UINT8 && e->old <= OLD_INT64)
        e->logic = LOGIC_INTEGER, e->is_signed = e->old > OLD_UINT64;
}

static struct arrow_type of_whole(const struct element *e) {
    static const i64 per[] = {0, 1000, 1000000, 1000000000};
    struct arrow_type t = {.kind = ARROW_INT, .bytes = e->type == PARQUET_INT32 ? 4 : 8, .sign = e->is_signed};
    snprintf(t.name, sizeof t.name, "%sint%d", e->is_signed ? "" : "u", 8 * t.bytes);
    if (e->logic == LOGIC_DECIMAL) {
        t.kind = e->scale >= -100 && e->scale <= 100 ? ARROW_DECIMAL : ARROW_OTHER;
        t.scale = (i32)e->scale;
        snprintf(t.name, sizeof t.name, "decimal");
    } else if (e->logic == LOGIC_DATE && t.bytes == 4) {
        t.kind = ARROW_DATE;
        t.per_second = -86400;
        snprintf(t.name, sizeof t.name, "date");
    } else if (e->logic == LOGIC_STAMP && t.bytes == 8 && e->unit >= 1 && e->unit <= 3) {
        t.kind = ARROW_TIME;
        t.per_second = per[e->unit];
        t.zoned = e->utc;
        snprintf(t.name, sizeof t.name, "timestamp");
    } else if (e->logic == LOGIC_TIME) {
        t.kind = ARROW_OTHER;
        snprintf(t.name, sizeof t.name, "time of day");
    }
    return t;
}

/* The type of the cells that the values become; ARROW_OTHER = not read. */
static struct arrow_type type_of(const struct element *e) {
    struct arrow_type t = {.kind = ARROW_OTHER, .name = "binary"};
    const bool text = e->logic == LOGIC_STRING || e->logic == LOGIC_ENUM || e->logic == LOGIC_JSON;
    if (e->children > 0 || e->repetition == REPEATED)
        snprintf(t.name, sizeof t.name, "nested column");
    else if (e->logic == LOGIC_NULL)
        t = (struct arrow_type){.kind = ARROW_NULL, .name = "null"};
    else if (e->type == PARQUET_BOOL)
        t = (struct arrow_type){.kind = ARROW_BOOL, .name = "bool"};
    else if (e->type == PARQUET_INT32 || e->type == PARQUET_INT64)
        t = of_whole(e);
    else if (e->type == PARQUET_INT96)
        t = (struct arrow_type){ARROW_TIME, .bytes = 8, .per_second = 1000000, .zoned = true, .name = "timestamp"};
    else if (e->type == PARQUET_FLOAT)
        t = (struct arrow_type){ARROW_FLOAT, .bytes = 4, .name = "float"};
    else if (e->type == PARQUET_DOUBLE)
        t = (struct arrow_type){ARROW_FLOAT, .bytes = 8, .name = "double"};
    else if (e->type == PARQUET_BYTES && text)
        t = (struct arrow_type){ARROW_TEXT, .bytes = 4, .name = "text"};
    else if (e->type == PARQUET_FIXED && e->logic == LOGIC_DECIMAL && e->length > 0 && e->length <= 16 && e->scale >= -100 &&
             e->scale <= 100)
        t = (struct arrow_type){ARROW_DECIMAL, .bytes = 16, .scale = (i32)e->scale, .name = "decimal"};
    return t;
}

static err name_field(struct parquet_meta *m, const struct element *e, i32 i) {
    char name[NAME_MOST + 1];
    i64 n = 0;
    while (n < e->name_n) {
        const i32 bytes = e->name[n] ? str_utf8(e->name + n, (size_t)(e->name_n - n)) : 0;
        if (bytes == 0) return parquet_damaged(m->path, "the name of a column is not UTF-8");
        if (n + bytes > NAME_MOST) break;
        for (i32 k = 0; k < bytes; k++) name[n + k] = (u8)e->name[n + k] < 32 ? ' ' : e->name[n + k];
        n += bytes;
    }
    name[n] = 0;
    if (n == 0) snprintf(name, sizeof name, "column%d", i + 1);
    return arena_keep(&m->memory, &m->field[i].name, name);
}

/* The schema is a list of all groups and columns, depth first: a group is followed by its children. */
static err read_schema(struct parquet_meta *m, struct thrift *t, i64 n) {
    struct element e;
    i64 open = 0; /* elements of the present column that still follow */
    read_element(t, &e);
    if (n < 2 || t->bad || e.children < 1 || e.children >= n) return parquet_damaged(m->path, "its schema has no columns");
    ARENA_NEW(&m->memory, m->field, e.children);
    ARENA_NEW(&m->memory, m->leaf, n);
    const i64 most = e.children;
    for (i64 i = 1; i < n; i++) {
        read_element(t, &e);
        if (t->bad || e.children < 0 || e.children >= n) return parquet_damaged(m->path, "its schema is cut off");
        if (open == 0) {
            if (m->nfield == most) return parquet_damaged(m->path, "its schema has other columns than it says");
            settle_logic(&e);
            m->field[m->nfield].type = type_of(&e);
            TRY(name_field(m, &e, m->nfield++));
            open = 1;
        }
        open += e.children - 1;
        if (e.children > 0) continue;
        if (e.type < 0 || e.type > PARQUET_FIXED) return parquet_damaged(m->path, "a column of no known type");
        m->leaf[m->nleaf++] = (struct parquet_leaf){.field = m->nfield - 1,
                                                    .type = (enum parquet_type)e.type,
                                                    .length = (i32)lmin(e.length, INT32_MAX),
                                                    .optional = e.repetition == OPTIONAL};
    }
    return open == 0 && m->nfield == most ? 0 : parquet_damaged(m->path, "its schema has other columns than it says");
}

/* ------------------------------------------------------------------ row groups ---------------------------------------------- */

static void read_pages_of(struct thrift *t, struct parquet_chunk *c) {
    struct thrift_field f = {0};
    i64 data = -1, dictionary = 0;
    while (thrift_next(t, &f)) {
        switch (f.id) {
            case 4:
                c->codec = (i32)thrift_whole(t, &f);
                break;
            case 5:
                c->values = thrift_whole(t, &f);
                break;
            case 7:
                c->bytes = thrift_whole(t, &f);
                break;
            case 9:
                data = thrift_whole(t, &f);
                break;
            case 11:
                dictionary = thrift_whole(t, &f);
                break;
            default:
                thrift_skip(t, &f);
        }
    }
    c->at = dictionary > 0 && dictionary < data ? dictionary : data;
}

static void read_chunk(struct thrift *t, struct parquet_chunk *c) {
    struct thrift_field f = {0};
    *c = (struct parquet_chunk){.at = -1};
    while (thrift_next(t, &f)) {
        if (f.id == 3 && thrift_struct(t, &f))
            read_pages_of(t, c);
        else
            thrift_skip(t, &f);
    }
}

static err read_group(struct parquet_meta *m, struct thrift *t, i64 size, struct parquet_group *g) {
    struct thrift_field f = {0};
    i64 n = 0;
    ARENA_NEW(&m->memory, g->chunk, m->nleaf);
    while (thrift_next(t, &f)) {
        if (f.id == 1) {
            n = thrift_list(t, &f, THRIFT_STRUCT);
            if (n != m->nleaf) return parquet_damaged(m->path, "a row group has other columns than the schema");
            for (i64 i = 0; i < n && !t->bad; i++) read_chunk(t, &g->chunk[i]);
        } else if (f.id == 3) {
            g->rows = thrift_whole(t, &f);
        } else {
            thrift_skip(t, &f);
        }
    }
    if (t->bad || n != m->nleaf || g->rows < 0) return parquet_damaged(m->path, "a row group is cut off");
    for (i64 i = 0; i < n; i++) {
        const struct parquet_chunk *c = &g->chunk[i];
        if (c->at < 4 || c->bytes < 0 || c->bytes > size || c->at > size - c->bytes)
            return parquet_damaged(m->path, "the pages of a column lie outside the file");
    }
    if (g->rows > INT64_MAX / 64 - m->rows) return parquet_damaged(m->path, "too many rows");
    m->rows += g->rows;
    return 0;
}

/* A key and its value. */
static void read_pair(struct thrift *t, const char **schema, i64 *schema_n) {
    static const char wanted[] = "ARROW:schema";
    struct thrift_field f = {0};
    const char *key = "", *value = "";
    i64 key_n = 0, value_n = 0;
    while (thrift_next(t, &f)) {
        if (f.id == 1)
            thrift_text(t, &f, &key, &key_n);
        else if (f.id == 2)
            thrift_text(t, &f, &value, &value_n);
        else
            thrift_skip(t, &f);
    }
    if (t->bad || key_n != (i64)strlen(wanted) || memcmp(key, wanted, (size_t)key_n) != 0) return;
    *schema = value;
    *schema_n = value_n;
}

static err read_meta(struct parquet_meta *m, struct thrift *t, i64 size) {
    struct thrift_field f = {0};
    const char *schema = NULL;
    i64 schema_n = 0;
    while (thrift_next(t, &f)) {
        if (f.id == 2) {
            const i64 n = thrift_list(t, &f, THRIFT_STRUCT);
            if (m->leaf) return parquet_damaged(m->path, "it has two schemas");
            TRY(read_schema(m, t, n));
        } else if (f.id == 4) {
            const i64 n = thrift_list(t, &f, THRIFT_STRUCT);
            if (!m->leaf || m->group || n * m->nleaf > size) return parquet_damaged(m->path, "its row groups do not fit");
            ARENA_NEW(&m->memory, m->group, n + 1);
            for (; m->ngroup < n; m->ngroup++) TRY(read_group(m, t, size, &m->group[m->ngroup]));
        } else if (f.id == 5) {
            const i64 n = thrift_list(t, &f, THRIFT_STRUCT);
            for (i64 i = 0; i < n && !t->bad; i++) read_pair(t, &schema, &schema_n);
        } else {
            thrift_skip(t, &f);
        }
    }
    if (!t->bad && m->leaf && schema) TRY(parquet_zones(m, schema, schema_n));
    return t->bad || !m->leaf ? parquet_damaged(m->path, "its metadata are cut off") : 0;
}

err parquet_meta_read(const struct file_in *f, struct parquet_meta *m) {
    u8 tail[TAIL], *text;
    u32 n;
    *m = (struct parquet_meta){.path = f->path};
    if (f->size < 12) return parquet_damaged(m->path, "the end is missing");
    TRY(file_read_at(f, f->size - TAIL, tail, TAIL));
    memcpy(&n, tail, 4);
    if (memcmp(tail + 4, "PARE", 4) == 0)
        return FAIL_AT(E202, m->path, "write it without encryption", "the Parquet file is encrypted");
    if (memcmp(tail + 4, "PAR1", 4) != 0) return parquet_damaged(m->path, "the end is missing");
    if (n > META_MAX || n > f->size - 12) return parquet_damaged(m->path, "its metadata are longer than the file");
    NEW(text, n + 1);
    err e = file_read_at(f, f->size - TAIL - n, text, n);
    struct thrift t = {.p = text, .end = text + n};
    if (e >= 0) e = read_meta(m, &t, f->size);
    mem_free(text);
    return e;
}
