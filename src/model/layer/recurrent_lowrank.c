/* recurrent_lowrank.c - low-rank boundary correction of time slicing: estimates the response of a slice's final state to a
 * change of its initial state, in a few directions. It reduces the rounds if the recurrence remembers longer than a slice
 * (docs/time-parallel.md; parareal with a learned coarse operator).
 *
 *     responses  U[k] = d final / d initial  times V[k]     by a second run over the slice from initial + e V; stores no gates
 *     carry      initial'[k] = final[prev] + U[prev] V[prev]' (initial'[prev] - initial[prev])     one sweep in order of slices;
 *                V[k] <- the directions in which its initial state changes: those of U[prev], orthonormalized
 *     backward   the same for gradients, transposed:  U and V exchange roles
 *
 * The correction only improves the guess; exactness comes from rerunning slices until final and initial states match. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "model/layer/recurrent_pass.h"

#define STEP 0.05f /* step e of the finite difference; states are of order 1: larger is nonlinear, smaller loses digits */

static f32 *direction(const struct pass *w, f32 *of, i32 i) { return of + i * w->state; }
static f32 *component(const struct pass *w, i32 i, i32 k) { return &w->component[(i64)i * w->r->B + k]; }

static f64 dot(const struct pass *w, const f32 *a, i32 a_row, const f32 *b, i32 b_row) {
    f64 sum = 0;
    for (i32 s = 0; s < w->states; s++) {
        const f32 *x = a + state_at(w, s, a_row), *y = b + state_at(w, s, b_row);
        for (i32 u = 0; u < w->width[s]; u++) sum += (f64)x[u] * (f64)y[u];
    }
    return sum;
}

/* a += factor * b */
static void add(const struct pass *w, f32 *a, i32 a_row, f32 factor, const f32 *b, i32 b_row) {
    for (i32 s = 0; s < w->states; s++) {
        f32 *x = a + state_at(w, s, a_row);
        const f32 *y = b + state_at(w, s, b_row);
        for (i32 u = 0; u < w->width[s]; u++) x[u] += factor * y[u];
    }
}

static void scale(const struct pass *w, f32 *a, i32 row, f32 factor) {
    for (i32 s = 0; s < w->states; s++)
        for (i32 u = 0; u < w->width[s]; u++) a[state_at(w, s, row) + u] *= factor;
}

/* Orthonormalizes the directions of row k (Gram-Schmidt); a dependent one becomes zero. */
static void orthonormalize(const struct pass *w, i32 k) {
    for (i32 i = 0; i < w->rank; i++) {
        f32 *v = direction(w, w->basis, i);
        const f64 whole = sqrt(dot(w, v, k, v, k));
        for (i32 j = 0; j < i; j++) {
            const f32 *other = direction(w, w->basis, j);
            add(w, v, k, -(f32)dot(w, v, k, other, k), other, k);
        }
        const f64 left = sqrt(dot(w, v, k, v, k));
        scale(w, v, k, left > 1e-4 * whole && left > 1e-30 ? (f32)(1 / left) : 0);
    }
}

void lowrank_clear(const struct pass *w, i32 k) {
    for (i32 i = 0; i < w->rank; i++) *component(w, i, k) = 0;
}

void lowrank_begin(const struct pass *w, i32 k) {
    const u64 slice = (u64)(w->r->row0 + k);
    for (i32 i = 0; i < w->rank; i++)
        for (i32 s = 0; s < w->states; s++) {
            const i32 values = s ? w->op->spec.hidden : w->op->F;
            f32 *v = direction(w, w->basis, i) + state_at(w, s, k);
            for (i32 u = 0; u < w->width[s]; u++)
                v[u] = u < values ? 2 * rng_uniform(1, RNG_GUESS, (u32)(i * w->states + s), slice << 32 | (u64)u) - 1 : 0;
        }
    orthonormalize(w, k);
}

/* Runs rows b0..b1 from state `from` over all steps, a chunk at a time; from and to alternate; returns the final state. */
static f32 *run_plain(const struct pass *w, i32 b0, i32 b1, f32 *from, f32 *to) {
    struct cell_args args = pass_args(w, b0, b1);
    const f32 *x = args.x;
    const i32 *live = args.live;
    args.act = w->probe_act;
    args.y = w->probe_y;
    for (i32 t0 = 0; t0 < w->op->T; t0 += w->chunk) {
        args.T = w->chunk; /* equal layout for all chunks: rows of other threads are adjacent */
        args.x = x + (i64)t0 * args.B * args.x_ld;
        args.live = live ? live + t0 : NULL;
        args.h0 = from, args.c0 = state_c(w, from);
        args.hT = to, args.cT = state_c(w, to);
        const struct part p = {.b0 = b0, .b1 = b1, .t1 = imin(w->chunk, w->op->T - t0), .n = 1};
        w->layer->fwd(w->op, w->r, PREC_F32, &args, p);
        f32 *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* Final states recomputed in f32 from the initial states, for kernels of another precision, whose own are too rough for
 * differences. */
static void plain_finals(const struct pass *w, i32 b0, i32 b1, f32 *a, f32 *b) {
    for (i32 k = b0; k < b1; k++) state_copy(w, a, k, w->initial, k);
    const f32 *end = run_plain(w, b0, b1, a, b);
    for (i32 k = b0; k < b1; k++) state_copy(w, w->rerun, k, end, k);
}

/* Responses of rows b0..b1 in direction i; plain: final states without perturbation. */
static void respond(const struct pass *w, i32 b0, i32 b1, i32 i, const f32 *plain) {
    f32 *a = w->probe_state, *b = a + w->state, *response = direction(w, w->response, i);
    for (i32 k = b0; k < b1; k++) {
        state_copy(w, a, k, w->initial, k);
        add(w, a, k, STEP, direction(w, w->basis, i), k);
    }
    const f32 *end = run_plain(w, b0, b1, a, b);
    for (i32 k = b0; k < b1; k++) {
        state_copy(w, response, k, end, k);
        add(w, response, k, -1, plain, k);
        scale(w, response, k, 1 / STEP);
    }
}

void lowrank_responses(const struct chain *c, i32 k0, i32 k1, const u8 *of) {
    const struct pass w = pass_of(c);
    const u8 *todo = of + w.r->row0;
    const bool rough = w.op->spec.precision != PREC_F32;
    f32 *a = w.probe_state, *b = a + w.state;
    for (i32 b0 = pass_row(&w, k0), b1, end = pass_row(&w, k1); b0 < end; b0 = imax(b1, b0 + 1)) {
        for (b1 = b0; b1 < end && todo[b1]; b1++) {}
        if (b1 > b0 && rough) plain_finals(&w, b0, b1, a, b);
        for (i32 i = 0; i < w.rank && b1 > b0; i++) respond(&w, b0, b1, i, rough ? w.rerun : w.final);
    }
}

/* Clips h to [-1, 1], unless the cell is linear in h or h is a projection. */
static void clip(const struct pass *w, f32 *state, i32 k) {
    f32 *h = state + state_at(w, 0, k);
    if (cell_of(w->op->spec.cell)->linear_in_h || w->op->F < w->op->spec.hidden) return;
    for (i32 u = 0; u < w->width[0]; u++) h[u] = h[u] > 1 ? 1 : h[u] < -1 ? -1 : h[u];
}

/* Sets the initial state of row k to `now`; records the components of the change along each direction of `of`. */
static void change(const struct pass *w, i32 k, const f32 *now, f32 *of) {
    for (i32 i = 0; i < w->rank; i++) {
        const f32 *v = direction(w, of, i);
        *component(w, i, k) = (f32)(dot(w, v, k, now, k) - dot(w, v, k, w->initial, k));
    }
    state_copy(w, w->initial, k, now, k);
}

f32 lowrank_carry(const struct chain *c, i32 slice, f32 tol) {
    const struct pass w = pass_of(c);
    const i32 k = pass_row(&w, slice);
    const struct origin o = pass_source(&w, slice);
    f32 *now = w.rerun;
    state_copy(&w, now, k, o.final, o.row);
    if (w.back) state_add_given(&w, now, k);
    for (i32 i = 0; i < w.rank; i++)
        add(&w, now, k, o.component[(i64)i * w.r->B + o.row], direction(&w, o.directions, i), o.row);
    if (!w.back) clip(&w, now, k);
    const f32 gap = state_distance(&w, now, k, w.initial, k, false);
    lowrank_clear(&w, k);
    if (gap <= tol) return gap;
    change(&w, k, now, w.back ? w.response : w.basis);
    if (w.back) return gap;
    for (i32 i = 0; i < w.rank; i++) state_copy(&w, direction(&w, w.basis, i), k, direction(&w, o.directions, i), o.row);
    orthonormalize(&w, k);
    return gap;
}
