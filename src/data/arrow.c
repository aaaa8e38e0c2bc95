/* arrow.c - the reader of Arrow tables: finds the parts, walks over their messages twice (arrow.h). */
#include <string.h>

#include "data/arrow.h"
#include "data/folder.h"
#include "data/reader.h"

enum { HEAD = 8 };

/* ------------------------------------------------------------------ the parts ----------------------------------------------- */

static const char *const endings[] = {".arrows", ".arrow", NULL}; /* part-00000.arrows, part-00001.arrows */

static bool is(const char *path) {
    const struct err_record before = *err_last();
    struct file_in f;
    char head[HEAD];
    i64 first;
    if (folder_is(path)) return folder_has(path, endings);
    if (file_open(path, &f) < 0) {
        err_put(&before); /* the next reader reports it */
        return false;
    }
    const bool mine = f.size >= HEAD && file_read_at(&f, 0, head, HEAD) >= 0 && arrow_head(head, HEAD, &first);
    file_close(&f);
    return mine;
}

/* ------------------------------------------------------------------ the walks ----------------------------------------------- */

/* The first walk: every column has the bytes that its rows need; adds the rows. */
static err count_batch(struct arrow *a, struct arrow_message *m, i64 *rows) {
    struct arrow_batch b;
    i64 node = 0, buffer = 0;
    TRY(arrow_batch(m, &m->header, a->nodes, a->buffers, &b));
    for (i32 i = 0; i < a->nfield; i++) {
        const struct arrow_field *f = &a->field[i];
        if (f->col >= 0) TRY(arrow_check(&b, arrow_stored(f), node, buffer));
        node += f->type.nodes;
        buffer += f->type.buffers;
    }
    if (b.rows > INT64_MAX / 32 - *rows) return arrow_damaged(m, "too many rows");
    *rows += b.rows;
    return 0;
}

/* The second walk: the cells of every column. */
static err read_batch(struct arrow *a, struct arrow_message *m) {
    struct arrow_batch b;
    struct arrow_cells c;
    i64 node = 0, buffer = 0;
    TRY(arrow_batch(m, &m->header, a->nodes, a->buffers, &b));
    if (b.rows > a->t->nrow - a->row)
        return arrow_changed(m->path);
    for (i32 i = 0; i < a->nfield; i++) {
        struct arrow_field *f = &a->field[i];
        if (f->col >= 0) {
            TRY(arrow_check(&b, arrow_stored(f), node, buffer));
            TRY(arrow_load(a, &b, arrow_stored(f), node, buffer, &c));
            if (c.rows > 0) TRY(arrow_put(a, f, m, &c));
        }
        node += f->type.nodes;
        buffer += f->type.buffers;
    }
    a->row += b.rows;
    return 0;
}

static err walk_messages(struct arrow *a, struct arrow_message *m, i32 part, bool cells) {
    TRY(arrow_next(a, m));
    TRY(arrow_schema(a, m, part));
    for (i32 i = 0; i < a->nfield; i++) a->field[i].words.n = 0; /* dictionaries belong to their part */
    for (;;) {
        TRY(arrow_next(a, m));
        if (m->next < 0) return 0;
        if (m->header_kind == ARROW_DICTIONARY) TRY(cells ? arrow_dictionary(a, m) : 0);
        else if (m->header_kind != ARROW_BATCH) return arrow_damaged(m, "it is neither a record batch nor a dictionary");
        else TRY(cells ? read_batch(a, m) : count_batch(a, m, &a->part[part].rows));
    }
}

static err walk_part(struct arrow *a, i32 part, bool cells) {
    struct arrow_message m = {.path = a->part[part].path};
    struct file_in f;
    char head[HEAD];
    TRY(file_open(m.path, &f));
    m.file = &f;
    m.path = f.path;
    err e = f.size < HEAD ? arrow_damaged(&m, "the file is empty or cut off") : file_read_at(&f, 0, head, HEAD);
    if (e >= 0 && !arrow_head(head, HEAD, &m.next)) e = arrow_damaged(&m, "the file does not begin as one");
    if (e >= 0) e = walk_messages(a, &m, part, cells);
    file_close(&f);
    return e;
}

/* A column whose cells take space must bound the number of rows. */
static err need_values(const struct arrow *a) {
    for (i32 i = 0; i < a->nfield; i++)
        if (a->field[i].col >= 0 && a->field[i].type.kind != ARROW_NULL) return 0;
    return FAIL_AT(E201, a->t->path, NULL, "no column holds a value");
}

static err read_parts(struct arrow *a) {
    struct table *t = a->t;
    for (i32 k = 0; k < a->npart; k++) {
        a->part[k].above = t->nrow;
        TRY(walk_part(a, k, false));
        t->nrow += a->part[k].rows;
    }
    TRY(need_values(a));
    if (t->nrow == 0) return FAIL_AT(E201, t->path, NULL, "the Arrow table has a schema only, no rows");
    TRY(arrow_name_parts(a));
    TRY(arrow_columns(a));
    for (i32 k = 0; k < a->npart; k++) TRY(walk_part(a, k, true));
    return 0;
}

static err read(const char *path, const struct read_options *o, struct table **out) {
    struct arrow a;
    err e = arrow_open(&a, path, o, endings, "an Arrow table");
    if (e >= 0) e = read_parts(&a);
    return arrow_close(&a, e, out);
}

extern const struct reader reader_arrow;
const struct reader reader_arrow = {
    .name = "arrow",
    .help = "Arrow IPC streams and files, zstd too; a folder of part-*.arrows",
    .is = is,
    .read = read,
};
