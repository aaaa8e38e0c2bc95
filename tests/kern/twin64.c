/* twin64.c - see twin64.h: forward and backward through time of lstm, gru and rnn in f64, plain loops. */
#include "kern/twin64.h"

#include <math.h>
#include <stdlib.h>

static f64 sigmoid1(f64 x) { return 1 / (1 + exp(-x)); }

static f64 *take(f64 **at, i64 n) {
    f64 *p = *at;
    *at += n;
    return p;
}

void twin_new(struct twin *w, enum cell_kind kind, i32 T, i32 B, i32 I, i32 H, const i32 *steps) {
    const i64 G = cell_gates(kind), TB = (i64)T * B, W = G * H;
    const i64 total = 2 * TB * I + 2 * (W * I + W * H + 2 * W) + 8 * (i64)B * H + TB * H * 7;
    *w = (struct twin){.kind = kind, .T = T, .B = B, .I = I, .H = H, .steps = steps};
    f64 *at = calloc((size_t)total, sizeof *at);
    if (!at) abort();
    w->x = take(&at, TB * I), w->dx = take(&at, TB * I);
    w->w_ih = take(&at, W * I), w->w_hh = take(&at, W * H), w->b_ih = take(&at, W), w->b_hh = take(&at, W);
    w->dw_ih = take(&at, W * I), w->dw_hh = take(&at, W * H), w->db_ih = take(&at, W), w->db_hh = take(&at, W);
    f64 **state[8] = {&w->h0, &w->c0, &w->hT, &w->cT, &w->dhT, &w->dcT, &w->dh0, &w->dc0};
    for (i32 j = 0; j < 8; j++) *state[j] = take(&at, (i64)B * H);
    w->y = take(&at, TB * H), w->dy = take(&at, TB * H), w->c = take(&at, TB * H), w->gate = take(&at, TB * H * 4);
}

void twin_free(struct twin *w) { free(w->x); }

/* sum_k w_ih[row][k] x[k], or with w_hh and h. */
static f64 dot(const f64 *m, i64 row, const f64 *v, i32 n) {
    f64 s = 0;
    for (i32 k = 0; k < n; k++) s += m[row * n + k] * v[k];
    return s;
}

static const f64 *h_before(const struct twin *w, i32 t, i32 b) {
    return t ? w->y + ((i64)(t - 1) * w->B + b) * w->H : w->h0 + (i64)b * w->H;
}

static const f64 *c_before(const struct twin *w, i32 t, i32 b) {
    return t ? w->c + ((i64)(t - 1) * w->B + b) * w->H : w->c0 + (i64)b * w->H;
}

static void unit_forward(struct twin *w, i32 t, i32 b, i32 u) {
    const i32 H = w->H, G = cell_gates(w->kind);
    const i64 row = (i64)t * w->B + b;
    const f64 *x = w->x + row * w->I, *h = h_before(w, t, b);
    f64 zx[4], zh[4], *g = w->gate + row * 4 * H + u;
    for (i32 j = 0; j < G; j++) {
        const i64 r = (i64)j * H + u;
        zx[j] = dot(w->w_ih, r, x, w->I) + w->b_ih[r];
        zh[j] = dot(w->w_hh, r, h, H) + w->b_hh[r];
    }
    if (w->kind == CELL_LSTM) {
        for (i32 j = 0; j < 4; j++) g[j * H] = j == 2 ? tanh(zx[j] + zh[j]) : sigmoid1(zx[j] + zh[j]);
        w->c[row * H + u] = g[H] * c_before(w, t, b)[u] + g[0] * g[2 * H];
        w->y[row * H + u] = g[3 * H] * tanh(w->c[row * H + u]);
    } else if (w->kind == CELL_GRU) {
        g[0] = sigmoid1(zx[0] + zh[0]);
        g[H] = sigmoid1(zx[1] + zh[1]);
        g[3 * H] = zh[2];
        g[2 * H] = tanh(zx[2] + g[0] * zh[2]);
        w->y[row * H + u] = (1 - g[H]) * g[2 * H] + g[H] * h[u];
    } else {
        g[0] = w->y[row * H + u] = tanh(zx[0] + zh[0]);
    }
}

void twin_forward(struct twin *w) {
    for (i32 b = 0; b < w->B; b++) {
        for (i32 t = 0; t < w->steps[b]; t++)
            for (i32 u = 0; u < w->H; u++) unit_forward(w, t, b, u);
        for (i32 u = 0; u < w->H; u++) {
            w->hT[(i64)b * w->H + u] = h_before(w, w->steps[b], b)[u];
            if (w->kind == CELL_LSTM) w->cT[(i64)b * w->H + u] = c_before(w, w->steps[b], b)[u];
        }
    }
}

/* dzx, dzh [G]: gradients of the x-side and h-side pre-activations of one unit; dh is whole, ds goes from step t to step t-1
 * (lstm: of c; else of h through the element-wise part). */
static void unit_backward(struct twin *w, i32 t, i32 b, i32 u, f64 dh, f64 *ds, f64 dzx[4], f64 dzh[4]) {
    const i32 H = w->H;
    const i64 row = (i64)t * w->B + b;
    const f64 *g = w->gate + row * 4 * H + u;
    if (w->kind == CELL_LSTM) {
        const f64 i = g[0], f = g[H], n = g[2 * H], o = g[3 * H], tc = tanh(w->c[row * H + u]);
        const f64 dc = *ds + dh * o * (1 - tc * tc);
        dzx[0] = dc * n * i * (1 - i);
        dzx[1] = dc * c_before(w, t, b)[u] * f * (1 - f);
        dzx[2] = dc * i * (1 - n * n);
        dzx[3] = dh * tc * o * (1 - o);
        *ds = dc * f;
    } else if (w->kind == CELL_GRU) {
        const f64 r = g[0], z = g[H], n = g[2 * H], hn = g[3 * H];
        dzx[2] = dh * (1 - z) * (1 - n * n);
        dzx[0] = dzx[2] * hn * r * (1 - r);
        dzx[1] = dh * (h_before(w, t, b)[u] - n) * z * (1 - z);
        *ds = dh * z;
    } else {
        dzx[0] = dh * (1 - g[0] * g[0]);
        *ds = 0;
    }
    for (i32 j = 0; j < 4; j++) dzh[j] = dzx[j];
    if (w->kind == CELL_GRU) dzh[2] = dzx[2] * g[0];
}

static void row_backward(struct twin *w, i32 b, f64 *dh, f64 *ds, f64 *dh_prev) {
    const i32 H = w->H, I = w->I, G = cell_gates(w->kind);
    for (i32 t = w->steps[b] - 1; t >= 0; t--) {
        const i64 row = (i64)t * w->B + b;
        const f64 *x = w->x + row * I, *h = h_before(w, t, b);
        for (i32 u = 0; u < H; u++) dh_prev[u] = 0;
        for (i32 u = 0; u < H; u++) {
            f64 dzx[4] = {0}, dzh[4];
            unit_backward(w, t, b, u, dh[u] + w->dy[row * H + u], &ds[u], dzx, dzh);
            for (i32 j = 0; j < G; j++) {
                const i64 r = (i64)j * H + u;
                w->db_ih[r] += dzx[j];
                w->db_hh[r] += dzh[j];
                for (i32 k = 0; k < I; k++) {
                    w->dw_ih[r * I + k] += dzx[j] * x[k];
                    w->dx[row * I + k] += dzx[j] * w->w_ih[r * I + k];
                }
                for (i32 k = 0; k < H; k++) {
                    w->dw_hh[r * H + k] += dzh[j] * h[k];
                    dh_prev[k] += dzh[j] * w->w_hh[r * H + k];
                }
            }
        }
        for (i32 u = 0; u < H; u++) dh[u] = dh_prev[u] + (w->kind == CELL_LSTM ? 0 : ds[u]);
    }
}

void twin_backward(struct twin *w) {
    const i64 H = w->H, G = cell_gates(w->kind) * H;
    for (i64 j = 0; j < (i64)w->T * w->B * w->I; j++) w->dx[j] = 0;
    for (i64 j = 0; j < G * w->I; j++) w->dw_ih[j] = 0;
    for (i64 j = 0; j < G * H; j++) w->dw_hh[j] = 0;
    for (i64 j = 0; j < G; j++) w->db_ih[j] = w->db_hh[j] = 0;
    f64 *tmp = calloc((size_t)H * 3, sizeof *tmp);
    if (!tmp) abort();
    for (i32 b = 0; b < w->B; b++) {
        for (i64 u = 0; u < H; u++) tmp[u] = w->dhT[b * H + u], tmp[H + u] = w->dcT[b * H + u];
        row_backward(w, b, tmp, tmp + H, tmp + 2 * H);
        for (i64 u = 0; u < H; u++) w->dh0[b * H + u] = tmp[u], w->dc0[b * H + u] = w->kind == CELL_LSTM ? tmp[H + u] : 0;
    }
    free(tmp);
}

f64 twin_loss(const struct twin *w) {
    f64 s = 0;
    const i64 n = (i64)w->B * w->H;
    for (i64 j = 0; j < n; j++) s += w->hT[j] * w->dhT[j] + w->cT[j] * w->dcT[j];
    for (i32 b = 0; b < w->B; b++)
        for (i32 t = 0; t < w->steps[b]; t++)
            for (i32 u = 0; u < w->H; u++) {
                const i64 at = ((i64)t * w->B + b) * w->H + u;
                s += w->y[at] * w->dy[at];
            }
    return s;
}
