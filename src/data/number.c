/* number.c - the rare cases of number.h. */
#include "data/number.h"

#include <ctype.h>

#include "base/str.h"

enum { NUMBER_GROUPED = 64 }; /* bytes */

const f64 number_power[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

const u64 number_whole[20] = {
    1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u, 1000000000u, 10000000000u, 100000000000u,
    1000000000000u, 10000000000000u, 100000000000000u, 1000000000000000u, 10000000000000000u, 100000000000000000u,
    1000000000000000000u, 10000000000000000000u};

/* floor(2^e / 10^k), normalized to 64 bits, and e. */
const struct number_tenth number_tenth[NUMBER_TENTHS] = {
    {0x8000000000000000u, 63}, {0xccccccccccccccccu, 67}, {0xa3d70a3d70a3d70au, 70}, {0x83126e978d4fdf3bu, 73},
    {0xd1b71758e219652bu, 77}, {0xa7c5ac471b478423u, 80}, {0x8637bd05af6c69b5u, 83}, {0xd6bf94d5e57a42bcu, 87},
    {0xabcc77118461cefcu, 90}, {0x89705f4136b4a597u, 93}, {0xdbe6fecebdedd5beu, 97}, {0xafebff0bcb24aafeu, 100},
    {0x8cbccc096f5088cbu, 103}, {0xe12e13424bb40e13u, 107}, {0xb424dc35095cd80fu, 110}, {0x901d7cf73ab0acd9u, 113},
    {0xe69594bec44de15bu, 117}, {0xb877aa3236a4b449u, 120}, {0x9392ee8e921d5d07u, 123}, {0xec1e4a7db69561a5u, 127},
    {0xbce5086492111aeau, 130}, {0x971da05074da7beeu, 133}, {0xf1c90080baf72cb1u, 137}, {0xc16d9a0095928a27u, 140},
    {0x9abe14cd44753b52u, 143}, {0xf79687aed3eec551u, 147}, {0xc612062576589ddau, 150}, {0x9e74d1b791e07e48u, 153},
    {0xfd87b5f28300ca0du, 157}, {0xcad2f7f5359a3b3eu, 160}, {0xa2425ff75e14fc31u, 163}, {0x81ceb32c4b43fcf4u, 166},
    {0xcfb11ead453994bau, 170}, {0xa6274bbdd0fadd61u, 173}, {0x84ec3c97da624ab4u, 176}, {0xd4ad2dbfc3d07787u, 180},
    {0xaa242499697392d2u, 183}, {0x881cea14545c7575u, 186}};

/* (high:low) / d for high < d. */
static inline u64 divide(u64 high, u64 low, u64 d, u64 *rest) {
#if defined(__x86_64__)
    u64 q; /* one instruction; the compiler would call a function */
    __asm__("divq %4" : "=a"(q), "=d"(*rest) : "a"(low), "d"(high), "r"(d) : "cc");
    return q;
#else
    unsigned __int128 n = (unsigned __int128)high << 64 | low;
    *rest = (u64)(n % d);
    return (u64)(n / d);
#endif
}

/* Normalizes both sides; (w << 63) / d then has 63 or 64 bits, more than the 54 that rounding needs, and a nonzero remainder
 * only breaks ties. */
f64 number_divide(u64 w, i32 k) {
    if (w == 0 || k == 0) return (f64)w;
    int sw = __builtin_clzll(w), sd = __builtin_clzll(number_whole[k]);
    u64 d = number_whole[k] << sd;
    u64 rest, q = divide(w << sw >> 1, w << sw << 63, d, &rest);
    int sq = __builtin_clzll(q); /* 0 or 1 */
    q <<= sq;
    u64 bits = q >> 11, low = q & 0x7FF; /* 53 bits and the remaining bits */
    bool up = low > 0x400 || (low == 0x400 && (rest != 0 || (bits & 1)));
    bits += up; /* 2^53 is allowed: the conversion below is exact */
    int scale = 11 - sq - 63 - sw + sd; /* value = bits * 2^scale; the smallest is 1 / 10^19, far from subnormal */
    u64 power = (u64)(scale + 1023) << 52;
    f64 two;
    memcpy(&two, &power, 8);
    return (f64)bits * two;
}

/* Passes the longest run of number characters to str_to_f64. */
const char *number_slow(const char *s, const char *end, char mark, f64 *out) {
    const char *p = s;
    while (p < end && (isalnum((u8)*p) || *p == '+' || *p == '-' || *p == mark)) p++;
    if (p == s || !str_to_f64(s, (size_t)(p - s), mark, out)) return NULL;
    return p;
}

i64 number_significant(const char *s, const char *end, char mark) {
    i64 n = 0;
    for (; s < end; s++)
        if (*s != mark && *s != '-' && (n > 0 || *s != '0')) n++;
    return n;
}

/* Length in bytes of a thousands separator at p, 0 = none: an apostrophe (ASCII or typographic) or a space (also non-breaking).
 */
static i64 apart_at(const char *p, const char *end, char other) {
    static const char *const marks[] = {"'", " ", "\xC2\xA0", "\xE2\x80\xAF", "\xE2\x80\x99"};
    if (p < end && other && *p == other) return 1;
    for (size_t k = 0; k < COUNT(marks); k++) {
        const i64 n = (i64)strlen(marks[k]);
        if (end - p >= n && !memcmp(p, marks[k], (size_t)n)) return n;
    }
    return 0;
}

static i64 digits_at(const char *p, const char *end) {
    i64 n = 0;
    while (p + n < end && (u8)(p[n] - '0') < 10) n++;
    return n;
}

bool number_grouped(const char *s, i64 n, char mark, bool other, f64 *out) {
    const char *end = s + n, *p = s + (n > 0 && (*s == '-' || *s == '+'));
    const char second = !other ? 0 : mark == ',' ? '.' : ',';
    char plain[NUMBER_GROUPED];
    i64 fill = 0, first = digits_at(p, end);
    const i64 width = apart_at(p + first, end, second);
    if (n >= NUMBER_GROUPED || first < 1 || first > 3 || *p == '0' || width == 0) return false;
    const char *between = p + first;
    if (*s == '-') plain[fill++] = '-';
    for (i64 k = first;;) {
        memcpy(plain + fill, p, (size_t)k);
        fill += k;
        p += k;
        if (end - p < width || memcmp(p, between, (size_t)width) != 0) break;
        p += width;
        k = digits_at(p, end);
        if (k != 3) return false;
    }
    if (p < end && *p == mark) {
        const i64 k = 1 + digits_at(p + 1, end);
        memcpy(plain + fill, p, (size_t)k);
        fill += k;
        p += k;
    }
    return p == end && str_to_f64(plain, (size_t)fill, mark, out);
}
