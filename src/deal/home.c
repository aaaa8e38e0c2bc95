/* home.c - which queue a span belongs to, and when it moves to another device. */
#include <math.h>

#include "deal/inside.h"

static f64 seconds_on(const struct dealer *d, i32 device, const struct span *s) {
    const struct dev *v = &d->dev[device];
    const f64 rate = rate_of(d, v), bytes = (f64)(s->hi - s->lo) * (f64)d->row_bytes;
    const bool moves = s->holder != device && v->is.bytes_per_s > 0;
    return span_cost(d, s) / rate + v->overhead + (moves ? bytes / v->is.bytes_per_s : 0);
}

/* finish = queue / rate + cost / rate + (resident ? 0 : bytes / bandwidth): the earliest one. */
i32 home_earliest(struct dealer *d, const struct span *s) {
    i32 best = -1;
    f64 at = INFINITY;
    for (i32 i = 0; i < d->n; i++) {
        if (d->dev[i].status != DEAL_IN) continue;
        const f64 end = d->dev[i].finish + seconds_on(d, i, s);
        if (end < at) at = end, best = i;
    }
    return best;
}

/* A partition that keeps a fast device busy for less than 20 overheads is for the slow ones. */
void home_reset(struct dealer *d) {
    const bool sized = d->policy->size && d->in > 0 && d->rate_low > 0 && !rate_alike(d);
    d->pool = d->small = (struct queue){.root = -1};
    d->least = 0;
    for (i32 i = 0; i < d->n; i++) {
        d->dev[i].finish = 0;
        if (sized && d->dev[i].status == DEAL_IN) d->least = dmax(d->least, size_min(d, &d->dev[i]));
    }
}

void home_put(struct dealer *d, i32 k) {
    const i32 home = d->policy->home && d->in > 0 ? d->policy->home(d, &d->span[k]) : -1;
    if (home < 0) {
        queue_push(d, span_cost(d, &d->span[k]) < d->least ? &d->small : &d->pool, k);
        return;
    }
    d->dev[home].finish += seconds_on(d, home, &d->span[k]);
    queue_push(d, &d->dev[home].queue, k);
}

/* Moves spans of at least `cost` in all, or all, from one queue to another one; the last span is cut at a grain. */
static f64 move(struct dealer *d, struct queue *from, struct queue *to, f64 cost) {
    f64 moved = 0;
    while (from->n > 0 && moved < cost) {
        const i32 k = queue_pop(d, from);
        struct span *s = &d->span[k];
        const f64 unit = d->part[s->part].cost;
        const i64 want = (i64)((cost - moved) / unit), grains = want - want % d->grain;
        if (grains < d->grain && moved > 0) {
            queue_push(d, from, k);
            break;
        }
        const i64 take = lmax(grains, d->grain);
        if (take < s->hi - s->lo && d->nfree > 0) {
            const i32 part = s->part, holder = s->holder; /* span_new may not move the array: spans are reserved */
            const i64 lo = s->lo;
            s->lo += take;
            queue_push(d, from, k);
            const i32 cut = span_new(d, part, lo, lo + take, holder);
            moved += span_cost(d, &d->span[cut]);
            queue_push(d, to, cut);
        } else {
            moved += span_cost(d, s);
            queue_push(d, to, k);
        }
    }
    return moved;
}

/* At the tail: an idle device takes of the longest queue the part that makes both end together (half, for equal devices). */
static bool steal(struct dealer *d, i32 device) {
    struct dev *thief = &d->dev[device], *victim = NULL;
    f64 longest = DEAL_DELTA * d->total / d->rate_sum; /* moving data for less is not worth it */
    for (i32 i = 0; i < d->n; i++) {
        struct dev *v = &d->dev[i];
        const f64 seconds = v->queue.cost / rate_home(d, v);
        if (i == device || v->queue.n == 0 || seconds <= longest) continue;
        longest = seconds;
        victim = v;
    }
    if (!victim) return false;
    const f64 mine = rate_home(d, thief), share = mine / (mine + rate_home(d, victim));
    thief->stolen++;
    return move(d, &victim->queue, &thief->queue, victim->queue.cost * share) > 0;
}

/* Between two rounds: queues above 105 % of the share of their device give the excess to those below theirs. */
f64 home_balance(struct dealer *d) {
    f64 moved = 0, sum = 0;
    for (i32 i = 0; i < d->n; i++)
        if (d->dev[i].status == DEAL_IN) sum += rate_home(d, &d->dev[i]);
    const f64 ideal = d->total / sum;
    for (i32 i = 0; i < d->n; i++) {
        struct dev *v = &d->dev[i];
        if (v->status != DEAL_IN || v->queue.cost <= (1 + DEAL_DELTA) * ideal * rate_home(d, v)) continue;
        for (i32 k = 0; k < d->n; k++) {
            struct dev *to = &d->dev[k];
            const f64 excess = v->queue.cost - ideal * rate_home(d, v), room = ideal * rate_home(d, to) - to->queue.cost;
            const f64 least = size_min(d, to);
            if (to->status == DEAL_IN && k != i && excess > least && room > least)
                moved += move(d, &v->queue, &to->queue, dmin(excess, room));
        }
    }
    return moved;
}

/* At the tail the smallest piece of a slow device would end long after the others have done all that is left. */
static bool too_slow(const struct dealer *d, const struct dev *v) {
    if (!d->policy->sticky || d->inflight == 0 || !v->measured || 2 * rate_all(d, v) >= d->rate_high) return false;
    return v->overhead + size_min(d, v) / rate_of(d, v) > 2 * d->left / d->rate_sum;
}

struct queue *home_queue(struct dealer *d, i32 device) {
    struct dev *v = &d->dev[device];
    if (v->queue.n > 0) return &v->queue;
    if (too_slow(d, v)) return NULL;
    const bool slow = d->small.n > 0 && 2 * size_min(d, v) < d->least;
    if (d->pool.n > 0 && !slow) return &d->pool;
    if (d->small.n > 0) return &d->small;
    if (d->pool.n > 0) return &d->pool;
    return d->policy->sticky && steal(d, device) ? &v->queue : NULL;
}
