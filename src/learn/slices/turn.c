/* turn.c - turns: changes of the number of time slices, or of the rank of the correction of their initial states, during
 * training.  A turn is decided after a validation (control.h) or read from a saved plan.
 *
 *     validation --slices_changed: slices_decide, or the turn of the saved plan--> spec --slices_rebuild--> net, plan, batches
 *                                                   '--> list of turns --slices_plan--> the plan that repeats the run */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "learn/forecast/balance.h"
#include "learn/forecast/save.h"
#include "learn/slices/slices.h"

#define AGAIN_MOST 0.6 /* warns if more than this share of forward steps runs again */

enum { WARNED_SHARE = 1, WARNED_SERIAL = 2, WARNED_STALE = 4 };

static void warn(struct fit *t, const struct slice_summary *s) {
    struct slice_watch *w = &t->f->slices->watch;
    const struct events *ev = t->job->use.events;
    i32 steps = forecast_steps(&t->f->spec) / imax(1, w->slices);
    if (w->warned & (WARNED_SHARE | WARNED_SERIAL)) return; /* both warnings have the same remedy */
    if (s->serial > 0)
        event_note(ev, EVENT_WARNING,
                   "time slices did not converge in %lld of %lld steps and ran one after another: exact, but no "
                   "faster than whole windows; this model does not forget (--parallel serial, or a smaller --lr)",
                   (long long)s->serial, (long long)s->steps);
    if (s->again > AGAIN_MOST && s->serial == 0)
        event_note(ev, EVENT_WARNING,
                   "time slices hardly pay off: %.0f%% of forward ran again, in %.1f rounds; the model remembers about %.0f "
                   "steps, a slice has %d (--parallel time:%d, or auto)", 100 * s->again, s->rounds, s->w, steps,
                   imax(2, w->slices / 2));
    w->warned |= (s->serial > 0 ? WARNED_SERIAL : 0) | (s->again > AGAIN_MOST ? WARNED_SHARE : 0);
}

/* With stale initial states a gradient crosses about as many slices as there are rounds: slices shorter than half of the forget
 * window w bias it (docs/time-parallel.md). */
static void warn_stale(struct fit *t, const struct slice_summary *s) {
    struct slice_watch *w = &t->f->slices->watch;
    if (s->rounds <= t->f->spec.cut.course.slice_rounds + 1.5 || (w->warned & WARNED_STALE)) return;
    event_note(t->job->use.events, EVENT_WARNING,
               "--slice-rounds %d: steps that ran until convergence took %.1f rounds, so the model remembers %.0f slices of "
               "%d steps; "
               "its gradients are off (--parallel time:%d, or --slice-rounds 0)",
               t->f->spec.cut.course.slice_rounds, s->rounds, s->rounds - 1, forecast_steps(&t->f->spec) / w->slices,
               imax(2, w->slices / 2));
    w->warned |= WARNED_STALE;
}

/* True if every rank has slices to run. */
static bool too_few(const struct fit *t, i32 slices) {
    const i32 B = t->step.engine.B / t->f->spec.cut.slices * slices;
    const struct machine *ranks = t->job->use.ranks;
    return slices > 1 && ranks && slice_grains(B) < ranks->nrank;
}

static i32 least_slices(const struct fit *t) {
    i32 least = t->requested->cut.least;
    while (least < t->f->spec.cut.slices && too_few(t, least)) least++;
    return least;
}

static struct slice_view view_of(const struct fit *t, const struct slice_summary *s) {
    const struct forecast_spec *spec = &t->f->spec, *begun = t->requested;
    struct slice_view v = {.T = forecast_steps(spec),
                           .W = t->step.engine.B / imax(1, spec->cut.slices),
                           .now = {spec->cut.slices, spec->slice_rank},
                           .most = begun->cut.slices,
                           .least = least_slices(t),
                           .rank_least = begun->slice_rank,
                           .rank_most = imax(begun->slice_rank, begun->cut.rank_most),
                           .rough = spec->precision != PREC_F32,
                           .nlayer = t->f->slices->watch.nlayer,
                           .again = {s->way[0], s->way[1]},
                           .rounds = s->rounds,
                           .serial = s->serial > 0};
    for (i32 k = 0; k < v.nlayer; k++) v.w[k] = t->f->slices->watch.layer[k].w;
    return v;
}

static void report_turn(const struct fit *t, const struct slice_summary *s, struct slice_choice to) {
    const struct events *ev = t->job->use.events;
    const struct forecast_spec *now = &t->f->spec;
    const i32 steps = forecast_steps(now) / now->cut.slices;
    char rounds[160];
    snprintf(rounds, sizeof rounds, "%.0f%% of forward ran again, in %.1f rounds (%lld of %lld steps one after another; w %.0f, "
             "slices of %d steps)", 100 * s->again, s->rounds, (long long)s->serial, (long long)s->steps, s->w, steps);
    if (to.rank != now->slice_rank)
        event_note(ev, EVENT_DETAIL, "time slices: %s: initial states are estimated in %d direction%s from now on", rounds,
                   to.rank, to.rank == 1 ? "" : "s");
    else if (to.slices > now->cut.slices)
        event_note(ev, EVENT_DETAIL, "time slices: %s: room for %d slices from now on", now->cut.slices > 1 ? rounds :
                   "whole windows for a while, and nothing is known of their memory now", to.slices);
    else
        event_note(ev, EVENT_DETAIL, "time slices: %s: %d slice%s from here on", rounds, to.slices, to.slices > 1 ? "s" : "");
}

static struct plan_turn here(const struct fit *t, i64 step) {
    return (struct plan_turn){.step = step, .refit = t->at.refitting, .member = t->at.member};
}

static bool set_slices(struct fit *t, struct slice_choice to) {
    if (to.slices == t->f->spec.cut.slices && to.rank == t->f->spec.slice_rank) return false;
    t->f->spec.cut.slices = to.slices;
    t->f->spec.slice_rank = to.rank;
    return true;
}

static bool by_plan(struct fit *t, i64 step) {
    const struct plan_turns *list = &t->f->slices->watch.turns;
    const struct plan_turn now = here(t, step);
    for (i32 i = 0; i < list->n; i++) {
        const struct plan_turn *a = &list->at[i];
        if (a->refit == now.refit && a->member == now.member && a->step == step)
            return set_slices(t, (struct slice_choice){a->slices, a->rank});
    }
    return false;
}

static bool decided(struct fit *t, const struct slice_summary *s, i64 step) {
    struct plan_turns *list = &t->f->slices->watch.turns;
    const struct slice_view v = view_of(t, s);
    struct slice_choice to;
    if (list->n == TURNS_MOST || !slices_decide(&v, &t->f->slices->watch.history, &to)) return false;
    report_turn(t, s, to);
    struct plan_turn now = here(t, step);
    now.slices = to.slices;
    now.rank = to.rank;
    list->at[list->n++] = now;
    return set_slices(t, to);
}

bool slices_changed(void *fit, i64 step) {
    struct fit *t = fit;
    struct slice_watch *w = &t->f->slices->watch;
    const struct slice_summary s = slices_summary(w);
    if (t->requested->cut.slices < 2 || !t->step.engine.exec || (slices_sliced(t) && s.steps == 0)) return false;
    for (i32 k = 0; k < w->nlayer; k++) memset(w->layer[k].now, 0, sizeof w->layer[k].now);
    if (t->slicing->memory) {
        warn_stale(t, &s);
        return false;
    }
    if (slices_sliced(t) && least_slices(t) == w->slices) warn(t, &s);
    return w->planned ? by_plan(t, step) : decided(t, &s, step);
}

err slices_rebuild(void *fit, struct step **exec) {
    struct fit *t = fit;
    struct forecaster *f = t->f;
    const char *parallel = slices_parallel(&t->job->use, &f->spec);
    struct resources use = resources_sliced(&t->job->use, parallel, f->spec.cut.slices, f->spec.cut.course);
    struct batcher old = t->step.batch;
    const struct series *x = t->series;
    i32 nwin, B;
    use.steps = t->step.steps * f->spec.accumulate;
    batcher_free(&t->step.batch);
    t->step.batch = (struct batcher){0};
    TRY(training_net(t));
    TRY(forecast_rows(&f->spec, forecast_epoch(&f->spec, x, t->job->split.train), forecast_width(&f->spec, x), &nwin, &B));
    TRY(engine_replan(&t->step.engine, t->step.net, &use, B));
    TRY(batcher_new(f, t->step.net, &f->shape, x, use.kern, B, PREFETCH_SLOTS, &t->step.batch));
    exec_rows(step_exec(t->step.engine.exec), &t->step.batch.row0, &t->step.batch.row1);
    slices_batcher(&t->step.batch, &old);
    if (f->spec.decoder->every_step) TRY(batch_bases(&t->step.batch, t->job->split.validation));
    *exec = t->step.engine.exec;
    TRY(balance_new(t));
    TRY(saving_shares(t));
    return slices_watch(t);
}

/* --- saved plans --- */

/* Makes the plan and the net that training begins with; the caller frees both. */
static err initial_plan(const struct fit *t, struct net **net, struct plan **plan) {
    struct forecast_spec spec = t->f->spec;
    const struct resources use = resources_sliced(&t->job->use, NULL, t->requested->cut.slices, spec.cut.course);
    i32 nwin, B;
    spec.cut.slices = t->requested->cut.slices;
    spec.slice_rank = t->requested->slice_rank;
    NEW(*net, 1);
    TRY(forecast_net(&spec, &t->f->shape, t->series, *net));
    TRY(forecast_rows(&spec, forecast_epoch(&spec, t->series, t->job->split.train), forecast_width(&spec, t->series), &nwin, &B));
    return engine_plan(*net, &use, B, optim_find(spec.optim), plan);
}

err forecast_try_plan(const struct fit *t) {
    const struct resources *use = &t->job->use;
    const bool wish = use->how != 0 || (use->parallel && strcmp(use->parallel, "auto") != 0);
    struct net *net = NULL;
    struct plan *plan = NULL;
    if (!wish && !t->job->use.plan_text && !use->deterministic) return 0;
    const err e = initial_plan(t, &net, &plan);
    plan_free(plan);
    mem_free(net);
    return e;
}

err slices_read_plan(struct fit *t) {
    struct net *net = NULL;
    struct plan *plan = NULL;
    if (!t->job->use.plan_text || t->requested->cut.slices < 2) return 0;
    const err e = initial_plan(t, &net, &plan);
    if (e >= 0) {
        t->f->spec.cut.course = netplan(plan)->course;
        t->f->slices->watch.turns = netplan(plan)->turns;
        t->f->slices->watch.planned = true;
    }
    plan_free(plan);
    mem_free(net);
    return e;
}

err slices_plan(const struct fit *t, struct str *out) {
    struct net *net = NULL;
    struct plan *plan = NULL;
    str_free(out);
    if (t->f->slices->watch.turns.n == 0) {
        plan_print(t->step.engine.plan, t->step.net, out);
        return str_ok(out);
    }
    err e = initial_plan(t, &net, &plan);
    if (e >= 0) {
        netplan(plan)->turns = t->f->slices->watch.turns;
        plan_print(plan, net, out);
        e = str_ok(out);
    }
    plan_free(plan);
    mem_free(net);
    return e;
}
