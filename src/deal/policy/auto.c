/* auto.c - the scheduler's own choice, made anew for every piece.
 *
 * Equal devices: an idle device takes a piece of 5 % of a device's share; near the end of the work pieces shrink (size_guided).
 * Unlike devices, and devices of unknown rate: size_guided, at most 10 %.  The bound counts in time: a device that slows down
 * delays the end by one such piece.  Rows in the memory of a device stay there until an idle device steals them. */
#include "deal/inside.h"

static i32 home(struct dealer *d, const struct span *s) {
    return s->holder >= 0 && d->dev[s->holder].status == DEAL_IN ? s->holder : -1;
}

static f64 size(const struct dealer *d, i32 device) {
    const struct dev *v = &d->dev[device];
    const f64 delta = rate_alike(d) ? DEAL_DELTA : 2 * DEAL_DELTA;
    const f64 bound = delta * d->total * rate_of(d, v) / d->rate_sum;
    return dmin(size_guided(d, v), dmax(bound, 3 * size_min(d, v))); /* 3: where overheads are large they count more */
}

extern const struct deal_policy deal_by_auto;
const struct deal_policy deal_by_auto = {
    .name = "auto",
    .help = "split for equal devices, guided for unlike ones; rows stay where they are",
    .largest = true,
    .sticky = true,
    .climb = true,
    .home = home,
    .size = size,
};
