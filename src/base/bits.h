/* bits.h - fixed-width types with short names, rounding, and min/max that evaluate their arguments once. Allocates nothing. */
#ifndef STRETTO_BASE_BITS_H
#define STRETTO_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Checked printf-style arguments. */
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

static inline i32 imin(i32 a, i32 b) { return a < b ? a : b; }
static inline i32 imax(i32 a, i32 b) { return a > b ? a : b; }
static inline i64 lmin(i64 a, i64 b) { return a < b ? a : b; }
static inline i64 lmax(i64 a, i64 b) { return a > b ? a : b; }
static inline f64 dmin(f64 a, f64 b) { return a < b ? a : b; }
static inline f64 dmax(f64 a, f64 b) { return a > b ? a : b; }

/* n rounded up to a multiple of m (m > 0, n >= 0). */
static inline i32 round_up(i32 n, i32 m) { return (n + m - 1) / m * m; }
static inline i64 round_up64(i64 n, i64 m) { return (n + m - 1) / m * m; }
static inline i32 ceil_div(i32 n, i32 m) { return (n + m - 1) / m; }

#endif
