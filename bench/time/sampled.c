/* sampled.c - see sampled.h: one worker runs the plans of many devices, then the plan for those devices is simulated. */
#include "sampled.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "step/slices/solver.h"
#include "model/layer.h"
#include "step/simulate.h"

enum { SPANS = 4096 };

static err plan_over(const struct sampled *s, i32 devices, struct plan **out) {
    struct machine *m = mem_alloc(sizeof *m);
    char text[32];
    *out = NULL;
    if (!m) return -E601;
    snprintf(text, sizeof text, "cpu*%d", devices);
    err e = machine_parse(text, m);
    if (e == 0) e = cut_request(s->whole, m, out);
    mem_free(m);
    return e;
}

static err add_run(struct sampled *s, const struct cut *as) {
    struct sampled_run *r = &s->run[s->nrun];
    if (s->nrun == SAMPLED_RUNS) return FAIL(E1, "more than %d runs", SAMPLED_RUNS);
    r->as = *as;
    r->seconds = mem_alloc((size_t)SAMPLED_MOST * as->plan->ntask * sizeof *r->seconds);
    s->nrun++;
    return r->seconds ? 0 : -E601;
}

/* Adds the plan for `devices` devices, run on the one worker; skipped if fewer devices have work. */
static err add_apart(struct sampled *s, i32 devices) {
    struct cut as = *s->whole;
    TRY(plan_over(s, devices, &as.plan));
    if (as.plan->ndevice == 1 || (s->nrun > 1 && s->run[s->nrun - 1].as.plan->ndevice == as.plan->ndevice)) {
        plan_free(as.plan);
        return 0;
    }
    TRY(step_bind(as.plan, &s->whole->net, kern_best(), as.pool, &s->whole->store, NULL, NULL, &as.x));
    step_apart(as.x, true);
    return add_run(s, &as);
}

err sampled_new(struct cut *whole, struct cut *serial, struct sampled **out) {
    struct sampled *s = mem_alloc(sizeof *s);
    *out = s;
    if (!s) return -E601;
    if (whole->threads != 1 || serial->threads != 1) return FAIL(E1, "times are sampled on one thread");
    s->whole = whole;
    s->samples = -1;
    TRY(add_run(s, serial));
    for (i32 n = SAMPLED_DEVICES; n > 1; n /= 2) TRY(add_apart(s, n));
    return add_run(s, whole);
}

/* Seconds of the tasks of one step. */
static err trace(struct cut *c, f64 *seconds) {
    static struct task_span span[SPANS];
    f64 most = 0, took;
    exec_trace(step_exec(c->x), true);
    for (i32 k = 0; k < STEP_TRIES && most < STEP_SHARE * (f64)c->threads; k++) {
        const struct watch w = watch_begin();
        TRY(cut_train(c, 0));
        const f64 ours = watch_end(&w, &took);
        const i32 n = ours > most ? exec_spans(step_exec(c->x), span, SPANS) : 0;
        for (i32 i = 0; i < n; i++) seconds[span[i].task] = span[i].t1 - span[i].t0; /* later steps overwrite earlier ones */
        most = dmax(most, ours);
    }
    exec_trace(step_exec(c->x), false);
    return 0;
}

err sampled_step(struct sampled *s) {
    if (s->samples == SAMPLED_MOST) return FAIL(E1, "%d samples are enough", SAMPLED_MOST);
    for (i32 i = 0; i < s->nrun; i++) {
        struct sampled_run *r = &s->run[i];
        TRY(trace(&r->as, r->seconds + (i64)imax(0, s->samples) * r->as.plan->ntask));
    }
    s->samples++;
    return 0;
}

static int ascending(const void *a, const void *b) {
    const f64 x = *(const f64 *)a, y = *(const f64 *)b;
    return (x > y) - (x < y);
}

static void medians(const struct sampled *s, const struct sampled_run *r, f64 *out) {
    f64 sorted[SAMPLED_MOST];
    for (u32 t = 0; t < r->as.plan->ntask; t++) {
        for (i32 i = 0; i < s->samples; i++) sorted[i] = r->seconds[(i64)i * r->as.plan->ntask + t];
        qsort(sorted, (size_t)s->samples, sizeof *sorted, ascending);
        out[t] = sorted[s->samples / 2];
    }
}

static void walks_of(const struct cut *c, struct walks *out) {
    *out = (struct walks){0};
    for (i32 l = 0; l < 2 * c->net.nop; l++) {
        const struct chain_trace *t = step_chain(c->x, l / 2, l % 2 == 1);
        if (t)
            out->op[l / 2][l % 2] = (struct walk){
                .nslice = t->nslice, .rounds = t->rounds, .kept = imin(imin(t->rounds, CHAIN_ROUNDS), t->nslice), .ran = t->ran};
    }
}

static err learn(const struct sampled *s, struct costs *c) {
    for (i32 i = 0; i < s->nrun; i++) {
        const struct sampled_run *r = &s->run[i];
        struct walks w;
        f64 *seconds = mem_alloc((r->as.plan->ntask + 1) * sizeof *seconds);
        if (!seconds) return -E601;
        medians(s, r, seconds);
        walks_of(&r->as, &w);
        err e = costs_learn_walks(c, r->as.plan, &r->as.net, &w, seconds);
        mem_free(seconds);
        TRY(e);
    }
    return 0;
}

err sampled_plan(const struct sampled *s, i32 devices, struct plan **out, u32 *guessed) {
    static struct costs costs;
    struct walks w;
    *out = NULL;
    if (s->samples < 1) return FAIL(E1, "nothing was sampled yet");
    costs.n = 0;
    TRY(learn(s, &costs));
    TRY(plan_over(s, devices, out));
    walks_of(s->whole, &w);
    return plan_simulate(*out, &s->whole->net, &costs, &w, guessed);
}
