/* t_same_plan.c - ranks that have made different plans say so before the first step, with rank and hashes; equal plans bind. */
#define _GNU_SOURCE
#include "t.h"

#include <pthread.h>
#include <string.h>

#include "learn/engine.h"
#include "model/nets.h"
#include "topo/machine.h"

enum { RANKS = 2, ROWS = 16 };

static struct net net;
static struct machine one, all;

struct rank {
    struct comm *comm;
    const char *parallel;
    err e;
    struct err_record why;
    pthread_t thread;
};

static err plan_and_bind(struct rank *r) {
    struct pool *pool;
    struct engine engine;
    TRY(comm_connect(r->comm));
    TRY(pool_new(1, &pool));
    const struct resources use = {.kern = kern_best(), .pool = pool, .machine = &one, .ranks = &all, .comm = r->comm,
                                  .policy = policy_find("overlap"), .parallel = r->parallel};
    const err e = engine_new(&net, &use, ROWS, 0, optim_find("sgd"), &engine);
    if (e >= 0) engine_free(&engine);
    pool_free(pool);
    return e;
}

static void *live(void *self) {
    struct rank *r = self;
    r->e = plan_and_bind(r);
    if (r->e < 0) r->why = *err_last();
    return NULL;
}

static void run(const char *first, const char *second, struct rank *r) {
    const struct shape s = {.T = 6, .I = 5, .H = 16, .w = 2};
    struct comm *comm[RANKS];
    nets_short(&net, s, CELL_LSTM, "loss_mse");
    T_OK(machine_parse("cpu", &one));
    T_OK(machine_parse("host*2(cpu)", &all));
    T_OK(comm_threads(RANKS, comm));
    for (i32 k = 0; k < RANKS; k++) {
        r[k] = (struct rank){.comm = comm[k], .parallel = k ? second : first};
        assert_int_equal(pthread_create(&r[k].thread, NULL, live, &r[k]), 0);
    }
    for (i32 k = 0; k < RANKS; k++) pthread_join(r[k].thread, NULL);
    for (i32 k = 0; k < RANKS; k++) comm_free(comm[k]);
}

TEST(equal_plans_of_ranks_bind) {
    struct rank r[RANKS];
    run("pipeline:2", "pipeline:2", r);
    for (i32 k = 0; k < RANKS; k++) T_OK(r[k].e);
}

TEST(plans_that_differ_are_refused_on_every_rank) {
    struct rank r[RANKS];
    run("pipeline:2", "data:2", r);
    for (i32 k = 0; k < RANKS; k++) {
        assert_int_equal(r[k].e, -E804);
        assert_non_null(strstr(r[k].why.text, "plan of the step: rank 1 (host "));
        assert_non_null(strstr(r[k].why.text, "differs from rank 0"));
        assert_string_equal(strstr(r[0].why.text, "hash"), strstr(r[k].why.text, "hash"));
        assert_non_null(strstr(r[k].why.fix, "--parallel data"));
    }
}

T_MAIN(cmocka_unit_test(equal_plans_of_ranks_bind), cmocka_unit_test(plans_that_differ_are_refused_on_every_rank))
