/* recurrent_chain.c - time slicing of a recurrent layer: every row is a slice, in[3] names the row that it continues.
 *
 *     row 0   |=============|        starts from the initial state    y, act, gates: as in recurrent.c
 *     row 1   |=============|        starts from the end of row 0     (the chain solver repeats until that holds)
 *     row 2   |============|         starts from the end of row 1
 *             ^ chunk ^ chunk ^      after each chunk of steps the states are stored as marks
 *
 * A rerun stops at the first mark where its state is unchanged: the rest of the slice has not changed either. Backward is the
 * same in the other direction: the state is the gradient of (h, c), and a row starts from what its successor left. A rerun
 * needs the gates again, which the fp32 kernels have overwritten with dz: they are recomputed chunk by chunk. Method:
 * docs/time-parallel.md, block Jacobi over slices with early stop.
 *
 * If forward showed how soon the net forgets, the first guess of backward comes from a run over the first steps (head) of each
 * row, and usually suffices. If only final states have a gradient, rows that it has not reached yet are skipped: they would
 * pass on zero. State layout: recurrent_pass.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/layer/recurrent_pass.h"

/* ------------------------------------------------------------------ running ------------------------------------------------- */

static i32 chunk_begin(const struct pass *w, i32 chunk) { return chunk * w->chunk; }
static i32 chunk_end(const struct pass *w, i32 chunk) { return imin(w->op->T, (chunk + 1) * w->chunk); }

/* Live rows per step, for the rows from b0 on. */
static i32 *live_of(const struct pass *w, i32 b0) { return w->live + (i64)b0 * round_up64(w->op->T + 1, LANES); }

/* A chunk as kernel arguments: some steps of the rows; or, if gates are not stored, separate arguments that start from the
 * states before the chunk and, in backward, from the gradient after it. */
struct chunk {
    struct cell_args args;
    i32 t0, t1;
};

/* A short last chunk has the layout of the others, since other threads' rows share it: its rows end early. */
static const i32 *ends_early(const struct pass *w, const struct cell_args *x, i32 b0, i32 steps) {
    i32 *live = live_of(w, b0);
    for (i32 t = 0; t < w->chunk; t++) live[t] = t >= steps ? 0 : x->live ? x->live[t] : x->B;
    return live;
}

/* For the rows from b0. */
static struct chunk chunk_of(const struct pass *w, const struct cell_args *whole, i32 b0, i32 chunk) {
    struct chunk s = {*whole, chunk_begin(w, chunk), chunk_end(w, chunk)};
    if (!w->recompute) return s;
    struct cell_args *x = &s.args;
    const i64 rows = (i64)s.t0 * x->B;
    const i32 steps = s.t1 - s.t0;
    x->T = w->chunk;
    x->x += rows * x->x_ld;
    if (x->dx) x->dx += rows * x->dx_ld;
    if (x->y) x->y += rows * w->width[0];
    if (x->dy) x->dy += rows * w->width[0];
    if (x->live) x->live += s.t0;
    if (steps < w->chunk) x->live = ends_early(w, x, b0, steps);
    if (chunk > 0) {
        const f32 *state = w->mark_fwd + (chunk - 1) * w->state;
        x->h0 = x->y ? x->y - x->B * w->width[0] : state; /* same values; adjacent to y, so dW can treat the steps as one block */
        x->c0 = state_c(w, state);
    }
    if (w->back && chunk + 1 < w->chunks) {
        x->dhT = pass_mark(w, chunk + 1);
        x->dcT = state_c(w, x->dhT);
    }
    s.t0 = 0;
    s.t1 = steps;
    return s;
}

static void chunk_fwd(const struct pass *w, const struct cell_args *whole, i32 b0, i32 b1, i32 chunk, bool again) {
    struct chunk s = chunk_of(w, whole, b0, chunk);
    s.args.hT = again ? w->rerun : pass_mark(w, chunk);
    s.args.cT = state_c(w, s.args.hT);
    pass_fwd(w, &s.args, b0, b1, s.t0, s.t1);
}

static f32 *dw_of(const struct pass *w, i32 grain) { return w->dw + grain * round_up64(w->op->ntheta, LANES); }

/* Adds dW of some steps to the micro-batches of rows b0..b1 while their dz is in cache. */
static void add_dw(const struct pass *w, const struct cell_args *args, i32 b0, i32 b1, i32 t0, i32 t1) {
    const struct part p = {.b0 = b0, .b1 = b1, .t0 = t0, .t1 = t1, .n = 1};
    for (i32 g = grain_first(w->r, p); g < grain_end(w->r, p); g++)
        w->layer->dw(w->op, w->r, args, part_grain(w->r, p, g), dw_of(w, g));
}

/* Recomputes the gates if bwd has overwritten them or they are never stored. */
static void recompute_gates(const struct pass *w, struct chunk *s, i32 b0, i32 b1, bool used) {
    s->args.hT = s->args.cT = NULL;
    if (w->recompute || (used && !w->layer->bwd_again(w->op, w->r))) pass_fwd(w, &s->args, b0, b1, s->t0, s->t1);
}

static void chunk_bwd(const struct pass *w, const struct cell_args *whole, i32 b0, i32 b1, i32 chunk, bool again) {
    struct chunk s = chunk_of(w, whole, b0, chunk);
    recompute_gates(w, &s, b0, b1, again || chunk * w->chunk < w->head);
    s.args.dh0 = again ? w->rerun : pass_mark(w, chunk);
    s.args.dc0 = state_c(w, s.args.dh0);
    pass_bwd(w, &s.args, b0, b1, s.t0, s.t1);
    if (!again && !w->dw_last) add_dw(w, &s.args, b0, b1, s.t0, s.t1);
}

/* After a rerun chunk: stops the rows among b0..b1 that have returned to their marks. */
static void stop_merged(const struct pass *w, i32 b0, i32 b1, i32 chunk, f32 tol, i32 *steps) {
    for (i32 b = b0; b < b1; b++) {
        f32 *mark = pass_mark(w, chunk);
        w->active[b] = !(state_distance(w, w->rerun, b, mark, b, false) <= tol);
        state_copy(w, mark, b, w->rerun, b);
        steps[b] += chunk_end(w, chunk) - chunk_begin(w, chunk);
        if (w->back) w->done[b] = -imax(abs(w->done[b]), w->chunks - chunk);
    }
}

/* Runs the active rows chunk by chunk, each run of adjacent rows in one call. */
static void run_chunks(const struct pass *w, struct cell_args *args, i32 k0, i32 k1, bool again, f32 tol, i32 *steps) {
    bool any = true;
    for (i32 i = 0; i < w->chunks && any; i++) {
        const i32 chunk = w->back ? w->chunks - 1 - i : i;
        any = false;
        for (i32 b = k0, end; b < k1; b = imax(end, b + 1)) {
            for (end = b; end < k1 && w->active[end]; end++) {}
            if (end == b) continue;
            any = true;
            (w->back ? chunk_bwd : chunk_fwd)(w, args, b, end, chunk, again);
            if (again) stop_merged(w, b, end, chunk, tol, steps);
        }
    }
    for (i32 b = k0; b < k1 && !again; b++) steps[b] = w->active[b] ? w->op->T : 0;
}

/* Finds the slice that continues each of the slices k0..k1, -1 = none. */
static void find_next(const struct pass *w, i32 k0, i32 k1) {
    for (i32 k = k0; k < k1; k++) w->next[pass_row(w, k)] = -1;
    for (i32 k = 0; k < w->r->whole; k++)
        if (w->prev[k] >= k0 && w->prev[k] < k1) w->next[pass_row(w, w->prev[k])] = k;
}

/* True if the slices of a sequence are in decreasing order of their numbers. */
static bool reads_down(const struct pass *w) {
    for (i32 k = 0; w->prev && k < w->r->whole; k++)
        if (w->prev[k] >= 0) return w->prev[k] > k;
    return false;
}

static void run_fwd(const struct chain *c, i32 k0, i32 k1, const u8 *todo, bool again, f32 tol, i32 *steps) {
    const struct pass w = pass_of(c);
    const i32 row0 = w.r->row0, b0 = k0 - row0, b1 = k1 - row0;
    if (!again) find_next(&w, k0, k1);
    for (i32 b = b0; b < b1; b++) {
        w.active[b] = todo[row0 + b];
        lowrank_clear(&w, b);
        if (again) continue;
        if (w.prev[row0 + b] < 0) state_give(&w, w.initial, b);
        lowrank_begin(&w, b);
    }
    struct cell_args args = pass_args(&w, b0, b1);
    run_chunks(&w, &args, b0, b1, again, tol, steps + row0);
}

/* True if row b has no gradient to propagate: neither of its final state nor of its outputs (checked at the last steps). NaN
 * counts as a gradient. */
static bool has_no_gradient(const struct pass *w, const struct cell_args *args, i32 b) {
    if (w->one_chunk || w->rank > 0) return false;
    for (i32 s = 0; s < w->states; s++)
        for (i32 u = 0; u < w->width[s]; u++)
            if (w->initial[state_at(w, s, b) + u] != 0) return false;
    for (i32 t = w->op->T - 1; t >= 0 && args->dy; t--)
        for (i32 u = 0; u < w->width[0]; u++)
            if (args->dy[((i64)t * args->B + b) * w->width[0] + u] != 0) return false;
    return true;
}

/* Stores the result of a skipped row: zeros; its gates remain to be processed if it becomes active. */
static void skip_row(const struct pass *w, const struct cell_args *args, i32 b) {
    w->active[b] = w->done[b] = 0;
    for (i32 i = 0; i < w->chunks; i++) state_copy(w, pass_mark(w, i), b, NULL, 0);
    for (i32 t = 0; t < w->op->T && args->dx; t++)
        memset(args->dx + ((i64)t * args->B + b) * args->dx_ld, 0, (size_t)args->dx_ld * sizeof *args->dx);
}

static void run_bwd(const struct chain *c, i32 k0, i32 k1, const u8 *todo, bool again, f32 tol, i32 *steps) {
    const struct pass w = pass_of(c);
    const i32 row0 = w.r->row0, b0 = k0 - row0, b1 = k1 - row0;
    struct cell_args args = pass_args(&w, b0, b1);
    for (i32 b = b0; b < b1; b++) {
        w.active[b] = todo[row0 + b];
        lowrank_clear(&w, b);
        if (again) continue;
        w.done[b] = w.chunks;
        if (w.next[b] < 0) state_give(&w, w.initial, b);
        if (has_no_gradient(&w, &args, b)) skip_row(&w, &args, b);
    }
    const struct part p = {.b0 = b0, .b1 = b1};
    for (i32 g = grain_first(w.r, p); g < grain_end(w.r, p) && !again; g++)
        memset(dw_of(&w, g), 0, (size_t)w.op->ntheta * sizeof *w.dw);
    run_chunks(&w, &args, b0, b1, again, tol, steps + row0);
}

/* ------------------------------------------------------------------ between rounds ------------------------------------------ */

/* Callbacks get slice numbers of the batch; rows are local. */
static i32 neighbour(const struct chain *c, i32 k, bool next) {
    const struct pass w = pass_of(c);
    return next ? w.next[pass_row(&w, k)] : w.prev[k];
}
static i32 prev_of(const struct chain *c, i32 k) { return neighbour(c, k, c->back); }
static i32 heir_of(const struct chain *c, i32 k) { return neighbour(c, k, !c->back); }

/* Copies row `row` out of a state, or into it. */
static f32 *row_out(const struct pass *w, const f32 *state, i32 row, f32 *to) {
    for (i32 s = 0; s < w->states; to += w->width[s++]) memcpy(to, state + state_at(w, s, row), (size_t)w->width[s] * sizeof *to);
    return to;
}
static const f32 *row_in(const struct pass *w, f32 *state, i32 row, const f32 *from) {
    for (i32 s = 0; s < w->states; from += w->width[s++])
        memcpy(state + state_at(w, s, row), from, (size_t)w->width[s] * sizeof *from);
    return from;
}

static void save_final(const struct chain *c, i32 k, f32 *to) {
    const struct pass w = pass_of(c);
    row_out(&w, w.final, pass_row(&w, k), to);
}

static void load_final(const struct chain *c, i32 k, const f32 *from) {
    const struct pass w = pass_of(c);
    row_in(&w, w.final, pass_row(&w, k), from);
}

static void take(const struct chain *c, i32 k) {
    const struct pass w = pass_of(c);
    const struct origin o = pass_source(&w, k);
    state_copy(&w, w.initial, pass_row(&w, k), o.final, o.row);
    if (w.back) state_add_given(&w, w.initial, pass_row(&w, k));
}

/* Estimates the final state of each row from a zero initial state, by backward over its head. By then backward has almost
 * forgotten the initial state, so the guess is good and one round suffices: dW can be added at once. */
static void warm_bwd(const struct chain *c, i32 k0, i32 k1) {
    const struct pass w = pass_of(c);
    if (w.head == 0) return;
    const i32 b0 = pass_row(&w, k0), b1 = pass_row(&w, k1);
    struct cell_args args = pass_args(&w, b0, b1);
    i32 *live = live_of(&w, b0);
    for (i32 t = 0; t < w.op->T; t++) live[t] = t < w.head ? w.r->B : 0; /* heads are shorter than every row */
    args.live = live;
    args.dx = NULL;
    args.dhT = args.dcT = NULL;
    for (i32 i = w.head / w.chunk - 1; i >= 0; i--) {
        struct chunk at = chunk_of(&w, &args, b0, i);
        const bool top = (i + 1) * w.chunk == w.head, give = w.recompute || i == 0;
        if (w.recompute) at.args.live = NULL;
        at.args.dhT = w.recompute && !top ? w.final : NULL;
        at.args.dcT = at.args.dhT ? state_c(&w, w.final) : NULL;
        recompute_gates(&w, &at, b0, b1, false);
        at.args.dh0 = give ? w.final : NULL;
        at.args.dc0 = give ? state_c(&w, w.final) : NULL;
        pass_bwd(&w, &at.args, b0, b1, at.t0, at.t1);
    }
}

/* The first guess. Forward: the final state of the previous slice in the previous training step, or zero. Backward without a
 * head: only the gradient of the final state is known. */
static void guess(const struct chain *c, i32 k) {
    const struct pass w = pass_of(c);
    const struct origin o = pass_source(&w, k);
    if (!w.back)
        state_copy(&w, w.initial, pass_row(&w, k), c->kept ? o.final : NULL, o.row);
    else if (w.head > 0)
        take(c, k);
    else
        state_give(&w, w.initial, pass_row(&w, k));
}

static f32 scale(const struct chain *c, i32 k) {
    const struct pass w = pass_of(c);
    const i32 b = pass_row(&w, k);
    if (!w.back) return fmaxf(1, state_largest(&w, w.final, b));
    f32 most = state_largest(&w, w.initial, b);
    for (i32 i = 0; i < w.chunks; i++) most = fmaxf(most, state_largest(&w, pass_mark(&w, i), b));
    return most;
}

static f32 gap(const struct chain *c, i32 k) {
    const struct pass w = pass_of(c);
    const struct origin o = pass_source(&w, k);
    return state_distance(&w, o.final, o.row, w.initial, pass_row(&w, k), w.back);
}

/* ------------------------------------------------------------------ between ranks ------------------------------------------- */

/* Copies out the final state of slice k and its low-rank response. */
static void export_final(const struct chain *c, i32 k, f32 *to) {
    const struct pass w = pass_of(c);
    const struct origin o = pass_origin(&w, k, 0);
    to = row_out(&w, o.final, o.row, to);
    for (i32 i = 0; i < w.rank; i++) to = row_out(&w, o.directions + i * w.state, o.row, to);
    for (i32 i = 0; i < w.rank; i++) to[i] = o.component[(i64)i * w.r->B + o.row];
}

/* Copies in the same of the slice from whose final state slice k starts. */
static void import_final(const struct chain *c, i32 k, const f32 *from) {
    const struct pass w = pass_of(c);
    const struct origin o = pass_origin(&w, REMOTE, pass_row(&w, k));
    from = row_in(&w, o.final, o.row, from);
    for (i32 i = 0; i < w.rank; i++) from = row_in(&w, o.directions + i * w.state, o.row, from);
    for (i32 i = 0; i < w.rank; i++) o.component[(i64)i * w.r->B + o.row] = from[i];
}

/* ------------------------------------------------------------------ at the end ---------------------------------------------- */

static void finish_fwd(const struct chain *c, i32 k0, i32 k1) {
    const struct pass w = pass_of(c);
    const i32 b0 = pass_row(&w, k0), n = k1 - k0;
    f32 *end = w.r->buf[w.op->end];
    for (i32 s = 0; s < w.r->net->buf[w.op->end].T; s++) /* h and c, or h only */
        memcpy(end + state_at(&w, s, b0), w.final + state_at(&w, s, b0), (size_t)(n * w.width[s]) * sizeof *end);
}

/* Adds dW of a chunk for the rows b0..b1 that have its dz, each run of adjacent rows in one call. */
static void add_done(const struct pass *w, const struct cell_args *args, i32 b0, i32 b1, i32 chunk) {
    for (i32 b = b0, end; b < b1; b = imax(end, b + 1)) {
        for (end = b; end < b1 && abs(w->done[end]) >= w->chunks - chunk; end++) {}
        if (end > b) add_dw(w, args, b, end, chunk_begin(w, chunk), chunk_end(w, chunk));
    }
}

/* Completes dW. Micro-batches with reruns hold sums of outdated gradients and are recomputed, as are those deferred until now. */
static void finish_bwd(const struct chain *c, i32 k0, i32 k1) {
    const struct pass w = pass_of(c);
    const struct op *op = w.op;
    const struct part p = {.b0 = pass_row(&w, k0), .b1 = pass_row(&w, k1), .t1 = op->T, .n = 1};
    struct cell_args args = pass_args(&w, p.b0, p.b1);
    for (i32 g = grain_first(w.r, p); g < grain_end(w.r, p); g++) {
        const struct part q = part_grain(w.r, p, g);
        bool redone = w.dw_last;
        for (i32 b = q.b0; b < q.b1; b++) redone = redone || w.done[b] < 0;
        if (redone) memset(dw_of(&w, g), 0, (size_t)op->ntheta * sizeof *w.dw);
        for (i32 i = w.chunks - 1; redone && i >= 0; i--) {
            if (w.one_chunk)
                chunk_bwd(&w, &args, q.b0, q.b1, i, false);
            else
                add_done(&w, &args, q.b0, q.b1, i);
        }
        w.r->kern->add(op->ntheta, grain_grad(w.r, g, op->theta0), dw_of(&w, g));
    }
    recurrent_pad_dx(w.r, &args, p);
    f32 *dgiven = op->spec.in[1] >= 0 ? run_din(op, w.r, 1) : NULL;
    for (i32 b = p.b0; b < p.b1 && dgiven; b++) state_copy(&w, dgiven, b, w.prev[w.r->row0 + b] < 0 ? w.final : NULL, b);
}

void recurrent_chain(const struct op *op, const struct run *r, bool backward, struct chain *out) {
    *out = (struct chain){.self = op,
                          .with = r,
                          .back = backward,
                          .nslice = r->whole,
                          .rank = op->spec.slice_rank,
                          .kept = !backward && r->warm,
                          .prev = prev_of,
                          .heir = heir_of,
                          .warm = backward ? warm_bwd : NULL,
                          .guess = guess,
                          .run = backward ? run_bwd : run_fwd,
                          .scale = scale,
                          .gap = gap,
                          .take = take,
                          .answers = backward ? NULL : lowrank_responses,
                          .carry = lowrank_carry,
                          .give = export_final,
                          .get = import_final,
                          .save = save_final,
                          .load = load_final,
                          .finish = backward ? finish_bwd : finish_fwd};
    const struct pass w = pass_of(out);
    out->down = backward != reads_down(&w);
    out->state = (i32)(w.state / r->B);
    out->hand = (1 + out->rank) * out->state + out->rank;
}
