/* arena.h - arena allocator: many small blocks that are freed together.
 *
 *     struct arena a = {0};
 *     f32 *x = arena_new(&a, n * sizeof *x);     zeroed, 64-byte aligned; NULL + E601 on failure
 *     arena_free(&a);                            frees everything
 *
 * Not thread-safe. */
#ifndef STRETTO_BASE_ARENA_H
#define STRETTO_BASE_ARENA_H

#include "base/mem.h"

struct arena_block;

struct arena {
    struct arena_block *last;
    i64 used; /* bytes handed out */
};

void *arena_new(struct arena *a, size_t size);
void *arena_array(struct arena *a, i64 n, size_t size); /* NULL + E601 also if n < 0 or the size overflows */
/* An array with a value for each row of data: in a file beyond --memory (spill.h). NULL + E601, E702, E703. */
void *arena_spill(struct arena *a, i64 n, size_t size);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
const char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3); /* at most 1023 characters; "" on failure */
err arena_keep(struct arena *a, const char **to, const char *text); /* *to = a copy of text, or E601 */
void arena_free(struct arena *a); /* the arena is empty and usable again */

/* out = n zeroed elements from the arena; fails the calling function with E601. */
#define ARENA_NEW(a, out, n)                                                                                                     \
    do {                                                                                                                         \
        (out) = arena_array((a), (i64)(n), sizeof *(out));                                                                     \
        if (!(out)) return -E601;                                                                                                \
    } while (0)

/* The same from arena_spill; fails the calling function. */
#define ARENA_SPILL(a, out, n)                                                                                                   \
    do {                                                                                                                         \
        (out) = arena_spill((a), (i64)(n), sizeof *(out));                                                                     \
        if (!(out)) return -err_last()->code;                                                                                   \
    } while (0)

#endif
