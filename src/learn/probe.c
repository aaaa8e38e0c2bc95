/* probe.c - see probe.h: binds a plan to weights of its own, traces some steps, takes lower quartiles: another program makes a
 * task longer, none makes it shorter. */
#include "learn/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "model/layer.h"
#include "step/step.h"

enum { WARM = 2, SAMPLES_LEAST = 3, SAMPLES = 15, SEEN_TASKS = 1024 };
#define WARM_S 0.02   /* the system spreads new threads over the cores in this time */
#define CORES_HAD 0.9 /* of the step, by each worker on average */
#define PATIENCE 4    /* times the time for the steps, for undisturbed ones */

/* What ids of an input mean: categories of the op that reads it, or lengths. */
static i32 id_of(const struct net *n, i32 buf, u64 at) {
    for (i32 l = 0; l < n->nop; l++)
        for (i32 k = 0; k < NET_IN; k++) {
            const struct op *op = &n->op[l];
            if (op->spec.in[k] != buf) continue;
            return op->spec.vocab > 0 ? (i32)(rng_uniform(1, RNG_TEST, (u32)buf, at) * (f32)op->spec.vocab) : op->T;
        }
    return 0;
}

err probe_inputs(const struct net *n, i32 B, struct arena *a, f32 **input) {
    for (i32 i = 0; i < n->nbuf; i++) {
        const struct buf *b = &n->buf[i];
        const i64 count = buf_floats(b, B), fp = buf_fp(b);
        if (!b->input) continue;
        ARENA_NEW(a, input[i], count);
        i32 *ids = (i32 *)(void *)input[i];
        for (i64 k = 0; k < count; k++) {
            if (b->ids) ids[k] = id_of(n, i, (u64)k);
            else if (k % fp < b->F) input[i][k] = (f32)rng_normal(1, RNG_TEST, (u32)i, (u64)k);
        }
    }
    return 0;
}

static int ascending(const void *a, const void *b) {
    const f64 x = *(const f64 *)a, y = *(const f64 *)b;
    return (x > y) - (x < y);
}

static f64 quartile(f64 *v, i32 n) {
    qsort(v, (size_t)n, sizeof *v, ascending);
    return v[n / 4];
}

/* What is read of the spans of each step. */
struct samples {
    i32 n, disturbed;
    f64 *task;                             /* [ntask][SAMPLES] */
    f64 step[SAMPLES], around[SAMPLES], wake[SAMPLES], seen[SAMPLES], gap[SAMPLES];
    struct plan_span *last;                /* [ntask] spans of the step (exec_step_spans) */
    f64 *free_at;                          /* [ndevice] scratch of seen_of */
};

/* Until the first task of each other worker, if it waits for none. */
static f64 wake_of(const struct plan *p, const struct plan_span *last, f64 begin) {
    f64 sum = 0;
    i32 n = 0;
    for (i32 d = 1; d < p->ndevice; d++)
        for (u32 i = 0; i < p->ntask; i++) {
            if ((i32)p->task[i].device != d) continue;
            if (p->task[i].ndep == 0 && last[i].t1 > 0) sum += dmax(0, last[i].t0 - begin), n++;
            break;
        }
    return n > 0 ? sum / n : 0;
}

/* From the end of the last task that a task needs, which another device ran, until the task begins: the median of those before
 * which their device had nothing else to do. */
static f64 seen_of(const struct plan *p, const struct plan_span *last, f64 *free_at) {
    f64 all[SEEN_TASKS];
    i32 n = 0;
    memset(free_at, 0, (size_t)p->ndevice * sizeof *free_at);
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        f64 need = 0;
        if (last[i].t1 <= 0) continue;
        for (u32 k = t->dep0; k < t->dep0 + t->ndep; k++)
            if (p->task[p->dep[k]].device != t->device) need = dmax(need, last[p->dep[k]].t1);
        if (need > free_at[t->device] && last[i].t0 > need && n < SEEN_TASKS) all[n++] = last[i].t0 - need;
        free_at[t->device] = last[i].t1;
    }
    qsort(all, (size_t)n, sizeof *all, ascending);
    return n > 0 ? all[n / 2] : 0;
}

/* Of a plan that one worker runs: what is left of the time between the first and the last task. */
static f64 gap_of(const struct plan *p, const struct plan_span *last, f64 all) {
    i32 n = 0;
    for (u32 i = 0; i < p->ntask; i++) all -= last[i].t1 - last[i].t0, n += last[i].t1 > 0;
    return n > 1 ? dmax(0, all) / (n - 1) : 0;
}

bool samples_read(struct samples *to, const struct exec *x, const struct plan *p, f64 took) {
    f64 begin = 0, end = 0;
    if (to->n == SAMPLES || !exec_step_spans(x, to->last)) return false;
    for (u32 i = 0; i < p->ntask; i++) end = dmax(end, to->last[i].t1);
    begin = end;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct plan_span *t = &to->last[i];
        if (t->t1 > 0) begin = dmin(begin, t->t0);
        to->task[(i64)i * SAMPLES + to->n] = t->t1 - t->t0;
    }
    to->step[to->n] = took;
    to->around[to->n] = dmax(0, took - (end - begin));
    to->wake[to->n] = wake_of(p, to->last, begin);
    to->seen[to->n] = seen_of(p, to->last, to->free_at);
    to->gap[to->n] = gap_of(p, to->last, end - begin);
    to->n++;
    return true;
}

/* Did all workers have a core for themselves?  They spin where they wait. */
static bool undisturbed(const struct plan *p, f64 cpu, f64 took) { return cpu >= CORES_HAD * p->ndevice * took; }

static err sample(const struct probe *of, struct step *s, const struct plan *p, f32 *const *input, i32 workers,
                  struct samples *to) {
    struct step_args step = {.input = input, .loss_scale = 1.f / (f32)of->B, .seed = 1, .clip = 1,
                             .hyper = {.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .grad_scale = 1, .step = 1}};
    struct exec_result r;
    const f64 begin = clock_now();
    for (i32 k = 0; k < WARM || (workers > 1 && clock_now() < begin + WARM_S); k++) TRY(step_run(s, &step, &r));
    exec_trace(step_exec(s), true);
    const f64 until = clock_now() + of->most, last = until + PATIENCE * of->most;
    while (to->n < SAMPLES_LEAST || (to->n < SAMPLES && clock_now() < until)) {
        const f64 t0 = clock_now(), cpu = clock_cpu();
        TRY(step_run(s, &step, &r));
        const f64 t1 = clock_now();
        const bool quiet = workers < p->ndevice || undisturbed(p, clock_cpu() - cpu, t1 - t0);
        if ((quiet || t1 > last) && !samples_read(to, step_exec(s), p, t1 - t0)) return 0;
        to->disturbed += !quiet && t1 > last;
    }
    return 0;
}

void samples_end(struct samples *s, const struct plan *p, struct probe_result *out) {
    if (s->n == 0) return;
    for (u32 i = 0; i < p->ntask; i++) out->seconds[i] = quartile(s->task + (i64)i * SAMPLES, s->n);
    out->step = quartile(s->step, s->n);
    out->waits = (struct plan_waits){.around = quartile(s->around, s->n), .wake = quartile(s->wake, s->n),
                                     .seen = quartile(s->seen, s->n)};
    out->gap = quartile(s->gap, s->n);
    out->disturbed = 2 * s->disturbed > s->n;
}

err samples_new(const struct plan *p, struct arena *a, struct samples **out) {
    struct samples *s;
    ARENA_NEW(a, s, 1);
    ARENA_NEW(a, s->task, (i64)p->ntask * SAMPLES);
    ARENA_NEW(a, s->last, p->ntask + 1);
    ARENA_NEW(a, s->free_at, p->ndevice);
    *out = s;
    return 0;
}

static err run(const struct probe *of, const struct plan *p, struct step *s, i32 workers, struct arena *a,
               struct probe_result *out) {
    f32 *input[NET_BUFS] = {0};
    struct samples *to;
    TRY(probe_inputs(of->net, of->B, a, input));
    TRY(samples_new(p, a, &to));
    TRY(sample(of, s, p, input, workers, to));
    samples_end(to, p, out);
    return 0;
}

err probe_plan(const struct probe *of, const struct plan *p, struct pool *pool, struct probe_result *out) {
    struct store store = {0};
    struct step *s = NULL;
    struct arena a = {0};
    err e = store_new(of->net, of->optim, &store);
    if (e >= 0) net_weights_init(of->net, 1, store.theta);
    if (e >= 0) e = step_bind(p, of->net, of->kern, pool, &store, NULL, NULL, &s);
    if (e >= 0) e = run(of, p, s, pool_size(pool), &a, out);
    arena_free(&a);
    step_free(s);
    store_free(&store);
    return e;
}
