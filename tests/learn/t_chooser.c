/* t_chooser.c - what --store auto chooses: asynchronous beside a slow worker, local steps on a slow network, nothing among equal
 * workers; synchronous rounds where the loss does not fall more slowly by the second. */
#include <stdio.h>
#include <string.h>

#include "learn/store/inside.h"
#include "t.h"

struct world {
    struct store_run r;
    struct store_record record;
    struct chooser *c;
    i64 step;
};

static void begin(struct world *w) {
    *w = (struct world){.r = {.local = 1}};
    w->r.record = &w->record;
    T_OK(store_policy_parse("auto", &w->r.spec.choice));
    w->r.now = (struct store_choice){store_policy_find("local"), 1};
    T_OK(chooser_new(&w->r, &w->c));
}

/* A leg of two workers whose tickets take one and `slow` seconds, a message `message`; the loss at its end. */
static void leg(struct world *w, f64 slow, f64 message, f64 loss) {
    const struct events none = {0};
    const i64 steps = chooser_until(w->c, 0, 60), rounds = steps / w->r.local;
    const f64 k = (f64)w->r.local, round = slow * k + message;
    struct leg_facts f = {.step = w->step += steps, .steps = steps, .workers = 2, .loss = loss};
    f.fastest = k;
    f.slowest = slow * k;
    f.round = round;
    f.dealt = 2 / (1 / (k + message) + 1 / (slow * k + message));
    f.worked = (f64)rounds * (k + slow * k);
    f.waited = (f64)rounds * 2 * round - f.worked;
    f.seconds = (f64)rounds * (store_staleness(&w->r.now) > 0 ? f.dealt : round);
    chooser_see(w->c, &w->r, &f, &none);
}

static i64 stale(const struct world *w) { return store_staleness(&w->r.now); }

TEST(a_slow_worker_makes_it_asynchronous_and_then_synchronous) {
    struct world w;
    begin(&w);
    leg(&w, 2, 0.01, 1);
    assert_int_equal(stale(&w), 0); /* once is not enough */
    leg(&w, 2, 0.01, 1);
    assert_int_equal(stale(&w), 2);
    assert_int_equal(w.r.local, 1);
    assert_int_equal(w.step, 30); /* two probes of a quarter of a leg at most */
    leg(&w, 2, 0.01, 1);
    leg(&w, 2, 0.01, 0.5);
    assert_int_equal(stale(&w), 2);
    leg(&w, 2, 0.01, 0.4); /* a fifth of the best: a synchronous leg is tried */
    assert_int_equal(stale(&w), 0);
    leg(&w, 2, 0.01, 0.39); /* it is worse */
    assert_int_equal(stale(&w), 2);
    leg(&w, 2, 0.01, 0.37);
    assert_int_equal(stale(&w), 0);
    leg(&w, 2, 0.01, 0.33); /* it is better, and stays */
    for (i32 k = 0; k < 4; k++) leg(&w, 2, 0.01, 0.33);
    assert_int_equal(stale(&w), 0);
    assert_int_equal(w.record.ndecision, 5);
    static const char *const want[] = {"asynchronous, ssp:2: ", "synchronous: ", "asynchronous, ssp:2: ", "synchronous: ",
                                       "synchronous: "};
    for (i32 k = 0; k < 5; k++) {
        printf("step %lld: %s\n", (long long)w.record.decision[k].step, w.record.decision[k].what);
        assert_memory_equal(w.record.decision[k].what, want[k], strlen(want[k]));
    }
    chooser_free(w.c);
}

TEST(equal_workers_stay_synchronous) {
    struct world w;
    begin(&w);
    for (i32 k = 0; k < 8; k++) leg(&w, 1.2, 0.02, 1.0 / (1 + k));
    assert_int_equal(stale(&w), 0);
    assert_int_equal(w.r.local, 1);
    assert_int_equal(w.record.ndecision, 0);
    chooser_free(w.c);
}

TEST(slow_messages_make_it_local) {
    struct world w;
    begin(&w);
    leg(&w, 1, 1, 1);
    assert_int_equal(w.r.local, 1); /* the first leg has the longest step */
    leg(&w, 1, 1, 1);
    assert_int_equal(w.r.local, 4);
    leg(&w, 1, 1, 1);
    assert_int_equal(w.r.local, 16);
    assert_int_equal(stale(&w), 0);
    for (i32 k = 0; k < 10; k++) leg(&w, 1, 1, k == 0 ? 1 : 0.5); /* the loss stays at 0.5 after the first leg */
    assert_int_equal(w.r.local, 1);
    chooser_free(w.c);
}

/* Every state goes on as it would have, also that of a try. */
TEST(a_resumed_chooser_goes_on) {
    static const f64 loss[] = {1, 1, 1, 0.5, 0.4, 0.39, 0.37, 0.33, 0.33};
    for (size_t stop = 0; stop < COUNT(loss); stop++) {
        struct world a, b;
        struct store_reached kept = {.count = {0}};
        begin(&a);
        begin(&b);
        for (size_t k = 0; k < stop; k++) leg(&a, 2, 0.01, loss[k]);
        chooser_save(a.c, &kept);
        assert_true(chooser_sound(&kept));
        b.r.local = a.r.local;
        chooser_load(b.c, &b.r, &kept);
        for (size_t k = stop; k < COUNT(loss); k++) {
            assert_int_equal(stale(&a), stale(&b));
            leg(&a, 2, 0.01, loss[k]);
            leg(&b, 2, 0.01, loss[k]);
        }
        chooser_free(a.c);
        chooser_free(b.c);
    }
}

T_MAIN(cmocka_unit_test(a_slow_worker_makes_it_asynchronous_and_then_synchronous),
       cmocka_unit_test(equal_workers_stay_synchronous), cmocka_unit_test(slow_messages_make_it_local),
       cmocka_unit_test(a_resumed_chooser_goes_on))
