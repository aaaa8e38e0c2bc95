/* csv_once.c - counts and parses in one pass over the file, for large files without quotes, blank lines and invalid UTF-8.
 *
 *     thread 0   |load 0|count|parse ......|load 2|count|  wait  |parse ...
 *     thread 1   |load 1|count| wait |parse ......|load 3|count| ...
 *                             ^ row of chunk 1 = row of chunk 0 + its count
 *
 * Threads take chunks in order, so the awaited chunk is always being processed. Anything unexpected, including more rows than
 * estimated, aborts the pass; the two passes then start from the beginning. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <time.h>

#include "base/mem.h"
#include "data/csv.h"

enum { SPOTS = 15, SPOT = 1 << 14 };

struct once {
    i64 room;
    _Atomic i64 ready; /* chunks whose row0 is known: 0..ready */
    _Atomic bool gave_up, failed;
};

bool csv_once_guess(struct csv *c, i64 *rows) {
    i64 size = c->src.size - c->data_from, bytes = 0, lines = 0, spot = lmin(SPOT, size / (SPOTS + 1));
    if ((size < 2 * CSV_HEAD && !c->o->chunk) || spot < 16 || c->data_line != 1 + c->t->has_header) return false;
    for (i32 i = 0; i <= SPOTS; i++) {
        char *p;
        i64 from = c->data_from + (size - spot) / SPOTS * i;
        if (csv_read(&c->src, &c->buffer[0], from, from + spot, &p) < 0) return false; /* the two-pass reader reports it */
        struct csv_counts n = csv_count(p, spot);
        if (n.quotes || n.nul || n.blank) return false;
        bytes += spot;
        lines += n.lines;
    }
    if (lines < 4 * SPOTS && !c->o->chunk) return false;
    *rows = (i64)((f64)size / (f64)bytes * (f64)lines * 1.01) + (c->o->chunk ? 0 : 4096);
    return true;
}

/* Waits until the previous chunk has published where this one starts. */
static bool wait_for(struct once *o, i64 i) {
    for (i32 spins = 0; atomic_load_explicit(&o->ready, memory_order_acquire) < i; spins++) {
        if (atomic_load(&o->gave_up) || atomic_load(&o->failed)) return false;
        if (spins > 1000) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL); /* that thread may not be running */
    }
    return !atomic_load(&o->gave_up);
}

static err once_chunk(struct csv *c, i64 i, i32 thread) {
    struct once *o = c->once;
    struct csv_chunk *k = &c->chunk[i];
    char *p;
    i64 framed;
    if (atomic_load(&o->gave_up)) return 0;
    err e = csv_load(c, i, thread, &p, &framed);
    if (e < 0) {
        atomic_store(&o->failed, true);
        return e;
    }
    struct csv_counts n = csv_count(p, framed);
    k->rows = k->lines = n.lines;
    k->bad_byte = -1;
    if (n.high) csv_check_text(k, p, k->to - k->from);
    if (n.quotes || n.nul || k->bad_byte >= 0 || n.blank) atomic_store(&o->gave_up, true);
    if (!wait_for(o, i)) return 0;
    if (k->row0 + k->rows > o->room) {
        atomic_store(&o->gave_up, true);
        return 0;
    }
    if (i + 1 < c->nchunk) {
        c->chunk[i + 1].row0 = k->row0 + k->rows;
        c->chunk[i + 1].line0 = k->line0 + k->lines;
    } else {
        c->t->nrow = k->row0 + k->rows;
    }
    atomic_store_explicit(&o->ready, i + 1, memory_order_release);
    e = k->rows ? csv_parse_bytes(c, k, p, framed, thread) : 0;
    if (e < 0) atomic_store(&o->failed, true);
    return e;
}

err csv_once(struct csv *c, i64 room, bool *done) {
    struct once o = {.room = room};
    c->once = &o;
    c->chunk[0].line0 = c->data_line;
    err e = csv_each(c, once_chunk);
    c->once = NULL;
    *done = !atomic_load(&o.gave_up);
    if (!*done) return 0; /* the two passes will report it */
    TRY(e);
    return csv_merge_words(c);
}
