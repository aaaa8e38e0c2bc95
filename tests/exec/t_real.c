/* t_real.c - real nets, real kernels: 20 steps give the same bits on 1, 2, 3, 4 threads as the serial plan, whether rows or units
 * are shared out; nothing is allocated. */
#include "t.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/rng.h"
#include "exec/exec.h"
#include "model/nets.h"

enum { STEPS = 20 };
static struct machine machine;
static struct net net;

static u32 walk; /* enum cell_how of the plans to come */

struct rig {
    struct plan *plan;
    struct pool *pool;
    struct store store;
    struct exec *x;
    f32 *input[NET_BUFS];
    struct arena arena;
};

static i32 vocab_of(i32 buf) {
    for (i32 l = 0; l < net.nop; l++)
        for (i32 i = 0; i < net.op[l].layer->nin; i++)
            if (net.op[l].spec.in[i] == buf) return imax(1, net.op[l].spec.vocab);
    return 1;
}

static void fill(struct rig *r, i32 B, u32 step) {
    for (i32 i = 0; i < net.nbuf; i++) {
        const struct buf *b = &net.buf[i];
        if (!b->input) continue;
        for (i64 row = 0; row < (i64)b->T * B; row++)
            for (i32 f = 0; f < b->F; f++) {
                f32 u = rng_uniform(5, RNG_TEST, step * 64 + (u32)i, (u64)(row * b->F + f));
                if (b->ids)
                    ((i32 *)(void *)r->input[i])[row] = (i32)(u * (f32)vocab_of(i));
                else
                    r->input[i][row * buf_fp(b) + f] = u - 0.5f;
            }
    }
}

static void rig_new(struct rig *r, const char *optim, i32 B, const char *parallel, i32 threads) {
    char text[32];
    memset(r, 0, sizeof *r);
    snprintf(text, sizeof text, "cpu*%d", threads);
    T_OK(machine_parse(text, &machine));
    const struct optim *o = optim_find(optim);
    struct plan_request q = {.net = &net, .machine = &machine, .B = B, .train = true, .nstate = o->nstate, .parallel = parallel};
    T_OK(plan_make(&q, &r->plan));
    for (i32 l = 0; l < net.nop; l++) plan_set_how(r->plan, &net, l, walk);
    T_OK(pool_new(threads, &r->pool));
    T_OK(store_new(&net, o, &r->store));
    net_weights_init(&net, 7, r->store.theta);
    T_OK(exec_bind(r->plan, &net, kern_best(), r->pool, &r->store, &r->x));
    for (i32 i = 0; i < net.nbuf; i++)
        if (net.buf[i].input) assert_non_null(r->input[i] = arena_new(&r->arena, (size_t)buf_floats(&net.buf[i], B) * 4));
}

static void rig_free(struct rig *r) {
    exec_free(r->x);
    store_free(&r->store);
    pool_free(r->pool);
    plan_free(r->plan);
    arena_free(&r->arena);
}

static f64 train(struct rig *r, i32 B) {
    struct exec_result out = {0};
    for (u32 s = 0; s < (t_few() ? 4 : STEPS); s++) {
        fill(r, B, s % 3);
        struct exec_step step = {.input = r->input, .loss_scale = 1.0f / (f32)B, .seed = 9, .step = s, .clip = 1};
        step.hyper = (struct optim_hyper){
            .lr = 1e-2f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .momentum = 0.9f, .weight_decay = 1e-3f, .step = s + 1};
        i64 calls = mem_stats().calls;
        T_OK(exec_step(r->x, &step, &out));
        assert_int_equal(mem_stats().calls, calls);
        assert_true(out.finite);
    }
    return out.loss;
}

static void same_bits_as(const char *optim, i32 B, const char *strategy, i32 most) {
    struct rig serial;
    rig_new(&serial, optim, B, "serial", 1);
    f64 loss = train(&serial, B);
    f64 off = (f64)exec_bytes(serial.x) / (f64)serial.plan->peak_bytes - 1;
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

static void same_bits(const char *optim, i32 B) { same_bits_as(optim, B, "data_sync", 4); }

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
            same_bits_as("adam", sizes[i], "unit_split", 3);
        }
    nets_long(&net, (struct shape){.T = 5, .I = 20, .H = 33, .steps = 3, .w = 12, .vocab = 4, .nk = 2}, CELL_LSTM, "loss_mse",
              0.3f);
    same_bits_as("adam", 1, "unit_split", 3);
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
                rig_new(&r, "adam", 3, threads > 1 ? "unit_split" : "serial", threads);
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
       cmocka_unit_test(exec_same_bits_however_a_layer_is_walked))
