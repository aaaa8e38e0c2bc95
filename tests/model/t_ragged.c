/* t_ragged.c - rows of different lengths and reversed layers: gradients against the f64 reference; a row of a mixed batch gives
 * the bits it gives alone; lengths out of range or order are refused. */
#include <stdio.h>

#include "grad.h"

static const i32 lengths[] = {6, 6, 5, 3, 3, 1, 0, 0, 0}; /* of at most T = 6 steps */
enum { T = 6 };

static i32 find_buf(const struct net *n, const char *name) {
    for (i32 b = 0; b < n->nbuf; b++)
        if (!strcmp(n->buf[b].name, name)) return b;
    return -1;
}

/* Ends of other rows: each of the row that mirrors it, but for one of none, and one whose end is read twice. */
static void fill_from(struct rig *g) {
    const i32 b = find_buf(g->n, "from"), B = g->r.B;
    for (i32 i = 0; i < B && b >= 0; i++) ((i32 *)(void *)g->buf[b])[i] = i == 1 ? -1 : i == 2 ? 0 : B - 1 - i;
}

static void fill_lengths(struct rig *g) {
    i32 b = find_buf(g->n, "length");
    fill_from(g);
    if (b < 0) return;
    for (i32 i = 0; i < g->r.B; i++) ((i32 *)(void *)g->buf[b])[i] = lengths[i * (i32)COUNT(lengths) / g->r.B];
}

static i32 cell_op(struct net *n, const char *name, enum cell_kind cell, i32 x, i32 length, i32 H) {
    struct op_spec c = net_spec("recurrent", name, x);
    c.cell = cell;
    c.hidden = H;
    c.in[2] = length;
    return nets_add(n, &c);
}

/* Two layers that read in both directions, the four end states joined under a head, the outputs of every step under another. */
static void nets_both_ways(struct net *n, enum cell_kind cell, i32 I, i32 H, bool ragged, bool other) {
    net_init(n);
    const i32 from_row = other ? nets_input(n, "from", 1, 1, true) : -1;
    i32 x = nets_dense(n, "seg", nets_input(n, "x", T, I, false), I + 1, ACT_TANH);
    i32 length = ragged ? nets_input(n, "length", 1, 1, true) : -1, state = -1;
    for (i32 k = 0; k < 2; k++) {
        char name[3][24];
        snprintf(name[0], 24, "lstm.%d", k);
        snprintf(name[1], 24, "lstm.%d.reverse", k);
        snprintf(name[2], 24, "turn.%d", k);
        struct op_spec turn = net_spec("reverse", name[2], x), back, join;
        turn.in[1] = length;
        i32 t = nets_add(n, &turn), there = cell_op(n, name[0], cell, n->op[t].end, length, H);
        i32 from = cell_op(n, name[1], cell, n->op[t].out, length, H);
        snprintf(name[0], 24, "back.%d", k);
        back = net_spec("reverse", name[0], n->op[from].out);
        back.in[1] = length;
        snprintf(name[1], 24, "join.%d", k);
        join = net_spec("concat", name[1], n->op[there].out);
        join.in[1] = n->op[nets_add(n, &back)].out;
        x = n->op[nets_add(n, &join)].out;
        for (i32 s = 0; s < 2; s++) {
            snprintf(name[0], 24, "last.%d.%d", k, s);
            struct op_spec last = net_spec("last", name[0], n->op[s ? from : there].end);
            last.in[1] = s ? from_row : -1;
            i32 h = n->op[nets_add(n, &last)].out;
            snprintf(name[1], 24, "ends.%d.%d", k, s);
            struct op_spec ends = net_spec("concat", name[1], h);
            ends.in[1] = state;
            state = state < 0 ? h : n->op[nets_add(n, &ends)].out;
        }
    }
    struct op_spec sum = net_spec("add", "sum", nets_dense(n, "each", x, 3, ACT_NONE));
    sum.in[1] = nets_dense(n, "state", state, 3, ACT_NONE);
    nets_loss(n, "loss_mse", n->op[nets_add(n, &sum)].out, T, 3, false);
    T_OK(net_check(n));
}

/* An initial state, lengths, every step under the head: what a row of length 0 hands through is its initial state. */
static void nets_started(struct net *n, enum cell_kind cell, i32 I, i32 H) {
    i32 states = cell_of(cell)->states;
    net_init(n);
    i32 x = nets_dense(n, "seg", nets_input(n, "x", T, I, false), I, ACT_TANH);
    struct op_spec c = net_spec("recurrent", "cell", x);
    c.in[1] = nets_dense(n, "start", nets_input(n, "static", states, 3, false), H, ACT_TANH);
    c.in[2] = nets_input(n, "length", 1, 1, true);
    c.cell = cell;
    c.hidden = H;
    i32 l = nets_add(n, &c);
    struct op_spec last = net_spec("last", "last", n->op[l].end), both = net_spec("add", "both", n->op[l].out);
    both.in[1] = n->op[nets_add(n, &last)].out;
    nets_loss(n, "loss_mse", nets_dense(n, "head", n->op[nets_add(n, &both)].out, 2, ACT_NONE), T, 2, false);
    T_OK(net_check(n));
}

TEST(both_ways_gradient_equals_twin_every_cell) {
    static const i32 shape[][3] = {{1, 1, 9}, {4, 17, 3}, {17, 5, 2}}; /* I H B */
    for (i32 cell = 0; cell < cell_count(); cell++)
        for (u32 s = 0; s < COUNT(shape); s++)
            for (i32 ragged = s == 1; ragged < 2; ragged++) {
                struct net n;
                nets_both_ways(&n, (enum cell_kind)cell, shape[s][0], shape[s][1], ragged, false);
                grad_check(&n, kern_best(), shape[s][2], 3, fill_lengths, 5e-6);
            }
}

/* Ends that are read in other rows than their own; parts of any width and order write rows of their own, and the same bits. */
TEST(ends_of_other_rows_have_the_gradient_of_the_twin) {
    static const i32 width[] = {9, 3, 6};
    struct net n;
    struct rig whole, cut;
    nets_both_ways(&n, CELL_LSTM, 3, 5, true, true);
    grad_check(&n, kern_best(), 9, 3, fill_lengths, 5e-6);
    rig_new(&whole, &n, kern_best(), 9, 3);
    rig_new(&cut, &n, kern_best(), 9, 3);
    fill_lengths(&whole);
    fill_lengths(&cut);
    rig_step(&whole, 9, false);
    for (u32 i = 0; i < COUNT(width); i++) {
        rig_step(&cut, width[i], i > 0);
        assert_memory_equal(cut.grad, whole.grad, (size_t)(cut.r.ngrain * n.ntheta) * sizeof(f32));
    }
    rig_free(&whole);
    rig_free(&cut);
}

TEST(ragged_gradient_equals_twin_on_every_instruction_set) {
    for (i32 a = 0; a < KERN_NARCH; a++)
        for (i32 cell = 0; cell < cell_count(); cell++) {
            const struct kern *k = kern_get((enum kern_arch)a);
            struct net n;
            nets_started(&n, (enum cell_kind)cell, 5, 17);
            if (k) grad_check(&n, k, 9, 4, fill_lengths, 5e-6);
        }
}

/* Row b of every input as every row of another batch. */
static void only_row(struct rig *few, const struct rig *many, i32 b) {
    const struct net *n = many->n;
    for (i32 i = 0; i < n->nbuf; i++) {
        if (!n->buf[i].input) continue;
        i64 row = n->buf[i].ids ? 1 : buf_fp(&n->buf[i]);
        for (i64 at = 0; at < (i64)n->buf[i].T * few->r.B; at++)
            memcpy(few->buf[i] + at * row, many->buf[i] + (at / few->r.B * many->r.B + b) * row, (size_t)row * 4);
    }
}

static void same_row(const struct net *n, i32 i, const char *what, const f32 *few, i32 nfew, const f32 *many, i32 nmany, i32 b) {
    i64 row = buf_fp(&n->buf[i]);
    for (i32 t = 0; few && !n->buf[i].ids && t < n->buf[i].T; t++)
        if (memcmp(few + (i64)t * nfew * row, many + ((i64)t * nmany + b) * row, (size_t)row * 4)) {
            print_error("%s of \"%s\": row %d of %d differs in a batch of %d, step %d\n", what, n->buf[i].name, b, nmany, nfew,
                        t);
            fail();
        }
}

/* Values of a row are those of the row alone; gradients too, but a batch of one row may add in another order than larger ones. */
TEST(row_of_a_mixed_batch_gives_the_bits_it_gives_alone) {
    for (i32 cell = 0; cell < cell_count(); cell++)
        for (i32 size = 1; size < 3; size++) {
            struct net n;
            struct rig many, few;
            nets_both_ways(&n, (enum cell_kind)cell, 4, 17, true, false);
            rig_new(&many, &n, kern_best(), 9, 2);
            rig_new(&few, &n, kern_best(), size, 1);
            fill_lengths(&many);
            rig_step(&many, 2, true);
            for (i32 b = 0; b < 9; b++) {
                only_row(&few, &many, b);
                rig_step(&few, size, false);
                for (i32 i = 0; i < n.nbuf; i++) {
                    same_row(&n, i, "values", few.buf[i], size, many.buf[i], 9, b);
                    if (size > 1) same_row(&n, i, "gradient", few.dbuf[i], size, many.dbuf[i], 9, b);
                }
            }
            rig_free(&many);
            rig_free(&few);
        }
}

TEST(lengths_out_of_order_are_taken_for_possible_ones) {
    static const i32 order[] = {3, 2, 4};
    i32 live[6]; /* taken for the nearest that is possible */
    assert_non_null(layer_live(6, 3, order, live));
    for (i32 t = 0; t < 6; t++) assert_in_range(live[t], 0, 3);
    static const i32 full[] = {6, 6};
    assert_null(layer_live(6, 2, full, live));
}

T_MAIN(cmocka_unit_test(both_ways_gradient_equals_twin_every_cell),
       cmocka_unit_test(ends_of_other_rows_have_the_gradient_of_the_twin),
       cmocka_unit_test(ragged_gradient_equals_twin_on_every_instruction_set),
       cmocka_unit_test(row_of_a_mixed_batch_gives_the_bits_it_gives_alone),
       cmocka_unit_test(lengths_out_of_order_are_taken_for_possible_ones))
