/* arrow_out.c - see arrow_out.h. Text columns have 64-bit offsets; NaN of a number stays NaN. */
#include "api/arrow_out.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/time.h"

enum { FORMAT = 16, BUFFERS = 3, FIRST_ROWS = 64 };

struct arrow_column {
    char *name;
    char format[FORMAT]; /* "g" f64, "l" i64, "U" text, "tss:+01:00" times; "" = the first row tells */
    union {
        f64 *number;
        i64 *count;
        i64 *end; /* of text: [row + 1], first 0 */
    } of;
    char *text;
    i64 fill, room;
};

/* ------------------------------------------------------------------ collecting ---------------------------------------------- */

static void zone_format(const struct prediction_column *c, char out[FORMAT]) {
    char zone[8] = "UTC";
    if (c->zone != 0) time_zone_text(c->zone, zone);
    snprintf(out, FORMAT, "tss:%s", c->zoned ? zone : "");
}

err arrow_out_head(void *self, i32 ncol, const struct prediction_column *column) {
    struct arrow_out *o = self;
    NEW(o->column, ncol);
    o->ncol = ncol;
    for (i32 i = 0; i < ncol; i++) {
        struct arrow_column *c = &o->column[i];
        if (!(c->name = mem_strdup(column[i].name))) return -E601;
        if (!column[i].value && column[i].key == KEY_TIME) zone_format(&column[i], c->format);
        else if (!column[i].value && column[i].key == KEY_COUNT) snprintf(c->format, FORMAT, "l");
    }
    return 0;
}

static err grow(struct arrow_out *o) {
    const i64 cap = o->cap ? 2 * o->cap : FIRST_ROWS;
    for (i32 i = 0; i < o->ncol; i++) {
        i64 *more = mem_realloc(o->column[i].of.count, (size_t)(cap + 1) * sizeof *more);
        if (!more) return -E601;
        if (!o->cap) more[0] = 0;
        o->column[i].of.count = more;
    }
    o->cap = cap;
    return 0;
}

static err put_text(struct arrow_column *c, i64 row, const char *s) {
    const i64 n = (i64)strlen(s);
    if (c->fill + n > c->room) {
        const i64 room = 2 * c->room + n + FIRST_ROWS;
        char *more = mem_realloc(c->text, (size_t)room);
        if (!more) return -E601;
        c->text = more;
        c->room = room;
    }
    memcpy(c->text + c->fill, s, (size_t)n);
    c->fill += n;
    c->of.end[row + 1] = c->fill;
    return 0;
}

err arrow_out_row(void *self, i32 ncol, const struct prediction_cell *cell) {
    static const struct prediction_column line = {.name = "line", .value = true};
    struct arrow_out *o = self;
    if (o->lines && !o->column) TRY(arrow_out_head(o, 1, &line));
    if (o->nrow == o->cap) TRY(grow(o));
    for (i32 i = 0; i < ncol; i++) {
        struct arrow_column *c = &o->column[i];
        if (!c->format[0]) snprintf(c->format, FORMAT, cell[i].text ? "U" : "g");
        if (c->format[0] == 'U') TRY(put_text(c, o->nrow, cell[i].text ? cell[i].text : ""));
        else if (c->format[0] == 'g') c->of.number[o->nrow] = cell[i].number;
        else c->of.count[o->nrow] = cell[i].count;
    }
    o->nrow++;
    return 0;
}

static void free_column(struct arrow_column *c) {
    mem_free(c->name);
    mem_free(c->of.count);
    mem_free(c->text);
}

void arrow_out_free(struct arrow_out *o) {
    for (i32 i = 0; i < o->ncol; i++) free_column(&o->column[i]);
    mem_free(o->column);
    *o = (struct arrow_out){0};
}

/* ------------------------------------------------------------------ giving -------------------------------------------------- */

/* A consumer may move a child out of its parent, so each child owns its memory; the parent owns the structs of its children. */

static void release_array(struct ArrowArray *a) {
    for (i64 i = 0; i < a->n_children; i++) {
        if (a->children[i] && a->children[i]->release) a->children[i]->release(a->children[i]);
        mem_free(a->children[i]);
    }
    mem_free(a->children);
    if (a->private_data) free_column(a->private_data);
    mem_free(a->private_data);
    mem_free((void *)(uintptr_t)a->buffers);
    a->release = NULL;
}

static void release_schema(struct ArrowSchema *s) {
    for (i64 i = 0; i < s->n_children; i++) {
        if (s->children[i] && s->children[i]->release) s->children[i]->release(s->children[i]);
        mem_free(s->children[i]);
    }
    mem_free(s->children);
    mem_free((void *)(uintptr_t)s->name);
    mem_free((void *)(uintptr_t)s->format);
    s->release = NULL;
}

/* Names and types; strings are copies, so that array and schema can be released in any order. */
static err name_schema(struct ArrowSchema *s, const char *name, const char *format, i64 nchild) {
    *s = (struct ArrowSchema){.release = release_schema};
    s->name = mem_strdup(name);
    s->format = mem_strdup(format);
    if (!s->name || !s->format) return -E601;
    NEW(s->children, nchild);
    s->n_children = nchild;
    return 0;
}

/* Buffers of an array: no bitmap of missing cells, then the cells, or offsets and text. Takes the memory of the column. */
static err fill_array(struct ArrowArray *a, struct arrow_column *c, i64 rows) {
    struct arrow_column *own;
    const bool text = c->format[0] == 'U';
    *a = (struct ArrowArray){.length = rows, .n_buffers = text ? 3 : 2, .release = release_array};
    NEW(a->buffers, BUFFERS);
    NEW(own, 1);
    *own = *c;
    *c = (struct arrow_column){0};
    a->private_data = own;
    a->buffers[1] = own->of.count;
    a->buffers[2] = own->text ? own->text : "";
    return 0;
}

static err give(struct arrow_out *o, struct ArrowArray *array, struct ArrowSchema *schema) {
    *array = (struct ArrowArray){.length = o->nrow, .n_buffers = 1, .release = release_array};
    TRY(name_schema(schema, "", "+s", o->ncol));
    NEW(array->buffers, 1);
    NEW(array->children, o->ncol);
    array->n_children = o->ncol;
    for (i32 i = 0; i < o->ncol; i++) {
        struct arrow_column *c = &o->column[i];
        NEW(schema->children[i], 1);
        NEW(array->children[i], 1);
        TRY(name_schema(schema->children[i], c->name, c->format[0] ? c->format : "g", 0));
        TRY(fill_array(array->children[i], c, o->nrow));
    }
    return 0;
}

err arrow_out_give(struct arrow_out *o, struct ArrowArray *array, struct ArrowSchema *schema) {
    *schema = (struct ArrowSchema){0};
    err e = o->cap ? 0 : grow(o); /* even the buffers of no rows exist */
    if (e >= 0) e = give(o, array, schema);
    else *array = (struct ArrowArray){0};
    arrow_out_free(o);
    if (e >= 0) return 0;
    if (array->release) array->release(array);
    if (schema->release) schema->release(schema);
    return e;
}
