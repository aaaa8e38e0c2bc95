/* rig.h - a rig is the object under measurement: recurrent layers on bare kernels, layers of a model, or a whole training step.
 *
 *     rig_new(spec) -> rig_load(files) -> rig_step ... -> rig_dump(files) -> rig_free
 *
 * All kinds implement one small table of functions, so bench_kern.c and serve.c do not distinguish them. */
#ifndef STRETTO_BENCH_KERN_RIG_H
#define STRETTO_BENCH_KERN_RIG_H

#include "base/pool.h"
#include "kern/kern.h"

enum { RIG_LAYERS = 8, RIG_THREADS = TEAM_MAX };

/* The workload. Keys as in the commands of --serve: "cell=lstm T=100 B=32 I=8 H=64 layers=1 dirs=1 ...". */
struct spec {
    enum cell_kind cell;
    enum precision prec;
    const struct kern *kern;
    i32 T, B, I, H, layers, dirs, threads, slice;
    bool ragged;  /* row lengths uniform over 1..T, longest first */
    bool stepped; /* forward one step per call, as in a decoder */
    bool team;    /* threads split units instead of rows */
    bool step;    /* full training step: layers + linear head + MSE + Adam */
    bool layer;   /* the layers of src/model instead of bare kernels, without head */
    bool dx;      /* gradient of the input too */
    bool phases;  /* time each phase */
    u32 how;
    i32 proj; /* projection of h, 0 = none */
};

struct rig {
    struct spec spec;
    f64 flop;        /* useful work of a step */
    f64 phase[4];    /* seconds of thread 0: prep, forward, backward, dW; with spec.phases */
    const char *why; /* reason why this cannot run here (rig_new returned no error): "" = it can */
    void (*step)(struct rig *r);
    err (*load)(struct rig *r, const char *dir); /* weights, x, dy from raw f32 files; NULL dir = random */
    err (*dump)(struct rig *r, const char *dir); /* y, gradients */
    void (*free)(struct rig *r);
};

err rig_new(const struct spec *s, struct pool *pool, struct rig **out);
void rig_free(struct rig *r); /* NULL is allowed */

/* The kinds (rig_cell.c, and in bench_step rig_layer.c, rig_step.c). */
err cell_rig_new(const struct spec *s, struct pool *pool, struct rig **out);
err layer_rig_new(const struct spec *s, struct pool *pool, struct rig **out);
err step_rig_new(const struct spec *s, struct pool *pool, struct rig **out);

/* rig.c: raw f32 files dir/name.f32. */
err raw_read(const char *dir, const char *name, i64 n, f32 *out);
err raw_write(const char *dir, const char *name, i64 n, const f32 *v);
/* rig_layer.c: reads every canonical tensor of a net from its file into theta; or, if `from` is given, writes it from a vector
 * like theta to ours.NAME. Omits the prefix `lstm.` if the net has no op "head". */
struct net;
err net_files(const struct net *n, const char *dir, f32 *theta, const f32 *from);
err rows_file(const char *dir, const char *name, i64 rows, i32 n, f32 *to);
void raw_draw(i64 n, f32 scale, f32 *out); /* uniform in +-scale/2 */

#endif
