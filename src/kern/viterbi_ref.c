/* viterbi_ref.c - the scalar reference of viterbi.h, and what needs no vectors: packing, tracing. */
#include "kern/viterbi.h"

/* ------------------------------------------------------------------ reference ----------------------------------------------- */

static void step(const struct viterbi *m, struct viterbi_stream *s, i64 t) {
    const i32 *u = s->unary + (s->row ? s->row[t] : t) * s->ld;
    const i32 mask = (1 << m->shift) - 1;
    i32 next[VITERBI_LABELS];
    for (i32 j = 0; j < m->L; j++) {
        i32 best = s->v[0] + m->trans[j];
        for (i32 i = 1; i < m->L; i++) best = imax(best, s->v[i] + m->trans[(i64)i * m->Lp + j]);
        s->back[t * m->Lb + j] = (u8)(best & mask);
        next[j] = (best & ~mask) + u[j];
    }
    memcpy(s->v, next, (size_t)m->L * sizeof *next);
}

static void subtract(const struct viterbi *m, struct viterbi_stream *s) {
    const i32 first = s->v[0];
    s->base += first >> m->shift;
    for (i32 j = 0; j < m->L; j++) s->v[j] -= first;
}

static void steps(const struct viterbi *m, i32 k, struct viterbi_stream *s, i64 n) {
    for (i32 i = 0; i < k; i++) {
        for (i64 t = 0; t < n; t++) {
            step(m, &s[i], t);
            if (t % VITERBI_DRIFT == VITERBI_DRIFT - 1 || t == n - 1) subtract(m, &s[i]);
        }
    }
}

static u8 in_order(i32 label) { return (u8)label; }

const struct viterbi_set viterbi_ref = {.steps = steps, .at = in_order};

/* ------------------------------------------------------------------ packing ------------------------------------------------- */

i32 viterbi_shift(i32 L) {
    i32 bits = 0;
    while (1 << bits < L) bits++;
    return bits;
}

/* |v| <= 4 M after a subtraction, 2 M more with each step, M more in a candidate, with M = the limit: 4 + 2 * DRIFT + 1 < 32. */
i32 viterbi_limit(i32 L) { return 1 << (31 - 5 - viterbi_shift(L)); }

static const struct viterbi_set *set_of(enum kern_arch arch) {
#if defined(__x86_64__)
    if (arch >= KERN_AVX512) return &viterbi_avx512;
    if (arch == KERN_AVX2) return &viterbi_avx2;
#elif defined(__aarch64__)
    if (arch == KERN_NEON) return &viterbi_neon;
#endif
    return arch == KERN_REF ? &viterbi_ref : &viterbi_base;
}

void viterbi_pack(enum kern_arch arch, i32 L, const i32 *trans, i32 *packed, struct viterbi *out) {
    const i32 shift = viterbi_shift(L), mask = (1 << shift) - 1;
    *out = (struct viterbi){.L = L,
                            .Lp = viterbi_padded(L),
                            .Lb = round_up(L, VITERBI_BACK),
                            .shift = shift,
                            .trans = packed,
                            .set = set_of(arch)};
    for (i32 j = 0; j < L; j++) out->at[j] = out->set->at(j);
    for (i32 i = 0; i < L; i++)
        for (i32 j = 0; j < out->Lp; j++)
            packed[(i64)i * out->Lp + j] = (j < L ? trans[(i64)i * L + j] * (1 << shift) : 0) + (mask - i);
}

void viterbi_start(const struct viterbi *m, const i32 *start, const i32 *unary, struct viterbi_stream *s) {
    memset(s->v, 0, (size_t)m->Lp * sizeof *s->v);
    s->base = 0;
    for (i32 j = 0; j < m->L; j++) s->v[j] = (start ? start[j] * (1 << m->shift) : 0) + (unary ? unary[j] : 0);
    subtract(m, s);
}

/* ------------------------------------------------------------------ paths --------------------------------------------------- */

i32 viterbi_best(const struct viterbi *m, const struct viterbi_stream *s, i64 *score) {
    i32 best = 0;
    for (i32 j = 1; j < m->L; j++)
        if (s->v[j] > s->v[best]) best = j;
    *score = s->base + (s->v[best] >> m->shift);
    return best;
}

/* The last n rows of k walks.  Labels stay in registers where k is a constant. */
static inline __attribute__((always_inline)) void walk(const struct viterbi *m, i32 k, struct viterbi_walk *w, i64 n) {
    const i32 mask = (1 << m->shift) - 1;
    i32 label[VITERBI_STREAMS];
    for (i32 i = 0; i < k; i++) label[i] = w[i].label;
    for (i64 t = 1; t <= n; t++) {
        for (i32 i = 0; i < k; i++) {
            w[i].path[w[i].n - t] = (u8)label[i];
            label[i] = mask - w[i].back[(w[i].n - t) * m->Lb + m->at[label[i]]];
        }
    }
    for (i32 i = 0; i < k; i++) {
        w[i].label = label[i];
        w[i].n -= n;
    }
}

void viterbi_trace(const struct viterbi *m, i32 k, struct viterbi_walk *w) {
    i64 all = INT64_MAX;
    for (i32 i = 0; i < k; i++) all = lmin(all, w[i].n);
    if (k == VITERBI_STREAMS) walk(m, VITERBI_STREAMS, w, all);
    for (i32 i = 0; i < k; i++) walk(m, 1, &w[i], w[i].n);
}

i64 viterbi_meet(const struct viterbi *m, const u8 *back, i64 n, i32 *label) {
    const i32 mask = (1 << m->shift) - 1;
    u8 alive[VITERBI_LABELS] = {0};
    i32 count = m->L;
    i64 t = n;
    for (i32 j = 0; j < m->L; j++) alive[j] = (u8)j;
    while (count > 1 && t > 0) { /* the labels that paths to any last label go through, without duplicates */
        u8 seen[VITERBI_LABELS] = {0};
        const u8 *row = back + --t * m->Lb;
        i32 left = 0;
        for (i32 k = 0; k < count; k++) {
            const i32 from = mask - row[m->at[alive[k]]];
            if (!seen[from]) alive[left++] = (u8)from;
            seen[from] = 1;
        }
        count = left;
    }
    *label = alive[0];
    return count > 1 ? -1 : t;
}
