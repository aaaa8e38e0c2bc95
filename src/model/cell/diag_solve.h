/* diag_solve.h - solves a block of steps at once: the linear recurrence in chunks, with Newton's method around it; a part of
 * diag_kern.h.
 *
 *     x[i] = m[i] x[i-1] + r[i]        m: a number, or 2x2 for (h, c), per unit
 *
 *     up      each chunk independently     its last state as an affine function of its first: x_end = M x_begin + R
 *     across  chunks in order              the first states
 *     down    each chunk independently     x, in place of r */
#ifndef STRETTO_MODEL_CELL_DIAG_SOLVE_H
#define STRETTO_MODEL_CELL_DIAG_SOLVE_H

enum { NS = 1 + TWO_STATES, CHUNKS = DIAG_BLOCK / DIAG_CHUNK };

/* The factors in the order hh, hc, ch, cc; with one state only the first. */
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

/* Composes steps [i0,i1) into one affine map. */
INLINE struct chunk chunk_up(const int n, const struct system *s, i32 i0, i32 i1) {
    struct chunk c = {0};
    load_system(n, s, i0, c.m, c.r);
    for (i32 i = i0 + 1; i < i1; i++) {
        vf m[4], r[2];
        load_system(n, s, i, m, r);
        advance(n, m, r, c.r);
        UNROLL for (int k = 0; k < n; k++) { /* column k of the matrix product */
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
    struct chunk sum[CHUNKS] = {0};
    vf at[CHUNKS][2];
    for (i32 k = 0; k + 1 < chunks; k++) sum[k] = chunk_up(n, s, k * DIAG_CHUNK, (k + 1) * DIAG_CHUNK);
    UNROLL for (int k = 0; k < n; k++) at[0][k] = begin[k];
    for (i32 k = 1; k < chunks; k++) {
        UNROLL for (int j = 0; j < n; j++) at[k][j] = at[k - 1][j];
        advance(n, sum[k - 1].m, sum[k - 1].r, at[k]);
    }
    for (i32 k = 0; k < chunks; k++) chunk_down(n, s, k * DIAG_CHUNK, imin(steps, (k + 1) * DIAG_CHUNK), at[k]);
}

/* One vector over a block of steps. Copies data that is read repeatedly: in its buffers it is strided and often maps to the
 * same cache sets. */
struct block {
    const struct sweep *w;
    struct place p;
    i32 t, n;
    struct state begin;
    vf a[NA_ROOM];
    vf z[DIAG_BLOCK][GATES];     /* pre-activations; in backward gates */
    struct state s[DIAG_BLOCK];  /* after each step */
};

INLINE f32 *block_z(const struct block *k, i32 i) { return z_of(k->w, k->p.b, k->p.u) + (k->t + i) * k->w->zt; }
INLINE i64 block_y(const struct block *k, i32 i) { return y_at(k->w, k->p.b, k->p.u) + (k->t + i) * k->w->yt; }
INLINE struct state block_before(const struct block *k, i32 i) { return i > 0 ? k->s[i - 1] : k->begin; }

static void block_open(struct block *k, const struct sweep *w, struct place p, i32 t, i32 n) {
    k->w = w, k->p = p, k->t = t, k->n = n;
    k->begin = state_before(w, p.b, p.u, t);
    load_weights(w, w->x->w, p.u, k->a);
    for (i32 i = 0; i < n; i++) load_gates(block_z(k, i), k->z[i]);
}

static void block_states(struct block *k) {
    for (i32 i = 0; i < k->n; i++)
        k->s[i] = state_of(v_load(k->w->x->y + block_y(k, i)), TWO_STATES ? v_load(k->w->keep + block_y(k, i)) : v_zero());
}

INLINE void block_close(const struct block *k) {
    for (i32 i = 0; i < k->n; i++) {
        v_store(k->w->x->y + block_y(k, i), k->s[i].h);
        if (TWO_STATES) v_store(k->w->keep + block_y(k, i), k->s[i].c);
    }
}

INLINE void copy_gates(vf *to, const vf *from) { UNROLL for (int k = 0; k < GATES; k++) to[k] = from[k]; }

/* ------------------------------------------------------------------ linear cells ------------------------------------------- */

#if LINEAR
static void solve_block(struct block *k, struct system *s) {
    for (i32 i = 0; i < k->n; i++) {
        vf m, r;
        step(k->a, k->z[i], k->begin);
        store_gates(block_z(k, i), k->z[i]);
        frozen(k->z[i], &m, &r);
        v_store(s->m[0][i], m);
        v_store(s->r[0][i], r);
    }
    solve(1, s, k->n, &k->begin.h);
    for (i32 i = 0; i < k->n; i++) v_store(k->w->x->y + block_y(k, i), v_load(s->r[0][i]));
}
#else
/* ------------------------------------------------------------------ Newton -------------------------------------------------- */

/* Initial guess: s[t] = F(0, x[t]), then one linear solve with these gates fixed. */
static void guess(struct block *k, struct system *s) {
    vf g[GATES];
    for (i32 i = 0; i < k->n; i++) {
        copy_gates(g, k->z[i]);
        k->s[i] = step(k->a, g, state_of(v_zero(), v_zero()));
    }
    for (i32 i = 0; i < k->n; i++) {
        vf m, r;
        copy_gates(g, k->z[i]);
        step(k->a, g, block_before(k, i));
        frozen(g, &m, &r);
        v_store(s->m[0][i], m);
        v_store(s->r[0][i], r);
    }
    solve(1, s, k->n, TWO_STATES ? &k->begin.c : &k->begin.h);
    for (i32 i = k->n - 1; i >= 0; i--) {
        const vf x = v_load(s->r[0][i]);
        k->s[i] = state_of(h_of(k->a, k->z[i][GATES - 1], block_before(k, i).h, x), TWO_STATES ? x : v_zero());
    }
}

/* Computes gates, Jacobians and residuals at the current states. */
static void linearise(const struct block *k, struct system *s) {
    for (i32 i = 0; i < k->n; i++) {
        const struct state before = block_before(k, i);
        vf g[GATES];
        copy_gates(g, k->z[i]);
        const struct state after = step(k->a, g, before);
        const struct jac j = jacobian(k->a, g, before, after);
        store_gates(block_z(k, i), g);
        v_store(s->m[0][i], j.hh);
        v_store(s->r[0][i], after.h - k->s[i].h);
        if (!TWO_STATES) continue;
        v_store(s->m[1 * TWO_STATES][i], j.hc);
        v_store(s->m[2 * TWO_STATES][i], j.ch);
        v_store(s->m[3 * TWO_STATES][i], j.cc);
        v_store(s->r[TWO_STATES][i], after.c - k->s[i].c);
    }
}

/* The largest |r|, with NaN as the largest: nonnegative floats compare as their bits. */
static f32 largest(const struct system *s, i32 n) {
    u32 most = 0;
    for (i32 k = 0; k < NS; k++) {
        const f32 *r = s->r[k][0];
        for (i32 i = 0; i < n * VL; i++) {
            u32 bits;
            memcpy(&bits, r + i, sizeof bits);
            bits &= 0x7fffffff;
            most = bits > most ? bits : most;
        }
    }
    f32 v;
    memcpy(&v, &most, sizeof v);
    return v;
}

/* Newton iteration; false if it does not converge. The gates that remain belong to the last iteration, before its final small
 * update. */
static bool newton_block(struct block *k, struct system *s, struct diag_count *count) {
    const vf zero[2] = {v_zero(), v_zero()};
    bool done = false;
    i32 turns = 0;
    guess(k, s);
    while (!done && turns < DIAG_CAP) {
        turns++;
        linearise(k, s);
        const f32 residual = largest(s, k->n);
        if (!(residual <= 1e3f)) break; /* divergence or NaN */
        solve(NS, s, k->n, zero);
        done = residual <= DIAG_RESIDUAL && largest(s, k->n) <= DIAG_CHANGE;
        for (i32 i = 0; i < k->n; i++) {
            const vf dc = TWO_STATES ? v_load(s->r[TWO_STATES][i]) : v_zero();
            k->s[i] = state_of(k->s[i].h + v_load(s->r[0][i]), k->s[i].c + dc);
        }
    }
    count->blocks++;
    count->iterations += turns;
    count->most = imax(count->most, turns);
    count->fallbacks += !done;
    return done;
}

static void solve_block(struct block *k, struct system *s) {
    if (newton_block(k, s, diag_counts(k->w->x, GATES, KEEPS, k->p.b, k->p.u / LANES))) {
        block_close(k);
        return;
    }
    for (i32 i = 0; i < k->n; i++) store_gates(block_z(k, i), k->z[i]);
    fwd_one(k->w, &k->p, k->t, k->t + k->n);
}
#endif

static void fwd_solve(const struct sweep *w, const struct place *p, i32 t0, i32 t1) {
    struct system s;
    struct block k;
    for (i32 t = t0; t < t1; t += DIAG_BLOCK) {
        block_open(&k, w, *p, t, imin(DIAG_BLOCK, t1 - t));
        solve_block(&k, &s);
    }
}

/* ------------------------------------------------------------------ backward ------------------------------------------------ */

/* Backward system: d[t] = J[t+1]' d[t+1] + dy[t] from the end; entry i is step n-1-i of the block. */
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
        j = jacobian(k->a, k->z[t], block_before(k, t), k->s[t]);
    }
}

static void bwd_solve(const struct sweep *w, const struct place *p, i32 t0, i32 t1) {
    struct system s;
    struct block k;
    for (i32 end = t1, t; end > t0; end = t) {
        t = t0 + (end - t0 - 1) / DIAG_BLOCK * DIAG_BLOCK;
        block_open(&k, w, *p, t, end - t);
        block_states(&k);
        struct state d = gradient_after(w, *p, end);
        const vf begin[2] = {d.h, d.c};
        adjoint(&k, &s);
        solve(NS, &s, k.n, begin);
        for (i32 i = 0; i < k.n; i++) {
            d = state_of(v_load(s.r[0][i]), TWO_STATES ? v_load(s.r[TWO_STATES][i]) : v_zero());
            vf keep = v_zero();
            const i32 at = k.n - 1 - i;
            d = back(k.a, k.z[at], block_before(&k, at), k.s[at], d, &keep);
            store_gates(block_z(&k, at), k.z[at]);
            if (KEEPS && !TWO_STATES) v_store(w->keep + block_y(&k, at), keep);
        }
        put_carry(w, *p, d);
    }
}

#endif
