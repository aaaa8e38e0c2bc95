/* cost.c - seconds of transfers between two devices, and of the sums of weight copies. */
#include "place/inside.h"

const struct place_link *problem_link(const struct place_machine *m, i32 a, i32 b) {
    const i32 from = m->device[a].rank, to = m->device[b].rank;
    return from == to ? &m->inside : m->pair ? &m->pair[(i64)from * m->nrank + to] : &m->between;
}

f64 problem_transfer_slow(const struct problem *p, i32 a, i32 b, i64 bytes) {
    const struct place_link *l = problem_link(p->m, a, b);
    return l->seconds + (f64)bytes / l->rate;
}

f64 problem_inputs(const struct problem *p, const i32 *device, const f64 *end, i32 x, i32 d) {
    f64 there = 0;
    for (i32 k = p->pred0[x]; k < p->pred0[x + 1]; k++) {
        const struct arc *a = &p->pred[k];
        there = dmax(there, end[a->node] + problem_transfer(p, device[p->group[a->node]], d, a->bytes));
    }
    return there;
}

f64 problem_sum_seconds(const struct problem *p, i32 unit, i32 home, i32 other) {
    const struct place_unit *u = &p->g->unit[unit];
    return u->copy_seconds + (u->copy_bytes > 0 ? problem_transfer(p, other, home, u->copy_bytes) : 0);
}

f64 problem_sum(const struct problem *p, i32 unit, const i32 *holder, i32 n) {
    if (n < 2) return 0;
    const struct place_unit *u = &p->g->unit[unit];
    f64 sum = 0, slowest = 0;
    i32 home = holder[0];
    for (i32 i = 1; i < n; i++) home = imin(home, holder[i]);
    for (i32 i = 0; i < n; i++) {
        if (holder[i] == home) continue;
        if (p->g->ring && u->copy_bytes > 0)
            slowest = dmax(slowest, problem_transfer(p, holder[i], home, u->copy_bytes / n));
        else if (!p->g->ring)
            sum += problem_sum_seconds(p, unit, home, holder[i]);
    }
    return p->g->ring ? u->copy_seconds + 2.0 * (n - 1) * slowest : sum;
}
