/* t_real.c - real nets, real kernels: 20 steps give the same bits on 1, 2, 3, 4 threads as the serial plan, whether rows, units
 * or layers are shared out; nothing is allocated. */
#include "t.h"

#include <stdio.h>

#include "base/mem.h"
#include "exec/real.h"

enum { STEPS = 20 };
static struct machine machine;
static struct net net;

static u32 walk;              /* enum cell_how of the plans to come */
static const char *rate = ""; /* of their machine: a slow one has more chunks of time in a step */

struct rig {
    struct plan *plan;
    struct pool *pool;
    struct store store;
    struct step *x;
    f32 *input[NET_BUFS];
    struct arena arena;
};

static void rig_new(struct rig *r, const char *optim, i32 B, const char *parallel, i32 threads) {
    char text[48];
    memset(r, 0, sizeof *r);
    snprintf(text, sizeof text, "cpu*%d%s", threads, rate);
    T_OK(machine_parse(text, &machine));
    const struct optim *o = optim_find(optim);
    struct plan_request q = {.net = &net, .machine = &machine, .B = B, .train = true, .nstate = o->nstate, .parallel = parallel};
    T_OK(plan_make(&q, &r->plan));
    for (i32 l = 0; l < net.nop; l++) plan_set_how(r->plan, &net, l, walk);
    T_OK(pool_new(threads, &r->pool));
    T_OK(store_new(&net, o, &r->store));
    net_weights_init(&net, 7, r->store.theta);
    T_OK(step_bind(r->plan, &net, kern_best(), r->pool, &r->store, NULL, NULL, &r->x));
    real_inputs(&net, B, &r->arena, r->input);
}

static void rig_free(struct rig *r) {
    step_free(r->x);
    store_free(&r->store);
    pool_free(r->pool);
    plan_free(r->plan);
    arena_free(&r->arena);
}

static f64 train(struct rig *r, i32 B) {
    struct exec_result out = {0};
    for (u32 s = 0; s < (t_few() ? 4 : STEPS); s++) {
        real_fill(&net, r->input, B, s % 3);
        struct step_args step = real_step(r->input, B, s);
        i64 calls = mem_stats().calls;
        T_OK(step_run(r->x, &step, &out));
        assert_int_equal(mem_stats().calls, calls);
        assert_true(out.finite);
    }
    return out.loss;
}

static void same_bits_as(const char *optim, i32 B, const char *strategy, i32 most) {
    struct rig serial;
    rig_new(&serial, optim, B, "serial", 1);
    f64 loss = train(&serial, B);
    f64 off = (f64)step_bytes(serial.x) / (f64)serial.plan->peak_bytes - 1;
    assert_true(off > -0.05 && off < 0.05);
    for (i32 threads = 1; threads <= (t_few() ? imin(2, most) : most); threads++) {
        struct rig r;
        rig_new(&r, optim, B, threads > 1 ? strategy : "auto", threads);
        assert_true(train(&r, B) == loss);
        assert_memory_equal(r.store.theta, serial.store.theta, (size_t)net.ntheta * sizeof(f32));
        for (i32 k = 0; k < serial.store.optim->nstate; k++)
            assert_memory_equal(r.store.state[k], serial.store.state[k], (size_t)net.ntheta * sizeof(f32));
        rig_free(&r);
    }
    rig_free(&serial);
}

static void same_bits(const char *optim, i32 B) { same_bits_as(optim, B, "data", 4); }

TEST(exec_same_bits_lstm_decode_adam) {
    static const i32 sizes[] = {3, 32, 45, 70};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        nets_long(&net, (struct shape){.T = 5, .I = 20, .H = 24, .steps = 3, .w = 12, .vocab = 4, .nk = 2}, CELL_LSTM, "loss_mse",
                  0.3f);
        same_bits("adam", sizes[i]);
    }
}

TEST(exec_same_bits_gru_stacked_quantile_sgd) {
    nets_short(&net, (struct shape){.T = 9, .I = 3, .H = 17, .w = 5}, CELL_GRU, "loss_quantile");
    same_bits("sgd", 37);
}

TEST(exec_same_bits_all_layers_rmsprop) {
    nets_mixed(&net, (struct shape){.T = 4, .I = 5, .H = 20, .w = 3}, CELL_LSTM);
    same_bits("rmsprop", 50);
}

/* A layer that is shared by units: 1 to 3 members, batches that rows could not be cut of and one that they could. */
TEST(exec_same_bits_teams) {
    static const i32 sizes[] = {1, 2, 11};
    for (i32 kind = 0; kind < cell_count(); kind++)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            nets_short(&net, (struct shape){.T = 9, .I = 3, .H = 41, .w = 5}, (enum cell_kind)kind, "loss_mse");
            same_bits_as("adam", sizes[i], "unit", 3);
        }
    nets_long(&net, (struct shape){.T = 5, .I = 20, .H = 33, .steps = 3, .w = 12, .vocab = 4, .nk = 2}, CELL_LSTM, "loss_mse",
              0.3f);
    same_bits_as("adam", 1, "unit", 3);
}

/* Both directions of two layers, the end of both into the head. */
static void both_ways(enum cell_kind kind, i32 T) {
    net_init(&net);
    i32 x = nets_input(&net, "x", T, 3, false), end[2] = {-1, -1};
    for (i32 k = 0; k < 2; k++) {
        char name[24];
        struct op_spec turn = net_spec("reverse", k ? "turn.1" : "turn.0", x), c = net_spec("recurrent", "", x);
        const struct op *t = &net.op[nets_add(&net, &turn)];
        i32 back = t->out, y[2];
        if (t->end >= 0) x = t->end;
        for (i32 d = 0; d < 2; d++) {
            snprintf(name, sizeof name, d ? "lstm.%d.reverse" : "lstm.%d", k);
            c = net_spec("recurrent", name, d ? back : x);
            c.cell = kind;
            c.hidden = 18;
            i32 l = nets_add(&net, &c);
            y[d] = net.op[l].out;
            end[d] = net.op[l].end;
        }
        if (k == 1) break;
        struct op_spec turned = net_spec("reverse", "back.0", y[1]), join = net_spec("concat", "both.0", y[0]);
        join.in[1] = net.op[nets_add(&net, &turned)].out;
        x = net.op[nets_add(&net, &join)].out;
    }
    struct op_spec last = net_spec("last", "last", end[0]), rev = net_spec("last", "last.reverse", end[1]);
    struct op_spec join = net_spec("concat", "ends", net.op[nets_add(&net, &last)].out);
    join.in[1] = net.op[nets_add(&net, &rev)].out;
    nets_loss(&net, "loss_mse", nets_dense(&net, "head", net.op[nets_add(&net, &join)].out, 2, ACT_NONE), 1, 2, false);
    T_OK(net_check(&net));
}

static void wave(i32 B, i32 most) {
    same_bits_as("adam", B, "wave", most);
    same_bits_as("adam", B, "wave:2", 2);
}

/* Layers at different chunks of time: chunks that divide the steps or not, dW slice by slice or at once (many grains). */
TEST(exec_same_bits_wavefront) {
    static const i32 sizes[] = {1, 3, 45};
    rate = " gflops=0.001";
    for (i32 kind = 0; kind < cell_count(); kind++)
        for (size_t i = 0; i < (kind < 2 ? COUNT(sizes) : 2); i++) {
            real_stack(&net, (enum cell_kind)kind, 3, i == 1 ? 21 : 40, 19, false);
            wave(sizes[i], 3);
        }
    real_stack(&net, CELL_LSTM, 2, 600, 19, false); /* more than one slice of dW, cut elsewhere than chunks */
    same_bits_as("adam", 2, "wave", 2);
    real_stack(&net, CELL_GRU, 3, 23, 19, true);
    wave(11, 4);
    both_ways(CELL_LSTM, 30);
    wave(2, 3);
    rate = "";
}

TEST(exec_same_bits_wavefront_bf16) {
    real_stack(&net, CELL_LSTM, 2, 8, 19, false);
    if (!cell_at(kern_best(), CELL_LSTM, PREC_BF16)) skip();
    rate = " gflops=0.001";
    nets_precision = PREC_BF16;
    for (i32 kind = CELL_LSTM; kind < CELL_NKIND; kind++) {
        if (!cell_at(kern_best(), (enum cell_kind)kind, PREC_BF16)) continue;
        real_stack(&net, (enum cell_kind)kind, 3, 40, 19, false);
        wave(3, 3);
    }
    real_stack(&net, CELL_LSTM, 2, 600, 19, false);
    wave(2, 2);
    nets_precision = PREC_F32;
    rate = "";
}

/* How a layer is walked changes speed, never bits: fold and ahead, alone and in a team, against the kernels' guess. */
TEST(exec_same_bits_however_a_layer_is_walked) {
    for (i32 kind = 0; kind < CELL_NKIND; kind++) {
        struct rig guess;
        nets_short(&net, (struct shape){.T = 9, .I = 3, .H = 41, .w = 5}, (enum cell_kind)kind, "loss_mse");
        rig_new(&guess, "adam", 3, "serial", 1);
        f64 loss = train(&guess, 3);
        for (walk = CELL_FOLD; walk <= CELL_AHEAD; walk++)
            for (i32 threads = 1; threads <= 2; threads++) {
                struct rig r;
                rig_new(&r, "adam", 3, threads > 1 ? "unit" : "serial", threads);
                assert_string_equal(plan_walked(r.plan), walk == CELL_FOLD ? "fold" : "ahead");
                assert_true(train(&r, 3) == loss);
                assert_memory_equal(r.store.theta, guess.store.theta, (size_t)net.ntheta * sizeof(f32));
                rig_free(&r);
            }
        walk = 0;
        rig_free(&guess);
    }
}

T_MAIN(cmocka_unit_test(exec_same_bits_lstm_decode_adam), cmocka_unit_test(exec_same_bits_gru_stacked_quantile_sgd),
       cmocka_unit_test(exec_same_bits_all_layers_rmsprop), cmocka_unit_test(exec_same_bits_teams),
       cmocka_unit_test(exec_same_bits_wavefront), cmocka_unit_test(exec_same_bits_wavefront_bf16),
       cmocka_unit_test(exec_same_bits_however_a_layer_is_walked))
