/* grad.h - gradients of a whole network against central differences of its f64 reference (twin.h). */
#ifndef STRETTO_TESTS_MODEL_GRAD_H
#define STRETTO_TESTS_MODEL_GRAD_H

#include "nets.h"
#include "twin.h"

/* d loss / d tensor i of op l by the twin, every `stride`-th entry. */
static inline f64 *grad_differences(struct twin *t, i32 l, i32 i, i64 stride) {
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
static inline void grad_only_split_bias(const struct op *op, f64 *want) {
    const struct cell *c = cell_of(op->spec.cell);
    i32 n = (c->gates - (c->split_last ? 1 : 0)) * op->spec.hidden;
    memset(want, 0, (size_t)n * sizeof *want);
}

static inline bool grad_has_cell(const struct op *op) {
    static const char *const layers[] = {"recurrent", "projected", "unroll"};
    for (size_t i = 0; i < COUNT(layers); i++)
        if (!strcmp(op->layer->name, layers[i])) return true;
    return false;
}

/* Products in bf16: the gradient of a tensor as a vector, at an angle and a distance.  One layer is held to 2e-2 (tests/kern);
 * what went through two layers and a loss may be twice as far off. */
static inline void grad_like(const char *what, const f32 *got, const f64 *want, i64 n, f32 floor) {
    f64 dot = 0, a = 0, b = 0, off = 0;
    for (i64 i = 0; i < n; i++) {
        f64 g = (f64)got[i];
        dot += g * want[i], a += g * g, b += want[i] * want[i], off += (g - want[i]) * (g - want[i]);
    }
    f64 least = (f64)floor * (f64)floor; /* near-zero gradients are not checked */
    if (b < least || (dot >= 0.999 * sqrt(a * b) && off <= 16e-4 * b)) return;
    print_error("%s: cosine %.6f, relative L2 %.2e\n", what, dot / sqrt(a * b), sqrt(off / b));
    fail();
}

/* Errors are of the largest entry of a tensor, or of a hundredth of the largest of all (floor): a tensor of one entry may be a
 * difference of others. */
static inline void grad_compare(const struct rig *g, struct twin *t, i32 l, const f32 *grad, f32 floor, f64 tolerance) {
    const struct op *op = &g->n->op[l];
    for (i32 i = 0; i < t->nw[l]; i++) {
        i64 size = twin_size(&t->info[l][i]), stride = t_few() ? 7 : 1;
        f32 *got = arena_new(&t->arena, (size_t)(size + 1) * sizeof *got);
        layer_store(op, i, grad + op->theta0, got);
        f64 *want = grad_differences(t, l, i, stride);
        f32 largest = floor; /* entries that are not looked at count here */
        for (i64 j = 0; j < size; j++) {
            largest = fmaxf(largest, fabsf(got[j]));
            if (j % stride) got[j] = 0;
        }
        if (grad_has_cell(op) && i == 3 && !cell_of(op->spec.cell)->diagonal) grad_only_split_bias(op, want);
        if (nets_precision != PREC_F32) {
            grad_like(t->info[l][i].name, got, want, size, floor);
            continue;
        }
        want[size] = (f64)(got[size] = largest);
        t_near64(t->info[l][i].name, got, want, size + 1, tolerance);
    }
}

/* One step of the net on kernels k, B rows in grains; fill (or NULL) sets inputs that are not just random numbers. */
static inline void grad_check(const struct net *n, const struct kern *k, i32 B, i32 grain, void (*fill)(struct rig *),
                              f64 tolerance) {
    struct rig g;
    struct twin t;
    rig_new(&g, n, k, B, grain);
    const struct op *loss = &n->op[n->nop - 1];
    if (fill) fill(&g);
    g.buf[loss->spec.in[1]][0] = NAN; /* a missing target cell */
    g.r.loss_scale = 1.0f / 64;
    rig_step(&g, B, false);
    twin_new(&t, &g);
    f64 want = twin_loss(&t);
    assert_true(fabs(rig_loss(&g) - want) <= 2e-6 * fabs(want) * (nets_precision == PREC_F32 ? 1 : 5000));
    f32 *grad = rig_floats(&g, n->ntheta), most = 0;
    for (i32 j = 0; j < g.r.ngrain; j++)
        for (i64 i = 0; i < n->ntheta; i++) grad[i] += g.grad[j * n->ntheta + i];
    for (i64 i = 0; i < n->ntheta; i++) most = fmaxf(most, fabsf(grad[i]));
    for (i32 l = 0; l < n->nop; l++) grad_compare(&g, &t, l, grad, most / 100, tolerance);
    twin_free(&t);
    rig_free(&g);
}

#endif
