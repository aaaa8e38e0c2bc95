/* cell_ref.c - scalar reference implementation of the recurrent cells: the specification of cell_kern, in plain loops.
 *
 * One source serves the three cells in both precisions: the products are shared, and point_fwd / point_bwd are the cell's
 * element-wise part. In bf16 the factors of a product are rounded when they enter it; nothing else is rounded.
 *
 *     act:  z [T][B][NP][GB][LANES]   pre-activations, then gates, then dz
 *           s [T][B][Hp]              c of every step (lstm only; gru and rnn use h)
 *           h [T][B][Hp]              in bf16, since y may be NULL; otherwise y
 *
 *     forward    z = bias + x Wx + h Wh          point_fwd: z, s[t-1] -> gates, s[t], h
 *     backward   dh = dy + dz[t+1] Wh' + ds      point_bwd: gates, dh, ds -> dz, ds        (lstm: ds = dc, not added to dh) */
#include "kern/fill.h"
#include "kern/team.h"

#include <math.h>
#include <string.h>

enum { DH = 0, DS = 1 }; /* the two halves of x->carry */

static f32 sigmoid1(f32 x) { return 1.0f / (1.0f + expf(-x)); }

/* The place in z of gate g of the weights, for the x side and the h side; only gru's n differs. */
static i32 z_gate(enum cell_kind kind, i32 g, bool h_side) { return kind == CELL_GRU && g == 2 && h_side ? 3 : g; }

/* ------------------------------------------------------------------ element-wise ------------------------------------------- */

static void lstm_point_fwd(i32 n, i32 H, f32 *z, const f32 *s_prev, f32 *s, f32 *h) {
    const i32 Hp = round_up(H, LANES);
    for (i32 b = 0; b < n; b++) {
        for (i32 u = 0; u < Hp; u++) {
            f32 *q = z + ((i64)b * Hp + u / LANES * LANES) * 4 + u % LANES;
            const i64 at = (i64)b * Hp + u;
            q[0] = sigmoid1(q[0]);
            q[LANES] = sigmoid1(q[LANES]);
            q[2 * LANES] = tanhf(q[2 * LANES]);
            q[3 * LANES] = sigmoid1(q[3 * LANES]);
            const f32 c = q[LANES] * s_prev[at] + q[0] * q[2 * LANES];
            s[at] = c;
            h[at] = q[3 * LANES] * tanhf(c);
        }
    }
}

static void lstm_point_bwd(i32 n, i32 H, f32 *z, const f32 *s_prev, const f32 *s, const f32 *dh, f32 *ds) {
    const i32 Hp = round_up(H, LANES);
    for (i32 b = 0; b < n; b++) {
        for (i32 u = 0; u < Hp; u++) {
            f32 *q = z + ((i64)b * Hp + u / LANES * LANES) * 4 + u % LANES;
            const i64 at = (i64)b * Hp + u;
            const f32 i = q[0], f = q[LANES], g = q[2 * LANES], o = q[3 * LANES], tc = tanhf(s[at]);
            const f32 dc = ds[at] + dh[at] * o * (1.0f - tc * tc);
            q[0] = dc * g * (i * (1.0f - i));
            q[LANES] = dc * s_prev[at] * (f * (1.0f - f));
            q[2 * LANES] = dc * i * (1.0f - g * g);
            q[3 * LANES] = dh[at] * tc * (o * (1.0f - o));
            ds[at] = dc * f;
        }
    }
}

static void gru_point_fwd(i32 n, i32 H, f32 *z, const f32 *s_prev, f32 *s, f32 *h) {
    const i32 Hp = round_up(H, LANES);
    for (i32 b = 0; b < n; b++) {
        for (i32 u = 0; u < Hp; u++) {
            f32 *q = z + ((i64)b * Hp + u / LANES * LANES) * 4 + u % LANES;
            const i64 at = (i64)b * Hp + u;
            q[0] = sigmoid1(q[0]);
            q[LANES] = sigmoid1(q[LANES]);
            q[2 * LANES] = tanhf(q[2 * LANES] + q[0] * q[3 * LANES]);
            h[at] = q[2 * LANES] + q[LANES] * (s_prev[at] - q[2 * LANES]);
            s[at] = h[at];
        }
    }
}

static void gru_point_bwd(i32 n, i32 H, f32 *z, const f32 *s_prev, const f32 *s, const f32 *dh, f32 *ds) {
    const i32 Hp = round_up(H, LANES);
    (void)s;
    for (i32 b = 0; b < n; b++) {
        for (i32 u = 0; u < Hp; u++) {
            f32 *q = z + ((i64)b * Hp + u / LANES * LANES) * 4 + u % LANES;
            const i64 at = (i64)b * Hp + u;
            const f32 r = q[0], zz = q[LANES], nn = q[2 * LANES], hn = q[3 * LANES], d = dh[at];
            const f32 dn = d * (1.0f - zz) * (1.0f - nn * nn);
            q[0] = dn * hn * (r * (1.0f - r));
            q[LANES] = d * (s_prev[at] - nn) * (zz * (1.0f - zz));
            q[2 * LANES] = dn;
            q[3 * LANES] = dn * r;
            ds[at] = d * zz;
        }
    }
}

static void rnn_point_fwd(i32 n, i32 H, f32 *z, const f32 *s_prev, f32 *s, f32 *h) {
    const i64 count = (i64)n * round_up(H, LANES);
    (void)s_prev;
    for (i64 j = 0; j < count; j++) z[j] = h[j] = s[j] = tanhf(z[j]);
}

static void rnn_point_bwd(i32 n, i32 H, f32 *z, const f32 *s_prev, const f32 *s, const f32 *dh, f32 *ds) {
    const i64 count = (i64)n * round_up(H, LANES);
    (void)s_prev, (void)s;
    for (i64 j = 0; j < count; j++) {
        z[j] = dh[j] * (1.0f - z[j] * z[j]);
        ds[j] = 0;
    }
}

typedef void point_fwd_fn(i32, i32, f32 *, const f32 *, f32 *, f32 *);
typedef void point_bwd_fn(i32, i32, f32 *, const f32 *, const f32 *, const f32 *, f32 *);
static point_fwd_fn *const point_fwd[CELL_NKIND] = {lstm_point_fwd, gru_point_fwd, rnn_point_fwd};
static point_bwd_fn *const point_bwd[CELL_NKIND] = {lstm_point_bwd, gru_point_bwd, rnn_point_bwd};

/* ------------------------------------------------------------------ places in the buffers ----------------------------------- */

/* Cell kind and precision of a computation. */
struct form {
    enum cell_kind kind;
    bool bf16;
};

static i32 hp_of(const struct cell_args *x) { return round_up(x->H, LANES); }

static f32 *z_at(struct form m, const struct cell_args *x, i32 t, i32 b) {
    return x->act + ((i64)t * x->B + b) * hp_of(x) * cell_bias_gates(m.kind);
}

/* h after step t. */
static f32 *h_at(struct form m, const struct cell_args *x, i32 t, i32 b) {
    const i64 row = ((i64)t * x->B + b) * hp_of(x), kept = cell_bias_gates(m.kind) + (m.kind == CELL_LSTM);
    return m.bf16 ? x->act + kept * x->T * x->B * hp_of(x) + row : x->y + row;
}

/* The state s after step t (t = -1: the initial one, NULL = zero). */
static f32 *s_at(struct form m, const struct cell_args *x, i32 t, i32 b) {
    if (m.kind != CELL_LSTM) return h_at(m, x, t, b);
    return x->act + (i64)x->T * x->B * hp_of(x) * 4 + ((i64)t * x->B + b) * hp_of(x);
}

static const f32 *s_prev_at(struct form m, const struct cell_args *x, i32 t, i32 b) {
    if (t > 0) return s_at(m, x, t - 1, b);
    const f32 *s0 = m.kind == CELL_LSTM ? x->c0 : x->h0;
    return s0 ? s0 + (i64)b * hp_of(x) : NULL;
}

static const f32 *h_prev_at(struct form m, const struct cell_args *x, i32 t, i32 b) {
    if (t > 0) return h_at(m, x, t - 1, b);
    return x->h0 ? x->h0 + (i64)b * hp_of(x) : NULL;
}

/* The units of a call: all of them, or of a team without flags those of the member. */
static void own_units(const struct cell_args *x, i32 *u0, i32 *u1) {
    team_part(x->team && !x->team->flag ? x->team : NULL, hp_of(x) / LANES, u0, u1);
    *u0 *= LANES;
    *u1 *= LANES;
}

static f32 *carry_at(const struct cell_args *x, i32 half, i32 b) { return x->carry + ((i64)half * x->B + b) * hp_of(x); }

/* ------------------------------------------------------------------ products ------------------------------------------------ */

/* A factor as it enters a product: in bf16 rounded to nearest, ties to even. */
static inline f32 in(struct form m, f32 v) {
    if (!m.bf16 || v != v) return v;
    u32 bits;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* z += v W for the rows k0.. of W (x side: k0 = 0, h side: k0 = I), of the call's own units. */
static void rows_times_w(struct form m, const struct cell_args *x, const f32 *v, i32 n, i32 k0, f32 *z) {
    const i32 G = cell_gates(m.kind), GB = cell_bias_gates(m.kind), K = x->I + x->H;
    i32 u0, u1;
    own_units(x, &u0, &u1);
    for (i32 p = u0 / LANES; p < u1 / LANES; p++) {
        for (i32 k = 0; k < n; k++) {
            for (i32 g = 0; g < G; g++) {
                const f32 *w = x->w + (((i64)p * K + k0 + k) * G + g) * LANES;
                f32 *q = z + ((i64)p * GB + z_gate(m.kind, g, k0 > 0)) * LANES;
                for (i32 l = 0; l < LANES; l++) q[l] += in(m, v[k]) * in(m, w[l]);
            }
        }
    }
}

/* v[k] += sum over the gates of dz W' for the rows k0 + k of W, k from `from` to n. */
static void dz_times_wt(struct form m, const struct cell_args *x, const f32 *dz, i32 from, i32 n, i32 k0, f32 *v) {
    const i32 G = cell_gates(m.kind), GB = cell_bias_gates(m.kind), K = x->I + x->H;
    for (i32 k = from; k < n; k++) {
        f32 sum[LANES] = {0}, total = 0;
        for (i32 p = 0; p < hp_of(x) / LANES; p++) {
            for (i32 g = 0; g < G; g++) {
                const f32 *w = x->w + (((i64)p * K + k0 + k) * G + g) * LANES;
                const f32 *q = dz + ((i64)p * GB + z_gate(m.kind, g, k0 > 0)) * LANES;
                for (i32 l = 0; l < LANES; l++) sum[l] += q[l] * in(m, w[l]);
            }
        }
        for (i32 l = 0; l < LANES; l++) total += sum[l];
        v[k] += total;
    }
}

/* dw += v' dz for the rows k0.. of dw; of a team member, the panels of its own. */
static void rows_times_dz(struct form m, const struct cell_args *x, const f32 *v, i32 n, i32 k0, const f32 *dz, f32 *dw) {
    const i32 G = cell_gates(m.kind), GB = cell_bias_gates(m.kind), K = x->I + x->H;
    i32 p0, p1;
    team_part(x->team, hp_of(x) / LANES, &p0, &p1);
    for (i32 p = p0; p < p1; p++) {
        for (i32 k = 0; k < n; k++) {
            for (i32 g = 0; g < G; g++) {
                f32 *w = dw + (((i64)p * K + k0 + k) * G + g) * LANES;
                const f32 *q = dz + ((i64)p * GB + z_gate(m.kind, g, k0 > 0)) * LANES;
                for (i32 l = 0; l < LANES; l++) w[l] += in(m, v[k]) * q[l];
            }
        }
    }
}

/* ------------------------------------------------------------------ the loop over time steps -------------------------------- */

/* Forward of one row and step. point_fwd needs a state, so a zero state stands in where h0 or c0 is NULL. */
static void step_fwd(struct form m, const struct cell_args *x, i32 t, i32 b) {
    const i32 Hp = hp_of(x), GB = cell_bias_gates(m.kind);
    const i64 row = ((i64)t * x->B + b) * Hp;
    f32 *z = z_at(m, x, t, b), *s = s_at(m, x, t, b);
    i32 u0, u1;
    own_units(x, &u0, &u1);
    memcpy(z + (i64)u0 * GB, x->bias + (i64)u0 * GB, (size_t)(u1 - u0) * (size_t)GB * sizeof *z);
    rows_times_w(m, x, x->x + ((i64)t * x->B + b) * x->x_ld, x->I, 0, z);
    const f32 *h = h_prev_at(m, x, t, b), *s_prev = s_prev_at(m, x, t, b);
    if (h) rows_times_w(m, x, h, x->H, x->I, z);
    if (!s_prev) {
        memset(s + u0, 0, (size_t)(u1 - u0) * sizeof *s);
        s_prev = s;
    }
    point_fwd[m.kind](1, u1 - u0, z + (i64)u0 * GB, s_prev + u0, s + u0, h_at(m, x, t, b) + u0);
    if (m.bf16 && x->y) memcpy(x->y + row, h_at(m, x, t, b), (size_t)Hp * sizeof *z);
}

static void end_state(struct form m, const struct cell_args *x, i32 b, i32 t1) {
    const i32 Hp = hp_of(x);
    const i32 t = cell_end(x, b, 0, t1);
    const f32 *h = h_prev_at(m, x, t, b), *s = s_prev_at(m, x, t, b);
    i32 u0, u1;
    own_units(x, &u0, &u1);
    if (x->hT) copy_or_zero(x->hT + (i64)b * Hp + u0, h ? h + u0 : NULL, u1 - u0);
    if (x->cT && m.kind == CELL_LSTM) copy_or_zero(x->cT + (i64)b * Hp + u0, s ? s + u0 : NULL, u1 - u0);
}

static void cell_fwd(struct form m, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    const i32 Hp = hp_of(x);
    i32 u0, u1;
    own_units(x, &u0, &u1);
    for (i32 t = t0; t < t1; t++) {
        for (i32 b = b0; b < b1; b++) {
            if (b < cell_live(x, t))
                step_fwd(m, x, t, b);
            else if (x->y)
                memset(x->y + ((i64)t * x->B + b) * Hp + u0, 0, (size_t)(u1 - u0) * sizeof(f32));
        }
    }
    for (i32 b = b0; b < b1; b++) end_state(m, x, b, t1);
}

/* dh and ds of one row after step t, without dy: from step t+1, or from dhT and dcT if t is the row's last step. */
static void from_later(struct form m, const struct cell_args *x, i32 t, i32 b, f32 *dh, f32 *ds) {
    const i64 row = (i64)b * hp_of(x);
    i32 u0, u1;
    own_units(x, &u0, &u1);
    if (b >= cell_live(x, t + 1)) {
        copy_or_zero(dh + u0, x->dhT ? x->dhT + row + u0 : NULL, u1 - u0);
        copy_or_zero(ds + u0, m.kind == CELL_LSTM && x->dcT ? x->dcT + row + u0 : NULL, u1 - u0);
        return;
    }
    copy_or_zero(dh + u0, m.kind == CELL_LSTM ? NULL : ds + u0, u1 - u0);
    dz_times_wt(m, x, z_at(m, x, t + 1, b), u0, imin(x->H, u1), x->I, dh);
}

/* dx of one row and step; zero if the row has no such step. */
static void row_dx(struct form m, const struct cell_args *x, i32 t, i32 b) {
    f32 *dx = x->dx + ((i64)t * x->B + b) * x->dx_ld;
    memset(dx, 0, (size_t)x->I * sizeof *dx);
    if (b < cell_live(x, t)) dz_times_wt(m, x, z_at(m, x, t, b), 0, x->I, 0, dx);
}

static void cell_dx(struct form m, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    for (i32 t = t0; t < t1; t++)
        for (i32 b = b0; b < b1; b++) row_dx(m, x, t, b);
}

static void step_bwd(struct form m, const struct cell_args *x, i32 t, i32 b) {
    const i32 Hp = hp_of(x), GB = cell_bias_gates(m.kind);
    const i64 row = ((i64)t * x->B + b) * Hp;
    f32 *z = z_at(m, x, t, b), *dh = carry_at(x, DH, b), *ds = carry_at(x, DS, b);
    const f32 *s_prev = s_prev_at(m, x, t, b), zero[LANES] = {0};
    i32 u0, u1;
    own_units(x, &u0, &u1);
    from_later(m, x, t, b, dh, ds);
    for (i32 u = u0; u < u1 && x->dy; u++) dh[u] += x->dy[row + u];
    for (i32 u = u0; u < u1; u += LANES)
        point_bwd[m.kind](1, LANES, z + (i64)u * GB, s_prev ? s_prev + u : zero, s_at(m, x, t, b) + u, dh + u, ds + u);
    for (i32 j = 0; j < Hp * GB && m.bf16; j++) z[j] = in(m, z[j]);
    if (x->dx) row_dx(m, x, t, b);
}

static void cell_bwd(struct form m, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    const i32 Hp = hp_of(x);
    for (i32 t = t1 - 1; t >= t0; t--) {
        for (i32 b = b0; b < b1; b++) {
            if (b < cell_live(x, t))
                step_bwd(m, x, t, b);
            else if (x->dx)
                row_dx(m, x, t, b);
        }
    }
    for (i32 b = b0; b < b1 && (x->dh0 || x->dc0); b++) {
        f32 *dh = carry_at(x, DH, b), *ds = carry_at(x, DS, b);
        from_later(m, x, t0 - 1, b, dh, ds);
        if (x->dh0) memcpy(x->dh0 + (i64)b * Hp, dh, (size_t)Hp * sizeof(f32));
        if (x->dc0 && m.kind == CELL_LSTM) memcpy(x->dc0 + (i64)b * Hp, ds, (size_t)Hp * sizeof(f32));
    }
}

static void cell_dw(struct form m, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1, f32 *dw, f32 *dbias) {
    const i32 GB = cell_bias_gates(m.kind) * LANES;
    i32 p0, p1;
    team_part(x->team, hp_of(x) / LANES, &p0, &p1);
    for (i32 t = t0; t < t1; t++) {
        for (i32 b = b0; b < imin(b1, cell_live(x, t)); b++) {
            const f32 *dz = z_at(m, x, t, b), *h = h_prev_at(m, x, t, b);
            rows_times_dz(m, x, x->x + ((i64)t * x->B + b) * x->x_ld, x->I, 0, dz, dw);
            if (h) rows_times_dz(m, x, h, x->H, x->I, dz, dw);
            for (i64 j = (i64)p0 * GB; j < (i64)p1 * GB; j++) dbias[j] += dz[j];
        }
    }
}

/* ------------------------------------------------------------------ the table ----------------------------------------------- */

static i64 no_wt(i32 I, i32 H) {
    (void)I, (void)H;
    return 0;
}

static void no_prep(i32 I, i32 H, const f32 *w, f32 *wt) { (void)I, (void)H, (void)w, (void)wt; }

#define CELL(name, KIND, BF16)                                                                                              \
    static i64 name##_act_floats(i32 T, i32 B, i32 I, i32 H) {                                                              \
        (void)I;                                                                                                            \
        return (i64)T * B * round_up(H, LANES) * (cell_bias_gates(KIND) + (KIND == CELL_LSTM) + (BF16));                    \
    }                                                                                                                       \
    static void name##_fwd(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {                                     \
        if (team_is_leader(x)) cell_fwd((struct form){KIND, BF16}, x, b0, b1, t0, t1);                                      \
        team_end(x, t1 - t0);                                                                                               \
    }                                                                                                                       \
    static void name##_bwd(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {                                     \
        if (team_is_leader(x)) cell_bwd((struct form){KIND, BF16}, x, b0, b1, t0, t1);                                      \
        team_end(x, t1 - t0 + 1);                                                                                           \
    }                                                                                                                       \
    static void name##_dw(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1, f32 *dw, f32 *dbias) {                 \
        cell_dw((struct form){KIND, BF16}, x, b0, b1, t0, t1, dw, dbias);                                                   \
    }
#define SPLIT(name, KIND)                                                                                                   \
    static f32 *name##_dz(const struct cell_args *x, i32 b, i32 t, i32 p) {                                                 \
        return z_at((struct form){KIND, false}, x, t, b) + (i64)p * LANES * cell_bias_gates(KIND);                          \
    }                                                                                                                       \
    static void name##_dx(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {                                      \
        cell_dx((struct form){KIND, false}, x, b0, b1, t0, t1);                                                             \
    }
#define SLOTS(name, point) \
    false, name##_act_floats, no_wt, no_prep, name##_fwd, name##_bwd, name##_dw, point##_point_fwd, point##_point_bwd
CELL(lstm, CELL_LSTM, false)
CELL(gru, CELL_GRU, false)
CELL(rnn, CELL_RNN, false)
SPLIT(lstm, CELL_LSTM)
SPLIT(gru, CELL_GRU)
SPLIT(rnn, CELL_RNN)
CELL(lstm_bf16, CELL_LSTM, true)
CELL(gru_bf16, CELL_GRU, true)
CELL(rnn_bf16, CELL_RNN, true)

void kern_fill_cell_ref(struct kern *k) {
    static const struct cell_kern f32_cells[CELL_NKIND] = {
        {SLOTS(lstm, lstm), lstm_dz, lstm_dx}, {SLOTS(gru, gru), gru_dz, gru_dx}, {SLOTS(rnn, rnn), rnn_dz, rnn_dx}};
    memcpy(k->cell, f32_cells, sizeof f32_cells);
}

void kern_fill_bf16_ref(struct kern *k) {
    static const struct cell_kern bf16_cells[CELL_NKIND] = {
        {SLOTS(lstm_bf16, lstm), NULL, NULL}, {SLOTS(gru_bf16, gru), NULL, NULL}, {SLOTS(rnn_bf16, rnn), NULL, NULL}};
    memcpy(k->bf16, bf16_cells, sizeof bf16_cells);
}
