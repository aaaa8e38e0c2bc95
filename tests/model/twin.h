/* twin.h - f64 reference of a network: forward only, canonical tensors, plain loops. Gradients by central differences are
 * accurate to about 1e-9, so the f32 gradients of the layers can be compared with them. */
#ifndef STRETTO_TESTS_MODEL_TWIN_H
#define STRETTO_TESTS_MODEL_TWIN_H

#include "model/cell/cell.h"
#include "rig.h"

struct twin {
    const struct rig *g;
    struct arena arena;
    f64 *buf[NET_BUFS]; /* [T][B][F], not padded; ids stay in the rig */
    f64 *w[NET_OPS][8]; /* canonical tensors */
    struct tensor_info info[NET_OPS][8];
    i32 nw[NET_OPS];
    f64 loss;
};

static inline f64 *twin_new_array(struct twin *t, i64 n) {
    f64 *p = arena_new(&t->arena, (size_t)lmax(1, n) * sizeof *p);
    assert_non_null(p);
    return p;
}

static inline i64 twin_size(const struct tensor_info *t) { return (i64)t->rows * imax(1, t->cols); }

static inline void twin_new(struct twin *t, const struct rig *g) {
    const struct net *n = g->n;
    *t = (struct twin){.g = g};
    for (i32 b = 0; b < n->nbuf; b++) {
        const struct buf *u = &n->buf[b];
        t->buf[b] = twin_new_array(t, (i64)u->T * g->r.B * u->F);
        for (i64 at = 0; u->input && !u->ids && at < (i64)u->T * g->r.B; at++)
            for (i32 i = 0; i < u->F; i++) t->buf[b][at * u->F + i] = (f64)g->buf[b][at * buf_fp(u) + i];
    }
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        t->nw[l] = op->layer->tensors ? op->layer->tensors(op, t->info[l]) : 0;
        for (i32 i = 0; i < t->nw[l]; i++) {
            i64 size = twin_size(&t->info[l][i]);
            f32 *one = arena_new(&t->arena, (size_t)size * sizeof *one);
            layer_store(op, i, g->theta + op->theta0, one);
            t->w[l][i] = twin_new_array(t, size);
            for (i64 j = 0; j < size; j++) t->w[l][i][j] = (f64)one[j];
        }
    }
}

static inline void twin_free(struct twin *t) { arena_free(&t->arena); }

static inline f64 logistic(f64 x) { return 1 / (1 + exp(-x)); }

/* The same for a diagonal cell: x side zx with bias, canonical tensors w (rows of the state from w[2] on). */
static inline void twin_diagonal(const struct cell *cell, i32 H, const f64 *zx, f64 *const *w, f64 *h, f64 *c) {
    for (i32 u = 0; u < H; u++) {
        const f64 *x = zx + u, *a = cell->state_rows > 0 ? w[2] + u : NULL, *p = cell->state_rows > 1 ? w[3] + u : NULL;
        if (!strcmp(cell->name, "paragru")) {
            f64 z = logistic(x[0] + a[0] * h[u]), r = logistic(x[H] + a[H] * h[u]);
            h[u] = (1 - z) * h[u] + z * tanh(x[2 * H] + a[2 * H] * (h[u] * r));
        } else if (!strcmp(cell->name, "paralstm")) {
            f64 f = logistic(x[0] + a[0] * h[u] + p[0] * c[u]), z = tanh(x[H] + a[H] * h[u]);
            c[u] = f * c[u] + (1 - f) * z;
            h[u] = logistic(x[2 * H] + a[2 * H] * h[u] + p[H] * c[u]) * tanh(c[u]);
        } else if (!strcmp(cell->name, "minlstm")) {
            f64 f = logistic(x[0]), i = logistic(x[H]);
            h[u] = f / (f + i) * h[u] + i / (f + i) * x[2 * H];
        } else {
            print_error("cell %s has no f64 twin in tests/model/twin.h\n", cell->name);
            fail();
        }
    }
}

/* One step of a cell for one row: x side zx and h side zh [G*H] with their biases; h and c are replaced. */
static inline void twin_cell(const struct cell *cell, i32 H, const f64 *zx, const f64 *zh, f64 *h, f64 *c) {
    for (i32 u = 0; u < H; u++) {
        const f64 *x = zx + u, *y = zh + u;
        if (cell->kind == CELL_LSTM) {
            f64 i = logistic(x[0] + y[0]), f = logistic(x[H] + y[H]), g = tanh(x[2 * H] + y[2 * H]),
                o = logistic(x[3 * H] + y[3 * H]);
            c[u] = f * c[u] + i * g;
            h[u] = o * tanh(c[u]);
        } else if (cell->kind == CELL_GRU) {
            f64 r = logistic(x[0] + y[0]), z = logistic(x[H] + y[H]), n = tanh(x[2 * H] + r * y[2 * H]);
            h[u] = (1 - z) * n + z * h[u];
        } else {
            h[u] = tanh(x[0] + y[0]);
        }
    }
}

static inline void twin_matvec(i32 rows, i32 cols, const f64 *w, const f64 *bias, const f64 *x, f64 *z) {
    for (i32 j = 0; j < rows; j++) {
        z[j] = bias ? bias[j] : 0;
        for (i32 k = 0; k < cols; k++) z[j] += w[(i64)j * cols + k] * x[k];
    }
}

/* A step of a row on input x and something more of the x side (or NULL); canonical tensors w. */
static inline void twin_step(const struct cell *cell, i32 I, i32 H, f64 *const *w, const f64 *x, const f64 *more, f64 *h,
                             f64 *c) {
    f64 zx[512], zh[512];
    i32 GH = cell->gates * H;
    twin_matvec(GH, I, w[0], w[cell->diagonal ? 1 : 2], x, zx);
    for (i32 j = 0; more && j < GH; j++) zx[j] += more[j];
    if (cell->diagonal) {
        twin_diagonal(cell, H, zx, w, h, c);
    } else {
        twin_matvec(GH, H, w[1], w[3], h, zh);
        twin_cell(cell, H, zx, zh, h, c);
    }
}

static inline i32 twin_id(const struct twin *t, i32 buf, i64 at) { return ((const i32 *)(const void *)t->g->buf[buf])[at]; }

/* Steps of row b: input i of an op, or all. */
static inline i32 twin_length(const struct twin *t, const struct op *op, i32 i, i32 b) {
    return op->spec.in[i] >= 0 ? twin_id(t, op->spec.in[i], b) : op->T;
}

static inline void twin_recurrent(struct twin *t, const struct op *op) {
    const struct cell *cell = cell_of(op->spec.cell);
    i32 B = t->g->r.B, H = op->F, I = op->I;
    f64 **w = t->w[op->l], h[128], c[128], *end = t->buf[op->end];
    const f64 *start = op->spec.in[1] >= 0 ? t->buf[op->spec.in[1]] : NULL;
    for (i32 b = 0; b < B; b++) {
        for (i32 u = 0; u < H; u++) {
            h[u] = start ? start[(i64)b * H + u] : 0;
            c[u] = start && cell->states > 1 ? start[((i64)B + b) * H + u] : 0;
        }
        i32 n = twin_length(t, op, 2, b);
        for (i32 s = n; s < op->T; s++) memset(t->buf[op->out] + ((i64)s * B + b) * H, 0, (size_t)H * sizeof *h);
        for (i32 s = 0; s < n; s++) {
            twin_step(cell, I, H, w, t->buf[op->spec.in[0]] + ((i64)s * B + b) * I, NULL, h, c);
            memcpy(t->buf[op->out] + ((i64)s * B + b) * H, h, (size_t)H * sizeof *h);
        }
        memcpy(end + (i64)b * H, h, (size_t)H * sizeof *h);
        if (cell->states > 1) memcpy(end + ((i64)B + b) * H, c, (size_t)H * sizeof *c);
    }
}

static inline void twin_projected(struct twin *t, const struct op *op) {
    i32 B = t->g->r.B, H = op->spec.hidden, P = op->F, I = op->I;
    f64 **w = t->w[op->l], zx[512], zh[512], h[128], m[128], c[128];
    for (i32 b = 0; b < B; b++) {
        memset(h, 0, sizeof h);
        memset(c, 0, sizeof c);
        for (i32 s = 0, n = twin_length(t, op, 2, b); s < op->T; s++) {
            f64 *y = t->buf[op->out] + ((i64)s * B + b) * P;
            memset(y, 0, (size_t)P * sizeof *y);
            if (s >= n) continue;
            twin_matvec(4 * H, I, w[0], w[2], t->buf[op->spec.in[0]] + ((i64)s * B + b) * I, zx);
            twin_matvec(4 * H, P, w[1], w[3], h, zh);
            twin_cell(cell_of(CELL_LSTM), H, zx, zh, m, c);
            twin_matvec(P, H, w[4], NULL, m, h);
            memcpy(y, h, (size_t)P * sizeof *h);
        }
        memcpy(t->buf[op->end] + (i64)b * P, h, (size_t)P * sizeof *h);
    }
}

/* The rig's random numbers decide where the truth is fed back. */
static inline void twin_unroll(struct twin *t, const struct op *op) {
    const struct run *r = &t->g->r;
    const struct cell *cell = cell_of(op->spec.cell);
    const i32 *in = op->spec.in;
    i32 B = r->B, H = op->spec.hidden, I = op->I, N = op->F, w = t->g->n->buf[in[1]].F, fed = 0, n = cell_tensors(cell);
    f64 **W = t->w[op->l], h[128], c[128], x[64];
    for (i32 q = 1; q < op->spec.nquantile; q++)
        if (fabsf(op->spec.quantile[q] - 0.5f) < fabsf(op->spec.quantile[fed] - 0.5f)) fed = q;
    for (i32 b = 0; b < B; b++) {
        memcpy(h, t->buf[in[0]] + (i64)b * H, (size_t)H * sizeof *h);
        if (cell->states > 1) memcpy(c, t->buf[in[0]] + ((i64)B + b) * H, (size_t)H * sizeof *c);
        for (i32 s = 0; s < op->T; s++) {
            i64 at = (i64)s * B + b, before = at - B;
            bool truth = s > 0 && in[4] >= 0 && r->train &&
                         rng_uniform(r->seed, RNG_TEACHER, r->step, (u64)op->l << 48 | (u64)before) < op->spec.teacher_forcing;
            for (i32 j = 0; j < w; j++) {
                x[j] = s == 0 ? t->buf[in[1]][(i64)b * w + j] : t->buf[op->out][before * N + fed * w + j];
                if (s > 0 && in[3] >= 0) x[j] += t->buf[in[3]][before * w + j];
                if (truth && !isnan(t->buf[in[4]][before * w + j])) x[j] = t->buf[in[4]][before * w + j];
            }
            if (in[2] >= 0) memcpy(x + w, t->buf[in[2]] + at * (I - w), (size_t)(I - w) * sizeof *x);
            twin_step(cell, I, H, W, x, NULL, h, c);
            twin_matvec(N, H, W[n], W[n + 1], h, t->buf[op->out] + at * N);
        }
    }
}

static inline void twin_reverse(struct twin *t, const struct op *op) {
    i32 B = t->g->r.B, F = op->F;
    const f64 *x = t->buf[op->spec.in[0]];
    for (i32 b = 0; b < B; b++)
        for (i32 s = 0, n = twin_length(t, op, 1, b); s < op->T; s++) {
            f64 *y = t->buf[op->out] + ((i64)s * B + b) * F;
            memset(y, 0, (size_t)F * sizeof *y);
            if (s < n) memcpy(y, x + ((i64)(n - 1 - s) * B + b) * F, (size_t)F * sizeof *y);
        }
    if (op->end >= 0) memcpy(t->buf[op->end], x, (size_t)op->T * (size_t)B * (size_t)F * sizeof *x);
}

static inline void twin_decode(struct twin *t, const struct op *op) {
    const struct cell *cell = cell_of(op->spec.cell);
    i32 B = t->g->r.B, H = op->F, I = op->I, GH = cell->gates * H, dc = I / 2, dp = I - dc, k = op->spec.in[2];
    f64 **w = t->w[op->spec.share], **own = t->w[op->l], zk[512] = {0}, h[128], c[128], e[128];
    const f64 *end = t->buf[op->spec.in[0]];
    for (i32 s = 0; s < op->T; s++)
        for (i32 b = 0; b < B; b++) {
            i64 at = (i64)s * B + b;
            i32 id = op->spec.in[1] >= 0 ? twin_id(t, op->spec.in[1], b) : 0;
            memcpy(e, own[0] + (i64)s * dp, (size_t)dp * sizeof *e);
            if (dc) memcpy(e + dp, own[1] + (i64)id * dc, (size_t)dc * sizeof *e);
            memcpy(h, end + (i64)b * H, (size_t)H * sizeof *h);
            if (cell->states > 1) memcpy(c, end + ((i64)B + b) * H, (size_t)H * sizeof *c);
            i32 nk = k >= 0 ? t->g->n->buf[k].F : 0;
            if (nk) twin_matvec(GH, nk, own[dc ? 2 : 1], NULL, t->buf[k] + at * nk, zk);
            twin_step(cell, I, H, w, e, zk, h, c);
            memcpy(t->buf[op->out] + at * H, h, (size_t)H * sizeof *h);
        }
}

static inline void twin_norm(i32 F, const f64 *x, f64 **w, f64 *y) {
    f64 mean = 0, var = 0;
    for (i32 i = 0; i < F; i++) mean += x[i] / F;
    for (i32 i = 0; i < F; i++) var += (x[i] - mean) * (x[i] - mean) / F;
    for (i32 i = 0; i < F; i++) y[i] = (x[i] - mean) / sqrt(var + 1e-5) * w[0][i] + w[1][i];
}

/* Negative log-likelihoods as textbooks have them, by libm's lgamma; false = the loss is no distribution. */
static inline bool twin_likelihood(const struct op *op, const f64 *pred, i32 j, f64 base, f64 y, f64 *out) {
    const char *name = op->layer->name + strlen("loss_");
    const f64 at = base + pred[j], wide = op->spec.nquantile > 1 ? log1p(exp(pred[op->F + j])) : 0, pi = acos(-1);
    if (!strcmp(name, "normal")) {
        const f64 s = 1e-3 + wide, e = (y - at) / s;
        *out = log(s * sqrt(2 * pi)) + e * e / 2;
    } else if (!strcmp(name, "student_t")) {
        const f64 s = 1e-3 + wide, nu = 2.001 + log1p(exp(pred[2 * op->F + j])), e = (y - at) / s;
        *out = -log(tgamma((nu + 1) / 2) / tgamma(nu / 2) / sqrt(nu * pi) / s * pow(1 + e * e / nu, -(nu + 1) / 2));
    } else if (!strcmp(name, "poisson")) {
        *out = exp(at) - y * at + lgamma(y + 1);
    } else if (!strcmp(name, "negative_binomial")) {
        const f64 r = 1 / (1e-4 + wide), p = r / (r + exp(at));
        *out = -(lgamma(y + r) - lgamma(r) - lgamma(y + 1) + r * log(p) + y * log(1 - p));
    } else {
        return false;
    }
    return true;
}

static inline f64 twin_loss_cell(const struct op *op, const f64 *pred, i32 j, f64 base, f64 target) {
    const char *name = op->layer->name;
    f64 e = pred[j] + base - target, sum = 0;
    if (isnan(target)) return 0;
    if (!strcmp(name, "loss_mse")) return e * e;
    if (!strcmp(name, "loss_mae")) return fabs(e);
    if (twin_likelihood(op, pred, j, base, target, &sum)) return sum;
    for (i32 i = 0; i < op->spec.nquantile; i++) {
        f64 q = (f64)op->spec.quantile[i];
        e = target - base - pred[i * op->F + j];
        sum += 2 * dmax(q * e, (q - 1) * e) / op->spec.nquantile;
    }
    return sum;
}

/* Row `at` = t*B + b of every layer that works row by row. */
static inline void twin_row(struct twin *t, const struct op *op, i64 at) {
    const struct net *n = t->g->n;
    const char *name = op->layer->name;
    const i32 *in = op->spec.in;
    i32 I = n->buf[in[0]].F, F = op->F, B = t->g->r.B;
    const f64 *x = t->buf[in[0]] + at * I, *x1 = in[1] >= 0 ? t->buf[in[1]] : NULL;
    if (op->layer->nin == 2 && in[1] >= 0 && !n->buf[in[1]].ids) x1 += (n->buf[in[1]].T == 1 ? at % B : at) * n->buf[in[1]].F;
    f64 *y = op->out >= 0 ? t->buf[op->out] + at * F : NULL;
    if (!strcmp(name, "dense")) {
        twin_matvec(F, I, t->w[op->l][0], t->w[op->l][1], x, y);
        for (i32 j = 0; j < F; j++)
            y[j] = op->spec.act == ACT_TANH ? tanh(y[j]) : op->spec.act == ACT_RELU ? fmax(0, y[j]) : y[j];
    } else if (!strcmp(name, "embed")) {
        memcpy(y, t->w[op->l][0] + (i64)twin_id(t, in[0], at) * F, (size_t)F * sizeof *y);
    } else if (!strcmp(name, "last")) {
        const i32 from = in[1] >= 0 ? twin_id(t, in[1], at) : (i32)at;
        for (i32 j = 0; j < F; j++) y[j] = from >= 0 ? t->buf[in[0]][(i64)from * F + j] : 0;
    } else if (!strcmp(name, "concat")) {
        for (i32 j = 0; j < F; j++) y[j] = j < I ? x[j] : x1[j - I];
    } else if (!strcmp(name, "add")) {
        for (i32 j = 0; j < F; j++) y[j] = x[j] + x1[j];
    } else if (!strcmp(name, "norm")) {
        twin_norm(F, x, t->w[op->l], y);
    } else if (!strcmp(name, "dropout")) { /* the rig's mask: a dropped value is 0 there */
        f64 keep = 65536 - round((f64)op->spec.dropout * 65536);
        for (i32 j = 0; j < F; j++) y[j] = t->g->buf[op->out][at * round_up(F, LANES) + j] != 0 ? x[j] * 65536 / keep : 0;
    } else if (!strncmp(name, "loss_", 5)) {
        for (i32 j = 0; j < F; j++)
            t->loss += twin_loss_cell(op, x, j, in[2] >= 0 ? t->buf[in[2]][at * F + j] : 0, t->buf[in[1]][at * F + j]);
    } else {
        print_error("layer %s has no f64 twin in tests/model/twin.h\n", name);
        fail();
    }
}

static inline f64 twin_loss(struct twin *t) {
    const struct net *n = t->g->n;
    t->loss = 0;
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        if (!strcmp(op->layer->name, "recurrent"))
            twin_recurrent(t, op);
        else if (!strcmp(op->layer->name, "decode"))
            twin_decode(t, op);
        else if (!strcmp(op->layer->name, "projected"))
            twin_projected(t, op);
        else if (!strcmp(op->layer->name, "unroll"))
            twin_unroll(t, op);
        else if (!strcmp(op->layer->name, "reverse"))
            twin_reverse(t, op);
        else
            for (i64 at = 0; at < (i64)op->T * t->g->r.B; at++) twin_row(t, op, at);
    }
    return t->loss * (f64)t->g->r.loss_scale;
}

#endif
