/* t_slice_ranks.c - time slices on several ranks, with and without faults: the bits of one rank; the error names a dead rank. */
#include "t.h"

#include <pthread.h>

#include "base/clock.h"
#include "comm/faulty.h"
#include "slices.h"

enum { RANKS = 8, STEPS = 3 };

struct rank {
    struct sliced_run g;
    struct comm *comm;
    bool warm;
    i32 steps, leaves_at; /* leaves_at: a step; -1 = never */
    f64 took, row;        /* seconds of all steps; of work at a row */
    err e;
    struct err_record why;
    pthread_t thread;
};

/* No assertion on threads that are not the test's. */
static err steps(struct rank *r) {
    TRY(comm_connect(r->comm));
    const f64 t0 = clock_now();
    for (i32 i = 0; i < r->steps; i++) {
        if (i == r->leaves_at) return FAIL(E703, "the disk of this rank is full");
        TRY(sliced_try(&r->g, 0.05f, r->warm));
    }
    r->took = clock_now() - t0;
    r->row = exec_row_seconds(step_exec(r->g.x));
    return exec_quiet(step_exec(r->g.x));
}

static void *live(void *self) {
    struct rank *r = self;
    r->e = steps(r);
    if (r->e < 0) r->why = *err_last();
    if (r->e < 0) comm_abort(r->comm);
    return NULL;
}

struct job {
    struct sliced s;
    struct chain_course how;
    const struct comm_fault *fault;
    bool warm;
    i32 leaves, steps;
};

static void run(const struct job *j, i32 ranks, i32 threads, struct rank *r) {
    struct comm *comm[RANKS];
    T_OK(j->fault ? comm_faulty(ranks, j->fault, comm) : comm_threads(ranks, comm));
    for (i32 k = 0; k < ranks; k++) {
        r[k] = (struct rank){.comm = comm[k], .warm = j->warm, .leaves_at = k == j->leaves ? 1 : -1, .steps = j->steps};
        sliced_rank_new(&r[k].g, &j->s, kern_best(), threads, j->how, comm[k]);
    }
    for (i32 k = 0; k < ranks; k++) assert_int_equal(pthread_create(&r[k].thread, NULL, live, &r[k]), 0);
    for (i32 k = 0; k < ranks; k++) pthread_join(r[k].thread, NULL);
}

static void done(struct rank *r, i32 ranks) {
    for (i32 k = 0; k < ranks; k++) {
        sliced_free(&r[k].g);
        comm_free(r[k].comm);
    }
}

static void same_trace(const struct rank *r, const struct sliced_run *one, i32 op, bool backward) {
    const struct chain_trace *a = step_chain(r->g.x, op, backward), *b = step_chain(one->x, op, backward);
    if (!b) return;
    assert_int_equal(a->rounds, b->rounds);
    assert_int_equal(a->serial, b->serial);
    assert_int_equal(a->first, b->first);
    assert_int_equal(a->again, b->again);
    assert_memory_equal(a->ran, b->ran, (size_t)(b->nslice * imin(b->rounds, CHAIN_ROUNDS)) * sizeof *b->ran);
}

static void same_bits(const struct job *j) {
    static const struct { i32 ranks, threads; } cases[] = {{2, 1}, {3, 2}, {4, 1}, {8, 1}};
    static struct rank r[RANKS];
    struct sliced_run one;
    struct sliced alone = j->s;
    alone.parallel = NULL;
    sliced_new(&one, &alone, kern_best(), 1, j->how);
    for (i32 i = 0; i < STEPS; i++) sliced_train(&one, 0.05f, j->warm);
    for (size_t i = 0; i < (t_few() ? 1 : COUNT(cases)); i++) {
        if (cases[i].ranks > one.plan->ngrain) continue;
        run(j, cases[i].ranks, cases[i].threads, r);
        for (i32 k = 0; k < cases[i].ranks; k++) {
            if (r[k].e < 0 || r[k].g.loss != one.loss)
                fail_msg("%d ranks of %d threads, rank %d: loss %.17g, alone %.17g; %s", cases[i].ranks, cases[i].threads, k,
                         r[k].g.loss, one.loss, r[k].e < 0 ? r[k].why.text : "");
            assert_memory_equal(r[k].g.store.theta, one.store.theta, (size_t)one.net.ntheta * sizeof(f32));
            for (i32 l = 0; l < one.net.nop; l++)
                for (i32 way = 0; way < 2; way++) same_trace(&r[k], &one, l, way);
        }
        done(r, cases[i].ranks);
    }
    sliced_free(&one);
}

static struct job plain(void) {
    struct job j = {.leaves = -1, .steps = STEPS};
    j.s = (struct sliced){.W = 1, .P = 16, .I = 3, .H = 20, .L = 2, .cell = CELL_LSTM, .state = true, .spread = 2};
    j.s.T = t_few() ? 400 : 1200;
    return j;
}

TEST(slices_on_ranks_give_the_bits_of_one) {
    for (i32 cell = 0; cell < (t_few() ? 1 : cell_count()); cell++) {
        struct job j = plain();
        j.s.cell = (enum cell_kind)cell;
        same_bits(&j);
    }
}

TEST(slices_of_unlike_length_and_several_sequences) {
    struct job j = plain();
    j.s.W = 3, j.s.T += 7, j.s.P = 8, j.s.rate = 0.2f;
    same_bits(&j);
}

/* Devices that divide the samples too: all ranks share each chain. */
TEST(slices_in_a_product_on_ranks) {
    static const char *const parallel[] = {"data:2*time:8", "time:8*data:2", "data*time:8"};
    for (size_t i = 0; i < (t_few() ? 1 : COUNT(parallel)); i++) {
        struct job j = plain();
        j.s.parallel = parallel[i];
        j.s.W = 3, j.s.P = 8;
        same_bits(&j);
    }
}

/* One row a rank: what kernels do with a row must not depend on how many are beside it. */
TEST(a_slice_for_each_rank) {
    struct job j = plain();
    j.s.P = 4;
    same_bits(&j);
    j.s.P = 8;
    same_bits(&j);
}

TEST(slices_in_bf16) {
    struct job j = plain();
    j.s.precision = PREC_BF16, j.s.P = 32;
    if (!cell_at(kern_best(), j.s.cell, PREC_BF16)) skip();
    same_bits(&j);
}

TEST(slices_of_a_projection_and_of_both_ways) {
    struct job j = plain();
    j.s.state = false;
    j.s.projection = 12, j.s.rank = 1;
    same_bits(&j);
    j = plain();
    j.s.state = false;
    j.s.both = true, j.s.T += 7;
    same_bits(&j);
}

TEST(slices_that_remember_long_and_go_one_after_another) {
    struct job j = plain();
    j.s.slow = 2, j.s.forget = 6;
    same_bits(&j);
    j.how.rounds = 2;
    same_bits(&j);
}

TEST(begins_that_are_foreseen_travel_from_rank_to_rank) {
    for (i32 rank = 1; rank <= (t_few() ? 1 : 3); rank += 2) {
        struct job j = plain();
        j.s.slow = 2, j.s.forget = 6, j.s.rank = rank;
        same_bits(&j);
    }
}

TEST(stale_and_warm_begins_and_gates_made_anew) {
    struct job j = plain();
    j.how = (struct chain_course){.slice_rounds = 1};
    j.warm = true;
    same_bits(&j);
    j.how = (struct chain_course){0};
    j.s.recompute = true;
    same_bits(&j);
}

TEST(rounds_whose_messages_are_late_give_the_same_bits) {
    const struct comm_fault late = {.delay = 1e-3, .seed = 5};
    struct job j = plain();
    j.fault = &late;
    j.s.rank = 1;
    same_bits(&j);
}

/* By what a row costs shares are dealt out anew (step/balance.h): a rank that waits for another one is not slow. */
TEST(waiting_between_rounds_is_no_work) {
    static struct rank r[RANKS];
    const struct comm_fault late = {.rate = 1e12, .lag = 1e-2};
    struct job j = plain();
    j.steps = 12;
    j.fault = &late;
    for (i32 threads = 1; threads <= 2; threads++) {
        run(&j, 2, threads, r);
        for (i32 k = 0; k < 2; k++) {
            assert_int_equal(r[k].e, 0);
            const f64 worked = r[k].row * (j.s.P / 2) * j.steps;
            if (!(worked > 0 && worked < 0.75 * r[k].took * threads))
                fail_msg("rank %d of %d threads worked %.3f s of %.3f", k, threads, worked, r[k].took);
        }
        done(r, 2);
    }
}

/* The others are in the middle of a chain, or wait for its first message: all of them end, and say whose fault it is. */
TEST(a_rank_that_leaves_is_named_by_all) {
    static struct rank r[RANKS];
    struct job j = plain();
    j.leaves = 1;
    run(&j, 4, 1, r);
    for (i32 k = 0; k < 4; k++) {
        assert_int_equal(r[k].e, -E703);
        if (k != 1 && !strstr(r[k].why.text, "rank 1: the disk of this rank is full"))
            fail_msg("rank %d says: %s", k, r[k].why.text);
    }
    done(r, 4);
}

TEST(every_rank_has_slices_however_unlike_the_shares) {
    static const char *const texts[] = {"host*4(cpu*1) shares=0.02,1,0.02,0.5", "host*4(cpu*2) shares=1,1,1,0.01",
                                        "host*2(cpu*1) shares=0.01,1", "host*4(cpu*1) shares=0.3,0.26,1,0.01"};
    struct net net;
    struct machine m;
    struct plan *p;
    struct sliced s = plain().s;
    sliced_net(&net, &s);
    for (size_t i = 0; i < COUNT(texts); i++) {
        T_OK(machine_parse(texts[i], &m));
        struct plan_request q = {.net = &net, .machine = &m, .B = s.P, .train = true, .nstate = 1, .parallel = "time"};
        q.slices = s.P;
        T_OK(plan_make(&q, &p)); /* which checks it */
        plan_free(p);
    }
}

TEST(too_few_shares_for_the_ranks_are_refused) {
    struct net net;
    struct machine m;
    struct plan *p;
    struct sliced s = plain().s;
    s.P = 4;
    sliced_net(&net, &s);
    T_OK(machine_parse("host*6(cpu*1)", &m));
    struct plan_request q = {
        .net = &net, .machine = &m, .B = sliced_rows(&s), .train = true, .nstate = 1, .parallel = "time", .slices = s.P};
    T_FAILS(plan_make(&q, &p), E401);
    assert_non_null(strstr(err_last()->text, "fewer than the 6 ranks"));
    s.P = 16, s.both = s.end = true, s.state = false;
    sliced_net(&net, &s);
    q.B = q.slices = s.P;
    T_FAILS(plan_make(&q, &p), E401);
    assert_non_null(strstr(err_last()->text, "bidirectional layer"));
}

T_MAIN(cmocka_unit_test(slices_on_ranks_give_the_bits_of_one), cmocka_unit_test(slices_of_unlike_length_and_several_sequences),
       cmocka_unit_test(slices_in_a_product_on_ranks), cmocka_unit_test(a_slice_for_each_rank), cmocka_unit_test(slices_in_bf16),
       cmocka_unit_test(slices_of_a_projection_and_of_both_ways),
       cmocka_unit_test(slices_that_remember_long_and_go_one_after_another),
       cmocka_unit_test(begins_that_are_foreseen_travel_from_rank_to_rank),
       cmocka_unit_test(stale_and_warm_begins_and_gates_made_anew),
       cmocka_unit_test(rounds_whose_messages_are_late_give_the_same_bits), cmocka_unit_test(waiting_between_rounds_is_no_work),
       cmocka_unit_test(a_rank_that_leaves_is_named_by_all), cmocka_unit_test(too_few_shares_for_the_ranks_are_refused),
       cmocka_unit_test(every_rank_has_slices_however_unlike_the_shares))
