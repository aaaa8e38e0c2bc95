/* t_products.c - products of cuts: every one that applies gives the bits of the serial plan, on as many workers as devices and on
 * fewer, in one process and on ranks.  Slices of time in a product: the bits of the same slices without it. */
#include "t.h"

#include <stdio.h>

#include "base/mem.h"
#include "exec/rig.h"
#include "exec/slices.h"

static struct net net;

static const struct rig *serial_of(i32 B, bool accumulate) {
    static struct rig r;
    rig_free(&r);
    r = (struct rig){.net = &net, .machine = "cpu", .parallel = "serial", .B = B, .threads = 1, .accumulate = accumulate};
    rig_live(&r);
    if (r.e < 0) fail_msg("serial: %s", r.why.text);
    return &r;
}

static const struct rig *serial(i32 B) { return serial_of(B, false); }

static void same_bits(const struct rig *as, const char *machine, const char *parallel, i32 threads) {
    struct rig r = {.net = &net, .machine = machine, .parallel = parallel, .B = as->B, .threads = threads};
    rig_live(&r);
    rig_compare(&r, as);
    assert_string_equal(r.plan->strategy, parallel);
    const f64 off = (f64)step_bytes(r.x) / (f64)r.plan->peak_bytes - 1;
    assert_true(off > -0.05 && off < 0.05);
    rig_free(&r);
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
                 {"host*2(cpu*2) gflops=0.001", "unit:2", 2, 2},
                 /* chunks of time and layers on ranks: the steps of activations are messages */
                 {"host*2(cpu) gflops=0.001", "wave:2", 2, 1}, {"host*3(cpu) gflops=0.001", "wave:3", 3, 1},
                 {"host*4(cpu) gflops=0.001", "data:2*wave:2", 4, 1}, {"host*4(cpu) gflops=0.001", "wave:2*data:2", 4, 1},
                 {"host*2(cpu*2) gflops=0.001", "wave:2*unit:2", 2, 2}, {"host*2(cpu*2) gflops=0.001", "wave:3", 2, 2}};
    for (i32 kind = 0; kind < (t_few() ? 1 : 3); kind++) { /* the last one keeps every second gradient for the next step */
        real_stack(&net, (enum cell_kind)(kind % 2), 3, 21, 41, kind == 1);
        const struct rig *s = serial_of(13, kind == 2);
        for (size_t i = 0; i < COUNT(cases); i += t_few() ? 5 : 1) {
            const struct rig like = {.machine = cases[i].machine, .parallel = cases[i].parallel, .threads = cases[i].threads};
            rig_on_ranks(s, &like, cases[i].ranks);
        }
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
        for (i32 how = 0; how < 3; how++) { /* 16 rows have grains that can be joined to two micro-batches */
            const struct rig *s = serial_of(how == 2 ? 16 : 13, kind == 3);
            for (size_t i = 0; i < (t_few() ? 3 : COUNT(cases)); i++) {
                const struct rig like = {.machine = cases[i].machine, .parallel = cases[i].parallel, .threads = cases[i].threads,
                                         .microbatches = how == 2 ? 2 : 0, .all_forward = how == 1};
                rig_on_ranks(s, &like, cases[i].ranks);
            }
        }
    }
}

/* Units of a layer on ranks: h and dz of each step are messages. */
TEST(units_on_ranks) {
    static const struct {
        const char *machine, *parallel;
        i32 ranks, threads;
    } cases[] = {{"host*2(cpu)", "unit:2", 2, 1}, {"host*3(cpu)", "unit:3", 3, 1}, {"host*4(cpu)", "data:2*unit:2", 4, 1},
                 {"host*4(cpu)", "unit:2*data:2", 4, 1}, {"host*4(cpu)", "pipeline:2*unit:2", 4, 1},
                 {"host*4(cpu)", "unit:2*pipeline:2", 4, 1}, {"host*4(cpu)", "wave:2*unit:2", 4, 1},
                 {"host*4(cpu)", "unit:2*wave:2", 4, 1}, {"host*2(cpu*2)", "unit:3", 2, 2}, {"host*2(cpu*2)", "unit:3", 2, 1},
                 {"host*2(cpu*2)", "unit:2*data:2", 2, 2}, {"host*2(cpu*2)", "unit:2*wave:2", 2, 2}};
    for (i32 kind = 0; kind < (t_few() ? 1 : 4); kind++) { /* the last one keeps every second gradient for the next step */
        real_stack(&net, (enum cell_kind)(kind % 3), 3, 21, 41, kind == 1);
        for (i32 B = 1; B < 14; B += 6) {
            const struct rig *s = serial_of(B, kind == 3);
            for (size_t i = 0; i < (t_few() ? 3 : COUNT(cases)); i++) {
                const struct rig like = {.machine = cases[i].machine, .parallel = cases[i].parallel, .threads = cases[i].threads};
                if (B > 1 || i < 2) rig_on_ranks(s, &like, cases[i].ranks);
            }
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
        const struct rig *s = serial_of(16, kind == 2);
        for (size_t i = 0; i < (t_few() ? 2 : COUNT(cases)); i++)
            for (size_t k = 0; k < (t_few() ? 3 : COUNT(methods)); k++) {
                const struct rig like = {.machine = cases[i].machine, .parallel = cases[i].parallel, .threads = cases[i].threads,
                                         .microbatches = k % 3 == 2 ? 4 : 0, .place = methods[k]};
                rig_on_ranks(s, &like, cases[i].ranks);
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
       cmocka_unit_test(units_on_ranks),
       cmocka_unit_test(placements_on_ranks),
       cmocka_unit_test(slices_in_a_product_have_the_bits_of_the_slices))
