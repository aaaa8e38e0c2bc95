/* t_grad.c - gradients of whole networks against central differences of the f64 twin; losses against the twin's value. */
#include "nets.h"
#include "twin.h"

/* Of the largest entry of a tensor, or of a hundredth of the largest of all: a tensor of one entry may be a difference of others.
 */
static const f64 tolerance = 5e-6;

/* d loss / d tensor i of op l by the twin, every `stride`-th entry. */
static f64 *differences(struct twin *t, i32 l, i32 i, i64 stride) {
    i64 size = twin_size(&t->info[l][i]);
    f64 *d = twin_new_array(t, size + 1), step = 1e-6;
    for (i64 j = 0; j < size; j += stride) {
        f64 *w = &t->w[l][i][j], keep = *w;
        *w = keep + step;
        f64 up = twin_loss(t);
        *w = keep - step;
        d[j] = (up - twin_loss(t)) / (2 * step);
        *w = keep;
    }
    return d;
}

/* PyTorch's bias_hh equals bias_ih where the cell adds them; the packed gradient has the sum once, in bias_ih. */
static void only_split_bias(const struct op *op, f64 *want) {
    const struct cell *c = cell_of(op->spec.cell);
    i32 n = (c->gates - (c->split_last ? 1 : 0)) * op->F;
    memset(want, 0, (size_t)n * sizeof *want);
}

static void compare(const struct rig *g, struct twin *t, i32 l, const f32 *grad, f32 floor) {
    const struct op *op = &g->n->op[l];
    for (i32 i = 0; i < t->nw[l]; i++) {
        i64 size = twin_size(&t->info[l][i]);
        f32 *got = arena_new(&t->arena, (size_t)(size + 1) * sizeof *got);
        op->layer->store(op, i, grad + op->theta0, got);
        i64 stride = t_few() ? 7 : 1;
        f64 *want = differences(t, l, i, stride);
        f32 largest = floor;
        for (i64 j = 0; j < size; j++) {
            largest = fmaxf(largest, fabsf(got[j]));
            if (j % stride) got[j] = 0;
        }
        if (!strcmp(op->layer->name, "recurrent") && i == 3) only_split_bias(op, want);
        want[size] = (f64)(got[size] = largest);
        t_near64(t->info[l][i].name, got, want, size + 1, tolerance);
    }
}

static void check(const struct net *n, const struct kern *k, i32 B, i32 grain) {
    struct rig g;
    struct twin t;
    rig_new(&g, n, k, B, grain);
    const struct op *loss = &n->op[n->nop - 1];
    g.buf[loss->spec.in[1]][0] = NAN; /* a missing target cell */
    g.r.loss_scale = 1.0f / 64;
    rig_step(&g, B, false);
    twin_new(&t, &g);
    f64 want = twin_loss(&t);
    assert_true(fabs(rig_loss(&g) - want) <= 2e-6 * fabs(want));
    f32 *grad = rig_floats(&g, n->ntheta), most = 0;
    for (i32 j = 0; j < g.r.ngrain; j++)
        for (i64 i = 0; i < n->ntheta; i++) grad[i] += g.r.grad[j * n->ntheta + i];
    for (i64 i = 0; i < n->ntheta; i++) most = fmaxf(most, fabsf(grad[i]));
    for (i32 l = 0; l < n->nop; l++) compare(&g, &t, l, grad, most / 100);
    twin_free(&t);
    rig_free(&g);
}

static const struct shape shapes[] = {
    /* B grain T  I   H  steps w vocab nk */
    {1, 1, 1, 1, 1, 1, 1, 0, 0},   {5, 2, 3, 4, 3, 2, 5, 3, 0},  {7, 4, 2, 17, 16, 3, 3, 2, 2},
    {3, 8, 4, 3, 17, 2, 17, 5, 1}, {9, 3, 5, 2, 5, 1, 4, 1, 17}, {4, 2, 2, 5, 2, 4, 2, 300, 0},
};

TEST(long_net_gradient_equals_twin_every_cell_and_shape) {
    static const char *const loss[] = {"loss_mse", "loss_mae", "loss_quantile"};
    for (i32 cell = 0; cell < CELL_NKIND; cell++)
        for (u32 s = 0; s < COUNT(shapes); s++) {
            struct net n;
            nets_long(&n, shapes[s], (enum cell_kind)cell, loss[((u32)cell + s) % 3], s % 2 ? 0.3f : 0);
            check(&n, kern_best(), shapes[s].B, shapes[s].grain);
        }
}

TEST(short_net_gradient_equals_twin_every_cell_and_shape) {
    for (i32 cell = 0; cell < CELL_NKIND; cell++)
        for (u32 s = 0; s < COUNT(shapes); s++) {
            struct net n;
            nets_short(&n, shapes[s], (enum cell_kind)cell, s % 2 ? "loss_mse" : "loss_quantile");
            check(&n, kern_best(), shapes[s].B, shapes[s].grain);
        }
}

TEST(mixed_net_gradient_equals_twin_every_cell_and_shape) {
    for (i32 cell = 0; cell < CELL_NKIND; cell++)
        for (u32 s = 0; s < COUNT(shapes); s++) {
            struct net n;
            nets_mixed(&n, shapes[s], (enum cell_kind)cell);
            check(&n, kern_best(), shapes[s].B, shapes[s].grain);
        }
}

TEST(gradient_equals_twin_on_every_instruction_set) {
    for (i32 a = 0; a < KERN_NARCH; a++) {
        const struct kern *k = kern_get((enum kern_arch)a);
        struct net n;
        nets_long(&n, shapes[3], CELL_LSTM, "loss_mse", 0.5f);
        if (k) check(&n, k, 6, 4);
        nets_mixed(&n, shapes[2], CELL_GRU);
        if (k) check(&n, k, 3, 3);
    }
}

T_MAIN(cmocka_unit_test(long_net_gradient_equals_twin_every_cell_and_shape),
       cmocka_unit_test(short_net_gradient_equals_twin_every_cell_and_shape),
       cmocka_unit_test(mixed_net_gradient_equals_twin_every_cell_and_shape),
       cmocka_unit_test(gradient_equals_twin_on_every_instruction_set))
