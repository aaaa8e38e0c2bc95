/* rig.h - a few training steps of a net by a plan, in one process or on ranks as threads, compared with those by another plan. */
#ifndef STRETTO_TESTS_EXEC_RIG_H
#define STRETTO_TESTS_EXEC_RIG_H

#include <pthread.h>

#include "comm/comm.h"
#include "exec/real.h"

enum { RIG_STEPS = 4, RIG_RANKS = 4 };

/* A rank of a training; all of it where there is one. */
struct rig {
    const struct net *net;
    const char *machine, *parallel, *optim; /* optim NULL = adam */
    i32 B, threads, microbatches, grains, passes;
    bool all_forward, accumulate, unclipped;
    const char *place;
    const char *policy; /* of messages; NULL = overlap */
    const char *draw; /* that a failure names; NULL = none */
    struct comm *comm;
    struct machine at;
    struct plan *plan; /* NULL = it is made of the members above */
    struct pool *pool;
    struct store store;
    struct step *x;
    f32 *input[NET_BUFS];
    struct arena arena;
    f64 loss[RIG_STEPS], norm[RIG_STEPS];
    err e;
    struct err_record why;
    pthread_t thread;
};

/* No assertion on threads that are not the test's. */
static inline err rig_train(struct rig *r) {
    struct exec_result out = {0};
    const struct optim *o = optim_find(r->optim ? r->optim : "adam");
    TRY(machine_parse(r->machine, &r->at));
    struct plan_request q = {.net = r->net, .machine = &r->at, .B = r->B, .train = true, .nstate = o->nstate};
    q.parallel = r->parallel;
    q.microbatches = r->microbatches;
    q.all_forward = r->all_forward;
    q.place = r->place;
    q.grains = r->grains;
    q.passes = r->passes;
    if (!r->plan) TRY(plan_make(&q, &r->plan));
    TRY(pool_new(r->threads, &r->pool));
    TRY(store_new(r->net, o, &r->store));
    net_weights_init(r->net, 7, r->store.theta);
    const struct policy *policy = policy_find(r->policy ? r->policy : "overlap");
    TRY(step_bind(r->plan, r->net, kern_best(), r->pool, &r->store, r->comm, policy, &r->x));
    for (i32 i = 0; i < r->net->nbuf; i++)
        if (r->net->buf[i].input) ARENA_NEW(&r->arena, r->input[i], buf_floats(&r->net->buf[i], r->B));
    for (u32 s = 0; s < RIG_STEPS; s++) {
        real_fill(r->net, r->input, r->B, s % 3);
        struct step_args step = real_step(r->input, r->B, s);
        step.accumulate = r->accumulate && s % 2 == 0;
        if (r->unclipped) step.clip = 0;
        TRY(step_run(r->x, &step, &out));
        if (!out.finite) return FAIL(E1, "the loss is no number");
        r->loss[s] = out.loss;
        r->norm[s] = step.accumulate ? 0 : out.norm;
    }
    TRY(step_settle(r->x, &out));
    return exec_gather(step_exec(r->x));
}

static inline void *rig_live(void *self) {
    struct rig *r = self;
    r->e = r->comm ? comm_connect(r->comm) : 0;
    if (r->e >= 0) r->e = rig_train(r);
    if (r->e < 0) r->why = *err_last();
    if (r->e < 0 && r->comm) comm_abort(r->comm);
    return NULL;
}

static inline void rig_free(struct rig *r) {
    step_free(r->x);
    store_free(&r->store);
    pool_free(r->pool);
    plan_free(r->plan);
    arena_free(&r->arena);
    comm_free(r->comm);
}

static inline void rig_differ(const struct rig *a, const char *what, i64 at) {
    fail_msg("%s%s%s on %s with %d workers, batch %d: %s %lld has other bits than that of serial", a->draw ? a->draw : "",
             a->draw ? ": " : "", a->parallel, a->machine, a->threads, a->B, what, (long long)at);
}

static inline void rig_same_floats(const struct rig *a, const char *what, const f32 *x, const f32 *y) {
    for (i64 k = 0; k < a->net->ntheta; k++)
        if (memcmp(&x[k], &y[k], sizeof *x) != 0) rig_differ(a, what, k);
}

/* Losses, norms and weights, and on rank 0, where a gather brings it, the optimiser state. */
static inline void rig_compare(const struct rig *a, const struct rig *serial) {
    static const char *const states[] = {"number of the first optimiser state", "number of the second optimiser state"};
    if (a->e < 0)
        fail_msg("%s%s%s on %s, batch %d: %s", a->draw ? a->draw : "", a->draw ? ": " : "", a->parallel, a->machine, a->B,
                 a->why.text);
    for (i32 s = 0; s < RIG_STEPS; s++) {
        if (a->loss[s] != serial->loss[s]) rig_differ(a, "the loss of step", s);
        if (a->norm[s] != serial->norm[s]) rig_differ(a, "the gradient norm of step", s);
    }
    rig_same_floats(a, "weight", a->store.theta, serial->store.theta);
    for (i32 k = 0; k < a->store.optim->nstate && comm_rank(a->comm) == 0; k++)
        rig_same_floats(a, states[k], a->store.state[k], serial->store.state[k]);
}

static inline void rig_on_ranks(const struct rig *s, const struct rig *like, i32 ranks) {
    static struct rig r[RIG_RANKS];
    struct comm *comm[RIG_RANKS] = {0};
    T_OK(comm_threads(ranks, comm));
    for (i32 k = 0; k < ranks; k++) {
        r[k] = *like;
        r[k].B = s->B;
        r[k].accumulate = s->accumulate;
        r[k].unclipped = s->unclipped;
        r[k].grains = s->grains;
        r[k].net = s->net;
        r[k].comm = comm[k];
        assert_int_equal(pthread_create(&r[k].thread, NULL, rig_live, &r[k]), 0);
    }
    for (i32 k = 0; k < ranks; k++) pthread_join(r[k].thread, NULL);
    for (i32 k = 0; k < ranks; k++) rig_compare(&r[k], s);
    for (i32 k = 0; k < ranks; k++) assert_string_equal(r[k].plan->strategy, like->parallel);
    for (i32 k = 0; k < ranks; k++) rig_free(&r[k]);
}

#endif
