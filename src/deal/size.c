/* size.c - how large the next piece of a device is: memory from above, overhead from below, guided self-scheduling between.
 *
 *     cap   = 0.8 * free bytes / (lanes * 2 buffers * bytes per row)
 *     min   = what a lane does in 20 overheads, or in sqrt(overhead * T) where that is less, T being the whole schedule: the loss
 *             by overheads then equals that by imbalance at the end
 *     guided = remaining cost * rate of the lane / (2 * sum of the rates of all devices)
 *              (guided self-scheduling, Polychronopoulos and Kuck, 1987, weighted by the rates of unlike devices)
 *
 * Until every device has been measured, a piece is at most twice as large as the device's last one: a belief that is wrong by 10
 * would make the first guided piece longer than the whole schedule. */
#include <math.h>

#include "deal/inside.h"

#define SLOW_START 4096.0 /* an unknown device begins with W / (4096 * devices) */

static i64 whole_grains(const struct dealer *d, i64 rows) { return rows - rows % d->grain; }

/* Rows of all lanes together. */
static i64 budget(const struct dealer *d, const struct dev *v) {
    if (v->is.free_bytes <= 0 || d->row_bytes <= 0) return INT64_MAX;
    return (i64)(DEAL_MEMORY * (f64)v->is.free_bytes / ((f64)DEAL_BUFFERS * (f64)d->row_bytes));
}

bool size_memory(const struct dealer *d, struct dev *v) {
    const i64 most = budget(d, v) / d->grain;
    v->lanes_most = (i32)lmin(v->is.lanes_most > 0 ? v->is.lanes_most : 1, most);
    return most > 0;
}

i64 size_cap(const struct dealer *d, const struct dev *v) {
    const i64 all = budget(d, v);
    if (all == INT64_MAX) return v->cap_rows;
    const i64 rows = lmin(lmin(all / v->lanes, all - v->inflight_rows), v->cap_rows);
    return rows < d->grain ? 0 : whole_grains(d, rows);
}

f64 size_min(const struct dealer *d, const struct dev *v) {
    const f64 whole = d->rate_sum > 0 ? d->total / d->rate_sum : (f64)INFINITY;
    if (v->rate > 0) return dmin(DEAL_MIN * v->overhead, sqrt(v->overhead * whole)) * v->rate;
    return d->total / (SLOW_START * d->n);
}

f64 size_guided(const struct dealer *d, const struct dev *v) {
    const f64 min = size_min(d, v), cost = dmax(d->left * rate_of(d, v) / (2 * d->rate_sum), min);
    return d->unmeasured > 0 ? dmin(cost, dmax(2 * v->last, min)) : cost;
}

/* A remainder below half of the piece goes with it: it would cost an overhead and a merge of its own. */
i64 size_rows(const struct dealer *d, i32 device, const struct span *s) {
    struct dev *v = &d->dev[device];
    const i64 all = s->hi - s->lo, cap = size_cap(d, v);
    const f64 unit = d->part[s->part].cost;
    const f64 cost = d->policy->size ? lanes_piece(v, d->policy->size(d, device), size_min(d, v)) : (f64)INFINITY;
    i64 rows = all;
    if (cost < (f64)all * unit) rows = lmin(lmax(whole_grains(d, (i64)(cost / unit)), d->grain), all);
    if (all - rows <= rows / 2) rows = all;
    return rows <= cap ? rows : cap;
}
