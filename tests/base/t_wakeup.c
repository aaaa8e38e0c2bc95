/* t_wakeup.c - no signal is lost: two threads take turns to increment a number and sleep in between; a wait times out. */
#define _GNU_SOURCE
#include "t.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/wakeup.h"

enum { TURNS = 20000 };
#define LONG_S 20.0 /* a lost signal makes the test take this long */

struct game {
    struct wakeup wakeup;
    _Atomic i32 ball;
};

static void await(struct game *g, i32 ball) {
    while (atomic_load_explicit(&g->ball, memory_order_acquire) < ball) {
        const u32 seen = wakeup_prepare(&g->wakeup);
        if (atomic_load_explicit(&g->ball, memory_order_acquire) < ball) wakeup_wait(&g->wakeup, seen, LONG_S);
        wakeup_finish(&g->wakeup);
    }
}

static void play(struct game *g, i32 first) {
    for (i32 k = first; k < TURNS; k += 2) {
        await(g, k);
        atomic_store_explicit(&g->ball, k + 1, memory_order_release);
        wakeup_signal(&g->wakeup);
    }
}

static void *other(void *game) {
    play(game, 1);
    return NULL;
}

TEST(wakeup_loses_no_signal) {
    struct game g = {0};
    pthread_t t;
    const f64 t0 = clock_now();
    assert_int_equal(pthread_create(&t, NULL, other, &g), 0);
    play(&g, 0);
    pthread_join(t, NULL);
    assert_int_equal(atomic_load(&g.ball), TURNS);
    assert_int_equal(atomic_load(&g.wakeup.waiters), 0);
    assert_true(clock_now() - t0 < LONG_S);
}

TEST(wakeup_wait_times_out) {
    struct game g = {0};
    const f64 t0 = clock_now();
    const u32 seen = wakeup_prepare(&g.wakeup);
    wakeup_wait(&g.wakeup, seen, 0.05);
    wakeup_finish(&g.wakeup);
    assert_true(clock_now() - t0 >= 0.05);
    wakeup_signal(&g.wakeup); /* no waiter: the word stays */
    assert_int_equal(atomic_load(&g.wakeup.signals), 0);
}

T_MAIN(cmocka_unit_test(wakeup_loses_no_signal), cmocka_unit_test(wakeup_wait_times_out))
