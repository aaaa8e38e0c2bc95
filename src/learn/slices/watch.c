/* watch.c - counts the rounds of time slices after every step, estimates the forget window w of each layer, and reports both.
 *
 *     step --struct chain_trace--> slices_stepped: counts, moving average of w --slices_summary--> turn.c, events of the run
 *     end of training --slices_end--> rounds of the last step for the report; loss in slices against loss of whole windows */
#include "learn/slices/slices.h"
#include "learn/forecast/save.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/slices/solver.h"
#include "model/layer.h"

#define SMOOTH 0.1     /* weight of the newest w in its average */

enum { KEPT_ROUNDS = 16 };

err slices_record_new(struct forecaster *f) { return mem_new((void **)&f->slices, 1, sizeof *f->slices); }

void slices_record_free(struct forecaster *f) {
    if (!f->slices) return;
    for (i32 k = 0; k < WATCH_LAYERS; k++)
        for (i32 back = 0; back < 2; back++) mem_free(f->slices->picture[k].ran[back]);
    mem_free(f->slices);
    f->slices = NULL;
}

void slices_drop(struct fit *t) {
    stale_free(t);
    mem_free(t->slicing->sorted);
    t->slicing->sorted = NULL;
}

bool slices_sliced(const struct fit *t) { return t->f->spec.cut.slices > 1 && t->step.engine.exec; }

/* The op of the k-th chain of the net; -1 = no more. */
static i32 chain_op(const struct net *n, i32 k) {
    for (i32 l = 0; l < n->nop; l++)
        if (op_is_chain(&n->op[l]) && k-- == 0) return l;
    return -1;
}

err slices_watch(struct fit *t) {
    struct slice_watch *w = &t->f->slices->watch;
    mem_free(t->slicing->sorted);
    t->slicing->sorted = NULL;
    w->slices = t->f->spec.cut.slices;
    w->nlayer = 0;
    TRY(stale_new(t));
    if (!slices_sliced(t)) return 0;
    while (w->nlayer < WATCH_LAYERS && chain_op(t->step.net, w->nlayer) >= 0) w->nlayer++;
    return mem_new((void **)&t->slicing->sorted, t->step.engine.B, sizeof *t->slicing->sorted);
}

static void count(struct chain_count *c, const struct chain_trace *tr) {
    c->steps++;
    c->rounds += tr->rounds;
    c->first += tr->first;
    c->again += tr->again;
    c->serial += tr->serial > 0;
}

/* Forget window w of a step; NaN = unknown.  If slices ran again and none converged before its end, w is at least their length.
 * After more than two rounds, w is at least the mean number of steps rerun.  given: slices whose initial state is given. */
static f64 forgets(const struct chain_trace *tr, i32 steps, i32 given, i32 *sorted) {
    const i32 w = chain_forgets(tr, sorted);
    const f64 found = w >= 0 ? w : tr->rounds > 1 ? steps : (f64)NAN;
    return tr->rounds > 2 ? dmax(found, (f64)tr->again / imax(1, tr->nslice - given)) : found;
}

void slices_stepped(void *fit, bool finite) {
    struct fit *t = fit;
    struct slice_watch *w = &t->f->slices->watch;
    if (!slices_sliced(t)) return;
    stale_after(t, finite);
    if (stale_step(t)) return; /* a fixed number of rounds does not show w */
    for (i32 k = 0; k < w->nlayer; k++) {
        struct watched *l = &w->layer[k];
        i32 op = chain_op(t->step.net, k);
        for (i32 back = 0; back < 2; back++) {
            const struct chain_trace *tr = step_chain(t->step.engine.exec, op, back == 1);
            if (!tr) continue;
            count(&l->now[back], tr);
            count(&l->all[back], tr);
            f64 now = back ? (f64)NAN : forgets(tr, t->step.net->op[op].T, t->step.engine.B / w->slices, t->slicing->sorted);
            if (!isnan(now)) l->w = l->w > 0 ? (1 - SMOOTH) * l->w + SMOOTH * now : now;
        }
    }
}

struct slice_summary slices_summary(const struct slice_watch *w) {
    struct slice_summary s = {0};
    i64 first = 0, again = 0, of[2] = {0}, more[2] = {0};
    for (i32 k = 0; k < w->nlayer; k++) {
        const struct watched *l = &w->layer[k];
        for (i32 back = 0; back < 2; back++) {
            of[back] += l->now[back].first;
            more[back] += l->now[back].again;
            s.serial = lmax(s.serial, l->now[back].serial);
        }
        const struct chain_count *c = &l->now[0];
        if (c->steps == 0) continue;
        s.steps = c->steps;
        s.rounds = dmax(s.rounds, (f64)c->rounds / (f64)c->steps);
        s.again = dmax(s.again, (f64)c->again / (f64)lmax(1, c->first));
        s.w = dmax(s.w, l->w);
    }
    for (i32 back = 0; back < 2; back++) {
        first += of[back];
        again += more[back];
        s.way[back] = (f64)more[back] / (f64)lmax(1, of[back]);
    }
    s.useful = first > 0 ? (f64)first / (f64)(first + again) : 1;
    return s;
}

static bool counted(const struct chain_count c[2]) {
    bool good = true;
    for (i32 back = 0; back < 2; back++) {
        const i64 all[] = {c[back].steps, c[back].rounds, c[back].first, c[back].again, c[back].serial};
        for (size_t i = 0; i < COUNT(all); i++) good = good && all[i] >= 0 && all[i] < INT64_MAX / 2;
    }
    return good;
}

static bool is_flag(const bool *p) {
    u8 byte;
    memcpy(&byte, p, 1); /* reading an invalid bool is undefined behaviour */
    return byte <= 1;
}

bool slices_sound(const struct slice_watch *w, i32 slices, i32 steps) {
    const struct slice_history *m = &w->history;
    const i32 counts[] = {m->looks, m->agreed, m->whole, m->tried, m->wait, m->waits};
    bool good = w->slices == slices && w->nlayer >= 0 && w->nlayer <= WATCH_LAYERS && is_flag(&w->planned) && is_flag(&m->rose);
    good = good && w->turns.n >= 0 && w->turns.n <= TURNS_MOST;
    for (size_t i = 0; i < COUNT(counts); i++) good = good && counts[i] >= 0 && counts[i] < INT32_MAX / 2;
    for (i32 k = 0; good && k < w->nlayer; k++) good = counted(w->layer[k].now) && counted(w->layer[k].all);
    for (i32 i = 0; good && i < w->turns.n; i++) {
        const struct plan_turn *a = &w->turns.at[i];
        good = a->step >= 0 && a->member >= 0 && a->slices >= 1 && a->slices <= steps && a->rank >= 0 && a->rank <= SLICE_RANKS;
    }
    return good;
}

void slices_annotate(void *fit, struct event *e) {
    const struct fit *t = fit;
    const struct slice_watch *w = &t->f->slices->watch;
    struct slice_summary s = slices_summary(w);
    if (!slices_sliced(t) || s.steps == 0) return;
    e->slices = w->slices;
    e->rounds = s.rounds;
    e->forgets = s.w;
    e->useful = s.useful;
    e->serial = s.serial;
}

void slices_place(const struct forecast_spec *spec, i32 B, const char *found, char where[240]) {
    const char *row = strstr(found, ": row "), *step = row ? strstr(row, ", step ") : NULL;
    snprintf(where, 240, "%s", found);
    if (spec->cut.slices < 2 || !step) return;
    i32 r = (i32)strtol(row + 6, NULL, 10), t = (i32)strtol(step + 7, NULL, 10), W = imax(1, B / spec->cut.slices);
    const struct slice_place at = forecast_slice(forecast_steps(spec), spec->cut.slices, B, r);
    if (strstr(found, ".reverse\"") || strstr(found, "\"turn.")) t = at.steps - 1 - t; /* reversed layers (net.c) */
    snprintf(where, 240, "%.*s: window %d, slice %d of %d, step %d of the window", (int)(row - found), found, r % W, r / W,
             spec->cut.slices, at.from + t);
}

void slices_nonfinite(void *fit, char where[240]) {
    const struct fit *t = fit;
    char found[160];
    where[0] = 0;
    if (t->step.engine.exec && step_nonfinite(t->step.engine.exec, found))
        slices_place(&t->f->spec, t->step.engine.B, found, where);
}

/* --- after training --- */

void slices_batcher(struct batcher *to, const struct batcher *from) {
    to->set = from->set;
    to->scored = from->scored;
    to->seed = from->seed;
    to->nwin = from->nwin;
}

/* Loss of the last batch with the current weights in P slices, forward only. */
static err loss_over(struct fit *t, i32 P, f64 *loss) {
    struct forecaster *f = t->f;
    struct forecast_spec spec = f->spec;
    struct resources use = resources_sliced(&t->job->use, P > 1 ? "time" : "serial", P, f->spec.cut.course);
    struct engine engine = {0};
    struct batcher b = {0};
    struct net *net;
    i32 nwin, B;
    spec.cut.slices = P;
    use.course.slice_rounds = 0; /* as in the last part of training */
    use.trace = false;
    NEW(net, 1);
    err e = forecast_net(&spec, &f->shape, t->series, net);
    if (e >= 0)
        e = forecast_rows(&spec, forecast_epoch(&spec, t->series, t->job->split.train), forecast_width(&spec, t->series), &nwin,
                          &B);
    if (e >= 0) e = engine_new(net, &use, B, B, NULL, &engine);
    if (e >= 0) e = batcher_new(f, net, &f->shape, t->series, use.kern, B, 1, &b);
    if (e >= 0) {
        b.spec = &spec;
        slices_batcher(&b, &t->step.batch);
        memcpy(engine.store.theta, t->step.engine.store.theta, sizeof(f32) * (size_t)net->ntheta);
        training_fill(&b, lmax(0, t->step.steps * spec.accumulate - 1), 0);
        struct step_args step = {.input = b.slot[0].input, .loss_scale = b.slot[0].present ? 1.f / (f32)b.slot[0].present : 0};
        struct exec_result r = {0};
        e = b.failed < 0 ? b.failed : step_run(engine.forward, &step, &r);
        *loss = r.loss;
    }
    batcher_free(&b);
    engine_free(&engine);
    mem_free(net);
    return e;
}

static err gap(struct fit *t) {
    f64 whole, cut;
    err e = loss_over(t, 1, &whole);
    if (e == 0) e = loss_over(t, t->f->spec.cut.slices, &cut);
    if (e == -E601) { /* too little memory to compare: keep the trained model */
        event_note(t->job->use.events, EVENT_NOTE, "time slices were not compared with whole windows: %s", err_last()->text);
        err_clear();
        return 0;
    }
    TRY(e);
    t->f->slices->gap = whole != 0 ? fabs(cut - whole) / fabs(whole) : fabs(cut);
    event_note(t->job->use.events, EVENT_DETAIL,
               "%d time slices against whole windows: loss of the last batch %.9g against %.9g, relative difference %.1e",
               t->f->spec.cut.slices, cut, whole, t->f->slices->gap);
    return 0;
}

static err picture(struct fit *t, i32 k) {
    i32 op = chain_op(t->step.net, k);
    struct slice_picture *p = &t->f->slices->picture[k];
    memcpy(p->name, t->step.net->op[op].spec.name, sizeof p->name);
    p->steps = t->step.net->op[op].T;
    for (i32 back = 0; back < 2; back++) {
        const struct chain_trace *tr = step_chain(t->step.engine.exec, op, back == 1);
        if (!tr) continue;
        i32 rounds = imin(imin(tr->rounds, tr->nslice), KEPT_ROUNDS);
        mem_free(p->ran[back]);
        p->ran[back] = NULL;
        NEW(p->ran[back], (i64)rounds * tr->nslice);
        memcpy(p->ran[back], tr->ran, sizeof(i32) * (size_t)((i64)rounds * tr->nslice));
        p->nslice = tr->nslice;
        p->rounds[back] = rounds;
        p->gap[back] = tr->scale > 0 ? tr->gap / tr->scale : 0;
    }
    return 0;
}

/* Reports the mean rounds of a layer over the training. */
static void report_layer(const struct fit *t, i32 k) {
    const struct watched *l = &t->f->slices->watch.layer[k];
    const struct chain_count *a = l->all;
    f64 n = (f64)lmax(1, a[0].steps), first = (f64)(a[0].first + a[1].first), again = (f64)(a[0].again + a[1].again);
    event_note(t->job->use.events, EVENT_DETAIL,
               "%s in slices of %d steps: %.1f rounds forward, %.1f backward, w %.0f, %.0f%% of the work was no repetition",
               t->f->slices->picture[k].name, t->f->slices->picture[k].steps, (f64)a[0].rounds / n, (f64)a[1].rounds / n, l->w,
               first > 0 ? 100 * first / (first + again) : 100);
}

err slices_end(struct fit *t) {
    if (!slices_sliced(t) || t->f->slices->watch.nlayer == 0 || t->f->slices->watch.layer[0].all[0].steps == 0) return 0;
    for (i32 k = 0; k < t->f->slices->watch.nlayer; k++) {
        TRY(picture(t, k));
        report_layer(t, k);
    }
    return gap(t);
}
