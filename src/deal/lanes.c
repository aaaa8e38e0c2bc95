/* lanes.c - how many pieces a device runs at once, by hill climbing on its measured throughput.
 *
 *     window of pieces at L lanes -> rate;  L + 1: rate rises by more than 2 % ? keep it and try L + 2 : go back, hold 64 pieces
 *
 * A window begins after L pieces (those that started under another number of lanes) and has a multiple of L pieces: lanes in step
 * end in groups of L.  Its pieces have one size, because throughput depends on the size too.  After a hold the search goes the
 * other way, and keeps fewer lanes if nothing is lost. */
#include "deal/inside.h"

#define RISE 1.02
enum { HOLD = 64, WINDOW = 5 };

static void window(struct dev *v) {
    struct lane_search *s = &v->search;
    s->skip = v->lanes;
    s->want = v->lanes * ((WINDOW + v->lanes - 1) / v->lanes);
    s->count = 0;
    s->cost = 0;
}

static void settle(struct dev *v) {
    struct lane_search *s = &v->search;
    v->lanes = s->best;
    s->hold = HOLD;
    s->step = -s->step;
    if (s->settled == 0) s->settled = v->seen;
}

static void try_next(struct dev *v) {
    struct lane_search *s = &v->search;
    const i32 next = s->best + s->step;
    if (next < 1 || next > v->lanes_most) {
        settle(v);
        return;
    }
    v->lanes = next;
    window(v);
}

static void judge(struct dev *v, f64 rate) {
    struct lane_search *s = &v->search;
    const bool first = s->best_rate <= 0;
    if (!first && (s->step > 0 ? rate <= RISE * s->best_rate : rate < s->best_rate)) {
        settle(v);
        return;
    }
    if (first && s->best == v->lanes_most) s->step = -1;
    if (first && v->lanes == 1) s->step = 1;
    s->best = v->lanes;
    s->best_rate = rate;
    try_next(v);
}

void lanes_starved(struct dev *v) {
    if (v->search.hold == 0) window(v);
}

void lanes_done(struct dev *v, f64 cost, f64 now) {
    struct lane_search *s = &v->search;
    if (v->lanes_most < 2 || !v->climbs || !v->measured) return;
    if (s->hold > 0) { /* also of a number that was given: it is tried against others after a while */
        if (--s->hold > 0) return;
        s->best_rate = 0;
        if (s->step == 0) s->step = 1, s->best = v->lanes;
        window(v);
    } else if (s->piece <= 0) {
        return; /* no piece of the search was dealt yet */
    } else if (s->want == 0) {
        s->step = 1;
        s->best = v->lanes;
        window(v);
    } else if (s->skip > 0) {
        s->skip--;
        s->begin = now;
    } else {
        s->cost += cost;
        if (++s->count < s->want) return;
        if (s->cost < 0.7 * s->piece * s->count || now <= s->begin)
            window(v); /* the pieces were smaller: the tail of the work */
        else
            judge(v, s->cost / (now - s->begin));
    }
}

f64 lanes_piece(struct dev *v, f64 cost, f64 min) {
    struct lane_search *s = &v->search;
    if (v->lanes_most < 2 || !v->climbs || !v->measured || s->hold > 0) return cost;
    if (s->piece <= 0) s->piece = dmin(cost, 2 * min);
    return dmin(cost, s->piece);
}
