/* t_products.c - products of cuts: every one that applies gives the bits of the serial plan, on as many workers as devices and on
 * fewer, in one process and on ranks.  Slices of time in a product: the bits of the same slices without it. */
#include "t.h"

#include <pthread.h>
#include <stdio.h>

#include "base/mem.h"
#include "comm/comm.h"
#include "exec/real.h"
#include "exec/slices.h"

enum { STEPS = 4, RANKS = 4 };
static struct net net;

/* A rank of a training; all of it where there is one. */
struct rig {
    const char *machine, *parallel;
    i32 B, threads, microbatches;
    bool all_forward, accumulate;
    const char *place;
    struct comm *comm;
    struct machine at;
    struct plan *plan;
    struct pool *pool;
    struct store store;
    struct step *x;
    f32 *input[NET_BUFS];
    struct arena arena;
    f64 loss;
    err e;
    struct err_record why;
    pthread_t thread;
};

/* No assertion on threads that are not the test's. */
static err train(struct rig *r) {
    struct exec_result out = {0};
    const struct optim *o = optim_find("adam");
    TRY(machine_parse(r->machine, &r->at));
    struct plan_request q = {.net = &net, .machine = &r->at, .B = r->B, .train = true, .nstate = o->nstate};
    q.parallel = r->parallel;
    q.microbatches = r->microbatches;
    q.all_forward = r->all_forward;
    q.place = r->place;
    TRY(plan_make(&q, &r->plan));
    TRY(pool_new(r->threads, &r->pool));
    TRY(store_new(&net, o, &r->store));
    net_weights_init(&net, 7, r->store.theta);
    TRY(step_bind(r->plan, &net, kern_best(), r->pool, &r->store, r->comm, NULL, &r->x));
    for (i32 i = 0; i < net.nbuf; i++)
        if (net.buf[i].input) ARENA_NEW(&r->arena, r->input[i], buf_floats(&net.buf[i], r->B));
    for (u32 s = 0; s < STEPS; s++) {
        real_fill(&net, r->input, r->B, s % 3);
        struct step_args step = real_step(r->input, r->B, s);
        step.accumulate = r->accumulate && s % 2 == 0;
        TRY(step_run(r->x, &step, &out));
        if (!out.finite) return FAIL(E1, "the loss is no number");
    }
    r->loss = out.loss;
    TRY(step_settle(r->x, &out));
    return exec_gather(step_exec(r->x));
}

static void *live(void *self) {
    struct rig *r = self;
    r->e = r->comm ? comm_connect(r->comm) : 0;
    if (r->e >= 0) r->e = train(r);
    if (r->e < 0) r->why = *err_last();
    if (r->e < 0 && r->comm) comm_abort(r->comm);
    return NULL;
}

static void done(struct rig *r) {
    step_free(r->x);
    store_free(&r->store);
    pool_free(r->pool);
    plan_free(r->plan);
    arena_free(&r->arena);
    comm_free(r->comm);
}

static void compare(const struct rig *a, const struct rig *serial) {
    if (a->e < 0) fail_msg("%s on %s, batch %d: %s", a->parallel, a->machine, a->B, a->why.text);
    if (a->loss != serial->loss || memcmp(a->store.theta, serial->store.theta, (size_t)net.ntheta * sizeof(f32)) != 0)
        fail_msg("%s on %s with %d workers, batch %d: other bits than serial", a->parallel, a->machine, a->threads, a->B);
}

static const struct rig *serial_of(i32 B, bool accumulate) {
    static struct rig r;
    done(&r);
    r = (struct rig){.machine = "cpu", .parallel = "serial", .B = B, .threads = 1, .accumulate = accumulate};
    live(&r);
    if (r.e < 0) fail_msg("serial: %s", r.why.text);
    return &r;
}

static const struct rig *serial(i32 B) { return serial_of(B, false); }

static void same_bits(const struct rig *as, const char *machine, const char *parallel, i32 threads) {
    struct rig r = {.machine = machine, .parallel = parallel, .B = as->B, .threads = threads};
    live(&r);
    compare(&r, as);
    assert_string_equal(r.plan->strategy, parallel);
    const f64 off = (f64)step_bytes(r.x) / (f64)r.plan->peak_bytes - 1;
    assert_true(off > -0.05 && off < 0.05);
    done(&r);
}

/* gflops: on a slow machine a step has many chunks of time. */
static const struct {
    const char *parallel;
    i32 devices, rows; /* rows: the least batch that has as many micro-batches */
} products[] = {{"data:2*unit:2", 4, 2}, {"unit:2*data:2", 4, 2}, {"data:2*wave:2", 4, 2}, {"wave:3*data:2", 6, 2},
                {"wave:2*unit:2", 4, 1}, {"unit:2*wave:2", 4, 1}, {"data:2*unit:3", 6, 2}, {"data:4*unit:2", 8, 4},
                {"data:3*wave:2", 6, 3}, {"pipeline:2*unit:2", 4, 2}, {"data:2*pipeline:2", 4, 4},
                {"pipeline:3*data:2", 6, 4}, {"unit:2*pipeline:2", 4, 2}, {"data:2*pipeline:2*unit:2", 8, 4},
                {"data:2*wave:2*unit:2", 8, 2}, {"unit:2*data:2*wave:2", 8, 2}};

static void all_products(i32 B, i32 from, i32 to) {
    const struct rig *s = serial(B);
    for (i32 i = from; i < to; i++) {
        char text[48];
        if (B < products[i].rows) continue;
        snprintf(text, sizeof text, "cpu*%d gflops=0.001", products[i].devices);
        for (i32 threads = 1; threads <= (t_few() ? 2 : 8); threads *= 2)
            if (threads <= products[i].devices) same_bits(s, text, products[i].parallel, threads);
        if (!t_few() && products[i].devices == 6) same_bits(s, text, products[i].parallel, 6);
    }
}

TEST(products_have_the_bits_of_serial) {
    static const i32 sizes[] = {1, 4, 45};
    for (i32 kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < (t_few() ? 1 : COUNT(sizes)); i++) {
            real_stack(&net, (enum cell_kind)kind, 3, 21, 41, false);
            all_products(sizes[i], 0, (i32)COUNT(products));
        }
    real_stack(&net, CELL_LSTM, 2, 600, 35, false); /* more than one slice of dW, cut elsewhere than chunks */
    all_products(2, 0, 3);
    real_stack(&net, CELL_GRU, 3, 23, 37, true);
    all_products(11, 0, (i32)COUNT(products));
}

TEST(products_of_every_cell) {
    for (i32 kind = 0; kind < (t_few() ? 1 : cell_count()); kind++) {
        real_stack(&net, (enum cell_kind)kind, 3, 21, 41, false);
        all_products(3, 0, t_few() ? 1 : 6);
    }
}

static void on_ranks(const struct rig *s, const struct rig *like, i32 ranks) {
    static struct rig r[RANKS];
    struct comm *comm[RANKS] = {0};
    T_OK(comm_threads(ranks, comm));
    for (i32 k = 0; k < ranks; k++) {
        r[k] = *like;
        r[k].B = s->B;
        r[k].accumulate = s->accumulate;
        r[k].comm = comm[k];
        assert_int_equal(pthread_create(&r[k].thread, NULL, live, &r[k]), 0);
    }
    for (i32 k = 0; k < ranks; k++) pthread_join(r[k].thread, NULL);
    for (i32 k = 0; k < ranks; k++) compare(&r[k], s);
    for (i32 k = 0; k < ranks; k++) assert_string_equal(r[k].plan->strategy, like->parallel);
    for (i32 k = 0; k < ranks; k++) done(&r[k]);
}

TEST(products_on_ranks) {
    static const struct {
        const char *machine, *parallel;
        i32 ranks, threads;
    } cases[] = {{"host*4(cpu*2) gflops=0.001", "data:4*unit:2", 4, 2}, /* a team's gradient is sent without a merge */
                 {"host*2(cpu*2) gflops=0.001", "data:2*unit:2", 2, 2}, {"host*2(cpu*2) gflops=0.001", "data:2*unit:2", 2, 1},
                 {"host*2(cpu*3) gflops=0.001", "data:2*unit:2", 2, 3}, {"host*2(cpu*2) gflops=0.001", "data:2*wave:2", 2, 2},
                 {"host*2(cpu*4) gflops=0.001", "data:4*unit:2", 2, 4},
                 {"host*2(cpu*4) gflops=0.001", "data:2*wave:2*unit:2", 2, 2},
                 {"host*4(cpu*2) gflops=0.001", "data:3*wave:2", 4, 2},
                 {"host*2(cpu*2) gflops=0.001", "unit:2", 2, 2}};
    real_stack(&net, CELL_LSTM, 3, 21, 41, false);
    const struct rig *s = serial(13);
    for (size_t i = 0; i < (t_few() ? 2 : COUNT(cases)); i++) {
        const struct rig like = {.machine = cases[i].machine, .parallel = cases[i].parallel, .threads = cases[i].threads};
        on_ranks(s, &like, cases[i].ranks);
    }
}

/* Layers on ranks, with either order of micro-batches, alone and with rows, units and threads. */
TEST(pipelines_on_ranks) {
    static const struct {
        const char *machine, *parallel;
        i32 ranks, threads;
    } cases[] = {{"host*2(cpu)", "pipeline:2", 2, 1}, {"host*4(cpu)", "data:2*pipeline:2", 4, 1},
                 {"host*3(cpu)", "pipeline:3", 3, 1}, {"host*4(cpu)", "pipeline:2*data:2", 4, 1},
                 {"host*2(cpu*2)", "pipeline:2*unit:2", 2, 2}, {"host*2(cpu*2)", "pipeline:4", 2, 2},
                 {"host*2(cpu*2)", "pipeline:4", 2, 1}, {"host*4(cpu)", "pipeline:3", 4, 1},
                 {"host*2(cpu*2)", "pipeline:2*data:2", 2, 2}, {"host*2(cpu*4)", "data:2*pipeline:2*unit:2", 2, 2}};
    for (i32 kind = 0; kind < (t_few() ? 1 : 4); kind++) { /* the last one keeps every second gradient for the next step */
        real_stack(&net, (enum cell_kind)(kind % 2), 3, 21, 41, kind == 2);
        const struct rig *s = serial_of(13, kind == 3);
        for (size_t i = 0; i < (t_few() ? 3 : COUNT(cases)); i++)
            for (i32 how = 0; how < 3; how++) {
                const struct rig like = {.machine = cases[i].machine, .parallel = cases[i].parallel, .threads = cases[i].threads,
                                         .microbatches = how == 2 ? 2 : 0, .all_forward = how == 1};
                on_ranks(s, &like, cases[i].ranks);
            }
    }
}

/* Layers and micro-batches wherever a method puts them, random ones among them: several devices may have one layer. */
TEST(placements_on_ranks) {
    static const struct {
        const char *machine, *parallel;
        i32 ranks, threads;
    } cases[] = {{"host*2(cpu)", "pipeline:2", 2, 1}, {"host*3(cpu)", "pipeline:3", 3, 1}, {"host*2(cpu*2)", "pipeline:4", 2, 2},
                 {"host*4(cpu)", "data:2*pipeline:2", 4, 1}, {"host*2(cpu*2)", "pipeline:2*unit:2", 2, 2},
                 {"host*2(cpu) shares=1,0.4", "pipeline:2", 2, 1}};
    static const char *const methods[] = {"random:1", "heft", "cyclic", "random:2", "random-layer:3", "blocks", "hybrid", "best"};
    for (i32 kind = 0; kind < (t_few() ? 1 : 3); kind++) { /* the last one keeps every second gradient for the next step */
        real_stack(&net, (enum cell_kind)(kind % 2), 3, 21, 41, kind == 1);
        const struct rig *s = serial_of(13, kind == 2);
        for (size_t i = 0; i < (t_few() ? 2 : COUNT(cases)); i++)
            for (size_t k = 0; k < (t_few() ? 3 : COUNT(methods)); k++) {
                const struct rig like = {.machine = cases[i].machine, .parallel = cases[i].parallel, .threads = cases[i].threads,
                                         .microbatches = k % 3 == 2 ? 5 : 0, .place = methods[k]};
                on_ranks(s, &like, cases[i].ranks);
            }
    }
}

/* One step of the slices by another plan. */
static void by(struct sliced_run *g, const char *machine, const char *parallel, i32 threads) {
    step_free(g->x);
    plan_free(g->plan);
    pool_free(g->pool);
    T_OK(machine_parse(machine, &g->machine));
    struct plan_request q = {.net = &g->net, .machine = &g->machine, .B = sliced_rows(&g->s), .train = true,
                             .nstate = g->store.optim->nstate, .parallel = parallel, .slices = g->s.P};
    T_OK(plan_make(&q, &g->plan));
    T_OK(pool_new(threads, &g->pool));
    T_OK(step_bind(g->plan, &g->net, kern_best(), g->pool, &g->store, NULL, NULL, &g->x));
    sliced_step(g);
}

TEST(slices_in_a_product_have_the_bits_of_the_slices) {
    struct sliced s = sliced_small(CELL_LSTM);
    struct sliced_run one, g;
    static const char *const parallel[] = {"data:2*time:8", "time:8*data:2", "data:3*time:8", "data:4*time:8"};
    s.P = 8;
    s.W = 3;
    s.T = 240;
    sliced_new(&one, &s, kern_best(), 1, (struct chain_course){0});
    sliced_step(&one);
    for (size_t i = 0; i < COUNT(parallel); i++)
        for (i32 threads = 1; threads <= 4; threads++) {
            sliced_new(&g, &s, kern_best(), 1, (struct chain_course){0});
            by(&g, "cpu*4", parallel[i], threads);
            assert_string_equal(g.plan->strategy, parallel[i]);
            assert_false(g.plan->exact);
            assert_true(g.loss == one.loss && sliced_states_differ(&g, &one) == 0);
            assert_memory_equal(step_grad(g.x), step_grad(one.x), (size_t)g.net.ntheta * sizeof(f32));
            sliced_free(&g);
        }
    sliced_free(&one);
}

T_MAIN(cmocka_unit_test(products_have_the_bits_of_serial), cmocka_unit_test(products_of_every_cell),
       cmocka_unit_test(products_on_ranks), cmocka_unit_test(pipelines_on_ranks),
       cmocka_unit_test(placements_on_ranks),
       cmocka_unit_test(slices_in_a_product_have_the_bits_of_the_slices))
