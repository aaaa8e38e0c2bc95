/* rate.c - what is known of a device's speed: a belief, then a moving average of what was measured. */
#include "deal/inside.h"

#define FORGET 0.9       /* weight of the past per piece, in the fit of the overhead */
#define GAIN 0.3         /* weight of the last piece in the rate */
#define JUMP 2.0         /* a rate that changes by more replaces the old one: the device has slowed down */
#define ENOUGH 8.0       /* a piece of so many overheads shows the rate; so do so many pieces */
#define SPREAD 0.02      /* relative variance of cost from which the fit separates overhead from rate */

/* Learned with one lane only: lanes wait for each other inside the device.  The fit counts by its certainty: the standard error
 * of the overhead against half of what is believed, as in a Kalman filter. */
static void fit_overhead(struct dev *v, f64 cost, f64 seconds) {
    struct fit *f = &v->fit;
    const f64 w = 1 / (seconds * seconds);
    f->n = FORGET * f->n + 1;
    f->w = FORGET * f->w + w;
    f->c = FORGET * f->c + w * cost;
    f->cc = FORGET * f->cc + w * cost * cost;
    f->s = FORGET * f->s + w * seconds;
    f->cs = FORGET * f->cs + w * seconds * cost;
    const f64 det = f->w * f->cc - f->c * f->c;
    if (f->n < 3 || det < SPREAD * f->w * f->cc) return;
    const f64 overhead = (f->cc * f->s - f->c * f->cs) / det, slope = (f->w * f->cs - f->c * f->s) / det;
    const f64 residual = dmax(0, f->n - overhead * f->s - slope * f->cs) / (f->n - 2);
    const f64 believed = v->overhead * v->overhead / 4, error = residual * f->cc / det;
    const f64 bounded = dmin(dmax(overhead, v->overhead / 2), 2 * v->overhead);
    v->overhead += believed / (believed + error) * (bounded - v->overhead);
}

static void average(f64 *rate, f64 last) {
    if (*rate <= 0 || last > JUMP * *rate || JUMP * last < *rate)
        *rate = last;
    else
        *rate += GAIN * (last - *rate);
}

void rate_measured(struct dealer *d, struct dev *v, const struct deal_piece *p, f64 seconds) {
    const f64 cost = p->cost;
    seconds = dmax(seconds, 1e-9);
    v->seen++;
    v->cost += cost;
    v->busy += seconds;
    if (v->lanes == 1) fit_overhead(v, cost, seconds);
    const f64 rate = cost / dmax(seconds - v->overhead, seconds / 4);
    if (v->seen == 1) v->rate = 0; /* what was believed */
    average(&v->rate, rate);
    if (p->resident) average(&v->home_rate, rate);
    const bool before = v->measured;
    v->measured |= seconds >= ENOUGH * v->overhead || v->seen >= (i64)ENOUGH;
    rate_refresh(d, v->measured != before);
}

f64 rate_of(const struct dealer *d, const struct dev *v) { return v->rate > 0 ? v->rate : d->rate_mean; }

/* Seconds of a queue of resident rows count without their transfers, once that is known of all devices. */
f64 rate_home(const struct dealer *d, const struct dev *v) {
    return (d->all_home && v->home_rate > 0 ? v->home_rate : rate_of(d, v)) * v->lanes;
}

/* A sum over 1000 devices at every piece would be most of the cost of a piece: it may be some pieces old. */
void rate_refresh(struct dealer *d, bool now) {
    if (!now && !d->stale && ++d->age < d->n / 16) return;
    i32 known = 0;
    f64 sum = 0;
    d->unmeasured = 0;
    d->all_home = true;
    d->rate_low = d->rate_high = 0;
    for (i32 i = 0; i < d->n; i++) {
        const struct dev *v = &d->dev[i];
        if (v->status != DEAL_IN) continue;
        const f64 rate = v->rate * v->lanes;
        d->unmeasured += !v->measured;
        d->all_home &= v->home_rate > 0;
        if (v->rate <= 0) continue;
        d->rate_low = known == 0 ? rate : dmin(d->rate_low, rate);
        d->rate_high = dmax(d->rate_high, rate);
        sum += rate;
        known++;
    }
    d->rate_mean = known > 0 ? sum / known : 1;
    d->rate_sum = sum + (d->in - known) * d->rate_mean;
    if (known < d->in) d->rate_low = 0;
    d->age = 0;
    d->stale = false;
}

bool rate_alike(const struct dealer *d) { return d->rate_low > 0 && d->rate_high <= DEAL_ALIKE * d->rate_low; }
