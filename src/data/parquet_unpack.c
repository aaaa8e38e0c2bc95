/* parquet_unpack.c - pages of Parquet files are compressed: Snappy and LZ4 by decoders of our own, gzip and zstd by their
 * library.
 *
 *     Snappy   size | tag: literal of n bytes | tag: copy n bytes from so far back | ..
 *     LZ4      token (literals, length) | literals | so far back (2 bytes) | ..          a copy is 4 bytes longer than it says */
#include <string.h>

#include "base/zfile.h"
#include "data/parquet.h"

enum { PLAIN, SNAPPY, GZIP, LZO, BROTLI, LZ4_HADOOP, ZSTD, LZ4 };

/* Copies n bytes from `back` bytes before *to, which may overlap. */
static bool copy_back(u8 *start, u8 **to, const u8 *end, u64 back, u64 n) {
    if (back == 0 || back > (u64)(*to - start) || n > (u64)(end - *to)) return false;
    for (u64 i = 0; i < n; i++, ++*to) **to = *(*to - back);
    return true;
}

static bool copy_literal(const u8 **p, const u8 *from_end, u8 **to, const u8 *end, u64 n) {
    if (n > (u64)(from_end - *p) || n > (u64)(end - *to)) return false;
    memcpy(*to, *p, (size_t)n);
    *p += n;
    *to += n;
    return true;
}

/* A number of so many bytes, little-endian. */
static bool number(const u8 **p, const u8 *end, i32 bytes, u64 *out) {
    *out = 0;
    if (end - *p < bytes) return false;
    for (i32 i = 0; i < bytes; i++) *out |= (u64) * (*p)++ << 8 * i;
    return true;
}

static bool unsnappy(const u8 *p, const u8 *end, u8 *out, i64 size) {
    u8 *to = out;
    u64 whole = 0, n, back;
    for (i32 shift = 0;; shift += 7) {
        if (p == end || shift > 28) return false;
        whole |= (u64)(*p & 0x7F) << shift;
        if (!(*p++ & 0x80)) break;
    }
    if (whole != (u64)size) return false;
    while (p < end) {
        const u8 tag = *p++;
        if ((tag & 3) == 0) {
            n = tag >> 2;
            if (n >= 60 && !number(&p, end, (i32)n - 59, &n)) return false;
            if (!copy_literal(&p, end, &to, out + size, n + 1)) return false;
            continue;
        }
        const bool near = (tag & 3) == 1;
        n = near ? (u64)((tag >> 2 & 7) + 4) : (u64)((tag >> 2) + 1);
        if (!number(&p, end, near ? 1 : (tag & 3) == 2 ? 2 : 4, &back)) return false;
        if (near) back |= (u64)(tag >> 5) << 8;
        if (!copy_back(out, &to, out + size, back, n)) return false;
    }
    return to == out + size;
}

/* A length that goes on in bytes of 255. */
static bool more_length(const u8 **p, const u8 *end, u64 *n) {
    u8 b = 255;
    if (*n < 15) return true;
    while (b == 255) {
        if (*p == end) return false;
        b = *(*p)++;
        *n += b;
    }
    return true;
}

static bool unlz4(const u8 *p, const u8 *end, u8 *out, i64 size) {
    u8 *to = out;
    while (p < end) {
        const u8 token = *p++;
        u64 n = token >> 4, back;
        if (!more_length(&p, end, &n) || !copy_literal(&p, end, &to, out + size, n)) return false;
        if (p == end) break; /* the last literals */
        n = token & 15;
        if (!number(&p, end, 2, &back) || !more_length(&p, end, &n) || !copy_back(out, &to, out + size, back, n + 4))
            return false;
    }
    return to == out + size;
}

static bool big_endian(const u8 **p, const u8 *end, i64 *out) {
    if (end - *p < 4) return false;
    *out = (i64)(*p)[0] << 24 | (*p)[1] << 16 | (*p)[2] << 8 | (*p)[3];
    *p += 4;
    return true;
}

/* Hadoop's frames: bytes unpacked, bytes packed, LZ4 data. */
static bool unlz4_hadoop(const u8 *p, const u8 *end, u8 *to, i64 size) {
    while (size > 0) {
        i64 whole, packed;
        if (!big_endian(&p, end, &whole) || !big_endian(&p, end, &packed)) return false;
        if (packed > end - p || whole > size || !unlz4(p, p + packed, to, whole)) return false;
        p += packed;
        to += whole;
        size -= whole;
        if (whole == 0) return false;
    }
    return p == end;
}

bool parquet_unpack(i32 codec, const u8 *from, i64 n, u8 *to, i64 size, bool *known) {
    *known = codec >= PLAIN && codec <= LZ4 && codec != LZO && codec != BROTLI;
    switch (codec) {
        case PLAIN:
            if (n == size && n > 0) memcpy(to, from, (size_t)n);
            return n == size;
        case SNAPPY:
            return unsnappy(from, from + n, to, size);
        case GZIP:
            return zfile_unpack_gzip(from, n, to, size);
        case ZSTD:
            return zfile_unpack(from, n, to, size);
        case LZ4_HADOOP:
            return unlz4_hadoop(from, from + n, to, size) || unlz4(from, from + n, to, size);
        case LZ4:
            return unlz4(from, from + n, to, size);
        default:
            return false;
    }
}
