/* cut.h - a case of bench_slices: one long series, whole or in slices of time, bound and ready for steps.
 *
 *     case --cut_bind--> net, plan, workers --cut_load--> PyTorch's weights, x and y as rows of slices --cut_train--> a step */
#ifndef STRETTO_BENCH_CUT_H
#define STRETTO_BENCH_CUT_H

#include "base/arena.h"
#include "step/step.h"

enum { LAYERS = 8, PATHS = 640 };

struct cut {
    i64 T, B, I, H, P, threads, layers;
    i64 stale; /* rounds a step and no more, from ends that were kept (--slice-rounds); 0 = until they fit */
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

i64 cut_steps(const struct cut *c); /* of a slice, the longest */
err cut_request(const struct cut *c, const struct machine *m, struct plan **out); /* its plan on another machine */
err cut_bind(struct cut *c);
err cut_load(struct cut *c, const char *dir);                       /* tensors, x, y: raw f32 files */
err cut_save(const struct cut *c, const f32 *theta, const char *dir); /* .. of theta, or of a gradient, which lies like it */
err cut_train(struct cut *c, f64 rate);
/* Was a step disturbed?  Threads have less of their cores than they could use when other programs do, or when Linux keeps a share
 * of each second for those where we run before them (SCHED_RR).  Such a step is taken again, STEP_TRIES times at most, and the
 * one that had most counts. */
enum { STEP_TRIES = 5 };
#define STEP_SHARE 0.98 /* of its cores that a step should have */
struct watch {
    f64 cpu, wall;
};
struct watch watch_begin(void);
f64 watch_end(const struct watch *w, f64 *seconds); /* cores that were this process's, on average */
/* Milliseconds of a step that moves no weight. */
err cut_timed(struct cut *c, f64 *ms);

#endif
