/* replan.c - see replan.h: reads the spans of training steps, searches again, binds. */
#include "learn/forecast/replan.h"

#include <string.h>

#include "base/mem.h"
#include "learn/forecast/balance.h"
#include "learn/forecast/save.h"
#include "learn/costs.h"
#include "learn/probe.h"
#include "learn/store/run.h"

enum { SETTLES = 5, STEPS = 20, PLANS_MOST = 3 };
#define WORTH 0.05 /* least predicted gain, as a share of a step */

struct replan {
    struct resources use; /* of the training */
    struct arena arena;   /* of the samples */
    struct samples *samples; /* NULL = the plan of now was measured */
    struct plan *next;    /* to bind */
    i32 steps, plans;     /* steps since the plan was bound; plans so far */
    err e;                /* of replan_better */
};

static err watch(struct fit *t) {
    struct replan *r = t->replan;
    arena_free(&r->arena);
    r->arena = (struct arena){0};
    r->steps = 0;
    TRY(samples_new(t->step.engine.plan, &r->arena, &r->samples));
    return 0;
}

err replan_new(struct fit *t) {
    const struct resources *use = &t->job->use;
    replan_free(t);
    const bool chosen = use->parallel && strcmp(use->parallel, "auto") == 0 && !use->plan_text && !use->place;
    if (machine_is_apart(use->ranks ? use->ranks : use->machine)) return 0; /* its times are not those of costs.h */
    if (!chosen || !t->step.costs || use->heal || store_used(use) || t->hogwild) return 0;
    if (t->step.net != &t->f->net || plan_splits_weights(t->step.engine.plan)) return 0;
    NEW(t->replan, 1);
    t->replan->use = *use;
    t->replan->use.costs = t->step.costs;
    return watch(t);
}

void replan_free(struct fit *t) {
    if (!t->replan) return;
    plan_free(t->replan->next);
    arena_free(&t->replan->arena);
    mem_free(t->replan);
    t->replan = NULL;
}

void replan_stepped(struct fit *t, bool finite) {
    struct replan *r = t->replan;
    if (!r || !r->samples || !finite || r->steps >= STEPS) return;
    struct exec *x = step_exec(t->step.engine.exec);
    if (r->steps >= SETTLES) samples_read(r->samples, x, t->step.engine.plan, 0);
    r->steps++;
    if (r->steps == 1) exec_trace(x, true);
    if (r->steps == STEPS) exec_trace(x, t->job->use.trace);
}

/* What the steps of the plan of now took; nothing where some workers had no work and others had. */
static err measured(struct fit *t, struct costs *now) {
    struct replan *r = t->replan;
    const struct plan *p = t->step.engine.plan;
    const bool all = p->ndevice == p->nrank * t->job->use.machine->ndevice;
    struct probe_result got = {0};
    ARENA_NEW(&r->arena, got.seconds, p->ntask + 1);
    samples_end(r->samples, p, &got);
    r->samples = NULL;
    return all || p->ndevice == 1 ? costs_learn(now, p, t->step.net, got.seconds, p->ndevice > 1) : 0;
}

/* Corrects the costs by what rank 0 has measured, on all ranks alike. */
static err correct(struct fit *t) {
    struct replan *r = t->replan;
    struct costs *now;
    NEW(now, 1);
    err e = measured(t, now);
    if (e >= 0 && comm_rank(r->use.comm) == 0) e = costs_keep(&r->use, now);
    e = comm_agree(r->use.comm, "measured steps", e);
    if (e >= 0) e = comm_broadcast(r->use.comm, "costs", now, sizeof *now);
    if (e >= 0) costs_correct(t->step.costs, now);
    mem_free(now);
    return e;
}

/* Sets r->next if it is worth it. */
static err search(struct fit *t) {
    struct replan *r = t->replan;
    struct plan *p = t->step.engine.plan, *best = NULL;
    TRY(correct(t));
    const struct plan_request q = engine_request(t->step.net, &r->use, p->B, t->step.engine.store.optim);
    const f64 before = p->predicted;
    plan_cost(p, t->step.net, q.machine, t->step.costs);
    TRY(plan_make(&q, &best));
    const bool other = strcmp(best->strategy, p->strategy) != 0 && best->predicted < (1 - WORTH) * p->predicted;
    event_note(r->use.events, EVENT_DETAIL, "plan %s: predicted %.3f ms a step, by its first %d steps %.3f ms%s%s", p->strategy,
               1e3 * before, STEPS, 1e3 * p->predicted, other ? "; next plan: " : "", other ? best->strategy : "");
    if (other && !plan_splits_weights(best)) r->next = best;
    else plan_free(best);
    return 0;
}

bool replan_better(struct fit *t) {
    struct replan *r = t->replan;
    if (!r || !r->samples || r->steps < STEPS || r->plans >= PLANS_MOST || balance_moved(t)) return false;
    r->e = search(t);
    return r->e < 0 || r->next;
}

err replan_bind(struct fit *t, struct step **exec) {
    struct replan *r = t->replan;
    struct plan *next = r->next;
    TRY(r->e);
    r->next = NULL;
    r->plans++;
    TRY(engine_rebind(&t->step.engine, &r->use, next));
    exec_rows(step_exec(t->step.engine.exec), &t->step.batch.row0, &t->step.batch.row1);
    *exec = t->step.engine.exec;
    TRY(balance_new(t));
    TRY(saving_shares(t));
    return watch(t);
}
