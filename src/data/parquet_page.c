/* parquet_page.c - the pages of one column of a row group become cells, as the Arrow reader would get them.
 *
 *     version 1   | levels, values: compressed together               levels: one bit a row, "it has a value", as runs
 *     version 2   | levels | values: compressed, or not |
 *
 * A dictionary page comes first; the data pages then hold places in it, and may go back to plain values. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/parquet.h"
#include "data/thrift.h"

enum { PAGE_DATA, PAGE_INDEX, PAGE_DICTIONARY, PAGE_DATA_2 };
enum { HEAD_LEAST = 1 << 12, HEAD_MOST = 1 << 24, PAGE_MOST = 1 << 30 };

struct parquet_pages {
    struct arrow_room head, packed, plain; /* of a page */
    struct arrow_room level, place;        /* [rows] u32: it has a value; place in the dictionary */
    struct arrow_room spare;               /* [rows] i64 */
    struct arrow_room value, cell;         /* values without the missing ones; cells with them */
    struct arrow_room valid, offset, text; /* as in a record batch */
    struct arrow_room word;                /* the dictionary of a fixed width */
    i64 nword;
    bool has_words;
};

struct page {
    i64 kind, whole, packed; /* bytes, unpacked and packed */
    i64 values, encoding, level_encoding;
    i64 level_bytes, repeat_bytes; /* PAGE_DATA_2 */
    bool is_packed;
};

/* The column that is read. */
struct work {
    struct arrow *a;
    struct parquet_pages *p;
    const struct file_in *file;
    const struct parquet_meta *m;
    const struct parquet_leaf *leaf;
    const struct parquet_chunk *chunk;
    struct arrow_field *field;
    i64 group, left; /* left: rows that are not yet read */
};

err parquet_pages_new(struct parquet_pages **out) {
    NEW(*out, 1);
    return 0;
}

void parquet_pages_free(struct parquet_pages *p) {
    struct arrow_room *const all[] = {&p->head,  &p->packed, &p->plain, &p->level,  &p->place, &p->spare,
                                      &p->value, &p->cell,   &p->valid, &p->offset, &p->text,  &p->word};
    for (size_t i = 0; i < COUNT(all); i++) mem_free(all[i]->p);
    mem_free(p);
}

static err damaged(const struct work *w, const char *why) {
    char text[300];
    snprintf(text, sizeof text, "%s (column \"%.100s\", row group %lld)", why, w->field->name, (long long)w->group + 1);
    return parquet_damaged(w->m->path, text);
}

/* ------------------------------------------------------------------ headers ------------------------------------------------- */

static void read_data_header(struct thrift *t, struct page *g) {
    struct thrift_field f = {0};
    while (thrift_next(t, &f)) {
        if (f.id == 1)
            g->values = thrift_whole(t, &f);
        else if (f.id == 2)
            g->encoding = thrift_whole(t, &f);
        else if (f.id == 3)
            g->level_encoding = thrift_whole(t, &f);
        else
            thrift_skip(t, &f);
    }
}

static void read_data_header_2(struct thrift *t, struct page *g) {
    struct thrift_field f = {0};
    while (thrift_next(t, &f)) {
        if (f.id == 1)
            g->values = thrift_whole(t, &f);
        else if (f.id == 4)
            g->encoding = thrift_whole(t, &f);
        else if (f.id == 5)
            g->level_bytes = thrift_whole(t, &f);
        else if (f.id == 6)
            g->repeat_bytes = thrift_whole(t, &f);
        else if (f.id == 7)
            g->is_packed = thrift_whole(t, &f) != 0;
        else
            thrift_skip(t, &f);
    }
}

static bool read_header(struct thrift *t, struct page *g) {
    struct thrift_field f = {0};
    *g = (struct page){.kind = -1, .level_encoding = PARQUET_RLE, .is_packed = true};
    while (thrift_next(t, &f)) {
        if (f.id == 1)
            g->kind = thrift_whole(t, &f);
        else if (f.id == 2)
            g->whole = thrift_whole(t, &f);
        else if (f.id == 3)
            g->packed = thrift_whole(t, &f);
        else if ((f.id == 5 || f.id == 7) && thrift_struct(t, &f))
            read_data_header(t, g);
        else if (f.id == 8 && thrift_struct(t, &f))
            read_data_header_2(t, g);
        else
            thrift_skip(t, &f);
    }
    return !t->bad;
}

/* The header of the page at *at, which moves behind it. */
static err next_page(struct work *w, i64 *at, struct page *g) {
    const i64 end = w->chunk->at + w->chunk->bytes;
    for (i64 most = HEAD_LEAST;; most *= 16) {
        const i64 n = lmin(most, end - *at);
        TRY(arrow_room(&w->p->head, n + 8));
        TRY(file_read_at(w->file, *at, w->p->head.p, n));
        struct thrift t = {.p = w->p->head.p, .end = w->p->head.p + n};
        if (!read_header(&t, g)) {
            if (n < end - *at && most < HEAD_MOST) continue; /* long texts of statistics */
            return damaged(w, "a page has no header");
        }
        *at += t.p - w->p->head.p;
        break;
    }
    if (g->packed < 0 || g->packed > end - *at || g->whole < 0 || g->whole > PAGE_MOST || g->values < 0 ||
        g->whole / ARROW_RATIO > g->packed)
        return damaged(w, "a page has an impossible size");
    return 0;
}

static err refuse_codec(const struct work *w) {
    static const char *const names[] = {"none", "snappy", "gzip", "LZO", "Brotli", "lz4", "zstd", "lz4"};
    const i32 c = w->chunk->codec;
    return FAIL_AT(E202, w->m->path, "write it with compression \"zstd\" or \"snappy\"",
                   "the pages are compressed with %s, which this program does not read",
                   c >= 0 && c < 8 ? names[c] : "an unknown codec");
}

/* Reads the page at `at`; its bytes without compression: *p to *end. */
static err load_page(struct work *w, i64 at, const struct page *g, const u8 **p, const u8 **end) {
    struct parquet_pages *q = w->p;
    const i64 levels = g->kind == PAGE_DATA_2 ? g->level_bytes + g->repeat_bytes : 0;
    bool known;
    if (g->level_bytes < 0 || g->repeat_bytes != 0 || levels > g->packed || levels > g->whole)
        return damaged(w, "the levels of a page do not fit");
    TRY(arrow_room(&q->packed, g->packed + 8)); /* never NULL, to which nothing may be added */
    TRY(arrow_room(&q->plain, g->whole + 8));
    if (g->packed > 0) TRY(file_read_at(w->file, at, q->packed.p, g->packed));
    if (levels > 0) memcpy(q->plain.p, q->packed.p, (size_t)levels);
    const i32 codec = g->is_packed ? w->chunk->codec : 0;
    const bool empty = g->whole == levels;
    if (!parquet_unpack(codec, q->packed.p + levels, g->packed - levels, q->plain.p + levels, g->whole - levels, &known)) {
        if (!known) return refuse_codec(w);
        if (!empty) return damaged(w, "a page cannot be unpacked");
    }
    *p = q->plain.p;
    *end = q->plain.p + g->whole;
    return 0;
}

/* ------------------------------------------------------------------ texts --------------------------------------------------- */

/* Adds a text to the bytes of words: *fill of them so far. */
static err add_text(struct work *w, i64 *fill, const u8 *s, i64 n) {
    if (n > PAGE_MOST - *fill) return damaged(w, "the texts of a page are too long");
    if (*fill + n > w->p->text.cap) {
        const i64 cap = lmax(2 * w->p->text.cap, *fill + n + 256);
        u8 *more = mem_realloc(w->p->text.p, (size_t)cap);
        if (!more) return -E601;
        w->p->text.p = more;
        w->p->text.cap = cap;
    }
    if (n > 0) memcpy(w->p->text.p + *fill, s, (size_t)n);
    *fill += n;
    return 0;
}

/* The lengths of n texts, then the texts; each begins with so many bytes of the text before, where `front` [n] is given. */
static err join_texts(struct work *w, const u8 *p, const u8 *end, const i64 *front, const i64 *length, i64 n, i64 *at) {
    i64 fill = 0, before = 0; /* before: where the text before begins */
    for (i64 i = 0; i < n; i++) {
        const i64 begin = fill, shared = front ? front[i] : 0;
        if (shared < 0 || shared > begin - before || length[i] < 0 || length[i] > end - p)
            return damaged(w, "a text lies outside its page");
        if (shared > 0) {
            TRY(arrow_room(&w->p->cell, shared));
            memcpy(w->p->cell.p, w->p->text.p + before, (size_t)shared);
            TRY(add_text(w, &fill, w->p->cell.p, shared));
        }
        TRY(add_text(w, &fill, p, length[i]));
        p += length[i];
        at[i] = before = begin;
        at[i + 1] = fill;
    }
    return 0;
}

/* n texts: their bytes in p->text, text i from at[i] to at[i + 1]; at is in p->value. */
static err read_texts(struct work *w, i64 encoding, const u8 *p, const u8 *end, i64 n) {
    struct parquet_pages *q = w->p;
    i64 fill = 0;
    TRY(arrow_room(&q->value, 8 * (n + 1)));
    TRY(arrow_room(&q->spare, 16 * (n + 1)));
    i64 *const at = (i64 *)(void *)q->value.p, *const length = (i64 *)(void *)q->spare.p, *const front = length + n;
    at[0] = 0;
    if (encoding == PARQUET_DELTA_LENGTH) {
        if (!(p = parquet_deltas(p, end, length, n))) return damaged(w, "the lengths of texts are cut off");
        return join_texts(w, p, end, NULL, length, n, at);
    }
    if (encoding == PARQUET_DELTA_TEXT) {
        if (!(p = parquet_deltas(p, end, front, n)) || !(p = parquet_deltas(p, end, length, n)))
            return damaged(w, "the lengths of texts are cut off");
        return join_texts(w, p, end, front, length, n, at);
    }
    if (encoding != PARQUET_PLAIN) return damaged(w, "texts in an encoding of no known kind");
    for (i64 i = 0; i < n; i++) {
        u32 size;
        if (end - p < 4) return damaged(w, "a text lies outside its page");
        memcpy(&size, p, 4);
        p += 4;
        if (size > end - p) return damaged(w, "a text lies outside its page");
        TRY(add_text(w, &fill, p, size));
        p += size;
        at[i + 1] = fill;
    }
    return 0;
}

/* ------------------------------------------------------------------ pages --------------------------------------------------- */

static bool is_text(const struct work *w) { return w->field->type.kind == ARROW_TEXT; }

static err read_dictionary(struct work *w, const struct page *g, const u8 *p, const u8 *end) {
    struct parquet_pages *q = w->p;
    const i64 n = g->values, width = parquet_width(w->leaf);
    if (q->has_words || n > w->chunk->bytes * ARROW_RATIO) return damaged(w, "a second dictionary");
    q->has_words = true;
    q->nword = n;
    w->field->words.n = 0;
    if (is_text(w)) {
        if (n > (end - p) / 4) return damaged(w, "the dictionary is cut off");
        TRY(read_texts(w, PARQUET_PLAIN, p, end, n));
        const i64 *const at = (const i64 *)(const void *)q->value.p;
        const char *const text = q->text.p ? (const char *)q->text.p : ""; /* NULL: all words are empty */
        for (i64 i = 0; i < n; i++) TRY(arrow_keep_word(&w->field->words, text + at[i], at[i + 1] - at[i], false));
        return 0;
    }
    if (n > 8 * (end - p)) return damaged(w, "the dictionary is cut off");
    TRY(arrow_room(&q->word, n * width + 8));
    return parquet_fixed(w->leaf, PARQUET_PLAIN, p, end, q->word.p, n, NULL) ? 0 : damaged(w, "the dictionary is cut off");
}

/* The levels of a page: *n = rows that have a value, c->valid if some have none.  *p moves behind them. */
static err read_levels(struct work *w, const struct page *g, const u8 **p, const u8 *end, struct arrow_cells *c, i64 *n) {
    struct parquet_pages *q = w->p;
    const i64 rows = g->values;
    u32 bytes = (u32)g->level_bytes;
    *n = rows;
    if (g->kind == PAGE_DATA_2) *p += g->level_bytes; /* in front of the values, also where none is missing */
    if (!w->leaf->optional) return 0;
    const u8 *from = *p - g->level_bytes;
    if (g->kind == PAGE_DATA) {
        if (g->level_encoding != PARQUET_RLE) return damaged(w, "levels in an encoding of no known kind");
        if (end - *p < 4) return damaged(w, "the levels are cut off");
        memcpy(&bytes, *p, 4);
        from = *p + 4;
        if (bytes > end - from) return damaged(w, "the levels are cut off");
        *p = from + bytes;
    }
    TRY(arrow_room(&q->level, 4 * rows));
    u32 *const level = (u32 *)(void *)q->level.p;
    if (!parquet_runs(from, from + bytes, 1, level, rows)) return damaged(w, "the levels are cut off");
    TRY(arrow_room(&q->valid, rows / 8 + 1));
    memset(q->valid.p, 0, (size_t)(rows / 8 + 1));
    *n = 0;
    for (i64 i = 0; i < rows; i++) {
        const u32 has = level[i] & 1;
        q->valid.p[i >> 3] = (u8)(q->valid.p[i >> 3] | has << (i & 7));
        *n += has;
    }
    c->nulls = rows - *n;
    if (c->nulls) c->valid = q->valid.p;
    return 0;
}

/* Places in the dictionary, in p->place [n]. */
static err read_places(struct work *w, const u8 *p, const u8 *end, i64 n) {
    struct parquet_pages *q = w->p;
    if (!q->has_words) return damaged(w, "the dictionary is missing");
    TRY(arrow_room(&q->place, 4 * n));
    u32 *const place = (u32 *)(void *)q->place.p;
    if (n == 0) return 0;
    if (p == end || *p > 32 || !parquet_runs(p + 1, end, *p, place, n)) return damaged(w, "the values are cut off");
    for (i64 i = 0; i < n; i++)
        if (place[i] >= (u64)q->nword) return damaged(w, "a value is none of the dictionary");
    return 0;
}

/* Spreads values of a width over the rows that have one. */
static err spread(struct work *w, struct arrow_cells *c, i64 n, i64 width) {
    struct parquet_pages *q = w->p;
    const u8 *from = q->value.p;
    c->data = from;
    if (n == c->rows) return 0;
    TRY(arrow_room(&q->cell, c->rows * width + 8));
    memset(q->cell.p, 0, (size_t)(c->rows * width));
    for (i64 i = 0; i < c->rows; i++) {
        if (!arrow_valid(c, i)) continue;
        memcpy(q->cell.p + i * width, from, (size_t)width);
        from += width;
    }
    c->data = q->cell.p;
    return 0;
}

static err put_cells(struct work *w, struct arrow_cells *c) {
    const struct arrow_message at = {.path = w->m->path, .number = w->group + 1};
    return c->rows > 0 ? arrow_put(w->a, w->field, &at, c) : 0;
}

/* A page of numbers: plain, or of a dictionary. */
static err put_fixed(struct work *w, const struct page *g, bool places, const u8 *p, const u8 *end, struct arrow_cells *c,
                     i64 n) {
    struct parquet_pages *q = w->p;
    const i64 width = parquet_width(w->leaf);
    TRY(arrow_room(&q->value, n * width + 8));
    if (places) {
        TRY(read_places(w, p, end, n));
        const u32 *const place = (const u32 *)(const void *)q->place.p;
        for (i64 i = 0; i < n; i++) memcpy(q->value.p + i * width, q->word.p + place[i] * width, (size_t)width);
    } else {
        TRY(arrow_room(&q->spare, 8 * n + 8));
        if (!parquet_fixed(w->leaf, (i32)g->encoding, p, end, q->value.p, n, (i64 *)(void *)q->spare.p))
            return damaged(w, "the values are cut off");
    }
    TRY(spread(w, c, n, width));
    if (w->leaf->type == PARQUET_BOOL) { /* a bit for each */
        TRY(arrow_room(&q->offset, c->rows / 8 + 1));
        memset(q->offset.p, 0, (size_t)(c->rows / 8 + 1));
        for (i64 i = 0; i < c->rows; i++) q->offset.p[i >> 3] = (u8)(q->offset.p[i >> 3] | (c->data[i] & 1) << (i & 7));
        c->data = q->offset.p;
    }
    return put_cells(w, c);
}

static err put_texts(struct work *w, const struct page *g, bool places, const u8 *p, const u8 *end, struct arrow_cells *c,
                     i64 n) {
    struct parquet_pages *q = w->p;
    w->field->coded = places;
    if (places) {
        TRY(read_places(w, p, end, n));
        TRY(arrow_room(&q->value, 4 * n + 8));
        if (n > 0) memcpy(q->value.p, q->place.p, (size_t)(4 * n));
        TRY(spread(w, c, n, 4));
        return put_cells(w, c);
    }
    TRY(read_texts(w, g->encoding, p, end, n));
    TRY(arrow_room(&q->offset, 4 * (c->rows + 1)));
    const i64 *const at = (const i64 *)(const void *)q->value.p;
    i32 *const offset = (i32 *)(void *)q->offset.p;
    offset[0] = 0;
    for (i64 i = 0, k = 0; i < c->rows; i++) {
        k += arrow_valid(c, i);
        offset[i + 1] = (i32)at[k];
    }
    c->offset = q->offset.p;
    c->data = q->text.p ? q->text.p : q->offset.p;
    c->bytes = at[n];
    return put_cells(w, c);
}

static err put_page(struct work *w, const struct page *g, const u8 *p, const u8 *end) {
    struct arrow_cells c = {.rows = g->values};
    i64 n;
    if (g->values > w->left) return damaged(w, "its pages have more rows than the row group");
    TRY(read_levels(w, g, &p, end, &c, &n));
    const bool places = g->encoding == PARQUET_DICTIONARY || g->encoding == PARQUET_OLD_DICTIONARY;
    if (w->field->type.kind == ARROW_NULL) {
        c.nulls = c.rows;
        return put_cells(w, &c);
    }
    if (!places && n > 8 * (end - p) && g->encoding != PARQUET_DELTA && g->encoding != PARQUET_DELTA_LENGTH &&
        g->encoding != PARQUET_DELTA_TEXT && g->encoding != PARQUET_RLE)
        return damaged(w, "the values are cut off");
    return is_text(w) ? put_texts(w, g, places, p, end, &c, n) : put_fixed(w, g, places, p, end, &c, n);
}

err parquet_column(struct arrow *a, struct parquet_pages *p, const struct file_in *f, const struct parquet_meta *m, i64 group,
                   i32 leaf) {
    const struct parquet_group *g = &m->group[group];
    struct work w = {.a = a,
                     .p = p,
                     .file = f,
                     .m = m,
                     .leaf = &m->leaf[leaf],
                     .chunk = &g->chunk[leaf],
                     .field = &a->field[m->leaf[leaf].field],
                     .group = group,
                     .left = g->rows};
    const i64 first = a->row, end = w.chunk->at + w.chunk->bytes;
    p->has_words = false;
    p->nword = 0;
    for (i64 at = w.chunk->at; w.left > 0;) {
        struct page page = {0};
        const u8 *from = NULL, *to = NULL;
        if (at >= end) return damaged(&w, "its pages have fewer rows than the row group");
        TRY(next_page(&w, &at, &page));
        if (page.kind == PAGE_DATA || page.kind == PAGE_DATA_2 || page.kind == PAGE_DICTIONARY) {
            TRY(load_page(&w, at, &page, &from, &to));
            TRY(page.kind == PAGE_DICTIONARY ? read_dictionary(&w, &page, from, to) : put_page(&w, &page, from, to));
        }
        at += page.packed;
        if (page.kind != PAGE_DATA && page.kind != PAGE_DATA_2) continue;
        w.left -= page.values;
        a->row += page.values;
    }
    w.field->coded = false;
    a->row = first;
    return 0;
}
