/* guard.c - computes the weight of the network's correction from its gain on the validation split, and what the last member adds
 * to this gain. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/forecast/shares.h"

/* Mean training loss at every validation origin, over all columns. */
struct losses {
    const struct fit *t;
    f64 *base, *both;  /* [n] sums, then means; NaN = no target */
    i64 *cells;
    i64 n;
    struct workload *work;
};

static err on_loss_row(void *self, const struct forecast_row *row) {
    struct losses *d = self;
    const struct series *s = d->t->series;
    const struct forecast_spec *spec = &d->t->f->spec;
    bool squared = forecast_squares(spec);
    i64 at = row->origin - d->t->set.valid_all.first;
    TRY(workload_advance(d->work, 1));
    if (row->seen == 0) return 0;
    for (i32 i = 0; i < spec->horizon; i++) {
        f64 y = (f64)series_target(s, row->col, row->origin + i);
        if (isnan(y)) continue;
        f64 e0 = (y - (f64)row->base[i]) / (f64)row->div, e1 = (y - (f64)row->both[i]) / (f64)row->div;
        d->base[at] += squared ? e0 * e0 : fabs(e0);
        d->both[at] += squared ? e1 * e1 : fabs(e1);
        d->cells[at]++;
    }
    return 0;
}

static err measure(struct fit *t, struct losses *d, struct guard *out) {
    const struct forecast_spec *spec = &t->f->spec;
    NEW(d->base, d->n + 1);
    NEW(d->both, d->n + 1);
    NEW(d->cells, d->n + 1);
    TRY(forecast_windows(t->f, t->series, &t->set.valid_all, &t->job->use, on_loss_row, d));
    for (i64 i = 0; i < d->n; i++) {
        d->base[i] = d->cells[i] ? d->base[i] / (f64)d->cells[i] : (f64)NAN;
        d->both[i] = d->cells[i] ? d->both[i] / (f64)d->cells[i] : (f64)NAN;
    }
    guard_weigh(d->base, d->both, (i32)d->n, spec->horizon, strcmp(spec->preset, "short") == 0 ? 1 : GUARD_BLOCKS, out);
    return 0;
}

/* Validation losses of the base alone, and with the mean of the first n members. */
static err weigh_members(struct fit *t, i32 n, struct guard *out) {
    struct forecaster *f = t->f;
    const i32 all = f->nmember;
    struct workload work = workload_start("weighing the recurrent part", t->job->use.events, forecast_stop(t));
    struct losses d = {.t = t, .n = window_origins(&t->set.valid_all), .work = &work};
    work.all = (f64)d.n * t->series->ntarget;
    training_rest(t);
    if (forecast_averages(&f->spec)) TRY(shares_find(t, n));
    f->nmember = n;
    err e = measure(t, &d, out);
    f->nmember = all;
    workload_end(&work);
    mem_free(d.base);
    mem_free(d.both);
    mem_free(d.cells);
    return e;
}

static void tell_shares(const struct fit *t) {
    const struct shares *s = &t->f->shares;
    char list[SHARES_TEXT];
    if (s->n > 0)
        event_note(t->job->use.events, EVENT_NOTE, "share of the network beside the base%s: %s",
                   s->n > 1 ? ", over the horizon" : "", shares_text(s, list));
}

err forecast_guard(struct fit *t) {
    struct forecaster *f = t->f;
    f->weight = 1;
    if (!f->base) return 0;
    if (!f->spec.guard) {
        if (forecast_averages(&f->spec)) TRY(shares_find(t, f->nmember));
        tell_shares(t);
        return 0;
    }
    TRY(weigh_members(t, f->nmember, &f->guard));
    const struct guard *g = &f->guard;
    f->has_guard = true;
    f->weight = g->a;
    tell_shares(t);
    event_note(t->job->use.events, EVENT_NOTE,
               "guard: validation loss %.4g with the base alone, %.4g with the network (t %.2f over %d blocks): its "
               "weight is %.2f",
               g->loss_base, g->loss_both, g->t, g->nblock, f->weight);
    return 0;
}

/* Percent by which member n lowers the validation loss of the members before it, or of the base alone. INFINITY if there is
 * nothing to compare. */
static err gain_of(struct fit *t, i32 n, f64 *gain) {
    struct guard now, before;
    *gain = (f64)INFINITY;
    if (n == 1 && !t->f->base) return 0;
    TRY(weigh_members(t, n, &now));
    f64 was = n == 1 ? now.loss_base : t->at.loss;
    if (n > 1 && t->at.weighed != n - 1) {
        TRY(weigh_members(t, n - 1, &before));
        was = before.loss_both;
    }
    t->at.weighed = n;
    t->at.loss = now.loss_both;
    if (now.norigin > 0) *gain = was > 0 ? 100 * (1 - now.loss_both / was) : 0;
    return 0;
}

err forecast_enough(struct fit *t, i32 n, bool *enough) {
    const struct forecast_spec *s = &t->f->spec;
    const struct resources *use = &t->job->use;
    f64 gain = (f64)INFINITY;
    *enough = false;
    if (s->member_gain <= 0 || window_origins(&t->set.valid_all) < 1) return 0;
    event_phase(use->events, "guard");
    if (comm_rank(use->comm) == 0) TRY(gain_of(t, n, &gain));
    TRY(comm_broadcast_slow(use->comm, "members", &gain, sizeof gain));
    *enough = !(gain >= s->member_gain);
    if (*enough)
        event_note(use->events, EVENT_NOTE,
                   "%d of %d members: member %d brings %.2f %% %son validation, less than %g %% (--member-gain)", n, s->members,
                   n, gain, n == 1 ? "over the base " : "", s->member_gain);
    return 0;
}
