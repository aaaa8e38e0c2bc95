/* control.c - see control.h.
 *
 *     cost of P slices = (1 + FILL x WORKERS / rows) x (1 + again)        rows = sequences x P
 *
 * One worker needs a time proportional to r + FILL for a step of r rows (measured: bench/time, 1 to 16 rows).  The model assumes
 * that WORKERS workers share the rows.  It must not use the actual number: the choice affects the bits, which must not depend on
 * the machine. */
#include "learn/slices/control.h"

#define FILL_F32 0.65
#define FILL_BF16 4.5
#define GAIN 0.04 /* a change must save at least this share of the cost */
#define WALK 0.7  /* cost of propagating one direction through a step (no gates are stored), in forward steps */
#define BACK 2.0  /* cost of a backward step, in forward steps */

enum { WORKERS = 4, LOOKS = 2, LOOKS_MOST = 64, ROUNDS_MANY = 4 };

f64 slices_again(f64 w, i32 T, i32 P) {
    const f64 L = (f64)T / P;
    f64 sum = 0;
    for (i32 k = 1; k < P; k++) sum += dmin(w, k * L);
    return sum / T;
}

f64 slices_cost(const struct slice_view *v, i32 P, f64 again) {
    const f64 fill = v->rough ? FILL_BF16 : FILL_F32;
    return (1 + fill * WORKERS / ((f64)v->W * P)) * (1 + again);
}

/* slices_again, averaged over the layers. */
static f64 by_memory(const struct slice_view *v, i32 P) {
    f64 sum = 0;
    for (i32 l = 0; l < v->nlayer; l++) sum += slices_again(v->w[l], v->T, P);
    return v->nlayer ? sum / v->nlayer : 0;
}

static f64 measured(const struct slice_view *v) { return (v->again[0] + BACK * v->again[1]) / (1 + BACK); }

/* Allowed numbers of slices are `most`, halved repeatedly down to `least`. fewer: the next below P; more: the next above now. */
static i32 fewer(const struct slice_view *v, i32 P) { return P / 2 < (v->least > 2 ? v->least : 2) ? v->least : P / 2; }

static i32 more(const struct slice_view *v) {
    i32 P = v->most;
    while (P > 1 && fewer(v, P) > v->now.slices) P = fewer(v, P);
    return P;
}

/* If the prediction for the present number was too low, those for other numbers are raised by the same factor. */
static f64 predicted(const struct slice_view *v, i32 P) {
    const f64 here = by_memory(v, v->now.slices), more_than = here > 0 ? dmax(1, measured(v) / here) : 1;
    return slices_cost(v, P, by_memory(v, P) * more_than);
}

static f64 present(const struct slice_view *v) {
    return slices_cost(v, v->now.slices, dmax(measured(v), by_memory(v, v->now.slices)));
}

static bool turn(struct slice_history *m, i32 P, bool rise, struct slice_choice *out) {
    if (!rise && m->rose) m->looks = m->looks < LOOKS_MOST ? 2 * m->looks : m->looks;
    m->rose = rise;
    m->agreed = m->whole = m->tried = 0;
    out->slices = P;
    return true;
}

/* A whole sequence yields no counts, so slices are tried from time to time, at growing intervals. */
static bool from_whole(const struct slice_view *v, struct slice_history *m, struct slice_choice *out) {
    if (v->most < 2 || ++m->whole < 2 * m->looks) return false;
    return turn(m, more(v), true, out);
}

/* While initial states are estimated (rank > 0), rounds do not predict those of other numbers of slices: the number is then only
 * lowered, and only if slices ran one after another. */
static bool other_number(const struct slice_view *v, struct slice_history *m, struct slice_choice *out) {
    const i32 down = fewer(v, v->now.slices), up = more(v);
    const f64 now = present(v);
    if (v->now.rank > 0 && !v->serial) return false;
    if (down >= 1 && down < v->now.slices && (v->serial || predicted(v, down) < (1 - GAIN) * now))
        return turn(m, down, false, out);
    const bool rise = up > v->now.slices && !v->serial && predicted(v, up) < (1 - GAIN) * now;
    m->agreed = rise ? m->agreed + 1 : 0;
    return m->agreed >= m->looks && turn(m, up, true, out);
}

static f64 cost_with_rank(const struct slice_view *v) {
    return (1 + v->again[0]) * (1 + WALK * v->now.rank) + BACK * (1 + v->again[1]);
}

static bool set_rank(struct slice_history *m, i32 rank, struct slice_choice *out) {
    m->waits = m->waits == 0 ? LOOKS : m->waits < LOOKS_MOST ? 2 * m->waits : m->waits;
    m->wait = m->waits;
    m->tried = 0;
    out->rank = rank;
    return true;
}

/* Ranks are 0 1 2 4: the next one up, and down. */
static i32 higher(i32 rank) { return rank ? 2 * rank : 1; }
static i32 lower(i32 rank) { return rank / 2; }

/* A higher rank pays if there are many rounds; with at most two rounds it only costs time. */
static bool other_rank(const struct slice_view *v, struct slice_history *m, struct slice_choice *out) {
    if (m->tried > 0) {
        if (v->serial || cost_with_rank(v) > (1 - GAIN) * m->cost) return set_rank(m, m->tried - 1, out);
        m->tried = 0;
    }
    if (m->wait > 0) {
        m->wait--;
        return false;
    }
    if (v->rounds <= 2 && v->now.rank > v->rank_least) return set_rank(m, imax(v->rank_least, lower(v->now.rank)), out);
    if (v->rounds <= ROUNDS_MANY || v->now.rank >= v->rank_most) return false;
    m->tried = v->now.rank + 1;
    m->cost = v->serial ? 1e300 : cost_with_rank(v);
    out->rank = imin(v->rank_most, higher(v->now.rank));
    return true;
}

bool slices_decide(const struct slice_view *v, struct slice_history *m, struct slice_choice *out) {
    *out = v->now;
    if (m->looks == 0) m->looks = LOOKS;
    if (v->now.slices < 2) return from_whole(v, m, out);
    return other_number(v, m, out) || other_rank(v, m, out);
}
