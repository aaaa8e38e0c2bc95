/* number.h - decimal text to f64, correctly rounded, independent of the locale, usually without a division.
 *
 *     sign digits [mark digits] [e exponent]      mantissa w (up to 19 digits) times 10^k
 *
 *     w <= 2^53 and |k| <= 22     one multiplication or division of exact doubles is exact (Clinger 1990)
 *     k < 0                       multiply by 1 / 10^-k as a 64-bit integer; if the 128-bit product is too close to the midpoint
 *                                 of two doubles, divide with 128 bits
 *     anything else               strtod_l of the C locale (str_to_f64)
 *
 * At least 8 readable bytes must follow the text. Little-endian only. */
#ifndef STRETTO_DATA_NUMBER_H
#define STRETTO_DATA_NUMBER_H

#include <string.h>

#include "base/bits.h"

f64 number_divide(u64 w, i32 k); /* w / 10^k for 0 <= k <= 19, rounded to nearest even */
const char *number_slow(const char *s, const char *end, char mark, f64 *out); /* general case; contract of number_read */
/* Parses the whole text as a number with thousands separators: 12'480.5, 12 480; with `other` also the mark (point or comma)
 * that is not decimal. */
bool number_grouped(const char *s, i64 n, char mark, bool other, f64 *out);
i64 number_significant(const char *s, const char *end, char mark);            /* digits without leading zeros */

enum { NUMBER_TENTHS = 38 };
struct number_tenth {
    u64 r;
    i32 e;
};
extern const f64 number_power[23];
extern const u64 number_whole[20]; /* 10^k */
extern const struct number_tenth number_tenth[NUMBER_TENTHS];

/* w / 10^k for w > 0. r = 2^e / 10^k is truncated by less than one, so the upper half of the product is too small by less than
 * one. Only four values just below a half leave the rounding open: then returns false. */
static inline bool number_scale(u64 w, i64 k, f64 *out) {
    int sw = __builtin_clzll(w);
    u64 q = (u64)(((unsigned __int128)(w << sw) * number_tenth[k].r) >> 64);
    int sq = __builtin_clzll(q); /* 0 or 1; 2 at the very edge */
    q <<= sq;
    u64 low = q & 0x7FF; /* discarded bits; 0x400 is the half */
    if (sq > 1 || low - 0x3FB <= 5) return false;
    u64 power = (u64)(64 + 11 - sq - sw - number_tenth[k].e + 1023) << 52;
    f64 two;
    memcpy(&two, &power, 8);
    *out = (f64)((q >> 11) + (low > 0x400)) * two;
    return true;
}

/* Value of eight digits, one per byte, the first in the lowest byte. */
static inline u64 number_eight(u64 x) {
    x = (x & 0x0F0F0F0F0F0F0F0Fu) * 2561 >> 8;
    x = (x & 0x00FF00FF00FF00FFu) * 6553601 >> 16;
    return (x & 0x0000FFFF0000FFFFu) * 42949672960001 >> 32;
}

/* Appends the digits at p to *w; returns the position after them. Processes eight bytes at a time without branching on the
 * number of digits. At most 19 digits are meaningful: the caller counts. */
static inline const char *number_digits(const char *p, u64 *w) {
    for (;;) {
        u64 x;
        memcpy(&x, p, 8);
        u64 other = ((x + 0x4646464646464646u) | (x - 0x3030303030303030u)) & 0x8080808080808080u;
        if (other == 0) {
            *w = *w * 100000000 + number_eight(x);
            p += 8;
            continue;
        }
        i32 n = __builtin_ctzll(other) >> 3;
        *w = *w * number_whole[n] + number_eight(x << (56 - 8 * n) << 8);
        return p + n;
    }
}

/* Reads one number at s; returns the position after it, or NULL. mark: the decimal mark; end: end of the text. */
static inline const char *number_read(const char *s, const char *end, char mark, f64 *out) {
    const char *p = s + (*s == '-');
    u64 w = 0;
    const char *first = p;
    p = number_digits(p, &w);
    i64 digits = p - first, k = 0;
    if (*p == mark) {
        const char *from = ++p;
        p = number_digits(p, &w);
        k = p - from;
        digits += k;
    }
    if (digits == 0 || (*p | 32) == 'e' || *p == '_' || k >= NUMBER_TENTHS) return number_slow(s, end, mark, out);
    if (digits > 19 && number_significant(s, p, mark) > 19) return number_slow(s, end, mark, out);
    f64 v;
    if (w <= (u64)1 << 53 && k <= 22) v = (f64)w / number_power[k];
    else if (k == 0) v = (f64)w;
    else if (!number_scale(w, k, &v)) {
        if (k > 19) return number_slow(s, end, mark, out);
        v = number_divide(w, (i32)k);
    }
    *out = *s == '-' ? -v : v;
    return p;
}

#endif
