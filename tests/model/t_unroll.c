/* t_unroll.c - autoregressive decoder: gradients through all steps against the f64 reference, with and without teacher forcing;
 * same bits for any partition; no true values outside training. */
#include "grad.h"

enum { T = 3, STEPS = 4 };

struct kind {
    enum cell_kind cell;
    i32 H, w, nf; /* nf 0: nothing known ahead */
    bool base, quantiles;
    f32 rate; /* share of true values; < 0: no target at all */
};

/* An encoder, and a decoder from its end state on. */
static void build(struct net *n, const struct kind *k) {
    net_init(n);
    struct op_spec c = net_spec("recurrent", "lstm.0", nets_input(n, "x", T, 2, false)), s, loss;
    c.cell = k->cell;
    c.hidden = k->H;
    s = net_spec("unroll", "decoder", n->op[nets_add(n, &c)].end);
    s.cell = k->cell;
    s.hidden = k->H;
    s.steps = STEPS;
    s.teacher_forcing = fmaxf(0, k->rate);
    s.in[1] = nets_input(n, "first", 1, k->w, false);
    if (k->nf) s.in[2] = nets_input(n, "future", STEPS, k->nf, false);
    i32 target = nets_input(n, "target", STEPS, k->w, false), base = k->base ? nets_input(n, "base", STEPS, k->w, false) : -1;
    s.in[3] = base;
    if (k->rate >= 0) s.in[4] = target;
    loss = net_spec(k->quantiles ? "loss_quantile" : "loss_mse", "loss", -1);
    s.nquantile = loss.nquantile = k->quantiles ? 3 : 0;
    for (i32 q = 0; q < s.nquantile; q++) s.quantile[q] = loss.quantile[q] = q == 0 ? 0.1f : q == 1 ? 0.4f : 0.8f;
    loss.in[0] = n->op[nets_add(n, &s)].out;
    loss.in[1] = target;
    loss.in[2] = base;
    nets_add(n, &loss);
    T_OK(net_check(n));
}

static const struct kind kinds[] = {
    {CELL_LSTM, 5, 1, 0, false, false, -1}, {CELL_LSTM, 17, 3, 2, true, false, 0.5f}, {CELL_GRU, 6, 2, 1, true, true, 0.5f},
    {CELL_RNN, 16, 17, 0, false, true, 1},  {CELL_GRU, 1, 1, 3, true, false, 0},      {CELL_LSTM, 4, 2, 17, false, true, 0.3f},
    {(enum cell_kind)CELL_AT_paragru, 6, 2, 1, true, true, 0.5f}, {(enum cell_kind)CELL_AT_paralstm, 17, 3, 2, true, false, 0.5f},
    {(enum cell_kind)CELL_AT_minlstm, 5, 2, 3, true, false, 0.3f},
};

static void not_training(struct rig *g) { g->r.train = false; }

TEST(unroll_gradient_equals_twin_every_cell_forced_and_free) {
    for (u32 i = 0; i < COUNT(kinds); i++)
        for (i32 train = 0; train < 2; train++) {
            struct net n;
            build(&n, &kinds[i]);
            grad_check(&n, kern_best(), 5, 2, train ? NULL : not_training, 5e-6);
        }
}

TEST(unroll_gradient_equals_twin_on_every_instruction_set) {
    for (i32 a = 0; a < KERN_NARCH; a++) {
        const struct kern *k = kern_get((enum kern_arch)a);
        struct net n;
        build(&n, &kinds[1]);
        if (k) grad_check(&n, k, 5, 2, NULL, 5e-6);
    }
}

TEST(unroll_cut_into_grains_gives_the_bits_of_one_part) {
    struct net n;
    struct rig whole, cut;
    build(&n, &kinds[1]);
    rig_new(&whole, &n, kern_best(), 11, 3);
    rig_new(&cut, &n, kern_best(), 11, 3);
    rig_step(&whole, 11, false);
    for (i32 width = 3; width < 9; width += 3) {
        rig_step(&cut, width, true);
        for (i32 i = 0; i < n.nbuf; i++)
            assert_memory_equal(whole.buf[i], cut.buf[i], (size_t)buf_floats(&n.buf[i], 11) * 4);
        assert_memory_equal(whole.grad, cut.grad, (size_t)(whole.r.ngrain * n.ntheta) * 4);
    }
    rig_free(&whole);
    rig_free(&cut);
}

/* A rank that has one row of a batch sums like the rank that has all of them. */
TEST(unroll_of_one_row_gives_the_bits_of_that_row_in_the_batch) {
    for (u32 i = 0; i < COUNT(kinds); i++) {
        struct net n;
        struct rig all, one;
        build(&n, &kinds[i]);
        rig_new(&all, &n, kern_best(), 3, 1);
        rig_new(&one, &n, kern_best(), 1, 1);
        one.r.whole = 3;
        for (i32 b = 0; b < n.nbuf; b++)
            for (i32 t = 0; t < n.buf[b].T && n.buf[b].input; t++)
                memcpy(one.buf[b] + t * buf_fp(&n.buf[b]), all.buf[b] + 3 * t * buf_fp(&n.buf[b]),
                       (size_t)buf_fp(&n.buf[b]) * 4);
        rig_step(&all, 3, false);
        rig_step(&one, 1, false);
        if (memcmp(all.grad, one.grad, (size_t)n.ntheta * 4) != 0) fail_msg("net %u: other gradients", i);
        rig_free(&all);
        rig_free(&one);
    }
}

static f32 *target_of(struct rig *g) { return g->buf[g->n->op[g->n->nop - 1].spec.in[1]]; }

/* Outside training the targets may hold anything, and the share of truth means nothing. */
TEST(unroll_reads_no_truth_outside_training) {
    struct net n;
    struct rig a, b;
    build(&n, &kinds[1]);
    i32 out = n.op[n.nop - 1].spec.in[0];
    rig_new(&a, &n, kern_best(), 4, 2);
    rig_new(&b, &n, kern_best(), 4, 2);
    for (i64 i = 0; i < buf_floats(&n.buf[out], 4); i++) target_of(&b)[i] = i % 16 < 3 ? 1000 : 0;
    rig_step(&a, 4, false);
    rig_step(&b, 4, false);
    assert_memory_not_equal(a.buf[out], b.buf[out], (size_t)buf_floats(&n.buf[out], 4) * 4);
    a.r.train = b.r.train = false;
    rig_step(&a, 4, false);
    rig_step(&b, 4, false);
    assert_memory_equal(a.buf[out], b.buf[out], (size_t)buf_floats(&n.buf[out], 4) * 4);
    rig_free(&a);
    rig_free(&b);
}

TEST(unroll_with_inputs_that_do_not_fit_is_refused) {
    struct net n;
    net_init(&n);
    struct op_spec c = net_spec("recurrent", "lstm.0", nets_input(&n, "x", T, 2, false)), s;
    c.hidden = 4;
    s = net_spec("unroll", "decoder", n.op[nets_add(&n, &c)].end);
    s.hidden = 4;
    s.steps = STEPS;
    s.in[1] = nets_input(&n, "first", 1, 2, false);
    s.in[3] = nets_input(&n, "base", STEPS, 3, false);
    T_FAILS(net_op(&n, &s, NULL), E1);
    s.in[3] = -1;
    s.hidden = 5;
    T_FAILS(net_op(&n, &s, NULL), E1);
}

T_MAIN(cmocka_unit_test(unroll_gradient_equals_twin_every_cell_forced_and_free),
       cmocka_unit_test(unroll_gradient_equals_twin_on_every_instruction_set),
       cmocka_unit_test(unroll_cut_into_grains_gives_the_bits_of_one_part),
       cmocka_unit_test(unroll_of_one_row_gives_the_bits_of_that_row_in_the_batch),
       cmocka_unit_test(unroll_reads_no_truth_outside_training), cmocka_unit_test(unroll_with_inputs_that_do_not_fit_is_refused))
