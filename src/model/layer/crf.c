/* crf.c - a linear-chain conditional random field over the tags of each sequence (Lafferty, McCallum, Pereira, ICML 2001): a loss
 * with weights of its own.
 *
 * in[0]  u [T][B][L]: score of each tag at each step      in[1]  ids [T][B]: the true tags
 * in[2]  ids [1][B]: steps of each row, longest first, or -1 = T
 *
 *     score of a path  start[y_0] + sum_t u_t[y_t] + sum_t A[y_t-1][y_t] + end[y_n-1]      loss  log sum over all paths - score
 *
 * theta    A [L][Lp] (row: tag before), start [Lp], end [Lp]      derived  their exponentials, A divided by its largest entry
 * saved    alpha [T][B][Lp], scaled to sum 1, then e^(u - max) [T][B][Lp]; so no logarithm is inside the recursion
 * scratch  of a row: beta, e^u beta, its product with A [Lp] each
 *
 * A row without a step, and tags outside of 0..L-1 (a row with such a tag), add nothing. */
#include <math.h>

#include "model/layer.h"

enum { SCRATCH_VECTORS = 3 };

static i64 padded(const struct op *op) { return round_up(op->I, LANES); }

static err shape(struct net *n, struct op *op) {
    const struct buf *u, *tags = &n->buf[op->spec.in[1] < 0 ? 0 : op->spec.in[1]];
    TRY(layer_input(n, op, 0, &u));
    if (op->spec.in[1] < 0 || !tags->ids || tags->T != u->T)
        return FAIL(E1, "op \"%s\" (crf): input 1 must hold the tags of every step", op->spec.name);
    if (op->spec.in[2] >= 0) TRY(layer_is_lengths(n, op, 2));
    TRY(layer_range(op, "number of tags", u->F, 1, 4096));
    op->T = u->T;
    op->I = op->F = u->F;
    op->ntheta = op->nderived = (op->I + 2) * padded(op);
    return 0;
}

static i64 saved(const struct op *op, const struct net *n, struct rows B) {
    (void)n;
    return 2 * (i64)op->T * B.n * padded(op);
}

static i64 scratch(const struct op *op, const struct net *n, struct rows B) {
    (void)n;
    return (i64)SCRATCH_VECTORS * B.n * padded(op);
}

static f64 flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    (void)n;
    return (backward ? 4.0 : 2.0) * op->T * B * op->I * (op->I + 16);
}

static void init(const struct op *op, u64 seed, f32 *theta) {
    const i64 Lp = padded(op);
    for (i32 y = 0; y < op->I + 2; y++)
        for (i32 k = 0; k < op->I; k++) theta[y * Lp + k] = layer_uniform(op, seed, (i64)y * op->I + k, 0.1);
}

static f32 largest(const f32 *v, i32 rows, i32 n, i64 ld) {
    f32 most = v[0];
    for (i32 r = 0; r < rows; r++)
        for (i32 i = 0; i < n; i++) most = v[r * ld + i] > most ? v[r * ld + i] : most;
    return most;
}

static void prep(const struct op *op, const struct net *n, const struct kern *k, const f32 *theta, f32 *derived) {
    const i64 Lp = padded(op);
    const f32 *a = theta + op->theta0, most = largest(a, op->I, op->I, Lp);
    f32 *e = derived + op->derived0;
    (void)n, (void)k;
    for (i32 y = 0; y < op->I + 2; y++)
        for (i32 i = 0; i < Lp; i++) e[y * Lp + i] = i < op->I ? expf(a[y * Lp + i] - (y < op->I ? most : 0)) : 0;
}

/* The vectors of one row. */
struct chain_row {
    i32 n, L;             /* steps, tags */
    i64 Lp, step;         /* step: floats from a step of the buffers to the next */
    const f32 *u, *e;     /* e: A, start, end as exponentials */
    const i32 *tag;       /* [n] `next` apart */
    i32 next;
    f32 *alpha, *eu;
};

static struct chain_row row_of(const struct op *op, const struct run *r, i32 b) {
    const i64 Lp = padded(op);
    f32 *keep = r->saved[op->l];
    i32 n = op->T;
    if (op->spec.in[2] >= 0) n = imax(0, imin(op->T, run_ids(op, r, 2)[b]));
    for (i32 t = 0; t < n; t++) {
        const i32 y = run_ids(op, r, 1)[(i64)t * r->B + b];
        if (y < 0 || y >= op->I) n = 0;
    }
    return (struct chain_row){.n = n, .L = op->I, .Lp = Lp, .step = r->B * Lp, .u = run_in(op, r, 0) + b * Lp,
                              .e = r->derived + op->derived0, .tag = run_ids(op, r, 1) + b, .next = r->B,
                              .alpha = keep + b * Lp, .eu = keep + ((i64)op->T * r->B + b) * Lp};
}

/* v /= its sum, which is returned. */
static f32 scale_to_one(f32 *v, i64 n) {
    f32 lane[LANES] = {0}, sum = 0;
    for (i64 i = 0; i < n; i += LANES)
        for (i32 k = 0; k < LANES; k++) lane[k] += v[i + k];
    for (i32 k = 0; k < LANES; k++) sum += lane[k];
    const f32 by = sum > 0 ? 1 / sum : 0;
    for (i64 i = 0; i < n; i++) v[i] *= by;
    return sum;
}

/* alpha and e^u of step t; returns what log Z gains. */
static f64 forward_step(const struct chain_row *c, i32 t) {
    const f32 *u = c->u + t * c->step, *before = c->alpha + (t - 1) * c->step, most = largest(u, 1, c->L, 0);
    f32 *alpha = c->alpha + t * c->step, *eu = c->eu + t * c->step;
    for (i32 y = 0; y < c->Lp; y++) eu[y] = y < c->L ? expf(u[y] - most) : 0;
    if (t == 0) {
        memcpy(alpha, c->e + c->L * c->Lp, (size_t)c->Lp * sizeof *alpha);
    } else {
        memset(alpha, 0, (size_t)c->Lp * sizeof *alpha);
        for (i32 x = 0; x < c->L; x++)
            for (i64 y = 0; y < c->Lp; y++) alpha[y] += before[x] * c->e[x * c->Lp + y];
    }
    for (i64 y = 0; y < c->Lp; y++) alpha[y] *= eu[y];
    return log((f64)scale_to_one(alpha, c->Lp)) + (f64)most;
}

static f64 row_loss(const struct op *op, const struct run *r, i32 b) {
    const struct chain_row c = row_of(op, r, b);
    const f32 *a = r->theta + op->theta0, *start = a + c.L * c.Lp, *end = start + c.Lp;
    f64 logz = (f64)largest(a, c.L, c.L, c.Lp) * (c.n - 1), score = 0, sum = 0;
    if (c.n == 0) return 0;
    for (i32 t = 0; t < c.n; t++) {
        const i32 y = c.tag[(i64)t * c.next];
        logz += forward_step(&c, t);
        score += (f64)c.u[t * c.step + y];
        score += (f64)(t == 0 ? start[y] : a[c.tag[(i64)(t - 1) * c.next] * c.Lp + y]);
    }
    const f32 *last = c.alpha + (c.n - 1) * c.step;
    for (i32 y = 0; y < c.L; y++) sum += (f64)last[y] * (f64)c.e[(c.L + 1) * c.Lp + y];
    return logz + log(sum) - score - (f64)end[c.tag[(i64)(c.n - 1) * c.next]];
}

static void fwd(const struct op *op, const struct run *r, struct part p) {
    for (i32 g = grain_first(r, p); g < grain_end(r, p); g++) {
        const struct part q = part_grain(r, p, g);
        f64 total = 0;
        for (i32 b = q.b0; b < q.b1; b++) total += row_loss(op, r, b);
        r->loss[g] = total;
    }
}

/* to += by * (p - [true tag]); p scaled to sum 1 before. */
static void add_difference(f32 *to, const f32 *p, i64 n, i32 y, f32 by) {
    for (i64 i = 0; i < n; i++) to[i] += by * p[i];
    to[y] -= by;
}

/* Adds the expected transitions into step t minus the true one; w = A (e^u beta) becomes beta of step t - 1. */
static void transitions(const struct chain_row *c, i32 t, const f32 *v, f32 *w, f32 by, f32 *da) {
    const f32 *alpha = c->alpha + (t - 1) * c->step;
    f32 z = 0;
    for (i32 x = 0; x < c->L; x++) {
        f32 lane[LANES] = {0}, sum = 0;
        for (i64 y = 0; y < c->Lp; y += LANES)
            for (i32 k = 0; k < LANES; k++) lane[k] += c->e[x * c->Lp + y + k] * v[y + k];
        for (i32 k = 0; k < LANES; k++) sum += lane[k];
        w[x] = sum;
        z += alpha[x] * sum;
    }
    for (i32 x = 0; x < c->L && z > 0; x++) {
        const f32 share = by * alpha[x] / z;
        for (i64 y = 0; y < c->Lp; y++) da[x * c->Lp + y] += share * c->e[x * c->Lp + y] * v[y];
    }
    da[c->tag[(i64)(t - 1) * c->next] * c->Lp + c->tag[(i64)t * c->next]] -= by;
    scale_to_one(w, c->Lp);
}

static void row_gradient(const struct op *op, const struct run *r, i32 b, f32 *grad, f32 *du) {
    const struct chain_row c = row_of(op, r, b);
    f32 *beta = r->scratch[op->l] + (i64)b * SCRATCH_VECTORS * c.Lp, *v = beta + c.Lp, *w = v + c.Lp;
    const f32 by = r->loss_scale;
    for (i32 t = c.n; t < op->T; t++) memset(du + t * c.step, 0, (size_t)c.Lp * sizeof *du);
    memset(w, 0, (size_t)c.Lp * sizeof *w);
    if (c.n > 0) memcpy(beta, c.e + (c.L + 1) * c.Lp, (size_t)c.Lp * sizeof *beta);
    for (i32 t = c.n - 1; t >= 0; t--) {
        const f32 *alpha = c.alpha + t * c.step, *eu = c.eu + t * c.step;
        const i32 y = c.tag[(i64)t * c.next];
        f32 *p = du + t * c.step;
        for (i64 i = 0; i < c.Lp; i++) p[i] = alpha[i] * beta[i];
        scale_to_one(p, c.Lp);
        if (t == c.n - 1) add_difference(grad + (c.L + 1) * c.Lp, p, c.Lp, y, by);
        if (t == 0) add_difference(grad + c.L * c.Lp, p, c.Lp, y, by);
        for (i64 i = 0; i < c.Lp; i++) v[i] = eu[i] * beta[i];
        if (t > 0) transitions(&c, t, v, w, by, grad);
        memcpy(beta, w, (size_t)c.Lp * sizeof *beta);
        for (i64 i = 0; i < c.Lp; i++) p[i] *= by;
        p[y] -= by;
    }
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    f32 *du = run_din(op, r, 0);
    if (!du) return;
    for (i32 b = p.b0; b < p.b1; b++)
        row_gradient(op, r, b, grain_grad(r, grain_of(r, b), op->theta0), du + b * padded(op));
}

static i32 tensors(const struct op *op, struct tensor_info out[8]) {
    layer_tensor(&out[0], op, "transitions", op->I, op->I);
    layer_tensor(&out[1], op, "start", op->I, 0);
    layer_tensor(&out[2], op, "end", op->I, 0);
    return 3;
}

static i64 place(const struct op *op, i32 tensor, i32 row, i32 col) {
    const i64 Lp = padded(op);
    return tensor == 0 ? row * Lp + col : (op->I + tensor - 1) * Lp + row;
}

extern const struct layer layer_crf;
const struct layer layer_crf = {
    .name = "crf",
    .help = "negative log-likelihood of tags [T][B] under scores [T][B][L] and transitions [L][L]",
    .nin = 3,
    .shape = shape,
    .saved = saved,
    .scratch = scratch,
    .flops = flops,
    .init = init,
    .prep = prep,
    .fwd = fwd,
    .bwd = bwd,
    .tensors = tensors,
    .place = place,
};
