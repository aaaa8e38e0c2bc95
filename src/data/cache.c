/* cache.c - binary cache of a parsed table, which is mapped instead of parsed; table_write_cache of table.h writes it.
 *
 *     "STRTABL2" | u64 bytes of the header | JSON header | 64-byte aligned columns ... | u64 hash of everything before
 *
 * The header holds names, types, vocabularies, the offset and size of each column. Loading checks all of it: the hash, sizes,
 * offsets, category codes. It also holds path, size, time and hash of the file that the table was read from: where that file is
 * still there and is another one now, the table says so (table.doubt). */
#include "data/reader.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/input.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/pager.h"

static const char magic[] = "STRTABL2";
enum { MAGIC = 8, FAMILY = 7, PREFIX = 16, HASH = 8, HEADER_MAX = 1 << 30 }; /* FAMILY: bytes of the magic without the version */
static const char damaged_fix[] = "stretto cache DATA -o FILE   (make it again)";

static u64 mix(u64 h, u64 w) {
    h = (h ^ w) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

/* Hash of a file in pieces that are multiples of 64 bytes: four interleaved chains, so that multiplications overlap. Every step
 * is a bijection of the chain for a given word and of the word for a given chain, so no change of a single word goes unseen. */
struct chains {
    u64 h[4];
    i64 bytes;
};
static const struct chains chains_start = {.h = {1, 2, 3, 4}};

static void hash_more(struct chains *c, const void *p, i64 n) {
    for (i64 i = 0; i + 32 <= n; i += 32) {
        u64 w[4];
        memcpy(w, (const char *)p + i, 32);
        for (i32 k = 0; k < 4; k++) c->h[k] = mix(c->h[k], w[k]);
    }
    c->bytes += n;
}

static u64 hash_end(const struct chains *c) { return mix(mix(mix(c->h[0], c->h[1]), c->h[2]), c->h[3]) ^ (u64)c->bytes; }

/* ------------------------------------------------------------------ the source ---------------------------------------------- */

/* Size and time of the file that was read; false: it is no file, or is gone. */
static bool source_state(const char *path, i64 *bytes, i64 *ns) {
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    *bytes = (i64)st.st_size;
    *ns = (i64)st.st_mtim.tv_sec * 1000000000 + (i64)st.st_mtim.tv_nsec;
    return true;
}

static err source_hash(const char *path, u64 *hash) {
    enum { PIECE = 1 << 16 };
    struct chains c = chains_start;
    struct file_in f;
    char piece[PIECE];
    TRY(file_open(path, &f));
    err e = 0;
    for (i64 at = 0; at < f.size && e >= 0; at += PIECE) {
        const i64 n = lmin(PIECE, f.size - at);
        memset(piece, 0, sizeof piece);
        e = file_read_at(&f, at, piece, n);
        hash_more(&c, piece, PIECE);
    }
    file_close(&f);
    *hash = hash_end(&c);
    return e;
}

static err put_source(struct js *o, const char *path) {
    char hex[20], whole[PATH_MAX];
    struct js *s = js_object();
    i64 bytes, ns;
    u64 hash;
    err e = 0;
    if (realpath(path, whole) && source_state(whole, &bytes, &ns)) {
        e = source_hash(whole, &hash);
        snprintf(hex, sizeof hex, "%016llx", (unsigned long long)hash);
        js_put_text(s, "path", whole);
        js_put_i64(s, "size", bytes);
        js_put_i64(s, "ns", ns);
        js_put_text(s, "hash", hex);
    }
    js_put(o, "source", s);
    return e;
}

/* Sets the doubt where the source has changed since. A file of the same size and time is taken for the same. */
static err check_source(struct table *t, const struct js *s) {
    const char *path = js_str(js_get(s, "path"), "");
    char text[700], fix[700], own[PATH_MAX];
    i64 bytes, ns;
    u64 hash;
    if (!*path || !source_state(path, &bytes, &ns)) return 0;
    if (realpath(t->path, own) && strcmp(own, path) == 0) return 0; /* the copy has taken the place of its source */
    const bool same_size = bytes == js_i64(js_get(s, "size"), -1);
    if (same_size && ns == js_i64(js_get(s, "ns"), -1)) return 0;
    if (same_size && source_hash(path, &hash) >= 0 && hash == strtoull(js_str(js_get(s, "hash"), ""), NULL, 16)) return 0;
    snprintf(text, sizeof text, "%.200s was made from %.400s, which has changed since; the data are the old ones", t->path, path);
    snprintf(fix, sizeof fix, "stretto cache %.400s -o %.200s   (makes it again)", path, t->path);
    t->doubt_code = 36;
    TRY(arena_keep(&t->names, &t->doubt, text));
    return arena_keep(&t->names, &t->doubt_fix, fix);
}

/* ------------------------------------------------------------------ writing ------------------------------------------------- */

static i64 cell_size(enum col_type type) { return type == COL_CATEGORY ? 4 : 8; }

static const void *cells(const struct column *c) {
    return c->type == COL_NUMBER ? (const void *)c->number : c->type == COL_TIME ? (const void *)c->time : (const void *)c->code;
}

static const char *const types[] = {"number", "time", "category"};

static struct js *column_header(const struct column *c, i64 at) {
    struct js *o = js_object();
    js_put_text(o, "name", c->name);
    js_put_i64(o, "field", c->field);
    js_put_text(o, "type", types[c->type]);
    js_put_i64(o, "missing", c->missing);
    js_put_i64(o, "first_missing_line", c->first_missing_line);
    js_put_i64(o, "at", at);
    if (c->zoned) js_put_i64(o, "zone", c->zone);
    if (c->type != COL_CATEGORY) return o;
    struct js *words = js_array();
    for (i32 w = 0; w < c->nword; w++) js_push(words, js_new_text(c->word[w]));
    js_put(o, "words", words);
    return o;
}

static i64 stored_bytes(i64 bytes) { return bytes / 64 * 64 + 64; }

static err header_text(const struct table *t, struct str *text) {
    struct js *o = js_object(), *columns = js_array();
    i64 at = 0;
    for (i32 i = 0; i < t->ncol; i++) {
        js_push(columns, column_header(&t->col[i], at));
        at += stored_bytes(t->nrow * cell_size(t->col[i].type));
    }
    i64 line_at = t->line ? at : -1;
    if (t->line) at += stored_bytes(8 * t->nrow);
    char mark[4] = {t->sep, t->decimal, 0, 0};
    js_put_text(o, "path", t->path);
    err e = put_source(o, t->path);
    js_put_i64(o, "rows", t->nrow);
    js_put_bool(o, "header", t->has_header);
    js_put_text(o, "marks", mark);
    js_put_i64(o, "grouped", t->grouped);
    if (t->turned) js_put_i64(o, "turned", t->turned);
    if (t->doubt) js_put_text(o, "doubt", t->doubt);
    if (t->doubt) js_put_text(o, "doubt_fix", t->doubt_fix);
    js_put_i64(o, "line_at", line_at);
    js_put_i64(o, "bytes", at);
    js_put(o, "columns", columns);
    if (e >= 0) e = js_text(o, text, 0);
    js_free(o);
    return e;
}

static err put(struct file_out *f, struct chains *c, const void *p, i64 bytes) {
    hash_more(c, p, bytes);
    return file_write(f, p, bytes);
}

static err put_column(struct file_out *f, struct chains *c, const void *p, i64 bytes) {
    const i64 whole = bytes / 64 * 64;
    char rest[64] = {0};
    memcpy(rest, (const char *)p + whole, (size_t)(bytes - whole));
    TRY(put(f, c, p, whole));
    return put(f, c, rest, 64);
}

static err put_table(struct file_out *f, const struct table *t, struct str *head) {
    struct chains c = chains_start;
    u64 n = 0;
    str_addn(head, magic, MAGIC);
    str_addn(head, (const char *)&n, sizeof n);
    TRY(header_text(t, head));
    while (head->len % 64 && !head->failed) str_addn(head, " ", 1);
    TRY(str_ok(head));
    n = head->len - PREFIX;
    memcpy(head->s + MAGIC, &n, sizeof n);
    TRY(put(f, &c, head->s, (i64)head->len));
    for (i32 i = 0; i < t->ncol; i++) TRY(put_column(f, &c, cells(&t->col[i]), t->nrow * cell_size(t->col[i].type)));
    if (t->line) TRY(put_column(f, &c, t->line, 8 * t->nrow));
    const u64 hash = hash_end(&c);
    return file_write(f, &hash, sizeof hash);
}

err table_write_cache(const struct table *t, const char *path) {
    struct file_out f;
    struct str head = {0};
    TRY(file_create(path, &f));
    err e = put_table(&f, t, &head);
    str_free(&head);
    if (e >= 0) return file_commit(&f);
    file_abort(&f);
    return e;
}

static bool is(const char *path) {
    struct file_in f;
    char head[MAGIC];
    struct err_record before = *err_last();
    if (file_open(path, &f) < 0) {
        err_put(&before); /* the next reader reports it */
        return false;
    }
    bool is = f.size >= PREFIX && file_read_at(&f, 0, head, MAGIC) >= 0 && !memcmp(head, magic, FAMILY);
    file_close(&f);
    return is;
}

static err damaged(const char *path, const char *why) {
    return FAIL_AT(E202, input_label(path), damaged_fix, "the cache file is damaged or cut off (%s)", why);
}

/* Address of n cells at offset `at` after the header, or NULL if they exceed the file. */
static const void *place(const struct table *t, i64 data, i64 at, i64 n, i64 size) {
    i64 total = (i64)t->map_size - HASH;
    if (at < 0 || at % 64 || n < 0 || n > total / size || at > total - data || at + n * size > total - data) return NULL;
    return (const char *)t->map + data + at;
}

static err read_words(struct table *t, struct column *c, const struct js *words) {
    c->nword = (i32)lmin(js_len(words), INT32_MAX);
    ARENA_NEW(&t->names, c->word, c->nword + 1);
    for (i32 w = 0; w < c->nword; w++) TRY(arena_keep(&t->names, &c->word[w], js_str(js_at(words, w), "")));
    for (i64 r = 0; r < t->nrow; r++)
        if (c->code[r] < -1 || c->code[r] >= c->nword) return damaged(t->path, "a category without a word");
    return 0;
}

static err read_column(struct table *t, struct column *c, const struct js *o, i64 data) {
    const char *type = js_str(js_get(o, "type"), "");
    i32 k = 0;
    while (k < 3 && strcmp(type, types[k]) != 0) k++;
    if (k == 3) return damaged(t->path, "a column of no known type");
    c->type = (enum col_type)k;
    TRY(arena_keep(&t->names, &c->name, js_str(js_get(o, "name"), "")));
    c->field = (i32)js_i64(js_get(o, "field"), 0);
    c->missing = js_i64(js_get(o, "missing"), 0);
    c->zoned = js_get(o, "zone") != NULL;
    c->zone = (i32)js_i64(js_get(o, "zone"), 0);
    c->first_missing_line = js_i64(js_get(o, "first_missing_line"), 0);
    const void *p = place(t, data, js_i64(js_get(o, "at"), -1), t->nrow, cell_size(c->type));
    if (!p) return damaged(t->path, "a column lies outside");
    void *cell = (void *)(uintptr_t)p; /* the mapping is read-only */
    if (c->type == COL_NUMBER) c->number = cell;
    else if (c->type == COL_TIME) c->time = cell;
    else c->code = cell;
    return c->type == COL_CATEGORY ? read_words(t, c, js_get(o, "words")) : 0;
}

static err read_header(struct table *t, const struct js *o, i64 data) {
    const struct js *columns = js_get(o, "columns");
    const char *marks = js_str(js_get(o, "marks"), ",.");
    t->nrow = js_i64(js_get(o, "rows"), -1);
    i64 n = js_len(columns);
    if (t->nrow < 0 || n < 1 || n > INT32_MAX) return damaged(t->path, "no rows or columns");
    if (js_i64(js_get(o, "bytes"), -1) != (i64)t->map_size - HASH - data) return damaged(t->path, "it has another size");
    t->has_header = js_bool(js_get(o, "header"), true);
    t->sep = marks[0];
    t->decimal = marks[0] ? marks[1] : 0;
    t->grouped = js_i64(js_get(o, "grouped"), 0);
    t->turned = (i32)js_i64(js_get(o, "turned"), 0);
    const char *doubt = js_str(js_get(o, "doubt"), "");
    if (*doubt) TRY(arena_keep(&t->names, &t->doubt, doubt));
    if (*doubt) TRY(arena_keep(&t->names, &t->doubt_fix, js_str(js_get(o, "doubt_fix"), "")));
    TRY(check_source(t, js_get(o, "source")));
    NEW(t->col, n);
    for (; t->ncol < n; t->ncol++) TRY(read_column(t, &t->col[t->ncol], js_at(columns, t->ncol), data));
    i64 at = js_i64(js_get(o, "line_at"), -1);
    if (at < 0) return 0;
    const void *p = place(t, data, at, t->nrow, 8);
    if (!p) return damaged(t->path, "the line numbers lie outside");
    t->line = (i64 *)(uintptr_t)p;
    return 0;
}

/* The bytes alone, before any of them is believed; *header = bytes of the header. */
static err check_bytes(const char *path, const struct file_map *m, u64 *header) {
    struct chains c = chains_start;
    u64 hash;
    if (m->size < PREFIX + HASH) return damaged(path, "no header");
    if (memcmp(m->p, magic, MAGIC) != 0)
        return FAIL_AT(E202, path, damaged_fix, "the cache file was written by another version of stretto");
    if (m->size % 64 != HASH) return damaged(path, "it is cut off");
    hash_more(&c, m->p, m->size - HASH);
    memcpy(&hash, (const char *)m->p + m->size - HASH, sizeof hash);
    if (hash != hash_end(&c)) return damaged(path, "its hash does not fit");
    memcpy(header, (const char *)m->p + MAGIC, sizeof *header);
    if (*header > HEADER_MAX || (i64)*header > m->size - PREFIX - HASH) return damaged(path, "the header is cut off");
    return (PREFIX + *header) % 64 ? damaged(path, "its columns do not begin where numbers can be read") : 0;
}

static err read_map(struct table *t, const char *path, struct js **o) {
    struct file_map m;
    u64 n = 0;
    TRY(file_map(path, &m));
    t->map = (void *)(uintptr_t)m.p;
    t->map_size = (size_t)m.size;
    if (!file_is_remote(t->path)) pager_watch(t->map, t->map_size, PROT_READ, -1, 0); /* only within --memory */
    TRY(check_bytes(t->path, &m, &n));
    TRY(js_parse((const char *)m.p + PREFIX, n, t->path, o));
    return read_header(t, *o, PREFIX + (i64)n);
}

static err read(const char *path, const struct read_options *options __attribute__((unused)), struct table **out) {
    struct table *t;
    struct js *o = NULL;
    NEW(t, 1);
    err e = arena_keep(&t->names, &t->path, input_label(path));
    if (e >= 0) e = read_map(t, path, &o);
    js_free(o);
    if (e < 0) table_free(t);
    else *out = t;
    return e == -E104 ? damaged(path, "its header is no JSON") : e;
}

extern const struct reader reader_cache;
const struct reader reader_cache = {
    .name = "cache",
    .help = "parsed copies that `stretto cache` wrote; mapped, not read",
    .is = is,
    .read = read,
};
