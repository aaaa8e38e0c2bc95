/* recurrent_way.c - where the chain of a recurrent layer has its states, and what is done with the state of one row.
 *
 * saved    behind that of recurrent.c: begin [2 ways][states][B][Hp] | marks [2 ways][chunks][states][B][Hp]
 *          | with a rank: directions, answers [rank][states][B][Hp] each, shares [rank][B]
 *          | where ranks share a chain, of rows that are elsewhere: ends, answers (backward: directions), shares, for each way
 * scratch  behind that of recurrent.c: a state [states][B][Hp] | the row that goes on from each row, still running, walked [B]
 *          | live rows of a head [B][T] | dW of each grain | with a rank: a chunk of a walk that is not kept */
#include "model/layer/recurrent_way.h"

#include <math.h>
#include <string.h>

enum { CHUNK_FLOATS = 1 << 19, CHUNK_MIN = 8, CHUNK_MAX = 128, CHUNKS_MIN = 32, CHUNKS_MAX = 4096 };

/* So short that what is kept of a chunk stays in the second cache from one kernel to the next (and a merge is seen soon), so long
 * that a call is nothing beside its work. */
static i32 chunk_steps(const struct op *op, struct rows B) {
    const i64 kept = (i64)B.of * round_up(op->F, LANES) * (cell_slots(cell_of(op->spec.cell)) + 1);
    const i32 most = imin((i32)lmin(CHUNK_MAX, CHUNK_FLOATS / kept), op->T / CHUNKS_MIN);
    return imax(imax(CHUNK_MIN, most), ceil_div(op->T, CHUNKS_MAX));
}
static i32 chunk_count(const struct op *op, struct rows B) { return ceil_div(op->T, chunk_steps(op, B)); }

i32 recurrent_kept_steps(const struct op *op, struct rows B) {
    return recurrent_sliced(op) && op->spec.recompute ? chunk_steps(op, B) : op->T;
}

/* Grains of so many rows, at most (plan_slice_grain). */
static i32 grains_most(i32 B) { return imin(16, imax(8, ceil_div(B, 4))); }

static i64 state_floats(const struct op *op, struct rows B) {
    return (i64)cell_of(op->spec.cell)->states * B.n * round_up(op->F, LANES);
}

/* Of rows that are elsewhere: their ends, and with a rank one set of directions and their shares. */
static i64 guest_floats(const struct op *op, struct rows B) {
    const i32 rank = op->spec.rank;
    return B.n < B.of ? (1 + rank) * state_floats(op, B) + rank * round_up64(B.n, LANES) : 0;
}

i64 recurrent_chain_saved(const struct op *op, struct rows B) {
    const i32 rank = op->spec.rank;
    if (!recurrent_sliced(op)) return 0;
    return 2 * (1 + chunk_count(op, B) + rank) * state_floats(op, B) + rank * round_up64(B.n, LANES) + 2 * guest_floats(op, B);
}

/* A chunk of a walk whose gates nobody needs; always in f32. */
static i64 spare_act(const struct op *op, struct rows B) {
    return round_up64(cell_act_max(cell_of(op->spec.cell), PREC_F32, chunk_steps(op, B), B.n, op->I, op->F), LANES);
}

static i64 spare_y(const struct op *op, struct rows B) { return (i64)chunk_steps(op, B) * B.n * round_up(op->F, LANES); }

static i64 spare_floats(const struct op *op, struct rows B) {
    return op->spec.rank > 0 ? spare_act(op, B) + spare_y(op, B) + 2 * state_floats(op, B) : 0;
}

i64 recurrent_chain_scratch(const struct op *op, struct rows B) {
    return recurrent_sliced(op) ? state_floats(op, B) + 3 * round_up64(B.n, LANES) + round_up64(op->T + 1, LANES) * B.n +
                                      grains_most(B.of) * round_up64(op->ntheta, LANES) + spare_floats(op, B)
                                : 0;
}

const struct cell_kern *way_kernels(const struct way *w) {
    return cell_kernels(cell_of(w->op->spec.cell), w->r->kern, w->op->spec.precision);
}

/* How far back a gradient is felt is how long forward remembers: the same products of Jacobians.  Not worth it beyond a third. */
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
                    .back = backward,
                    .states = cell_of(op->spec.cell)->states,
                    .chunk = chunk_steps(op, B),
                    .chunks = chunk_count(op, B)};
    const i64 state = state_floats(op, B);
    f32 *saved = r->saved[op->l] + round_up64(recurrent_plain_saved(op, B), LANES);
    f32 *scratch = r->scratch[op->l] + round_up64(recurrent_plain_scratch(op, B), LANES);
    w.Hp = round_up(op->F, LANES);
    w.plane = (i64)r->B * w.Hp;
    w.begin = saved + (backward ? state : 0);
    w.mark = saved + 2 * state + (backward ? w.chunks * state : 0);
    w.end = w.mark + (backward ? 0 : (w.chunks - 1) * state);
    w.fresh = scratch;
    w.next = (i32 *)(void *)(scratch + state);
    w.going = w.next + round_up64(r->B, LANES);
    w.walked = w.going + round_up64(r->B, LANES);
    w.live = w.walked + round_up64(r->B, LANES);
    w.dw = (f32 *)(void *)(w.live + round_up64(op->T + 1, LANES) * r->B);
    w.rank = op->spec.rank;
    w.ask = saved + 2 * (1 + w.chunks) * state;
    w.answer = w.ask + w.rank * state;
    w.share = w.answer + w.rank * state;
    w.guest = w.share + w.rank * round_up64(r->B, LANES) + (backward ? guest_floats(op, B) : 0);
    w.guest_share = w.guest + (1 + w.rank) * state;
    w.spare = w.dw + grains_most(r->whole) * round_up64(op->ntheta, LANES);
    w.spare_y = w.spare + (w.rank > 0 ? spare_act(op, B) : 0);
    w.spare_state = w.spare_y + spare_y(op, B);
    w.head = backward && run_dout(r, op->out) ? head_steps(c, w.chunk, op->T) : 0; /* a gradient of the end alone: no guess */
    w.recompute = op->spec.recompute;
    w.forth = saved + 2 * state;
    w.ring = w.recompute || (w.head > 0 && way_kernels(&w)->bwd_again);
    w.after = (const i32 *)(const void *)run_in(op, r, RECURRENT_AFTER);
    w.given = backward ? run_dout(r, op->end) : op->spec.in[1] >= 0 ? run_in(op, r, 1) : NULL;
    return w;
}

struct origin way_origin(const struct way *w, i32 prev, i32 row) {
    const i32 here = prev - w->r->row0;
    if (prev >= 0 && here >= 0 && here < w->r->B)
        return (struct origin){.end = w->end, .known = w->back ? w->ask : w->answer, .share = w->share, .row = here};
    return (struct origin){.end = w->guest, .known = w->guest + w->states * w->plane, .share = w->guest_share, .row = row};
}

/* ------------------------------------------------------------------ states of one row --------------------------------------- */

void way_copy(const struct way *w, f32 *to, i32 row, const f32 *from, i32 from_row) {
    for (i32 s = 0; s < w->states; s++) {
        f32 *at = to + s * w->plane + (i64)row * w->Hp;
        if (from)
            memcpy(at, from + s * w->plane + (i64)from_row * w->Hp, (size_t)w->Hp * sizeof *at);
        else
            memset(at, 0, (size_t)w->Hp * sizeof *at);
    }
}

/* The largest |a + plus - b| of two states (plus NULL = 0); NaN where one is. */
f32 way_distance(const struct way *w, const f32 *a, i32 a_row, const f32 *plus, const f32 *b, i32 b_row) {
    f32 most = 0;
    bool bad = false;
    for (i32 s = 0; s < w->states; s++) {
        const i64 at = s * w->plane;
        const f32 *x = a + at + (i64)a_row * w->Hp, *y = b + at + (i64)b_row * w->Hp;
        const f32 *z = plus ? plus + at + (i64)b_row * w->Hp : NULL;
        for (i32 u = 0; u < w->Hp; u++) {
            const f32 d = fabsf((z ? x[u] + z[u] : x[u]) - y[u]);
            bad = bad || isnan(d);
            most = d > most ? d : most;
        }
    }
    return bad ? (f32)NAN : most;
}

f32 way_largest(const struct way *w, const f32 *a, i32 row) {
    f32 most = 0;
    for (i32 s = 0; s < w->states; s++)
        for (i32 u = 0; u < w->Hp; u++) most = fmaxf(most, fabsf(a[s * w->plane + (i64)row * w->Hp + u]));
    return most;
}

struct cell_box way_box(const struct way *w, const f32 *begin, i32 k0, i32 k1) {
    struct cell_box box = recurrent_box(w->op, w->r, (struct part){.b0 = k0, .b1 = k1, .t1 = w->op->T, .n = 1});
    box.h0 = begin;
    box.c0 = w->states > 1 ? begin + w->plane : NULL;
    box.dh0 = box.dc0 = NULL;
    if (!w->back) return box;
    box.dhT = w->begin;
    box.dcT = w->states > 1 ? w->begin + w->plane : NULL;
    box.slice = w->ring && !w->recompute ? w->chunk : 0;
    return box;
}
