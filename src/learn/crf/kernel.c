/* kernel.c - the loops of a CRF with vectors over labels; compiled per instruction set; see kernel.h. */
#include "learn/crf/kernel.h"

#include <math.h>

#include "kern/simd.h"

enum { WIDE = 3 }; /* vectors of a row that are summed together: with four partial sums each they fill 12 registers */

/* Calls f(n, v) for the vectors [v, v + n) of a row, n a constant up to WIDE. */
#define BY_WIDTH(nv, f)                                                                                                          \
    do {                                                                                                                         \
        i32 v = 0;                                                                                                               \
        for (; v + WIDE <= (nv); v += WIDE) f(WIDE, v * VL);                                                                     \
        if ((nv) - v == 2) f(2, v * VL);                                                                                         \
        else if ((nv) - v == 1) f(1, v * VL);                                                                                    \
    } while (0)

INLINE vf v_max(vf a, vf b) {
#if defined(ISA_avx2)
    return _mm256_max_ps(a, b);
#elif defined(ISA_neon)
    return vmaxq_f32(a, b);
#else
    return v_pick(a > b, a, b);
#endif
}

INLINE f32 sum_lanes(vf a) {
    f32 x[VL], s = 0;
    v_store(x, a);
    for (i32 i = 0; i < VL; i++) s += x[i];
    return s;
}

enum { HALVES = CRF_PAD / VL }; /* a row is summed in CRF_PAD lanes whatever VL is, as on devices (gpu/text/chain.cl) */

INLINE f32 sum_parts(const vf *a) {
    f32 x[CRF_PAD], s = 0;
    UNROLL for (i32 k = 0; k < HALVES; k++) v_store(x + k * VL, a[k]);
    for (i32 i = 0; i < CRF_PAD; i++) s += x[i];
    return s;
}

INLINE f32 max_lanes(vf a) {
    f32 x[VL], m;
    v_store(x, a);
    m = x[0];
    for (i32 i = 1; i < VL; i++) m = x[i] > m ? x[i] : m;
    return m;
}

/* ------------------------------------------------------------------ scores -------------------------------------------------- */

INLINE void sum_rows(const i32 n, const struct crf_pass *p, const f32 *w, const i32 *f, i64 count, f32 *u) {
    const i32 Lp = p->Lp;
    vf s[WIDE];
    UNROLL for (i32 i = 0; i < n; i++) s[i] = v_zero();
    for (i64 k = 0; k < count; k++) {
        const f32 *row = w + (i64)f[k] * Lp;
        const f32 *next = w + (i64)f[k + CRF_AHEAD] * Lp;
        __builtin_prefetch(next);
        __builtin_prefetch(next + 16);
        UNROLL for (i32 i = 0; i < n; i++) s[i] = s[i] + v_load(row + i * VL);
    }
    UNROLL for (i32 i = 0; i < n; i++) v_store(u + i * VL, s[i] * v_set1(p->scale));
}

static void score(const struct crf_pass *p, i64 t0, i32 T, f32 *u) {
    const i32 nv = p->Lp / VL;
    for (i32 t = 0; t < T; t++, u += p->Lp) {
        const i32 *f = p->attribute + p->at[t0 + t];
        const i64 count = p->at[t0 + t + 1] - p->at[t0 + t];
#define ROWS(n, v) sum_rows(n, p, p->w + (v), f, count, u + (v))
        BY_WIDTH(nv, ROWS);
#undef ROWS
    }
}

/* ------------------------------------------------------------------ forward-backward ---------------------------------------- */

/* out = x M over vectors of a row; M [L][Lp]. */
INLINE void product(const i32 n, const f32 *x, const f32 *M, i32 L, i32 Lp, f32 *out) {
    vf s[4][WIDE];
    i32 y = 0;
    UNROLL for (i32 k = 0; k < 4; k++) UNROLL for (i32 i = 0; i < n; i++) s[k][i] = v_zero();
    for (; y + 4 <= L; y += 4)
        UNROLL for (i32 k = 0; k < 4; k++) {
            const vf a = v_set1(x[y + k]);
            UNROLL for (i32 i = 0; i < n; i++) s[k][i] = v_fma(a, v_load(M + (i64)(y + k) * Lp + i * VL), s[k][i]);
        }
    for (; y < L; y++) {
        const vf a = v_set1(x[y]);
        UNROLL for (i32 i = 0; i < n; i++) s[0][i] = v_fma(a, v_load(M + (i64)y * Lp + i * VL), s[0][i]);
    }
    UNROLL for (i32 i = 0; i < n; i++) v_store(out + i * VL, (s[0][i] + s[1][i]) + (s[2][i] + s[3][i]));
}

static void times(const f32 *x, const f32 *M, i32 L, i32 Lp, f32 *out) {
#define PRODUCT(n, v) product(n, x, M + (v), L, Lp, out + (v))
    BY_WIDTH(Lp / VL, PRODUCT);
#undef PRODUCT
}

/* u becomes e^{u - max}, 0 in the padding; returns max. */
static f32 exponents(const struct crf_pass *p, f32 *u) {
    const i32 nv = p->Lp / VL;
    vf m = v_set1(-1e30f);
    for (i32 i = 0; i < nv; i++) {
        const vf mask = v_load(p->mask + i * VL);
        m = v_max(m, v_load(u + i * VL) * mask - (v_set1(1) - mask) * v_set1(1e30f));
    }
    const f32 top = max_lanes(m);
    for (i32 i = 0; i < nv; i++) {
        const vf x = (v_load(u + i * VL) - v_set1(top)) * v_set1(1.44269504f);
        v_store(u + i * VL, v_exp2(v_at_most(x, 0)) * v_load(p->mask + i * VL));
    }
    return top;
}

/* alpha .* e, scaled to the sum 1; returns 1 / sum and multiplies *z by the sum. */
INLINE f32 normalise(i32 nv, f32 *alpha, const f32 *e, f64 *z) {
    vf sum[HALVES];
    UNROLL for (i32 k = 0; k < HALVES; k++) sum[k] = v_zero();
    for (i32 i = 0; i < nv; i += HALVES)
        UNROLL for (i32 k = 0; k < HALVES; k++) {
            vf x = v_load(alpha + (i + k) * VL);
            if (e) x = x * v_load(e + (i + k) * VL);
            sum[k] = sum[k] + x;
            v_store(alpha + (i + k) * VL, x);
        }
    const f32 s = sum_parts(sum), r = 1 / s;
    for (i32 i = 0; i < nv; i++) v_store(alpha + i * VL, v_load(alpha + i * VL) * v_set1(r));
    *z *= (f64)s;
    return r;
}

/* Scores of the tokens become exponentials; returns the sum of the maxima less the score of the gold labels. */
static f64 prepare(const struct crf_pass *p, i64 t0, i32 T) {
    const i32 *gold = p->gold + t0;
    f64 z = (f64)(T - 1) * (f64)p->top;
    score(p, t0, T, p->u);
    for (i32 t = 0; t < T; t++) {
        f32 *u = p->u + (i64)t * p->Lp;
        z -= (f64)u[gold[t]];
        if (t > 0) z -= (f64)p->A[(i64)gold[t - 1] * p->Lp + gold[t]];
        z += (f64)exponents(p, u);
    }
    return z;
}

static f64 forward(const struct crf_pass *p, i32 T) {
    const i32 Lp = p->Lp, nv = Lp / VL;
    f64 z = 0, scale = 1;
    memcpy(p->a, p->u, sizeof *p->a * (size_t)Lp);
    p->inverse[0] = normalise(nv, p->a, NULL, &scale);
    for (i32 t = 1; t < T; t++) {
        f32 *alpha = p->a + (i64)t * Lp;
        times(alpha - Lp, p->E, p->L, Lp, alpha);
        p->inverse[t] = normalise(nv, alpha, p->u + (i64)t * Lp, &scale);
        if ((t & 3) == 3) { /* four factors of 2^-126 or more fit an f64: one logarithm for four tokens */
            z += log(scale);
            scale = 1;
        }
    }
    return z + log(scale);
}

/* u_t becomes beta_t .* e^{u_t} / s_t, and d_t = P_t - Y_t. */
static void backward(const struct crf_pass *p, i64 t0, i32 T, f32 *d) {
    const i32 Lp = p->Lp, nv = Lp / VL;
    f32 *beta = p->a + (i64)T * Lp; /* one row more than the sentence */
    for (i32 i = 0; i < Lp; i++) beta[i] = 1;
    for (i32 t = T - 1; t >= 0; t--) {
        f32 *u = p->u + (i64)t * Lp, *to = d + (i64)t * Lp;
        const f32 *alpha = p->a + (i64)t * Lp;
        const vf r = v_set1(p->inverse[t]);
        for (i32 i = 0; i < nv; i++) {
            const vf b = v_load(beta + i * VL);
            v_store(to + i * VL, v_load(alpha + i * VL) * b);
            v_store(u + i * VL, b * v_load(u + i * VL) * r);
        }
        to[p->gold[t0 + t]] -= 1;
        if (t > 0) times(u, p->back, p->L, Lp, beta);
    }
}

/* Four rows of pair += sum over t of alpha_{t-1} x b_t. */
INLINE void outer(const i32 n, const f32 *a, const f32 *b, i32 T, i32 Lp, f32 *pair) {
    vf s[4][WIDE];
    UNROLL for (i32 k = 0; k < 4; k++) UNROLL for (i32 i = 0; i < n; i++) s[k][i] = v_load(pair + (i64)k * Lp + i * VL);
    for (i32 t = 1; t < T; t++, a += Lp) {
        vf x[WIDE];
        b += Lp;
        UNROLL for (i32 i = 0; i < n; i++) x[i] = v_load(b + i * VL);
        UNROLL for (i32 k = 0; k < 4; k++) UNROLL for (i32 i = 0; i < n; i++) s[k][i] = v_fma(v_set1(a[k]), x[i], s[k][i]);
    }
    UNROLL for (i32 k = 0; k < 4; k++) UNROLL for (i32 i = 0; i < n; i++) v_store(pair + (i64)k * Lp + i * VL, s[k][i]);
}

static f64 sentence(const struct crf_pass *p, i64 t0, i32 T, f32 *d, f32 *pair) {
    const i32 Lp = p->Lp;
    const f64 nll = prepare(p, t0, T) + forward(p, T);
    if (!isfinite(nll)) {
        memset(d, 0, sizeof *d * (size_t)T * (size_t)Lp);
        return (f64)INFINITY;
    }
    backward(p, t0, T, d);
    for (i32 y = 0; y < p->L; y += 4) {
#define OUTER(n, v) outer(n, p->a + y, p->u + (v), T, Lp, pair + (i64)y * Lp + (v))
        BY_WIDTH(Lp / VL, OUTER);
#undef OUTER
    }
    return nll;
}

/* ------------------------------------------------------------------ columns ------------------------------------------------- */

enum { PART = 256 }; /* tokens that are summed before they are added to the total: keeps the rounding of long columns small */

INLINE void sum_tokens(const i32 n, const struct crf_columns *c, i64 row, i32 v) {
    const i32 *token = c->token + c->at[row];
    const i64 count = c->at[row + 1] - c->at[row];
    const f32 *d = c->d + v;
    vf g[WIDE];
    UNROLL for (i32 i = 0; i < n; i++) g[i] = v_zero();
    for (i64 k = 0; k < count;) {
        vf s[WIDE];
        UNROLL for (i32 i = 0; i < n; i++) s[i] = v_zero();
        for (const i64 end = lmin(k + PART, count); k < end; k++) {
            const f32 *at = d + (i64)token[k] * c->Lp, *next = d + (i64)token[k + CRF_AHEAD] * c->Lp;
            __builtin_prefetch(next);
            __builtin_prefetch(next + 16);
            UNROLL for (i32 i = 0; i < n; i++) s[i] = s[i] + v_load(at + i * VL);
        }
        UNROLL for (i32 i = 0; i < n; i++) g[i] = g[i] + s[i];
    }
    const i64 to = row * c->Lp + v;
    UNROLL for (i32 i = 0; i < n; i++) v_store(c->g + to + i * VL, v_fma(v_set1(c->decay), v_load(c->w + to + i * VL), g[i]));
}

static void columns(const struct crf_columns *c, i64 lo, i64 hi) {
    for (i64 row = lo; row < hi; row++) {
#define TOKENS(n, v) sum_tokens(n, c, row, v)
        BY_WIDTH(c->Lp / VL, TOKENS);
#undef TOKENS
    }
}

enum { FOUND = 64 }; /* rows of a token that are looked for together */

INLINE void add_to_rows(const i32 n, const struct crf_spread *s, i32 v, const i32 *row, i32 count, const f32 *d) {
    vf x[WIDE];
    UNROLL for (i32 i = 0; i < n; i++) x[i] = v_set1(s->factor) * v_load(d + v + i * VL);
    for (i32 k = 0; k < count; k++) {
        f32 *to = s->to + (i64)row[k] * s->Lp + v;
        UNROLL for (i32 i = 0; i < n; i++) v_store(to + i * VL, v_load(to + i * VL) + x[i]);
    }
}

static void spread(const struct crf_spread *s, i64 t0, i32 T, const f32 *d) {
    i32 row[FOUND];
    for (i64 t = t0; t < t0 + T; t++, d += s->Lp)
        for (i64 k = s->at[t]; k < s->at[t + 1]; k += FOUND) {
            const i64 end = lmin(k + FOUND, s->at[t + 1]);
            i32 n = 0;
            for (i64 i = k; i < end; i++) { /* without a jump, which half of the rows would take */
                row[n] = s->attribute[i];
                n += (row[n] >= s->lo) & (row[n] < s->hi);
            }
#define ADD(w, v) add_to_rows(w, s, v, row, n, d)
            BY_WIDTH(s->Lp / VL, ADD);
#undef ADD
        }
}

/* ------------------------------------------------------------------ vectors ------------------------------------------------- */

static f64 dot(const f32 *a, const f32 *b, i64 n) {
    enum { BLOCK = 1024 };
    f64 sum = 0;
    for (i64 at = 0; at < n; at += BLOCK) {
        const i64 end = lmin(at + BLOCK, n);
        vf s[2] = {v_zero(), v_zero()};
        i64 i = at;
        for (; i + 2 * VL <= end; i += 2 * VL) {
            s[0] = v_fma(v_load(a + i), v_load(b + i), s[0]);
            s[1] = v_fma(v_load(a + i + VL), v_load(b + i + VL), s[1]);
        }
        for (; i < end; i += VL) s[0] = v_fma(v_load(a + i), v_load(b + i), s[0]);
        sum += (f64)sum_lanes(s[0] + s[1]);
    }
    return sum;
}

static void add(f32 *to, f32 factor, const f32 *from, i64 n) {
    for (i64 i = 0; i < n; i += VL) v_store(to + i, v_fma(v_set1(factor), v_load(from + i), v_load(to + i)));
}

/* ------------------------------------------------------------------ Viterbi ------------------------------------------------- */

static void decode(const f32 *u, const f32 *A, i32 L, i32 Lp, i32 T, i32 *from, f32 *v, i32 *best) {
    f32 *now = v, *next = v + Lp;
    memcpy(now, u, sizeof *u * (size_t)Lp);
    for (i32 t = 1; t < T; t++) {
        i32 *back = from + (i64)t * Lp;
        for (i32 y = 0; y < Lp; y++) next[y] = now[0] + A[y], back[y] = 0;
        for (i32 x = 1; x < L; x++)
            for (i32 y = 0; y < Lp; y++) {
                const f32 s = now[x] + A[(i64)x * Lp + y];
                back[y] = s > next[y] ? x : back[y];
                next[y] = s > next[y] ? s : next[y];
            }
        for (i32 y = 0; y < Lp; y++) next[y] += u[(i64)t * Lp + y];
        f32 *swap = now;
        now = next;
        next = swap;
    }
    i32 y = 0;
    for (i32 x = 1; x < L; x++) y = now[x] > now[y] ? x : y;
    for (i32 t = T - 1; t >= 0; t--) {
        best[t] = y;
        if (t > 0) y = from[(i64)t * Lp + y];
    }
}

#define NAME_(isa) crf_kern_##isa
#define NAME(isa) NAME_(isa)
#define TEXT_(isa) #isa
#define TEXT(isa) TEXT_(isa)
const struct crf_kern NAME(ISA) = {.isa = TEXT(ISA), .score = score, .sentence = sentence, .columns = columns,
                                   .spread = spread, .dot = dot, .add = add, .decode = decode};
