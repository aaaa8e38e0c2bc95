/* t_net.c - building: what is refused and why; registries; initial weights; dropout's mask; single losses by hand. */
#include "kern/pack.h"
#include "model/cell/cell.h"
#include "cell_tensors.h"
#include "nets.h"
#include "rig.h"

static const struct shape shape = {4, 2, 3, 5, 17, 2, 6, 3, 0};

static void refused(struct net *n, const struct op_spec *s, int code, const char *why) {
    struct net copy = *n;
    T_FAILS(net_op(&copy, s, NULL), code);
    if (strstr(err_last()->text, why)) return;
    print_error("the message is \"%s\", want \"%s\"\n", err_last()->text, why);
    fail();
}

TEST(op_refuses_what_does_not_fit) {
    struct net n;
    net_init(&n);
    i32 x = nets_input(&n, "x", 3, 5, false), ids = nets_input(&n, "ids", 1, 1, true), l;
    struct op_spec s = net_spec("dens", "a", x);
    refused(&n, &s, E103, "did you mean \"dense\"");
    s = net_spec("dense", "a", x);
    refused(&n, &s, E103, "would have 3 steps of 0 features");
    s.units = 4;
    s.in[0] = ids;
    refused(&n, &s, E1, "category numbers");
    s.in[0] = -1;
    refused(&n, &s, E1, "has no input 0");
    s.in[0] = 40;
    refused(&n, &s, E1, "is buffer 40");
    s = net_spec("embed", "e", x);
    refused(&n, &s, E1, "category numbers");
    s = net_spec("recurrent", "r", x);
    s.hidden = 8;
    s.cell = 99;
    refused(&n, &s, E1, "no cell number 99");
    s.cell = CELL_LSTM;
    s.in[1] = x;
    refused(&n, &s, E1, "the initial state is [3][B][5], want [2][B][8]");
    s.in[1] = -1;
    T_OK(net_op(&n, &s, &l));
    refused(&n, &s, E1, "two ops are named \"r\"");
    s = net_spec("decode", "d", n.op[l].end);
    refused(&n, &s, E1, "share must name a recurrent op");
    s.share = l;
    refused(&n, &s, E103, "steps is 0");
    s.steps = 2;
    s.in[0] = n.op[l].out;
    refused(&n, &s, E1, "the end state is [3][B][8], want [2][B][8]");
    s = net_spec("loss_mse", "l", n.op[l].out);
    s.in[1] = x;
    refused(&n, &s, E1, "do not fit");
    s = net_spec("loss_quantile", "l", n.op[l].out);
    s.in[1] = x;
    refused(&n, &s, E103, "number of quantiles is 0");
    T_FAILS(net_input(&n, "x", 0, 5, false, &l), E103);
}

TEST(second_reader_with_a_gradient_is_refused) {
    struct net n;
    net_init(&n);
    i32 y = nets_dense(&n, "a", nets_input(&n, "x", 3, 5, false), 4, ACT_NONE);
    nets_dense(&n, "b", y, 4, ACT_NONE);
    struct op_spec s = net_spec("dense", "c", y);
    s.units = 4;
    refused(&n, &s, E1, "read by \"b\" and \"c\"");
}

TEST(check_finds_ops_that_nobody_reads) {
    struct net n;
    net_init(&n);
    T_FAILS(net_check(&n), E1);
    i32 x = nets_input(&n, "x", 3, 5, false);
    nets_dense(&n, "dead", x, 4, ACT_NONE);
    nets_dense(&n, "live", x, 4, ACT_NONE);
    T_FAILS(net_check(&n), E1);
    assert_non_null(strstr(err_last()->text, "\"dead\""));
}

TEST(registries_find_every_name) {
    for (i32 i = 0; i < layer_count(); i++) {
        assert_ptr_equal(layer_find(layer_at(i)->name), layer_at(i));
        assert_non_null(layer_at(i)->help);
        assert_non_null(layer_at(i)->flops);
    }
    for (i32 i = 0; i < cell_count(); i++) {
        const struct cell *c = cell_of((enum cell_kind)i);
        assert_int_equal(c->kind, i);
        assert_ptr_equal(cell_find(c->name), c);
        assert_int_equal(strlen(c->gate_name), c->gates);
        if (i >= CELL_NKIND) continue;
        assert_int_equal(cell_slots(c), cell_bias_gates(c->kind));
        assert_int_equal(cell_packed_w(c, 5, 17), cell_w_floats(c->kind, 5, 17));
        assert_int_equal(cell_packed_bias(c, 17), cell_bias_floats(c->kind, 17));
    }
    assert_null(cell_find("sru"));
    assert_null(layer_find("lstm"));
}

/* The generic packing of the model and the one of the kernels are the same layout. */
TEST(cell_load_equals_the_packing_of_the_kernels) {
    enum { I = 5, H = 17 };
    f32 part[4][4 * H * H], w[2 * 4096], packed[2 * 4096];
    for (i32 k = 0; k < CELL_NKIND; k++) {
        const struct cell *c = cell_of((enum cell_kind)k);
        for (i32 i = 0; i < 4; i++)
            for (i32 j = 0; j < 4 * H * H; j++) part[i][j] = rig_random((u32)i, j);
        struct cell_canon canon = {part[0], part[1], part[2], part[3]};
        memset(w, 0, sizeof w);
        memset(packed, 0, sizeof packed);
        cell_pack(c->kind, I, H, &canon, w, w + cell_packed_w(c, I, H));
        for (i32 i = 0; i < 4; i++) cell_load(c, i, I, H, part[i], packed);
        assert_memory_equal(w, packed, sizeof w);
    }
}

TEST(initial_weights_have_the_spread_of_pytorch) {
    struct net n;
    nets_long(&n, (struct shape){4, 2, 3, 40, 64, 2, 24, 9, 0}, CELL_LSTM, "loss_mse", 0);
    struct rig g, h;
    rig_new(&g, &n, kern_best(), 1, 1);
    rig_new(&h, &n, kern_best(), 1, 1);
    net_weights_init(&n, 1, g.theta);
    net_weights_init(&n, 1, h.theta);
    assert_memory_equal(g.theta, h.theta, (size_t)n.ntheta * sizeof *g.theta);
    net_weights_init(&n, 2, h.theta);
    assert_memory_not_equal(g.theta, h.theta, (size_t)n.ntheta * sizeof *g.theta);
    const struct op *op = &n.op[net_find_op(&n, "lstm.0")];
    f32 w[256 * 64];
    f64 sum = 0, square = 0, most = 0;
    layer_store(op, 1, g.theta + op->theta0, w);
    for (u32 i = 0; i < COUNT(w); i++) {
        sum += (f64)w[i];
        square += (f64)w[i] * (f64)w[i];
        most = fmax(most, fabs((f64)w[i]));
    }
    assert_true(most <= 0.125 && most > 0.1249); /* 1 / sqrt(64) */
    assert_true(fabs(sum / COUNT(w)) < 0.002);
    assert_true(fabs(square / COUNT(w) - 0.125 * 0.125 / 3) < 1e-4);
    rig_free(&g);
    rig_free(&h);
}

TEST(zero_init_starts_at_zero) {
    struct net n;
    net_init(&n);
    struct op_spec s = net_spec("dense", "a", nets_input(&n, "x", 1, 5, false));
    s.units = 7;
    s.zero_init = true;
    nets_add(&n, &s);
    f32 theta[16 * 6];
    net_weights_init(&n, 1, theta);
    assert_int_equal(n.ntheta, COUNT(theta));
    for (u32 i = 0; i < COUNT(theta); i++) assert_true(theta[i] == 0);
}

static i32 build_dropout(struct net *n, f32 rate) {
    net_init(n);
    struct op_spec s = net_spec("dropout", "drop", nets_dense(n, "a", nets_input(n, "x", 50, 3, false), 96, ACT_NONE));
    s.dropout = rate;
    i32 y = n->op[nets_add(n, &s)].out;
    nets_loss(n, "loss_mse", y, 50, 96, false);
    return y;
}

TEST(dropout_keeps_share_and_mean_and_repeats_its_mask) {
    struct net n;
    struct rig g;
    i32 y = build_dropout(&n, 0.3f), a = n.op[0].out;
    rig_new(&g, &n, kern_best(), 20, 4);
    rig_step(&g, 20, false);
    i64 count = buf_floats(&n.buf[y], 20), kept = 0;
    f32 *first = rig_floats(&g, count);
    for (i64 i = 0; i < count; i++) {
        first[i] = g.buf[y][i];
        if (first[i] == 0) continue;
        kept++;
        assert_true(fabsf(first[i] / g.buf[a][i] - 1 / 0.7f) < 1e-4f);
    }
    assert_true(fabs((f64)kept / (f64)count - 0.7) < 0.01);
    rig_step(&g, 4, true);
    assert_memory_equal(first, g.buf[y], (size_t)count * sizeof *first);
    g.r.step++;
    rig_step(&g, 20, false);
    assert_memory_not_equal(first, g.buf[y], (size_t)count * sizeof *first);
    g.r.train = false;
    rig_step(&g, 20, false);
    assert_memory_equal(g.buf[a], g.buf[y], (size_t)count * sizeof *first);
    rig_free(&g);
}

TEST(dropout_has_the_same_bits_on_every_instruction_set) {
    struct net n;
    struct rig want, got;
    i32 y = build_dropout(&n, 0.3f);
    rig_new(&want, &n, kern_get(KERN_REF), 7, 7);
    rig_new(&got, &n, kern_get(KERN_REF), 7, 7);
    rig_step(&want, 7, false);
    for (i32 a = 0; a < KERN_NARCH; a++) {
        const struct op *op = &n.op[1];
        if (!kern_get((enum kern_arch)a)) continue;
        got.r.kern = kern_get((enum kern_arch)a);
        memcpy(got.buf[op->spec.in[0]], want.buf[op->spec.in[0]], (size_t)buf_floats(&n.buf[y], 7) * 4);
        op->layer->fwd(op, &got.r, (struct part){.b1 = 7, .t1 = op->T, .n = 1});
        assert_memory_equal(got.buf[y], want.buf[y], (size_t)buf_floats(&n.buf[y], 7) * 4);
    }
    rig_free(&want);
    rig_free(&got);
}

/* One loss layer over one row: value and gradient. */
static f64 one_loss(const char *loss, f32 q, const f32 pred[3], const f32 target[3], f32 d[3]) {
    struct net n;
    struct rig g;
    net_init(&n);
    i32 x = nets_dense(&n, "a", nets_input(&n, "x", 1, 1, false), 3, ACT_NONE);
    struct op_spec s = net_spec(loss, "loss", x);
    s.in[1] = nets_input(&n, "target", 1, 3, false);
    s.nquantile = q > 0;
    s.quantile[0] = q;
    const struct op *op = &n.op[nets_add(&n, &s)];
    rig_new(&g, &n, kern_best(), 1, 1);
    memcpy(g.buf[x], pred, 3 * sizeof *pred);
    memcpy(g.buf[s.in[1]], target, 3 * sizeof *target);
    op->layer->fwd(op, &g.r, (struct part){.b1 = 1, .t1 = 1, .n = 1});
    op->layer->bwd(op, &g.r, (struct part){.b1 = 1, .t1 = 1, .n = 1});
    memcpy(d, g.dbuf[x], 3 * sizeof *d);
    f64 value = rig_loss(&g);
    rig_free(&g);
    return value;
}

TEST(losses_by_hand_with_a_missing_cell) {
    f32 pred[3] = {1, 5, 3}, target[3] = {3, NAN, 2}, d[3];
    assert_true(one_loss("loss_mse", 0, pred, target, d) == 5);
    assert_true(d[0] == -4 && d[1] == 0 && d[2] == 2);
    assert_true(one_loss("loss_mae", 0, pred, target, d) == 3);
    assert_true(d[0] == -1 && d[1] == 0 && d[2] == 1);
    assert_true(one_loss("loss_quantile", 0.5f, pred, target, d) == 3);
    assert_true(d[0] == -1 && d[1] == 0 && d[2] == 1);
    assert_true(one_loss("loss_quantile", 0.75f, pred, target, d) == 2 * (0.75 * 2 + 0.25));
    assert_true(d[0] == -1.5f && d[1] == 0 && d[2] == 0.5f);
}

TEST(categories_outside_the_vocabulary_add_nothing) {
    struct net n;
    struct rig g;
    nets_long(&n, shape, CELL_LSTM, "loss_mse", 0);
    rig_new(&g, &n, kern_best(), shape.B, shape.grain);
    i32 ids = n.op[2].spec.in[1];
    ((i32 *)(void *)g.buf[ids])[1] = -1;
    ((i32 *)(void *)g.buf[ids])[2] = 1 << 30;
    rig_step(&g, shape.B, false); /* no read out of bounds (sanitizers), finite */
    assert_true(isfinite(rig_loss(&g)));
    rig_free(&g);
}

TEST(flops_grow_with_rows_and_backward_costs_more) {
    struct net n;
    nets_mixed(&n, shape, CELL_GRU);
    for (i32 l = 0; l < n.nop; l++) {
        f64 one = n.op[l].layer->flops(&n.op[l], &n, 1, false), many = n.op[l].layer->flops(&n.op[l], &n, 10, false);
        assert_true(one > 0 && fabs(many - 10 * one) < 1e-6 * many);
        assert_true(n.op[l].layer->flops(&n.op[l], &n, 1, true) > 0);
    }
}

T_MAIN(cmocka_unit_test(op_refuses_what_does_not_fit), cmocka_unit_test(second_reader_with_a_gradient_is_refused),
       cmocka_unit_test(check_finds_ops_that_nobody_reads), cmocka_unit_test(registries_find_every_name),
       cmocka_unit_test(cell_load_equals_the_packing_of_the_kernels),
       cmocka_unit_test(initial_weights_have_the_spread_of_pytorch), cmocka_unit_test(zero_init_starts_at_zero),
       cmocka_unit_test(dropout_keeps_share_and_mean_and_repeats_its_mask),
       cmocka_unit_test(dropout_has_the_same_bits_on_every_instruction_set), cmocka_unit_test(losses_by_hand_with_a_missing_cell),
       cmocka_unit_test(categories_outside_the_vocabulary_add_nothing),
       cmocka_unit_test(flops_grow_with_rows_and_backward_costs_more))
