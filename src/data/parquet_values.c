/* parquet_values.c - encodings of values in the pages of Parquet files.
 *
 *     runs      header even: (header / 2) times one value | header odd: (header / 2) * 8 values, packed from the lowest bit on
 *     deltas    block size, miniblocks, n, first | block: least delta, bits of each miniblock, packed deltas | ..
 *     split     first bytes of all values | second bytes of all | ..                                                          */
#include <string.h>

#include "data/parquet.h"
#include "data/thrift.h"

/* Number i of `bits` bits that are packed from the lowest on; 8 bytes behind the last may not be readable. */
static u64 packed_at(const u8 *p, i32 bits, i64 i) {
    u64 v = 0;
    const i64 at = i * bits, last = (at + bits - 1) >> 3;
    for (i64 k = last; k >= at >> 3; k--) {
        if (k - (at >> 3) == 8) { /* a number of more than 57 bits can touch nine bytes */
            v = p[k];
            v <<= 64 - (at & 7);
            u64 low = 0;
            memcpy(&low, p + (at >> 3), 8);
            v |= low >> (at & 7);
            return bits == 64 ? v : v & (((u64)1 << bits) - 1);
        }
        v = v << 8 | p[k];
    }
    v >>= at & 7;
    return bits == 64 ? v : v & (((u64)1 << bits) - 1);
}

const u8 *parquet_runs(const u8 *p, const u8 *end, i32 bits, u32 *out, i64 n) {
    const i32 bytes = (bits + 7) / 8;
    for (i64 i = 0; i < n;) {
        struct thrift t = {.p = p, .end = end};
        const u64 head = thrift_varint(&t), count = head >> 1;
        p = t.p;
        if (t.bad || count == 0 || count > (u64)1 << 40) return NULL;
        if (head & 1) {
            const i64 most = lmin((i64)count * 8, n - i), need = (most * bits + 7) / 8;
            if (need > end - p) return NULL;
            for (i64 k = 0; k < most && bits; k++) out[i + k] = (u32)packed_at(p, bits, k);
            if (!bits) memset(out + i, 0, (size_t)most * sizeof *out);
            i += most;
            p += lmin((i64)count * bits, end - p);
        } else {
            u32 v = 0;
            if (bytes > end - p) return NULL;
            for (i32 k = 0; k < bytes; k++) v |= (u32)p[k] << 8 * k;
            p += bytes;
            for (const i64 stop = lmin(n, i + (i64)count); i < stop; i++) out[i] = v;
        }
    }
    return p;
}

const u8 *parquet_deltas(const u8 *p, const u8 *end, i64 *out, i64 n) {
    struct thrift t = {.p = p, .end = end};
    const u64 block = thrift_varint(&t), minis = thrift_varint(&t), count = thrift_varint(&t);
    u64 last = (u64)thrift_zigzag(&t);
    if (t.bad || count != (u64)n || minis == 0 || minis > 512 || block == 0 || block > 1 << 20 || block % minis) return NULL;
    const i64 each = (i64)(block / minis);
    if (each % 8) return NULL;
    if (n > 0) out[0] = (i64)last;
    for (i64 i = 1; i < n;) {
        const u64 least = (u64)thrift_zigzag(&t);
        if (t.bad || (i64)minis > t.end - t.p) return NULL;
        const u8 *const width = t.p;
        t.p += minis;
        for (u64 m = 0; m < minis && i < n; m++) {
            const i32 bits = width[m];
            if (bits > 64 || each * bits / 8 > t.end - t.p) return NULL;
            for (i64 k = 0; k < each && i < n; k++, i++) {
                last += least + (bits ? packed_at(t.p, bits, k) : 0);
                out[i] = (i64)last;
            }
            t.p += each * bits / 8;
        }
    }
    return t.p;
}

i32 parquet_width(const struct parquet_leaf *l) {
    static const i32 width[] = {[PARQUET_BOOL] = 1,  [PARQUET_INT32] = 4,  [PARQUET_INT64] = 8, [PARQUET_INT96] = 8,
                                [PARQUET_FLOAT] = 4, [PARQUET_DOUBLE] = 8, [PARQUET_BYTES] = 0, [PARQUET_FIXED] = 16};
    return width[l->type];
}

/* Bytes of a value in the file. */
static i32 stored(const struct parquet_leaf *l) {
    return l->type == PARQUET_INT96 ? 12 : l->type == PARQUET_FIXED ? l->length : parquet_width(l);
}

/* 12 bytes: nanoseconds of the day, and the day since noon of 4714 BC -> microseconds since 1970. */
static void put_int96(const u8 *p, u8 *out) {
    enum { DAY_OF_1970 = 2440588, LAST_DAY = 5373484 }; /* of the year 9999; later ones are refused as times */
    u64 nano;
    u32 day;
    memcpy(&nano, p, 8);
    memcpy(&day, p + 8, 4);
    const i64 micro = day > LAST_DAY ? INT64_MAX : ((i64)day - DAY_OF_1970) * 86400000000 + (i64)(nano / 1000);
    memcpy(out, &micro, 8);
}

/* A decimal: the highest byte first -> 16 bytes, the lowest first. */
static void put_decimal(const u8 *p, i32 n, u8 *out) {
    memset(out, p[0] & 0x80 ? 0xFF : 0, 16);
    for (i32 i = 0; i < n; i++) out[n - 1 - i] = p[i];
}

static void put(const struct parquet_leaf *l, const u8 *p, u8 *out) {
    if (l->type == PARQUET_INT96)
        put_int96(p, out);
    else if (l->type == PARQUET_FIXED)
        put_decimal(p, l->length, out);
    else
        memcpy(out, p, (size_t)stored(l));
}

static const u8 *plain(const struct parquet_leaf *l, const u8 *p, const u8 *end, u8 *out, i64 n) {
    const i32 bytes = stored(l), width = parquet_width(l);
    if (l->type == PARQUET_BOOL) {
        if (n / 8 + (n % 8 != 0) > end - p) return NULL;
        for (i64 i = 0; i < n; i++) out[i] = p[i >> 3] >> (i & 7) & 1;
        return p + n / 8 + (n % 8 != 0);
    }
    if (n > (end - p) / bytes) return NULL;
    if (bytes == width && l->type != PARQUET_FIXED)
        memcpy(out, p, (size_t)(n * bytes));
    else
        for (i64 i = 0; i < n; i++) put(l, p + i * bytes, out + i * width);
    return p + n * bytes;
}

static const u8 *split(const struct parquet_leaf *l, const u8 *p, const u8 *end, u8 *out, i64 n) {
    const i32 bytes = stored(l), width = parquet_width(l);
    u8 value[16];
    if (l->type == PARQUET_BOOL || n > (end - p) / bytes) return NULL;
    for (i64 i = 0; i < n; i++) {
        for (i32 k = 0; k < bytes; k++) value[k] = p[k * n + i];
        put(l, value, out + i * width);
    }
    return p + n * bytes;
}

/* A length of four bytes before the runs of true and false. */
static const u8 *bools(const u8 *p, const u8 *end, u8 *out, i64 n, i64 *spare) {
    u32 *const bit = (u32 *)spare;
    if (end - p < 4 || !parquet_runs(p + 4, end, 1, bit, n)) return NULL;
    for (i64 i = 0; i < n; i++) out[i] = bit[i] & 1;
    return end;
}

const u8 *parquet_fixed(const struct parquet_leaf *l, i32 encoding, const u8 *p, const u8 *end, u8 *out, i64 n, i64 *spare) {
    if (encoding == PARQUET_PLAIN) return plain(l, p, end, out, n);
    if (encoding == PARQUET_SPLIT) return split(l, p, end, out, n);
    if (encoding == PARQUET_RLE && l->type == PARQUET_BOOL) return bools(p, end, out, n, spare);
    if (encoding != PARQUET_DELTA || (l->type != PARQUET_INT32 && l->type != PARQUET_INT64)) return NULL;
    p = parquet_deltas(p, end, spare, n);
    for (i64 i = 0; i < n && p; i++) memcpy(out + i * stored(l), &spare[i], (size_t)stored(l));
    return p;
}
