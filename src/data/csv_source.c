/* csv_source.c - the bytes of a text table, from a file or from memory, with a margin of line feeds. */
#include <string.h>

#include "base/mem.h"
#include "data/csv.h"

err csv_read(const struct csv_source *s, struct csv_buffer *b, i64 from, i64 to, char **p) {
    i64 n = to - from, need = n + CSV_FRONT + CSV_BACK;
    if (need > b->cap) {
        mem_free(b->p);
        b->cap = lmax(need, lmin(CSV_CHUNK + (1 << 16), s->size + CSV_FRONT + CSV_BACK));
        b->p = mem_alloc((size_t)b->cap);
        if (!b->p) {
            b->cap = 0;
            return -E601;
        }
        memset(b->p, '\n', CSV_FRONT);
    }
    char *at = b->p + CSV_FRONT;
    if (s->mem) memcpy(at, s->mem + from, (size_t)n);
    else TRY(file_read_at(&s->file, from, at, n));
    memset(at - CSV_FRONT, '\n', CSV_FRONT);
    memset(at + n, '\n', CSV_BACK);
    *p = at;
    return 0;
}

void csv_buffer_free(struct csv_buffer *b) {
    mem_free(b->p);
    *b = (struct csv_buffer){0};
}
