/* t_viterbi_slices.c - one long sequence in slices: the path of one slice for any number of slices, blocks, threads and ranks. */
#include "t.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "exec/policy.h"
#include "learn/viterbi_slices.h"

enum { L_MAX = 48, SYMBOLS = 30, T_MAX = 50000, RANKS = 3 };

static i32 trans[L_MAX * L_MAX], packed[L_MAX * L_MAX], start[L_MAX];
static _Alignas(64) i32 unary[SYMBOLS * L_MAX];
static u8 symbol[T_MAX];
static i32 symbol32[T_MAX];
static u16 symbol16[T_MAX];

/* sticky: labels that hardly change and words that say little, so that scores take long to forget their start. */
static void make(struct viterbi *m, i32 L, bool sticky) {
    u64 at = 0;
    for (i32 i = 0; i < L * L; i++)
        trans[i] = sticky && i / L != i % L ? -9000000 / L : -(i32)(rng_uniform(1, RNG_TEST, 0, at++) * 3000);
    for (i32 i = 0; i < L; i++) start[i] = -(i32)(rng_uniform(2, RNG_TEST, 0, at++) * 3000);
    for (i32 i = 0; i < SYMBOLS * L_MAX; i++) unary[i] = -(i32)(rng_uniform(3, RNG_TEST, 0, at++) * (sticky ? 20 : 3000));
    for (i32 t = 0; t < T_MAX; t++) {
        symbol[t] = (u8)(rng_uniform(4, RNG_TEST, 0, (u64)t) * SYMBOLS);
        symbol32[t] = symbol16[t] = symbol[t];
    }
    viterbi_pack(kern_best()->arch, L, trans, packed, m);
    for (i32 i = 0; i < SYMBOLS * L_MAX; i++) unary[i] *= 1 << m->shift;
}

/* All steps in one call of the reference. */
static i64 plain(i32 L, i64 T, u8 *path) {
    static i32 ref_packed[L_MAX * L_MAX], v[L_MAX];
    static u8 back[(i64)T_MAX * 64];
    struct viterbi m;
    i64 score;
    viterbi_pack(KERN_REF, L, trans, ref_packed, &m);
    struct viterbi_stream s = {.unary = unary, .ld = m.Lp, .row = symbol32 + 1, .v = v, .back = back};
    viterbi_start(&m, start, unary + (i64)symbol32[0] * m.Lp, &s);
    m.set->steps(&m, 1, &s, T - 1);
    struct viterbi_walk w = {back, T - 1, viterbi_best(&m, &s, &score), path + 1};
    viterbi_trace(&m, 1, &w);
    path[0] = (u8)w.label;
    return score;
}

struct job {
    const char *machine;
    struct comm *comm;
    struct viterbi_long q;
    struct viterbi_long_result result;
    pthread_t thread;
    err e;
};

static err decode(struct job *r) {
    struct machine m;
    struct pool *pool;
    TRY(machine_parse(r->machine, &m));
    TRY(pool_new(m.ndevice / m.nrank, &pool));
    const struct resources use = {.pool = pool, .machine = &m, .comm = r->comm, .policy = policy_find("overlap")};
    const err e = viterbi_long(&r->q, &use, &r->result);
    pool_free(pool);
    return e;
}

static void *rank(void *arg) {
    struct job *r = arg;
    r->e = decode(r);
    return NULL;
}

static struct viterbi_long question(const struct viterbi *m, i64 T, i32 slices, i32 block, u8 *path) {
    return (struct viterbi_long){.kern = m, .start = start, .unary = unary, .symbol = symbol, .symbol_bytes = 1, .T = T,
                                 .slices = slices, .block = block, .path = path};
}

static u8 want[T_MAX], have[RANKS][T_MAX];

static void same(const char *machine, const struct viterbi *m, i64 T, i32 slices, i32 block, i64 score,
                 struct viterbi_long_result *out) {
    struct job r = {.machine = machine, .q = question(m, T, slices, block, have[0])};
    memset(have[0], 255, (size_t)T);
    T_OK(decode(&r));
    if (memcmp(want, have[0], (size_t)T) != 0) fail_msg("another path: %s, %d slices, blocks of %d", machine, slices, block);
    assert_true(r.result.score == score);
    if (out) *out = r.result;
}

TEST(any_number_of_slices_and_blocks_gives_the_path_of_one) {
    static const i32 labels[] = {1, 2, 5, 22, 40};
    for (size_t i = 0; i < COUNT(labels); i++) {
        struct viterbi m;
        make(&m, labels[i], false);
        const i64 score = plain(labels[i], 5000, want);
        for (i32 P = 1; P <= 64; P++) same("cpu*2", &m, 5000, P, 7 + 13 * (P % 5), score, NULL);
        same("cpu*3", &m, 5000, 6, 1, score, NULL);
        same("cpu*3", &m, 5000, 0, 0, score, NULL);
    }
}

TEST(short_sequences_have_fewer_slices) {
    struct viterbi m;
    make(&m, 5, false);
    for (i64 T = 1; T < 40; T++) {
        const i64 score = plain(5, T, want);
        for (i32 P = 1; P <= 48; P += 5) same("cpu*2", &m, T, P, 3, score, NULL);
    }
}

TEST(scores_that_never_forget_their_start_give_the_same_path) {
    struct viterbi m;
    struct viterbi_long_result r;
    make(&m, 6, true);
    const i64 score = plain(6, 20000, want);
    for (i32 P = 2; P <= 32; P *= 2) same("cpu*2", &m, 20000, P, 50, score, &r);
    assert_true(r.rounds > 16 && r.serial && r.traced > 32);
}

TEST(usual_sequences_need_one_block_more_per_slice) {
    struct viterbi m;
    struct viterbi_long_result r;
    make(&m, 22, false);
    const i64 score = plain(22, T_MAX, want);
    same("cpu*2", &m, T_MAX, 8, 200, score, &r);
    assert_true(!r.serial && r.rounds <= 2 && r.again <= 2 * 8 && r.traced <= 2 * 8 && r.blocks >= 250);
}

TEST(symbols_may_have_one_two_or_four_bytes) {
    struct viterbi m;
    make(&m, 9, false);
    plain(9, 3000, want);
    for (i32 bytes = 1; bytes <= 4; bytes *= 2) {
        struct job r = {.machine = "cpu*2", .q = question(&m, 3000, 5, 64, have[0])};
        r.q.symbol = bytes == 1 ? (const void *)symbol : bytes == 2 ? (const void *)symbol16 : (const void *)symbol32;
        r.q.symbol_bytes = bytes;
        T_OK(decode(&r));
        assert_memory_equal(want, have[0], 3000);
    }
}

TEST(ranks_and_virtual_devices_have_the_same_path) {
    struct viterbi m;
    make(&m, 22, false);
    const i64 score = plain(22, 20000, want);
    same("sim*4", &m, 20000, 16, 100, score, NULL);
    same("host*2(sim*3)", &m, 20000, 7, 100, score, NULL);
    for (i32 ranks = 2; ranks <= RANKS; ranks++) {
        struct comm *comm[RANKS] = {0};
        struct job run[RANKS];
        T_OK(comm_threads(ranks, comm));
        for (i32 k = 0; k < ranks; k++) {
            memset(have[k], 255, sizeof have[k]);
            run[k] = (struct job){.machine = ranks == 2 ? "host*2(cpu)" : "host*3(cpu*2)", .comm = comm[k],
                                  .q = question(&m, 20000, 13, 100, have[k])};
            assert_int_equal(pthread_create(&run[k].thread, NULL, rank, &run[k]), 0);
        }
        for (i32 k = 0; k < ranks; k++) pthread_join(run[k].thread, NULL);
        for (i32 k = 0; k < ranks; k++) {
            T_OK(run[k].e);
            assert_memory_equal(want, have[k], 20000);
            assert_true(run[k].result.score == score);
            comm_free(comm[k]);
        }
    }
}

T_MAIN(cmocka_unit_test(any_number_of_slices_and_blocks_gives_the_path_of_one),
       cmocka_unit_test(short_sequences_have_fewer_slices),
       cmocka_unit_test(scores_that_never_forget_their_start_give_the_same_path),
       cmocka_unit_test(usual_sequences_need_one_block_more_per_slice),
       cmocka_unit_test(symbols_may_have_one_two_or_four_bytes),
       cmocka_unit_test(ranks_and_virtual_devices_have_the_same_path))
