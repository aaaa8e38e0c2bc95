/* t_exec.c - steps of a toy net: same bits for any number of devices and threads, no allocation, bytes as planned, NaN guard. */
#include "t.h"

#include "base/mem.h"
#include "base/rng.h"
#include "step/step.h"
#include "exec/pace.h"
#include "plan/toy.h"

static void add(i64 n, f32 *y, const f32 *x) {
    for (i64 i = 0; i < n; i++) y[i] += x[i];
}

static f64 sumsq(i64 n, const f32 *x) {
    f64 s = 0;
    for (i64 i = 0; i < n; i++) s += (f64)x[i] * (f64)x[i];
    return s;
}

static void blocks(i64 n, i64 block, const f32 *x, f64 *sum) {
    for (i64 at = 0; at < n; at += block) sum[at / block] = sumsq(lmin(block, n - at), x + at);
}

static void copy(i64 rows, i64 n, f32 *to, i64 to_ld, const f32 *from, i64 from_ld) {
    for (i64 r = 0; r < rows; r++) copy_or_zero(to + r * to_ld, from ? from + r * from_ld : NULL, n);
}

static const struct kern kern = {.name = "toy", .add = add, .copy = copy, .sumsq = sumsq, .sumsq_blocks = blocks};

static void momentum(const struct optim_hyper *h, i64 n, f32 *theta, const f32 *grad, f32 *s0, f32 *s1) {
    (void)s1;
    for (i64 i = 0; i < n; i++) {
        s0[i] = h->momentum * s0[i] + grad[i] * h->grad_scale;
        theta[i] -= h->lr * s0[i];
    }
}

static const struct optim sgd = {.name = "toy", .nstate = 1, .update = momentum};

enum { BMAX = 70 };
static struct machine machine;
static struct net net;
static f32 x_data[TOY_T * BMAX * 32], want_data[TOY_T * BMAX * 16];

struct rig {
    struct plan *plan;
    struct pool *pool;
    struct store store;
    struct step *x;
    f32 *input[NET_BUFS];
    struct step_args step;
};

static void batch(i32 B, u32 seed) {
    memset(x_data, 0, sizeof x_data);
    for (i32 r = 0; r < TOY_T * B; r++) {
        for (i32 f = 0; f < TOY_F; f++) x_data[r * 32 + f] = rng_uniform(seed, RNG_TEST, 0, (u64)(r * 32 + f)) - 0.5f;
        for (i32 f = 0; f < 16; f++) want_data[r * 16 + f] = f < TOY_OUT ? 0.7f * x_data[r * 32 + f] : 0;
    }
}

static void rig_of(struct rig *r, void (*make)(struct net *), i32 B, const char *parallel, i32 devices, i32 threads, bool train) {
    char text[32];
    memset(r, 0, sizeof *r);
    snprintf(text, sizeof text, "cpu*%d", devices);
    make(&net);
    T_OK(machine_parse(text, &machine));
    struct plan_request q = {.net = &net, .machine = &machine, .B = B, .train = train, .nstate = 1, .parallel = parallel};
    T_OK(plan_make(&q, &r->plan));
    T_OK(pool_new(threads, &r->pool));
    T_OK(store_new(&net, &sgd, &r->store));
    for (i64 i = 0; i < net.ntheta; i++) r->store.theta[i] = rng_uniform(3, RNG_INIT, 0, (u64)i) * 0.4f - 0.2f;
    T_OK(step_bind(r->plan, &net, &kern, r->pool, &r->store, NULL, NULL, &r->x));
    r->input[0] = x_data;
    r->input[1] = want_data;
    r->step = (struct step_args){.input = r->input, .loss_scale = 1.0f / (f32)(TOY_T * TOY_OUT * B), .seed = 1, .clip = 0.05};
    r->step.hyper = (struct optim_hyper){.lr = 0.5f, .momentum = 0.9f, .grad_scale = 1, .step = 1};
}

static void rig_new(struct rig *r, i32 B, const char *parallel, i32 devices, i32 threads, bool train) {
    rig_of(r, toy_net, B, parallel, devices, threads, train);
}

static void rig_free(struct rig *r) {
    step_free(r->x);
    store_free(&r->store);
    pool_free(r->pool);
    plan_free(r->plan);
}

static f64 run(struct rig *r, i32 B, i32 steps) {
    struct exec_result out = {0};
    for (i32 s = 0; s < steps; s++) {
        batch(B, (u32)s % 4);
        r->step.step = (u32)s;
        r->step.hyper.step = s + 1;
        T_OK(step_run(r->x, &r->step, &out));
        assert_true(out.finite);
    }
    return out.loss;
}

TEST(exec_gradient_agrees_with_finite_differences) {
    struct rig r;
    struct exec_result out, up, down;
    rig_new(&r, 11, "data_sync:3", 3, 3, true);
    batch(11, 1);
    r.step.accumulate = true; /* no update */
    T_OK(step_run(r.x, &r.step, &out));
    f32 grad[3];
    i64 at[3] = {5, 33, net.op[2].theta0 + 2};
    f64 norm = 0;
    for (i64 i = 0; i < net.ntheta; i++) norm += (f64)step_grad(r.x)[i] * (f64)step_grad(r.x)[i];
    assert_true(fabs(sqrt(norm) - out.norm) < 1e-9);
    for (i32 k = 0; k < 3; k++) grad[k] = step_grad(r.x)[at[k]];
    for (i32 k = 0; k < 3; k++) {
        f32 keep = r.store.theta[at[k]], h = 1e-2f;
        r.store.theta[at[k]] = keep + h;
        T_OK(step_run(r.x, &r.step, &up));
        r.store.theta[at[k]] = keep - h;
        T_OK(step_run(r.x, &r.step, &down));
        r.store.theta[at[k]] = keep;
        f64 want = (up.loss - down.loss) / (2 * (f64)h);
        assert_true(fabs(want - (f64)grad[k]) < 2e-3 * out.norm);
    }
    rig_free(&r);
}

/* 20 steps of every batch size that has odd borders, with 1..4 devices on 1..4 threads, against serial. */
TEST(exec_bits_do_not_depend_on_devices_or_threads) {
    static const i32 sizes[] = {1, 2, 5, 9, 32, 33, 64, 70};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct rig serial;
        i32 B = sizes[i];
        rig_new(&serial, B, "serial", 1, 1, true);
        f64 loss = run(&serial, B, 20);
        for (i32 d = 2; d <= imin(4, serial.plan->ngrain); d++)
            for (i32 threads = 1; threads <= 4; threads += d) {
                char text[32];
                struct rig r;
                snprintf(text, sizeof text, "data_sync:%d", d);
                rig_new(&r, B, text, 4, threads, true);
                assert_true(run(&r, B, 20) == loss);
                assert_memory_equal(r.store.theta, serial.store.theta, (size_t)net.ntheta * sizeof(f32));
                assert_memory_equal(r.store.state[0], serial.store.state[0], (size_t)net.ntheta * sizeof(f32));
                assert_memory_equal(step_grad(r.x), step_grad(serial.x), (size_t)net.ntheta * sizeof(f32));
                rig_free(&r);
            }
        rig_free(&serial);
    }
}

/* Teams: every number of members on every number of threads, fewer threads than members included. */
TEST(exec_bits_do_not_depend_on_the_team) {
    static const i32 sizes[] = {1, 3, 9};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct rig serial;
        i32 B = sizes[i];
        rig_of(&serial, toy_team_net, B, "serial", 1, 1, true);
        f64 loss = run(&serial, B, 20);
        for (i32 d = 1; d <= 3; d++)
            for (i32 threads = 1; threads <= 3; threads++) {
                char text[32];
                struct rig r;
                snprintf(text, sizeof text, "unit_split:%d", d);
                rig_of(&r, toy_team_net, B, text, 3, threads, true);
                assert_int_equal(r.plan->ndevice, d);
                assert_true(run(&r, B, 20) == loss);
                assert_memory_equal(r.store.theta, serial.store.theta, (size_t)net.ntheta * sizeof(f32));
                assert_memory_equal(step_grad(r.x), step_grad(serial.x), (size_t)net.ntheta * sizeof(f32));
                rig_free(&r);
            }
        rig_free(&serial);
    }
}

TEST(exec_team_steps_allocate_nothing_and_trace) {
    struct rig r;
    struct exec_result out;
    static struct task_span span[400];
    i64 live = mem_stats().live;
    rig_of(&r, toy_team_net, 1, "unit_split", 2, 2, true);
    f64 off = (f64)step_bytes(r.x) / (f64)r.plan->peak_bytes - 1;
    assert_true(fabs(off) < 0.05);
    exec_trace(step_exec(r.x), true);
    i64 calls = mem_stats().calls;
    run(&r, 1, 10);
    assert_int_equal(mem_stats().calls, calls);
    i32 n = exec_spans(step_exec(r.x), span, 400), lanes = 0;
    for (i32 i = 0; i < n; i++) lanes |= strcmp(span[i].name, "fwd a b[0,1) unit 1/2") == 0 ? 1 << span[i].worker : 0;
    assert_int_equal(lanes, 2);
    rig_free(&r);
    rig_of(&r, toy_team_net, 5, "unit_split:3", 3, 3, false); /* forward, without a target */
    batch(5, 0);
    r.input[1] = NULL;
    T_OK(step_run(r.x, &r.step, &out));
    assert_true(out.finite && out.loss == 0);
    rig_free(&r);
    assert_int_equal(mem_stats().live, live);
}

/* A machine where a step takes `team` seconds by teams, `alone` without: what is chosen, and what looking costs. */
static f64 paced(struct pace *p, i32 steps, f64 team, f64 alone) {
    f64 sum = 0;
    for (i32 i = 0; i < steps; i++) {
        f64 took = p->alone ? alone : team;
        sum += took;
        pace_took(p, took);
    }
    return sum;
}

TEST(exec_pace_takes_the_faster_way_and_looks_again) {
    struct pace p;
    pace_begin(&p);
    assert_false(p.alone); /* the plan's wish first */
    assert_true(paced(&p, 20000, 1, 2) < 1.02 * 20000);
    assert_false(p.choice);
    pace_begin(&p);
    assert_true(paced(&p, 20000, 20, 1) < 1.1 * 20000); /* other programs on the cores: teams cost twenty times as much */
    assert_true(p.choice);
    paced(&p, 2 * PACE_LAST, 1, 2); /* they are gone */
    assert_false(p.choice);
}

TEST(exec_learns) {
    struct rig r;
    struct exec_result first;
    rig_new(&r, 32, "auto", 2, 2, true);
    batch(32, 0);
    T_OK(step_run(r.x, &r.step, &first));
    r.step.clip = 0;
    assert_true(run(&r, 32, 300) < 0.8 * first.loss);
    rig_free(&r);
}

TEST(exec_step_allocates_nothing_and_holds_what_was_planned) {
    for (i32 threads = 1; threads <= 3; threads++) {
        struct rig r;
        i64 live = mem_stats().live;
        rig_new(&r, 64, threads == 1 ? "serial" : "data_sync", threads, threads, true);
        f64 off = (f64)step_bytes(r.x) / (f64)r.plan->peak_bytes - 1;
        if (fabs(off) > 0.05)
            fail_msg("exec holds %lld bytes, planned %lld", (long long)step_bytes(r.x), (long long)r.plan->peak_bytes);
        run(&r, 64, 1);
        i64 calls = mem_stats().calls;
        run(&r, 64, 10);
        exec_trace(step_exec(r.x), true);
        i64 traced = mem_stats().calls;
        run(&r, 64, 10);
        assert_int_equal(traced - calls, threads);
        assert_int_equal(mem_stats().calls, traced);
        rig_free(&r);
        assert_int_equal(mem_stats().live, live);
    }
}

TEST(exec_accumulates_gradients_over_steps) {
    struct rig one, two;
    struct exec_result out;
    rig_new(&one, 16, "serial", 1, 1, true);
    rig_new(&two, 16, "data_sync:2", 2, 2, true);
    for (i32 k = 0; k < 2; k++) {
        struct rig *r = k ? &two : &one;
        batch(16, 1);
        r->step.hyper.lr = 1e-3f;
        r->step.accumulate = true;
        T_OK(step_run(r->x, &r->step, &out));
        f32 g = step_grad(r->x)[5];
        r->step.accumulate = false;
        f32 before = r->store.theta[5];
        T_OK(step_run(r->x, &r->step, &out)); /* the same batch once more, and the update */
        assert_true(fabsf(step_grad(r->x)[5] - 2 * g) < 1e-5f * fabsf(g));
        assert_true(r->store.theta[5] != before);
        T_OK(step_run(r->x, &r->step, &out)); /* begins anew */
        assert_true(fabsf(step_grad(r->x)[5] - g) < 0.2f * fabsf(g));
    }
    assert_memory_equal(one.store.theta, two.store.theta, (size_t)net.ntheta * sizeof(f32));
    rig_free(&one);
    rig_free(&two);
}

TEST(exec_refuses_the_update_when_a_number_is_not_finite) {
    for (i32 threads = 1; threads <= 2; threads++) {
        struct rig r;
        struct exec_result out;
        char where[160];
        rig_new(&r, 32, threads == 1 ? "serial" : "data_sync:2", 2, threads, true);
        run(&r, 32, 2);
        f32 before[4096];
        assert_true(net.ntheta <= 4096);
        memcpy(before, r.store.theta, (size_t)net.ntheta * sizeof(f32));
        batch(32, 0);
        x_data[(1 * 32 + 7) * 32 + 3] = NAN;
        T_OK(step_run(r.x, &r.step, &out));
        assert_false(out.finite);
        assert_memory_equal(before, r.store.theta, (size_t)net.ntheta * sizeof(f32));
        assert_true(step_nonfinite(r.x, where));
        assert_string_equal(where, "input \"x\": row 7, step 1, feature 3");
        run(&r, 32, 1); /* the next good batch goes on as if nothing had been */
        assert_false(step_nonfinite(r.x, where));
        rig_free(&r);
    }
}

TEST(exec_forward_runs_without_a_target) {
    struct rig r, train;
    struct exec_result out;
    rig_new(&train, 33, "serial", 1, 1, true);
    rig_new(&r, 33, "data_sync:2", 2, 2, false);
    batch(33, 0);
    T_OK(step_run(train.x, &train.step, &out));
    f64 loss = out.loss;
    T_OK(step_run(r.x, &r.step, &out));
    assert_true(out.loss == loss && out.norm == 0);
    assert_memory_equal(step_buf(r.x, net.op[2].out), step_buf(train.x, net.op[2].out), TOY_T * 33 * 16 * sizeof(f32));
    r.input[1] = NULL;
    T_OK(step_run(r.x, &r.step, &out));
    assert_true(out.finite && out.loss == 0);
    r.input[0] = NULL;
    T_FAILS(step_run(r.x, &r.step, &out), E1);
    train.input[1] = NULL;
    T_FAILS(step_run(train.x, &train.step, &out), E1);
    rig_free(&r);
    rig_free(&train);
}

TEST(exec_trace_shows_the_tasks_of_every_lane) {
    struct rig r;
    static struct task_span span[2000];
    rig_new(&r, 64, "data_sync:2", 2, 2, true);
    assert_int_equal(exec_spans(step_exec(r.x), span, 2000), 0);
    exec_trace(step_exec(r.x), true);
    run(&r, 64, 3);
    i32 n = exec_spans(step_exec(r.x), span, 2000), lanes[2] = {0};
    for (i32 i = 0; i < n; i++) {
        assert_in_range(span[i].worker, 0, 1);
        lanes[span[i].worker]++;
        assert_true(span[i].t1 >= span[i].t0);
        if (i && span[i].worker == span[i - 1].worker) assert_true(span[i].t0 >= span[i - 1].t1);
    }
    assert_true(lanes[0] >= 20 && lanes[1] >= 20);
    assert_true(exec_spans(step_exec(r.x), span, 10) <= 10);
    rig_free(&r);
}

/* A refused allocation, whichever it is, ends in E601 and leaves nothing behind. */
TEST(exec_survives_every_refused_allocation) {
    i64 live = mem_stats().live;
    for (i64 nth = 1; nth < 200; nth++) {
        struct rig r = {0};
        toy_net(&net);
        T_OK(machine_parse("cpu*2", &machine));
        struct plan_request q = {.net = &net, .machine = &machine, .B = 32, .train = true, .nstate = 1, .parallel = "auto"};
        mem_fail_nth(nth);
        err e = plan_make(&q, &r.plan);
        if (e == 0) e = pool_new(2, &r.pool);
        if (e == 0) e = store_new(&net, &sgd, &r.store);
        if (e == 0) e = step_bind(r.plan, &net, &kern, r.pool, &r.store, NULL, NULL, &r.x);
        mem_fail_nth(0);
        rig_free(&r);
        assert_int_equal(mem_stats().live, live);
        if (e == 0) {
            assert_true(nth > 8);
            return;
        }
        assert_int_equal(e, -E601);
    }
    fail_msg("more than 200 allocations to bind a toy net");
}

T_MAIN(cmocka_unit_test(exec_gradient_agrees_with_finite_differences),
       cmocka_unit_test(exec_bits_do_not_depend_on_devices_or_threads), cmocka_unit_test(exec_bits_do_not_depend_on_the_team),
       cmocka_unit_test(exec_team_steps_allocate_nothing_and_trace),
       cmocka_unit_test(exec_pace_takes_the_faster_way_and_looks_again), cmocka_unit_test(exec_learns),
       cmocka_unit_test(exec_step_allocates_nothing_and_holds_what_was_planned),
       cmocka_unit_test(exec_accumulates_gradients_over_steps),
       cmocka_unit_test(exec_refuses_the_update_when_a_number_is_not_finite),
       cmocka_unit_test(exec_forward_runs_without_a_target), cmocka_unit_test(exec_trace_shows_the_tasks_of_every_lane),
       cmocka_unit_test(exec_survives_every_refused_allocation))
