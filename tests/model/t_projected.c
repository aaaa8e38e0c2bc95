/* t_projected.c - LSTM with projection: gradients against the f64 reference, same bits for any partition of the rows. */
#include "grad.h"

enum { T = 5 };

static void fill_lengths(struct rig *g) {
    static const i32 length[] = {5, 5, 3, 2, 0};
    for (i32 b = 0; b < g->n->nbuf; b++)
        for (i32 i = 0; i < g->r.B && !strcmp(g->n->buf[b].name, "length"); i++)
            ((i32 *)(void *)g->buf[b])[i] = length[i * (i32)COUNT(length) / g->r.B];
}

static i32 projected(struct net *n, const char *name, i32 x, i32 length, i32 H, i32 P) {
    struct op_spec s = net_spec("projected", name, x);
    s.hidden = H;
    s.projection = P;
    s.in[2] = length;
    return nets_add(n, &s);
}

/* Two layers, the end of the first and every step of the second under heads. */
static void build(struct net *n, i32 I, i32 H, i32 P, bool grad, bool ragged) {
    net_init(n);
    i32 x = nets_input(n, "x", T, I, false), length = ragged ? nets_input(n, "length", 1, 1, true) : -1;
    if (grad) x = nets_dense(n, "seg", x, I, ACT_TANH);
    i32 a = projected(n, "lstm.0", x, length, H, P), b = projected(n, "lstm.1", n->op[a].out, length, H + 1, P);
    struct op_spec last = net_spec("last", "last", n->op[a].end), sum = net_spec("add", "sum", n->op[b].out);
    sum.in[1] = n->op[nets_add(n, &last)].out;
    nets_loss(n, "loss_mse", nets_dense(n, "head", n->op[nets_add(n, &sum)].out, 3, ACT_NONE), T, 3, false);
    T_OK(net_check(n));
}

TEST(projected_gradient_equals_twin) {
    static const i32 shape[][4] = {{1, 2, 1, 1}, {3, 17, 5, 7}, {17, 5, 4, 5}, {2, 20, 17, 4}}; /* I H P B */
    for (u32 s = 0; s < COUNT(shape); s++)
        for (i32 ragged = 0; ragged < 2; ragged++) {
            struct net n;
            build(&n, shape[s][0], shape[s][1], shape[s][2], s % 2, ragged);
            grad_check(&n, kern_best(), shape[s][3], 3, fill_lengths, 5e-6);
        }
}

TEST(projected_gradient_equals_twin_on_every_instruction_set) {
    for (i32 a = 0; a < KERN_NARCH; a++) {
        const struct kern *k = kern_get((enum kern_arch)a);
        struct net n;
        build(&n, 4, 18, 3, true, true);
        if (k) grad_check(&n, k, 5, 2, fill_lengths, 5e-6);
    }
}

TEST(projected_cut_into_grains_gives_the_bits_of_one_part) {
    struct net n;
    struct rig whole, cut;
    build(&n, 4, 18, 3, true, true);
    rig_new(&whole, &n, kern_best(), 11, 3);
    rig_new(&cut, &n, kern_best(), 11, 3);
    fill_lengths(&whole);
    fill_lengths(&cut);
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

TEST(projection_out_of_range_is_refused) {
    struct net n;
    struct op_spec s;
    net_init(&n);
    s = net_spec("projected", "lstm.0", nets_input(&n, "x", T, 3, false));
    s.hidden = s.projection = 8;
    T_FAILS(net_op(&n, &s, NULL), E103);
    assert_non_null(strstr(err_last()->text, "projection is 8, possible is 1 to 7"));
}

T_MAIN(cmocka_unit_test(projected_gradient_equals_twin),
       cmocka_unit_test(projected_gradient_equals_twin_on_every_instruction_set),
       cmocka_unit_test(projected_cut_into_grains_gives_the_bits_of_one_part),
       cmocka_unit_test(projection_out_of_range_is_refused))
