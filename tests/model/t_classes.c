/* t_classes.c - the layers `mean` and `cross_entropy` against f64: values, gradients, lengths, unknown classes, cuts of the
 * batch. */
#include <math.h>

#include "nets.h"
#include "rig.h"

enum { T = 4, B = 5, I = 3, K = 20 };

static const i32 length[B] = {4, 4, 3, 1, 0};

/* x -> dense h -> mean over the steps of a row -> dense u -> cross_entropy; whole false: a class at every step. */
static void build(struct net *n, bool whole) {
    net_init(n);
    const i32 x = nets_input(n, "x", T, I, false), h = nets_dense(n, "h", x, K + 1, ACT_TANH);
    struct op_spec mean = net_spec("mean", "mean", h);
    mean.in[1] = nets_input(n, "length", 1, 1, true);
    const i32 in = whole ? n->op[nets_add(n, &mean)].out : h;
    struct op_spec s = net_spec("cross_entropy", "loss", nets_dense(n, "u", in, K, ACT_NONE));
    s.in[1] = nets_input(n, "class", whole ? 1 : T, 1, true);
    nets_add(n, &s);
    T_OK(net_check(n));
}

static i32 *ids_of(const struct rig *g, const char *name) {
    for (i32 i = 0; i < g->n->nbuf; i++)
        if (strcmp(g->n->buf[i].name, name) == 0) return (i32 *)(void *)g->buf[i];
    return NULL;
}

static void make(struct rig *g, const struct net *n, bool whole) {
    rig_new(g, n, kern_best(), B, 2);
    memcpy(ids_of(g, "length"), length, sizeof length);
    for (i32 i = 0; i < (whole ? 1 : T) * B; i++) ids_of(g, "class")[i] = (i * 7 + 3) % K;
    ids_of(g, "class")[1] = -1;
    ids_of(g, "class")[2] = K;
    g->r.loss_scale = 0.25f;
}

static f64 row_loss(const f32 *u, i32 y, i32 k, f64 *slope) {
    f64 sum = 0;
    for (i32 i = 0; i < K; i++) sum += exp((f64)u[i]);
    *slope = exp((f64)u[k]) / sum - (k == y);
    return log(sum) - (f64)u[y];
}

static void compare_loss(bool whole) {
    struct net n;
    struct rig g;
    f64 want = 0, slope;
    build(&n, whole);
    make(&g, &n, whole);
    rig_step(&g, B, false);
    const struct op *op = &n.op[n.nop - 1];
    const i32 u = op->spec.in[0], *y = ids_of(&g, "class");
    const i64 Kp = round_up(K, LANES);
    for (i32 at = 0; at < op->T * B; at++) {
        const f32 *row = g.buf[u] + at * Kp, *d = g.dbuf[u] + at * Kp;
        const bool known = y[at] >= 0 && y[at] < K;
        for (i32 k = 0; k < K; k++) {
            const f64 loss = known ? row_loss(row, y[at], k, &slope) : (slope = 0);
            assert_true(fabs((f64)d[k] - 0.25 * slope) < 1e-6);
            if (k == 0) want += loss;
        }
        for (i64 k = K; k < Kp; k++) assert_true(d[k] == 0);
    }
    assert_true(want > 1 && fabs(rig_loss(&g) - 0.25 * want) < 1e-5 * want);
    rig_free(&g);
}

TEST(loss_and_gradient_of_classes_equal_f64) {
    compare_loss(true);
    compare_loss(false);
}

TEST(mean_and_its_gradient_equal_f64) {
    struct net n;
    struct rig g;
    build(&n, true);
    make(&g, &n, true);
    rig_step(&g, B, false);
    const struct op *op = &n.op[net_find_op(&n, "mean")];
    const i64 Fp = round_up(K + 1, LANES);
    const i32 x = op->spec.in[0];
    for (i32 b = 0; b < B; b++)
        for (i64 i = 0; i < Fp; i++) {
            f64 sum = 0;
            for (i32 t = 0; t < length[b]; t++) sum += (f64)g.buf[x][((i64)t * B + b) * Fp + i];
            const f64 d = (f64)g.dbuf[op->out][b * Fp + i] / imax(1, length[b]);
            assert_true(fabs((f64)g.buf[op->out][b * Fp + i] - sum / imax(1, length[b])) < 1e-6);
            for (i32 t = length[b]; t < T; t++) assert_true(g.dbuf[x][((i64)t * B + b) * Fp + i] == 0);
            for (i32 t = 0; t < length[b]; t++) {
                const f64 y = (f64)g.buf[x][((i64)t * B + b) * Fp + i];
                assert_true(fabs((f64)g.dbuf[x][((i64)t * B + b) * Fp + i] - d * (1 - y * y)) < 1e-6);
            }
        }
    rig_free(&g);
}

TEST(parts_of_the_batch_have_the_same_bits) {
    for (i32 whole = 0; whole < 2; whole++) {
        struct net n;
        struct rig one, cut;
        build(&n, whole);
        make(&one, &n, whole);
        make(&cut, &n, whole);
        rig_step(&one, B, false);
        rig_step(&cut, 2, true);
        assert_memory_equal(cut.grad, one.grad, (size_t)(cut.r.ngrain * n.ntheta) * sizeof(f32));
        assert_true(rig_loss(&cut) == rig_loss(&one));
        rig_free(&one);
        rig_free(&cut);
    }
}

T_MAIN(cmocka_unit_test(loss_and_gradient_of_classes_equal_f64), cmocka_unit_test(mean_and_its_gradient_equal_f64),
       cmocka_unit_test(parts_of_the_batch_have_the_same_bits))
