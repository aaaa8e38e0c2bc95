/* t_kmeans.c - k-means on the engine: the same bits on 1 to 4 threads, on ranks, and on virtual devices of any number and speed.
 */
#include "t.h"

#include "base/rng.h"
#include "exec/kmeans.h"

enum { RANKS = 3 };

static void *rank(void *self) {
    struct run *r = self;
    r->e = comm_connect(r->comm);
    if (r->e >= 0) r->e = train(r);
    return NULL;
}

static void make_points(void) {
    for (i32 i = 0; i < ROWS; i++)
        for (i32 j = 0; j < D; j++) point[i][j] = (f32)(i % K) + rng_uniform(5, RNG_TEST, 1, (u64)(i * D + j));
}

/* E.g. "cpu*3"; ranks are threads of this process. */
static f64 centers(const char *machine, const char *policy, i32 ranks, f32 out[K][D]) {
    struct comm *comm[RANKS] = {0};
    static struct run run[RANKS];
    if (ranks > 1) T_OK(comm_threads(ranks, comm));
    for (i32 k = 0; k < ranks; k++) run[k] = (struct run){.machine = machine, .policy = policy, .comm = comm[k]};
    if (ranks == 1) T_OK(train(&run[0]));
    for (i32 k = 0; ranks > 1 && k < ranks; k++) assert_int_equal(pthread_create(&run[k].thread, NULL, rank, &run[k]), 0);
    for (i32 k = 0; ranks > 1 && k < ranks; k++) pthread_join(run[k].thread, NULL);
    for (i32 k = 0; k < ranks; k++) T_OK(run[k].e);
    for (i32 k = 1; k < ranks; k++) assert_memory_equal(run[k].model.center, run[0].model.center, sizeof run[k].model.center);
    memcpy(out, run[0].model.center, sizeof run[0].model.center);
    for (i32 k = 0; k < ranks; k++) comm_free(comm[k]);
    return run[0].seconds;
}

TEST(kmeans_has_the_same_bits_on_threads_ranks_and_virtual_devices) {
    static const struct {
        const char *machine, *policy;
        i32 ranks;
    } cases[] = {{"cpu*2", "overlap", 1},       {"cpu*3", "linear", 1},         {"cpu*4", "overlap", 1},
                 {"host*2(cpu)", "overlap", 2}, {"host*3(cpu*2)", "linear", 3}, {"sim*1", "overlap", 1},
                 {"sim*4", "overlap", 1},       {"host*2(sim*3)", "overlap", 1}};
    f32 want[K][D], have[K][D];
    make_points();
    centers("cpu", "overlap", 1, want);
    assert_memory_not_equal(want, point, sizeof want);
    for (size_t i = 0; i < COUNT(cases); i++) {
        centers(cases[i].machine, cases[i].policy, cases[i].ranks, have);
        if (memcmp(want, have, sizeof want) != 0) fail_msg("other bits on %s, %s", cases[i].machine, cases[i].policy);
    }
}

/* 1000 rows of 1 us: 16 micro-batches of 64 rows, at most 4 of them a device. */
TEST(virtual_devices_keep_the_clock_of_the_machine_text) {
    f32 at[K][D];
    make_points();
    const f64 one = centers("sim gbytes=1e9", "overlap", 1, at), four = centers("sim*4 gbytes=1e9", "overlap", 1, at);
    assert_true(one > 0.99e-3 && one < 1.01e-3);
    assert_true(four > 0.255e-3 && four < 0.26e-3);
    const f64 late = centers("sim*4 gbytes=1e9 overhead_us=100", "overlap", 1, at);
    assert_true(late > four + 300e-6); /* a map, merges one after another, an update */
    const f64 far = centers("host*2(sim*2) gbytes=1e9 link_us=1000", "overlap", 1, at);
    assert_true(far > four + 1e-3 && far < four + 1.1e-3); /* one merge needs a part of the other rank */
}

TEST(a_virtual_device_holds_no_more_than_its_memory) {
    struct run r = {.machine = "sim*2 memory=1KiB", .policy = "overlap"};
    make_points();
    T_FAILS(train(&r), E601);
}

T_MAIN(cmocka_unit_test(kmeans_has_the_same_bits_on_threads_ranks_and_virtual_devices),
       cmocka_unit_test(virtual_devices_keep_the_clock_of_the_machine_text),
       cmocka_unit_test(a_virtual_device_holds_no_more_than_its_memory))
