/* kmeans.h - a toy learner on the engine: Lloyd's k-means (IEEE Trans. Inf. Theory, 1982) as map, merge and update.
 *
 *     map     rows of a micro-batch -> sums and counts of the points nearest to each center      part [K][D + 1], cost
 *     merge   part a += part b
 *     update  center = sum / count
 *
 * It includes no header of model/: threads, ranks, devices and equal bits come with plan/map.h and exec/exec.h. */
#ifndef STRETTO_TESTS_EXEC_KMEANS_H
#define STRETTO_TESTS_EXEC_KMEANS_H

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "comm/comm.h"
#include "exec/policy.h"
#include "plan/map.h"

enum { ROWS = 1000, D = 3, K = 5, STEPS = 8, PART = K * (D + 1) + 1 };
static f32 point[ROWS][D];

struct kmeans {
    const struct plan *plan;
    f32 center[K][D];
    f64 cost; /* of the last step: sum of squared distances */
};

/* Sums and counts of the nearest centers, and their squared distances, of each micro-batch. */
static void map(void *self, const struct kernel_call *c) {
    const struct kmeans *m = self;
    const struct slice *box = &c->task->box;
    for (i32 i = box->b0; i < box->b1; i++) {
        f64 *part = c->mem[map_part(i / m->plan->grain)], best = INFINITY;
        if (i % m->plan->grain == 0) memset(part, 0, PART * sizeof *part);
        i32 nearest = 0;
        for (i32 k = 0; k < K; k++) {
            f64 d2 = 0;
            for (i32 j = 0; j < D; j++) d2 += (f64)(point[i][j] - m->center[k][j]) * (f64)(point[i][j] - m->center[k][j]);
            if (d2 < best) best = d2, nearest = k;
        }
        for (i32 j = 0; j < D; j++) part[nearest * (D + 1) + j] += (f64)point[i][j];
        part[nearest * (D + 1) + D]++;
        part[PART - 1] += best;
    }
}

static void merge(void *self, const struct kernel_call *c) {
    (void)self;
    f64 *a = c->mem[map_part(c->task->node_a)];
    const f64 *b = c->mem[map_part(c->task->node_b)];
    for (i64 i = c->lo; i < c->hi; i++) a[i] += b[i];
}

static void update(void *self, const struct kernel_call *c) {
    struct kmeans *m = self;
    const f64 *sum = c->mem[map_part(0)];
    for (i32 k = 0; k < K; k++)
        for (i32 j = 0; j < D && sum[k * (D + 1) + D] > 0; j++)
            m->center[k][j] = (f32)(sum[k * (D + 1) + j] / sum[k * (D + 1) + D]);
    m->cost = sum[PART - 1];
}

static struct exec_result result(void *self, void *const *mem) {
    (void)mem;
    return (struct exec_result){.loss = ((struct kmeans *)self)->cost, .finite = true};
}

static const struct kernel kernels[MAP_NKERNEL] = {
    [MAP_MAP] = {.name = "map", .run = map, .rows = true, .compute = true},
    [MAP_MERGE] = {.name = "merge", .run = merge, .blocks = true},
    [MAP_UPDATE] = {.name = "update", .run = update, .commits = true},
};

struct run {
    const char *machine, *policy;
    struct comm *comm;
    struct kmeans model;
    f64 seconds; /* of a step on a virtual clock */
    pthread_t thread;
    err e;
};

/* Lloyd's steps from the first K points on; ranks of r->comm train together. */
static err train(struct run *r) {
    struct machine m;
    struct plan *p;
    struct pool *pool;
    struct exec *x;
    struct exec_result out;
    TRY(machine_parse(r->machine, &m));
    const struct map_request q = {.machine = &m,
                                  .rows = ROWS,
                                  .microbatch = 64,
                                  .row_bytes = sizeof *point,
                                  .part = PART,
                                  .model_bytes = sizeof r->model.center,
                                  .element = ELEMENT_F64,
                                  .row_seconds = 1e-6};
    TRY(plan_map(&q, &p));
    memcpy(r->model.center, point, sizeof r->model.center);
    r->model.plan = p;
    TRY(pool_new(m.ndevice / m.nrank, &pool));
    void *lent[MAP_PART0 + ROWS] = {[MAP_ROWS] = point, [MAP_MODEL] = r->model.center};
    const struct exec_job job = {.plan = p,
                                 .pool = pool,
                                 .comm = r->comm,
                                 .lent = lent,
                                 .policy = policy_find(r->policy),
                                 .client = {.kernel = kernels, .nkernel = MAP_NKERNEL, .self = &r->model, .result = result}};
    err e = exec_bind(&job, &x);
    for (u32 s = 0; e >= 0 && s < STEPS; s++) e = exec_step(x, s, false, &out);
    if (e >= 0) e = exec_quiet(x);
    if (e >= 0) r->seconds = exec_virtual_seconds(x);
    if (e >= 0) exec_free(x);
    pool_free(pool);
    plan_free(p);
    return e;
}

#endif
