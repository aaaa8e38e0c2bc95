/* prepare.c - what training and validation run with: net, plan, buffers, batches; made, and taken down again. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/costs.h"
#include "learn/forecast/balance.h"
#include "learn/forecast/replan.h"
#include "learn/forecast/save.h"
#include "learn/slices/slices.h"
#include "learn/store/hogwild.h"
#include "learn/store/run.h"

/* What training will hold, before it begins: the series once, and what the plans and the batches say (tests/api/t_memory.c). */
static void state_memory(const struct fit *t) {
    const struct series *s = t->series;
    i64 row = 4 * (i64)(s->ncol + s->ncat) + (s->time ? 8 : 0) + (s->line ? 8 : 0), bytes = row * s->nrow;
    event_note(t->job->use.events, EVENT_DETAIL, "memory: series %.2f MiB + plan %.2f MiB", (f64)bytes / 1048576.0,
               (f64)t->f->model.planned_bytes / 1048576.0);
}

err training_net(struct fit *t) {
    struct forecaster *f = t->f;
    struct forecast_spec whole = f->spec;
    whole.cut.slices = 1;
    TRY(forecast_net(&whole, &f->shape, t->series, &f->net));
    t->step.net = &f->net;
    const bool carries = store_carries(t); /* from tile to tile */
    if (f->spec.cut.slices < 2 && !carries) return 0;
    if (!t->step.cut) NEW(t->step.cut, 1);
    TRY((carries ? forecast_stream_net : forecast_net)(&f->spec, &f->shape, t->series, t->step.cut));
    t->step.net = t->step.cut;
    bool same = t->step.cut->nop == f->net.nop && t->step.cut->ntheta == f->net.ntheta;
    for (i32 l = 0; l < f->net.nop && same; l++) same = t->step.cut->op[l].theta0 == f->net.op[l].theta0;
    return same ? 0 : FAIL(E1, "time slices have other parameters than whole windows");
}

/* A wish for few devices, or few tiles of slices, may leave ranks without a row. */
static void tell_idle(const struct fit *t) {
    const struct plan *p = t->step.engine.plan;
    const i32 size = comm_size(t->job->use.comm);
    bool works[COMM_RANKS] = {0};
    i32 idle = size;
    for (u32 i = 0; size > 1 && i < p->ntask; i++) {
        bool *at = &works[p->place[p->task[i].device].rank];
        idle -= !*at;
        *at = true;
    }
    if (size > 1 && idle > 0 && !store_used(&t->job->use))
        event_note(t->job->use.events, EVENT_WARNING, "%d of %d ranks have nothing to do in a step, which %s deals out to %d "
                   "device%s", idle, size, p->strategy, p->ndevice, p->ndevice > 1 ? "s" : "");
}

/* Parts are of one size: where there are fewer windows than --batch, they may not come out even. */
static void tell_parts(const struct fit *t, i32 whole, i32 part) {
    const i32 parts = t->f->spec.accumulate, taken = parts * part;
    if (taken == whole) return;
    event_note(t->job->use.events, EVENT_WARNING,
               "--accumulate %d: a step takes %d windows, without it %d (--batch %d --accumulate %d takes as many as --batch %d)",
               parts, taken, whole, imin(taken, whole), imin(parts, whole), imin(taken, whole));
}

/* Another engine validates: the one that trains has slices of windows, or a single thread. */
static bool validates_apart(const struct fit *t) { return t->requested->cut.slices > 1 || t->hogwild; }

/* What validation runs: the stream, the net itself, or the same net over whole windows. */
static err prepare_validation(struct fit *t, i32 rows) {
    const struct forecaster *f = t->f;
    const struct series *x = t->series;
    const struct resources use = resources_whole(&t->job->use);
    if (f->spec.decoder->every_step) return stream_new(f, x, &t->job->use, 0, 1, &t->step.stream);
    if (validates_apart(t)) TRY(engine_new(&f->net, &use, rows, rows, NULL, &t->step.whole));
    return batcher_new(f, &f->net, &f->shape, x, use.kern, rows, 1, &t->step.valid_batch);
}

/* Measured costs for the plans; where ranks wait for one that heals, those that are known. */
static err prepare_costs(struct fit *t, i32 B, const struct optim *optim, struct resources *use) {
    if (!t->step.costs) NEW(t->step.costs, 1);
    TRY(costs_open(t->step.net, use, B, optim, t->left ? 0 : COSTS_TRAINING, t->step.costs));
    if (t->step.costs->n == 0) {
        mem_free(t->step.costs);
        t->step.costs = NULL;
    }
    use->costs = t->step.costs;
    return 0;
}

/* Where the cuts that were asked for need more ranks than are left, any other exact ones give the same bits. */
static err new_engine(struct fit *t, struct resources *use, i32 B, i32 valid, const struct optim *optim) {
    err e = engine_new(t->step.net, use, B, valid, optim, &t->step.engine);
    if (e != -E401 || !t->left) return e;
    err_clear();
    use->parallel = t->own.use.parallel = "auto";
    use->place = t->own.use.place = NULL;
    e = engine_new(t->step.net, use, B, valid, optim, &t->step.engine);
    if (e >= 0)
        event_note(use->events, EVENT_WARNING, "--parallel does not fit the ranks that are left: going on with %s, same bits",
                   t->step.engine.plan->strategy);
    return e;
}

err training_prepare(struct fit *t) {
    struct forecaster *f = t->f;
    const struct series *x = t->series;
    const struct forecast_spec *s = &f->spec;
    TRY(training_net(t));
    i64 n = forecast_epoch(s, x, t->job->split.train), nvalid = window_origins(&t->set.valid) * x->ntarget;
    i32 nwin, B, width = forecast_width(s, x), rows = width * imax(1, s->cut.slices); /* of a window */
    TRY(forecast_rows(s, n, width, &nwin, &B));
    const struct optim *optim = optim_find(store_engine_optim(t));
    if (!optim) return FAIL(E103, "there is no optimiser \"%s\"", store_engine_optim(t));
    f64 per_epoch = dmax(1, (f64)n / ((f64)(B / rows) * s->accumulate));
    t->step.steps = s->steps > 0 ? s->steps : (i64)ceil(s->epochs * per_epoch);
    const struct forecast_spec *first = t->requested; /* of a run that is resumed */
    const bool turned = s->cut.slices != first->cut.slices || s->slice_rank != first->slice_rank;
    const char *parallel = turned ? slices_parallel(&t->job->use, s) : NULL;
    struct resources use = resources_sliced(&t->job->use, parallel, s->cut.slices, s->cut.course);
    use.steps = t->left ? 0 : t->step.steps * s->accumulate * s->members; /* healing: nobody measures kernels while others wait */
    tell_parts(t, nwin, B / rows);
    TRY(store_split(t, rows, &B, &use));
    TRY(prepare_costs(t, B, optim, &use));
    const i32 valid = engine_forward_rows(&f->net, (i32)lmin(imax(B / imax(1, s->cut.slices), 256), lmax(1, nvalid)));
    TRY(new_engine(t, &use, B, s->decoder->every_step || validates_apart(t) ? 0 : valid, optim));
    if (s->cut.slices > 1) f->spec.cut.course = netplan(t->step.engine.plan)->course; /* a saved plan has its own */
    TRY(batcher_new(f, t->step.net, &f->shape, x, t->job->use.kern, B, PREFETCH_SLOTS, &t->step.batch));
    tell_idle(t);
    exec_rows(step_exec(t->step.engine.exec), &t->step.batch.row0, &t->step.batch.row1);
    TRY(balance_new(t));
    if (s->decoder->every_step || (f->base && f->base->trees)) TRY(batch_bases(&t->step.batch, t->job->split.validation));
    TRY(prepare_validation(t, valid));
    TRY(batch_draw_from(&t->step.batch, t->set.train));
    t->step.batch.scored = (struct window_set){.first = 1, .end = INT64_MAX, .stride = 1}; /* tiles lie in training rows */
    t->step.batch.nwin = B / rows;
    t->step.batch.spans = store_used(&t->job->use) && t->job->use.store.by_time ? store_parts(t) : 0;
    TRY(store_prepare(t));
    TRY(slices_watch(t));
    TRY(saving_prepare(t));
    TRY(saving_foresee(t));
    TRY(replan_new(t));
    const i64 copies = 2 + optim->nstate; /* best, roll-back target with its state; besides, the members that are done */
    f->model.planned_bytes = engine_planned_bytes(&t->step.engine) + engine_planned_bytes(&t->step.whole) + hogwild_bytes(t) +
                       t->step.batch.arena.used + t->step.valid_batch.arena.used +
                       4 * copies * step_held_floats(t->step.engine.exec) + 4 * s->members * t->step.engine.store.ntheta +
                       (t->save.saving ? t->save.saving->room : 0) + (t->step.stream ? stream_bytes(t->step.stream) : 0);
    if (!t->left) state_memory(t);
    t->step.prepared = true;
    return 0;
}

void training_rest(const struct fit *t) {
    const struct engine *e = &t->step.engine;
    if (e->exec) exec_rest(step_exec(e->exec));
    if (e->forward) exec_rest(step_exec(e->forward));
    if (e->store.derived) mem_zero(e->store.derived); /* each step computes what it uses */
}

void training_drop(struct fit *t) {
    saving_free(t->save.saving, comm_rank(t->job->use.comm));
    ckpt_close(t->save.found);
    slices_drop(t);
    balance_free(t);
    replan_free(t);
    store_drop(t);
    engine_free(&t->step.engine);
    engine_free(&t->step.whole);
    batcher_free(&t->step.batch);
    batcher_free(&t->step.valid_batch);
    stream_free(t->step.stream);
    mem_free(t->step.costs);
    t->step.costs = NULL;
    t->save.saving = NULL;
    t->save.found = NULL;
    t->step.batch = t->step.valid_batch = (struct batcher){0};
    t->step.stream = NULL;
    t->step.prepared = false;
}
