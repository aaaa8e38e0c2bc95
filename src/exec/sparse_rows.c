/* sparse_rows.c - clears, adds, packs and unpacks the marked rows of a vector. */
#include "exec/sparse_rows.h"

#include <string.h>

/* Rows are processed in blocks of BLOCK. If more than 1 / MANY of a block is marked, the whole block is processed densely. */
enum { ROW = LINE_FLOATS * sizeof(f32), WORD = sizeof(u64), BLOCK = 256, MANY = 16 };

static u64 word(const u8 *at) {
    u64 w;
    memcpy(&w, at, WORD);
    return w;
}

/* The first row from i on that a or b has marked, n = none.  Little-endian machines. */
static inline i64 next_row(const u8 *a, const u8 *b, i64 i, i64 n) {
    for (; i + WORD <= n; i += WORD) {
        const u64 w = word(a + i) | word(b + i);
        if (w) return i + __builtin_ctzll(w) / 8;
    }
    while (i < n && !(a[i] | b[i])) i++;
    return i;
}

/* Rows of n that a or b has marked. */
static i64 count_of(const u8 *a, const u8 *b, i64 n) {
    i64 i = 0, count = 0;
    for (; i + WORD <= n; i += WORD) count += (i64)((word(a + i) | word(b + i)) * 0x0101010101010101 >> 56);
    for (; i < n; i++) count += a[i] | b[i];
    return count;
}

static void clear_block(i64 n, struct sparse_rows v) {
    const i64 count = count_of(v.mark, v.mark, n);
    if (count == 0) return;
    if (count > n / MANY)
        memset(v.value, 0, (size_t)n * ROW);
    else
        for (i64 i = next_row(v.mark, v.mark, 0, n); i < n; i = next_row(v.mark, v.mark, i + 1, n))
            memset(v.value + i * LINE_FLOATS, 0, ROW);
    memset(v.mark, 0, (size_t)n);
}

void sparse_clear(i64 n, struct sparse_rows v) {
    for (i64 i = 0; i < n; i += BLOCK)
        clear_block(lmin(BLOCK, n - i), (struct sparse_rows){v.value + i * LINE_FLOATS, v.mark + i});
}

static void add_row(f32 *y, const f32 *x) {
    for (i32 j = 0; j < LINE_FLOATS; j++) y[j] += x[j];
}

static void add_block(i64 n, struct sparse_rows a, struct sparse_rows b, vector_add *add) {
    const i64 count = count_of(a.mark, b.mark, n);
    if (count == 0) return;
    if (count > n / MANY) {
        add(n * LINE_FLOATS, a.value, b.value);
        for (i64 i = 0; i < n; i++) a.mark[i] |= b.mark[i];
        return;
    }
    for (i64 i = next_row(a.mark, b.mark, 0, n); i < n; i = next_row(a.mark, b.mark, i + 1, n)) {
        a.mark[i] = 1;
        add_row(a.value + i * LINE_FLOATS, b.value + i * LINE_FLOATS);
    }
}

void sparse_add(i64 n, struct sparse_rows a, struct sparse_rows b, vector_add *add) {
    for (i64 i = 0; i < n; i += BLOCK) {
        const i64 at = i * LINE_FLOATS;
        add_block(lmin(BLOCK, n - i), (struct sparse_rows){a.value + at, a.mark + i},
                  (struct sparse_rows){b.value + at, b.mark + i}, add);
    }
}

u32 sparse_pack(i64 n, struct sparse_rows v, unsigned char *out) {
    const u32 count = (u32)lines_sent(n, count_of(v.mark, v.mark, n));
    unsigned char *number = out + sizeof count, *to = number + lines_numbers(n, count);
    memcpy(out, &count, sizeof count);
    if (count == n) memcpy(to, v.value, (size_t)n * ROW);
    for (i64 i = next_row(v.mark, v.mark, 0, n); count < n && i < n; i = next_row(v.mark, v.mark, i + 1, n)) {
        const u16 which = (u16)i;
        memcpy(number, &which, sizeof which);
        memcpy(to, v.value + i * LINE_FLOATS, ROW);
        number += sizeof which;
        to += ROW;
    }
    return (u32)lines_bytes(n, count);
}

bool sparse_unpack(i64 n, struct sparse_rows v, const unsigned char *in, u32 bytes) {
    u32 count;
    u16 number;
    memcpy(&count, in, sizeof count);
    if (count > n || lines_bytes(n, count) != bytes) return false;
    const unsigned char *from = in + sizeof count + lines_numbers(n, count);
    sparse_clear(n, v);
    for (u32 k = 0; k < count; k++, from += ROW) {
        i64 i = k;
        if (count < n) {
            memcpy(&number, in + sizeof count + k * sizeof number, sizeof number);
            i = number;
        }
        if (i >= n) return false;
        memcpy(v.value + i * LINE_FLOATS, from, ROW);
        v.mark[i] = 1;
    }
    return true;
}
