/* recurrent_way.c - storage of the boundary states of time slicing, and operations on the state of one row.
 *
 * a state  h [B][Fp], then c [B][Hp] if the cell has one: for all rows
 * saved    after the layer's: states: begin [2 directions] | marks [2 directions][chunks] | with a rank: directions, responses
 *          [rank] each; then their components [rank][B] | for a chain split over ranks, of remote rows, for each direction: final
 *          states, responses (backward: directions), components
 * scratch  after the layer's: a state | the row that continues each row, active, processed [B] | live rows of a head [B][T] |
 *          dW of each micro-batch | with a rank: a chunk of a run without stored gates, two states */
#include "model/layer/recurrent_way.h"

#include <math.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 21, CHUNK_MIN = 8, CHUNK_MAX = 128, CHUNKS_MIN = 32, CHUNKS_MAX = 4096 };

extern const struct layer layer_projected;

static const struct recurrence *walk_of(const struct op *op) {
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
    const i64 kept = B.of * walk_of(op)->floats(op) * (half ? 2 : 4);
    const i32 most = imax(CHUNK_MIN, imin((i32)lmin(CHUNK_MAX, CHUNK_BYTES / kept), op->T / CHUNKS_MIN));
    return imax(half ? power_of_two_below(most) : most, ceil_div(op->T, CHUNKS_MAX));
}
static i32 chunk_count(const struct op *op, struct rows B) { return ceil_div(op->T, chunk_steps(op, B)); }

/* Floats saved for all steps, or for one chunk with recomputation. */
static i64 walk_saved(const struct op *op, struct rows B) {
    const i32 T = recurrent_sliced(op) && op->spec.recompute ? chunk_steps(op, B) : op->T;
    return round_up64(walk_of(op)->act(op, op->spec.precision, T, B.n), LANES);
}

static i64 walk_scratch(const struct op *op, struct rows B) { return round_up64(walk_of(op)->scratch(op, B.n), LANES); }

static i32 state_width(const struct op *op, i32 s) { return round_up(s ? op->spec.hidden : op->F, LANES); }

static i64 state_floats(const struct op *op, struct rows B) {
    i64 n = 0;
    for (i32 s = 0; s < cell_of(op->spec.cell)->states; s++) n += state_width(op, s);
    return n * B.n;
}

/* Floats for remote rows: final states and, with a rank, one set of directions with components. */
static i64 guest_floats(const struct op *op, struct rows B) {
    const i32 rank = op->spec.slice_rank;
    return B.n < B.of ? (1 + rank) * state_floats(op, B) + rank * round_up64(B.n, LANES) : 0;
}

i64 recurrent_saved(const struct op *op, const struct net *n, struct rows B) {
    (void)n;
    const i32 rank = op->spec.slice_rank;
    if (!recurrent_sliced(op)) return walk_saved(op, B);
    return walk_saved(op, B) + 2 * (1 + chunk_count(op, B) + rank) * state_floats(op, B) + rank * round_up64(B.n, LANES) +
           2 * guest_floats(op, B);
}

/* act for a chunk of a run whose gates are not needed; always f32. */
static i64 spare_act(const struct op *op, struct rows B) {
    return round_up64(walk_of(op)->act(op, PREC_F32, chunk_steps(op, B), B.n), LANES);
}

static i64 spare_y(const struct op *op, struct rows B) { return (i64)chunk_steps(op, B) * B.n * state_width(op, 0); }

static i64 spare_floats(const struct op *op, struct rows B) {
    return op->spec.slice_rank > 0 ? spare_act(op, B) + spare_y(op, B) + 2 * state_floats(op, B) : 0;
}

i64 recurrent_scratch(const struct op *op, const struct net *n, struct rows B) {
    (void)n;
    if (!recurrent_sliced(op)) return walk_scratch(op, B);
    return walk_scratch(op, B) + state_floats(op, B) + 3 * round_up64(B.n, LANES) + round_up64(op->T + 1, LANES) * B.n +
           slice_grains(B.of) * round_up64(op->ntheta, LANES) + spare_floats(op, B);
}

/* Backward forgets after as many steps as forward, since both are products of the same Jacobians. Beyond a third of a slice the
 * head costs more than it saves. */
static i32 head_steps(const struct chain *c, i32 chunk, i32 T) {
    const i32 n = c->forgets > 0 ? round_up(c->forgets + c->forgets / 4, chunk) : 0;
    return n <= T / 3 ? n : 0;
}

struct way way_of(const struct chain *c, bool backward) {
    const struct op *op = c->self;
    const struct run *r = c->with;
    const struct rows B = {r->B, r->whole};
    struct way w = {.op = op,
                    .r = r,
                    .walk = walk_of(op),
                    .back = backward,
                    .states = cell_of(op->spec.cell)->states,
                    .chunk = chunk_steps(op, B),
                    .chunks = chunk_count(op, B)};
    const i64 state = w.state = state_floats(op, B);
    f32 *saved = r->saved[op->l] + walk_saved(op, B);
    f32 *scratch = r->scratch[op->l] + walk_scratch(op, B);
    for (i32 s = 0; s < 2; s++) w.width[s] = state_width(op, s);
    w.plane = (i64)r->B * w.width[0];
    w.begin = saved + (backward ? state : 0);
    w.mark = saved + 2 * state + (backward ? w.chunks * state : 0);
    w.end = w.mark + (backward ? 0 : (w.chunks - 1) * state);
    w.fresh = scratch;
    w.next = (i32 *)(void *)(scratch + state);
    w.going = w.next + round_up64(r->B, LANES);
    w.walked = w.going + round_up64(r->B, LANES);
    w.live = w.walked + round_up64(r->B, LANES);
    w.dw = (f32 *)(void *)(w.live + round_up64(op->T + 1, LANES) * r->B);
    w.rank = op->spec.slice_rank;
    w.ask = saved + 2 * (1 + w.chunks) * state;
    w.answer = w.ask + w.rank * state;
    w.share = w.answer + w.rank * state;
    w.guest = w.share + w.rank * round_up64(r->B, LANES) + (backward ? guest_floats(op, B) : 0);
    w.guest_share = w.guest + (1 + w.rank) * state;
    w.spare = w.dw + slice_grains(r->whole) * round_up64(op->ntheta, LANES);
    w.spare_y = w.spare + (w.rank > 0 ? spare_act(op, B) : 0);
    w.spare_state = w.spare_y + spare_y(op, B);
    /* gradient of the final state only: no guess */
    w.head = backward && run_dout(r, op->out) ? head_steps(c, w.chunk, op->T) : 0;
    w.recompute = op->spec.recompute;
    w.forth = saved + 2 * state;
    w.ring = w.recompute || (w.head > 0 && w.walk->bwd_again(op, r));
    w.late = backward && run_dout(r, op->out) && c->forgets != 0 && w.head == 0 && !w.ring;
    w.after = (const i32 *)(const void *)run_in(op, r, RECURRENT_AFTER);
    w.given = backward ? run_dout(r, op->end) : op->spec.in[1] >= 0 ? run_in(op, r, 1) : NULL;
    w.ngiven = w.given ? r->net->buf[backward ? op->end : op->spec.in[1]].T : 0;
    return w;
}

struct origin way_origin(const struct way *w, i32 prev, i32 row) {
    const i32 here = prev - w->r->row0;
    if (prev >= 0 && here >= 0 && here < w->r->B)
        return (struct origin){.end = w->end, .known = w->back ? w->ask : w->answer, .share = w->share, .row = here};
    return (struct origin){.end = w->guest, .known = w->guest + w->state, .share = w->guest_share, .row = row};
}

/* ------------------------------------------------------------------ states of one row --------------------------------------- */

static void copy_planes(const struct way *w, f32 *to, i32 row, const f32 *from, i32 from_row, i32 planes) {
    for (i32 s = 0; s < w->states; s++) {
        f32 *at = to + way_at(w, s, row);
        if (s < planes)
            memcpy(at, from + way_at(w, s, from_row), (size_t)w->width[s] * sizeof *at);
        else
            memset(at, 0, (size_t)w->width[s] * sizeof *at);
    }
}

void way_copy(const struct way *w, f32 *to, i32 row, const f32 *from, i32 from_row) {
    copy_planes(w, to, row, from, from_row, from ? w->states : 0);
}

void way_give(const struct way *w, f32 *to, i32 row) { copy_planes(w, to, row, w->given, row, w->ngiven); }

void way_add_given(const struct way *w, f32 *to, i32 k) {
    for (i32 s = 0; s < w->ngiven; s++)
        for (i32 u = 0; u < w->width[s]; u++) to[way_at(w, s, k) + u] += w->given[way_at(w, s, k) + u];
}

/* Largest |a - b| over the planes of one row; w->given of row b_row is added to a in the first `given` planes. */
static f32 distance(const struct way *w, const f32 *a, i32 a_row, const f32 *b, i32 b_row, i32 given) {
    f32 most = 0;
    bool bad = false;
    for (i32 s = 0; s < w->states; s++) {
        const f32 *x = a + way_at(w, s, a_row), *y = b + way_at(w, s, b_row);
        const f32 *z = s < given ? w->given + way_at(w, s, b_row) : NULL;
        for (i32 u = 0; u < w->width[s]; u++) {
            const f32 d = fabsf((z ? x[u] + z[u] : x[u]) - y[u]);
            bad = bad || isnan(d);
            most = d > most ? d : most;
        }
    }
    return bad ? (f32)NAN : most;
}

f32 way_distance(const struct way *w, const f32 *a, i32 a_row, const f32 *b, i32 b_row) {
    return distance(w, a, a_row, b, b_row, 0);
}

f32 way_gap(const struct way *w, const f32 *a, i32 a_row, const f32 *b, i32 b_row) {
    return distance(w, a, a_row, b, b_row, w->ngiven);
}

f32 way_largest(const struct way *w, const f32 *a, i32 row) {
    f32 most = 0;
    for (i32 s = 0; s < w->states; s++)
        for (i32 u = 0; u < w->width[s]; u++) most = fmaxf(most, fabsf(a[way_at(w, s, row) + u]));
    return most;
}

struct cell_args way_box(const struct way *w, const f32 *begin, i32 k0, i32 k1) {
    struct cell_args box = w->walk->box(w->op, w->r, (struct part){.b0 = k0, .b1 = k1, .t1 = w->op->T, .n = 1});
    box.h0 = begin;
    box.c0 = way_c(w, begin);
    box.dh0 = box.dc0 = NULL;
    if (!w->back) return box;
    box.dhT = w->begin;
    box.dcT = way_c(w, w->begin);
    box.slice = w->ring && !w->recompute ? w->chunk : 0;
    return box;
}
