/* number.c - the rarer cases of number.h. */
#include "data/number.h"

#include <ctype.h>

#include "base/str.h"

const f64 number_power[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

const u64 number_whole[20] = {1u,
                                    10u,
                                    100u,
                                    1000u,
                                    10000u,
                                    100000u,
                                    1000000u,
                                    10000000u,
                                    100000000u,
                                    1000000000u,
                                    10000000000u,
                                    100000000000u,
                                    1000000000000u,
                                    10000000000000u,
                                    100000000000000u,
                                    1000000000000000u,
                                    10000000000000000u,
                                    100000000000000000u,
                                    1000000000000000000u,
                                    10000000000000000000u};

/* (high:low) / d for high < d. */
static inline u64 divide(u64 high, u64 low, u64 d, u64 *rest) {
#if defined(__x86_64__)
    u64 q; /* the compiler would call a function for 128 bits */
    __asm__("divq %4" : "=a"(q), "=d"(*rest) : "a"(low), "d"(high), "r"(d) : "cc");
    return q;
#else
    unsigned __int128 n = (unsigned __int128)high << 64 | low;
    *rest = (u64)(n % d);
    return (u64)(n / d);
#endif
}

/* Both sides are shifted until their highest bit is set; then (w << 63) / d has 63 or 64 bits, more than the 54 that rounding
 * needs, and a remainder that is not zero only breaks ties. */
f64 number_divide(u64 w, i32 k) {
    if (w == 0 || k == 0) return (f64)w;
    int sw = __builtin_clzll(w), sd = __builtin_clzll(number_whole[k]);
    u64 d = number_whole[k] << sd;
    u64 rest, q = divide(w << sw >> 1, w << sw << 63, d, &rest);
    int sq = __builtin_clzll(q); /* 0 or 1 */
    q <<= sq;
    u64 bits = q >> 11, low = q & 0x7FF; /* 53 bits and what is cut off */
    bool up = low > 0x400 || (low == 0x400 && (rest != 0 || (bits & 1)));
    bits += up; /* 2^53 is fine: the conversion below is exact */
    int scale = 11 - sq - 63 - sw + sd; /* value = bits * 2^scale; the smallest is 1 / 10^19, far from subnormal */
    u64 power = (u64)(scale + 1023) << 52;
    f64 two;
    memcpy(&two, &power, 8);
    return (f64)bits * two;
}

/* The longest run of characters that a number can have, given to str_to_f64 as a whole. */
const char *number_slow(const char *s, const char *end, char mark, f64 *out) {
    const char *p = s;
    while (p < end && (isalnum((u8)*p) || *p == '+' || *p == '-' || *p == mark)) p++;
    if (p == s || !str_to_f64(s, (size_t)(p - s), mark, out)) return NULL;
    return p;
}
