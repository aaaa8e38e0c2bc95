/* t_bell.c - no ring is lost: two threads hand a number to and fro, asleep until the other has raised it; sleep ends. */
#define _GNU_SOURCE
#include "t.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/bell.h"
#include "base/clock.h"

enum { TURNS = 20000 };
#define LONG_S 20.0 /* a ring that is lost costs so much */

struct game {
    struct bell bell;
    _Atomic i32 ball;
};

static void await(struct game *g, i32 ball) {
    while (atomic_load_explicit(&g->ball, memory_order_acquire) < ball) {
        const u32 heard = bell_near(&g->bell);
        if (atomic_load_explicit(&g->ball, memory_order_acquire) < ball) bell_sleep(&g->bell, heard, LONG_S);
        bell_leave(&g->bell);
    }
}

static void play(struct game *g, i32 first) {
    for (i32 k = first; k < TURNS; k += 2) {
        await(g, k);
        atomic_store_explicit(&g->ball, k + 1, memory_order_release);
        bell_ring(&g->bell);
    }
}

static void *other(void *game) {
    play(game, 1);
    return NULL;
}

TEST(bell_loses_no_ring) {
    struct game g = {0};
    pthread_t t;
    const f64 t0 = clock_now();
    assert_int_equal(pthread_create(&t, NULL, other, &g), 0);
    play(&g, 0);
    pthread_join(t, NULL);
    assert_int_equal(atomic_load(&g.ball), TURNS);
    assert_int_equal(atomic_load(&g.bell.near), 0);
    assert_true(clock_now() - t0 < LONG_S);
}

TEST(bell_sleep_ends_without_a_ring) {
    struct game g = {0};
    const f64 t0 = clock_now();
    const u32 heard = bell_near(&g.bell);
    bell_sleep(&g.bell, heard, 0.05);
    bell_leave(&g.bell);
    assert_true(clock_now() - t0 >= 0.05);
    bell_ring(&g.bell); /* nobody is near */
    assert_int_equal(atomic_load(&g.bell.rung), 0);
}

T_MAIN(cmocka_unit_test(bell_loses_no_ring), cmocka_unit_test(bell_sleep_ends_without_a_ring))
