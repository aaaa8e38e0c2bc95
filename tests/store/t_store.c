/* t_store.c - the parameter store: every policy reaches the minimum, ssp:0 has the bits of one process, legs, replay, refusals.
 */
#include "workers.h"

#include <stdio.h>

static void all_done(const struct setting *set, const struct worker *w) {
    for (i32 k = 0; k < set->ranks; k++) {
        if (w[k].e < 0) printf("rank %d: E%d %s\n", k, w[k].why.code, w[k].why.text);
        assert_true(w[k].e >= 0);
        assert_memory_equal(w[k].theta, w[0].theta, sizeof w[0].theta);
    }
}

/* The same rounds by one process: gradients added along the tree, one update of the whole vector. */
static void serial(i64 n, i32 parts, i32 rounds, i64 block, const char *optim, f64 lr, f64 clip, f32 *theta) {
    static f32 part[WORKERS_MOST][VECTOR_MOST], state[2][VECTOR_MOST];
    const struct kern *k = kern_get(KERN_REF);
    memset(state, 0, sizeof state);
    memset(theta, 0, sizeof(f32) * (size_t)n);
    for (i32 q = 0; q < rounds; q++) {
        f64 sum = 0;
        for (i32 p = 0; p < parts; p++)
            for (i64 i = 0; i < n; i++) part[p][i] = (theta[i] - target_of(p, i)) / (f32)parts;
        for (i32 apart = 1; apart < parts; apart *= 2)
            for (i32 p = 0; p + apart < parts; p += 2 * apart) k->add(n, part[p], part[p + apart]);
        for (i64 at = 0; at < n; at += block) sum += k->sumsq(lmin(block, n - at), part[0] + at);
        struct optim_hyper h = {.lr = (f32)lr, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .step = q + 1};
        h.grad_scale = (f32)optim_clip(clip, sqrt(sum));
        optim_find(optim)->update(&h, n, theta, part[0], state[0], state[1]);
    }
}

static void bits_of_serial(const struct setting *set) {
    static f32 want[VECTOR_MOST];
    struct worker *w = workers_run(set);
    all_done(set, w);
    const i64 block = set->block ? set->block : BLOCK;
    memset(want, 0, sizeof want); /* a longer vector may have been here */
    serial(floats_of(set), set->ranks - set->servers, set->legs * set->rounds, block, set->optim, set->lr, set->clip, want);
    assert_memory_equal(w[0].theta, want, sizeof want);
    assert_int_equal(w[0].leg.end, set->legs * set->rounds);
    workers_free(set, w);
}

/* The recorded order again, with another slow rank. */
static void replay_has_the_bits(const struct setting *set, const struct worker *w, i32 slow) {
    struct setting again = *set;
    again.slow = slow;
    again.replay = w[0].record;
    struct worker *x = workers_run(&again);
    all_done(&again, x);
    assert_memory_equal(x[0].theta, w[0].theta, sizeof w[0].theta);
    workers_free(&again, x);
}

TEST(synchronous_rounds_have_the_bits_of_one_process) {
    for (i32 ranks = 2; ranks <= 5; ranks++)
        for (i32 servers = 0; servers <= imin(2, ranks - 1); servers++)
            bits_of_serial(&(struct setting){.ranks = ranks,
                                             .servers = servers,
                                             .store = "sync",
                                             .optim = servers ? "adam" : "sgd",
                                             .legs = 2,
                                             .rounds = 9,
                                             .lr = 0.1,
                                             .clip = ranks % 2 ? 3 : 0,
                                             .slow = ranks == 3 ? 1 : -1});
}

/* A small network: fewer blocks than ranks that could serve one. */
TEST(more_ranks_than_blocks) {
    static const char *const store[] = {"sync", "ssp:2", "asp", "local:3", "dcasgd"};
    for (i64 block = VECTOR / 2; block <= VECTOR; block *= 2)
        for (i32 servers = 0; servers <= 3; servers += 3)
            for (size_t i = 0; i < COUNT(store); i++) {
                const struct setting set = {.ranks = 5,
                                            .servers = servers,
                                            .block = block,
                                            .store = store[i],
                                            .optim = "sgd",
                                            .legs = 2,
                                            .rounds = 9,
                                            .lr = i == 3 ? 1 : 0.2,
                                            .clip = i == 0 ? 3 : 0,
                                            .slow = -1};
                if (i == 0) {
                    bits_of_serial(&set);
                    continue;
                }
                struct worker *w = workers_run(&set);
                all_done(&set, w);
                workers_free(&set, w);
            }
}

TEST(every_policy_reaches_the_minimum) {
    static const struct {
        const char *store;
        f64 lr;
    } c[] = {{"ssp:0", 0.2}, {"ssp:3", 0.2}, {"asp", 0.2},     {"dcasgd:0.01", 0.2},
             {"local:4", 1}, {"bmuf:4", 1},  {"diloco:4", 0.7}};
    for (size_t i = 0; i < COUNT(c); i++) {
        const struct setting set = {
            .ranks = 4, .servers = (i32)i % 2, .store = c[i].store, .legs = 3, .rounds = 40, .lr = c[i].lr, .slow = -1};
        struct worker *w = workers_run(&set);
        all_done(&set, w);
        const f64 d = distance(&w[0], 4 - set.servers);
        printf("%s: distance %.4f, %lld pushes, %lld bytes\n", c[i].store, d, (long long)w[0].leg.pushes,
               (long long)w[0].leg.sent);
        assert_true(d < 0.35); /* asynchronous policies circle around it */
        assert_int_equal(w[0].leg.pushes, 40 * (4 - set.servers));
        workers_free(&set, w);
    }
}

/* The slow worker takes fewer tickets; with sticky parts each takes its own. */
TEST(tickets_go_to_whoever_is_free) {
    struct setting set = {.ranks = 3, .store = "asp", .legs = 1, .rounds = 30, .lr = 0.2, .slow = 2, .nap_ms = 20};
    struct worker *w = workers_run(&set);
    all_done(&set, w);
    assert_int_equal(w[0].done + w[1].done + w[2].done, 90);
    assert_true(w[2].done < 20);
    workers_free(&set, w);
    set.sticky = true;
    w = workers_run(&set);
    all_done(&set, w);
    for (i32 k = 0; k < 3; k++) assert_int_equal(w[k].done, 30);
    workers_free(&set, w);
}

/* Bounded: no worker is more than s rounds ahead.  Of two workers one makes at most 2 s + 1 updates while the other holds a
 * ticket, and one more by the ticket of an earlier round that it held when the other pulled. */
TEST(staleness_is_bounded) {
    for (i32 s = 1; s <= 3; s++) {
        char store[20];
        snprintf(store, sizeof store, "ssp:%d", s);
        const struct setting set = {.ranks = 2, .store = store, .legs = 1, .rounds = 50, .lr = 0.2, .slow = 1};
        struct worker *w = workers_run(&set);
        i64 pushes = 0;
        all_done(&set, w);
        for (i32 k = 0; k < STALE_BINS; k++) {
            pushes += w[0].leg.stale[k];
            if (k > 2 * (s + 1)) assert_int_equal(w[0].leg.stale[k], 0);
        }
        assert_int_equal(pushes, 100);
        assert_true(w[0].leg.stale[0] < 100);
        workers_free(&set, w);
    }
}

/* Units are applied by themselves; the record of one run gives another the same bits, whatever its speed. */
TEST(a_replay_has_equal_bits) {
    static const i64 border[] = {0, 700, 1500, 4096};
    static const char *const store[] = {"asp", "ssp:2", "dcasgd", "asp"};
    for (size_t i = 0; i < COUNT(store); i++) {
        struct setting set = {.ranks = 4,
                              .servers = i == 1 ? 2 : 0,
                              .store = store[i],
                              .legs = 2,
                              .rounds = 25,
                              .lr = 0.3,
                              .slow = 1,
                              .border = border,
                              .nborder = i == 3 ? (i32)COUNT(border) : 0,
                              .optim = "adam"};
        if (i == 1) set.slow = 3;
        struct worker *w = workers_run(&set);
        all_done(&set, w);
        replay_has_the_bits(&set, w, i == 1 ? 2 : 3);
        workers_free(&set, w);
    }
}

/* Units of several chunks, which a server applies while they come where nobody else waits. */
TEST(a_long_push_is_applied_as_it_comes) {
    static const i64 border[] = {0, 70000, 140000};
    struct setting set = {.ranks = 2, .servers = 1, .n = VECTOR_MOST, .store = "asp", .optim = "adam", .legs = 2, .rounds = 5};
    set.lr = 0.1, set.slow = -1;
    bits_of_serial(&set);
    set.border = border;
    set.nborder = (i32)COUNT(border);
    bits_of_serial(&set);
    set.ranks = 3;
    set.slow = 1;
    struct worker *w = workers_run(&set);
    all_done(&set, w);
    replay_has_the_bits(&set, w, 2);
    workers_free(&set, w);
}

/* Chunks are cut for the codec and stay as long without it: longer than the room of a chunk that is applied as it comes. */
TEST(a_push_is_whole_after_its_codec_was_switched_off) {
    const struct setting set = {.ranks = 2, .servers = 1, .n = VECTOR_MOST, .block = VECTOR_MOST, .store = "asp", .codec = "int8",
                                .legs = 2, .rounds = 5, .lr = 0.1, .slow = -1, .drop_leg = 1};
    struct worker *w = workers_run(&set);
    all_done(&set, w);
    assert_memory_equal(w[0].theta, w[1].theta, sizeof w[0].theta);
    for (i64 i = 0; i < VECTOR_MOST; i++) {
        const f32 want = target_of(0, i);
        assert_true(fabsf(w[0].theta[i] - want) < 0.4f * fabsf(want) + 0.1f);
    }
    workers_free(&set, w);
}

/* A push with the request of the next ticket there; the ticket and the weights back. */
TEST(a_round_of_one_worker_is_three_messages) {
    const struct setting set = {
        .ranks = 2, .servers = 1, .n = 16, .block = 16, .store = "asp", .legs = 1, .rounds = 100, .lr = 0.1, .slow = -1};
    struct worker *w = workers_run(&set);
    all_done(&set, w);
    assert_in_range(w[0].leg.messages, 300, 320);
    workers_free(&set, w);
}

TEST(a_push_that_is_not_finite_is_refused_and_named) {
    for (i32 sync = 0; sync < 2; sync++) {
        const struct setting set = {
            .ranks = 3, .store = sync ? "sync" : "asp", .legs = 1, .rounds = 30, .lr = 0.2, .slow = -1, .nan_ticket = 40};
        struct worker *w = workers_run(&set);
        all_done(&set, w);
        assert_int_equal(w[0].leg.refused, 1);
        assert_in_range(w[0].leg.refused_rank, 0, 2);
        assert_true(isfinite(distance(&w[0], 3)));
        workers_free(&set, w);
    }
}

TEST(a_stop_ends_the_leg_between_rounds) {
    for (i32 sync = 0; sync < 2; sync++) {
        const struct setting set = {
            .ranks = 3, .store = sync ? "sync" : "asp", .legs = 1, .rounds = 1000, .lr = 0.1, .slow = -1, .stop_round = 12};
        struct worker *w = workers_run(&set);
        all_done(&set, w);
        assert_in_range(w[0].leg.end, 12, 40);
        assert_int_equal(w[0].leg.pushes, 3 * w[0].leg.end);
        workers_free(&set, w);
    }
}

/* Residuals, and what a codec has let workers see of the weights, go on from the leg that a stop has ended. */
TEST(a_leg_that_was_stopped_goes_on_with_the_bits_of_a_whole_one) {
    static const char *const codec[] = {"none", "bf16", "int8", "sign", "topk:0.05", "powersgd:2"};
    for (size_t i = 0; i < COUNT(codec); i++)
        for (i32 servers = 0; servers < 2; servers++) {
            struct setting set = {.ranks = 3,
                                  .servers = servers,
                                  .store = servers ? "local:4" : "sync",
                                  .codec = codec[i],
                                  .legs = 2,
                                  .rounds = 40,
                                  .lr = servers ? 1 : 0.1,
                                  .slow = -1,
                                  .optim = "sgd"};
            struct worker *want = workers_run(&set);
            set.stop_round = 12, set.goes_on = true;
            struct worker *got = workers_run(&set);
            all_done(&set, want);
            all_done(&set, got);
            assert_true(got[0].stops > 0);
            assert_memory_equal(got[0].theta, want[0].theta, sizeof want[0].theta);
            workers_free(&set, want);
            workers_free(&set, got);
        }
}

TEST(codecs_save_bytes_and_reach_the_minimum) {
    static const struct {
        const char *codec;
        f64 saves;
    } c[] = {{"none", 0.99}, {"bf16", 1.9}, {"int8", 3.5}, {"sign", 10}, {"topk:0.05", 2}};
    for (size_t i = 0; i < COUNT(c); i++)
        for (i32 sync = 0; sync < 2; sync++) {
            const struct setting set = {
                .ranks = 2, .store = sync ? "sync" : "asp", .codec = c[i].codec, .legs = 2, .rounds = 60, .lr = 0.1, .slow = -1};
            struct worker *w = workers_run(&set);
            all_done(&set, w);
            const f64 d = distance(&w[0], 2), saved = (f64)w[0].leg.whole / (f64)w[0].leg.sent;
            printf("%s %s: distance %.4f, %.1f times fewer bytes\n", set.store, c[i].codec, d, saved);
            assert_true(d < 0.7);
            assert_true(saved >= c[i].saves);
            workers_free(&set, w);
        }
}

/* Second moment of the first element of the vector; 0 on a rank that has none. */
static f32 moment(const struct worker *w) { return w->state[1][0]; }

/* Within a leg only the keeper of the first shard receives a copy of its server's optimiser state. */
TEST(a_server_that_may_die_copies_its_state_to_another_rank) {
    for (i32 servers = 0; servers <= 1; servers++)
        for (i32 i = 0; i < 4; i++) {
            const struct setting set = {.ranks = 4,
                                        .servers = servers,
                                        .store = i < 2 ? "sync" : "asp",
                                        .optim = "adam",
                                        .legs = 1,
                                        .rounds = 40,
                                        .lr = 0.05,
                                        .slow = -1,
                                        .sticky = true,
                                        .heals = i % 2};
            const i32 keeper = servers + 1;
            struct worker *w = workers_run(&set);
            all_done(&set, w);
            assert_true(moment(&w[0]) > 0);
            assert_int_equal(moment(&w[keeper]) > 0, set.heals);
            for (i32 k = 1; k < set.ranks; k++) assert_true(k == keeper || moment(&w[k]) == 0);
            workers_free(&set, w);
        }
    const struct setting whole = {
        .ranks = 3, .store = "sync", .optim = "adam", .legs = 2, .rounds = 40, .lr = 0.1, .clip = 3, .slow = 1, .heals = true};
    bits_of_serial(&whole);
}

TEST(counts_that_do_not_fit_are_refused) {
    struct setting set = {.ranks = 2, .servers = 2, .store = "asp", .legs = 1, .rounds = 1, .lr = 0.1, .slow = -1};
    struct worker *w = workers_run(&set);
    for (i32 k = 0; k < 2; k++) assert_int_equal(w[k].e, -E106);
    workers_free(&set, w);
}

TEST(texts_of_policies_are_checked) {
    struct store_choice c;
    T_OK(store_policy_parse("ssp:0", &c));
    assert_int_equal(store_staleness(&c), 0);
    T_OK(store_policy_parse("local", &c));
    assert_int_equal(store_local_steps(&c), 64);
    static const char *const bad[] = {"", "spp", "ssp:", "ssp:-1", "ssp:1.5", "ssp:1e9", "asp:3", "local:0", "dcasgd:x"};
    for (size_t i = 0; i < COUNT(bad); i++) T_FAILS(store_policy_parse(bad[i], &c), E103);
}

T_MAIN(cmocka_unit_test(synchronous_rounds_have_the_bits_of_one_process), cmocka_unit_test(more_ranks_than_blocks),
       cmocka_unit_test(every_policy_reaches_the_minimum),
       cmocka_unit_test(tickets_go_to_whoever_is_free), cmocka_unit_test(staleness_is_bounded),
       cmocka_unit_test(a_replay_has_equal_bits), cmocka_unit_test(a_long_push_is_applied_as_it_comes),
       cmocka_unit_test(a_round_of_one_worker_is_three_messages),
       cmocka_unit_test(a_push_that_is_not_finite_is_refused_and_named),
       cmocka_unit_test(a_stop_ends_the_leg_between_rounds),
       cmocka_unit_test(a_leg_that_was_stopped_goes_on_with_the_bits_of_a_whole_one),
       cmocka_unit_test(a_push_is_whole_after_its_codec_was_switched_off),
       cmocka_unit_test(codecs_save_bytes_and_reach_the_minimum),
       cmocka_unit_test(a_server_that_may_die_copies_its_state_to_another_rank),
       cmocka_unit_test(counts_that_do_not_fit_are_refused),
       cmocka_unit_test(texts_of_policies_are_checked))
