/* probe.h - runs steps of a plan on random data and measures its tasks.
 *
 *     plan --bind--> 2 steps to warm up, then steps whose spans are read --quartiles--> seconds of tasks, waits */
#ifndef STRETTO_LEARN_PROBE_H
#define STRETTO_LEARN_PROBE_H

#include "base/pool.h"
#include "model/optim/optim.h"
#include "step/costs.h"

struct probe {
    const struct net *net;
    const struct kern *kern;
    const struct optim *optim;
    i32 B;
    f64 most; /* seconds that the steps of one plan may take together */
};

struct probe_result {
    f64 *seconds; /* [ntask] of the caller; 0 = not measured */
    f64 step;     /* of a step */
    struct plan_waits waits;
    f64 gap;      /* between two tasks of a worker that waits for no other */
    bool disturbed; /* other programs used the cores all the time */
};

/* What is read of the spans of several steps. */
struct samples;
struct exec;
err samples_new(const struct plan *p, struct arena *a, struct samples **out); /* in the arena; E601 */
/* The last step, which took so long (0 = not known); the exec traces.  False, without effect: there are enough, or a worker has
 * more tasks than the trace keeps. */
bool samples_read(struct samples *s, const struct exec *x, const struct plan *p, f64 took);
void samples_end(struct samples *s, const struct plan *p, struct probe_result *out);

/* Inputs of a training step: numbers of a normal distribution, categories at random, whole lengths.  In the arena; E601.  Not for
 * nets with time slices, whose inputs link rows. */
err probe_inputs(const struct net *n, i32 B, struct arena *a, f32 **input);

/* Runs a training plan of the net on the workers of a pool, with weights of its own.  E601. */
err probe_plan(const struct probe *of, const struct plan *p, struct pool *pool, struct probe_result *out);

#endif
