/* registry.c - the list of layers (layers.def and losses.def), and helpers that several layers share. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "model/cell/cell.h"
#include "model/layer.h"

#define LAYER(name) extern const struct layer layer_##name;
#include "model/layer/layers.def"
#undef LAYER
#define LOSS(name) extern const struct layer layer_loss_##name;
#include "model/loss/losses.def"
#undef LOSS

static const struct layer *const all[] = {
#define LAYER(name) &layer_##name,
#include "model/layer/layers.def"
#undef LAYER
#define LOSS(name) &layer_loss_##name,
#include "model/loss/losses.def"
#undef LOSS
};

i32 layer_count(void) { return (i32)COUNT(all); }
const struct layer *layer_at(i32 i) { return all[i]; }

const struct layer *layer_find(const char *name) {
    for (i32 i = 0; i < layer_count(); i++)
        if (!strcmp(all[i]->name, name)) return all[i];
    return NULL;
}

f64 layer_value_flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    (void)n, (void)backward;
    return (f64)op->T * B * op->F;
}

bool layer_on_device(const struct op *op, const struct net *n) {
    (void)op, (void)n;
    return true;
}

err layer_input(const struct net *n, const struct op *op, i32 i, const struct buf **out) {
    if (op->spec.in[i] < 0) return FAIL(E1, "op \"%s\" (%s) has no input %d", op->spec.name, op->layer->name, i);
    *out = &n->buf[op->spec.in[i]];
    if ((*out)->ids) return FAIL(E1, "op \"%s\" (%s): input %d holds category numbers", op->spec.name, op->layer->name, i);
    return 0;
}

err layer_range(const struct op *op, const char *what, i64 v, i64 min, i64 max) {
    if (v >= min && v <= max) return 0;
    return FAIL(E103, "op \"%s\" (%s): %s is %lld, possible is %lld to %lld", op->spec.name, op->layer->name, what, (long long)v,
                (long long)min, (long long)max);
}

err layer_is_lengths(const struct net *n, const struct op *op, i32 i) {
    const struct buf *b = &n->buf[op->spec.in[i]];
    if (b->ids && b->T == 1) return 0;
    return FAIL(E1, "op \"%s\": in[%d] must be lengths of rows, ids [1][B]", op->spec.name, i);
}

const i32 *layer_live(i32 T, i32 B, const i32 *length, i32 *live) {
    i32 n = B;
    for (i32 t = 0; t < T; t++) {
        while (n > 0 && length[n - 1] <= t) n--;
        live[t] = n;
    }
    return n < B ? live : NULL;
}

void layer_tensor(struct tensor_info *t, const struct op *op, const char *what, i32 rows, i32 cols) {
    snprintf(t->name, sizeof t->name, "%s.%s", op->spec.name, what);
    t->rows = rows;
    t->cols = cols;
}

void layer_torch_tensor(struct tensor_info *t, const struct op *op, const char *what, i32 rows, i32 cols) {
    const char *name = op->spec.name, *suffix = strstr(name, ".reverse");
    int stem = suffix ? (int)(suffix - name) : (int)strlen(name), end = stem, layer = 0;
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') end--;
    if (end > 0 && end < stem && name[end - 1] == '.') {
        layer = (int)strtol(name + end, NULL, 10);
        stem = end - 1;
    }
    snprintf(t->name, sizeof t->name, "%.*s.%s_l%d%s", stem, name, what, layer, suffix ? "_reverse" : "");
    t->rows = rows;
    t->cols = cols;
}

f32 layer_uniform(const struct op *op, u64 seed, i64 i, f64 a) {
    return (f32)((2 * (f64)rng_uniform(seed, RNG_INIT, (u32)op->l, (u64)i) - 1) * a);
}

/* PyTorch initializes two biases; if the cell adds them, ours is their sum. */
static i64 dense_init(const struct op *op, const struct cell *c, i32 I, i32 H, u64 seed, f32 *theta) {
    i32 G = c->gates, S = cell_slots(c);
    f64 a = 1 / sqrt(H);
    i64 from[4] = {0, (i64)G * H * I, (i64)G * H * (I + H), (i64)G * H * (I + H + 1)};
    f32 *bias = theta + cell_packed_w(c, I, H);
    for (i32 u = 0; u < H; u++) {
        f32 *w = theta + (i64)(u / LANES) * (I + H) * G * LANES + u % LANES;
        f32 *b = bias + (i64)(u / LANES) * S * LANES + u % LANES;
        for (i32 g = 0; g < G; g++) {
            i64 row = (i64)g * H + u;
            for (i32 k = 0; k < I; k++) w[((i64)k * G + g) * LANES] = layer_uniform(op, seed, from[0] + row * I + k, a);
            for (i32 k = 0; k < H; k++) w[((i64)(I + k) * G + g) * LANES] = layer_uniform(op, seed, from[1] + row * H + k, a);
            b[g * LANES] = layer_uniform(op, seed, from[2] + row, a);
            b[(c->split_last && g == G - 1 ? S - 1 : g) * LANES] += layer_uniform(op, seed, from[3] + row, a);
        }
    }
    return (i64)G * H * (I + H + 2);
}

/* A gate of a diagonal cell sums I inputs and one or two states: the bound uses I + 1. */
static i64 diagonal_init(const struct op *op, const struct cell *c, i32 I, i32 H, u64 seed, f32 *theta) {
    i32 G = c->gates, K = I + c->state_rows;
    f64 a = 1 / sqrt(I + 1);
    f32 *bias = theta + cell_packed_w(c, I, H);
    for (i32 u = 0; u < H; u++)
        for (i32 g = 0; g < G; g++) {
            i64 row = ((i64)g * H + u) * (K + 1);
            f32 *w = theta + ((i64)(u / LANES) * K * G + g) * LANES + u % LANES;
            for (i32 k = 0; k < K; k++)
                if (k <= I || c->peep >> g & 1) w[(i64)k * G * LANES] = layer_uniform(op, seed, row + k, k < I ? a : 0.5);
            bias[((i64)(u / LANES) * G + g) * LANES + u % LANES] = layer_uniform(op, seed, row + K, a);
        }
    return (i64)G * H * (K + 1);
}

i64 layer_cell_init(const struct op *op, const struct cell *c, i32 I, i32 H, u64 seed, f32 *theta) {
    return c->diagonal ? diagonal_init(op, c, I, H, seed, theta) : dense_init(op, c, I, H, seed, theta);
}

f32 layer_normal(const struct op *op, u64 seed, i64 i) { return (f32)rng_normal(seed, RNG_INIT, (u32)op->l, (u64)i); }

i32 layer_cell_tensors(const struct op *op, i32 H, struct tensor_info *out) {
    const struct cell *c = cell_of(op->spec.cell);
    for (i32 i = 0, rows, cols; i < cell_tensors(c); i++) {
        const char *what = cell_tensor(c, i, op->I, H, &rows, &cols);
        layer_torch_tensor(&out[i], op, what, rows, cols);
    }
    return cell_tensors(c);
}

void layer_store(const struct op *op, i32 tensor, const f32 *theta, f32 *canonical) {
    struct tensor_info info[8];
    op->layer->tensors(op, info);
    for (i32 row = 0; row < info[tensor].rows; row++)
        for (i32 col = 0; col < imax(1, info[tensor].cols); col++) {
            const i64 at = op->layer->place(op, tensor, row, col);
            *canonical++ = at < 0 ? 0 : theta[at];
        }
}

void layer_load(const struct op *op, i32 tensor, const f32 *canonical, f32 *theta) {
    struct tensor_info info[8];
    op->layer->tensors(op, info);
    for (i32 row = 0; row < info[tensor].rows; row++)
        for (i32 col = 0; col < imax(1, info[tensor].cols); col++) {
            const i64 at = op->layer->place(op, tensor, row, col);
            if (at < 0)
                theta[~at] += *canonical++;
            else
                theta[at] = *canonical++;
        }
}
