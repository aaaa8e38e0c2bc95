/* t_cut.c - the same bits for any partition of the rows; padding stays zero. */
#include "nets.h"
#include "rig.h"

static const struct shape shape = {11, 3, 4, 5, 17, 3, 6, 4, 2};

static void build(struct net *n, i32 which, enum cell_kind cell) {
    if (which == 0) nets_long(n, shape, cell, "loss_mse", 0.4f);
    if (which == 1) nets_short(n, shape, cell, "loss_quantile");
    if (which == 2) nets_mixed(n, shape, cell);
}

static void same(const char *what, i32 index, const void *a, const void *b, size_t size) {
    if (!memcmp(a, b, size)) return;
    print_error("%s %d differs\n", what, index);
    fail();
}

/* An op leaves dz in place of its own output's gradient: not part of the contract, so only input gradients of theta are compared.
 */
static void compare(const struct rig *a, const struct rig *b) {
    const struct net *n = a->n;
    for (i32 i = 0; i < n->nbuf; i++) same("buffer", i, a->buf[i], b->buf[i], (size_t)buf_floats(&n->buf[i], a->r.B) * 4);
    same("gradient", 0, a->grad, b->grad, (size_t)(a->r.ngrain * n->ntheta) * 4);
    same("loss", 0, a->r.loss, b->r.loss, (size_t)a->r.ngrain * 8);
}

TEST(step_grain_by_grain_gives_the_bits_of_one_part) {
    for (i32 which = 0; which < 3; which++)
        for (i32 cell = 0; cell < cell_count(); cell++) {
            struct net n;
            struct rig whole, cut;
            build(&n, which, (enum cell_kind)cell);
            rig_new(&whole, &n, kern_best(), shape.B, shape.grain);
            rig_new(&cut, &n, kern_best(), shape.B, shape.grain);
            rig_step(&whole, shape.B, false);
            rig_step(&cut, shape.grain, true);
            compare(&whole, &cut);
            rig_step(&cut, 2 * shape.grain, false);
            compare(&whole, &cut);
            rig_free(&whole);
            rig_free(&cut);
        }
}

/* Ranges of steps (few micro-batches of many rows) are independent of the partition. */
TEST(slices_of_time_give_the_bits_of_one_part) {
    static const struct shape wide = {700, 256, 5, 2, 3, 2, 2, 0, 0};
    for (i32 cell = 0; cell < cell_count(); cell++)
        for (i32 bf16 = 0; bf16 < 2; bf16++) {
            struct net n;
            struct rig whole, cut;
            if (bf16 && !cell_at(kern_best(), (enum cell_kind)cell, PREC_BF16)) continue;
            nets_precision = bf16 ? PREC_BF16 : PREC_F32;
            nets_short(&n, wide, (enum cell_kind)cell, "loss_mse");
            rig_new(&whole, &n, kern_best(), wide.B, wide.grain);
            rig_new(&cut, &n, kern_best(), wide.B, wide.grain);
            rig_step(&whole, wide.B, false);
            rig_step(&cut, wide.grain, true);
            compare(&whole, &cut);
            rig_free(&whole);
            rig_free(&cut);
            nets_precision = PREC_F32;
        }
}

/* Backward passes that leave weights alone, then each of these gradients in n parts. */
static void in_parts(struct rig *g, i32 n) {
    const struct net *net = g->n;
    rig_garbage(g);
    for (i32 l = 0; l < net->nop; l++)
        net->op[l].layer->fwd(&net->op[l], &g->r, (struct part){.b1 = g->r.B, .t1 = net->op[l].T, .n = 1});
    for (i32 l = net->nop - 1; l >= 0; l--) {
        const struct op *op = &net->op[l];
        const bool apart = op->layer->dw && op->spec.precision == PREC_F32;
        op->layer->bwd(op, &g->r, (struct part){.b1 = g->r.B, .t1 = op->T, .n = 1, .apart = apart});
        for (i32 i = 0; apart && i < (i32)(g->r.ngrain * op->ntheta); i++)
            if (grain_grad(&g->r, i / (i32)op->ntheta, op->theta0)[i % op->ntheta] != 0) fail_msg("op %d: not left alone", l);
        for (i32 k = 0; apart && k < n; k++)
            op->layer->dw(op, &g->r, (struct part){.b1 = g->r.B, .t1 = op->T, .me = k, .n = n});
    }
}

TEST(weight_gradient_in_parts_has_the_bits_of_one) {
    static const struct shape shapes[] = {{11, 3, 4, 5, 50, 3, 6, 4, 2}, {700, 256, 5, 2, 40, 2, 2, 0, 0},
                                          {1, 1, 9, 3, 33, 2, 2, 0, 0}};
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (i32 cell = 0; cell < CELL_NKIND; cell++) {
            struct net n;
            struct rig whole, cut;
            nets_short(&n, shapes[s], (enum cell_kind)cell, "loss_mse");
            rig_new(&whole, &n, kern_best(), shapes[s].B, shapes[s].grain);
            rig_new(&cut, &n, kern_best(), shapes[s].B, shapes[s].grain);
            rig_step(&whole, shapes[s].B, false);
            rig_step(&cut, shapes[s].B, false);
            for (i32 parts = 1; parts <= 4; parts++) {
                in_parts(&cut, parts);
                compare(&whole, &cut);
            }
            rig_free(&whole);
            rig_free(&cut);
        }
}

/* The plan relies on this: no part adds outside of its declared range. */
TEST(weight_gradient_of_a_part_is_where_it_says) {
    static const struct shape wide = {11, 3, 4, 5, 50, 3, 6, 4, 2};
    struct net n;
    struct rig g;
    nets_short(&n, wide, CELL_GRU, "loss_mse");
    rig_new(&g, &n, kern_get(KERN_BASE), wide.B, wide.B);
    rig_step(&g, wide.B, false);
    const struct op *op = &n.op[0];
    f32 *grad = grain_grad(&g.r, 0, op->theta0);
    for (i32 k = 0; k < 3; k++) {
        i64 there = 0;
        memset(grad, 0, (size_t)op->ntheta * sizeof *grad);
        op->layer->dw(op, &g.r, (struct part){.b1 = wide.B, .t1 = op->T, .me = k, .n = 3});
        for (i64 i = 0; i < op->layer->adds(op, 3, 3); i++) {
            const bool inside = i >= op->layer->adds(op, k, 3) && i < op->layer->adds(op, k + 1, 3);
            there += inside && grad[i] != 0;
            if (!inside && grad[i] != 0) fail_msg("part %d adds to float %lld", k, (long long)i);
        }
        assert_true(there > 0);
    }
    assert_int_equal(op->layer->adds(op, 0, 3), 0);
    rig_free(&g);
}

static void padding(const char *what, const struct buf *u, i32 B, const f32 *p) {
    if (u->ids || !p) return;
    for (i64 at = 0; at < (i64)u->T * B; at++)
        for (i32 i = u->F; i < buf_fp(u); i++)
            if (p[at * buf_fp(u) + i] != 0) {
                print_error("%s of \"%s\": lane %d of row %lld is %g\n", what, u->name, i, (long long)at,
                            (f64)p[at * buf_fp(u) + i]);
                fail();
            }
}

/* What the tensors do not name must be zero: through canonical form and back nothing may be lost. */
static void only_tensors(const struct rig *g, const struct op *op, const f32 *block) {
    static f32 canonical[1 << 16], back[1 << 16];
    struct tensor_info info[8];
    i32 count = op->layer->tensors ? op->layer->tensors(op, info) : 0;
    memset(back, 0, sizeof back);
    for (i32 t = 0; t < count; t++) {
        layer_store(op, t, block, canonical);
        layer_load(op, t, canonical, back);
    }
    for (i64 i = 0; i < op->ntheta; i++)
        if (back[i] != block[i]) {
            print_error("op \"%s\": entry %lld of its gradient is %g, its tensors say %g\n", op->spec.name, (long long)i,
                        (f64)block[i], (f64)back[i]);
            fail();
        }
    (void)g;
}

TEST(step_leaves_padded_lanes_zero) {
    for (i32 which = 0; which < 3; which++)
        for (i32 cell = 0; cell < cell_count(); cell++) {
            struct net n;
            struct rig g;
            build(&n, which, (enum cell_kind)cell);
            rig_new(&g, &n, kern_best(), shape.B, shape.grain);
            rig_step(&g, shape.B, false);
            for (i32 b = 0; b < n.nbuf; b++) {
                padding("values", &n.buf[b], shape.B, g.buf[b]);
                padding("gradient", &n.buf[b], shape.B, g.dbuf[b]);
            }
            for (i32 k = 0; k < g.r.ngrain; k++)
                for (i32 l = 0; l < n.nop; l++) only_tensors(&g, &n.op[l], grain_grad(&g.r, k, n.op[l].theta0));
            net_weights_init(&n, 11, g.theta);
            for (i32 l = 0; l < n.nop; l++) only_tensors(&g, &n.op[l], g.theta + n.op[l].theta0);
            rig_free(&g);
        }
}

/* Rows are independent: the last row alone gives the bits it has in the batch. */
TEST(forward_of_a_row_does_not_depend_on_the_others) {
    struct net n;
    struct rig many, one;
    nets_long(&n, shape, CELL_LSTM, "loss_mse", 0);
    rig_new(&many, &n, kern_best(), shape.B, shape.B);
    rig_new(&one, &n, kern_best(), 1, 1);
    for (i32 b = 0; b < n.nbuf; b++) {
        if (!n.buf[b].input) continue;
        i64 row = n.buf[b].ids ? 1 : buf_fp(&n.buf[b]);
        for (i32 t = 0; t < n.buf[b].T; t++)
            memcpy(one.buf[b] + t * row, many.buf[b] + ((i64)t * shape.B + shape.B - 1) * row, (size_t)row * 4);
    }
    rig_step(&many, shape.B, false);
    rig_step(&one, 1, false);
    i32 pred = n.op[n.nop - 1].spec.in[0];
    i64 row = buf_fp(&n.buf[pred]);
    for (i32 t = 0; t < shape.steps; t++)
        same("row of the prediction", t, one.buf[pred] + t * row, many.buf[pred] + ((i64)t * shape.B + shape.B - 1) * row,
             (size_t)row * 4);
    rig_free(&many);
    rig_free(&one);
}

T_MAIN(cmocka_unit_test(weight_gradient_in_parts_has_the_bits_of_one),
       cmocka_unit_test(weight_gradient_of_a_part_is_where_it_says),
       cmocka_unit_test(step_grain_by_grain_gives_the_bits_of_one_part),
       cmocka_unit_test(slices_of_time_give_the_bits_of_one_part), cmocka_unit_test(step_leaves_padded_lanes_zero),
       cmocka_unit_test(forward_of_a_row_does_not_depend_on_the_others))
