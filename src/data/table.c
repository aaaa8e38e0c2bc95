/* table.c - functions of struct table that all readers share. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/input.h"
#include "base/mem.h"
#include "base/pager.h"
#include "data/frame.h"
#include "data/names.h"
#include "data/table.h"

void table_drop_columns(struct table *t) {
    for (i32 i = 0; t->col && i < t->ncol; i++) {
        if (!t->col[i].lent) mem_free(t->col[i].number);
        mem_free(t->col[i].time);
        mem_free(t->col[i].offset);
        mem_free(t->col[i].code);
    }
    mem_free(t->col);
    t->col = NULL;
}

void table_free(struct table *t) {
    if (!t) return;
    if (t->map) {
        mem_free(t->col);
        pager_drop(t->map, false);
        munmap(t->map, t->map_size);
    } else {
        table_drop_columns(t);
        mem_free(t->line);
    }
    frame_drop(t->frame);
    vocab_free(&t->index);
    arena_free(&t->names);
    mem_free(t);
}

/* Names of all columns, for names.h; the caller frees them with mem_free. */
static err all_names(const struct table *t, const char ***names) {
    NEW(*names, t->ncol);
    for (i32 i = 0; i < t->ncol; i++) (*names)[i] = t->col[i].name;
    return 0;
}

bool column_constant(const struct column *c, i64 nrow, f64 *value) {
    i64 n = 0;
    for (i64 i = 0; c->type == COL_NUMBER && i < nrow; i++) {
        if (isnan(c->number[i])) continue;
        if (n++ && c->number[i] != *value) return false;
        *value = c->number[i];
    }
    return n > 1;
}

err table_index(struct table *t) {
    i32 code;
    for (i32 i = 0; i < t->ncol; i++) TRY(vocab_code(&t->index, t->col[i].name, (i64)strlen(t->col[i].name), &code));
    return 0;
}

static i32 indexed(const struct table *t, const char *name) {
    return t->index.n == t->ncol ? vocab_find(&t->index, name, (i64)strlen(name)) : -1;
}

i32 table_find(const struct table *t, const char *name) {
    const char **names;
    const i32 at = indexed(t, name);
    if (at >= 0) return at;
    if (all_names(t, &names) < 0) return -1;
    i32 i = name_find(names, t->ncol, name);
    mem_free(names);
    return i;
}

bool table_lists(const struct table *t, const char *list, i32 col) {
    char name[256];
    while (name_next(&list, name))
        if (table_find(t, name) == col) return true;
    return false;
}

err table_need(const struct table *t, const char *name, const char *flag, i32 *out) {
    const char **names;
    *out = indexed(t, name);
    if (*out >= 0) return 0;
    TRY(all_names(t, &names));
    err e = name_need(t->path, names, t->ncol, name, flag, out);
    mem_free(names);
    return e;
}

i64 table_line(const struct table *t, i64 row) { return t->line ? t->line[row] : row + 1 + t->has_header; }

void file_where(const char *file, i64 line, i32 field, char where[256]) {
    file = input_label(file);
    if (field > 0) snprintf(where, 256, "%.200s:%lld:%d", file, (long long)line, field);
    else snprintf(where, 256, "%.200s:%lld", file, (long long)line);
}

void table_where_at(const struct table *t, const char *file, i64 line, i32 field, char where[256]) {
    if (!t->turned) file_where(file, line, field, where);
    else if (field > 0) file_where(file, field, (i32)line + t->turned - 1, where);
    else snprintf(where, 256, "%.200s:column %lld", file, (long long)line + t->turned - 1);
}

void table_where(const struct table *t, i64 row, const struct column *c, char where[256]) {
    i32 k = t->npart - 1;
    while (k > 0 && t->part[k].row > row) k--;
    const i64 before = k >= 0 ? t->part[k].line - t->part[k].own : 0;
    table_where_at(t, k >= 0 ? t->part[k].path : t->path, table_line(t, row) - before, c ? c->field : 0, where);
}

void table_line_where(const struct table *t, i64 line, char where[256]) {
    i32 k = t->npart - 1;
    while (k > 0 && t->part[k].line > line) k--;
    if (k < 0) snprintf(where, 256, "line %lld", (long long)line);
    else table_where_at(t, t->part[k].path, line - t->part[k].line + t->part[k].own, 0, where);
}

err table_settle_zone(const struct table *t, struct column *c) {
    enum { DAY = 86400 };
    bool days = t->nrow > 1, same = true;
    i32 *const offset = c->offset;
    for (i64 i = 0; i < t->nrow; i++) {
        if (!offset[i] != !offset[0]) {
            char where[256];
            table_where(t, i, c, where);
            return FAIL_AT(E205, where, "--time-format row   (rows are the time)",
                           "time column \"%s\" has %s offset from UTC here, unlike in the first row", c->name,
                           offset[i] ? "an" : "no");
        }
        const i64 wall = c->time[i] + offset[i];
        days = days && wall % DAY == (c->time[0] + offset[0]) % DAY;
        same = same && offset[i] == offset[0];
    }
    if (offset[0]) {
        c->zoned = same || !days;
        c->zone = offset[0] - DAY;
        for (i64 i = 0; i < t->nrow; i++) c->time[i] += (c->zoned ? offset[0] : offset[i]) - DAY;
    }
    mem_free(offset);
    c->offset = NULL;
    return 0;
}
