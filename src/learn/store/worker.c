/* worker.c - what a worker computes with a ticket: its part of a batch, for one step or several local ones. */
#include <string.h>

#include "base/clock.h"
#include "learn/store/inside.h"

/* Rows of a batch lie in one order over all parts, so batch b of a worker is part b % parts of batch b / parts of all. */
static i64 batch_of(const struct fit *t, const struct pstore_ticket *k, i64 step) { return step * store_parts(t) + k->part; }

/* Gradients of a synchronous round are summed: a cell weighs in each part what it does in the whole batch. */
static f32 loss_scale(struct fit *t, const struct store_run *r, i64 step, i64 present) {
    i64 cells = 0;
    const i32 parts = store_parts(t);
    if (!r->gradients || store_staleness(&r->now) > 0) return present > 0 ? 1.f / (f32)present : 0.f;
    for (i32 p = 0; p < parts; p++) cells += training_cells(&t->step.batch, step * parts + p);
    return cells > 0 ? 1.f / (f32)cells : 0.f;
}

/* STRETTO_FAULT=..:slow(x): sleeps, so that it takes no core from others. */
static void slow_down(const struct store_run *r, i64 step, f64 seconds) {
    if (r->slow <= 1 || step < r->slow_from) return;
    clock_sleep((r->slow - 1) * seconds);
}

static err one_step(struct fit *t, struct store_run *r, const struct pstore_ticket *k, i64 step, struct exec_result *out) {
    const i64 batch = batch_of(t, k, step);
    const struct train_job *j = r->job;
    const f64 t0 = clock_now();
    training_fill(&t->step.batch, batch, 0);
    TRY(batcher_failed(&t->step.batch));
    carry_load(t, r, batch, step);
    const struct batch_slot *slot = &t->step.batch.slot[0];
    struct step_args a = {.input = slot->input,
                          .loss_scale = loss_scale(t, r, step, slot->present),
                          .seed = (u64)j->seed,
                          .step = (u32)batch,
                          .hyper = j->hyper,
                          .clip = j->clip,
                          .hold = r->gradients};
    a.hyper.lr = (f32)train_rate(j, r->state, step);
    a.hyper.step = step + 1;
    TRY(step_run(t->step.engine.exec, &a, out));
    if (!r->gradients) TRY(exec_bring(step_exec(t->step.engine.exec))); /* pushes and pulls are about the host's copy */
    carry_keep(t, r, step);
    slow_down(r, step, clock_now() - t0);
    train_step_took(r->state, clock_now() - t0);
    return 0;
}

/* Without a round whose norm is known, a worker clips its own gradient. */
static void clip_own(struct fit *t, const struct store_run *r, f32 *grad, f64 norm) {
    const f32 factor = (f32)optim_clip(r->job->clip, norm);
    if (store_staleness(&r->now) == 0 || factor >= 1) return;
    for (i64 i = 0; i < t->step.engine.store.ntheta; i++) grad[i] *= factor;
}

static err push_gradient(struct fit *t, struct store_run *r, const struct pstore_ticket *k) {
    struct exec_result out;
    TRY(one_step(t, r, k, r->base + k->round, &out));
    f32 *grad = (f32 *)(uintptr_t)step_grad(t->step.engine.exec);
    TRY(step_failed(t->step.engine.exec));
    clip_own(t, r, grad, out.norm);
    return pstore_give(r->ps, k, &(struct pstore_push){.v = grad, .loss = out.loss, .refused = !out.finite});
}

/* The last ticket of a training may have fewer steps. */
static err local_steps(struct fit *t, struct store_run *r, const struct pstore_ticket *k, f64 *loss, bool *finite) {
    const i64 from = r->base + k->round * r->local, to = lmin(from + r->local, r->state->end);
    *loss = 0;
    *finite = true;
    for (i64 step = from; step < to && *finite; step++) {
        struct exec_result out;
        TRY(one_step(t, r, k, step, &out));
        *loss += out.loss;
        *finite = out.finite;
    }
    *loss /= (f64)lmax(1, to - from);
    return 0;
}

static bool is_finite(const f32 *v, i64 n) {
    f32 sum = 0;
    for (i64 i = 0; i < n; i++) sum += v[i] * 0;
    return sum == 0;
}

static err push_change(struct fit *t, struct store_run *r, const struct pstore_ticket *k) {
    f64 loss;
    bool finite;
    TRY(local_steps(t, r, k, &loss, &finite));
    finite = finite && is_finite(t->step.engine.store.theta, t->step.engine.store.ntheta);
    return pstore_give(r->ps, k, &(struct pstore_push){.loss = loss, .refused = !finite});
}

/* Worker and centre move towards each other by alpha of their distance; then the worker goes on from its own weights.  The push
 * has a buffer of its own, because the pulled weights are still needed: with a codec the next pull adds its change to them, and
 * after the death of a server they are the only copy of its part of the centre. */
static err push_elastic(struct fit *t, struct store_run *r, const struct pstore_ticket *k) {
    f32 *theta = t->step.engine.store.theta;
    const f32 *center = pstore_pulled(r->ps);
    const i64 n = t->step.engine.store.ntheta;
    f64 loss;
    bool finite;
    if (!r->begun)
        memcpy(theta, center, sizeof *theta * (size_t)n);
    else
        memcpy(theta, r->own, sizeof *theta * (size_t)n);
    r->begun = true;
    for (i64 i = 0; i < n; i++) {
        const f32 d = r->alpha * (theta[i] - center[i]);
        theta[i] -= d;
        r->force[i] = -d;
    }
    TRY(pstore_give(r->ps, k, &(struct pstore_push){.v = r->force, .loss = r->last_loss, .more = true}));
    TRY(local_steps(t, r, k, &loss, &finite));
    if (finite && is_finite(theta, n)) memcpy(r->own, theta, sizeof *theta * (size_t)n);
    r->last_loss = loss; /* the push went before the steps: the next one tells their loss */
    return 0;
}

err store_work(struct fit *t, struct store_run *r) {
    struct pstore_ticket k;
    err e;
    while ((e = pstore_take(r->ps, &k)) > 0) {
        if (r->now.policy->own_weights)
            TRY(push_elastic(t, r, &k));
        else if (r->gradients)
            TRY(push_gradient(t, r, &k));
        else
            TRY(push_change(t, r, &k));
    }
    return e;
}
