/* dealer.c - the state of dealt work: spans that nobody has, pieces in flight, results. */
#include "deal/inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { REST = 64 }; /* what was learned of lanes and refusals holds for so many pieces */

/* --- beginning and end --- */

static void device_out(struct dealer *d, struct dev *v, enum deal_status why) {
    v->status = why;
    d->in--;
    rate_refresh(d, true);
}

static void device_start(struct dealer *d, struct dev *v, const struct deal_device *is) {
    v->is = *is;
    v->rate = is->rate * (is->weight > 0 ? is->weight : 1);
    v->overhead = is->overhead_s > 0 ? is->overhead_s : DEAL_OVERHEAD;
    v->queue.root = -1;
    v->cap_rows = INT64_MAX;
    if (!size_memory(d, v)) {
        v->status = DEAL_REFUSED;
        d->in--;
        return;
    }
    v->climbs = d->policy->climb && !is->lanes_fixed;
    const i32 lanes = is->lanes > 0 ? is->lanes : 1;
    v->lanes = d->policy->climb ? imin(lanes, v->lanes_most) : v->lanes_most;
    v->search.best = v->lanes;
    v->search.step = 1;
    if (is->lanes > 0) v->search.hold = REST;
}

/* Spans of the partitions, cut beforehand where the policy asks for it, into the queues in the order of the policy. */
static err cut_part(struct dealer *d, i32 part, struct queue *all) {
    const i64 rows = d->part[part].rows, grains = (rows + d->grain - 1) / d->grain;
    const i32 holder = d->home ? d->home[part] : -1;
    i64 pieces = rows > 0;
    if (d->policy->delta > 0 && rows > 0) {
        const f64 bound = d->policy->delta * d->total / d->n, least = (f64)rows * d->part[part].cost / bound;
        pieces = lmax(1, least < (f64)grains ? (i64)least + (least > (f64)(i64)least) : grains);
    }
    for (i64 k = 0, lo = 0; k < pieces; k++) {
        const i64 share = grains / pieces + (k < grains % pieces), hi = lmin(rows, lo + share * d->grain);
        TRY(span_reserve(d, 1));
        queue_push(d, all, span_new(d, part, lo, hi, holder));
        lo = hi;
    }
    return 0;
}

static void put_all(struct dealer *d, struct queue *all) {
    struct queue in_order = *all;
    i32 first = -1, last = -1;
    while (in_order.n > 0) {
        const i32 k = queue_pop(d, &in_order);
        d->span[k].next = -1;
        if (last >= 0)
            d->span[last].next = k;
        else
            first = k;
        last = k;
    }
    for (i32 k = first; k >= 0;) {
        const i32 next = d->span[k].next;
        home_put(d, k);
        k = next;
    }
}

static void reset_round(struct dealer *d) {
    d->left = d->total;
    d->nresult = 0;
    d->sorted = false;
    d->turn = 0;
    d->undone = 0;
    for (i32 i = 0; i < d->nparts; i++) d->undone += d->part[i].rows;
    home_reset(d);
}

static err start_round(struct dealer *d) {
    struct queue all = {.root = -1};
    reset_round(d);
    for (i32 i = 0; i < d->nparts; i++) TRY(cut_part(d, i, &all));
    put_all(d, &all);
    return 0;
}

static err build(const struct deal_device *device, const struct deal_work *w, struct dealer *d) {
    NEW(d->dev, d->n);
    NEW(d->part, d->nparts);
    NEW(d->flight, (i64)d->n * DEAL_LANES);
    if (d->nparts > 0) memcpy(d->part, w->part, (size_t)d->nparts * sizeof *d->part);
    if (w->home) {
        NEW(d->home, d->nparts);
        if (d->nparts > 0) memcpy(d->home, w->home, (size_t)d->nparts * sizeof *d->home);
    }
    for (i32 i = 0; i < d->nparts; i++) d->total += (f64)d->part[i].rows * d->part[i].cost;
    for (i32 i = 0; i < d->n; i++) device_start(d, &d->dev[i], &device[i]);
    rate_refresh(d, true);
    return start_round(d);
}

err deal_new(const struct deal_device *device, i32 n, const struct deal_work *work, const char *policy, struct dealer **out) {
    const struct deal_policy *p;
    *out = NULL;
    TRY(deal_policy_find(policy, &p));
    TRY(deal_check(device, n, work));
    struct dealer *d;
    NEW(d, 1);
    *d = (struct dealer){.policy = p, .n = n, .nparts = work->nparts, .row_bytes = work->row_bytes, .grain = work->grain};
    d->in = n;
    d->free_span = -1;
    const err e = build(device, work, d);
    if (e < 0)
        deal_free(d);
    else
        *out = d;
    return e;
}

void deal_free(struct dealer *d) {
    if (!d) return;
    mem_free(d->dev);
    mem_free(d->part);
    mem_free(d->home);
    mem_free(d->flight);
    mem_free(d->span);
    mem_free(d->result);
    mem_free(d);
}

/* --- a piece --- */

/* Room for what must not fail later: every piece in flight may return as a span or become a result. */
static err reserve(struct dealer *d) {
    TRY(span_reserve(d, d->inflight + 4));
    GROW(d->result, d->nresult + d->inflight + 1, d->result_cap);
    return 0;
}

int deal_next(struct dealer *d, i32 device, i32 lane, struct deal_piece *out) {
    struct dev *v = &d->dev[device];
    struct flight *f = &d->flight[(i64)device * DEAL_LANES + lane];
    if (d->undone == 0 || v->status != DEAL_IN) return DEAL_NONE;
    if (f->on) return FAIL(E1, "lane %d of device %d asks for work before its piece is done", lane, device);
    if (v->inflight >= v->lanes) return DEAL_WAIT;
    TRY(reserve(d));
    struct queue *q = home_queue(d, device);
    if (!q) {
        lanes_starved(v);
        return DEAL_WAIT;
    }
    const struct span s = d->span[q->root];
    const i64 rows = size_rows(d, device, &s);
    if (rows <= 0) return DEAL_WAIT;
    queue_take(d, q, rows);
    *out = (struct deal_piece){.id = d->ids++, .part = s.part, .device = device, .lo = s.lo, .hi = s.lo + rows};
    out->cost = (f64)rows * d->part[s.part].cost;
    out->resident = s.holder == device;
    *f = (struct flight){true, *out};
    d->left = dmax(0, d->left - out->cost);
    d->inflight++;
    v->inflight++;
    v->inflight_rows += rows;
    v->last = out->cost;
    return DEAL_PIECE;
}

/* Takes a piece out of flight. */
static bool land(struct dealer *d, i32 device, i32 lane, const struct deal_piece *p) {
    struct flight *f = &d->flight[(i64)device * DEAL_LANES + lane];
    if (!f->on || f->piece.id != p->id) return false;
    f->on = false;
    d->inflight--;
    d->dev[device].inflight--;
    d->dev[device].inflight_rows -= p->hi - p->lo;
    return true;
}

static i32 span_back(struct dealer *d, const struct deal_piece *p, bool lost) {
    d->left += p->cost;
    return span_new(d, p->part, p->lo, p->hi, p->resident && !lost ? p->device : -1);
}

bool deal_done(struct dealer *d, i32 device, i32 lane, const struct deal_piece *p, f64 seconds, f64 now) {
    if (!land(d, device, lane, p)) return false;
    struct dev *v = &d->dev[device];
    const i32 lanes = v->lanes;
    d->undone -= p->hi - p->lo;
    d->result[d->nresult++] = *p;
    d->sorted = false;
    rate_measured(d, v, p, seconds);
    if (v->refused > 0 && ++v->calm == REST && v->cap_rows < INT64_MAX / 2) { /* others may have given memory back */
        v->cap_rows *= 2;
        v->calm = 0;
    }
    lanes_done(v, p->cost, now);
    if (lanes != v->lanes) rate_refresh(d, true);
    return true;
}

/* The queue of a device that is out goes to the others. */
static void give_up(struct dealer *d, i32 device, enum deal_status why) {
    struct dev *v = &d->dev[device];
    struct queue left = v->queue;
    v->queue = (struct queue){.root = -1};
    device_out(d, v, why);
    if (left.n > 0) put_all(d, &left);
}

static void put_back(struct dealer *d, i32 device, i32 span) {
    if (d->policy->home && !d->policy->sticky && d->dev[device].status == DEAL_IN)
        queue_push(d, &d->dev[device].queue, span);
    else
        home_put(d, span);
}

bool deal_refused(struct dealer *d, i32 device, i32 lane, const struct deal_piece *p) {
    if (!land(d, device, lane, p)) return false;
    struct dev *v = &d->dev[device];
    const i64 half = (p->hi - p->lo) / 2;
    v->refused++;
    v->calm = 0;
    v->last /= 2;
    v->cap_rows = lmin(v->cap_rows, lmax(d->grain, half - half % d->grain));
    const i32 span = span_back(d, p, false);
    if (half < d->grain && v->inflight == 0) {
        give_up(d, device, DEAL_REFUSED);
    } else if (half < d->grain) { /* the other lanes have the memory */
        v->lanes = v->lanes_most = v->inflight;
        v->climbs = false;
        rate_refresh(d, true);
    }
    put_back(d, device, span);
    return true;
}

void deal_lost(struct dealer *d, i32 device) {
    struct dev *v = &d->dev[device];
    if (v->status == DEAL_LOST) return;
    struct queue back = {.root = -1};
    for (i32 lane = 0; lane < DEAL_LANES; lane++) {
        struct flight *f = &d->flight[(i64)device * DEAL_LANES + lane];
        const struct deal_piece p = f->piece;
        if (f->on && land(d, device, lane, &p)) queue_push(d, &back, span_back(d, &p, true));
    }
    if (v->status == DEAL_IN)
        give_up(d, device, DEAL_LOST);
    else
        v->status = DEAL_LOST;
    if (back.n > 0) put_all(d, &back);
}

/* --- the whole --- */

enum deal_state deal_state(const struct dealer *d) {
    if (d->undone == 0) return DEAL_FINISHED;
    return d->in > 0 || d->inflight > 0 ? DEAL_RUNNING : DEAL_STUCK;
}

static int by_row(const void *x, const void *y) {
    const struct deal_piece *a = x, *b = y;
    if (a->part != b->part) return a->part < b->part ? -1 : 1;
    return a->lo < b->lo ? -1 : a->lo > b->lo;
}

const struct deal_piece *deal_results(struct dealer *d, i64 *n) {
    if (!d->sorted && d->nresult > 0) qsort(d->result, (size_t)d->nresult, sizeof *d->result, by_row);
    d->sorted = true;
    *n = d->nresult;
    return d->result;
}

f64 deal_expected(const struct dealer *d, i32 device, f64 cost) {
    const struct dev *v = &d->dev[device];
    if (v->rate > 0) return v->overhead + cost / v->rate;
    return d->rate_high > 0 ? v->overhead + 64 * cost / d->rate_mean : 0; /* it may be far below the others */
}

err deal_again(struct dealer *d, f64 *moved) {
    if (moved) *moved = 0;
    if (d->undone != 0) return FAIL(E1, "work is dealt again before it is done");
    if (!d->policy->sticky) return start_round(d);
    struct queue all = {.root = -1};
    TRY(span_reserve(d, (i32)lmin(d->nresult + 4 * (i64)d->n, INT32_MAX / 2)));
    for (i64 i = 0; i < d->nresult; i++) {
        const struct deal_piece *p = &d->result[i];
        queue_push(d, &all, span_new(d, p->part, p->lo, p->hi, p->device));
    }
    reset_round(d);
    put_all(d, &all);
    if (d->in > 0) {
        const f64 changed = home_balance(d);
        if (moved) *moved = changed;
    }
    return 0;
}

void deal_report(const struct dealer *d, i32 device, struct deal_report *out) {
    const struct dev *v = &d->dev[device];
    *out = (struct deal_report){.as = v->is, .status = v->status, .measured = v->measured, .lanes = v->lanes};
    out->as.rate = v->rate;
    out->as.weight = 1;
    out->as.overhead_s = v->overhead;
    out->as.lanes = v->search.settled > 0 || v->search.hold > 0 ? v->lanes : v->is.lanes;
    out->pieces = v->seen;
    out->refused = v->refused;
    out->stolen = v->stolen;
    out->lanes_pieces = v->search.settled;
    out->cost = v->cost;
    out->busy = v->busy;
}

i32 deal_devices(const struct dealer *d) { return d->n; }
