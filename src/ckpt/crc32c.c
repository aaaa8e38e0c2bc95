/* crc32c.c - see crc32c.h: slicing-by-8, eight bytes per iteration with eight tables. */
#include "ckpt/crc32c.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"

#define POLY 0x82f63b78u
enum { BYTES = 8, READ_BYTES = 1 << 20 };

static u32 table[BYTES][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void) {
    for (u32 i = 0; i < 256; i++) {
        u32 c = i;
        for (i32 bit = 0; bit < 8; bit++) c = c & 1 ? c >> 1 ^ POLY : c >> 1;
        table[0][i] = c;
    }
    for (u32 i = 0; i < 256; i++)
        for (i32 k = 1; k < BYTES; k++) table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
}

static u32 one(u32 c, u8 byte) { return c >> 8 ^ table[0][(c ^ byte) & 255]; }

u32 crc32c(u32 before, const void *from, i64 n) {
    const u8 *p = from;
    u32 c = ~before;
    pthread_once(&once, make_tables);
    for (; n >= BYTES; n -= BYTES, p += BYTES) {
        u64 w;
        memcpy(&w, p, sizeof w);
        w ^= c; /* little-endian, as all file formats here */
        c = 0;
        for (i32 k = 0; k < BYTES; k++) c ^= table[BYTES - 1 - k][w >> (8 * k) & 255];
    }
    for (; n > 0; n--) c = one(c, *p++);
    return ~c;
}

static err sum_file(const struct file_in *f, u32 *crc) {
    char *buf;
    err e = 0;
    *crc = 0;
    NEW(buf, READ_BYTES);
    for (i64 at = 0; at < f->size && e >= 0; at += READ_BYTES) {
        const i64 n = lmin(READ_BYTES, f->size - at);
        e = file_read_at(f, at, buf, n);
        if (e >= 0) *crc = crc32c(*crc, buf, n);
    }
    mem_free(buf);
    return e;
}

err crc32c_file(const char *path, i64 *bytes, u32 *crc) {
    struct file_in f;
    TRY(file_open(path, &f));
    *bytes = f.size;
    err e = sum_file(&f, crc);
    file_close(&f);
    return e;
}
