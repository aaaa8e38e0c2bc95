/* zfile.c - see zfile.h. The only file that uses zlib and zstd. Reads compressed input in small pieces; the output buffer
 * doubles. */
#include "base/zfile.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/file.h"
#include "base/spill.h"

enum { PIECE = 1 << 18 };

struct growing {
    void *p;
    i64 n, cap;
};

enum zkind zfile_kind(const void *head, i64 n) {
    const u8 *b = head;
    if (n >= 2 && b[0] == 0x1f && b[1] == 0x8b) return Z_GZIP;
    if (n >= 4 && b[0] == 0x28 && b[1] == 0xb5 && b[2] == 0x2f && b[3] == 0xfd) return Z_ZSTD;
    return Z_PLAIN;
}

/* Ensures room for at least one more byte besides the final NUL. */
static err grow(struct growing *g) {
    void *more;
    if (g->n + 1 < g->cap) return 0;
    TRY(spill_new(&more, 2 * g->cap, 1));
    memcpy(more, g->p, (size_t)g->n);
    mem_free(g->p);
    g->p = more;
    g->cap *= 2;
    return 0;
}

static err damaged(const char *path, const char *tool, const char *why) {
    char fix[64];
    snprintf(fix, sizeof fix, "%s -t FILE says more; fetch the file again", tool);
    return FAIL_AT(E202, path, fix, "the packed data are damaged or cut off (%s)", why);
}

/* A gzip file may consist of several members. */
static err unpack_gzip(const struct file_in *f, struct growing *g, u8 *in) {
    z_stream z = {0};
    if (inflateInit2(&z, 15 + 16) != Z_OK) return FAIL(E601, "no memory for the gzip reader");
    err e = 0;
    int state = Z_OK;
    for (i64 got = 0; e >= 0;) {
        if (z.avail_in == 0) {
            e = file_read_some(f, in, PIECE, &got);
            if (e < 0 || got == 0) break;
            z.next_in = in;
            z.avail_in = (uInt)got;
        }
        if (state == Z_STREAM_END) {
            if (z.next_in[0] != 0x1f) break; /* padding after the last member */
            inflateReset(&z);
        }
        e = grow(g);
        if (e < 0) break;
        i64 room = lmin(g->cap - 1 - g->n, 1 << 30);
        z.next_out = (Bytef *)g->p + g->n;
        z.avail_out = (uInt)room;
        state = inflate(&z, Z_NO_FLUSH);
        g->n += room - (i64)z.avail_out;
        if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) e = damaged(f->path, "gzip", z.msg ? z.msg : "gzip");
    }
    if (e >= 0 && state != Z_STREAM_END) e = damaged(f->path, "gzip", "the end is missing");
    inflateEnd(&z);
    return e;
}

static err unpack_zstd(const struct file_in *f, struct growing *g, u8 *in) {
    ZSTD_DStream *z = ZSTD_createDStream();
    if (!z) return FAIL(E601, "no memory for the zstd reader");
    ZSTD_inBuffer from = {in, 0, 0};
    size_t state = 1;
    err e = 0;
    for (i64 got = 0; e >= 0;) {
        if (from.pos == from.size) {
            e = file_read_some(f, in, PIECE, &got);
            if (e < 0 || got == 0) break;
            from = (ZSTD_inBuffer){in, (size_t)got, 0};
        }
        bool full = true;
        while (e >= 0 && (from.pos < from.size || full)) {
            e = grow(g);
            if (e < 0) break;
            ZSTD_outBuffer to = {(char *)g->p + g->n, (size_t)(g->cap - 1 - g->n), 0};
            state = ZSTD_decompressStream(z, &to, &from);
            g->n += (i64)to.pos;
            full = to.pos == to.size && state != 0;
            if (ZSTD_isError(state)) e = damaged(f->path, "zstd", ZSTD_getErrorName(state));
        }
    }
    if (e >= 0 && state != 0) e = damaged(f->path, "zstd", "the end is missing");
    ZSTD_freeDStream(z);
    return e;
}

err zfile_load(const char *path, char **data, i64 *size) {
    *data = NULL;
    *size = 0;
    struct file_in f;
    TRY(file_open(path, &f));
    u8 head[4] = {0};
    i64 seen = f.size < 0 ? 0 : lmin(f.size, 4);
    err e = file_read_at(&f, 0, head, seen);
    enum zkind kind = zfile_kind(head, seen);
    if (e < 0 || kind == Z_PLAIN) {
        file_close(&f);
        return e < 0 ? e : file_load(path, INT64_MAX / 4, data, size);
    }
    struct growing g = {.cap = lmax(1 << 16, 4 * f.size)};
    u8 *in = mem_alloc(PIECE);
    e = in ? spill_new(&g.p, g.cap, 1) : -E601;
    if (e >= 0) e = kind == Z_GZIP ? unpack_gzip(&f, &g, in) : unpack_zstd(&f, &g, in);
    mem_free(in);
    file_close(&f);
    if (e < 0) {
        mem_free(g.p);
        return e;
    }
    *data = g.p;
    (*data)[g.n] = 0;
    *size = g.n;
    return 0;
}

enum { HEAD_BYTES = 1 << 14 , HEAD_FIRST = 4096};

static i64 head_of_gzip(u8 *in, i64 n, void *to, i64 most) {
    z_stream z = {.next_in = in, .avail_in = (uInt)n, .next_out = to, .avail_out = (uInt)most};
    if (inflateInit2(&z, 15 + 16) != Z_OK) return 0;
    inflate(&z, Z_SYNC_FLUSH);
    inflateEnd(&z);
    return most - (i64)z.avail_out;
}

static i64 head_of_zstd(const u8 *in, i64 n, void *to, i64 most) {
    ZSTD_DStream *z = ZSTD_createDStream();
    ZSTD_inBuffer from = {in, (size_t)n, 0};
    ZSTD_outBuffer out = {to, (size_t)most, 0};
    while (z && out.pos < out.size && from.pos < from.size)
        if (ZSTD_isError(ZSTD_decompressStream(z, &out, &from))) break;
    ZSTD_freeDStream(z);
    return (i64)out.pos;
}

err zfile_head(const char *path, void *to, i64 n, i64 *got) {
    struct file_in f;
    u8 in[HEAD_BYTES];
    *got = 0;
    TRY(file_open(path, &f));
    i64 seen = lmin(f.size, HEAD_FIRST);
    err e = seen > 0 ? file_read_at(&f, 0, in, seen) : 0;
    const enum zkind kind = e < 0 || seen <= 0 ? Z_PLAIN : zfile_kind(in, seen);
    if (e >= 0 && kind != Z_PLAIN && f.size > seen) { /* a whole block of it */
        seen = lmin(f.size, HEAD_BYTES);
        e = file_read_at(&f, 0, in, seen);
    }
    file_close(&f);
    if (e < 0 || seen <= 0) return e;
    n = lmin(n, HEAD_BYTES);
    *got = kind == Z_GZIP ? head_of_gzip(in, seen, to, n) : kind == Z_ZSTD ? head_of_zstd(in, seen, to, n) : lmin(seen, n);
    if (kind == Z_PLAIN) memcpy(to, in, (size_t)*got);
    return 0;
}

bool zfile_unpack(const void *from, i64 n, void *to, i64 size) {
    return ZSTD_decompress(to, (size_t)size, from, (size_t)n) == (size_t)size;
}

bool zfile_unpack_gzip(const void *from, i64 n, void *to, i64 size) {
    z_stream z = {.next_in = (Bytef *)(uintptr_t)from, .avail_in = (uInt)n, .next_out = to, .avail_out = (uInt)size};
    int state = Z_STREAM_END;
    if (n > UINT32_MAX / 2 || size > UINT32_MAX / 2 || inflateInit2(&z, 15 + 16) != Z_OK) return false;
    while (state == Z_STREAM_END && z.avail_in > 0) {
        state = inflate(&z, Z_FINISH);
        if (state == Z_STREAM_END && z.avail_in > 0 && inflateReset(&z) != Z_OK) state = Z_DATA_ERROR;
    }
    inflateEnd(&z);
    return state == Z_STREAM_END && z.avail_out == 0;
}
