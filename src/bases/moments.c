/* moments.c - sums over windows, and the normal equations made from them (see linear.h).
 *
 * With z[o-L+i] = lag i, p = L - 1 the last one, u_i = lag i - lag p and v_h = future h - lag p:
 *     sum u_i u_j = G[i][j] - G[i][p] - G[j][p] + G[p][p]        sum u_i v_h = G[i][L+h] - G[p][L+h] - G[i][p] + G[p][p]
 * Marks are scaled to a mean square of about one, like z-scored values, so that one penalty suits both. Columns known ahead are
 * z-scored. Extras e: the marks, then the inputs known ahead. */
#include <math.h>
#include <string.h>

#include "bases/linear.h"

err moments_init(struct arena *a, i32 L, i32 H, i32 marks, i32 X, struct moments *m) {
    const i32 C = marks > 0 ? RIDGE_CALENDAR : 0;
    const i64 width = (i64)L + H, E = C + X;
    *m = (struct moments){.L = L, .H = H, .C = C, .X = X, .marks = marks, .size = (L + 2 + E) * width + E * E + X};
    ARENA_NEW(a, m->row, width);
    ARENA_NEW(a, m->block, 2 * MOMENTS_BLOCK * (i64)X);
    ARENA_NEW(a, m->input, X);
    ARENA_NEW(a, m->G, m->size);
    m->D = m->G + L * width;
    m->S = m->D + width;
    m->M = m->S + width;
    m->N = m->M + E * width;
    m->SX = m->N + E * E;
    return 0;
}

void moments_clear(struct moments *m) {
    m->n = 0;
    memset(m->G, 0, (size_t)m->size * sizeof *m->G);
}

static void add_all(f64 *to, const f64 *from, i64 n) {
    for (i64 i = 0; i < n; i++) to[i] += from[i];
}

static void take_marks(struct moments *m, const f64 *z, const i64 *time, i64 a, i64 b) {
    const i64 width = (i64)m->L + m->H, E = m->C + m->X;
    i32 mark[3];
    for (i64 o = a; o < b; o++) {
        calendar_marks(time[o], mark);
        for (i32 i = 0; i < m->marks; i++) {
            add_all(m->M + mark[i] * width, z + o - m->L, width);
            for (i32 j = 0; j < m->marks; j++) m->N[mark[i] * E + mark[j]] += 1;
        }
    }
}

/* Products of the inputs u known ahead at one origin with its marks, and their sums. */
static void take_input(struct moments *m, const struct windows *w, i64 origin, const f64 *u) {
    const i64 E = m->C + m->X;
    i32 mark[3];
    add_all(m->SX, u, m->X);
    if (!m->C) return;
    calendar_marks(w->s->time[origin], mark);
    for (i32 i = 0; i < m->marks; i++) add_all(m->N + mark[i] * E + m->C, u, m->X);
}

/* Inputs known ahead: blocks of windows, whose products are matrix products. */
static void take_ahead(struct moments *m, const struct windows *w, i32 col, const f64 *z, i64 a, i64 b) {
    const struct algebra *g = algebra_best();
    const i32 X = m->X, E = m->C + X, width = m->L + m->H;
    f64 *u = m->block, *minus = u + (i64)MOMENTS_BLOCK * X;
    for (i64 o = a; o < b; o += MOMENTS_BLOCK) {
        const i32 n = (i32)lmin(MOMENTS_BLOCK, b - o);
        for (i32 k = 0; k < n; k++) {
            ahead_take(&w->ahead, w->s, col, o + k, m->H, m->input);
            for (i32 x = 0; x < X; x++) minus[(i64)k * X + x] = -(u[(i64)k * X + x] = (f64)m->input[x]);
            take_input(m, w, o + k, u + (i64)k * X);
        }
        g->sub(X, width, n, minus, 1, X, z + o - m->L, 1, m->M + (i64)m->C * width, width);
        g->sub(X, X, n, minus, 1, X, u, X, m->N + (i64)m->C * E + m->C, E);
    }
}

void moments_take(struct moments *m, const struct windows *w, i32 col, i64 a, i64 b) {
    const struct algebra *g = algebra_best();
    const f64 *z = w->z + col * (w->nrow + 1);
    const i32 width = m->L + m->H;
    if (a >= b) return;
    const f64 *za = z + a - m->L, *zb = z + b - m->L; /* first window, and the one after the last */
    f64 square = 0, sum = 0;
    m->n += b - a;
    memset(m->row, 0, (size_t)width * sizeof(f64));
    g->add_lags(b - a, width, za, m->row);
    for (i64 t = 0; t < b - a; t++) square += za[t] * za[t], sum += za[t];
    for (i32 i = 0; i < width; i++) {
        m->D[i] += square;
        m->S[i] += sum;
        square += zb[i] * zb[i] - za[i] * za[i];
        sum += zb[i] - za[i];
    }
    for (i32 i = 0; i < m->L; i++) g->shift(width - i, zb[i], zb + i, za[i], za + i, m->row, m->G + (i64)i * width + i);
    if (m->C) take_marks(m, z, w->s->time, a, b);
    if (m->X) take_ahead(m, w, col, z, a, b);
}

i32 moments_inputs(const struct moments *m, struct input_set set) {
    return m->L - 1 + (set.calendar ? m->C : 0) + (set.ahead ? m->X : 0);
}

/* --- normal equations --- */

err system_init(struct arena *a, i32 K, i32 N, i32 stride, struct system *q) {
    *q = (struct system){.K = K, .N = N, .stride = stride};
    ARENA_NEW(a, q->UU, (i64)K * K);
    ARENA_NEW(a, q->UV, (i64)K * N);
    ARENA_NEW(a, q->SU, K);
    ARENA_NEW(a, q->SV, N);
    return 0;
}

f64 mark_scale(i32 c) { return c < 24 ? sqrt(24) : c < 31 ? sqrt(7) : sqrt(12); }

static f64 extra_scale(const struct moments *m, i32 e) { return e < m->C ? mark_scale(e) : 1; }

static f64 extra_pair(const struct moments *m, i32 e, i32 d) {
    const i64 E = m->C + m->X;
    return m->N[imin(e, d) * E + imax(e, d)];
}

/* The extras [e0, e1): input k of the system is extra e0 + k - p. */
static void system_extras(struct system *q, const struct moments *m, i32 e0, i32 e1) {
    const i32 p = m->L - 1, width = m->L + m->H;
    for (i32 e = e0; e < e1; e++) {
        const f64 f = extra_scale(m, e), *M = m->M + (i64)e * width;
        const i32 k = p + e - e0;
        q->SU[k] = f * (e < m->C ? extra_pair(m, e, e) : m->SX[e - m->C]);
        for (i32 i = 0; i < p; i++) q->UU[(i64)i * q->K + k] = q->UU[(i64)k * q->K + i] = f * (M[i] - M[p]);
        for (i32 d = e0; d < e1; d++) q->UU[(i64)k * q->K + p + d - e0] = f * extra_scale(m, d) * extra_pair(m, e, d);
        for (i32 h = 0; h < q->N; h++) q->UV[(i64)k * q->N + h] = f * (M[m->L + h * q->stride] - M[p]);
    }
}

void system_from(struct system *q, const struct moments *m, struct input_set set) {
    const i32 L = m->L, p = L - 1, width = L + m->H, e0 = set.calendar ? 0 : m->C, e1 = m->C + (set.ahead ? m->X : 0);
    const f64 *G = m->G, *last = G + (i64)p * width, square = last[p];
    q->K = moments_inputs(m, set);
    q->constant = set.constant;
    q->n = m->n;
    q->VV = 0;
    for (i32 i = 0; i < p; i++) {
        const f64 *row = G + (i64)i * width;
        q->SU[i] = m->S[i] - m->S[p];
        for (i32 j = i; j < p; j++) {
            f64 v = row[j] - row[p] - G[(i64)j * width + p] + square;
            q->UU[(i64)i * q->K + j] = q->UU[(i64)j * q->K + i] = v;
        }
        for (i32 h = 0; h < q->N; h++) {
            i32 at = L + h * q->stride;
            q->UV[(i64)i * q->N + h] = row[at] - last[at] - row[p] + square;
        }
    }
    for (i32 h = 0; h < q->N; h++) {
        i32 at = L + h * q->stride;
        q->SV[h] = m->S[at] - m->S[p];
        q->VV += m->D[at] - 2 * last[at] + square;
    }
    system_extras(q, m, e0, e1);
}

err solution_init(struct arena *a, i32 K, i32 N, struct solution *x) {
    *x = (struct solution){.K = K, .N = N};
    ARENA_NEW(a, x->W, (i64)K * N);
    ARENA_NEW(a, x->b, N);
    ARENA_NEW(a, x->A, (i64)K * K);
    ARENA_NEW(a, x->T, (i64)K * N);
    return 0;
}

/* A constant is not penalised: inputs and targets are centred first. */
err ridge_solve(const struct system *q, f64 penalty, struct solution *x) {
    const struct algebra *g = algebra_best();
    const i32 K = x->K = q->K, N = q->N;
    const f64 n = (f64)q->n, share = q->constant ? 1 / n : 0;
    bool done = false;
    for (i32 attempt = 0; !done; attempt++, penalty = dmax(penalty * 10, 1e-9)) {
        if (attempt == 12)
            return FAIL(E1, "ridge: %d x %d normal equations of %lld windows are not finite", K, K, (long long)q->n);
        for (i32 i = 0; i < K; i++) {
            for (i32 j = i; j < K; j++) x->A[(i64)i * K + j] = q->UU[(i64)i * K + j] - q->SU[i] * q->SU[j] * share;
            x->A[(i64)i * K + i] += penalty * n;
        }
        done = cholesky(g, K, x->A);
    }
    for (i32 i = 0; i < K; i++)
        for (i32 h = 0; h < N; h++) x->W[(i64)i * N + h] = q->UV[(i64)i * N + h] - q->SU[i] * share * q->SV[h];
    cholesky_solve(g, K, x->A, N, x->W);
    for (i32 h = 0; h < N; h++) x->b[h] = q->SV[h] * share;
    for (i32 i = 0; i < K; i++)
        for (i32 h = 0; h < N; h++) x->b[h] -= q->SU[i] * share * x->W[(i64)i * N + h];
    return 0;
}

f64 ridge_loss(const struct system *q, struct solution *x) {
    const i32 K = q->K, N = q->N;
    f64 sum = q->VV;
    memset(x->T, 0, (size_t)K * (size_t)N * sizeof(f64));
    algebra_best()->sub(K, N, K, q->UU, K, 1, x->W, N, x->T, N); /* T = -UU W */
    for (i32 i = 0; i < K; i++)
        for (i32 h = 0; h < N; h++) {
            f64 w = x->W[(i64)i * N + h];
            sum += w * (2 * q->SU[i] * x->b[h] - 2 * q->UV[(i64)i * N + h] - x->T[(i64)i * N + h]);
        }
    for (i32 h = 0; h < N; h++) sum += x->b[h] * ((f64)q->n * x->b[h] - 2 * q->SV[h]);
    return sum / ((f64)q->n * N);
}

static void ridge_fill(const struct solution *x, struct ridge *r) {
    const i32 p = r->L - 1;
    for (i32 h = 0; h < r->H; h++) {
        for (i32 k = 0; k < x->K; k++) {
            const f64 scale = r->calendar && k >= p && k < p + RIDGE_CALENDAR ? mark_scale(k - p) : 1;
            r->w[(i64)(k < p ? k : r->L + 1 + k - p) * r->Hp + h] = (f32)(x->W[(i64)k * x->N + h] * scale);
        }
        r->w[(i64)r->L * r->Hp + h] = (f32)x->b[h];
    }
}

err ridge_from(const struct moments *m, struct input_set set, const struct ahead_inputs *ahead, f64 penalty, struct ridge **out) {
    struct arena memory = {0};
    struct system q;
    struct solution x;
    const struct ridge shape = {.L = m->L, .H = m->H, .constant = set.constant, .calendar = set.calendar,
                                .ahead = set.ahead ? *ahead : (struct ahead_inputs){0}, .penalty = penalty, .windows = m->n};
    const i32 K = moments_inputs(m, set);
    err e = system_init(&memory, K, m->H, 1, &q);
    if (e >= 0) e = solution_init(&memory, K, m->H, &x);
    if (e >= 0) {
        system_from(&q, m, set);
        e = ridge_solve(&q, penalty, &x);
    }
    if (e >= 0) e = ridge_new(&shape, out);
    if (e >= 0) ridge_fill(&x, *out);
    arena_free(&memory);
    return e;
}
