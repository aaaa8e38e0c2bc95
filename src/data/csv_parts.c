/* csv_parts.c - the text tables of a folder as one text: reading, and places in the files.  csv_folder.c opens it.
 *
 *     part-0.csv   day,y      |             day,y
 *                  1,5        |             1,5
 *     part-1.csv   day,y      |      ->     2,6           lines of part-1.csv: 1 fewer, and one line feed more
 *                  2,6 (end)  |             3,7
 *     part-2.csv   day,y      |
 *                  3,7        |
 *
 * Chunks end where files end (csv_scan.c),
 * so a chunk knows the row and the line at which a file begins.  Files are opened when they are read: a folder may hold more of
 * them than a process may keep open. */
#include <string.h>

#include "base/mem.h"
#include "data/csv.h"

enum { PIECE = 1 << 16 };

void csv_close_parts(struct csv_source *s) {
    for (i32 k = 0; k < s->npart; k++) {
        mem_free(s->part[k].src.mem);
        file_close(&s->part[k].src.file);
    }
}

err csv_read_part(const struct csv_source *s, i64 from, i64 n, char *out) {
    struct file_in f;
    if (s->mem) {
        memcpy(out, s->mem + from, (size_t)n);
        return 0;
    }
    TRY(file_open(s->path, &f));
    err e = f.size == s->size
                ? file_read_at(&f, from, out, n)
                : FAIL_AT(E213, s->path, "wait until it is written, then run again", "the file changed while it was read");
    file_close(&f);
    return e;
}

err csv_read_parts(const struct csv_source *s, i64 from, i64 to, char *out) {
    for (i32 k = 0; k < s->npart && from < to; k++) {
        const struct csv_part *p = &s->part[k];
        if (from >= p->at + p->size) continue;
        const i64 end = lmin(to, p->at + p->size), at = p->from + (from - p->at);
        const i64 n = lmin(end - from, p->src.size - at);
        if (n > 0) TRY(csv_read_part(&p->src, at, n, out));
        if (n < end - from) out[end - from - 1] = '\n'; /* behind a last line without an end */
        out += end - from;
        from = end;
    }
    return 0;
}

/* ------------------------------------------------------------------ places -------------------------------------------------- */

static i64 lines_of(const struct csv_source *s, const struct csv_part *p) {
    char piece[PIECE];
    i64 lines = 0;
    for (i64 at = p->at; at < p->at + p->size; at += PIECE) {
        const i64 n = lmin(PIECE, p->at + p->size - at);
        if (csv_read_parts(s, at, at + n, piece) < 0) return lines;
        for (i64 i = 0; i < n; i++) lines += piece[i] == '\n';
    }
    return lines;
}

const struct csv_part *csv_part_of(const struct csv_source *s, i64 line, i64 *own) {
    i64 before = 0;
    *own = line;
    for (i32 k = 0; k < s->npart; k++) {
        const i64 n = k + 1 < s->npart ? lines_of(s, &s->part[k]) : INT64_MAX - before;
        *own = line - before + s->part[k].lines;
        if (line - before <= n) return &s->part[k];
        before += n;
    }
    return NULL;
}

err csv_name_parts(struct csv *c) {
    struct table *t = c->t;
    ARENA_NEW(&t->names, t->part, c->src.npart);
    for (i32 k = 0; k < c->src.npart; k++) {
        const struct csv_part *p = &c->src.part[k];
        if (p->chunk == c->nchunk) continue; /* only headers from here on */
        struct table_part *to = &t->part[t->npart++];
        const struct csv_chunk *first = &c->chunk[p->chunk];
        TRY(arena_keep(&t->names, &to->path, p->src.path));
        to->row = first->row0;
        to->line = first->line0;
        to->own = k ? p->lines + 1 : c->data_line;
    }
    return 0;
}
