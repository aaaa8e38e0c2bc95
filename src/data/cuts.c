/* cuts.c - quantile cuts of a column of numbers; see cuts.h. */
#include "data/cuts.h"

#include <string.h>

/* Order of the bits of a number as unsigned integers: negative ones reversed. */
static u64 key_of(f64 v) {
    u64 k;
    memcpy(&k, &v, sizeof k);
    return k >> 63 ? ~k : k | (u64)1 << 63;
}

static f64 number_of(u64 k) {
    f64 v;
    k = k >> 63 ? k & ~((u64)1 << 63) : ~k;
    memcpy(&v, &k, sizeof v);
    return v;
}

/* Radix sort, least significant byte first; a byte that all keys share costs nothing. */
void cuts_sort(f64 *v, f64 *spare, i64 n) {
    u64 *from = (u64 *)(void *)v, *to = (u64 *)(void *)spare;
    i64 count[8][256] = {{0}};
    for (i64 i = 0; i < n; i++) {
        from[i] = key_of(v[i]);
        for (i32 b = 0; b < 8; b++) count[b][from[i] >> (8 * b) & 255]++;
    }
    for (i32 b = 0; b < 8; b++) {
        i64 at = 0;
        if (n == 0 || count[b][from[0] >> (8 * b) & 255] == n) continue;
        for (i32 k = 0; k < 256; k++) {
            const i64 c = count[b][k];
            count[b][k] = at;
            at += c;
        }
        for (i64 i = 0; i < n; i++) to[count[b][from[i] >> (8 * b) & 255]++] = from[i];
        u64 *swap = from;
        from = to;
        to = swap;
    }
    for (i64 i = 0; i < n; i++) ((f64 *)(void *)from)[i] = number_of(from[i]);
    if ((f64 *)(void *)from != v) memcpy(v, from, sizeof *v * (size_t)n);
}

/* Halfway between two different numbers, below the larger one also where rounding would meet it. */
static f64 between(f64 a, f64 b) {
    const f64 m = a + 0.5 * (b - a);
    return m < b ? m : a;
}

i32 cuts_of(const f64 *v, i64 n, f64 *cut) {
    i64 different = n > 0;
    i32 k = 0;
    for (i64 i = 1; i < n; i++) different += v[i] > v[i - 1];
    if (different <= CUTS_MOST + 1) {
        for (i64 i = 1; i < n; i++)
            if (v[i] > v[i - 1]) cut[k++] = between(v[i - 1], v[i]);
        return k;
    }
    for (i64 q = 1, last = 0; q <= CUTS_MOST; q++) {
        i64 i = n * q / (CUTS_MOST + 1);
        while (i < n && i > 0 && !(v[i] > v[i - 1])) i++; /* equal numbers stay together */
        if (i >= n || i <= last) continue;
        cut[k++] = between(v[i - 1], v[i]);
        last = i;
    }
    return k;
}
