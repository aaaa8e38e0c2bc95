/* csv.c - the reader of text tables: runs the stages that csv.h shows. */
#include <string.h>

#include "base/input.h"
#include "base/spill.h"
#include "data/csv.h"
#include "data/folder.h"
#include "data/reader.h"

enum { THREADS_MAX = 64 };

static void drop_words(struct csv *c) {
    for (i64 i = 0; c->chunk && i < c->nchunk; i++) {
        for (i32 w = 0; c->chunk[i].word && w < c->ntext; w++) vocab_free(&c->chunk[i].word[w]);
        mem_free(c->chunk[i].word); /* threads allocated it, so it is not in the arena */
        c->chunk[i].word = NULL;
    }
    for (i32 w = 0; c->vocab && w < c->ntext; w++) vocab_free(&c->vocab[w]);
    c->vocab = NULL;
}

static void csv_free(struct csv *c) {
    drop_words(c);
    vocab_free(&c->index);
    for (i32 t = 0; c->buffer && t < c->nthread; t++) csv_buffer_free(&c->buffer[t]);
    csv_close_parts(&c->src); /* the list of files lies in the arena */
    mem_free(c->src.mem);
    file_close(&c->src.file);
    arena_free(&c->memory);
}

/* Creates the table columns from the field kinds and allocates their cells. */
static err make_columns(struct csv *c) {
    struct table *t = c->t;
    t->ncol = c->ntext = 0;
    for (i32 f = 0; f < c->nfield; f++) {
        c->field[f].col = c->field[f].kind == FIELD_SKIP ? -1 : t->ncol++;
        if (c->field[f].kind == FIELD_TEXT) c->field[f].text = c->ntext++;
    }
    if (!t->col) NEW(t->col, t->ncol);
    for (i32 f = 0; f < c->nfield; f++) {
        struct csv_field *field = &c->field[f];
        if (field->kind == FIELD_SKIP) continue;
        struct column *col = &t->col[field->col];
        col->name = c->name[f];
        col->field = f + 1;
        col->missing = col->first_missing_line = 0;
        col->missing_text = NULL;
        if (field->kind == FIELD_NUMBER) {
            col->type = COL_NUMBER;
            if (!col->number) NEW_SPILL(col->number, t->nrow);
        } else if (field->kind == FIELD_TIME) {
            col->type = COL_TIME;
            col->order = field->order;
            col->by_layout = field->time.kind == TIME_CUSTOM;
            if (!col->time) NEW_SPILL(col->time, t->nrow);
            if (!col->offset && field->zoned) NEW_SPILL(col->offset, t->nrow);
        } else {
            col->type = COL_CATEGORY;
            mem_free(col->number); /* earlier typed as numbers */
            col->number = NULL;
            if (!col->code) NEW_SPILL(col->code, t->nrow);
        }
        if (field->kind == FIELD_NUMBER) field->number = col->number;
        else if (field->kind == FIELD_TIME) field->t = col->time;
        else field->code = col->code;
    }
    return 0;
}

static err make_tallies(struct csv *c) {
    ARENA_NEW(&c->memory, c->tally, c->nthread);
    for (struct csv_tally *t = c->tally; t < c->tally + c->nthread; t++) {
        ARENA_NEW(&c->memory, t->missing, c->t->ncol);
        ARENA_NEW(&c->memory, t->first_missing, c->t->ncol);
        ARENA_NEW(&c->memory, t->bad, c->t->ncol);
        ARENA_NEW(&c->memory, t->missing_text, c->t->ncol);
    }
    return 0;
}

/* Allocates the line number of each row if rows and lines differ. */
static err make_lines(struct csv *c) {
    bool uneven = c->data_line != 1 + c->t->has_header;
    for (i64 i = 0; i < c->nchunk; i++) uneven |= c->chunk[i].uneven;
    if (uneven && !c->t->line) NEW_SPILL(c->t->line, c->t->nrow);
    return 0;
}

/* Allocates columns, tallies and vocabularies for t->nrow rows. */
static err make_room(struct csv *c) {
    drop_words(c);
    TRY(make_columns(c));
    TRY(make_tallies(c));
    ARENA_NEW(&c->memory, c->vocab, c->ntext);
    return 0;
}

/* Tries the single-pass reader (csv_once.c). */
static err try_once(struct csv *c, bool *done) {
    i64 rows;
    *done = false;
    if (!csv_once_guess(c, &rows)) return 0;
    c->t->nrow = rows;
    TRY(make_room(c));
    TRY(csv_once(c, rows, done));
    if (*done) return 0;
    drop_words(c);
    table_drop_columns(c->t);
    return csv_cut(c);
}

static err read_text(struct csv *c) {
    c->nthread = imax(1, imin(c->o->threads, THREADS_MAX));
    TRY(csv_sniff(c));
    ARENA_NEW(&c->memory, c->buffer, c->nthread);
    TRY(csv_cut(c));
    bool parsed, again = true;
    TRY(try_once(c, &parsed));
    if (!parsed) TRY(csv_scan(c));
    if (c->t->nrow == 0) return FAIL_AT(E201, c->src.name, NULL, "the file holds a header only, no rows");
    if (!parsed) TRY(make_lines(c));
    while (again) {
        if (!parsed) TRY(make_room(c));
        if (!parsed) TRY(csv_parse(c));
        TRY(csv_report(c, &again));
        parsed = false;
    }
    if (c->src.npart) TRY(csv_name_parts(c));
    for (i32 i = 0; i < c->t->ncol; i++)
        if (c->t->col[i].offset) TRY(table_settle_zone(c->t, &c->t->col[i]));
    return 0;
}

static err read(const char *path, const struct read_options *o, struct table **out) {
    struct read_options own = *o;
    struct table *t;
    NEW(t, 1);
    const char *slash = strrchr(path, '/');
    const char *name = strlen(path) > 120 && slash ? slash + 1 : input_label(path);
    struct csv c = {.o = &own, .t = t, .src = {.path = path, .name = name}};
    c.src.file.fd = -1;
    err e = arena_keep(&t->names, &t->path, input_label(path));
    if (e >= 0) e = folder_is(path) ? csv_open_parts(&c, &own) : csv_open(&c.src);
    if (e >= 0) e = read_text(&c);
    csv_free(&c);
    if (e < 0) table_free(t);
    else *out = t;
    return e;
}

/* All that other readers left, for an error that says what is wrong. */
static bool is(const char *path) { return !folder_is(path) || folder_has(path, csv_endings); }

extern const struct reader reader_csv;
const struct reader reader_csv = {
    .name = "csv",
    .help = "text tables: comma, semicolon, tab or pipe; .gz, .zst; a folder of them",
    .is = is,
    .read = read,
};
