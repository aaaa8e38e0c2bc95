/* narrow_tile.c - products of a dense layer with at most NARROW outputs (a forecasting head has one), vectorized along the
 * inputs. gemm_tile.c would compute LANES columns where one is needed. Compiled once per instruction set. */
#include "kern/fill.h"
#include "kern/tile.h"

enum {
    COLUMNS = 8,     /* vectors of x in registers */
    ROWS_APART = 256 /* rows per partial sum: shorter chains lose fewer digits */
};

INLINE f32 sum_of(vf v) {
    f32 lane[VL];
    v_store(lane, v);
    for (int half = VL / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

INLINE void fwd(const int N, i32 rows, i32 K, const f32 *x, i64 ldx, const f32 *wt, i64 ldw, const f32 *bias, f32 *y, i64 ldy) {
    for (i32 r = 0; r < rows; r++, x += ldx, y += ldy) {
        vf acc[NARROW];
        UNROLL for (int n = 0; n < N; n++) acc[n] = v_zero();
        for (i32 k = 0; k < K; k += VL) UNROLL for (int n = 0; n < N; n++)
                acc[n] = v_fma(v_load(x + k), v_load(wt + n * ldw + k), acc[n]);
        for (int i = 0; i < LANES; i++) y[i] = 0;
        UNROLL for (int n = 0; n < N; n++) y[n] = bias[n] + sum_of(acc[n]);
    }
}

INLINE void dx(const int N, i32 rows, i32 K, const f32 *dz, i64 ldz, const f32 *wt, i64 ldw, f32 *to, i64 ldx) {
    for (i32 r = 0; r < rows; r++, dz += ldz, to += ldx)
        for (i32 k = 0; k < K; k += VL) {
            vf sum = v_set1(dz[0]) * v_load(wt + k);
            UNROLL for (int n = 1; n < N; n++) sum = v_fma(v_set1(dz[n]), v_load(wt + n * ldw + k), sum);
            v_store(to + k, sum);
        }
}

/* Adds one output's dz times NV vectors of x to dwt, summed over `rows` rows. */
INLINE void dw_block(const int NV, i32 rows, const f32 *x, i64 ldx, const f32 *dz, i64 ldz, f32 *dwt) {
    vf acc[COLUMNS];
    UNROLL for (int v = 0; v < NV; v++) acc[v] = v_zero();
    for (i32 r = 0; r < rows; r++) {
        const vf d = v_set1(dz[r * ldz]);
        UNROLL for (int v = 0; v < NV; v++) acc[v] = v_fma(d, v_load(x + r * ldx + v * VL), acc[v]);
    }
    UNROLL for (int v = 0; v < NV; v++) v_store(dwt + v * VL, v_load(dwt + v * VL) + acc[v]);
}

static void dw_rows(i32 N, i32 rows, i32 K, const f32 *x, i64 ldx, const f32 *dz, i64 ldz, f32 *dwt, i64 ldw) {
    for (i32 k = 0; k < K;) {
        const bool wide = K - k >= COLUMNS * VL;
        for (i32 n = 0; n < N; n++) {
            if (wide)
                dw_block(COLUMNS, rows, x + k, ldx, dz + n, ldz, dwt + n * ldw + k);
            else
                dw_block(1, rows, x + k, ldx, dz + n, ldz, dwt + n * ldw + k);
        }
        k += wide ? COLUMNS * VL : VL;
    }
}

#define BY_N(call)                                                                                                               \
    switch (N) {                                                                                                                 \
        case 1: call(1); break;                                                                                                  \
        case 2: call(2); break;                                                                                                  \
        case 3: call(3); break;                                                                                                  \
        default: call(4); break;                                                                                                 \
    }

static void narrow_fwd(i32 N, i32 rows, i32 K, const f32 *x, i64 ldx, const f32 *wt, i64 ldw, const f32 *bias, f32 *y, i64 ldy) {
#define CALL(n) fwd(n, rows, K, x, ldx, wt, ldw, bias, y, ldy)
    BY_N(CALL)
#undef CALL
}

static void narrow_dx(i32 N, i32 rows, i32 K, const f32 *dz, i64 ldz, const f32 *wt, i64 ldw, f32 *to, i64 ldx) {
#define CALL(n) dx(n, rows, K, dz, ldz, wt, ldw, to, ldx)
    BY_N(CALL)
#undef CALL
}

static void narrow_dw(i32 N, i32 rows, i32 K, const f32 *x, i64 ldx, const f32 *dz, i64 ldz, f32 *dwt, i64 ldw) {
    for (i32 r = 0; r < rows; r += ROWS_APART)
        dw_rows(N, imin(ROWS_APART, rows - r), K, x + r * ldx, ldx, dz + r * ldz, ldz, dwt, ldw);
}

void ISA_NAME(kern_fill_narrow)(struct kern *k) {
    k->narrow_fwd = narrow_fwd;
    k->narrow_dx = narrow_dx;
    k->narrow_dw = narrow_dw;
}
