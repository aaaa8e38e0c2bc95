/* t_crossing.c - ops of one net on different ranks: activations and their gradients are messages, weights keep their bits. */
#include "t.h"

#include <pthread.h>

#include "base/mem.h"
#include "comm/comm.h"
#include "exec/real.h"

enum { STEPS = 6, RANKS = 2, B = 24 };
static struct net net;

struct rank {
    const char *moved; /* op that runs on rank 0 for the rows of all ranks; NULL = none */
    struct comm *comm;
    struct machine machine;
    struct plan *plan;
    struct pool *pool;
    struct store store;
    struct step *step;
    f32 *input[NET_BUFS];
    struct arena arena;
    f64 loss;
    pthread_t thread;
    err e;
};

static err bind(struct rank *r) {
    TRY(machine_parse("host*2(cpu)", &r->machine));
    const struct optim *o = optim_find("adam");
    struct plan_request q = {
        .net = &net, .machine = &r->machine, .B = B, .train = true, .nstate = o->nstate, .parallel = "data_sync"};
    TRY(plan_make(&q, &r->plan));
    for (u32 i = 0; i < r->plan->ntask && r->moved; i++) {
        struct task *t = &r->plan->task[i];
        if ((t->kind == TASK_FWD || t->kind == TASK_BWD) && t->op == net_find_op(&net, r->moved)) t->device = 0;
    }
    u32 bad;
    const char *what = plan_check(r->plan, &net, &bad);
    if (what) return FAIL(E1, "%s moved: %s", r->moved, what);
    TRY(pool_new(1, &r->pool));
    TRY(store_new(&net, o, &r->store));
    net_weights_init(&net, 7, r->store.theta);
    for (i32 i = 0; i < net.nbuf; i++)
        if (net.buf[i].input) ARENA_NEW(&r->arena, r->input[i], buf_floats(&net.buf[i], B));
    return step_bind(r->plan, &net, kern_best(), r->pool, &r->store, r->comm, NULL, &r->step);
}

static err steps(struct rank *r) {
    struct exec_result out = {0};
    TRY(bind(r));
    for (u32 s = 0; s < STEPS; s++) {
        real_fill(&net, r->input, B, s);
        struct step_args a = real_step(r->input, B, s);
        TRY(step_run(r->step, &a, &out));
        TRY(step_settle(r->step, &(struct exec_result){0}));
    }
    r->loss = out.loss;
    return exec_quiet(step_exec(r->step));
}

static void *live(void *self) {
    struct rank *r = self;
    r->e = comm_connect(r->comm);
    if (r->e >= 0) r->e = steps(r);
    if (r->e < 0) comm_abort(r->comm);
    return NULL;
}

static void run(const char *moved, struct rank *r) {
    struct comm *comm[RANKS];
    T_OK(comm_threads(RANKS, comm));
    for (i32 k = 0; k < RANKS; k++) {
        r[k] = (struct rank){.moved = moved, .comm = comm[k]};
        assert_int_equal(pthread_create(&r[k].thread, NULL, live, &r[k]), 0);
    }
    for (i32 k = 0; k < RANKS; k++) pthread_join(r[k].thread, NULL);
    for (i32 k = 0; k < RANKS; k++) T_OK(r[k].e);
}

static void done(struct rank *r) {
    for (i32 k = 0; k < RANKS; k++) {
        step_free(r[k].step);
        store_free(&r[k].store);
        pool_free(r[k].pool);
        plan_free(r[k].plan);
        arena_free(&r[k].arena);
        comm_free(r[k].comm);
    }
}

TEST(activations_cross_ranks_and_weights_keep_their_bits) {
    static const char *const moved[] = {"head", "last", "lstm.1", "lstm.0"};
    static struct rank here[RANKS], there[RANKS];
    nets_short(&net, (struct shape){.T = 5, .I = 3, .H = 40, .w = 5}, CELL_LSTM, "loss_mse");
    run(NULL, here);
    for (size_t i = 0; i < COUNT(moved); i++) {
        if (net_find_op(&net, moved[i]) < 0) fail_msg("no op %s", moved[i]);
        run(moved[i], there);
        for (i32 k = 0; k < RANKS; k++) {
            assert_true(there[k].loss == here[k].loss);
            assert_memory_equal(there[k].store.theta, here[k].store.theta, (size_t)net.ntheta * sizeof(f32));
        }
        done(there);
    }
    done(here);
}

T_MAIN(cmocka_unit_test(activations_cross_ranks_and_weights_keep_their_bits))
