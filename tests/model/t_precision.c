/* t_precision.c - networks with bf16 cells: gradients close to those of the f64 reference, same bits for any partition, an
 * error message if the kernels lack bf16. Skipped if no instruction set of the machine has it. */
#include "grad.h"

static const struct shape shapes[] = {
    /* B grain T  I   H  steps w vocab nk */
    {5, 2, 3, 4, 3, 2, 5, 3, 0},
    {4, 4, 3, 17, 18, 2, 3, 2, 2},
    {3, 8, 6, 3, 10, 2, 7, 5, 1},
};

/* An encoder and an autoregressive decoder. */
static void nets_unrolled(struct net *n, struct shape s, enum cell_kind cell) {
    net_init(n);
    struct op_spec c = net_spec("recurrent", "lstm.0", nets_input(n, "x", s.T, s.I, false)), u;
    c.cell = cell;
    c.hidden = s.H;
    u = net_spec("unroll", "decoder", n->op[nets_add(n, &c)].end);
    u.cell = cell;
    u.hidden = s.H;
    u.steps = s.steps;
    u.teacher_forcing = 0.5f;
    u.in[1] = nets_input(n, "first", 1, s.w, false);
    i32 target = nets_input(n, "target", s.steps, s.w, false);
    u.in[4] = target;
    struct op_spec loss = net_spec("loss_mse", "loss", n->op[nets_add(n, &u)].out);
    loss.in[1] = target;
    nets_add(n, &loss);
    T_OK(net_check(n));
}

static void build(struct net *n, i32 which, struct shape s, enum cell_kind cell) {
    if (which == 0) nets_long(n, s, cell, "loss_mse", 0.3f);
    if (which == 1) nets_short(n, s, cell, "loss_mse");
    if (which == 2) nets_mixed(n, s, cell);
    if (which == 3) nets_unrolled(n, s, cell);
}

/* The sets with bf16 for the cell, one after another. */
static const struct kern *with_bf16(i32 *arch, enum cell_kind cell) {
    while (*arch < KERN_NARCH) {
        const struct kern *k = kern_get((enum kern_arch)(*arch)++);
        if (k && cell_at(k, cell, PREC_BF16)) return k;
    }
    return NULL;
}

static void need_bf16(void) {
    i32 arch = 0;
    if (with_bf16(&arch, CELL_LSTM)) return;
    print_message("skipped: no kernels of this machine have bf16 products\n");
    skip();
}

TEST(bf16_gradient_is_near_the_twins_every_cell_net_and_instruction_set) {
    need_bf16();
    nets_precision = PREC_BF16;
    for (i32 cell = 0; cell < CELL_NKIND; cell++)
        for (i32 which = 0; which < 4; which++) {
            i32 arch = 0, turn = 0;
            for (const struct kern *k; (k = with_bf16(&arch, (enum cell_kind)cell)); turn++) {
                struct net n;
                struct shape s = shapes[(u32)(cell + which + turn) % COUNT(shapes)];
                build(&n, which, s, (enum cell_kind)cell);
                grad_check(&n, k, s.B, s.grain, NULL, 0);
            }
        }
    nets_precision = PREC_F32;
}

TEST(bf16_step_cut_into_grains_gives_the_bits_of_one_part) {
    need_bf16();
    nets_precision = PREC_BF16;
    for (i32 cell = 0; cell < CELL_NKIND; cell++)
        for (i32 which = 0; which < 4; which++) {
            i32 arch = 0;
            for (const struct kern *k; (k = with_bf16(&arch, (enum cell_kind)cell));) {
                struct net n;
                struct rig whole, cut;
                build(&n, which, shapes[2], (enum cell_kind)cell);
                rig_new(&whole, &n, k, 37, 5);
                rig_new(&cut, &n, k, 37, 5);
                rig_step(&whole, 37, false);
                rig_step(&cut, 10, true);
                for (i32 i = 0; i < n.nbuf; i++)
                    assert_memory_equal(whole.buf[i], cut.buf[i], (size_t)buf_floats(&n.buf[i], 37) * 4);
                assert_memory_equal(whole.grad, cut.grad, (size_t)(whole.r.ngrain * n.ntheta) * 4);
                rig_free(&whole);
                rig_free(&cut);
            }
        }
    nets_precision = PREC_F32;
}

TEST(bf16_without_kernels_is_refused_with_the_way_out) {
    static struct kern plain = {.name = "plain"};
    struct net n;
    T_OK(net_cell_runs(CELL_GRU, PREC_F32, &plain));
    T_FAILS(net_cell_runs(CELL_GRU, PREC_BF16, &plain), E103);
    assert_non_null(strstr(err_last()->fix, "--precision fp32"));
    nets_precision = PREC_BF16;
    nets_short(&n, shapes[0], CELL_LSTM, "loss_mse");
    nets_precision = PREC_F32;
    T_FAILS(net_runs(&n, &plain), E103);
    nets_short(&n, shapes[0], CELL_LSTM, "loss_mse");
    T_OK(net_runs(&n, &plain));
}

T_MAIN(cmocka_unit_test(bf16_gradient_is_near_the_twins_every_cell_net_and_instruction_set),
       cmocka_unit_test(bf16_step_cut_into_grains_gives_the_bits_of_one_part),
       cmocka_unit_test(bf16_without_kernels_is_refused_with_the_way_out))
