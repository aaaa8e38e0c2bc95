/* diag_ref.c - scalar reference implementation of the diagonal cells: the specification of diag_kern.h.
 *
 * One source serves the three cells; only one unit's step and its gradient differ. All execution modes run step by step here. */
#include <math.h>
#include <string.h>

#include "kern/team.h"
#include "model/cell/diag.h"

enum { GATES = 3, AREA = GATES * LANES, H_ROW = 0, C_ROW = GATES };

/* The arithmetic of one unit. a: state weights ([row * GATES + gate]); g: gates; s, s1: state (h, c) before and after the step;
 * keep: the value saved for dW. step turns pre-activations in g into gates; back turns gates into dz and d, the gradient of s1,
 * into that of s. */
struct plain {
    i32 state_rows, states;
    bool keeps;
    void (*step)(const f32 *a, f32 *g, const f32 *s, f32 *s1);
    void (*back)(const f32 *a, f32 *g, const f32 *s, const f32 *s1, f32 *d, f32 *keep);
    void (*rows_grad)(const f32 *dz, const f32 *s, f32 keep, f32 *da);
};

static f32 sigmoid1(f32 x) { return 1.0f / (1.0f + expf(-x)); }

/* ------------------------------------------------------------------ paragru ------------------------------------------------- */

enum { Z, R, N };

static void paragru_step(const f32 *a, f32 *g, const f32 *s, f32 *s1) {
    g[Z] = sigmoid1(g[Z] + a[Z] * s[0]);
    g[R] = sigmoid1(g[R] + a[R] * s[0]);
    g[N] = tanhf(g[N] + a[N] * (g[R] * s[0]));
    s1[0] = s[0] + g[Z] * (g[N] - s[0]);
}

static void paragru_back(const f32 *a, f32 *g, const f32 *s, const f32 *s1, f32 *d, f32 *keep) {
    (void)s1;
    f32 dn = d[0] * g[Z] * (1 - g[N] * g[N]), dz = d[0] * (g[N] - s[0]) * (g[Z] * (1 - g[Z]));
    f32 drh = dn * a[N], dr = drh * s[0] * (g[R] * (1 - g[R]));
    *keep = g[R] * s[0];
    d[0] = d[0] * (1 - g[Z]) + drh * g[R] + dr * a[R] + dz * a[Z];
    g[Z] = dz, g[R] = dr, g[N] = dn;
}

static void paragru_rows(const f32 *dz, const f32 *s, f32 keep, f32 *da) {
    da[Z] += dz[Z] * s[0];
    da[R] += dz[R] * s[0];
    da[N] += dz[N] * keep;
}

/* ------------------------------------------------------------------ paralstm ------------------------------------------------ */

enum { LF, LZ, LO };

static void paralstm_step(const f32 *a, f32 *g, const f32 *s, f32 *s1) {
    const f32 h = s[0], c = s[1];
    g[LF] = sigmoid1(g[LF] + a[LF] * h + a[C_ROW + LF] * c);
    g[LZ] = tanhf(g[LZ] + a[LZ] * h);
    s1[1] = g[LF] * c + (1 - g[LF]) * g[LZ];
    g[LO] = sigmoid1(g[LO] + a[LO] * h + a[C_ROW + LO] * s1[1]);
    s1[0] = g[LO] * tanhf(s1[1]);
}

static void paralstm_back(const f32 *a, f32 *g, const f32 *s, const f32 *s1, f32 *d, f32 *keep) {
    (void)keep;
    const f32 f = g[LF], z = g[LZ], o = g[LO], tc = tanhf(s1[1]);
    g[LO] = d[0] * tc * (o * (1 - o));
    const f32 dc = d[1] + d[0] * o * (1 - tc * tc) + g[LO] * a[C_ROW + LO];
    g[LF] = dc * (s[1] - z) * (f * (1 - f));
    g[LZ] = dc * (1 - f) * (1 - z * z);
    d[0] = g[LF] * a[LF] + g[LZ] * a[LZ] + g[LO] * a[LO];
    d[1] = dc * f + g[LF] * a[C_ROW + LF];
}

static void paralstm_rows(const f32 *dz, const f32 *s, f32 keep, f32 *da) {
    for (i32 k = 0; k < GATES; k++) da[k] += dz[k] * s[0];
    da[C_ROW + LF] += dz[LF] * s[1];
    da[C_ROW + LO] += dz[LO] * keep; /* uses c after the step */
}

/* ------------------------------------------------------------------ minlstm ------------------------------------------------- */

enum { MF, MI, MN };

static void minlstm_step(const f32 *a, f32 *g, const f32 *s, f32 *s1) {
    (void)a;
    g[MF] = fmaxf(0x1p-126f, sigmoid1(g[MF]));
    g[MI] = fmaxf(0x1p-126f, sigmoid1(g[MI]));
    s1[0] = g[MN] + g[MF] / (g[MF] + g[MI]) * (s[0] - g[MN]);
}

static void minlstm_back(const f32 *a, f32 *g, const f32 *s, const f32 *s1, f32 *d, f32 *keep) {
    (void)a, (void)s1, (void)keep;
    const f32 f = g[MF] / (g[MF] + g[MI]), i = 1 - f, both = d[0] * (s[0] - g[MN]) * (f * i);
    g[MF] = both * (1 - g[MF]);
    g[MI] = -both * (1 - g[MI]);
    g[MN] = d[0] * i;
    d[0] *= f;
}

static void minlstm_rows(const f32 *dz, const f32 *s, f32 keep, f32 *da) { (void)dz, (void)s, (void)keep, (void)da; }

static const struct plain paragru = {1, 1, true, paragru_step, paragru_back, paragru_rows};
static const struct plain paralstm = {2, 2, true, paralstm_step, paralstm_back, paralstm_rows};
static const struct plain minlstm = {0, 1, false, minlstm_step, minlstm_back, minlstm_rows};

/* ------------------------------------------------------------------ one unit in its buffers --------------------------------- */

static i32 hp_of(const struct cell_args *x) { return round_up(x->H, LANES); }

/* z of gate g of unit u, flat row t*B + b. */
static f32 *z_at(const struct cell_args *x, i64 row, i32 u, i32 g) {
    return x->act + (row * hp_of(x) + u / LANES * LANES) * GATES + g * LANES + u % LANES;
}

/* Offset of row k (over x, then the state rows) of gate g of unit u. */
static i64 w_at(const struct plain *c, const struct cell_args *x, i32 u, i32 k, i32 g) {
    return (((i64)(u / LANES) * (x->I + c->state_rows) + k) * GATES + g) * LANES + u % LANES;
}

static i64 bias_at(i32 u, i32 g) { return ((i64)(u / LANES) * GATES + g) * LANES + u % LANES; }

static void weights_of(const struct plain *c, const struct cell_args *x, i32 u, f32 *a) {
    for (i32 k = 0; k < c->state_rows; k++)
        for (i32 g = 0; g < GATES; g++) a[k * GATES + g] = x->w[w_at(c, x, u, x->I + k, g)];
}

static void state_before(const struct plain *c, const struct cell_args *x, const f32 *keep, i32 t, i32 b, i32 u, f32 *s) {
    const i64 Hp = hp_of(x), at = ((i64)(t - 1) * x->B + b) * Hp + u;
    s[0] = t > 0 ? x->y[at] : x->h0 ? x->h0[b * Hp + u] : 0;
    s[1] = c->states < 2 ? 0 : t > 0 ? keep[at] : x->c0 ? x->c0[b * Hp + u] : 0;
}

static f32 *keep_of(const struct plain *c, const struct cell_args *x) {
    return c->keeps ? x->act + (i64)x->T * x->B * hp_of(x) * GATES : NULL;
}

/* Forward of step t of unit u of row b; g holds pre-activations. */
static void unit_fwd(const struct plain *c, const struct cell_args *x, f32 *keep, i32 t, i32 b, i32 u) {
    f32 a[2 * GATES], g[GATES], s[2], s1[2] = {0};
    const i64 row = (i64)t * x->B + b;
    weights_of(c, x, u, a);
    for (i32 k = 0; k < GATES; k++) g[k] = *z_at(x, row, u, k);
    state_before(c, x, keep, t, b, u, s);
    c->step(a, g, s, s1);
    for (i32 k = 0; k < GATES; k++) *z_at(x, row, u, k) = g[k];
    x->y[row * hp_of(x) + u] = s1[0];
    if (c->states > 1) keep[row * hp_of(x) + u] = s1[1];
}

/* Backward; d: in/out, gradient of the state after the step, then before it. */
static void unit_bwd(const struct plain *c, const struct cell_args *x, f32 *keep, i32 t, i32 b, i32 u, f32 *d) {
    f32 a[2 * GATES], g[GATES], s[2], s1[2];
    const i64 row = (i64)t * x->B + b, at = row * hp_of(x) + u;
    weights_of(c, x, u, a);
    for (i32 k = 0; k < GATES; k++) g[k] = *z_at(x, row, u, k);
    state_before(c, x, keep, t, b, u, s);
    s1[0] = 0, s1[1] = c->states > 1 ? keep[at] : 0;
    c->back(a, g, s, s1, d, c->keeps && c->states < 2 ? &keep[at] : NULL);
    for (i32 k = 0; k < GATES; k++) *z_at(x, row, u, k) = g[k];
}

static void unit_rows(const struct plain *c, const struct cell_args *x, const f32 *keep, i32 t, i32 b, i32 u, f32 *dw) {
    f32 dz[GATES], s[2], da[2 * GATES] = {0};
    const i64 row = (i64)t * x->B + b;
    for (i32 k = 0; k < GATES; k++) dz[k] = *z_at(x, row, u, k);
    state_before(c, x, keep, t, b, u, s);
    c->rows_grad(dz, s, keep ? keep[row * hp_of(x) + u] : 0, da);
    for (i32 k = 0; k < c->state_rows; k++)
        for (i32 g = 0; g < GATES; g++) dw[w_at(c, x, u, x->I + k, g)] += da[k * GATES + g];
}

/* ------------------------------------------------------------------ the loop over time steps -------------------------------- */

static void row_fwd(const struct plain *c, const struct cell_args *x, i32 t, i32 b) {
    const i64 row = (i64)t * x->B + b;
    for (i32 u = 0; u < hp_of(x); u++) {
        for (i32 g = 0; g < GATES; g++) {
            f32 z = x->bias[bias_at(u, g)];
            for (i32 k = 0; k < x->I; k++) z += x->x[row * x->x_ld + k] * x->w[w_at(c, x, u, k, g)];
            *z_at(x, row, u, g) = z;
        }
        unit_fwd(c, x, keep_of(c, x), t, b, u);
    }
}

static void plain_fwd(const struct plain *c, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    const i64 Hp = hp_of(x);
    for (i32 t = t0; t < t1; t++)
        for (i32 b = b0; b < b1; b++)
            if (b < cell_live(x, t))
                row_fwd(c, x, t, b);
            else
                memset(x->y + ((i64)t * x->B + b) * Hp, 0, (size_t)Hp * sizeof *x->y);
    for (i32 b = b0; b < b1; b++)
        for (i32 u = 0; u < Hp; u++) {
            f32 s[2];
            state_before(c, x, keep_of(c, x), cell_end(x, b, 0, t1), b, u, s);
            if (x->hT) x->hT[b * Hp + u] = s[0];
            if (x->cT && c->states > 1) x->cT[b * Hp + u] = s[1];
        }
}

/* Gradient of the state of row b after step t-1, from step t or from the final state. */
static void from_later(const struct plain *c, const struct cell_args *x, i32 t, i32 b, i32 u, f32 *d) {
    const i64 at = (i64)b * hp_of(x) + u, plane = (i64)x->B * hp_of(x);
    const bool end = b >= cell_live(x, t);
    const f32 *dh = end ? x->dhT : x->carry, *dc = end ? x->dcT : x->carry + plane;
    d[0] = dh ? dh[at] : 0;
    d[1] = c->states > 1 && dc ? dc[at] : 0;
}

static void row_bwd(const struct plain *c, const struct cell_args *x, i32 t, i32 b) {
    const i64 row = (i64)t * x->B + b, Hp = hp_of(x);
    for (i32 u = 0; u < Hp; u++) {
        f32 d[2];
        from_later(c, x, t + 1, b, u, d);
        if (x->dy) d[0] += x->dy[row * Hp + u];
        unit_bwd(c, x, keep_of(c, x), t, b, u, d);
        x->carry[b * Hp + u] = d[0];
        if (c->states > 1) x->carry[(x->B + b) * Hp + u] = d[1];
    }
    for (i32 k = 0; k < x->I && x->dx; k++) {
        f32 sum = 0;
        for (i32 u = 0; u < Hp; u++)
            for (i32 g = 0; g < GATES; g++) sum += *z_at(x, row, u, g) * x->w[w_at(c, x, u, k, g)];
        x->dx[row * x->dx_ld + k] = sum;
    }
}

static void plain_bwd(const struct plain *c, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    const i64 Hp = hp_of(x);
    for (i32 t = t1 - 1; t >= t0; t--)
        for (i32 b = b0; b < b1; b++)
            if (b < cell_live(x, t))
                row_bwd(c, x, t, b);
            else if (x->dx)
                memset(x->dx + ((i64)t * x->B + b) * x->dx_ld, 0, (size_t)x->I * sizeof *x->dx);
    for (i32 b = b0; b < b1; b++)
        for (i32 u = 0; u < Hp; u++) {
            f32 d[2];
            from_later(c, x, t0, b, u, d);
            if (x->dh0) x->dh0[b * Hp + u] = d[0];
            if (x->dc0 && c->states > 1) x->dc0[b * Hp + u] = d[1];
        }
}

static void plain_dw(const struct plain *c, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1, f32 *dw, f32 *dbias) {
    for (i32 t = t0; t < t1; t++)
        for (i32 b = b0; b < imin(b1, cell_live(x, t)); b++)
            for (i32 u = 0; u < hp_of(x); u++) {
                const i64 row = (i64)t * x->B + b;
                for (i32 g = 0; g < GATES; g++) {
                    const f32 dz = *z_at(x, row, u, g);
                    dbias[bias_at(u, g)] += dz;
                    for (i32 k = 0; k < x->I; k++) dw[w_at(c, x, u, k, g)] += x->x[row * x->x_ld + k] * dz;
                }
                unit_rows(c, x, keep_of(c, x), t, b, u, dw);
            }
}

/* ------------------------------------------------------------------ one step, fed by others --------------------------------- */

static void plain_rows_fwd(const struct plain *c, const struct cell_rows *r) {
    struct cell_args x = diag_rows_args(r);
    for (i32 b = 0; b < r->n; b++)
        for (i32 u = 0; u < hp_of(&x); u++) unit_fwd(c, &x, r->keep, 0, b, u);
}

static void plain_rows_bwd(const struct plain *c, const struct cell_rows *r) {
    struct cell_args x = diag_rows_args(r);
    for (i32 b = 0; b < r->n; b++)
        for (i32 u = 0; u < hp_of(&x); u++) {
            const i64 at = (i64)b * hp_of(&x) + u;
            f32 d[2] = {r->dh[at], 0};
            unit_bwd(c, &x, r->keep, 0, b, u, d);
            unit_rows(c, &x, r->keep, 0, b, u, r->dw);
            r->dh0[at] += d[0];
            if (c->states > 1) r->dc0[at] += d[1];
        }
}

/* ------------------------------------------------------------------ the sets ------------------------------------------------ */

static i64 no_wt(i32 I, i32 H) {
    (void)I, (void)H;
    return 0;
}

static void no_prep(i32 I, i32 H, const f32 *w, f32 *wt) { (void)I, (void)H, (void)w, (void)wt; }

#define PLAIN(name)                                                                                                              \
    static i64 name##_act_floats(i32 T, i32 B, i32 I, i32 H) {                                                                   \
        (void)I;                                                                                                                 \
        return diag_act_floats(T, B, H, GATES, name.keeps);                                                                      \
    }                                                                                                                            \
    static void name##_fwd(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {                                          \
        if (team_is_leader(x)) plain_fwd(&name, x, b0, b1, t0, t1);                                                              \
        team_end(x, t1 - t0);                                                                                                   \
    }                                                                                                                            \
    static void name##_bwd(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {                                          \
        if (team_is_leader(x)) plain_bwd(&name, x, b0, b1, t0, t1);                                                              \
        team_end(x, t1 - t0 + 1);                                                                                               \
    }                                                                                                                            \
    static void name##_dw(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1, f32 *dw, f32 *dbias) {                      \
        if (team_is_leader(x)) plain_dw(&name, x, b0, b1, t0, t1, dw, dbias);                                                    \
    }                                                                                                                            \
    static void name##_rows_fwd(const struct cell_rows *r) { plain_rows_fwd(&name, r); }                                         \
    static void name##_rows_bwd(const struct cell_rows *r) { plain_rows_bwd(&name, r); }                                         \
    const struct cell_set diag_##name##_ref = {                                                                                  \
        .kern = {.act_floats = name##_act_floats,                                                                                \
                 .wt_floats = no_wt,                                                                                             \
                 .prep = no_prep,                                                                                                \
                 .fwd = name##_fwd,                                                                                              \
                 .bwd = name##_bwd,                                                                                              \
                 .dw = name##_dw},                                                                                               \
        .step = {name##_rows_fwd, name##_rows_bwd},                                                                              \
    };
PLAIN(paragru)
PLAIN(paralstm)
PLAIN(minlstm)

/* ------------------------------------------------------------------ counts -------------------------------------------------- */

static bool keeps(const struct cell *c) { return c->state_rows > 0; }

struct diag_count diag_total(const struct cell *c, const struct cell_args *x, i32 b0, i32 b1) {
    struct diag_count all = {0};
    for (i32 b = b0; b < b1; b++)
        for (i32 p = 0; p < hp_of(x) / LANES; p++) {
            const struct diag_count *one = diag_counts(x, c->gates, keeps(c), b, p);
            all.blocks += one->blocks;
            all.iterations += one->iterations;
            all.most = imax(all.most, one->most);
            all.fallbacks += one->fallbacks;
        }
    return all;
}
