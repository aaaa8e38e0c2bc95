/* solve.c - the inner loops of the ridge in f64, compiled once per instruction set (isa_sources).
 *
 * One register tile, 4 rows x 3 vectors, fits the 16 registers of every set.  Sums run over k in increasing order in every
 * lane, tails included, and products are not contracted: all sets give the same bits. */
#include "bases/linear.h"

#include <string.h>

#if defined(ISA_avx512)
#define VB 64
#elif defined(ISA_avx2)
#define VB 32
#else
#define VB 16
#endif
typedef f64 vec __attribute__((vector_size(VB), aligned(8), may_alias));
enum { V = VB / 8, MR = 4, NR = 3 * V };

static inline vec load(const f64 *p) { return *(const vec *)p; }
static inline void store(f64 *p, vec v) { *(vec *)p = v; }

static void tile(i32 K, const f64 *a, i64 am, i64 ak, const f64 *b, i64 ldb, f64 *c, i64 ldc) {
    vec s[MR][3];
    memset(s, 0, sizeof s);
    for (i32 k = 0; k < K; k++) {
        const f64 *bk = b + k * ldb, *ap = a + k * ak;
        vec b0 = load(bk), b1 = load(bk + V), b2 = load(bk + 2 * V);
        for (i32 m = 0; m < MR; m++) {
            f64 v = ap[m * am];
            s[m][0] += v * b0;
            s[m][1] += v * b1;
            s[m][2] += v * b2;
        }
    }
    for (i32 m = 0; m < MR; m++)
        for (i32 j = 0; j < 3; j++) store(c + m * ldc + j * V, load(c + m * ldc + j * V) - s[m][j]);
}

/* What is left over at the right and at the bottom: up to MR x NR. */
static void corner(i32 M, i32 N, i32 K, const f64 *a, i64 am, i64 ak, const f64 *b, i64 ldb, f64 *c, i64 ldc) {
    for (i32 m = 0; m < M; m++) {
        f64 s[NR] = {0};
        for (i32 k = 0; k < K; k++) {
            f64 v = a[m * am + k * ak];
            for (i32 j = 0; j < N; j++) s[j] += v * b[k * ldb + j];
        }
        for (i32 j = 0; j < N; j++) c[m * ldc + j] -= s[j];
    }
}

static void sub(i32 M, i32 N, i32 K, const f64 *a, i64 am, i64 ak, const f64 *b, i64 ldb, f64 *c, i64 ldc) {
    for (i32 j = 0; j < N; j += NR) {
        i32 nj = imin(NR, N - j);
        for (i32 m = 0; m < M; m += MR) {
            i32 mm = imin(MR, M - m);
            if (mm == MR && nj == NR)
                tile(K, a + m * am, am, ak, b + j, ldb, c + m * ldc + j, ldc);
            else
                corner(mm, nj, K, a + m * am, am, ak, b + j, ldb, c + m * ldc + j, ldc);
        }
    }
}

/* Eight vectors of lags stay in registers while t runs. */
static void add_lags(i64 n, i32 m, const f64 *z, f64 *acc) {
    i32 d = 0;
    for (; d + 8 * V <= m; d += 8 * V) {
        vec s[8];
        for (i32 j = 0; j < 8; j++) s[j] = load(acc + d + j * V);
        for (i64 t = 0; t < n; t++)
            for (i32 j = 0; j < 8; j++) s[j] += z[t] * load(z + t + d + j * V);
        for (i32 j = 0; j < 8; j++) store(acc + d + j * V, s[j]);
    }
    for (; d < m; d++) {
        f64 s = acc[d];
        for (i64 t = 0; t < n; t++) s += z[t] * z[t + d];
        acc[d] = s;
    }
}

static void shift(i32 m, f64 zb, const f64 *b, f64 za, const f64 *a, f64 *row, f64 *to) {
    for (i32 j = 0; j < m; j++) {
        to[j] += row[j];
        row[j] += zb * b[j] - za * a[j];
    }
}

#define CAT(a, b) a##b
#define NAME(isa) CAT(algebra_, isa)
extern const struct algebra NAME(ISA);
const struct algebra NAME(ISA) = {sub, add_lags, shift};
