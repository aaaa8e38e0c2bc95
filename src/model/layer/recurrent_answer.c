/* recurrent_answer.c - low-rank boundary correction of time slicing: estimates how the final state of a slice responds to a
 * change of its initial state, in a few directions. It reduces the rounds if the recurrence remembers longer than a slice
 * (docs/time-parallel.md; parareal with a learned coarse operator).
 *
 *     answers   U[k] = d final / d initial  times V[k]     by a second run over the slice from initial + e V; stores no gates
 *     carry     initial'[k] = final[prev] + U[prev] V[prev]' (initial'[prev] - initial[prev])     one sweep in order of slices;
 *               V[k] <- the directions in which its input changes: those of U[prev], orthonormalized
 *     backward  the same for gradients, transposed:  U and V exchange roles
 *
 * The correction only improves the guess; exactness comes from rerunning slices until final and initial states match. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "model/layer/recurrent_way.h"

#define NUDGE 0.05f /* step e of the finite difference; states are of order 1: larger is nonlinear, smaller loses digits */

static f32 *direction(const struct way *w, f32 *of, i32 i) { return of + i * w->state; }
static f32 *share(const struct way *w, i32 i, i32 k) { return &w->share[(i64)i * w->r->B + k]; }

static f64 dot(const struct way *w, const f32 *a, i32 a_row, const f32 *b, i32 b_row) {
    f64 sum = 0;
    for (i32 s = 0; s < w->states; s++) {
        const f32 *x = a + way_at(w, s, a_row), *y = b + way_at(w, s, b_row);
        for (i32 u = 0; u < w->width[s]; u++) sum += (f64)x[u] * (f64)y[u];
    }
    return sum;
}

/* a += factor * b */
static void add(const struct way *w, f32 *a, i32 a_row, f32 factor, const f32 *b, i32 b_row) {
    for (i32 s = 0; s < w->states; s++) {
        f32 *x = a + way_at(w, s, a_row);
        const f32 *y = b + way_at(w, s, b_row);
        for (i32 u = 0; u < w->width[s]; u++) x[u] += factor * y[u];
    }
}

static void scale(const struct way *w, f32 *a, i32 row, f32 factor) {
    for (i32 s = 0; s < w->states; s++)
        for (i32 u = 0; u < w->width[s]; u++) a[way_at(w, s, row) + u] *= factor;
}

/* Orthonormalizes the directions of row k (Gram-Schmidt); a dependent one becomes zero. */
static void straighten(const struct way *w, i32 k) {
    for (i32 i = 0; i < w->rank; i++) {
        f32 *v = direction(w, w->ask, i);
        const f64 whole = sqrt(dot(w, v, k, v, k));
        for (i32 j = 0; j < i; j++) {
            const f32 *other = direction(w, w->ask, j);
            add(w, v, k, -(f32)dot(w, v, k, other, k), other, k);
        }
        const f64 left = sqrt(dot(w, v, k, v, k));
        scale(w, v, k, left > 1e-4 * whole && left > 1e-30 ? (f32)(1 / left) : 0);
    }
}

void way_at_rest(const struct way *w, i32 k) {
    for (i32 i = 0; i < w->rank; i++) *share(w, i, k) = 0;
}

void way_ask_anything(const struct way *w, i32 k) {
    const u64 slice = (u64)(w->r->row0 + k);
    for (i32 i = 0; i < w->rank; i++)
        for (i32 s = 0; s < w->states; s++) {
            const i32 values = s ? w->op->spec.hidden : w->op->F;
            f32 *v = direction(w, w->ask, i) + way_at(w, s, k);
            for (i32 u = 0; u < w->width[s]; u++)
                v[u] = u < values ? 2 * rng_uniform(1, RNG_GUESS, (u32)(i * w->states + s), slice << 32 | (u64)u) - 1 : 0;
        }
    straighten(w, k);
}

/* Runs rows b0..b1 from state `from` over all steps, a chunk at a time; from and to alternate; returns the final state. */
static f32 *walk(const struct way *w, i32 b0, i32 b1, f32 *from, f32 *to) {
    struct cell_args box = way_box(w, from, b0, b1);
    const f32 *x = box.x;
    const i32 *live = box.live;
    box.act = w->spare;
    box.y = w->spare_y;
    for (i32 t0 = 0; t0 < w->op->T; t0 += w->chunk) {
        box.T = w->chunk; /* equal layout for all chunks: rows of other threads are adjacent */
        box.x = x + (i64)t0 * box.B * box.x_ld;
        box.live = live ? live + t0 : NULL;
        box.h0 = from, box.c0 = way_c(w, from);
        box.hT = to, box.cT = way_c(w, to);
        const struct part p = {.b0 = b0, .b1 = b1, .t1 = imin(w->chunk, w->op->T - t0), .n = 1};
        w->walk->fwd(w->op, w->r, PREC_F32, &box, p);
        f32 *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* Final states recomputed in f32 from the initial states, for kernels of another precision, whose own are too rough for
 * differences. */
static void plain_ends(const struct way *w, i32 b0, i32 b1, f32 *a, f32 *b) {
    for (i32 k = b0; k < b1; k++) way_copy(w, a, k, w->begin, k);
    const f32 *end = walk(w, b0, b1, a, b);
    for (i32 k = b0; k < b1; k++) way_copy(w, w->fresh, k, end, k);
}

/* Responses of rows b0..b1 in direction i; plain: final states without perturbation. */
static void ask(const struct way *w, i32 b0, i32 b1, i32 i, const f32 *plain) {
    f32 *a = w->spare_state, *b = a + w->state, *answer = direction(w, w->answer, i);
    for (i32 k = b0; k < b1; k++) {
        way_copy(w, a, k, w->begin, k);
        add(w, a, k, NUDGE, direction(w, w->ask, i), k);
    }
    const f32 *end = walk(w, b0, b1, a, b);
    for (i32 k = b0; k < b1; k++) {
        way_copy(w, answer, k, end, k);
        add(w, answer, k, -1, plain, k);
        scale(w, answer, k, 1 / NUDGE);
    }
}

void way_answers(const struct chain *c, i32 k0, i32 k1, const u8 *of) {
    const struct way w = way_of(c, false);
    const i32 first = k0 - w.r->row0, end = k1 - w.r->row0;
    const u8 *todo = of + w.r->row0;
    const bool rough = w.op->spec.precision != PREC_F32;
    f32 *a = w.spare_state, *b = a + w.state;
    for (i32 b0 = first, b1; b0 < end; b0 = b1) {
        for (b1 = b0; b1 < end && todo[b1]; b1++) {}
        if (b1 == b0) {
            b1++;
            continue;
        }
        if (rough) plain_ends(&w, b0, b1, a, b);
        for (i32 i = 0; i < w.rank; i++) ask(&w, b0, b1, i, rough ? w.fresh : w.end);
    }
}

/* Clips h to [-1, 1], unless the cell is linear in h or h is a projection. */
static void clip(const struct way *w, f32 *state, i32 k) {
    f32 *h = state + way_at(w, 0, k);
    if (cell_of(w->op->spec.cell)->linear_in_h || w->op->F < w->op->spec.hidden) return;
    for (i32 u = 0; u < w->width[0]; u++) h[u] = h[u] > 1 ? 1 : h[u] < -1 ? -1 : h[u];
}

/* Moves begin[k] to `now`; records the components of the move along each direction of `of`. */
static void move(const struct way *w, i32 k, const f32 *now, f32 *of) {
    for (i32 i = 0; i < w->rank; i++) {
        const f32 *v = direction(w, of, i);
        *share(w, i, k) = (f32)(dot(w, v, k, now, k) - dot(w, v, k, w->begin, k));
    }
    way_copy(w, w->begin, k, now, k);
}

/* project: the directions along which a move of the initial state of row k is measured. */
static f32 carry(const struct way *w, const struct origin *from, i32 k, f32 tol, f32 *project) {
    f32 *now = w->fresh;
    way_copy(w, now, k, from->end, from->row);
    if (w->back) way_add_given(w, now, k);
    for (i32 i = 0; i < w->rank; i++)
        add(w, now, k, from->share[(i64)i * w->r->B + from->row], direction(w, from->known, i), from->row);
    if (!w->back) clip(w, now, k);
    const f32 gap = way_distance(w, now, k, w->begin, k);
    way_at_rest(w, k);
    if (!(gap <= tol)) move(w, k, now, project);
    return gap;
}

f32 way_carry_fwd(const struct chain *c, i32 slice, f32 tol) {
    const struct way w = way_of(c, false);
    const i32 k = slice - w.r->row0;
    const struct origin o = way_origin(&w, w.after[slice], k);
    const f32 gap = carry(&w, &o, k, tol, w.ask);
    if (gap <= tol) return gap;
    for (i32 i = 0; i < w.rank; i++) way_copy(&w, direction(&w, w.ask, i), k, direction(&w, o.known, i), o.row);
    straighten(&w, k);
    return gap;
}

f32 way_carry_bwd(const struct chain *c, i32 slice, f32 tol) {
    const struct way w = way_of(c, true);
    const i32 k = slice - w.r->row0;
    const struct origin o = way_origin(&w, w.next[k], k);
    return carry(&w, &o, k, tol, w.answer);
}
