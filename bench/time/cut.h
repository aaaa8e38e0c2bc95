/* cut.h - a case of bench_slices: one long series, whole or in slices of time, bound and ready for steps.
 *
 *     case --cut_bind--> net, plan, workers --cut_load--> PyTorch's weights, x and y as rows of slices --cut_train--> a step */
#ifndef STRETTO_BENCH_CUT_H
#define STRETTO_BENCH_CUT_H

#include "base/arena.h"
#include "exec/exec.h"

enum { LAYERS = 8, PATHS = 640 };

struct cut {
    i64 T, B, I, H, P, threads, layers;
    f64 tol;
    enum precision prec;
    struct net net;
    struct machine machine;
    struct plan *plan;
    struct pool *pool;
    struct store store;
    struct exec *x;
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

#endif
