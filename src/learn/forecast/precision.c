/* precision.c - chooses `--precision auto`: by the wisdom for the widest recurrent layer of the configured network. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/forecast/resolve.h"
#include "learn/kernels.h"

struct question {
    struct net net;
    struct machine machine;
    struct wisdom wisdom;
    struct plan *plan;
    const struct kern *kern;
    f64 steps;
};

static err prepare(const struct options *o, const struct forecast_spec *spec, const struct series *s, const struct split *split,
                   struct question *q) {
    struct series shape = *s;
    struct window_shape p;
    u32 how;
    shape.nrow = 0; /* the shape has no rows of data */
    TRY(pick_kernel(o, &q->kern, &how));
    TRY(forecast_shape(spec, &shape, 0, &p));
    TRY(forecast_net(spec, &p, &shape, &q->net));
    i64 windows = lmax(1, forecast_epoch(spec, s, split->train));
    i32 nwin, B;
    TRY(forecast_rows(spec, windows, forecast_width(spec, s), &nwin, &B));
    f64 per_epoch = dmax(1, (f64)windows / nwin);
    q->steps = (spec->steps > 0 ? (f64)spec->steps : ceil(spec->epochs * per_epoch)) * spec->accumulate * spec->members;
    TRY(machine_host(opt_is_auto(o, OPT_threads) ? 0 : (i32)o->threads, &q->machine));
    machine_measure(q->kern, &q->machine);
    const struct optim *optim = optim_find(o->optim);
    struct plan_request r = {.net = &q->net,
                             .machine = &q->machine,
                             .B = B,
                             .train = true,
                             .nstate = optim ? optim->nstate : 0,
                             .parallel = o->parallel,
                             .any_slices = true}; /* this net has whole windows */
    TRY(plan_make(&r, &q->plan));
    return wisdom_open(q->machine.cpu, &q->wisdom);
}

/* The recurrent op with the most work; -1 = none that bf16 could do. */
static i32 widest(const struct question *q) {
    i32 best = -1;
    for (i32 l = 0; l < q->net.nop; l++) {
        const struct op *op = &q->net.op[l];
        if (!op_has_how(op) || !cell_at(q->kern, op->spec.cell, PREC_BF16)) continue;
        if (best < 0 || (i64)op->F * (op->F + op->I) > (i64)q->net.op[best].F * (q->net.op[best].F + q->net.op[best].I)) best = l;
    }
    return best;
}

static err ask(struct question *q, enum precision *out, char *why, size_t size) {
    const struct tune_entry *e;
    i32 l = widest(q);
    if (l < 0) {
        snprintf(why, size, "the kernels %s have no bf16 products for this network", q->kern->name);
        return 0;
    }
    struct tune_shape s = engine_tune_shape(q->plan, &q->net, l);
    TRY(tune_precision(&q->wisdom, q->kern, &s, q->plan->predicted * q->steps, out, &e));
    if (!e) {
        snprintf(why, size,
                 q->wisdom.off ? "nothing is measured with STRETTO_WISDOM=off"
                               : "bf16 was not measured for this shape, and the run is too short to do it now");
        return 0;
    }
    char shared[32] = "";
    if (s.members > 1) snprintf(shared, sizeof shared, " shared by %d threads", s.members);
    snprintf(why, size, "%s takes %.3g ms in bf16, %.3g ms in fp32%s (measured%s)", q->net.op[l].spec.name, 1e3 * e->seconds[1],
             1e3 * e->seconds[0], shared, e->fresh ? " now" : " before");
    if (wisdom_save(&q->wisdom) < 0) err_clear(); /* a later run measures it again */
    return 0;
}

err measured_precision(const struct options *o, const struct forecast_spec *spec, const struct series *s,
                       const struct split *split, enum precision *out, char *why, size_t size) {
    struct question *q;
    *out = PREC_F32;
    NEW(q, 1);
    err e = prepare(o, spec, s, split, q);
    if (e >= 0) e = ask(q, out, why, size);
    plan_free(q->plan);
    wisdom_close(&q->wisdom);
    mem_free(q);
    return e;
}
