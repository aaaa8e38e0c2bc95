/* diag_kern.h - the kernels of a diagonal cell around its arithmetic; included at the end of diag_<cell>.c, once per
 * instruction set.
 *
 *     forward, per chunk of steps:    z = bias + x Wx  (gemm)    then each (row, vector of units) runs over the chunk
 *     backward, from the end:         each (row, vector)         then dx = dz Wx'  (gemm)
 *     dW, blocks of rows:             x' dz  (gemm), sums for bias and state rows
 *
 * Team members take panels. No unit waits for another, so they synchronize only at the end of a pass and before dx. */
#ifndef STRETTO_MODEL_CELL_DIAG_KERN_H
#define STRETTO_MODEL_CELL_DIAG_KERN_H

#include "kern/fill.h"
#include "kern/team.h"

enum {
    AREA = GATES * LANES,            /* floats of the gates of one panel */
    NA = STATE_ROWS * GATES,         /* state weights of a unit */
    NA_ROOM = NA > 0 ? NA : 1,
    CHUNK_FLOATS = 1 << 16,          /* floats of z per chunk: z is still in L2 when the recurrence reads it */
    DW_ROWS = 256,
    DW_INPUTS = 64,
    WIDTH = 4                        /* vectors processed together, to hide the latency of a step */
};

/* The gemm of this instruction set, which is present if this code runs. */
static const struct kern *own_kern(void) {
#define ARCH_PASTE2(a, b) a##b
#define ARCH_PASTE(a, b) ARCH_PASTE2(a, b)
    enum { ARCH_base = KERN_BASE, ARCH_neon = KERN_NEON, ARCH_avx2 = KERN_AVX2, ARCH_avx512 = KERN_AVX512 };
    return kern_get((enum kern_arch)ARCH_PASTE(ARCH_, ISA));
}

/* ------------------------------------------------------------------ places ------------------------------------------------- */

/* The arguments with the strides of these kernels. */
struct sweep {
    const struct cell_args *x;
    i32 Hp;
    i64 W, zt, yt, panel;
    f32 *keep; /* NULL = the cell has none */
};

static struct sweep sweep_of(const struct cell_args *x) {
    struct sweep w = {.x = x, .Hp = round_up(x->H, LANES)};
    w.W = (i64)w.Hp * GATES;
    w.zt = x->B * w.W;
    w.yt = (i64)x->B * w.Hp;
    w.panel = (i64)(x->I + STATE_ROWS) * AREA;
    w.keep = KEEPS ? x->act + x->T * w.zt : NULL;
    return w;
}

/* z of unit u (first of a vector) of row b at step 0. */
INLINE f32 *z_of(const struct sweep *w, i32 b, i32 u) {
    return w->x->act + b * w->W + (i64)(u / LANES) * AREA + u % LANES;
}
INLINE i64 y_at(const struct sweep *w, i32 b, i32 u) { return (i64)b * w->Hp + u; }

INLINE void load_weights(const struct sweep *w, const f32 *from, i32 u, vf *a) {
    from += (u / LANES) * w->panel + (i64)w->x->I * AREA + u % LANES;
    UNROLL for (int k = 0; k < NA; k++) a[k] = v_load(from + k * LANES);
}

INLINE void load_gates(const f32 *z, vf *g) { UNROLL for (int k = 0; k < GATES; k++) g[k] = v_load(z + k * LANES); }
INLINE void store_gates(f32 *z, const vf *g) { UNROLL for (int k = 0; k < GATES; k++) v_store(z + k * LANES, g[k]); }

/* State of unit u of row b before step t. */
INLINE struct state state_before(const struct sweep *w, i32 b, i32 u, i32 t) {
    const i64 at = y_at(w, b, u);
    if (t > 0)
        return state_of(v_load(w->x->y + (t - 1) * w->yt + at), TWO_STATES ? v_load(w->keep + (t - 1) * w->yt + at) : v_zero());
    return state_of(v_load_or_zero(w->x->h0, at), TWO_STATES ? v_load_or_zero(w->x->c0, at) : v_zero());
}

/* The same for flat row t*B + b of [T][B]. */
INLINE struct state row_before(const struct sweep *w, i64 row, i32 u) {
    const i32 B = w->x->B;
    if (row < B) return state_before(w, (i32)row, u, 0);
    const i64 at = (row - B) * w->Hp + u;
    return state_of(v_load(w->x->y + at), TWO_STATES ? v_load(w->keep + at) : v_zero());
}

/* A vector of units of one row. */
struct place {
    i32 b, u;
};

/* ------------------------------------------------------------------ step by step -------------------------------------------- */

/* Forward of n vectors over steps [t0,t1): pre-activations become gates. */
INLINE void steps_fwd(const int n, const struct sweep *w, const struct place *p, i32 t0, i32 t1) {
    vf a[WIDTH][NA_ROOM];
    struct state s[WIDTH];
    f32 *z[WIDTH], *y[WIDTH], *keep[WIDTH];
    UNROLL for (int j = 0; j < n; j++) {
        load_weights(w, w->x->w, p[j].u, a[j]);
        s[j] = state_before(w, p[j].b, p[j].u, t0);
        z[j] = z_of(w, p[j].b, p[j].u) + t0 * w->zt;
        y[j] = w->x->y + y_at(w, p[j].b, p[j].u) + t0 * w->yt;
        keep[j] = TWO_STATES ? w->keep + y_at(w, p[j].b, p[j].u) + t0 * w->yt : NULL;
    }
    for (i32 t = t0; t < t1; t++) {
        UNROLL for (int j = 0; j < n; j++) {
            vf g[GATES];
            load_gates(z[j], g);
            s[j] = step(a[j], g, s[j]);
            store_gates(z[j], g);
            v_store(y[j], s[j].h);
            if (TWO_STATES) v_store(keep[j], s[j].c), keep[j] += w->yt;
            z[j] += w->zt, y[j] += w->yt;
        }
    }
}

/* Backward of step t of one vector; d: gradient of the state after the step. */
INLINE struct state step_bwd(const struct sweep *w, const vf *a, struct place p, i32 t, struct state d) {
    f32 *z = z_of(w, p.b, p.u) + t * w->zt;
    const i64 at = y_at(w, p.b, p.u) + t * w->yt;
    const struct state before = state_before(w, p.b, p.u, t);
    const struct state after = state_of(v_zero(), TWO_STATES ? v_load(w->keep + at) : v_zero());
    vf g[GATES], keep = v_zero();
    load_gates(z, g);
    d = back(a, g, before, after, d, &keep);
    store_gates(z, g);
    if (KEEPS && !TWO_STATES) v_store(w->keep + at, keep);
    return d;
}

/* Gradient of the state after step t1-1, from later steps or from the final state. */
INLINE struct state gradient_after(const struct sweep *w, struct place p, i32 t1) {
    const struct cell_args *x = w->x;
    const i64 at = y_at(w, p.b, p.u);
    const bool end = p.b >= cell_live(x, t1);
    return state_of(v_load_or_zero(end ? x->dhT : x->carry, at),
                    TWO_STATES ? v_load_or_zero(end ? x->dcT : x->carry + x->B * (i64)w->Hp, at) : v_zero());
}

static void put_carry(const struct sweep *w, struct place p, struct state d) {
    const i64 at = y_at(w, p.b, p.u);
    v_store(w->x->carry + at, d.h);
    if (TWO_STATES) v_store(w->x->carry + w->x->B * (i64)w->Hp + at, d.c);
}

INLINE void steps_bwd(const int n, const struct sweep *w, const struct place *p, i32 t0, i32 t1) {
    vf a[WIDTH][NA_ROOM];
    struct state d[WIDTH];
    UNROLL for (int j = 0; j < n; j++) {
        load_weights(w, w->x->w, p[j].u, a[j]);
        d[j] = gradient_after(w, p[j], t1);
    }
    for (i32 t = t1 - 1; t >= t0; t--)
        UNROLL for (int j = 0; j < n; j++) {
            if (w->x->dy) d[j].h = d[j].h + v_load(w->x->dy + y_at(w, p[j].b, p[j].u) + t * w->yt);
            d[j] = step_bwd(w, a[j], p[j], t, d[j]);
        }
    UNROLL for (int j = 0; j < n; j++) put_carry(w, p[j], d[j]);
}

typedef void sweep_fn(const struct sweep *w, const struct place *p, i32 t0, i32 t1);
static void fwd_one(const struct sweep *w, const struct place *p, i32 t0, i32 t1) { steps_fwd(1, w, p, t0, t1); }
static void fwd_few(const struct sweep *w, const struct place *p, i32 t0, i32 t1) { steps_fwd(WIDTH, w, p, t0, t1); }
static void bwd_one(const struct sweep *w, const struct place *p, i32 t0, i32 t1) { steps_bwd(1, w, p, t0, t1); }
static void bwd_few(const struct sweep *w, const struct place *p, i32 t0, i32 t1) { steps_bwd(WIDTH, w, p, t0, t1); }

#include "model/cell/diag_solve.h"

/* Rows [b0,b1) and vectors [v0,v1) of the arguments. */
struct part_of {
    i32 b0, b1, v0, v1;
};

static struct place place_of(struct part_of p, i32 i) {
    const i32 nv = p.v1 - p.v0;
    return (struct place){p.b0 + i / nv, (p.v0 + i % nv) * VL};
}

/* Runs each vector of the part over its live steps in [t0,t1), singly (one) or several together (few); longest rows come first.
 */
static void each(const struct sweep *w, struct part_of p, i32 t0, i32 t1, sweep_fn *one, sweep_fn *few) {
    const i32 count = (p.b1 - p.b0) * (p.v1 - p.v0);
    struct place at[WIDTH];
    for (i32 i = 0, n; i < count; i += n) {
        at[0] = place_of(p, i);
        const i32 end = cell_end(w->x, at[0].b, t0, t1);
        n = few && i + WIDTH <= count && end == cell_end(w->x, place_of(p, i + WIDTH - 1).b, t0, t1) ? WIDTH : 1;
        for (i32 j = 1; j < n; j++) at[j] = place_of(p, i + j);
        if (end > t0) (n > 1 ? few : one)(w, at, t0, end);
    }
}

/* ------------------------------------------------------------------ products ------------------------------------------------ */

/* n rows from (t, b), `stride` rows apart: the operand of one product. */
struct run_of {
    i32 t, b, n;
    i64 stride;
};
typedef void run_fn(const struct sweep *w, const struct kern *k, struct run_of r, struct part_of p, const void *to);

/* Splits the live rows of [t0,t1) x [b0,b1) into runs: one run, or one per step, or one per row, whichever is longer. */
static void each_run(const struct sweep *w, struct part_of p, i32 t0, i32 t1, run_fn *fn, const void *to) {
    const struct kern *k = own_kern();
    const i32 B = w->x->B, b0 = p.b0, b1 = p.b1;
    if (t1 <= t0) return;
    if (cell_is_whole_batch(w->x, b1 - b0) && cell_live(w->x, t1 - 1) >= B) {
        fn(w, k, (struct run_of){t0, 0, (t1 - t0) * B, 1}, p, to);
    } else if (b1 - b0 > t1 - t0) {
        for (i32 t = t0; t < t1; t++) {
            const i32 n = imin(b1, cell_live(w->x, t)) - b0;
            if (n > 0) fn(w, k, (struct run_of){t, b0, n, 1}, p, to);
        }
    } else {
        for (i32 b = b0; b < b1; b++) {
            const i32 n = cell_end(w->x, b, t0, t1) - t0;
            if (n > 0) fn(w, k, (struct run_of){t0, b, n, B}, p, to);
        }
    }
}

/* z = bias + x Wx */
static void run_z(const struct sweep *w, const struct kern *k, struct run_of r, struct part_of part, const void *to) {
    const struct cell_args *x = w->x;
    const i64 row = (i64)r.t * x->B + r.b, ld = r.stride * w->W;
    (void)to;
    for (i32 p = part.v0 / SUB; p < part.v1 / SUB; p++) {
        f32 *z = x->act + row * w->W + (i64)p * AREA;
        for (i32 i = 0; i < r.n; i++) memcpy(z + i * ld, x->bias + (i64)p * AREA, AREA * sizeof *z);
        k->gemm_nn(r.n, AREA, x->I, x->x + row * x->x_ld, r.stride * x->x_ld, x->w + p * w->panel, AREA, z, ld, true);
    }
}

/* dx = dz Wx'; if rows of dx are too close for whole vectors, element by element. */
static void run_dx(const struct sweep *w, const struct kern *k, struct run_of r, struct part_of part, const void *to) {
    const struct cell_args *x = w->x;
    const i32 Ip = round_up(x->I, LANES);
    const i64 row = (i64)r.t * x->B + r.b, ld = r.stride * x->dx_ld;
    const f32 *dz = x->act + row * w->W;
    f32 *dx = x->dx + row * x->dx_ld;
    (void)part, (void)to;
    if (x->dx_ld >= Ip) {
        k->gemm_nn(r.n, x->I, (i32)w->W, dz, r.stride * w->W, x->wt, Ip, dx, ld, false);
        return;
    }
    for (i32 i = 0; i < r.n; i++)
        for (i32 j = 0; j < x->I; j++) {
            f32 sum = 0;
            for (i64 q = 0; q < w->W; q++) sum += dz[i * r.stride * w->W + q] * x->wt[q * Ip + j];
            dx[i * ld + j] = sum;
        }
}

struct grads {
    f32 *dw, *dbias;
};

/* Sums over the rows of a run, started at zero and then added to the total: partial sums lose fewer digits. */
static void unit_grads(const struct sweep *w, struct run_of r, i32 u, const struct grads *to) {
    f32 *db = to->dbias + (i64)(u / LANES) * AREA + u % LANES;
    f32 *da = to->dw + (u / LANES) * w->panel + (i64)w->x->I * AREA + u % LANES;
    vf bias[GATES], sum[NA_ROOM], dz[GATES];
    UNROLL for (int k = 0; k < GATES; k++) bias[k] = v_zero();
    UNROLL for (int k = 0; k < NA; k++) sum[k] = v_zero();
    for (i32 i = 0; i < r.n; i++) {
        const i64 row = (i64)r.t * w->x->B + r.b + i * r.stride;
        load_gates(z_of(w, 0, u) + row * w->W, dz);
        UNROLL for (int k = 0; k < GATES; k++) bias[k] = bias[k] + dz[k];
        if (STATE_ROWS) rows_grad(dz, row_before(w, row, u), v_load(w->keep + row * w->Hp + u), sum);
    }
    UNROLL for (int k = 0; k < GATES; k++) v_store(db + k * LANES, v_load(db + k * LANES) + bias[k]);
    UNROLL for (int k = 0; k < NA; k++) v_store(da + k * LANES, v_load(da + k * LANES) + sum[k]);
}

static void input_grads(const struct sweep *w, const struct kern *k, struct run_of r, i32 p, f32 *dw) {
    f32 sum[DW_INPUTS * AREA] __attribute__((aligned(64)));
    const struct cell_args *x = w->x;
    const i64 row = (i64)r.t * x->B + r.b, x_ld = r.stride * x->x_ld;
    const f32 *dz = x->act + row * w->W + (i64)p * AREA;
    for (i32 i = 0; i < x->I; i += DW_INPUTS) {
        const i32 n = imin(DW_INPUTS, x->I - i);
        k->gemm_tn(n, AREA, r.n, x->x + row * x->x_ld + i, x_ld, dz, r.stride * w->W, sum, AREA, false);
        k->add((i64)n * AREA, dw + p * w->panel + (i64)i * AREA, sum);
    }
}

static void run_dw(const struct sweep *w, const struct kern *k, struct run_of r, struct part_of part, const void *to) {
    const struct grads *g = to;
    const i32 B = w->x->B;
    for (i32 i = 0; i < r.n; i += DW_ROWS) {
        const i64 row = (i64)r.t * B + r.b + i * r.stride;
        const struct run_of some = {(i32)(row / B), (i32)(row % B), imin(DW_ROWS, r.n - i), r.stride};
        for (i32 p = part.v0 / SUB; p < part.v1 / SUB; p++) {
            input_grads(w, k, some, p, g->dw);
            for (i32 u = p * LANES; u < (p + 1) * LANES; u += VL) unit_grads(w, some, u, g);
        }
    }
}

/* ------------------------------------------------------------------ the loop over time steps -------------------------------- */

static bool solves(const struct cell_args *x) { return x->how == CELL_NEWTON || x->how == CELL_SCAN; }

/* Steps per chunk; whole blocks if blocks are solved, so that they do not depend on the other rows. */
static i32 chunk_steps(const struct cell_args *x, i32 rows, i32 panels) {
    const i64 steps = CHUNK_FLOATS / lmax(1, (i64)rows * panels * AREA);
    if (!solves(x)) return imax(1, (i32)lmin(steps, 1 << 20));
    return imax(DIAG_BLOCK, (i32)lmin(steps, 1 << 20) / DIAG_BLOCK * DIAG_BLOCK);
}

/* Zeroes panels p0..p1 of [T][B][Hp] buffers for rows or steps that are not live. */
static void put_zero(f32 *to, i64 n) { memset(to, 0, (size_t)n * sizeof *to); }

static void end_states(const struct sweep *w, i32 b0, i32 b1, i32 t1, i32 p0, i32 p1) {
    for (i32 b = b0; b < b1; b++) {
        const i32 t = cell_end(w->x, b, 0, t1);
        for (i32 u = p0 * LANES; u < p1 * LANES; u += VL) {
            const struct state s = state_before(w, b, u, t);
            if (w->x->hT) v_store(w->x->hT + y_at(w, b, u), s.h);
            if (TWO_STATES && w->x->cT) v_store(w->x->cT + y_at(w, b, u), s.c);
        }
    }
}

static void fwd(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    const struct sweep w = sweep_of(x);
    i32 p0, p1;
    team_part(x->team, w.Hp / LANES, &p0, &p1);
    const struct part_of part = {b0, b1, p0 * SUB, p1 * SUB};
    const i32 steps = chunk_steps(x, b1 - b0, p1 - p0);
    if (p1 > p0 && b1 > b0) {
        if (solves(x) && t0 == 0)
            for (i32 b = b0; b < b1; b++)
                memset(diag_counts(x, GATES, KEEPS, b, p0), 0, (size_t)(p1 - p0) * sizeof(struct diag_count));
        for (i32 t = t0, end; t < t1; t = end) {
            end = (i32)lmin(t1, (i64)t + steps);
            each_run(&w, part, t, end, run_z, NULL);
            each(&w, part, t, end, solves(x) ? fwd_solve : fwd_one, solves(x) ? NULL : fwd_few);
            for (i32 s = t; s < end && x->live; s++)
                for (i32 b = imax(b0, x->live[s]); b < b1; b++)
                    put_zero(x->y + s * w.yt + y_at(&w, b, p0 * LANES), (i64)(p1 - p0) * LANES);
        }
        end_states(&w, b0, b1, t1, p0, p1);
    }
    team_signal(x->team, 1);
    team_wait(x->team, 1);
}

/* Writes dh0, dc0: gradient of the state before step t0, for rows that are live then or never were. */
static void begin_gradients(const struct sweep *w, i32 b0, i32 b1, i32 t0, i32 p0, i32 p1) {
    const struct cell_args *x = w->x;
    for (i32 b = b0; b < b1; b++)
        for (i32 u = p0 * LANES; u < p1 * LANES; u += VL) {
            const struct state d = gradient_after(w, (struct place){b, u}, t0);
            if (x->dh0) v_store(x->dh0 + y_at(w, b, u), d.h);
            if (TWO_STATES && x->dc0) v_store(x->dc0 + y_at(w, b, u), d.c);
        }
}

/* dx of a chunk, rows split among the team; rows that are not live get zero. */
static void inputs_bwd(const struct sweep *w, i32 b0, i32 b1, i32 t0, i32 t1) {
    const struct cell_args *x = w->x;
    each_run(w, (struct part_of){b0, b1, 0, 0}, t0, t1, run_dx, NULL);
    for (i32 t = t0; t < t1 && x->live; t++)
        for (i32 b = imax(b0, x->live[t]); b < b1; b++) put_zero(x->dx + ((i64)t * x->B + b) * x->dx_ld, x->I);
}

static void bwd(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    const struct sweep w = sweep_of(x);
    i32 p0, p1;
    team_part(x->team, w.Hp / LANES, &p0, &p1);
    const struct part_of part = {b0, b1, p0 * SUB, p1 * SUB};
    const i32 steps = chunk_steps(x, b1 - b0, p1 - p0);
    const bool alone = !x->team;
    if (p1 > p0 && b1 > b0) {
        for (i32 end = t1, t; end > t0; end = t) {
            t = t0 + (end - t0 - 1) / steps * steps;
            each(&w, part, t, end, solves(x) ? bwd_solve : bwd_one, solves(x) ? NULL : bwd_few);
            if (alone && x->dx) inputs_bwd(&w, b0, b1, t, end);
        }
        if (x->dh0 || x->dc0) begin_gradients(&w, b0, b1, t0, p0, p1);
    }
    if (alone) return;
    team_signal(x->team, 1);
    team_wait(x->team, 1);
    team_part(x->team, t1 - t0, &p0, &p1);
    if (x->dx) inputs_bwd(&w, b0, b1, t0 + p0, t0 + p1);
    team_signal(x->team, 2);
    team_wait(x->team, 2);
}

static void dw_of(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1, f32 *dw, f32 *dbias) {
    const struct sweep w = sweep_of(x);
    struct grads to = {dw, dbias};
    i32 p0, p1;
    team_part(x->team, w.Hp / LANES, &p0, &p1);
    if (p1 > p0) each_run(&w, (struct part_of){b0, b1, p0 * SUB, p1 * SUB}, t0, t1, run_dw, &to);
}

static i64 act_floats(i32 T, i32 B, i32 inputs, i32 H) {
    (void)inputs;
    return diag_act_floats(T, B, H, GATES, KEEPS);
}

static i64 wt_floats(i32 inputs, i32 H) { return (i64)round_up(H, LANES) * GATES * round_up(inputs, LANES); }

static void prep(i32 inputs, i32 H, const f32 *w, f32 *wt) {
    const i32 Ip = round_up(inputs, LANES), np = round_up(H, LANES) / LANES;
    put_zero(wt, wt_floats(inputs, H));
    for (i32 p = 0; p < np; p++)
        for (i32 k = 0; k < inputs; k++)
            for (i32 j = 0; j < AREA; j++)
                wt[((i64)p * AREA + j) * Ip + k] = w[((i64)p * (inputs + STATE_ROWS) + k) * AREA + j];
}

/* ------------------------------------------------------------------ one step, fed by others --------------------------------- */

static void rows_fwd(const struct cell_rows *r) {
    const struct cell_args x = diag_rows_args(r);
    struct sweep w = sweep_of(&x);
    w.keep = r->keep;
    each(&w, (struct part_of){0, r->n, 0, w.Hp / VL}, 0, 1, fwd_one, fwd_few);
}

static void rows_bwd(const struct cell_rows *r) {
    const struct cell_args x = diag_rows_args(r);
    struct sweep w = sweep_of(&x);
    w.keep = r->keep;
    for (i32 u = 0; u < w.Hp; u += VL) {
        f32 *da = r->dw + (u / LANES) * w.panel + (i64)r->I * AREA + u % LANES;
        vf a[NA_ROOM], sum[NA_ROOM];
        load_weights(&w, r->w, u, a);
        UNROLL for (int k = 0; k < NA; k++) sum[k] = v_load(da + k * LANES);
        for (i32 b = 0; b < r->n; b++) {
            const i64 at = y_at(&w, b, u);
            const struct state d = step_bwd(&w, a, (struct place){b, u}, 0, state_of(v_load(r->dh + at), v_zero()));
            vf dz[GATES];
            load_gates(z_of(&w, b, u), dz);
            if (STATE_ROWS) rows_grad(dz, state_before(&w, b, u, 0), v_load(r->keep + at), sum);
            v_store(r->dh0 + at, v_load(r->dh0 + at) + d.h);
            if (TWO_STATES) v_store(r->dc0 + at, v_load(r->dc0 + at) + d.c);
        }
        UNROLL for (int k = 0; k < NA; k++) v_store(da + k * LANES, sum[k]);
    }
}

const struct cell_set ISA_NAME(SET) = {
    .kern = {.act_floats = act_floats, .wt_floats = wt_floats, .prep = prep, .fwd = fwd, .bwd = bwd, .dw = dw_of},
    .step = {.fwd = rows_fwd, .bwd = rows_bwd},
};

#endif
