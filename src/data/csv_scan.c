/* csv_scan.c - the first pass: counts records and lines of each chunk, finds open quotes, and validates the encoding.
 *
 *     byte   k*bytes-1          (k+1)*bytes-1
 *     ...ab\n|cdefg ...... xyz | uvw\n|...
 *             ^ from of chunk k        ^ to of chunk k = from of chunk k+1: after the first line feed at or after the border
 *
 * Chunks without quotes, the common case, are counted 16 bytes at a time. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "base/str.h"
#include "data/csv.h"

typedef u8 v16 __attribute__((vector_size(16)));
typedef u8 v16_at __attribute__((vector_size(16), aligned(1), may_alias)); /* unaligned */

static i64 sum16(v16 v) {
    i64 n = 0;
    for (i32 i = 0; i < 16; i++) n += v[i];
    return n;
}

static bool any16(v16 v) {
    u64 half[2];
    memcpy(half, &v, sizeof half);
    return (half[0] | half[1]) != 0;
}

/* Counts line feeds and blank lines, and detects quotes, bytes above 127 and NULs. Two bytes before p must be readable. */
struct csv_counts csv_count(const char *p, i64 n) {
    struct csv_counts c = {0};
    v16 quote = {0}, high = {0}, nul = {0};
    i64 i = 0;
    while (i + 16 <= n) {
        v16 lines = {0}, blank = {0};
        i64 stop = i + lmin(255, (n - i) / 16) * 16; /* byte counters overflow after 255 */
        for (; i < stop; i += 16) {
            v16 b = *(const v16_at *)(p + i), b1 = *(const v16_at *)(p + i - 1), b2 = *(const v16_at *)(p + i - 2);
            v16 feed = (v16)(b == '\n');
            lines -= feed;
            blank -= feed & ((v16)(b1 == '\n') | ((v16)(b1 == '\r') & (v16)(b2 == '\n')));
            quote |= (v16)(b == '"');
            nul |= (v16)(b == 0);
            high |= b;
        }
        c.lines += sum16(lines);
        c.blank += sum16(blank);
    }
    c.quotes = any16(quote);
    c.nul = any16(nul);
    c.high = any16(high & 0x80);
    for (; i < n; i++) {
        bool feed = p[i] == '\n';
        c.lines += feed;
        c.blank += feed && (p[i - 1] == '\n' || (p[i - 1] == '\r' && p[i - 2] == '\n'));
        c.quotes |= p[i] == '"';
        c.high |= (u8)p[i] > 127;
        c.nul |= p[i] == 0;
    }
    return c;
}

static const u64 HIGH = 0x8080808080808080u, LOW = 0x0101010101010101u;

void csv_check_text(struct csv_chunk *k, const char *p, i64 n) {
    for (i64 i = 0; i < n;) {
        u64 w;
        /* eight ASCII bytes without NUL */
        if (i + 8 <= n && (memcpy(&w, p + i, 8), (w & HIGH) == 0 && ((w - LOW) & ~w & HIGH) == 0)) {
            i += 8;
            continue;
        }
        const i32 len = (u8)p[i] >= 0x80 ? str_utf8(p + i, (size_t)(n - i)) : p[i] != 0;
        if (len == 0) {
            k->bad_byte = i;
            k->bad_kind = p[i] ? 2 : 1;
            return;
        }
        i += len;
    }
}

/* Counts records with quotes, byte by byte. A quote opens a field only at its start; "" inside is one quote. inside: p is
 * inside quotes; then *first is the position after the record that started earlier, which is not counted. */
static void count_quoted(struct csv_chunk *k, const char *p, i64 n, char sep, bool inside, i64 *first) {
    bool at_start = true, counted = !inside;
    i64 lines = 0, rows = 0, opened = 0, start = 0; /* of the current record */
    *first = inside ? n : 0;
    for (i64 i = 0; i < n; i++) {
        if (inside) {
            const char *q = memchr(p + i, '"', (size_t)(n - i));
            i64 to = q ? q - p : n;
            for (i64 j = i; j < to; j++) lines += p[j] == '\n';
            i = to;
            if (!q || (i + 1 < n && p[i + 1] == '"')) i++; /* end of chunk, or a doubled quote */
            else inside = at_start = false;
            continue;
        }
        char b = p[i];
        if (b == '\n') {
            lines++;
            if (!counted) *first = i + 1;
            else rows += !(i == start || (i == start + 1 && p[start] == '\r'));
            at_start = counted = true;
            start = i + 1;
        } else if (b == '"' && at_start) {
            inside = true;
            opened = lines;
        } else {
            at_start = b == sep;
        }
    }
    k->open = inside;
    k->open_line = opened;
    k->lines = lines;
    k->rows = rows + (inside && counted); /* a record that continues in the next chunk counts here */
}

/* Loads chunk i: from after the first line feed at or after its border to after the one at the next border. */
static err load(struct csv *c, i64 i, i32 thread, char **p) {
    struct csv_chunk *k = &c->chunk[i];
    i64 size = c->src.size, begin = k->begin, end = k->end;
    i64 from = i ? begin - 1 : begin;
    TRY(csv_read(&c->src, &c->buffer[thread], from, end, p));
    char *feed = i ? memchr(*p, '\n', (size_t)(end - from)) : NULL;
    if (i && !feed) {
        k->from = k->to = end;
        return 0;
    }
    k->from = i ? from + (feed + 1 - *p) : begin;
    i64 more = 1 << 12;
    for (k->to = end; k->to < size && (*p)[k->to - from - 1] != '\n'; more *= 4) { /* extend to the end of the last line */
        i64 to = lmin(k->to + more, size);
        if (to - k->from > CSV_LINE_MAX)
            return FAIL_AT(E202, c->src.name, NULL, "a line of more than %d MiB near byte %lld: this is no text table",
                           CSV_LINE_MAX >> 20, (long long)k->from);
        TRY(csv_read(&c->src, &c->buffer[thread], from, to, p));
        feed = memchr(*p + (k->to - from), '\n', (size_t)(to - k->to));
        k->to = feed ? from + (feed + 1 - *p) : to;
        if (feed) break;
    }
    *p += k->from - from;
    return 0;
}

/* Surrounds the buffer with line feeds; the last line of a file may lack one. */
static i64 frame(char *p, i64 n) {
    memset(p - CSV_FRONT, '\n', CSV_FRONT);
    memset(p + n, '\n', CSV_BACK);
    return n + (n > 0 && p[n - 1] != '\n');
}

err csv_load(struct csv *c, i64 i, i32 thread, char **p, i64 *framed) {
    TRY(load(c, i, thread, p));
    *framed = frame(*p, c->chunk[i].to - c->chunk[i].from);
    return 0;
}

static err scan_chunk(struct csv *c, i64 i, i32 thread) {
    struct csv_chunk *k = &c->chunk[i];
    char *p;
    k->bad_byte = -1;
    i64 framed, unused;
    TRY(csv_load(c, i, thread, &p, &framed));
    i64 n = k->to - k->from;
    if (n == 0) return 0;
    struct csv_counts b = csv_count(p, framed);
    if (b.high || b.nul) csv_check_text(k, p, n);
    if (b.quotes) {
        count_quoted(k, p, framed, c->sep, false, &unused);
        if (k->open && framed > n) k->lines--; /* the added line feed does not count */
    } else {
        k->lines = b.lines;
        k->rows = b.lines - b.blank;
    }
    return 0;
}

struct each {
    struct csv *c;
    err (*work)(struct csv *c, i64 chunk, i32 thread);
    _Atomic i64 next;
    pthread_mutex_t lock; /* of the next two */
    i64 failed;           /* lowest chunk that failed */
    struct err_record record;
};

static void each_worker(void *arg, i32 thread) {
    struct each *e = arg;
    for (i64 i; (i = atomic_fetch_add(&e->next, 1)) < e->c->nchunk;) {
        if (e->work(e->c, i, thread) >= 0) continue;
        atomic_store(&e->next, e->c->nchunk); /* the other threads finish their chunks, which all come before */
        pthread_mutex_lock(&e->lock);
        if (i < e->failed) {
            e->failed = i;
            e->record = *err_last();
        }
        pthread_mutex_unlock(&e->lock);
    }
}

err csv_each(struct csv *c, err (*work)(struct csv *c, i64 chunk, i32 thread)) {
    struct each e = {.c = c, .work = work, .lock = PTHREAD_MUTEX_INITIALIZER, .failed = INT64_MAX};
    struct pool *pool = NULL;
    if (c->nthread > 1 && c->nchunk > 1) TRY(pool_new(c->nthread, &pool));
    if (pool) pool_run(pool, each_worker, &e);
    else each_worker(&e, 0);
    pool_free(pool);
    if (e.failed == INT64_MAX) return 0;
    err_put(&e.record);
    return -e.record.code;
}

/* Chunk i starts inside quotes: count it again and assign its first bytes to the chunk where that record started. */
static err rescan_inside(struct csv *c, i64 i, i64 *owner) {
    struct csv_chunk *k = &c->chunk[i];
    char *p;
    i64 first, n = k->to - k->from;
    if (n == 0) {
        k->open = true;
        return 0;
    }
    TRY(csv_read(&c->src, &c->buffer[0], k->from, k->to, &p));
    i64 framed = frame(p, n);
    count_quoted(k, p, framed, c->sep, true, &first);
    if (k->open && framed > n) k->lines--;
    first = lmin(first, n);
    i64 feeds = 0;
    for (i64 j = 0; j < first; j++) feeds += p[j] == '\n';
    k->from += first;
    k->lines -= feeds;
    c->chunk[*owner].to = k->from;
    c->chunk[*owner].lines += feeds;
    if (k->from - c->chunk[*owner].from > CSV_LINE_MAX)
        return FAIL_AT(E206, c->src.name, NULL, "a quoted field of more than %d MiB near byte %lld", CSV_LINE_MAX >> 20,
                       (long long)c->chunk[*owner].from);
    if (k->from < k->to) *owner = i;
    return 0;
}

/* Checks each chunk's assumption from left to right, then accumulates rows and lines. */
static err resolve(struct csv *c) {
    bool inside = false;
    i64 row = 0, line = c->data_line, owner = 0, open_line = 0, physical = line;
    for (i64 i = 0; i < c->nchunk; i++) {
        struct csv_chunk *k = &c->chunk[i];
        i64 feeds = k->lines;
        if (inside && k->first) break; /* a quote does not reach into the next file */
        if (k->bad_byte >= 0) return csv_fail_encoding(c, k, physical);
        if (inside) TRY(rescan_inside(c, i, &owner));
        else if (k->from < k->to) owner = i;
        if (k->open && owner == i) open_line = physical + k->open_line;
        physical += feeds;
        inside = k->open;
    }
    if (inside) {
        char where[256];
        csv_where(c, open_line, 0, where);
        return FAIL_AT(E206, where, "close the quote, or write a quote inside a field twice",
                       "a quoted field begins here and never ends");
    }
    for (i64 i = 0; i < c->nchunk; i++) {
        struct csv_chunk *k = &c->chunk[i];
        k->row0 = row;
        k->line0 = line;
        k->uneven = k->rows != k->lines;
        row += k->rows;
        line += k->lines;
    }
    c->t->nrow = row;
    return 0;
}

/* Chunks of c->bytes from `from` to `to`; out NULL: only their number. */
static i64 cut(const struct csv *c, i64 from, i64 to, struct csv_chunk *out) {
    i64 n = 0;
    for (i64 at = from; at < to; at += c->bytes, n++)
        if (out) out[n] = (struct csv_chunk){.begin = at, .end = lmin(at + c->bytes, to), .first = n == 0};
    return n;
}

err csv_cut(struct csv *c) {
    const struct csv_source *s = &c->src;
    const i32 parts = imax(s->npart, 1);
    c->bytes = c->o->chunk > 0 ? c->o->chunk : CSV_CHUNK;
    for (i32 pass = 0; pass < 2; pass++) {
        c->nchunk = 0;
        for (i32 k = 0; k < parts; k++) {
            const i64 at = k ? s->part[k].at : c->data_from, end = s->npart ? s->part[k].at + s->part[k].size : s->size;
            if (s->npart) s->part[k].chunk = c->nchunk;
            c->nchunk += cut(c, at, end, pass ? c->chunk + c->nchunk : NULL);
        }
        if (!pass) ARENA_NEW(&c->memory, c->chunk, c->nchunk);
    }
    return 0;
}

err csv_scan(struct csv *c) {
    TRY(csv_each(c, scan_chunk));
    return resolve(c);
}
