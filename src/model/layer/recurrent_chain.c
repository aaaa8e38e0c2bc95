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
 * pass on zero. State layout: recurrent_way.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/layer/recurrent_way.h"

/* ------------------------------------------------------------------ running ------------------------------------------------- */

static void chunk_range(const struct way *w, i32 chunk, i32 *t0, i32 *t1) {
    *t0 = chunk * w->chunk;
    *t1 = imin(w->op->T, *t0 + w->chunk);
}

/* A chunk as kernel arguments: some steps of the rows; or, if gates are not stored, separate arguments that start from the
 * states before the chunk and, in backward, from the gradient after it. */
struct spot {
    struct cell_args box;
    i32 t0, t1;
};

/* A short last chunk has the layout of the others, since other threads' rows share it: its rows end early. */
static const i32 *ends_early(const struct way *w, const struct cell_args *x, i32 b0, i32 steps) {
    i32 *live = w->live + (i64)b0 * round_up64(w->op->T + 1, LANES);
    for (i32 t = 0; t < w->chunk; t++) live[t] = t >= steps ? 0 : x->live ? x->live[t] : x->B;
    return live;
}

/* For the rows from b0. */
static struct spot spot_of(const struct way *w, const struct cell_args *whole, i32 b0, i32 chunk) {
    struct spot s = {.box = *whole};
    chunk_range(w, chunk, &s.t0, &s.t1);
    if (!w->recompute) return s;
    struct cell_args *x = &s.box;
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
        const f32 *state = w->forth + (chunk - 1) * w->state;
        x->h0 = x->y ? x->y - x->B * w->width[0] : state; /* same values; adjacent to y, so dW can treat the steps as one block */
        x->c0 = way_c(w, state);
    }
    if (w->back && chunk + 1 < w->chunks) {
        x->dhT = way_mark(w, chunk + 1);
        x->dcT = way_c(w, x->dhT);
    }
    s.t0 = 0;
    s.t1 = steps;
    return s;
}

static void chunk_fwd(const struct way *w, const struct cell_args *whole, i32 b0, i32 b1, i32 chunk, bool again) {
    struct spot s = spot_of(w, whole, b0, chunk);
    s.box.hT = again ? w->fresh : way_mark(w, chunk);
    s.box.cT = way_c(w, s.box.hT);
    way_fwd(w, &s.box, b0, b1, s.t0, s.t1);
}

static f32 *dw_of(const struct way *w, i32 grain) { return w->dw + grain * round_up64(w->op->ntheta, LANES); }

/* Adds dW of some steps to the micro-batches of rows b0..b1 while their dz is in cache. */
static void add_dw(const struct way *w, const struct cell_args *box, i32 b0, i32 b1, i32 t0, i32 t1) {
    const struct part p = {.b0 = b0, .b1 = b1, .t0 = t0, .t1 = t1, .n = 1};
    for (i32 g = grain_first(w->r, p); g < grain_end(w->r, p); g++)
        w->walk->dw(w->op, w->r, box, part_grain(w->r, p, g), dw_of(w, g));
}

/* Recomputes the gates if bwd has overwritten them or they are never stored. */
static void again_gates(const struct way *w, struct spot *s, i32 b0, i32 b1, bool used) {
    s->box.hT = s->box.cT = NULL;
    if (w->recompute || (used && !w->walk->bwd_again(w->op, w->r))) way_fwd(w, &s->box, b0, b1, s->t0, s->t1);
}

static void chunk_bwd(const struct way *w, const struct cell_args *whole, i32 b0, i32 b1, i32 chunk, bool again) {
    struct spot s = spot_of(w, whole, b0, chunk);
    again_gates(w, &s, b0, b1, again || chunk * w->chunk < w->head);
    s.box.dh0 = again ? w->fresh : way_mark(w, chunk);
    s.box.dc0 = way_c(w, s.box.dh0);
    way_bwd(w, &s.box, b0, b1, s.t0, s.t1);
    if (!again && !w->late) add_dw(w, &s.box, b0, b1, s.t0, s.t1);
}

/* After a rerun chunk: stops the rows among b0..b1 that have returned to their marks. */
static void merge(const struct way *w, i32 b0, i32 b1, i32 chunk, f32 tol, i32 *steps) {
    i32 t0, t1;
    chunk_range(w, chunk, &t0, &t1);
    for (i32 b = b0; b < b1; b++) {
        f32 *mark = way_mark(w, chunk);
        w->going[b] = !(way_distance(w, w->fresh, b, mark, b) <= tol);
        way_copy(w, mark, b, w->fresh, b);
        steps[b] += t1 - t0;
        if (w->back) w->walked[b] = -imax(abs(w->walked[b]), w->chunks - chunk);
    }
}

/* Runs the active rows chunk by chunk, each run of adjacent rows in one call. */
static void run_chunks(const struct way *w, struct cell_args *box, i32 k0, i32 k1, bool again, f32 tol, i32 *steps) {
    bool any = true;
    for (i32 i = 0; i < w->chunks && any; i++) {
        const i32 chunk = w->back ? w->chunks - 1 - i : i;
        any = false;
        for (i32 b = k0, end; b < k1; b = end) {
            for (end = b; end < k1 && w->going[end]; end++) {}
            if (end == b) {
                end++;
                continue;
            }
            any = true;
            (w->back ? chunk_bwd : chunk_fwd)(w, box, b, end, chunk, again);
            if (again) merge(w, b, end, chunk, tol, steps);
        }
    }
    for (i32 b = k0; b < k1 && !again; b++) steps[b] = w->going[b] ? w->op->T : 0;
}

/* Finds the slice that continues each of the slices k0..k1, -1 = none. */
static void find_heirs(const struct way *w, i32 k0, i32 k1) {
    const i32 row0 = w->r->row0;
    for (i32 k = k0; k < k1; k++) w->next[k - row0] = -1;
    for (i32 h = 0; h < w->r->whole; h++)
        if (w->after[h] >= k0 && w->after[h] < k1) w->next[w->after[h] - row0] = h;
}

/* True if the slices of a sequence are in decreasing order of their numbers. */
static bool reads_down(const struct way *w) {
    for (i32 k = 0; w->after && k < w->r->whole; k++)
        if (w->after[k] >= 0) return w->after[k] > k;
    return false;
}

static void run_fwd(const struct chain *c, i32 k0, i32 k1, const u8 *todo, bool again, f32 tol, i32 *steps) {
    const struct way w = way_of(c, false);
    const i32 row0 = w.r->row0, b0 = k0 - row0, b1 = k1 - row0;
    if (!again) find_heirs(&w, k0, k1);
    for (i32 b = b0; b < b1; b++) {
        w.going[b] = todo[row0 + b];
        way_at_rest(&w, b);
        if (again) continue;
        if (w.after[row0 + b] < 0) way_give(&w, w.begin, b);
        way_ask_anything(&w, b);
    }
    struct cell_args box = way_box(&w, w.begin, b0, b1);
    run_chunks(&w, &box, b0, b1, again, tol, steps + row0);
}

/* True if row b has no gradient to propagate: neither of its final state nor of its outputs (checked at the last steps). NaN
 * counts as a gradient. */
static bool sleeps(const struct way *w, const struct cell_args *box, i32 b) {
    if (w->ring || w->rank > 0) return false;
    for (i32 s = 0; s < w->states; s++)
        for (i32 u = 0; u < w->width[s]; u++)
            if (w->begin[way_at(w, s, b) + u] != 0) return false;
    for (i32 t = w->op->T - 1; t >= 0 && box->dy; t--)
        for (i32 u = 0; u < w->width[0]; u++)
            if (box->dy[((i64)t * box->B + b) * w->width[0] + u] != 0) return false;
    return true;
}

/* Stores the result of a skipped row: zeros; its gates remain to be processed if it becomes active. */
static void fall_asleep(const struct way *w, const struct cell_args *box, i32 b) {
    w->going[b] = w->walked[b] = 0;
    for (i32 i = 0; i < w->chunks; i++) way_copy(w, way_mark(w, i), b, NULL, 0);
    for (i32 t = 0; t < w->op->T && box->dx; t++)
        memset(box->dx + ((i64)t * box->B + b) * box->dx_ld, 0, (size_t)box->dx_ld * sizeof *box->dx);
}

static void run_bwd(const struct chain *c, i32 k0, i32 k1, const u8 *todo, bool again, f32 tol, i32 *steps) {
    const struct way w = way_of(c, true), forth = way_of(c, false);
    const i32 row0 = w.r->row0, b0 = k0 - row0, b1 = k1 - row0;
    struct cell_args box = way_box(&w, forth.begin, b0, b1);
    for (i32 b = b0; b < b1; b++) {
        w.going[b] = todo[row0 + b];
        way_at_rest(&w, b);
        if (again) continue;
        w.walked[b] = w.chunks;
        if (w.next[b] < 0) way_give(&w, w.begin, b);
        if (sleeps(&w, &box, b)) fall_asleep(&w, &box, b);
    }
    const struct part p = {.b0 = b0, .b1 = b1};
    for (i32 g = grain_first(w.r, p); g < grain_end(w.r, p) && !again; g++)
        memset(dw_of(&w, g), 0, (size_t)w.op->ntheta * sizeof *w.dw);
    run_chunks(&w, &box, b0, b1, again, tol, steps + row0);
}

/* ------------------------------------------------------------------ between rounds ------------------------------------------ */

/* Callbacks get slice numbers of the batch; rows are local. */
static i32 row_of(const struct way *w, i32 slice) { return slice - w->r->row0; }

static i32 prev_fwd(const struct chain *c, i32 k) { return way_of(c, false).after[k]; }
static i32 prev_bwd(const struct chain *c, i32 k) {
    const struct way w = way_of(c, false);
    return w.next[row_of(&w, k)];
}

/* First guess: what the previous slice left in the previous training step, or zero. */
static void guess_fwd(const struct chain *c, i32 k) {
    const struct way w = way_of(c, false);
    const struct origin o = way_origin(&w, w.after[k], row_of(&w, k));
    way_copy(&w, w.begin, row_of(&w, k), c->kept ? o.end : NULL, o.row);
}

/* Copies row `row` out of a state, or into it. */
static f32 *row_out(const struct way *w, const f32 *state, i32 row, f32 *to) {
    for (i32 s = 0; s < w->states; to += w->width[s++]) memcpy(to, state + way_at(w, s, row), (size_t)w->width[s] * sizeof *to);
    return to;
}
static const f32 *row_in(const struct way *w, f32 *state, i32 row, const f32 *from) {
    for (i32 s = 0; s < w->states; from += w->width[s++])
        memcpy(state + way_at(w, s, row), from, (size_t)w->width[s] * sizeof *from);
    return from;
}

static void save_end(const struct chain *c, i32 k, f32 *to) {
    const struct way w = way_of(c, false);
    const i32 b = row_of(&w, k);
    row_out(&w, w.end, b, to);
}

static void load_end(const struct chain *c, i32 k, const f32 *from) {
    const struct way w = way_of(c, false);
    const i32 b = row_of(&w, k);
    row_in(&w, w.end, b, from);
}

static void take_bwd(const struct chain *c, i32 k) {
    const struct way w = way_of(c, true);
    const i32 b = row_of(&w, k);
    const struct origin o = way_origin(&w, w.next[b], b);
    way_copy(&w, w.begin, b, o.end, o.row);
    way_add_given(&w, w.begin, b);
}

/* Estimates what each row passes on if it receives nothing, by backward over its head. By then it has almost forgotten its
 * input, so the guess is good and one round suffices: dW can be added at once. */
static void warm_bwd(const struct chain *c, i32 k0, i32 k1) {
    const struct way w = way_of(c, true), forth = way_of(c, false);
    if (w.head == 0) return;
    const i32 b0 = row_of(&w, k0), b1 = row_of(&w, k1);
    struct cell_args box = way_box(&w, forth.begin, b0, b1);
    i32 *live = w.live + (i64)b0 * round_up64(w.op->T + 1, LANES);
    for (i32 t = 0; t < w.op->T; t++) live[t] = t < w.head ? w.r->B : 0; /* heads are shorter than every row */
    box.live = live;
    box.dx = NULL;
    box.dhT = box.dcT = NULL;
    for (i32 i = w.head / w.chunk - 1; i >= 0; i--) {
        struct spot at = spot_of(&w, &box, b0, i);
        const bool top = (i + 1) * w.chunk == w.head, give = w.recompute || i == 0;
        if (w.recompute) at.box.live = NULL;
        at.box.dhT = w.recompute && !top ? w.end : NULL;
        at.box.dcT = at.box.dhT ? way_c(&w, w.end) : NULL;
        again_gates(&w, &at, b0, b1, false);
        at.box.dh0 = give ? w.end : NULL;
        at.box.dc0 = give ? way_c(&w, w.end) : NULL;
        way_bwd(&w, &at.box, b0, b1, at.t0, at.t1);
    }
}

/* Without a head only the gradient of the final state is known. */
static void guess_bwd(const struct chain *c, i32 k) {
    const struct way w = way_of(c, true);
    const i32 b = row_of(&w, k);
    if (w.head > 0)
        take_bwd(c, k);
    else
        way_give(&w, w.begin, b);
}

static f32 scale_fwd(const struct chain *c, i32 k) {
    const struct way w = way_of(c, false);
    return fmaxf(1, way_largest(&w, w.end, row_of(&w, k)));
}

static f32 scale_bwd(const struct chain *c, i32 k) {
    const struct way w = way_of(c, true);
    const i32 b = row_of(&w, k);
    f32 most = way_largest(&w, w.begin, b);
    for (i32 i = 0; i < w.chunks; i++) most = fmaxf(most, way_largest(&w, way_mark(&w, i), b));
    return most;
}

static f32 gap_fwd(const struct chain *c, i32 k) {
    const struct way w = way_of(c, false);
    const struct origin o = way_origin(&w, w.after[k], row_of(&w, k));
    return way_distance(&w, o.end, o.row, w.begin, row_of(&w, k));
}

static f32 gap_bwd(const struct chain *c, i32 k) {
    const struct way w = way_of(c, true);
    const i32 b = row_of(&w, k);
    const struct origin o = way_origin(&w, w.next[b], b);
    return way_gap(&w, o.end, o.row, w.begin, b);
}

static void take_fwd(const struct chain *c, i32 k) {
    const struct way w = way_of(c, false);
    const struct origin o = way_origin(&w, w.after[k], row_of(&w, k));
    way_copy(&w, w.begin, row_of(&w, k), o.end, o.row);
}

/* ------------------------------------------------------------------ between ranks ------------------------------------------- */

/* Copies out the final state of slice k and its low-rank response. */
static void give(const struct chain *c, i32 k, f32 *to) {
    const struct way w = way_of(c, c->back);
    const struct origin o = way_origin(&w, k, 0);
    to = row_out(&w, o.end, o.row, to);
    for (i32 i = 0; i < w.rank; i++) to = row_out(&w, o.known + i * w.state, o.row, to);
    for (i32 i = 0; i < w.rank; i++) to[i] = o.share[(i64)i * w.r->B + o.row];
}

/* Copies in what slice k starts from. */
static void get(const struct chain *c, i32 k, const f32 *from) {
    const struct way w = way_of(c, c->back);
    const struct origin o = way_origin(&w, ELSEWHERE, row_of(&w, k));
    from = row_in(&w, o.end, o.row, from);
    for (i32 i = 0; i < w.rank; i++) from = row_in(&w, o.known + i * w.state, o.row, from);
    for (i32 i = 0; i < w.rank; i++) o.share[(i64)i * w.r->B + o.row] = from[i];
}

/* ------------------------------------------------------------------ at the end ---------------------------------------------- */

static void finish_fwd(const struct chain *c, i32 k0, i32 k1) {
    const struct way w = way_of(c, false);
    const i32 b0 = row_of(&w, k0), n = k1 - k0;
    f32 *end = w.r->buf[w.op->end];
    for (i32 s = 0; s < w.r->net->buf[w.op->end].T; s++) /* h and c, or h only */
        memcpy(end + way_at(&w, s, b0), w.end + way_at(&w, s, b0), (size_t)(n * w.width[s]) * sizeof *end);
}

/* Adds dW of a chunk for the rows b0..b1 that have processed it, each run of adjacent rows in one call. */
static void add_walked(const struct way *w, const struct cell_args *box, i32 b0, i32 b1, i32 chunk) {
    i32 t0, t1;
    chunk_range(w, chunk, &t0, &t1);
    for (i32 b = b0, end; b < b1; b = imax(end, b + 1)) {
        for (end = b; end < b1 && abs(w->walked[end]) >= w->chunks - chunk; end++) {}
        if (end > b) add_dw(w, box, b, end, t0, t1);
    }
}

/* Completes dW. Micro-batches with reruns hold sums of outdated gradients and are recomputed, as are those deferred until now. */
static void finish_bwd(const struct chain *c, i32 k0, i32 k1) {
    const struct way w = way_of(c, true), forth = way_of(c, false);
    const struct op *op = w.op;
    const struct part p = {.b0 = row_of(&w, k0), .b1 = row_of(&w, k1), .t1 = op->T, .n = 1};
    struct cell_args box = way_box(&w, forth.begin, p.b0, p.b1);
    for (i32 g = grain_first(w.r, p); g < grain_end(w.r, p); g++) {
        const struct part q = part_grain(w.r, p, g);
        bool redone = w.late;
        for (i32 b = q.b0; b < q.b1; b++) redone = redone || w.walked[b] < 0;
        if (redone) memset(dw_of(&w, g), 0, (size_t)op->ntheta * sizeof *w.dw);
        for (i32 i = w.chunks - 1; redone && i >= 0; i--) {
            if (w.ring)
                chunk_bwd(&w, &box, q.b0, q.b1, i, false);
            else
                add_walked(&w, &box, q.b0, q.b1, i);
        }
        w.r->kern->add(op->ntheta, grain_grad(w.r, g, op->theta0), dw_of(&w, g));
    }
    recurrent_pad_dx(&box, p);
    f32 *dgiven = op->spec.in[1] >= 0 ? run_din(op, w.r, 1) : NULL;
    for (i32 b = p.b0; b < p.b1 && dgiven; b++) way_copy(&w, dgiven, b, w.after[w.r->row0 + b] < 0 ? w.end : NULL, b);
}

void recurrent_chain(const struct op *op, const struct run *r, bool backward, struct chain *out) {
    *out = backward ? (struct chain){.prev = prev_bwd,
                                     .heir = prev_fwd,
                                     .warm = warm_bwd,
                                     .guess = guess_bwd,
                                     .run = run_bwd,
                                     .scale = scale_bwd,
                                     .gap = gap_bwd,
                                     .take = take_bwd,
                                     .carry = way_carry_bwd,
                                     .finish = finish_bwd}
                    : (struct chain){.prev = prev_fwd,
                                     .heir = prev_bwd,
                                     .guess = guess_fwd,
                                     .run = run_fwd,
                                     .scale = scale_fwd,
                                     .gap = gap_fwd,
                                     .take = take_fwd,
                                     .answers = way_answers,
                                     .carry = way_carry_fwd,
                                     .finish = finish_fwd};
    out->self = op;
    out->with = r;
    out->nslice = r->whole;
    out->rank = op->spec.slice_rank;
    out->kept = !backward && r->warm;
    const struct way w = way_of(out, backward);
    out->back = backward;
    out->down = backward != reads_down(&w);
    out->state = (i32)(w.state / r->B);
    out->hand = (1 + out->rank) * out->state + out->rank;
    out->give = give;
    out->get = get;
    out->save = save_end;
    out->load = load_end;
}
