/* frame.c - the reader of frames (frame.h): the columns of Arrow arrays in memory become those of a table.
 *
 * The library that made the arrays is trusted, as the interface requires: buffers hold what length, offset and type say. */
#include <math.h>
#include <string.h>

#include "base/input.h"
#include "data/arrow.h"
#include "data/frame.h"
#include "data/reader.h"

static const i64 ROWS_MOST = INT64_MAX / 64;
enum { VIEW = 16, VIEW_INSIDE = 12 }; /* bytes of a text view, and of a text inside of it */

static bool is(const char *path) { return input_is_memory(path); }

/* ------------------------------------------------------------------ buffers ------------------------------------------------- */

/* A column of a batch: its array, and the first of its cells, since arrays of a larger table share its buffers. */
struct piece {
    const struct ArrowArray *array;
    i64 first;
    struct arrow_message at; /* for messages: the label of the frame, the number of the batch from 1 */
};

static const u8 *buffer(const struct ArrowArray *a, i64 i) { return i < a->n_buffers ? a->buffers[i] : NULL; }

static i64 count_missing(const u8 *valid, i64 first, i64 rows) {
    i64 n = 0;
    for (i64 i = first; i < first + rows; i++) n += !(valid[i >> 3] >> (i & 7) & 1);
    return n;
}

/* Bits from number `first` on, as bits from number 0 on. */
static err bits_from(const u8 *bits, i64 first, i64 rows, struct arrow_room *room, const u8 **out) {
    *out = bits + first / 8;
    if (first % 8 == 0) return 0;
    TRY(arrow_room(room, rows / 8 + 1));
    memset(room->p, 0, (size_t)(rows / 8 + 1));
    for (i64 i = 0; i < rows; i++) room->p[i >> 3] |= (u8)((bits[(first + i) >> 3] >> ((first + i) & 7) & 1) << (i & 7));
    *out = room->p;
    return 0;
}

static err missing_of(struct arrow *a, const struct piece *p, struct arrow_cells *c) {
    const u8 *valid = buffer(p->array, 0);
    if (!valid || p->array->null_count == 0) return 0;
    c->nulls = count_missing(valid, p->first, c->rows);
    return c->nulls ? bits_from(valid, p->first, c->rows, &a->room[0], &c->valid) : 0;
}

/* The cells of a column, in the buffers of its array. */
static err cells_of(struct arrow *a, const struct arrow_type *t, const struct piece *p, i64 rows, struct arrow_cells *c) {
    *c = (struct arrow_cells){.rows = rows, .nulls = t->kind == ARROW_NULL ? rows : 0};
    if (t->kind == ARROW_NULL) return 0;
    TRY(missing_of(a, p, c));
    const u8 *data = buffer(p->array, 1);
    if (!data) return arrow_damaged(&p->at, "a column has no buffer of values");
    if (t->kind == ARROW_BOOL) return bits_from(data, p->first, rows, &a->room[1], &c->data);
    c->data = data + t->bytes * p->first;
    if (t->kind != ARROW_TEXT) return 0;
    c->offset = c->data;
    c->data = buffer(p->array, 2);
    c->bytes = INT64_MAX;
    return 0;
}

/* ------------------------------------------------------------------ words --------------------------------------------------- */

static bool is_view(const struct arrow_type *t) { return t->kind == ARROW_TEXT && t->bytes == 0; }

/* Word i of an array of text views: | length | the text, or: its first 4 bytes | number of its buffer | offset there |. */
static void view_at(const struct ArrowArray *array, i64 i, const char **s, i64 *n) {
    const u8 *view = buffer(array, 1) + VIEW * i;
    i32 length, where[2];
    memcpy(&length, view, 4);
    memcpy(where, view + 8, 8);
    *n = length;
    *s = length <= VIEW_INSIDE ? (const char *)view + 4 : (const char *)buffer(array, 2 + where[0]) + where[1];
}

static err put_views(struct arrow *a, struct arrow_field *f, const struct piece *p, i64 rows) {
    struct arrow_cells c = {.rows = rows};
    TRY(missing_of(a, p, &c));
    for (i64 i = 0; i < rows; i++) {
        const char *s;
        i64 n;
        if (!arrow_valid(&c, i)) {
            TRY(arrow_put_missing(a, f, a->row + i));
            continue;
        }
        view_at(p->array, p->first + i, &s, &n);
        TRY(arrow_put_word(a, f, a->row + i, s, n));
    }
    return 0;
}

/* The words of a dictionary, for the batch whose cells name them. */
static err take_dictionary(struct arrow *a, struct arrow_field *f, const struct piece *p) {
    const struct ArrowArray *d = p->array->dictionary;
    struct arrow_cells c = {0};
    if (!d) return arrow_damaged(&p->at, "a column has no dictionary");
    const struct piece words = {.array = d, .first = d->offset, .at = p->at};
    f->words.n = 0;
    if (is_view(&f->type)) {
        c.rows = d->length;
        TRY(missing_of(a, &words, &c));
    } else if (d->length > 0) TRY(cells_of(a, &f->type, &words, d->length, &c));
    for (i64 i = 0; i < d->length; i++) {
        const char *s = "";
        i64 n = 0;
        if (is_view(&f->type)) view_at(d, words.first + i, &s, &n);
        else if (!arrow_word(&c, &f->type, i, &s, &n)) return arrow_damaged(&p->at, "a word lies outside its buffer");
        TRY(arrow_keep_word(&f->words, s, n, !arrow_valid(&c, i)));
    }
    return 0;
}

/* ------------------------------------------------------------------ the table ----------------------------------------------- */

static struct piece piece_of(const struct arrow *a, const struct ArrowArray *batch, i64 number, i32 field) {
    const struct ArrowArray *column = batch->children[field];
    return (struct piece){column, batch->offset + column->offset, {.path = a->t->path, .number = number}};
}

/* True if the table can read the cells where they are: numbers of 64 bits, all in one batch, none of them to be replaced. */
static bool can_lend(const struct arrow *a, const struct frame *frame, i32 field) {
    const struct arrow_field *f = &a->field[field];
    if (frame->n != 1 || f->col < 0 || f->role == AS_WORDS || a->na.nnumber > 0) return false;
    const struct ArrowArray *column = frame->array[0].children[field];
    const bool whole = column->null_count == 0 || !buffer(column, 0);
    return f->type.kind == ARROW_FLOAT && f->type.bytes == 8 && whole && (uintptr_t)buffer(column, 1) % sizeof(f64) == 0;
}

static void lend(struct arrow *a, const struct arrow_field *f, const struct piece *p) {
    struct column *c = &a->t->col[f->col];
    c->lent = true;
    c->number = (f64 *)(uintptr_t)buffer(p->array, 1) + p->first; /* column.lent: nobody writes there */
    for (i64 i = 0; i < a->t->nrow; i++)
        if (isnan(c->number[i]) && c->missing++ == 0) c->first_missing_line = table_line(a->t, i);
}

static err put_column(struct arrow *a, struct arrow_field *f, const struct piece *p, i64 rows) {
    struct arrow_cells c;
    if (f->lent) {
        lend(a, f, p);
        return 0;
    }
    if (f->coded) TRY(take_dictionary(a, f, p));
    else if (is_view(&f->type)) return put_views(a, f, p, rows);
    TRY(cells_of(a, arrow_stored(f), p, rows, &c));
    return arrow_put(a, f, &p->at, &c);
}

static err put_batch(struct arrow *a, const struct ArrowArray *batch, i64 number) {
    for (i32 i = 0; i < a->nfield; i++) {
        if (a->field[i].col < 0) continue;
        const struct piece p = piece_of(a, batch, number, i);
        TRY(put_column(a, &a->field[i], &p, batch->length));
    }
    a->row += batch->length;
    return 0;
}

/* Buffers that the type needs; the bytes in them cannot be checked. */
static err check_buffers(const struct arrow_field *f, const struct ArrowArray *column, const struct arrow_message *at) {
    const struct arrow_type *t = arrow_stored(f);
    const i64 need = t->kind == ARROW_NULL ? 0 : t->kind == ARROW_TEXT && !is_view(t) ? 3 : 2;
    if (need > 0 && (column->n_buffers < need || !column->buffers || !column->buffers[1]))
        return arrow_damaged(at, "a column has no buffer of values");
    return f->coded && !column->dictionary ? arrow_damaged(at, "a column has no dictionary") : 0;
}

/* The arrays must be those of the schema before anything is read. */
static err check_batch(const struct arrow *a, const struct ArrowArray *batch, i64 number) {
    const struct arrow_message at = {.path = a->t->path, .number = number};
    if (batch->n_children != a->nfield) return arrow_damaged(&at, "it has another number of columns than the schema");
    const i64 first = batch->offset, rows = batch->length;
    if (!batch->children || rows < 0 || first < 0 || first > ROWS_MOST || rows > ROWS_MOST)
        return arrow_damaged(&at, "its number of rows is impossible");
    for (i32 i = 0; i < a->nfield; i++) {
        const struct ArrowArray *column = batch->children[i];
        if (!column || column->length < first + rows)
            return arrow_damaged(&at, "a column has another number of rows than its batch");
        if (column->offset < 0 || column->offset > ROWS_MOST) return arrow_damaged(&at, "a column begins at an impossible place");
        if (a->field[i].col >= 0 && rows > 0) TRY(check_buffers(&a->field[i], column, &at));
    }
    return 0;
}

static err read_frame(struct arrow *a, const struct frame *frame) {
    struct table *t = a->t;
    TRY(frame_fields(a, &frame->schema));
    for (i64 k = 0; k < frame->n; k++) {
        TRY(check_batch(a, &frame->array[k], k + 1));
        if (frame->array[k].length > INT64_MAX / 32 - t->nrow) return FAIL_AT(E601, t->path, NULL, "too many rows");
        t->nrow += frame->array[k].length;
    }
    if (t->nrow == 0) return FAIL_AT(E201, t->path, NULL, "the table has columns only, no rows");
    for (i32 i = 0; i < a->nfield; i++) a->field[i].lent = can_lend(a, frame, i);
    TRY(arrow_columns(a));
    for (i64 k = 0; k < frame->n; k++) TRY(put_batch(a, &frame->array[k], k + 1));
    return 0;
}

static err read(const char *path, const struct read_options *o, struct table **out) {
    struct arrow a;
    struct frame *frame = frame_hold(path);
    if (!frame)
        return FAIL_AT(E701, input_label(path), "resume it in the program that has the table   or   stretto report MODEL FILE",
                       "this table was in the memory of a program, and is no more");
    err e = arrow_open(&a, path, o, NULL, "a table in memory");
    if (e >= 0) a.t->frame = frame;
    else frame_drop(frame);
    if (e >= 0) e = read_frame(&a, frame);
    return arrow_close(&a, e, out);
}

extern const struct reader reader_frame;
const struct reader reader_frame = {
    .name = "frame",
    .help = "tables of other libraries in memory, by the Arrow C stream interface",
    .is = is,
    .read = read,
};
