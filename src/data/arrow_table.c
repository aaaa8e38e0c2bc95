/* arrow_table.c - begin and end of a table of records: options, parts of a folder, memory (arrow.h). */
#include <string.h>

#include "base/input.h"
#include "base/mem.h"
#include "data/arrow.h"
#include "data/folder.h"

static err list_parts(struct arrow *a, const char *path, const char *const *ending) {
    const char **file = &path;
    a->npart = 1;
    if (folder_is(path)) TRY(folder_list(&a->memory, path, ending, &file, &a->npart));
    ARENA_NEW(&a->memory, a->part, a->npart);
    for (i32 k = 0; k < a->npart; k++) TRY(arena_keep(&a->memory, &a->part[k].path, file[k]));
    return 0;
}

err arrow_open(struct arrow *a, const char *path, const struct read_options *o, const char *const *ending, const char *what) {
    *a = (struct arrow){.o = o};
    NEW(a->t, 1);
    TRY(arena_keep(&a->t->names, &a->t->path, input_label(path)));
    if (o->rows)
        return FAIL_AT(E106, "--orient", "a column for each series", "--orient rows reads text tables, and %s is %s", a->t->path,
                       what);
    a->t->records = true;
    a->t->sep = ',';
    a->t->decimal = '.';
    TRY(missing_add(&a->na, &a->memory, o->na));
    TRY(missing_add(&a->na, &a->memory, o->more_na));
    return list_parts(a, path, ending);
}

err arrow_name_parts(struct arrow *a) {
    struct table *t = a->t;
    i64 row = 0;
    if (!folder_is(t->path)) return 0;
    ARENA_NEW(&t->names, t->part, a->npart);
    for (i32 k = 0; k < a->npart; row += a->part[k++].rows) {
        if (a->part[k].rows == 0) continue;
        struct table_part *p = &t->part[t->npart++];
        *p = (struct table_part){.row = row, .line = a->part[k].above + 1, .own = 1};
        TRY(arena_keep(&t->names, &p->path, a->part[k].path));
    }
    return 0;
}

err arrow_changed(const char *path) {
    return FAIL_AT(E213, path, "wait until it is written, then run again", "the file changed while it was read");
}

err arrow_close(struct arrow *a, err e, struct table **out) {
    if (e >= 0 && a->row != a->t->nrow) e = arrow_changed(a->t->path);
    if (e >= 0) e = arrow_settle_words(a);
    for (i32 i = 0; i < a->nfield; i++) arrow_free_words(&a->field[i]);
    for (i32 i = 0; i < ARROW_BUFFERS; i++) mem_free(a->room[i].p);
    mem_free(a->packed.p);
    mem_free(a->meta.p);
    vocab_free(&a->index);
    arena_free(&a->memory);
    if (e < 0)
        table_free(a->t);
    else
        *out = a->t;
    return e;
}
