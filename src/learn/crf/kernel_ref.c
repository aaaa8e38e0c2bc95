/* kernel_ref.c - the plain specification of the loops of a CRF: f64, logarithms, no scaling, no vectors; and the choice. */
#include <math.h>

#include "base/mem.h"
#include "kern/kern.h"
#include "learn/crf/kernel.h"

static void score(const struct crf_pass *p, i64 t0, i32 T, f32 *u) {
    for (i32 t = 0; t < T; t++)
        for (i32 y = 0; y < p->Lp; y++) {
            f64 s = 0;
            for (i64 k = p->at[t0 + t]; k < p->at[t0 + t + 1]; k++) s += (f64)p->w[(i64)p->attribute[k] * p->Lp + y];
            u[(i64)t * p->Lp + y] = (f32)(s * (f64)p->scale);
        }
}

static f64 log_sum(const f64 *x, i32 n) {
    f64 top = -INFINITY, s = 0;
    for (i32 i = 0; i < n; i++) top = dmax(top, x[i]);
    for (i32 i = 0; i < n; i++) s += exp(x[i] - top);
    return top + log(s);
}

/* x [L] scratch; alpha, beta [T][L] logarithms. */
static f64 log_alpha(const struct crf_pass *p, const f32 *u, i32 T, f64 *x, f64 *alpha) {
    const i32 L = p->L;
    for (i32 t = 0; t < T; t++)
        for (i32 y = 0; y < L; y++) {
            for (i32 z = 0; t > 0 && z < L; z++) x[z] = alpha[(i64)(t - 1) * L + z] + (f64)p->A[(i64)z * p->Lp + y];
            alpha[(i64)t * L + y] = (f64)u[(i64)t * p->Lp + y] + (t > 0 ? log_sum(x, L) : 0);
        }
    return log_sum(alpha + (i64)(T - 1) * L, L);
}

static void log_beta(const struct crf_pass *p, const f32 *u, i32 T, f64 *x, f64 *beta) {
    const i32 L = p->L;
    for (i32 y = 0; y < L; y++) beta[(i64)(T - 1) * L + y] = 0;
    for (i32 t = T - 1; t > 0; t--)
        for (i32 y = 0; y < L; y++) {
            for (i32 z = 0; z < L; z++)
                x[z] = (f64)p->A[(i64)y * p->Lp + z] + (f64)u[(i64)t * p->Lp + z] + beta[(i64)t * L + z];
            beta[(i64)(t - 1) * L + y] = log_sum(x, L);
        }
}

static f64 take(const struct crf_pass *p, i64 t0, i32 T, f64 *x, f32 *d, f32 *pair) {
    const i32 L = p->L, Lp = p->Lp;
    f64 *alpha = x + L, *beta = alpha + (i64)T * L, gold = 0;
    const f64 z = log_alpha(p, p->u, T, x, alpha);
    log_beta(p, p->u, T, x, beta);
    for (i32 t = 0; t < T; t++) {
        const i32 y = p->gold[t0 + t];
        gold += (f64)p->u[(i64)t * Lp + y] + (t > 0 ? (f64)p->A[(i64)p->gold[t0 + t - 1] * Lp + y] : 0);
        for (i32 k = 0; k < Lp; k++)
            d[(i64)t * Lp + k] = k < L ? (f32)(exp(alpha[(i64)t * L + k] + beta[(i64)t * L + k] - z) - (k == y)) : 0;
        for (i32 k = 0; t > 0 && k < L; k++)
            for (i32 j = 0; j < L; j++)
                pair[(i64)k * Lp + j] += (f32)exp(alpha[(i64)(t - 1) * L + k] + (f64)p->u[(i64)t * Lp + j] +
                                                  beta[(i64)t * L + j] - z + (f64)p->top);
    }
    return z - gold;
}

static f64 sentence(const struct crf_pass *p, i64 t0, i32 T, f32 *d, f32 *pair) {
    f64 *x = mem_alloc(sizeof *x * (size_t)p->L * (size_t)(2 * T + 1));
    if (!x) return (f64)INFINITY;
    score(p, t0, T, p->u);
    const f64 nll = take(p, t0, T, x, d, pair);
    mem_free(x);
    return isfinite(nll) ? nll : (f64)INFINITY;
}

static void columns(const struct crf_columns *c, i64 lo, i64 hi) {
    for (i64 row = lo; row < hi; row++)
        for (i32 y = 0; y < c->Lp; y++) {
            f64 g = 0;
            for (i64 k = c->at[row]; k < c->at[row + 1]; k++) g += (f64)c->d[(i64)c->token[k] * c->Lp + y];
            c->g[row * c->Lp + y] = (f32)(g + (f64)c->decay * (f64)c->w[row * c->Lp + y]);
        }
}

static void spread(const struct crf_spread *s, i64 t0, i32 T, const f32 *d) {
    for (i32 t = 0; t < T; t++)
        for (i64 k = s->at[t0 + t]; k < s->at[t0 + t + 1]; k++) {
            f32 *to = s->to + (i64)s->attribute[k] * s->Lp;
            if (s->attribute[k] < s->lo || s->attribute[k] >= s->hi) continue;
            for (i32 y = 0; y < s->Lp; y++) to[y] += s->factor * d[(i64)t * s->Lp + y];
        }
}

static f64 dot(const f32 *a, const f32 *b, i64 n) {
    f64 s = 0;
    for (i64 i = 0; i < n; i++) s += (f64)a[i] * (f64)b[i];
    return s;
}

static void add(f32 *to, f32 factor, const f32 *from, i64 n) {
    for (i64 i = 0; i < n; i++) to[i] += factor * from[i];
}

static void decode(const f32 *u, const f32 *A, i32 L, i32 Lp, i32 T, i32 *from, f32 *v, i32 *best) {
    for (i32 t = 0; t < T; t++) {
        const f32 *before = v + (i64)((t + 1) & 1) * Lp;
        f32 *now = v + (i64)(t & 1) * Lp;
        for (i32 y = 0; y < L; y++) {
            i32 x = 0;
            for (i32 k = 1; t > 0 && k < L; k++)
                if (before[k] + A[(i64)k * Lp + y] > before[x] + A[(i64)x * Lp + y]) x = k;
            from[(i64)t * Lp + y] = x;
            now[y] = (t > 0 ? before[x] + A[(i64)x * Lp + y] : 0) + u[(i64)t * Lp + y];
        }
    }
    const f32 *last = v + (i64)((T - 1) & 1) * Lp;
    i32 y = 0;
    for (i32 k = 1; k < L; k++) y = last[k] > last[y] ? k : y;
    for (i32 t = T - 1; t >= 0; t--) {
        best[t] = y;
        y = from[(i64)t * Lp + y];
    }
}

const struct crf_kern crf_kern_ref = {.isa = "ref", .score = score, .sentence = sentence, .columns = columns,
                                      .spread = spread, .dot = dot, .add = add, .decode = decode};

f32 crf_transitions(i32 L, i32 Lp, const f32 *A, f32 *E, f32 *back) {
    f32 top = -INFINITY;
    for (i32 i = 0; i < L; i++)
        for (i32 j = 0; j < L; j++) top = A[i * Lp + j] > top ? A[i * Lp + j] : top;
    for (i32 i = 0; i < L; i++)
        for (i32 j = 0; j < L; j++) E[i * Lp + j] = back[j * Lp + i] = expf(A[i * Lp + j] - top);
    return top;
}

const struct crf_kern *crf_kern_for(i32 arch) {
    if (arch == KERN_REF) return &crf_kern_ref;
#if defined(__x86_64__)
    if (arch >= KERN_AVX2) return &crf_kern_avx2;
#elif defined(__aarch64__)
    if (arch == KERN_NEON) return &crf_kern_neon;
#endif
    return &crf_kern_base;
}

bool crf_kern_fuses(i32 arch) { return arch == KERN_NEON || arch >= KERN_AVX2; }
