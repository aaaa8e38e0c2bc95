/* cut.h - a case of bench_slices: one long series, whole or in time slices, bound and ready to run steps.
 *
 *     case --cut_bind--> net, plan, workers --cut_load--> PyTorch's weights, x and y as rows of slices --cut_train--> a step */
#ifndef STRETTO_BENCH_TIME_CUT_H
#define STRETTO_BENCH_TIME_CUT_H

#include "base/arena.h"
#include "step/step.h"

enum { LAYERS = 8, PATHS = 640 };

struct cut {
    i64 T, B, I, H, P, threads, layers;
    i64 stale; /* fixed rounds per step from stored final states (--slice-rounds); 0 = until converged */
    f64 tol;
    enum precision prec;
    struct net net;
    struct machine machine;
    struct plan *plan;
    struct pool *pool;
    struct store store;
    struct step *x;
    f32 *input[NET_BUFS];
    i32 in, target, lstm[LAYERS];
    struct arena arena;
    f64 loss;
    u32 step;
};

i64 cut_steps(const struct cut *c); /* steps of the longest slice */
err cut_request(const struct cut *c, const struct machine *m, struct plan **out); /* its plan on another machine */
err cut_bind(struct cut *c);
err cut_load(struct cut *c, const char *dir);                       /* tensors, x, y: raw f32 files */
err cut_save(const struct cut *c, const f32 *theta, const char *dir); /* .. of theta, or of a gradient, which lies like it */
err cut_train(struct cut *c, f64 rate);
/* Detects disturbed steps: threads get less processor time than they could use if other programs run, or if Linux reserves part
 * of each second (SCHED_RR). Such a step is repeated, at most STEP_TRIES times, and the least disturbed one counts. */
enum { STEP_TRIES = 5 };
#define STEP_SHARE 0.98 /* required fraction of its cores */
struct watch {
    f64 cpu, wall;
};
struct watch watch_begin(void);
f64 watch_end(const struct watch *w, f64 *seconds); /* average number of cores that this process had */
/* Milliseconds of a step with learning rate 0. */
err cut_timed(struct cut *c, f64 *ms);

#endif
