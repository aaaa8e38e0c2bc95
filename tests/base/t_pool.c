/* t_pool.c - every worker runs once per job, the caller is worker 0, sleeping workers wake up. */
#define _GNU_SOURCE
#include "t.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/mem.h"
#include "base/pool.h"

enum { MAX = 8 };
struct tally {
    i64 ran[MAX]; /* written by its worker only */
    _Atomic i64 total;
    pthread_t who0;
};

static void count(void *arg, i32 worker) {
    struct tally *t = arg;
    t->ran[worker]++;
    atomic_fetch_add(&t->total, worker + 1);
    if (worker == 0) t->who0 = pthread_self();
}

static void rest(long us) {
    struct timespec ts = {0, us * 1000};
    nanosleep(&ts, NULL);
}

TEST(pool_runs_every_worker_once_per_job) {
    for (i32 n = 1; n <= 4; n++) {
        struct pool *p;
        struct tally t = {0};
        T_OK(pool_new(n, &p));
        assert_int_equal(pool_size(p), n);
        for (i32 i = 0; i < 300; i++) {
            pool_run(p, count, &t);
            for (i32 w = 0; w < n; w++) assert_int_equal(t.ran[w], i + 1);
        }
        assert_int_equal(atomic_load(&t.total), 300 * n * (n + 1) / 2);
        assert_true(pthread_equal(t.who0, pthread_self()));
        pool_free(p);
    }
}

TEST(pool_wakes_sleeping_workers) {
    struct pool *p;
    struct tally t = {0};
    T_OK(pool_new(3, &p));
    for (i32 i = 0; i < 20; i++) {
        rest(3000); /* longer than they spin */
        pool_run(p, count, &t);
    }
    assert_int_equal(t.ran[1], 20);
    assert_int_equal(t.ran[2], 20);
    pool_free(p);
}

static void slow_worker(void *arg, i32 worker) {
    if (worker == 1) rest(5000);
    count(arg, worker);
}

TEST(pool_caller_sleeps_until_the_slowest_is_done) {
    struct pool *p;
    struct tally t = {0};
    T_OK(pool_new(2, &p));
    for (i32 i = 0; i < 10; i++) {
        pool_run(p, slow_worker, &t);
        assert_int_equal(t.ran[1], i + 1);
    }
    pool_free(p);
}

TEST(pool_run_allocates_nothing) {
    struct pool *p;
    struct tally t = {0};
    T_OK(pool_new(3, &p));
    i64 calls = mem_stats().calls;
    for (i32 i = 0; i < 10; i++) pool_run(p, count, &t);
    assert_int_equal(mem_stats().calls, calls);
    pool_free(p);
}

TEST(pool_frees_what_it_took_and_refuses_nonsense) {
    i64 live = mem_stats().live;
    struct pool *p;
    T_FAILS(pool_new(0, &p), E1);
    for (i32 n = 1; n <= 2; n++) {
        mem_fail_nth(n);
        T_FAILS(pool_new(2, &p), E601);
        mem_fail_nth(0);
        assert_null(p);
    }
    pool_free(NULL);
    assert_int_equal(mem_stats().live, live);
}

T_MAIN(cmocka_unit_test(pool_runs_every_worker_once_per_job), cmocka_unit_test(pool_wakes_sleeping_workers),
       cmocka_unit_test(pool_caller_sleeps_until_the_slowest_is_done), cmocka_unit_test(pool_run_allocates_nothing),
       cmocka_unit_test(pool_frees_what_it_took_and_refuses_nonsense))
