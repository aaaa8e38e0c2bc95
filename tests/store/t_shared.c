/* t_shared.c - a vector that threads update together: with stripes no update is lost, one thread has the bits of the optimiser,
 * of tables the marked lines are updated. */
#include "store/shared.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "t.h"

enum { N = 4096 + 3 * SHARED_LINE, LINES = N / SHARED_LINE, THREADS = 4, UPDATES = 400 };

static const struct shared_table table = {1024, 1024 + 100 * SHARED_LINE};

/* 64-byte aligned, as engines have them. */
static _Alignas(64) f32 theta[N], moment[2][N], grad[N], want[N], want_state[2][N];
static u8 mark[LINES];

static struct shared *fresh(const char *optim, i32 workers, i32 stripes) {
    struct shared *s;
    const struct optim *o = optim_find(optim);
    memset(moment, 0, sizeof moment);
    memset(want_state, 0, sizeof want_state);
    for (i64 i = 0; i < N; i++) theta[i] = want[i] = (f32)(i % 17) - 8;
    struct shared_job job = {.n = N, .theta = theta, .optim = o, .workers = workers, .stripes = stripes,
                             .table = &table, .ntable = 1};
    for (i32 k = 0; k < o->nstate; k++) job.state[k] = moment[k];
    T_OK(shared_new(&job, &s));
    return s;
}

static struct optim_hyper hyper(void) {
    return (struct optim_hyper){.lr = 0.125f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .grad_scale = 1};
}

/* ------------------------------------------------------------------ counting ------------------------------------------------ */

struct pusher {
    struct shared *s;
    i32 worker;
    pthread_t thread;
};

static void *push(void *pusher) {
    const struct pusher *p = pusher;
    for (i32 i = 0; i < UPDATES; i++) shared_update(p->s, p->worker, &(struct shared_push){.grad = grad, .hyper = hyper()});
    return NULL;
}

/* Elements that do not stand where all updates would have moved them. */
static i64 lost(i32 stripes) {
    struct shared *s = fresh("sgd", THREADS, stripes);
    struct pusher p[THREADS];
    i64 count = 0;
    for (i64 i = 0; i < N; i++) grad[i] = 1;
    for (i32 k = 0; k < THREADS; k++) {
        p[k] = (struct pusher){.s = s, .worker = k};
        assert_int_equal(pthread_create(&p[k].thread, NULL, push, &p[k]), 0);
    }
    for (i32 k = 0; k < THREADS; k++) pthread_join(p[k].thread, NULL);
    for (i64 i = 0; i < N; i++) count += theta[i] != (f32)(i % 17) - 8 - 0.125f * THREADS * UPDATES; /* exact in f32 */
    assert_int_equal(shared_count(s), THREADS * UPDATES);
    shared_free(s);
    return count;
}

TEST(stripes_lose_no_update) {
    static const i32 stripes[] = {1, 7, 64, 4096}; /* 4096: more than lines */
    for (size_t i = 0; i < COUNT(stripes); i++) assert_int_equal(lost(stripes[i]), 0);
    printf("without locks %lld of %d elements lost an update\n", (long long)lost(0), N); /* may be none */
}

/* ------------------------------------------------------------------ arithmetic ---------------------------------------------- */

static void gradient(i32 step) {
    for (i64 i = 0; i < N; i++) grad[i] = (f32)((i * 7 + step * 13) % 23 - 11) / 16;
}

TEST(one_thread_has_the_bits_of_the_optimiser) {
    for (i32 k = 0; k < optim_count(); k++) {
        const struct optim *o = optim_at(k);
        struct shared *s = fresh(o->name, 1, k % 2 ? 5 : 0);
        struct optim_hyper h = hyper();
        h.momentum = 0.5f;
        h.weight_decay = 0.01f;
        h.grad_scale = 0.75f;
        shared_restart(s, 100);
        for (i32 step = 0; step < 5; step++) {
            gradient(step);
            assert_int_equal(shared_update(s, 0, &(struct shared_push){.grad = grad, .hyper = h}), 100 + step);
            h.step = 101 + step;
            o->update(&h, N, want, grad, want_state[0], want_state[1]);
            h.step = 0;
        }
        assert_memory_equal(theta, want, sizeof want);
        for (i32 i = 0; i < o->nstate; i++) assert_memory_equal(moment[i], want_state[i], sizeof want_state[i]);
        shared_free(s);
    }
}

/* A gradient whose table is zero but for every third line, or the lines from 64 on, or none. */
static void sparse(i32 step) {
    gradient(step);
    memset(mark, 0, sizeof mark);
    for (i64 i = table.lo / SHARED_LINE; i < table.hi / SHARED_LINE; i++) {
        mark[i] = step % 3 == 0 ? i % 3 == 0 : step % 3 == 1 ? i >= 128 : 0;
        if (!mark[i]) memset(grad + i * SHARED_LINE, 0, sizeof(f32) * SHARED_LINE);
    }
}

TEST(marked_lines_are_the_dense_update_without_moments) {
    static const char *const optim[] = {"sgd", "adagrad"};
    for (size_t k = 0; k < COUNT(optim); k++) {
        struct shared *s = fresh(optim[k], 1, 3);
        struct optim_hyper h = hyper();
        for (i32 step = 0; step < 6; step++) {
            sparse(step);
            shared_update(s, 0, &(struct shared_push){.grad = grad, .mark = mark, .hyper = h});
            optim_find(optim[k])->update(&h, N, want, grad, want_state[0], want_state[1]);
        }
        for (i64 i = 0; i < N; i++)
            if (theta[i] != want[i]) fail_msg("%s, element %lld: %g in place of %g", optim[k], (long long)i, theta[i], want[i]);
        shared_free(s);
    }
}

/* Adam: an untouched line keeps weights and moments, what lies beside the table does not. */
TEST(moments_of_untouched_lines_stand_still) {
    struct shared *s = fresh("adam", 1, 0);
    static f32 before[N], before_moment[N];
    sparse(0);
    shared_update(s, 0, &(struct shared_push){.grad = grad, .mark = mark, .hyper = hyper()});
    memcpy(before, theta, sizeof theta);
    memcpy(before_moment, moment[0], sizeof before_moment);
    sparse(2); /* no line */
    shared_update(s, 0, &(struct shared_push){.grad = grad, .mark = mark, .hyper = hyper()});
    const size_t bytes = sizeof(f32) * (size_t)(table.hi - table.lo);
    assert_memory_equal(theta + table.lo, before + table.lo, bytes);
    assert_memory_equal(moment[0] + table.lo, before_moment + table.lo, bytes);
    for (i64 i = 0; i < N; i++)
        if (i < table.lo || i >= table.hi) assert_true(theta[i] != before[i]);
    shared_free(s);
}

T_MAIN(cmocka_unit_test(stripes_lose_no_update), cmocka_unit_test(one_thread_has_the_bits_of_the_optimiser),
       cmocka_unit_test(marked_lines_are_the_dense_update_without_moments),
       cmocka_unit_test(moments_of_untouched_lines_stand_still))
