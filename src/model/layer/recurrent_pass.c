/* recurrent_pass.c - storage of the boundary states of time slicing, and operations on the state of one row.
 *
 * a state  h [B][Fp], then c [B][Hp] if the cell has one: for all rows
 * saved    after the layer's: states: initial [2 passes] | marks [2 passes][chunks] | with a rank: basis, responses [rank] each;
 *          then components [rank][B] | for a chain split over ranks, of remote rows, for each pass: final states, responses
 *          (backward: basis), components
 * scratch  after the layer's: a state | next, active, done [B] | live rows of a head [B][T] | dW of each micro-batch | with a
 *          rank: a chunk of a run without stored gates, two states */
#include "model/layer/recurrent_pass.h"

#include <math.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 21, CHUNK_MIN = 8, CHUNK_MAX = 128, CHUNKS_MIN = 32, CHUNKS_MAX = 4096 };

extern const struct layer layer_projected;

static const struct recurrence *recurrence_of(const struct op *op) {
    return op->layer == &layer_projected ? &recurrence_projected : &recurrence_plain;
}

static i32 power_of_two_below(i32 n) {
    i32 p = 1;
    while (2 * p <= n) p *= 2;
    return p;
}

/* Chunk length: short enough that a chunk stays in L2 between kernels and a merge is noticed early, long enough to amortize a
 * call. In bf16 a power of two, because dW sums 32 rows at a time. */
static i32 chunk_steps(const struct op *op, struct rows B) {
    const bool half = op->spec.precision != PREC_F32;
    const i64 kept = B.of * recurrence_of(op)->floats(op) * (half ? 2 : 4);
    const i32 most = imax(CHUNK_MIN, imin((i32)lmin(CHUNK_MAX, CHUNK_BYTES / kept), op->T / CHUNKS_MIN));
    return imax(half ? power_of_two_below(most) : most, ceil_div(op->T, CHUNKS_MAX));
}
static i32 chunk_count(const struct op *op, struct rows B) { return ceil_div(op->T, chunk_steps(op, B)); }

/* Floats saved for all steps, or for one chunk with recomputation. */
static i64 layer_saved(const struct op *op, struct rows B) {
    const i32 T = recurrent_sliced(op) && op->spec.recompute ? chunk_steps(op, B) : op->T;
    return round_up64(recurrence_of(op)->act(op, op->spec.precision, T, B.n), LANES);
}

static i64 layer_scratch(const struct op *op, struct rows B) { return round_up64(recurrence_of(op)->scratch(op, B.n), LANES); }

static i32 state_width(const struct op *op, i32 s) { return round_up(s ? op->spec.hidden : op->F, LANES); }

static i64 state_floats(const struct op *op, struct rows B) {
    i64 n = 0;
    for (i32 s = 0; s < cell_of(op->spec.cell)->states; s++) n += state_width(op, s);
    return n * B.n;
}

/* Floats for remote rows: final states and, with a rank, one set of directions with components. */
static i64 remote_floats(const struct op *op, struct rows B) {
    const i32 rank = op->spec.slice_rank;
    return B.n < B.of ? (1 + rank) * state_floats(op, B) + rank * round_up64(B.n, LANES) : 0;
}

i64 recurrent_saved(const struct op *op, const struct net *n, struct rows B) {
    (void)n;
    const i32 rank = op->spec.slice_rank;
    if (!recurrent_sliced(op)) return layer_saved(op, B);
    return layer_saved(op, B) + 2 * (1 + chunk_count(op, B) + rank) * state_floats(op, B) + rank * round_up64(B.n, LANES) +
           2 * remote_floats(op, B);
}

/* act for a chunk of a run whose gates are not needed; always f32. */
static i64 probe_act(const struct op *op, struct rows B) {
    return round_up64(recurrence_of(op)->act(op, PREC_F32, chunk_steps(op, B), B.n), LANES);
}

static i64 probe_y(const struct op *op, struct rows B) { return (i64)chunk_steps(op, B) * B.n * state_width(op, 0); }

static i64 probe_floats(const struct op *op, struct rows B) {
    return op->spec.slice_rank > 0 ? probe_act(op, B) + probe_y(op, B) + 2 * state_floats(op, B) : 0;
}

i64 recurrent_scratch(const struct op *op, const struct net *n, struct rows B) {
    (void)n;
    if (!recurrent_sliced(op)) return layer_scratch(op, B);
    return layer_scratch(op, B) + state_floats(op, B) + 3 * round_up64(B.n, LANES) + round_up64(op->T + 1, LANES) * B.n +
           slice_grains(B.of) * round_up64(op->ntheta, LANES) + probe_floats(op, B);
}

/* Backward forgets after as many steps as forward, since both are products of the same Jacobians. Beyond a third of a slice the
 * head costs more than it saves. */
static i32 head_steps(const struct chain *c, i32 chunk, i32 T) {
    const i32 n = c->forgets > 0 ? round_up(c->forgets + c->forgets / 4, chunk) : 0;
    return n <= T / 3 ? n : 0;
}

struct pass pass_of(const struct chain *c) {
    const struct op *op = c->self;
    const struct run *r = c->with;
    const struct rows B = {r->B, r->whole};
    const bool back = c->back;
    struct pass w = {.op = op,
                     .r = r,
                     .layer = recurrence_of(op),
                     .back = back,
                     .states = cell_of(op->spec.cell)->states,
                     .chunk = chunk_steps(op, B),
                     .chunks = chunk_count(op, B)};
    const i64 state = w.state = state_floats(op, B);
    f32 *saved = r->saved[op->l] + layer_saved(op, B);
    f32 *scratch = r->scratch[op->l] + layer_scratch(op, B);
    for (i32 s = 0; s < 2; s++) w.width[s] = state_width(op, s);
    w.plane = (i64)r->B * w.width[0];
    w.initial_fwd = saved;
    w.mark_fwd = saved + 2 * state;
    w.initial = saved + (back ? state : 0);
    w.mark = saved + 2 * state + (back ? w.chunks * state : 0);
    w.final = w.mark + (back ? 0 : (w.chunks - 1) * state);
    w.rerun = scratch;
    w.next = (i32 *)(void *)(scratch + state);
    w.active = w.next + round_up64(r->B, LANES);
    w.done = w.active + round_up64(r->B, LANES);
    w.live = w.done + round_up64(r->B, LANES);
    w.dw = (f32 *)(void *)(w.live + round_up64(op->T + 1, LANES) * r->B);
    w.rank = op->spec.slice_rank;
    w.basis = saved + 2 * (1 + w.chunks) * state;
    w.response = w.basis + w.rank * state;
    w.component = w.response + w.rank * state;
    w.remote = w.component + w.rank * round_up64(r->B, LANES) + (back ? remote_floats(op, B) : 0);
    w.remote_component = w.remote + (1 + w.rank) * state;
    w.probe_act = w.dw + slice_grains(r->whole) * round_up64(op->ntheta, LANES);
    w.probe_y = w.probe_act + (w.rank > 0 ? probe_act(op, B) : 0);
    w.probe_state = w.probe_y + probe_y(op, B);
    /* gradient of the final state only: no guess */
    w.head = back && run_dout(r, op->out) ? head_steps(c, w.chunk, op->T) : 0;
    w.recompute = op->spec.recompute;
    w.one_chunk = w.recompute || (w.head > 0 && w.layer->bwd_again(op, r));
    w.dw_last = back && run_dout(r, op->out) && c->forgets != 0 && w.head == 0 && !w.one_chunk;
    w.prev = run_ids(op, r, RECURRENT_AFTER);
    w.given = back ? run_dout(r, op->end) : op->spec.in[1] >= 0 ? run_in(op, r, 1) : NULL;
    w.ngiven = w.given ? r->net->buf[back ? op->end : op->spec.in[1]].T : 0;
    return w;
}

struct origin pass_origin(const struct pass *w, i32 slice, i32 row) {
    const i32 here = pass_row(w, slice);
    if (slice >= 0 && here >= 0 && here < w->r->B)
        return (struct origin){w->final, w->back ? w->basis : w->response, w->component, here};
    return (struct origin){w->remote, w->remote + w->state, w->remote_component, row};
}

struct origin pass_source(const struct pass *w, i32 k) {
    const i32 row = pass_row(w, k);
    return pass_origin(w, w->back ? w->next[row] : w->prev[k], row);
}

/* ------------------------------------------------------------------ states of one row --------------------------------------- */

static void copy_planes(const struct pass *w, f32 *to, i32 row, const f32 *from, i32 from_row, i32 planes) {
    for (i32 s = 0; s < w->states; s++) {
        f32 *at = to + state_at(w, s, row);
        if (s < planes)
            memcpy(at, from + state_at(w, s, from_row), (size_t)w->width[s] * sizeof *at);
        else
            memset(at, 0, (size_t)w->width[s] * sizeof *at);
    }
}

void state_copy(const struct pass *w, f32 *to, i32 row, const f32 *from, i32 from_row) {
    copy_planes(w, to, row, from, from_row, from ? w->states : 0);
}

void state_give(const struct pass *w, f32 *to, i32 row) { copy_planes(w, to, row, w->given, row, w->ngiven); }

void state_add_given(const struct pass *w, f32 *to, i32 k) {
    for (i32 s = 0; s < w->ngiven; s++)
        for (i32 u = 0; u < w->width[s]; u++) to[state_at(w, s, k) + u] += w->given[state_at(w, s, k) + u];
}

f32 state_distance(const struct pass *w, const f32 *a, i32 a_row, const f32 *b, i32 b_row, bool given) {
    f32 most = 0;
    bool bad = false;
    for (i32 s = 0; s < w->states; s++) {
        const f32 *x = a + state_at(w, s, a_row), *y = b + state_at(w, s, b_row);
        const f32 *z = given && s < w->ngiven ? w->given + state_at(w, s, b_row) : NULL;
        for (i32 u = 0; u < w->width[s]; u++) {
            const f32 d = fabsf((z ? x[u] + z[u] : x[u]) - y[u]);
            bad = bad || isnan(d);
            most = d > most ? d : most;
        }
    }
    return bad ? (f32)NAN : most;
}

f32 state_largest(const struct pass *w, const f32 *a, i32 row) {
    f32 most = 0;
    for (i32 s = 0; s < w->states; s++)
        for (i32 u = 0; u < w->width[s]; u++) most = fmaxf(most, fabsf(a[state_at(w, s, row) + u]));
    return most;
}

struct cell_args pass_args(const struct pass *w, i32 k0, i32 k1) {
    struct cell_args args = w->layer->args(w->op, w->r, (struct part){.b0 = k0, .b1 = k1, .t1 = w->op->T, .n = 1});
    args.h0 = w->initial_fwd;
    args.c0 = state_c(w, w->initial_fwd);
    args.dh0 = args.dc0 = NULL;
    if (!w->back) return args;
    args.dhT = w->initial;
    args.dcT = state_c(w, w->initial);
    args.slice = w->one_chunk && !w->recompute ? w->chunk : 0;
    return args;
}
