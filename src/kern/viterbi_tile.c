/* viterbi_tile.c - the steps of viterbi.h with the labels of a step in vector lanes; compiled once per instruction set.
 *
 *     for i:  acc[k][q] = max(acc[k][q], v[k][i] + trans[i][q])      k streams, q vectors of labels: all in registers
 *
 * A step of one stream waits for the step before it.  Streams are independent: several of them hide this latency and share the
 * loads of the transitions. */
#include "kern/fill.h"
#include "kern/viterbi.h"

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#if defined(ISA_avx512) || defined(ISA_avx2)
#include <immintrin.h>
#elif defined(ISA_neon)
#include <arm_neon.h>
#endif
#if defined(ISA_avx512)
enum { W = 16 };
#elif defined(ISA_avx2)
enum { W = 8 };
#else
enum { W = 4 };
#endif
typedef i32 vi __attribute__((vector_size(4 * W)));
typedef u32 vu __attribute__((vector_size(4 * W)));

INLINE vi v_load(const i32 *p) {
    vi a;
    memcpy(&a, p, sizeof a);
    return a;
}
INLINE void v_store(i32 *p, vi a) { memcpy(p, &a, sizeof a); }
INLINE vi v_set1(i32 x) { return (vi){0} + x; }
INLINE vi v_add(vi a, vi b) { return (vi)((vu)a + (vu)b); } /* padding may wrap */

#if defined(ISA_avx512)
INLINE vi v_max(vi a, vi b) { return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b); }
#elif defined(ISA_avx2)
INLINE vi v_max(vi a, vi b) { return (vi)_mm256_max_epi32((__m256i)a, (__m256i)b); }
#elif defined(ISA_neon)
INLINE vi v_max(vi a, vi b) { return (vi)vmaxq_s32((int32x4_t)a, (int32x4_t)b); }
#else
INLINE vi v_max(vi a, vi b) {
    const vi m = a > b;
    return (m & a) | (~m & b);
}
#endif

/* Low bytes of the labels of up to 32 / W vectors as a row of backpointers; others stay unwritten or are padding. */
#if defined(ISA_avx2)
/* Packing works within halves of a vector: bytes 0-15 of the row are labels 0-3 of each vector, bytes 16-31 labels 4-7. */
static u8 place(i32 label) {
    const i32 q = label % 32 / W, r = label % W;
    return (u8)(label / 32 * 32 + r / 4 * 16 + q * 4 + r % 4);
}
INLINE void store_back(u8 *to, const vi *low, i32 n) {
    const __m256i a = (__m256i)low[0], b = (__m256i)low[n > 1 ? 1 : 0], c = (__m256i)low[n > 2 ? 2 : 0],
                  d = (__m256i)low[n > 3 ? 3 : 0];
    const __m256i row = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    memcpy(to, &row, sizeof row);
}
#else
static u8 place(i32 label) { return (u8)label; }
INLINE void store_back(u8 *to, const vi *low, i32 n) {
    typedef u8 bytes __attribute__((vector_size(W)));
    UNROLL for (i32 q = 0; q < n; q++) {
        const bytes b = __builtin_convertvector(low[q], bytes);
        memcpy(to + q * W, &b, sizeof b);
    }
}
#endif

INLINE const i32 *unary_of(const struct viterbi_stream *s, i64 t) { return s->unary + (s->row ? s->row[t] : t) * s->ld; }

/* ------------------------------------------------------------------ labels in registers ------------------------------------- */

/* One step of K streams with Q vectors of labels. */
INLINE void step(const struct viterbi *m, i32 K, i32 Q, struct viterbi_stream *s, i32 (*v)[32], i64 t) {
    const vi mask = v_set1((1 << m->shift) - 1);
    vi acc[VITERBI_STREAMS][8];
    UNROLL for (i32 q = 0; q < Q; q++) {
        const vi a = v_load(m->trans + q * W);
        UNROLL for (i32 k = 0; k < K; k++) acc[k][q] = v_add(v_set1(v[k][0]), a);
    }
    for (i32 i = 1; i < m->L; i++) {
        const i32 *trans = m->trans + i * m->Lp;
        UNROLL for (i32 k = 0; k < K; k++) {
            const vi from = v_set1(v[k][i]);
            UNROLL for (i32 q = 0; q < Q; q++) acc[k][q] = v_max(acc[k][q], v_add(from, v_load(trans + q * W)));
        }
    }
    UNROLL for (i32 k = 0; k < K; k++) {
        const i32 *u = unary_of(&s[k], t);
        vi low[8];
        UNROLL for (i32 q = 0; q < Q; q++) {
            low[q] = acc[k][q] & mask;
            v_store(v[k] + q * W, v_add(acc[k][q] - low[q], v_load(u + q * W)));
        }
        store_back(s[k].back + t * m->Lb, low, Q);
    }
}

INLINE void subtract(const struct viterbi *m, i32 Q, struct viterbi_stream *s, i32 *v) {
    const i32 first = v[0];
    s->base += first >> m->shift;
    UNROLL for (i32 q = 0; q < Q; q++) v_store(v + q * W, v_add(v_load(v + q * W), v_set1(-first)));
}

INLINE void run(const struct viterbi *m, i32 K, i32 Q, struct viterbi_stream *s, i64 n) {
    _Alignas(64) i32 v[VITERBI_STREAMS][32];
    for (i32 k = 0; k < K; k++) memcpy(v[k], s[k].v, (size_t)(Q * W) * sizeof v[k][0]);
    for (i64 t = 0; t < n;) {
        const i64 to = lmin(n, t + VITERBI_DRIFT);
        for (; t < to; t++) step(m, K, Q, s, v, t);
        UNROLL for (i32 k = 0; k < K; k++) subtract(m, Q, &s[k], v[k]);
    }
    for (i32 k = 0; k < K; k++) memcpy(s[k].v, v[k], (size_t)(Q * W) * sizeof v[k][0]);
}

/* ------------------------------------------------------------------ more labels --------------------------------------------- */

enum { GROUP = VITERBI_BACK / W < 4 ? VITERBI_BACK / W : 4 }; /* vectors that one pass over the labels keeps */

/* GROUP vectors of labels from j on, from v to next. */
INLINE void group(const struct viterbi *m, const struct viterbi_stream *s, const i32 *v, i32 *next, i32 j, i32 Q, i64 t) {
    const vi mask = v_set1((1 << m->shift) - 1);
    vi acc[GROUP], low[GROUP];
    UNROLL for (i32 q = 0; q < Q; q++) acc[q] = v_add(v_set1(v[0]), v_load(m->trans + j + q * W));
    for (i32 i = 1; i < m->L; i++) {
        const vi from = v_set1(v[i]);
        const i32 *trans = m->trans + (i64)i * m->Lp + j;
        UNROLL for (i32 q = 0; q < Q; q++) acc[q] = v_max(acc[q], v_add(from, v_load(trans + q * W)));
    }
    const i32 *u = unary_of(s, t) + j;
    UNROLL for (i32 q = 0; q < Q; q++) {
        low[q] = acc[q] & mask;
        v_store(next + j + q * W, v_add(acc[q] - low[q], v_load(u + q * W)));
    }
    store_back(s->back + t * m->Lb + j, low, Q);
}

static void run_many(const struct viterbi *m, struct viterbi_stream *s, i64 n) {
    _Alignas(64) i32 room[2][VITERBI_LABELS];
    i32 *v = room[0], *next = room[1];
    memcpy(v, s->v, (size_t)m->Lp * sizeof *v);
    for (i64 t = 0; t < n; t++) {
        i32 j = 0;
        for (; j + GROUP * W <= m->Lp; j += GROUP * W) group(m, s, v, next, j, GROUP, t);
        if (GROUP * W > VITERBI_PAD && j < m->Lp) group(m, s, v, next, j, VITERBI_PAD / W, t);
        i32 *swap = v;
        v = next, next = swap;
        if (t % VITERBI_DRIFT != VITERBI_DRIFT - 1 && t != n - 1) continue;
        const i32 first = v[0];
        s->base += first >> m->shift;
        for (i32 q = 0; q < m->Lp; q += W) v_store(v + q, v_add(v_load(v + q), v_set1(-first)));
    }
    memcpy(s->v, v, (size_t)m->Lp * sizeof *v);
}

/* ------------------------------------------------------------------ choice -------------------------------------------------- */

/* Q vectors of labels: as many streams at a time as registers hold. */
#define RUN(Q, most)                                                              \
    static void run##Q(const struct viterbi *m, i32 k, struct viterbi_stream *s, i64 n) { \
        for (; k >= (most); k -= (most), s += (most)) run(m, most, Q, s, n);      \
        if ((most) > 2 && k >= 2) run(m, 2, Q, s, n), k -= 2, s += 2;             \
        for (; k > 0; k--, s++) run(m, 1, Q, s, n);                               \
    }
RUN(1, 4)
RUN(2, 4)
#if defined(ISA_avx2) || defined(ISA_neon) || !defined(ISA_avx512)
RUN(3, 4)
RUN(4, 2)
#endif

static void steps(const struct viterbi *m, i32 k, struct viterbi_stream *s, i64 n) {
    const i32 Q = ceil_div(m->L, W);
    if (Q == 1) run1(m, k, s, n);
    else if (Q == 2) run2(m, k, s, n);
#if !defined(ISA_avx512)
    else if (Q == 3) run3(m, k, s, n);
    else if (Q == 4) run4(m, k, s, n);
#endif
    else
        for (i32 i = 0; i < k; i++) run_many(m, &s[i], n);
}

#define SET_NAME2(isa) viterbi_##isa
#define SET_NAME(isa) SET_NAME2(isa)
const struct viterbi_set SET_NAME(ISA) = {.steps = steps, .at = place};
