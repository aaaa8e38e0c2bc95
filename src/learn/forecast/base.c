/* base.c - the base of a fit, and the ridge that its scores are compared with. */
#include <string.h>

#include "learn/forecast/fit.h"

i64 forecast_origins(const struct fit *t, const struct window_set *set) {
    const struct forecast_spec *s = &t->f->spec;
    i64 n = window_origins(set);
    return n > 0 && s->all_steps ? n + s->context - 1 : n; /* the steps of a tile are origins too */
}

err forecast_ridge_base(const struct fit *t, bool refit, struct labour *work, struct base **out) {
    const struct forecast_spec *s = &t->f->spec;
    const struct series *x = t->series;
    struct ridge_spec r = {.L = forecast_lags(s),
                           .H = s->horizon,
                           .ncol = x->ntarget,
                           .calendar = s->calendar == CALENDAR_YES && x->time,
                           .train = t->job->split.train,
                           .valid = t->job->split.validation,
                           .refit = refit,
                           .work = work};
    return base_ridge(x, &r, out);
}

static err choose(struct fit *t, struct labour *work) {
    const struct forecast_spec *s = &t->f->spec;
    const struct series *x = t->series;
    const struct split *p = &t->job->split;
    i32 season = x->freq.season;
    if (strcmp(s->base, "none") == 0) return 0;
    if (strcmp(s->base, "last") == 0) return base_naive(0, &t->f->base);
    if (strcmp(s->base, "season") == 0) return base_naive(imax(1, season), &t->f->base);
    if (strcmp(s->base, "ridge") == 0) return forecast_ridge_base(t, s->refit_all, work, &t->f->base);
    if (strcmp(s->base, "mix") == 0) {
        struct mix_spec m = {.L = forecast_lags(s), .H = s->horizon, .ncol = x->ntarget, .season = season, .train = p->validation,
                             .work = work};
        t->f->has_mix = true;
        return base_mix(x, &m, &t->f->mix, &t->f->base);
    }
    struct choice_spec c = {.L = forecast_lags(s),
                            .H = s->horizon,
                            .ncol = x->ntarget,
                            .season = season,
                            .calendar = s->calendar == CALENDAR_YES && x->time,
                            .train = p->train,
                            .valid = p->validation,
                            .work = work};
    t->f->has_choice = true;
    return base_choose(x, &c, &t->f->choice, &t->f->base);
}

err forecast_choose_base(struct fit *t) {
    struct labour work = labour_of("choosing the base", t->job->use.events, forecast_stop(t));
    const err e = choose(t, &work);
    labour_end(&work);
    return e;
}

/* The ridge row that stands beside every score, also in later evaluations; not needed when the base is a ridge itself. */
err forecast_ridge_row(struct fit *t) {
    const struct forecast_spec *s = &t->f->spec;
    const struct split *p = &t->job->split;
    struct labour work = labour_of("fitting the ridge to compare with", t->job->use.events, forecast_stop(t));
    struct ridge_spec r = {.L = forecast_lags(s),
                           .H = s->horizon,
                           .ncol = t->series->ntarget,
                           .train = p->train,
                           .valid = p->validation,
                           .refit = t->f->has_mix || s->refit_all, /* the row to beat sees every row that the model sees */
                           .work = &work};
    if (base_is_ridge(t->f->base) || forecast_origins(t, &t->set.train) < MIN_WINDOWS) return 0;
    err e = base_ridge(t->series, &r, &t->f->ridge);
    labour_end(&work);
    return e == -E601 || e == -E806 ? e : 0; /* no complete window: no row */
}
