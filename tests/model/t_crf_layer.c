/* t_crf_layer.c - the layer `crf` against all paths in f64: loss, gradients of scores and weights, lengths, cuts of the
 * of the batch, sizes beyond a panel. */
#include <math.h>

#include "nets.h"
#include "rig.h"

enum { T = 4, B = 5, I = 3, MOST = 24 };

static const i32 length[B] = {4, 4, 3, 1, 0};

/* x -> dense -> crf over L tags. */
static void build(struct net *n, i32 L) {
    net_init(n);
    const i32 x = nets_input(n, "x", T, I, false), u = nets_dense(n, "scores", x, L, ACT_NONE);
    struct op_spec s = net_spec("crf", "crf", u);
    s.in[1] = nets_input(n, "tags", T, 1, true);
    s.in[2] = nets_input(n, "length", 1, 1, true);
    nets_add(n, &s);
    T_OK(net_check(n));
}

static void fill(struct rig *g, i32 L) {
    i32 *tag = (i32 *)(void *)g->buf[g->n->op[1].spec.in[1]], *len = (i32 *)(void *)g->buf[g->n->op[1].spec.in[2]];
    for (i32 i = 0; i < T * B; i++) tag[i] = (i * 7 + 3) % L;
    memcpy(len, length, sizeof length);
}

/* Weights in f64: transitions, start, end. */
struct weights {
    f64 a[MOST][MOST], start[MOST], end[MOST];
};

static struct weights weights_of(const struct rig *g, i32 L) {
    struct weights w;
    const struct op *op = &g->n->op[1];
    for (i32 i = 0; i < L; i++) {
        for (i32 j = 0; j < L; j++) w.a[i][j] = (f64)g->theta[op->theta0 + op->layer->place(op, 0, i, j)];
        w.start[i] = (f64)g->theta[op->theta0 + op->layer->place(op, 1, i, 0)];
        w.end[i] = (f64)g->theta[op->theta0 + op->layer->place(op, 2, i, 0)];
    }
    return w;
}

/* Score of a path of row b. */
static f64 score(const struct rig *g, const struct weights *w, i32 b, i32 n, const i32 *y) {
    const struct op *op = &g->n->op[1];
    const i64 Lp = round_up(op->I, LANES);
    f64 s = w->start[y[0]] + w->end[y[n - 1]];
    for (i32 t = 0; t < n; t++) s += (f64)g->buf[op->spec.in[0]][((i64)t * B + b) * Lp + y[t]];
    for (i32 t = 1; t < n; t++) s += w->a[y[t - 1]][y[t]];
    return s;
}

/* Sum over rows of log Z - score of the true tags, by all L^n paths. */
static f64 loss_by_paths(const struct rig *g, const struct weights *w, i32 L) {
    const i32 *tag = (const i32 *)(const void *)g->buf[g->n->op[1].spec.in[1]];
    f64 total = 0;
    for (i32 b = 0; b < B; b++) {
        const i32 n = length[b];
        i32 y[T] = {0}, paths = n > 0;
        f64 z = 0;
        for (i32 t = 0; t < n; t++) paths *= L;
        for (i32 k = 0; k < paths; k++) {
            for (i32 t = 0, rest = k; t < n; t++, rest /= L) y[t] = rest % L;
            z += exp(score(g, w, b, n, y));
        }
        for (i32 t = 0; t < n; t++) y[t] = tag[t * B + b];
        if (n > 0) total += log(z) - score(g, w, b, n, y);
    }
    return total;
}

static f64 slope(const struct rig *g, struct weights *w, f64 *at, i32 L) {
    const f64 keep = *at, step = 1e-5;
    *at = keep + step;
    const f64 up = loss_by_paths(g, w, L);
    *at = keep - step;
    const f64 down = loss_by_paths(g, w, L);
    *at = keep;
    return (up - down) / (2 * step);
}

static f64 summed(const struct rig *g, i64 at) {
    f64 sum = 0;
    for (i32 k = 0; k < g->r.ngrain; k++) sum += (f64)g->grad[k * g->n->ntheta + at];
    return sum;
}

TEST(loss_and_weight_gradients_equal_the_enumeration) {
    for (i32 L = 1; L <= 4; L++) {
        struct net n;
        struct rig g;
        build(&n, L);
        rig_new(&g, &n, kern_best(), B, 2);
        fill(&g, L);
        rig_step(&g, B, false);
        struct weights w = weights_of(&g, L);
        const struct op *op = &n.op[1];
        const f64 want = loss_by_paths(&g, &w, L);
        assert_true(fabs(rig_loss(&g) - want) <= 1e-5 * (fabs(want) + 1));
        for (i32 i = 0; i < L; i++) {
            for (i32 j = 0; j < L; j++)
                assert_true(fabs(summed(&g, op->theta0 + op->layer->place(op, 0, i, j)) - slope(&g, &w, &w.a[i][j], L)) < 1e-5);
            assert_true(fabs(summed(&g, op->theta0 + op->layer->place(op, 1, i, 0)) - slope(&g, &w, &w.start[i], L)) < 1e-5);
            assert_true(fabs(summed(&g, op->theta0 + op->layer->place(op, 2, i, 0)) - slope(&g, &w, &w.end[i], L)) < 1e-5);
        }
        rig_free(&g);
    }
}

/* The gradient of each score by differences; of steps beyond the end of a row it is zero. */
TEST(score_gradients_equal_the_enumeration) {
    enum { L = 3 };
    struct net n;
    struct rig g;
    build(&n, L);
    rig_new(&g, &n, kern_best(), B, 3);
    fill(&g, L);
    g.r.loss_scale = 0.25f;
    rig_step(&g, B, false);
    struct weights w = weights_of(&g, L);
    const i32 u = n.op[1].spec.in[0];
    for (i32 t = 0; t < T; t++)
        for (i32 b = 0; b < B; b++)
            for (i32 y = 0; y < L; y++) {
                f32 *at = &g.buf[u][((i64)t * B + b) * LANES + y], keep = *at;
                *at = keep + 0x1p-6f;
                const f64 up = loss_by_paths(&g, &w, L);
                *at = keep - 0x1p-6f;
                const f64 down = loss_by_paths(&g, &w, L), want = 0.25 * (up - down) / 0x1p-5;
                *at = keep;
                const f64 got = (f64)g.dbuf[u][((i64)t * B + b) * LANES + y];
                assert_true(fabs(got - want) < 5e-5);
                if (t >= length[b]) assert_true(got == 0);
            }
    rig_free(&g);
}

/* Twenty tags fill a panel and a part of a second one; parts of the batch give the same bits; a tag out of range adds nothing. */
TEST(parts_of_the_batch_have_the_same_bits) {
    enum { L = 20 };
    struct net n;
    struct rig whole, cut;
    build(&n, L);
    rig_new(&whole, &n, kern_best(), B, 2);
    rig_new(&cut, &n, kern_best(), B, 2);
    fill(&whole, L);
    fill(&cut, L);
    rig_step(&whole, B, false);
    rig_step(&cut, 2, true);
    assert_memory_equal(cut.grad, whole.grad, (size_t)(cut.r.ngrain * n.ntheta) * sizeof(f32));
    assert_true(rig_loss(&cut) == rig_loss(&whole));
    const f64 before = rig_loss(&whole);
    i32 *tag = (i32 *)(void *)whole.buf[n.op[1].spec.in[1]];
    tag[0] = -1;
    rig_step(&whole, B, false);
    assert_true(rig_loss(&whole) < before && isfinite(rig_loss(&whole)));
    rig_free(&whole);
    rig_free(&cut);
}

T_MAIN(cmocka_unit_test(loss_and_weight_gradients_equal_the_enumeration),
       cmocka_unit_test(score_gradients_equal_the_enumeration),
       cmocka_unit_test(parts_of_the_batch_have_the_same_bits))
