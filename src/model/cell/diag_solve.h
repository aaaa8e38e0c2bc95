/* diag_solve.h - a block of steps at once: the linear recurrence by chunks, Newton around it; a part of diag_kern.h.
 *
 *     x[i] = m[i] x[i-1] + r[i]        m: a number, or 2x2 of (h, c), for every unit
 *
 *     up      every chunk on its own     its end as a linear function of its begin: x_end = M x_begin + R
 *     across  one chunk after another    the begins
 *     down    every chunk on its own     x, in place of r */
#ifndef STRETTO_MODEL_CELL_DIAG_SOLVE_H
#define STRETTO_MODEL_CELL_DIAG_SOLVE_H

enum { NS = 1 + TWO_STATES, CHUNKS = DIAG_BLOCK / DIAG_CHUNK };

/* The factors as hh, hc, ch, cc; one state has the first alone. */
struct system {
    f32 m[NS * NS][DIAG_BLOCK][VL], r[NS][DIAG_BLOCK][VL];
} __attribute__((aligned(64)));

struct chunk {
    vf m[NS * NS], r[NS];
};

/* x = m x + r for n = 1 or 2 states. */
INLINE void advance(const int n, const vf *m, const vf *r, vf *x) {
    const vf x0 = x[0];
    if (n == 1) {
        x[0] = v_fma(m[0], x0, r[0]);
        return;
    }
    x[0] = v_fma(m[0], x0, v_fma(m[1], x[1], r[0]));
    x[1] = v_fma(m[2], x0, v_fma(m[3], x[1], r[1]));
}

INLINE void load_system(const int n, const struct system *s, i32 i, vf *m, vf *r) {
    UNROLL for (int k = 0; k < n * n; k++) m[k] = v_load(s->m[k][i]);
    UNROLL for (int k = 0; k < n; k++) r[k] = v_load(s->r[k][i]);
}

/* Steps [i0,i1) as one. */
INLINE struct chunk chunk_up(const int n, const struct system *s, i32 i0, i32 i1) {
    struct chunk c = {0};
    load_system(n, s, i0, c.m, c.r);
    for (i32 i = i0 + 1; i < i1; i++) {
        vf m[4], r[2];
        load_system(n, s, i, m, r);
        advance(n, m, r, c.r);
        UNROLL for (int k = 0; k < n; k++) { /* a column of the product */
            const vf top = c.m[k];
            if (n == 1) {
                c.m[0] = m[0] * top;
            } else {
                const vf low = c.m[2 + k];
                c.m[k] = v_fma(m[0], top, m[1] * low);
                c.m[2 + k] = v_fma(m[2], top, m[3] * low);
            }
        }
    }
    return c;
}

INLINE void chunk_down(const int n, struct system *s, i32 i0, i32 i1, const vf *begin) {
    vf x[2];
    UNROLL for (int k = 0; k < n; k++) x[k] = begin[k];
    for (i32 i = i0; i < i1; i++) {
        vf m[4], r[2];
        load_system(n, s, i, m, r);
        advance(n, m, r, x);
        UNROLL for (int k = 0; k < n; k++) v_store(s->r[k][i], x[k]);
    }
}

INLINE void solve(const int n, struct system *s, i32 steps, const vf *begin) {
    const i32 chunks = ceil_div(steps, DIAG_CHUNK);
    struct chunk sum[CHUNKS];
    vf at[CHUNKS][2];
    for (i32 k = 0; k + 1 < chunks; k++) sum[k] = chunk_up(n, s, k * DIAG_CHUNK, (k + 1) * DIAG_CHUNK);
    UNROLL for (int k = 0; k < n; k++) at[0][k] = begin[k];
    for (i32 k = 1; k < chunks; k++) {
        UNROLL for (int j = 0; j < n; j++) at[k][j] = at[k - 1][j];
        advance(n, sum[k - 1].m, sum[k - 1].r, at[k]);
    }
    for (i32 k = 0; k < chunks; k++) chunk_down(n, s, k * DIAG_CHUNK, imin(steps, (k + 1) * DIAG_CHUNK), at[k]);
}

/* One vector over a block of steps. */
struct block {
    const struct walk *w;
    struct place p;
    i32 t, n;
    f32 *z, *y, *keep;
    struct state begin;
    vf a[NA_ROOM];
};

INLINE void block_open(struct block *k, const struct walk *w, struct place p, i32 t, i32 n) {
    *k = (struct block){.w = w, .p = p, .t = t, .n = n};
    k->z = z_of(w, p.b, p.u) + t * w->zt;
    k->y = w->x->y + y_at(w, p.b, p.u) + t * w->yt;
    k->keep = TWO_STATES ? w->keep + y_at(w, p.b, p.u) + t * w->yt : NULL;
    k->begin = state_before(w, p.b, p.u, t);
    load_weights(w, w->x->w, p.u, k->a);
}

INLINE struct state block_state(const struct block *k, i32 i) {
    return state_of(v_load(k->y + i * k->w->yt), TWO_STATES ? v_load(k->keep + i * k->w->yt) : v_zero());
}
INLINE struct state block_before(const struct block *k, i32 i) { return i > 0 ? block_state(k, i - 1) : k->begin; }
INLINE void block_put(const struct block *k, i32 i, struct state s) {
    v_store(k->y + i * k->w->yt, s.h);
    if (TWO_STATES) v_store(k->keep + i * k->w->yt, s.c);
}

/* ------------------------------------------------------------------ linear cells ------------------------------------------- */

#if LINEAR
static void scan_block(const struct block *k, struct system *s) {
    for (i32 i = 0; i < k->n; i++) {
        vf g[GATES], m, r;
        load_gates(k->z + i * k->w->zt, g);
        step(k->a, g, k->begin);
        store_gates(k->z + i * k->w->zt, g);
        frozen(g, &m, &r);
        v_store(s->m[0][i], m);
        v_store(s->r[0][i], r);
    }
    solve(1, s, k->n, &k->begin.h);
    for (i32 i = 0; i < k->n; i++) v_store(k->y + i * k->w->yt, v_load(s->r[0][i]));
}

static void solve_block(struct block *k, struct system *s) { scan_block(k, s); }
#else
/* ------------------------------------------------------------------ Newton -------------------------------------------------- */

/* s[t] = F(0, x[t]); then the gates this gives, frozen, and the linear recurrence that is left. */
static void guess(const struct block *k, struct system *s) {
    vf g[GATES];
    for (i32 i = 0; i < k->n; i++) {
        load_gates(k->z + i * k->w->zt, g);
        block_put(k, i, step(k->a, g, state_of(v_zero(), v_zero())));
    }
    for (i32 i = 0; i < k->n; i++) {
        vf m, r;
        load_gates(k->z + i * k->w->zt, g);
        step(k->a, g, block_before(k, i));
        frozen(g, &m, &r);
        v_store(s->m[0][i], m);
        v_store(s->r[0][i], r);
    }
    solve(1, s, k->n, TWO_STATES ? &k->begin.c : &k->begin.h);
    for (i32 i = k->n - 1; i >= 0; i--) {
        const vf x = v_load(s->r[0][i]), out = v_load(k->z + i * k->w->zt + (GATES - 1) * LANES);
        block_put(k, i, state_of(h_of(k->a, out, block_before(k, i).h, x), x));
    }
}

/* Jacobians and residuals where the states are now. */
static void linearise(const struct block *k, struct system *s) {
    for (i32 i = 0; i < k->n; i++) {
        const struct state before = block_before(k, i), now = block_state(k, i);
        vf g[GATES];
        load_gates(k->z + i * k->w->zt, g);
        const struct state after = step(k->a, g, before);
        const struct jac j = jacobian(k->a, g, before, after);
        v_store(s->m[0][i], j.hh);
        v_store(s->r[0][i], after.h - now.h);
        if (!TWO_STATES) continue;
        v_store(s->m[1 * TWO_STATES][i], j.hc);
        v_store(s->m[2 * TWO_STATES][i], j.ch);
        v_store(s->m[3 * TWO_STATES][i], j.cc);
        v_store(s->r[TWO_STATES][i], after.c - now.c);
    }
}

/* Is no |r| larger than limit?  NaN is. */
static bool within(const struct system *s, i32 n, f32 limit) {
    i32 beyond = 0;
    for (i32 k = 0; k < NS; k++) {
        const f32 *r = s->r[k][0];
        for (i32 i = 0; i < n * VL; i++) beyond |= !(r[i] <= limit && r[i] >= -limit);
    }
    return !beyond;
}

/* False when it does not converge; then the pre-activations are still there. */
static bool newton_block(const struct block *k, struct system *s, struct diag_count *count) {
    const vf zero[2] = {v_zero(), v_zero()};
    bool done = false;
    i32 turns = 0;
    guess(k, s);
    while (!done && turns < DIAG_CAP) {
        turns++;
        linearise(k, s);
        if (!within(s, k->n, 1e3f)) break; /* it runs away, or there is a NaN */
        done = within(s, k->n, DIAG_RESIDUAL);
        solve(NS, s, k->n, zero);
        done = done && within(s, k->n, DIAG_CHANGE);
        for (i32 i = 0; i < k->n; i++) {
            const struct state now = block_state(k, i);
            const vf dc = TWO_STATES ? v_load(s->r[TWO_STATES][i]) : v_zero();
            block_put(k, i, state_of(now.h + v_load(s->r[0][i]), now.c + dc));
        }
    }
    count->blocks++;
    count->iterations += turns;
    count->most = imax(count->most, turns);
    count->fallbacks += !done;
    for (i32 i = 0; i < k->n && done; i++) {
        vf g[GATES];
        load_gates(k->z + i * k->w->zt, g);
        step(k->a, g, block_before(k, i));
        store_gates(k->z + i * k->w->zt, g);
    }
    return done;
}

static void solve_block(struct block *k, struct system *s) {
    struct diag_count *count = diag_counts(k->w->x, GATES, KEEPS, k->p.b, k->p.u / LANES);
    if (!newton_block(k, s, count)) fwd_one(k->w, &k->p, k->t, k->t + k->n);
}
#endif

static void fwd_solve(const struct walk *w, const struct place *p, i32 t0, i32 t1) {
    struct system s;
    struct block k;
    for (i32 t = t0; t < t1; t += DIAG_BLOCK) {
        block_open(&k, w, *p, t, imin(DIAG_BLOCK, t1 - t));
        solve_block(&k, &s);
    }
}

/* ------------------------------------------------------------------ backward ------------------------------------------------ */

/* d[t] = J[t+1]' d[t+1] + dy[t], from the end: entry i of the system is step n-1-i of the block. */
static void adjoint(const struct block *k, struct system *s) {
    const f32 *dy = k->w->x->dy ? k->w->x->dy + y_at(k->w, k->p.b, k->p.u) + k->t * k->w->yt : NULL;
    struct jac j = {v_set1(1), v_zero(), v_zero(), v_set1(1)};
    for (i32 i = 0; i < k->n; i++) {
        const i32 t = k->n - 1 - i;
        v_store(s->m[0][i], j.hh);
        v_store(s->r[0][i], v_load_or_zero(dy, t * k->w->yt));
        if (TWO_STATES) {
            v_store(s->m[1 * TWO_STATES][i], j.ch);
            v_store(s->m[2 * TWO_STATES][i], j.hc);
            v_store(s->m[3 * TWO_STATES][i], j.cc);
            v_store(s->r[TWO_STATES][i], v_zero());
        }
        vf g[GATES];
        load_gates(k->z + t * k->w->zt, g);
        j = jacobian(k->a, g, block_before(k, t), block_state(k, t));
    }
}

static void bwd_solve(const struct walk *w, const struct place *p, i32 t0, i32 t1) {
    struct system s;
    struct block k;
    for (i32 end = t1, t; end > t0; end = t) {
        t = t0 + (end - t0 - 1) / DIAG_BLOCK * DIAG_BLOCK;
        block_open(&k, w, *p, t, end - t);
        struct state d = gradient_after(w, *p, end);
        const vf begin[2] = {d.h, d.c};
        adjoint(&k, &s);
        solve(NS, &s, k.n, begin);
        for (i32 i = 0; i < k.n; i++) {
            d = state_of(v_load(s.r[0][i]), TWO_STATES ? v_load(s.r[TWO_STATES][i]) : v_zero());
            d = step_bwd(w, k.a, *p, end - 1 - i, d);
        }
        put_carry(w, *p, d);
    }
}

#endif
