/* embed.c - embedding lookup: ids i32 [T][B] -> y [T][B][units]. An id outside the vocabulary gives zeros. */
#include "kern/device.h"
#include "model/layer.h"

static err shape(struct net *n, struct op *op) {
    if (op->spec.in[0] < 0 || !n->buf[op->spec.in[0]].ids)
        return FAIL(E1, "op \"%s\" (embed): input 0 must hold category numbers", op->spec.name);
    TRY(layer_range(op, "vocab", op->spec.vocab, 1, 1 << 24));
    op->T = n->buf[op->spec.in[0]].T;
    op->I = 1;
    op->F = op->spec.units;
    op->ntheta = (i64)op->spec.vocab * round_up(op->F, LANES);
    return net_out(n, op->spec.name, op->T, op->F, true, &op->out);
}

static void init(const struct op *op, u64 seed, f32 *theta) {
    i32 Fp = round_up(op->F, LANES);
    for (i32 v = 0; v < op->spec.vocab; v++)
        for (i32 j = 0; j < op->F; j++) theta[(i64)v * Fp + j] = layer_normal(op, seed, (i64)v * op->F + j);
}

/* Table row for flat batch row `at`, or -1. */
static i64 row_of(const struct op *op, const struct run *r, i64 at) {
    i32 id = run_ids(op, r, 0)[at];
    return id >= 0 && id < op->spec.vocab ? id : -1;
}

static struct device_embed on_device_rows(const struct op *op, const struct run *r, struct part p) {
    return (struct device_embed){.vocab = op->spec.vocab,
                                 .Fp = round_up(op->F, LANES),
                                 .t0 = p.t0,
                                 .t1 = p.t1,
                                 .b0 = p.b0,
                                 .b1 = p.b1,
                                 .B = r->B,
                                 .ids = run_ids(op, r, 0)};
}

static void fwd_on_device(const struct op *op, const struct run *r, struct part p) {
    struct device_embed a = on_device_rows(op, r, p);
    a.table = (f32 *)(uintptr_t)(r->theta + op->theta0);
    a.y = r->buf[op->out];
    r->kern->device->embed_fwd(&a);
}

static void bwd_on_device(const struct op *op, const struct run *r, struct part p) {
    for (i32 g = grain_first(r, p); g < grain_end(r, p); g++) {
        struct device_embed a = on_device_rows(op, r, part_grain(r, p, g));
        a.table = grain_grad(r, g, op->theta0);
        a.y = run_dout(r, op->out);
        a.marks = r->touched ? (u8 *)r->touched[g] + op->theta0 / LANES : NULL;
        r->kern->device->embed_bwd(&a);
    }
}

static void fwd(const struct op *op, const struct run *r, struct part p) {
    i64 Fp = round_up(op->F, LANES);
    if (r->kern->device) {
        fwd_on_device(op, r, p);
        return;
    }
    for (i32 t = p.t0; t < p.t1; t++)
        for (i32 b = p.b0; b < p.b1; b++) {
            i64 at = (i64)t * r->B + b, row = row_of(op, r, at);
            f32 *y = r->buf[op->out] + at * Fp;
            if (row >= 0)
                memcpy(y, r->theta + op->theta0 + row * Fp, (size_t)Fp * sizeof *y);
            else
                memset(y, 0, (size_t)Fp * sizeof *y);
        }
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    const f32 *dy = run_dout(r, op->out);
    i64 Fp = round_up(op->F, LANES);
    if (!dy) return;
    if (r->kern->device) {
        bwd_on_device(op, r, p);
        return;
    }
    for (i32 t = p.t0; t < p.t1; t++)
        for (i32 b = p.b0; b < p.b1; b++) {
            i64 at = (i64)t * r->B + b, row = row_of(op, r, at);
            const i32 g = grain_of(r, b);
            if (row < 0) continue;
            r->kern->add(Fp, grain_grad(r, g, op->theta0 + row * Fp), dy + at * Fp);
            grain_touch(r, g, op->theta0 + row * Fp, Fp);
        }
}

static i32 tensors(const struct op *op, struct tensor_info out[8]) {
    layer_tensor(&out[0], op, "weight", op->spec.vocab, op->F);
    return 1;
}

static i64 place(const struct op *op, i32 tensor, i32 row, i32 col) {
    (void)tensor;
    return (i64)row * round_up(op->F, LANES) + col;
}

extern const struct layer layer_embed;
const struct layer layer_embed = {
    .name = "embed",
    .help = "y [T][B][units] = rows of a table [vocab][units] by ids [T][B]",
    .table = true,
    .nin = 1,
    .shape = shape,
    .flops = layer_value_flops,
    .init = init,
    .fwd = fwd,
    .bwd = bwd,
    .on_device = layer_on_device,
    .tensors = tensors,
    .place = place,
};
