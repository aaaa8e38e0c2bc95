/* t_viterbi.c - max-plus steps of every instruction set: the best of all paths, ties, equal bits, no overflow. */
#include "t.h"

#include "base/mem.h"
#include "base/rng.h"
#include "kern/viterbi.h"

#include <string.h>

#define EACH_ARCH(a)                                  \
    for (enum kern_arch a = 0; a < KERN_NARCH; a++) \
        for (const struct kern *k_ = kern_get(a); k_; k_ = NULL)

enum { STEPS_MAX = 40, LD = VITERBI_LABELS };

/* A random problem: scores in [-range, range]. */
struct problem {
    i32 L, n;
    i32 start[VITERBI_LABELS], trans[VITERBI_LABELS * VITERBI_LABELS];
    i32 unary[STEPS_MAX * LD];
};

static i32 score(u32 seed, u64 i, i32 range) { return (i32)(rng_uniform(seed, RNG_TEST, 0, i) * (f32)(2 * range + 1)) - range; }

static struct problem *problem(u32 seed, i32 L, i32 n, i32 range) {
    static struct problem p;
    u64 at = 0;
    p.L = L, p.n = n;
    for (i32 i = 0; i < L; i++) p.start[i] = score(seed, at++, range);
    for (i32 i = 0; i < L * L; i++) p.trans[i] = score(seed, at++, range);
    for (i32 i = 0; i < STEPS_MAX * LD; i++) p.unary[i] = score(seed, at++, range);
    return &p;
}

/* The unary scores as the kernels take them. */
static const i32 *shifted(const struct problem *p) {
    static i32 all[STEPS_MAX * LD];
    for (i32 i = 0; i < STEPS_MAX * LD; i++) all[i] = p->unary[i] * (1 << viterbi_shift(p->L));
    return all;
}

/* Of all paths the best, of equal ones that with the lowest last label, then the lowest before it, and so on. */
static i64 brute(const struct problem *p, u8 *best) {
    i64 most = INT64_MIN, all = 1;
    for (i32 t = 0; t < p->n; t++) all *= p->L;
    for (i64 code = 0; code < all; code++) {
        u8 path[8];
        i64 rest = code, sum = 0;
        for (i32 t = 0; t < p->n; t++, rest /= p->L) path[t] = (u8)(rest % p->L); /* the last label counts slowest */
        for (i32 t = 0; t < p->n; t++)
            sum += p->unary[t * LD + path[t]] + (t ? p->trans[path[t - 1] * p->L + path[t]] : p->start[path[0]]);
        if (sum > most) most = sum, memcpy(best, path, (size_t)p->n);
    }
    return most;
}

/* The path by the kernels, in calls of `step` steps. */
static i64 decode(enum kern_arch arch, const struct problem *p, i32 step, u8 *path) {
    static i32 packed[VITERBI_LABELS * VITERBI_LABELS], v[VITERBI_LABELS];
    static u8 back[STEPS_MAX * VITERBI_LABELS];
    struct viterbi m;
    i64 best;
    const i32 *unary = shifted(p);
    viterbi_pack(arch, p->L, p->trans, packed, &m);
    struct viterbi_stream s = {.v = v, .ld = LD};
    viterbi_start(&m, p->start, unary, &s);
    for (i32 t = 1; t < p->n; t += step) {
        s.unary = unary + t * LD;
        s.back = back + (t - 1) * m.Lb;
        m.set->steps(&m, 1, &s, imin(step, p->n - t));
    }
    struct viterbi_walk w = {back, p->n - 1, viterbi_best(&m, &s, &best), path + 1};
    viterbi_trace(&m, 1, &w);
    path[0] = (u8)w.label;
    return best;
}

TEST(the_path_is_the_best_of_all_paths) {
    u8 want[8], have[8];
    EACH_ARCH(a) {
        for (u32 i = 0; i < 300; i++) {
            /* few different scores: many ties */
            const struct problem *p = problem(i, 1 + (i32)(i % 4), 1 + (i32)(i / 4 % 8), i % 3 ? 2 : 1000);
            assert_true(brute(p, want) == decode(a, p, 100, have));
            assert_memory_equal(want, have, (size_t)p->n);
        }
    }
}

TEST(every_instruction_set_and_every_cut_gives_the_same_path) {
    static const i32 sizes[] = {1, 2, 7, 8, 9, 16, 17, 22, 24, 25, 31, 32, 33, 47, 48, 64, 65, 200, 256};
    u8 want[STEPS_MAX], have[STEPS_MAX];
    for (size_t i = 0; i < COUNT(sizes); i++) {
        const struct problem *p = problem((u32)i, sizes[i], STEPS_MAX, i % 2 ? 3 : 1000);
        const i64 best = decode(KERN_REF, p, 100, want);
        EACH_ARCH(a) {
            for (i32 step = 1; step < STEPS_MAX; step += step < 4 ? 1 : 9) {
                assert_true(decode(a, p, step, have) == best);
                assert_memory_equal(want, have, sizeof want);
            }
        }
    }
}

TEST(streams_do_not_depend_on_each_other) {
    static i32 packed[64 * 64], v[VITERBI_STREAMS][64], row[VITERBI_STREAMS][STEPS_MAX];
    static u8 back[VITERBI_STREAMS][STEPS_MAX * 64], alone[STEPS_MAX * 64];
    EACH_ARCH(a) {
        for (i32 L = 1; L <= 40; L++) {
            const struct problem *p = problem((u32)L, L, STEPS_MAX, 500);
            const i32 *unary = shifted(p);
            struct viterbi_stream s[VITERBI_STREAMS], one;
            struct viterbi m;
            viterbi_pack(a, L, p->trans, packed, &m);
            for (i32 k = 1; k <= VITERBI_STREAMS; k++) {
                for (i32 i = 0; i < k; i++) {
                    for (i32 t = 0; t < STEPS_MAX; t++) row[i][t] = (t * (i + 1) + i) % STEPS_MAX;
                    s[i] = (struct viterbi_stream){.unary = unary, .ld = LD, .row = row[i], .v = v[i], .back = back[i]};
                    viterbi_start(&m, p->start, unary, &s[i]);
                }
                m.set->steps(&m, k, s, STEPS_MAX);
                for (i32 i = 0; i < k; i++) {
                    i32 u[64];
                    one = s[i], one.v = u, one.back = alone;
                    viterbi_start(&m, p->start, unary, &one);
                    m.set->steps(&m, 1, &one, STEPS_MAX);
                    assert_true(one.base == s[i].base);
                    assert_memory_equal(u, v[i], (size_t)L * sizeof *u);
                    for (i32 t = 0; t < STEPS_MAX; t++)
                        for (i32 j = 0; j < L; j++)
                            assert_int_equal(alone[t * m.Lb + m.at[j]], back[i][t * m.Lb + m.at[j]]);
                }
            }
        }
    }
}

/* Scores at the limit, against 64-bit sums. */
TEST(long_sequences_of_the_largest_scores_do_not_overflow) {
    enum { T = 20000 };
    static i32 packed[64 * 64], trans[64 * 64], v[64], row[T];
    static i64 exact[2][64];
    static u8 back[T * 64];
    static const i32 sizes[] = {1, 2, 5, 22, 40};
    _Alignas(64) i32 unary[4 * 64];
    EACH_ARCH(a) {
        for (size_t i = 0; i < COUNT(sizes); i++) {
            const i32 L = sizes[i], limit = viterbi_limit(L);
            struct viterbi m;
            for (i32 k = 0; k < L * L; k++) trans[k] = score(5, (u64)k, 1) >= 0 ? limit : -limit;
            for (i32 k = 0; k < 4 * 64; k++)
                unary[k] = (k / 64 < 2 ? (k / 64 ? limit : -limit) : score(6, (u64)k, limit)) * (1 << viterbi_shift(L));
            for (i32 t = 0; t < T; t++) row[t] = t < T / 3 ? 1 : t < T / 2 ? 0 : (i32)(rng_uniform(7, RNG_TEST, 0, (u64)t) * 4);
            viterbi_pack(a, L, trans, packed, &m);
            struct viterbi_stream s = {.unary = unary, .ld = 64, .row = row, .v = v, .back = back};
            viterbi_start(&m, NULL, NULL, &s);
            memset(exact, 0, sizeof exact);
            for (i32 t = 0; t < T; t++) {
                for (i32 j = 0; j < L; j++) {
                    i64 best = INT64_MIN;
                    for (i32 k = 0; k < L; k++) best = lmax(best, exact[t & 1][k] + trans[k * L + j]);
                    exact[~t & 1][j] = best + (unary[row[t] * 64 + j] >> m.shift);
                }
            }
            m.set->steps(&m, 1, &s, T);
            for (i32 j = 0; j < L; j++) assert_true(s.base + (v[j] >> m.shift) == exact[T & 1][j]);
        }
    }
}

TEST(walks_meet_where_all_paths_do) {
    static u8 path[64][STEPS_MAX], back[STEPS_MAX * 64];
    static i32 packed[64 * 64], v[64];
    i32 known = 0, unknown = 0;
    for (u32 i = 0; i < 200; i++) {
        const i32 L = 2 + (i32)(i % 20), n = 1 + (i32)(i % 7) * 3;
        const struct problem *p = problem(i, L, STEPS_MAX, 50);
        struct viterbi_walk w[64];
        struct viterbi m;
        i32 label;
        viterbi_pack(KERN_BASE, L, p->trans, packed, &m);
        struct viterbi_stream s = {.unary = shifted(p), .ld = LD, .v = v, .back = back};
        viterbi_start(&m, p->start, NULL, &s);
        m.set->steps(&m, 1, &s, n);
        for (i32 j = 0; j < L; j++) w[j] = (struct viterbi_walk){back, n, j, path[j]};
        for (i32 j = 0; j < L; j += VITERBI_STREAMS) viterbi_trace(&m, imin(VITERBI_STREAMS, L - j), w + j);
        i64 want = n;
        for (i32 j = 1; j < L; j++) {
            i64 same = w[j].label == w[0].label ? 0 : -1;
            while (same >= 0 && same < want && path[j][same] == path[0][same]) same++;
            want = lmin(want, same);
        }
        assert_true(viterbi_meet(&m, back, n, &label) == want);
        if (want >= 0) assert_int_equal(label, want > 0 ? path[0][want - 1] : w[0].label);
        known += want > 0, unknown += want < 0;
    }
    assert_true(known > 20 && unknown > 20);
}

TEST(walks_of_unlike_lengths_are_those_of_each) {
    static u8 path[VITERBI_STREAMS][STEPS_MAX], alone[STEPS_MAX], back[STEPS_MAX * 64];
    static i32 packed[64 * 64], v[64];
    const struct problem *p = problem(3, 22, STEPS_MAX, 50);
    struct viterbi_walk w[VITERBI_STREAMS];
    struct viterbi m;
    viterbi_pack(KERN_BASE, 22, p->trans, packed, &m);
    struct viterbi_stream s = {.unary = shifted(p), .ld = LD, .v = v, .back = back};
    viterbi_start(&m, p->start, NULL, &s);
    m.set->steps(&m, 1, &s, STEPS_MAX);
    for (i32 i = 0; i < VITERBI_STREAMS; i++) w[i] = (struct viterbi_walk){back, STEPS_MAX - 7 * i, i, path[i]};
    viterbi_trace(&m, VITERBI_STREAMS, w);
    for (i32 i = 0; i < VITERBI_STREAMS; i++) {
        struct viterbi_walk one = {back, STEPS_MAX - 7 * i, i, alone};
        viterbi_trace(&m, 1, &one);
        assert_int_equal(one.label, w[i].label);
        assert_memory_equal(alone, path[i], STEPS_MAX - 7 * (size_t)i);
    }
}

T_MAIN(cmocka_unit_test(the_path_is_the_best_of_all_paths),
       cmocka_unit_test(every_instruction_set_and_every_cut_gives_the_same_path),
       cmocka_unit_test(streams_do_not_depend_on_each_other),
       cmocka_unit_test(long_sequences_of_the_largest_scores_do_not_overflow),
       cmocka_unit_test(walks_meet_where_all_paths_do),
       cmocka_unit_test(walks_of_unlike_lengths_are_those_of_each))
