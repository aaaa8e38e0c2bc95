/* arena.c - see arena.h: a chain of blocks; a large request gets a block of its own. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/spill.h"

enum { FIRST = 4 << 10, BLOCK = 64 << 10, ALIGN = 64 };

struct arena_block {
    struct arena_block *before;
    size_t size, used;
    _Alignas(64) char bytes[];
};

/* Blocks grow, so that a small arena costs little and a large one few blocks. */
static size_t next_size(const struct arena_block *last) {
    if (!last) return FIRST;
    return last->size < BLOCK / 4 ? last->size * 4 : BLOCK;
}

void *arena_new(struct arena *a, size_t size) {
    size_t need = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (need < size) {
        FAIL(E601, "%zu bytes do not fit in memory", size);
        return NULL;
    }
    struct arena_block *b = a->last;
    if (!b || b->size - b->used < need) {
        const size_t next = next_size(b), bytes = need > next ? need : next;
        b = mem_alloc(sizeof *b + bytes);
        if (!b) return NULL;
        b->size = bytes;
        b->before = a->last;
        a->last = b;
    }
    void *p = b->bytes + b->used;
    b->used += need;
    a->used += (i64)need;
    return p;
}

void *arena_array(struct arena *a, i64 n, size_t size) {
    if (mem_check(n, size) < 0) return NULL;
    return arena_new(a, (size_t)n * size);
}

void *arena_spill(struct arena *a, i64 n, size_t size) {
    struct arena_block *b;
    if (mem_check(n, size) < 0 || spill_new((void **)&b, (i64)sizeof *b + n * (i64)size, 1) < 0) return NULL;
    b->size = b->used = (size_t)n * size;
    a->used += n * (i64)size;
    if (a->last) { /* below the block that is being filled */
        b->before = a->last->before;
        a->last->before = b;
    } else {
        a->last = b;
    }
    return b->bytes;
}

char *arena_strndup(struct arena *a, const char *s, size_t n) {
    char *copy = arena_new(a, n + 1);
    if (copy) memcpy(copy, s, n);
    return copy;
}

char *arena_strdup(struct arena *a, const char *s) { return arena_strndup(a, s, strlen(s)); }

const char *arena_printf(struct arena *a, const char *fmt, ...) {
    char buf[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    const char *copy = arena_strdup(a, buf);
    return copy ? copy : "";
}

err arena_keep(struct arena *a, const char **to, const char *text) {
    *to = arena_strdup(a, text);
    return *to ? 0 : -E601;
}

void arena_free(struct arena *a) {
    while (a->last) {
        struct arena_block *before = a->last->before;
        mem_free(a->last);
        a->last = before;
    }
    a->used = 0;
}
