/* csv_source.c - the bytes of a text table, from a file or from memory, with a margin of line feeds.
 *
 * UTF-16 (a spreadsheet's "Unicode text") is converted to UTF-8. Line feeds are kept, so line numbers in messages match the file.
 *
 *     FF FE | 61 00 | 3D D8 00 DE      ->      61 | F0 9F 98 80      16-bit units or surrogate pairs, little-endian
 *     FE FF | 00 61 | D8 3D DE 00              big-endian, by the byte order mark */
#include <string.h>

#include "base/mem.h"
#include "base/zfile.h"
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
    if (s->part) TRY(csv_read_parts(s, from, to, at));
    else if (s->mem) memcpy(at, s->mem + from, (size_t)n);
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

static bool is_utf16(const char *head, i64 n) { return n >= 2 && (!memcmp(head, "\xFF\xFE", 2) || !memcmp(head, "\xFE\xFF", 2)); }

static u32 unit_at(const char *p, bool high_first) {
    const u32 a = (u8)p[0], b = (u8)p[1];
    return high_first ? a << 8 | b : b << 8 | a;
}

static char *put_utf8(char *to, u32 c) {
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
    } else {
        if (c >= 0x10000) *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(c >= 0x10000 ? 0x80 | (c >> 12 & 0x3F) : 0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
    }
    if (c >= 0x80) *to++ = (char)(0x80 | (c & 0x3F));
    return to;
}

static err broken(const struct csv_source *s, i64 line, const char *what) {
    char where[256];
    file_where(s->name, line, 0, where);
    return FAIL_AT(E202, where, "save the file again as UTF-8, or as UTF-16 that is whole", "%s", what);
}

/* `to` has room for three bytes per unit of s; *size = bytes written. */
static err decode(const struct csv_source *s, char *to, i64 *size) {
    const bool high_first = (u8)s->mem[0] == 0xFE;
    char *const start = to;
    i64 line = 1;
    for (i64 i = 2; i < s->size; i += 2) {
        if (i + 1 == s->size) return broken(s, line, "the UTF-16 text ends within a character");
        u32 c = unit_at(s->mem + i, high_first);
        line += c == '\n';
        if (c >= 0xD800 && c < 0xE000) { /* high surrogate, then low */
            const u32 low = i + 3 < s->size ? unit_at(s->mem + i + 2, high_first) : 0;
            if (c >= 0xDC00 || low < 0xDC00 || low >= 0xE000) return broken(s, line, "half a pair of characters in UTF-16");
            c = 0x10000 + ((c & 0x3FF) << 10 | (low & 0x3FF));
            i += 2;
        }
        to = put_utf8(to, c);
    }
    *size = to - start;
    return 0;
}

static err decode_utf16(struct csv_source *s) {
    char *text;
    i64 n;
    NEW(text, s->size / 2 * 3 + 1);
    err e = decode(s, text, &n);
    if (e < 0) {
        mem_free(text);
        return e;
    }
    mem_free(s->mem);
    s->mem = text;
    s->size = n;
    return 0;
}

/* Opens the file; decompresses and decodes it if necessary. */
err csv_open(struct csv_source *s) {
    TRY(file_open(s->path, &s->file));
    s->size = s->file.size;
    u8 head[4] = {0};
    i64 seen = lmax(0, lmin(s->size, 4));
    TRY(file_read_at(&s->file, 0, head, seen));
    if (s->size >= 0 && zfile_kind(head, seen) == Z_PLAIN && !is_utf16((const char *)head, seen)) return 0;
    file_close(&s->file);
    TRY(zfile_load(s->path, &s->mem, &s->size)); /* compressed, a pipe, or UTF-16 */
    return is_utf16(s->mem, s->size) ? decode_utf16(s) : 0;
}
