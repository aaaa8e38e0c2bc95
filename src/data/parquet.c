/* parquet.c - the reader of Parquet files: finds the parts, reads their metadata, then one row group after the other (parquet.h).
 */
#include "data/parquet.h"

#include <string.h>

#include "base/mem.h"
#include "data/folder.h"
#include "data/reader.h"

enum { HEAD = 4 };

static const char *const endings[] = {".parquet", ".parq", ".pq", NULL};

static bool is(const char *path) {
    const struct err_record before = *err_last();
    struct file_in f;
    char head[HEAD];
    if (folder_is(path)) return folder_has(path, endings);
    if (file_open(path, &f) < 0) {
        err_put(&before); /* the next reader reports it */
        return false;
    }
    const bool mine =
        f.size >= HEAD && file_read_at(&f, 0, head, HEAD) >= 0 && (!memcmp(head, "PAR1", 4) || !memcmp(head, "PARE", 4));
    file_close(&f);
    return mine;
}

struct parquet {
    struct arrow a;
    const char **name; /* [nfield] as the first file has them */
    struct parquet_pages *pages;
};

/* The columns of the first file are those of the table. */
static err define(struct parquet *q, const struct parquet_meta *m) {
    struct arrow *a = &q->a;
    a->nfield = m->nfield;
    ARENA_NEW(&a->memory, a->field, m->nfield);
    ARENA_NEW(&a->memory, q->name, m->nfield);
    for (i32 i = 0; i < m->nfield; i++) {
        struct arrow_field *f = &a->field[i];
        f->type = m->field[i].type;
        f->index = (struct arrow_type){.kind = ARROW_INT, .bytes = 4};
        TRY(arena_keep(&a->memory, &q->name[i], m->field[i].name));
        f->name = q->name[i];
    }
    return arrow_define(a);
}

static bool same_type(const struct arrow_type *x, const struct arrow_type *y) {
    const bool cells = x->kind == y->kind && x->bytes == y->bytes && x->sign == y->sign && x->scale == y->scale;
    const bool zone = x->zoned == y->zoned && !strcmp(x->zone_name, y->zone_name);
    return cells && zone && x->per_second == y->per_second && !strcmp(x->name, y->name);
}

/* The columns of a later file against those of the first. */
static err agree(const struct parquet *q, const struct parquet_meta *m) {
    static const char fix[] = "parts of one table, with the same columns in the same order";
    const struct arrow *a = &q->a;
    const char *first = a->part[0].path;
    if (m->nfield != a->nfield)
        return FAIL_AT(E202, m->path, fix, "%d column%s, but %s has %d", m->nfield, m->nfield == 1 ? "" : "s", first, a->nfield);
    for (i32 i = 0; i < m->nfield; i++) {
        const struct arrow_field *is = &m->field[i], *was = &a->field[i];
        if (!same_type(&is->type, &was->type) || strcmp(is->name, q->name[i]) != 0)
            return FAIL_AT(E202, m->path, fix, "column %d is \"%.100s\" (%s), but \"%.100s\" (%s) in %s", i + 1, is->name,
                           is->type.name, q->name[i], was->type.name, first);
    }
    return 0;
}

static err read_groups(struct parquet *q, const struct file_in *f, const struct parquet_meta *m) {
    struct arrow *a = &q->a;
    for (i64 g = 0; g < m->ngroup; g++) {
        if (m->group[g].rows > a->t->nrow - a->row) return arrow_changed(m->path);
        for (i32 k = 0; k < m->nleaf; k++)
            if (a->field[m->leaf[k].field].col >= 0) TRY(parquet_column(a, q->pages, f, m, g, k));
        a->row += m->group[g].rows;
    }
    return 0;
}

static err take_file(struct parquet *q, i32 part, bool cells, const struct file_in *f, struct parquet_meta *m) {
    TRY(parquet_meta_read(f, m));
    TRY(q->name ? agree(q, m) : define(q, m));
    if (cells) return read_groups(q, f, m);
    if (m->rows > INT64_MAX / 64 - q->a.t->nrow) return parquet_damaged(m->path, "too many rows");
    q->a.part[part].above = q->a.t->nrow;
    q->a.part[part].rows = m->rows;
    q->a.t->nrow += m->rows;
    return 0;
}

/* The metadata of a file; then its cells. */
static err walk_part(struct parquet *q, i32 part, bool cells) {
    struct parquet_meta m = {0};
    struct file_in f;
    TRY(file_open(q->a.part[part].path, &f));
    const err e = take_file(q, part, cells, &f, &m);
    arena_free(&m.memory);
    file_close(&f);
    return e;
}

static err read_parts(struct parquet *q) {
    struct arrow *a = &q->a;
    for (i32 k = 0; k < a->npart; k++) TRY(walk_part(q, k, false));
    if (a->t->nrow == 0) return FAIL_AT(E201, a->t->path, NULL, "the Parquet table has columns only, no rows");
    TRY(arrow_name_parts(a));
    TRY(arrow_columns(a));
    TRY(parquet_pages_new(&q->pages));
    for (i32 k = 0; k < a->npart; k++) TRY(walk_part(q, k, true));
    return 0;
}

static err read(const char *path, const struct read_options *o, struct table **out) {
    struct parquet q = {0};
    err e = arrow_open(&q.a, path, o, endings, "a Parquet table");
    if (e >= 0) e = read_parts(&q);
    if (q.pages) parquet_pages_free(q.pages);
    return arrow_close(&q.a, e, out);
}

extern const struct reader reader_parquet;
const struct reader reader_parquet = {
    .name = "parquet",
    .help = "Parquet files, of flat columns; a folder of them",
    .is = is,
    .read = read,
};
