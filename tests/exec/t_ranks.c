/* t_ranks.c - ranks step together: 12 steps on 1 to 8 ranks, with threads in each, give the bits of the serial plan; also when
 * every message is late, when gradients are kept from step to step, when nothing is sent before all is computed, or grains move
 * between ranks, and a rank that fails is named to the others.  Updates that are a step late (delay1): those of the rule, on any
 * number of ranks. */
#include "t.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "comm/faulty.h"
#include "exec/real.h"
#include "exec/slices.h"
#include "step/balance.h"
#include "step/sent.h"

enum { STEPS = 12, RANKS = 8 };
static struct net net;

struct job {
    const struct comm_fault *fault;              /* of the messages; NULL = none */
    i32 B, ranks, threads, accumulate, fails_at; /* fails_at: a rank that gives up before its third step, -1 = none */
    const char *optim, *parallel;
    const struct policy *pipe;
    bool dense; /* gradients of the embedding as of anything else */
    bool whole; /* each rank makes all updates */
    i32 looks; /* delay1: after this many steps (0 = never) it is taken down and set up again from what a checkpoint has */
    u32 moves_every; /* steps after which rows are dealt out anew, 0 = never */
};

struct rank {
    const struct job *job;
    struct comm *comm;
    struct machine machine;
    struct plan *plan;
    struct pool *pool;
    struct store store;
    struct step *x;
    f32 *input[NET_BUFS];
    struct arena arena;
    f64 loss, row;
    struct exec_sent sent;
    err e;
    struct err_record why;
    pthread_t thread;
};

/* No assertion on threads that are not the test's: what went wrong is looked at when they are back. */
static err bind(struct rank *r) {
    const struct job *j = r->job;
    char text[48];
    snprintf(text, sizeof text, "host*%d(cpu*%d)", j->ranks, j->threads);
    TRY(machine_parse(text, &r->machine));
    const struct optim *o = optim_find(j->optim);
    struct plan_request q = {.net = &net, .machine = &r->machine, .B = j->B, .train = true, .nstate = o->nstate,
                             .parallel = j->parallel, .dense = j->dense};
    TRY(plan_make(&q, &r->plan));
    if (j->whole) plan_update_everywhere(r->plan);
    TRY(pool_new(j->threads, &r->pool));
    TRY(store_new(&net, o, &r->store));
    net_weights_init(&net, 7, r->store.theta);
    TRY(step_bind(r->plan, &net, kern_best(), r->pool, &r->store, r->comm, j->pipe, &r->x));
    for (i32 i = 0; i < net.nbuf; i++)
        if (net.buf[i].input) ARENA_NEW(&r->arena, r->input[i], buf_floats(&net.buf[i], j->B));
    return 0;
}

/* As a run that is stopped and goes on: weights, state and the weights to come are all that is left of it. */
static err again(struct rank *r) {
    struct step_ahead ahead;
    f32 *theta;
    TRY(step_look_ahead(r->x, &ahead));
    ARENA_NEW(&r->arena, theta, net.ntheta);
    memcpy(theta, ahead.theta, (size_t)net.ntheta * sizeof(f32));
    ahead.theta = theta;
    step_free(r->x);
    r->x = NULL;
    TRY(step_bind(r->plan, &net, kern_best(), r->pool, &r->store, r->comm, r->job->pipe, &r->x));
    step_set_ahead(r->x, &ahead);
    return 0;
}

/* One grain for each device, what is left for the (s % devices)-th: the same on all ranks; weights and state stay. */
static err move(struct rank *r, u32 s) {
    struct plan *next, *old = r->plan;
    const i32 n = r->machine.ndevice;
    for (i32 d = 0; d < n; d++) r->machine.device[d].weight = d == (i32)(s % (u32)n) ? old->ngrain - n + 1 : 1;
    struct plan_request q = {.net = &net, .machine = &r->machine, .B = r->job->B, .train = true, .nstate = netplan(old)->nstate,
                             .parallel = old->strategy, .dense = r->job->dense};
    TRY(plan_make(&q, &next));
    r->plan = next;
    TRY(exec_quiet(step_exec(r->x)));
    step_free(r->x);
    r->x = NULL;
    const bool same = plan_same_updates(old, next);
    plan_free(old);
    if (!same) return FAIL(E1, "others update these weights now");
    return step_bind(next, &net, kern_best(), r->pool, &r->store, r->comm, r->job->pipe, &r->x);
}

static err steps(struct rank *r) {
    const struct job *j = r->job;
    struct exec_result out = {0};
    for (u32 s = 0; s < (t_few() ? 4 : STEPS); s++) {
        if (s == 2 && j->fails_at == comm_rank(r->comm)) return FAIL(E703, "the disk of this rank is full");
        if (j->moves_every && s > 0 && s % j->moves_every == 0) TRY(move(r, s));
        real_fill(&net, r->input, j->B, s % 3);
        struct step_args step = real_step(r->input, j->B, s);
        step.accumulate = j->accumulate > 1 && (i32)(s % (u32)j->accumulate) + 1 < j->accumulate;
        TRY(step_run(r->x, &step, &out));
        if (s % 5 == 3) TRY(exec_quiet(step_exec(r->x))); /* whenever it pleases */
        if (j->looks > 0 && s + 1 == (u32)j->looks) TRY(again(r));
    }
    if (policy_delay(j->pipe) > 0) TRY(step_settle(r->x, &out));
    r->loss = out.loss;
    r->row = exec_row_seconds(step_exec(r->x));
    r->sent = exec_sent(step_exec(r->x));
    return exec_gather(step_exec(r->x));
}

static void *live(void *self) {
    struct rank *r = self;
    const struct comm_fault *f = r->job->fault;
    const bool ends = f && (f->drop || f->swap || f->die); /* else a busy machine is no reason to give up */
    if (f) comm_set_deadline(r->comm, ends && !t_few() ? 0.5 : 15);
    r->e = r->comm ? comm_connect(r->comm) : 0;
    if (r->e >= 0) r->e = bind(r);
    if (r->e >= 0) r->e = steps(r);
    if (r->e < 0) r->why = *err_last();
    if (r->e < 0) comm_abort(r->comm);
    return NULL;
}

static void run(const struct job *j, struct rank *r) {
    struct comm *comm[RANKS] = {0};
    if (j->ranks > 1) T_OK(j->fault ? comm_faulty(j->ranks, j->fault, comm) : comm_threads(j->ranks, comm));
    for (i32 k = 0; k < j->ranks; k++) {
        r[k] = (struct rank){.job = j, .comm = comm[k]};
        assert_int_equal(pthread_create(&r[k].thread, NULL, live, &r[k]), 0);
    }
    for (i32 k = 0; k < j->ranks; k++) pthread_join(r[k].thread, NULL);
}

static void done(const struct job *j, struct rank *r) {
    for (i32 k = 0; k < j->ranks; k++) {
        step_free(r[k].x);
        store_free(&r[k].store);
        pool_free(r[k].pool);
        plan_free(r[k].plan);
        arena_free(&r[k].arena);
        comm_free(r[k].comm);
    }
}

/* A rank allots the gradients of its own micro-batches and of those that arrive, and no others. */
TEST(ranks_allot_only_gradients_that_they_use) {
    static struct rank many[RANKS];
    i64 whole = 0;
    nets_long(&net, (struct shape){.T = 5, .I = 20, .H = 64, .steps = 3, .w = 12, .vocab = 4, .nk = 2}, CELL_LSTM, "loss_mse",
              0);
    for (i32 ranks = 1; ranks <= 4; ranks *= 2) {
        struct job j = {.B = 64, .ranks = ranks, .threads = 1, .fails_at = -1, .optim = "sgd",
                        .parallel = ranks > 1 ? "data_sync" : "serial"};
        run(&j, many);
        for (i32 r = 0; r < ranks; r++) T_OK(many[r].e);
        const i32 n = many[0].plan->ngrain, vectors = ranks == 1 ? n : n / ranks + ranks;
        for (i32 r = 0; r < ranks; r++) {
            const i64 bytes = exec_bytes(step_exec(many[r].x));
            if (ranks == 1) whole = bytes;
            const f64 off = (f64)step_bytes(many[r].x) / (f64)many[r].plan->peak_bytes - 1;
            assert_true(off < 0.05 && off > -0.3);
            assert_true(bytes <= whole - (n - vectors) * net.ntheta * 4 + whole / 50);
        }
        done(&j, many);
    }
}

/* The rule of delay1 by itself: weights move by the gradient of the step before, which was taken at the weights it began with. */
static void late_rule(i32 B, const char *optim, f32 *theta) {
    static struct rank r;
    struct job j = {.B = B, .ranks = 1, .threads = 1, .fails_at = -1, .optim = "sgd", .parallel = "serial"};
    const struct optim *o = optim_find(optim);
    const size_t P = (size_t)net.ntheta;
    r = (struct rank){.job = &j};
    T_OK(bind(&r));
    f32 *grad = mem_alloc(P * sizeof *grad), *state[2] = {mem_alloc(P * sizeof *grad), mem_alloc(P * sizeof *grad)};
    memcpy(theta, r.store.theta, P * sizeof *theta);
    struct optim_hyper hyper = {0};
    for (u32 s = 0; s <= (t_few() ? 4 : STEPS); s++) {
        struct exec_result out = {0};
        const bool last = s == (t_few() ? 4 : STEPS);
        real_fill(&net, r.input, B, s % 3);
        struct step_args step = real_step(r.input, B, s), still = step;
        memcpy(r.store.theta, theta, P * sizeof *theta);
        still.hyper.lr = 0;
        if (!last) T_OK(step_run(r.x, &still, &out));
        if (s > 0) o->update(&hyper, net.ntheta, theta, grad, state[0], state[1]);
        memcpy(grad, step_grad(r.x), P * sizeof *grad);
        hyper = step.hyper;
        hyper.grad_scale = (f32)dmin(1, step.clip / (out.norm + 1e-6));
    }
    mem_free(grad);
    mem_free(state[0]);
    mem_free(state[1]);
    done(&j, &r);
}

static void late_bits(i32 B, const char *optim) {
    static const struct {
        i32 ranks, threads, looks;
        const char *parallel;
        f64 rate;
    } cases[] = {{1, 1, 0, "serial", 0}, {1, 3, 0, "data_sync", 0}, {2, 1, 0, "data_sync", 0}, {2, 1, 3, "data_sync", 0},
                 {3, 1, 0, "data_sync", 0}, {4, 1, 2, "data_sync", 0}, {8, 1, 0, "data_sync", 0}, {3, 2, 3, "data_sync", 0},
                 {1, 1, 3, "serial", 0}, {2, 1, 0, "data_sync", 2e7}};
    static struct rank many[RANKS];
    f32 *theta = mem_alloc((size_t)net.ntheta * sizeof *theta);
    late_rule(B, optim, theta);
    for (size_t i = 0; i < (t_few() ? 3 : COUNT(cases)); i++) {
        const struct comm_fault slow = {.rate = cases[i].rate, .lag = 1e-3};
        struct job j = {.B = B, .ranks = cases[i].ranks, .threads = cases[i].threads, .fails_at = -1, .optim = optim,
                        .parallel = cases[i].parallel, .pipe = policy_find("delay1"), .looks = cases[i].looks,
                        .fault = cases[i].rate > 0 ? &slow : NULL};
        run(&j, many);
        for (i32 r = 0; r < j.ranks; r++) {
            if (many[r].e < 0) fail_msg("%s, case %d, rank %d: %s", optim, (int)i, r, many[r].why.text);
            if (memcmp(many[r].store.theta, theta, (size_t)net.ntheta * sizeof(f32)) != 0)
                fail_msg("%s, case %d: rank %d of %d has other weights than the rule", optim, (int)i, r, j.ranks);
        }
        done(&j, many);
    }
    mem_free(theta);
}

TEST(late_updates_are_those_of_the_rule_on_any_ranks) {
    nets_long(&net, (struct shape){.T = 5, .I = 20, .H = 24, .steps = 3, .w = 12, .vocab = 4, .nk = 2}, CELL_LSTM, "loss_mse",
              0.3f);
    late_bits(45, "adam");
    late_bits(70, "sgd");
    nets_short(&net, (struct shape){.T = 9, .I = 3, .H = 17, .w = 5}, CELL_GRU, "loss_quantile");
    late_bits(37, "rmsprop");
    nets_short(&net, (struct shape){.T = 9, .I = 3, .H = 96, .w = 5}, CELL_LSTM, "loss_mse");
    late_bits(37, "adam");
}

/* The first step tells nothing, the others of the one before; what is not finite is said a step later, and not done. */
TEST(late_steps_tell_of_the_one_before) {
    static struct rank r, plain;
    struct job j = {.B = 8, .ranks = 1, .threads = 1, .fails_at = -1, .optim = "adam", .parallel = "serial",
                    .pipe = policy_find("delay1")}, p = j;
    struct exec_result out, want;
    struct step_ahead ahead;
    nets_short(&net, (struct shape){.T = 9, .I = 3, .H = 17, .w = 5}, CELL_LSTM, "loss_mse");
    p.pipe = policy_find("overlap");
    r = (struct rank){.job = &j};
    plain = (struct rank){.job = &p};
    T_OK(bind(&r));
    T_OK(bind(&plain));
    T_OK(step_settle(r.x, &out));
    assert_true(out.none && out.finite);
    T_OK(step_look_ahead(r.x, &ahead));
    assert_null(ahead.theta);
    real_fill(&net, r.input, j.B, 0);
    real_fill(&net, plain.input, j.B, 0);
    struct step_args step = real_step(r.input, j.B, 0), same = real_step(plain.input, j.B, 0);
    T_OK(step_run(plain.x, &same, &want));
    T_OK(step_run(r.x, &step, &out));
    assert_true(out.none && out.finite);
    r.input[0][0] = (f32)NAN;
    T_OK(step_run(r.x, &step, &out));
    assert_true(!out.none && out.finite && out.loss == want.loss && out.norm == want.norm);
    assert_memory_equal(r.store.theta, plain.store.theta, (size_t)net.ntheta * sizeof(f32));
    T_OK(step_run(r.x, &step, &out));
    assert_true(!out.none && !out.finite);
    assert_memory_equal(r.store.theta, plain.store.theta, (size_t)net.ntheta * sizeof(f32));
    T_OK(step_settle(r.x, &out)); /* the step after it is void too */
    assert_true(out.none);
    step.accumulate = true;
    T_FAILS(step_run(r.x, &step, &out), E1);
    done(&j, &r);
    done(&p, &plain);
}

/* Rounds between slices need the agent within the step, delay1 has it at the step before. */
TEST(late_updates_of_slices_on_ranks_are_refused) {
    static struct sliced s = {.W = 2, .T = 64, .P = 4, .I = 3, .H = 16, .L = 1, .cell = CELL_LSTM};
    struct comm *comm[2];
    struct machine m;
    struct plan *p;
    struct store store;
    struct pool *pool;
    struct step *x;
    sliced_net(&net, &s);
    T_OK(machine_parse("host*2(cpu)", &m));
    T_OK(comm_threads(2, comm));
    T_OK(pool_new(1, &pool));
    T_OK(plan_make(&(struct plan_request){.net = &net, .machine = &m, .B = sliced_rows(&s), .train = true,
                                          .nstate = optim_find("sgd")->nstate, .parallel = "time", .slices = s.P}, &p));
    T_OK(store_new(&net, optim_find("sgd"), &store));
    T_FAILS(step_bind(p, &net, kern_best(), pool, &store, comm[0], policy_find("delay1"), &x), E401);
    T_OK(step_bind(p, &net, kern_best(), pool, &store, NULL, policy_find("delay1"), &x)); /* a rank alone has none to wait for */
    step_free(x);
    store_free(&store);
    plan_free(p);
    pool_free(pool);
    comm_free(comm[0]);
    comm_free(comm[1]);
}

static void same_bits(i32 B, const char *optim, i32 accumulate) {
    static const struct {
        i32 ranks, threads;
        const char *pipe;
        bool whole;
    } cases[] = {{2, 1, 0, 0}, {3, 1, 0, 0}, {4, 1, 0, 0}, {8, 1, 0, 0}, {2, 2, 0, 0}, {3, 2, 0, 0}, {2, 1, "linear", 0},
                 {3, 2, "linear", 0}, {2, 1, 0, 1}, {3, 2, 0, 1}, {8, 1, 0, 1}, {2, 2, "linear", 1}};
    static struct rank one[1], many[RANKS];
    struct job j = {.B = B, .ranks = 1, .threads = 1, .accumulate = accumulate, .fails_at = -1, .optim = optim,
                    .parallel = "serial"};
    run(&j, one);
    T_OK(one->e);
    for (size_t i = 0; i < (t_few() ? 1 : COUNT(cases)); i++) {
        struct job k = j;
        k.ranks = cases[i].ranks;
        k.threads = cases[i].threads;
        k.pipe = cases[i].pipe ? policy_find(cases[i].pipe) : NULL ? policy_find(cases[i].pipe) : NULL;
        k.whole = cases[i].whole;
        k.parallel = "data_sync";
        run(&k, many);
        for (i32 r = 0; r < k.ranks; r++) {
            if (many[r].e < 0 || many[r].loss != one->loss)
                fail_msg("B %d, %d ranks of %d threads, rank %d: loss %.17g, alone %.17g; %s", B, k.ranks, k.threads, r,
                         many[r].loss, one->loss, many[r].why.text);
            assert_memory_equal(many[r].store.theta, one->store.theta, (size_t)net.ntheta * sizeof(f32));
        }
        for (i32 r = 0; r < (k.whole ? k.ranks : 1); r++)
            for (i32 s = 0; s < one->store.optim->nstate; s++)
                assert_memory_equal(many[r].store.state[s], one->store.state[s], (size_t)net.ntheta * sizeof(f32));
        done(&k, many);
    }
    done(&j, one);
}

TEST(ranks_give_the_bits_of_one) {
    static const i32 sizes[] = {8, 45, 70};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        nets_long(&net, (struct shape){.T = 5, .I = 20, .H = 24, .steps = 3, .w = 12, .vocab = 4, .nk = 2}, CELL_LSTM, "loss_mse",
                  0.3f);
        same_bits(sizes[i], "adam", 1);
    }
    nets_short(&net, (struct shape){.T = 9, .I = 3, .H = 17, .w = 5}, CELL_GRU, "loss_quantile");
    same_bits(37, "sgd", 1);
    nets_short(&net, (struct shape){.T = 9, .I = 3, .H = 96, .w = 5}, CELL_LSTM, "loss_mse"); /* its bottom layer in parts */
    same_bits(45, "adam", 1);
    same_bits(4, "adam", 3);
}

TEST(ranks_keep_a_gradient_for_the_next_step) {
    nets_mixed(&net, (struct shape){.T = 4, .I = 5, .H = 20, .w = 3}, CELL_LSTM);
    same_bits(50, "rmsprop", 3);
}

TEST(ranks_give_the_bits_of_one_when_messages_are_late) {
    static struct rank one[1], many[RANKS];
    struct job j = {.B = 45, .ranks = 1, .threads = 1, .fails_at = -1, .optim = "adam", .parallel = "serial"};
    nets_short(&net, (struct shape){.T = 9, .I = 3, .H = 17, .w = 5}, CELL_LSTM, "loss_mse");
    run(&j, one);
    T_OK(one->e);
    for (u64 seed = 1; seed <= (t_few() ? 1 : 10); seed++) {
        struct job k = j;
        k.fault = &(struct comm_fault){.delay = 2e-3, .seed = seed};
        k.ranks = 2 + (i32)(seed % 3);
        k.parallel = "data_sync";
        run(&k, many);
        for (i32 r = 0; r < k.ranks; r++) {
            if (many[r].e < 0) fail_msg("seed %d, rank %d: %s", (int)seed, r, many[r].why.text);
            assert_memory_equal(many[r].store.theta, one->store.theta, (size_t)net.ntheta * sizeof(f32));
        }
        done(&k, many);
    }
    done(&j, one);
}

TEST(ranks_give_the_bits_of_one_when_grains_move) {
    static struct rank one[1], many[RANKS];
    static const struct {
        i32 ranks, threads, accumulate;
    } cases[] = {{2, 1, 1}, {3, 1, 2}, {2, 2, 1}};
    nets_short(&net, (struct shape){.T = 9, .I = 3, .H = 17, .w = 5}, CELL_LSTM, "loss_mse");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct job j = {.B = 62, .ranks = 1, .threads = 1, .accumulate = cases[i].accumulate, .fails_at = -1, .optim = "adam",
                        .parallel = "serial"};
        run(&j, one);
        T_OK(one->e);
        struct job k = j;
        k.ranks = cases[i].ranks;
        k.threads = cases[i].threads;
        k.parallel = "data_sync";
        k.moves_every = 2;
        run(&k, many);
        for (i32 r = 0; r < k.ranks; r++) {
            if (many[r].e < 0) fail_msg("case %d, rank %d: %s", (int)i, r, many[r].why.text);
            assert_memory_equal(many[r].store.theta, one->store.theta, (size_t)net.ntheta * sizeof(f32));
        }
        for (i32 s = 0; s < one->store.optim->nstate; s++)
            assert_memory_equal(many[0].store.state[s], one->store.state[s], (size_t)net.ntheta * sizeof(f32));
        done(&k, many);
        done(&j, one);
    }
}

static void same_as(const struct job *j, const struct rank *many, const struct rank *one) {
    for (i32 r = 0; r < j->ranks; r++) {
        if (many[r].e < 0 || many[r].loss != one->loss)
            fail_msg("policy %s, %d ranks of %d threads, rank %d: loss %.17g, whole %.17g; %s",
                     j->pipe ? j->pipe->name : "overlap", j->ranks, j->threads, r, many[r].loss, one->loss, many[r].why.text);
        assert_memory_equal(many[r].store.theta, one->store.theta, (size_t)net.ntheta * sizeof(f32));
    }
    for (i32 s = 0; s < one->store.optim->nstate; s++)
        assert_memory_equal(many[0].store.state[s], one->store.state[s], (size_t)net.ntheta * sizeof(f32));
}

/* What goes by lines: no more than whole, and no more than rows x steps of them; of few rows far less than whole. */
static void by_lines(const struct job *j, const struct rank *many, i32 T, i32 lines) {
    i64 bytes = 0, whole = 0, steps = many[0].sent.steps;
    for (i32 r = 0; r < j->ranks; r++) {
        bytes += many[r].sent.coded;
        whole += many[r].sent.coded_whole;
        assert_true(many[r].sent.bytes - many[r].sent.coded == many[r].sent.whole - many[r].sent.coded_whole);
    }
    if (j->ranks == 1) {
        assert_true(whole == 0);
        return;
    }
    /* An unaligned run of grains is sent in more than one part, to all where all update; each message has a count. */
    const i64 to = j->whole ? j->ranks : 1, counts = steps * 4 * 64 * to;
    const i64 rows = steps * 2 * to * (i64)j->B * T, most = rows * lines * (LANES * 4 + 2);
    const bool few = 8 * most < whole;
    if (bytes <= 0 || bytes > most + counts || bytes > whole + counts || (few && 4 * bytes > whole))
        fail_msg("%d ranks: %lld bytes of lines, at most %lld, whole %lld", j->ranks, (long long)bytes, (long long)most,
                 (long long)whole);
}

/* No more than the plan says of steps that are made of several batches. */
static void within_plan(const struct job *j, const struct rank *many) {
    struct plan_sent most;
    i64 bytes = 0, lines = 0;
    const i64 steps = (many[0].sent.steps + j->accumulate - 1) / j->accumulate;
    T_OK(plan_sent(many[0].plan, j->accumulate, &most));
    for (i32 r = 0; r < j->ranks; r++) {
        bytes += many[r].sent.bytes;
        lines += many[r].sent.coded;
    }
    if (bytes > steps * most.most || lines > steps * most.lines_most)
        fail_msg("%d ranks, %d batches a step: %lld bytes (%lld of lines) in %lld steps, at most %lld (%lld) each", j->ranks,
                 j->accumulate, (long long)bytes, (long long)lines, (long long)steps, (long long)most.most,
                 (long long)most.lines_most);
}

/* A large embedding: its gradients by lines are those of whole vectors, for any ranks, threads and pipelines. */
static void table_bits(struct shape s, i32 units, i32 accumulate, const char *optim) {
    static const struct {
        i32 ranks, threads;
        bool moves, whole;
    } cases[] = {{1, 1, 0, 0}, {1, 3, 0, 0}, {2, 1, 0, 0}, {3, 1, 0, 0}, {4, 1, 0, 0}, {2, 2, 1, 0}, {3, 2, 0, 0}, {3, 1, 0, 1}};
    static struct rank one[1], many[RANKS];
    s.I = 3, s.H = 16, s.w = 4;
    nets_table(&net, s, units);
    for (i32 n = 0; n < policy_count(); n++) {
        const struct policy *pipe = policy_at(n);
        if (pipe == policy_find("delay1") && accumulate > 1) continue;
        struct job j = {.B = s.B, .ranks = 1, .threads = 1, .accumulate = accumulate, .fails_at = -1, .optim = optim,
                        .parallel = "serial", .pipe = pipe, .dense = true};
        run(&j, one);
        T_OK(one->e);
        for (size_t i = 0; i < (t_few() ? 3 : COUNT(cases)); i++) {
            struct job k = j;
            if (pipe->delay && cases[i].whole) continue;
            k.dense = false;
            k.whole = cases[i].whole;
            k.ranks = cases[i].ranks;
            k.threads = cases[i].threads;
            if (!pipe->delay && cases[i].moves) k.moves_every = (u32)imax(2, accumulate); /* what is kept does not move */
            k.parallel = k.ranks * k.threads > 1 ? "data_sync" : "serial";
            run(&k, many);
            assert_int_equal(many[0].plan->ntable, 1);
            same_as(&k, many, one);
            if (!k.moves_every && !pipe->delay && k.ranks > 1) within_plan(&k, many);
            if (accumulate < 2) by_lines(&k, many, s.T, round_up(units, LANES) / LANES);
            done(&k, many);
        }
        done(&j, one);
    }
}

TEST(tables_by_lines_give_the_bits_of_whole_vectors) {
    table_bits((struct shape){.B = 45, .T = 6, .vocab = 5000}, 8, 1, "adam");
    table_bits((struct shape){.B = 8, .T = 6, .vocab = 5000}, 20, 1, "sgd");
    table_bits((struct shape){.B = 64, .T = 48, .vocab = 512}, 16, 1, "adam"); /* nearly all rows are touched */
}

TEST(tables_keep_a_gradient_for_the_next_step) {
    table_bits((struct shape){.B = 50, .T = 6, .vocab = 5000}, 16, 3, "rmsprop");
}

TEST(tables_when_messages_are_late) {
    static struct rank one[1], many[RANKS];
    const struct comm_fault late = {.delay = 2e-3, .seed = 3};
    struct job j = {.B = 45, .ranks = 1, .threads = 1, .fails_at = -1, .optim = "adam", .parallel = "serial", .dense = true};
    nets_table(&net, (struct shape){.T = 6, .I = 3, .H = 16, .w = 4, .vocab = 3000}, 8);
    run(&j, one);
    T_OK(one->e);
    struct job k = j;
    k.fault = &late;
    k.ranks = 3;
    k.parallel = "data_sync";
    k.dense = false;
    run(&k, many);
    same_as(&k, many, one);
    done(&k, many);
    done(&j, one);
}

/* Made so slow that a busy machine cannot hide it. */
TEST(ranks_know_what_a_row_costs) {
    static struct rank r[RANKS];
    struct job j = {.B = 48, .ranks = 3, .threads = 1, .fails_at = -1, .optim = "adam", .parallel = "data_sync"};
    if (t_few()) return; /* fewer steps than are needed to say anything */
    nets_short(&net, (struct shape){.T = 9, .I = 3, .H = 17, .w = 5}, CELL_LSTM, "loss_mse");
    setenv("STRETTO_FAULT", "2:1:slow(60)", 1);
    run(&j, r);
    unsetenv("STRETTO_FAULT");
    for (i32 k = 0; k < j.ranks; k++) T_OK(r[k].e);
    assert_true(r[0].row > 0 && r[1].row > 0);
    if (r[2].row < 3 * r[0].row || r[2].row < 3 * r[1].row)
        fail_msg("a row: %g s, %g s, and %g s where it takes 60 times as long", r[0].row, r[1].row, r[2].row);
    done(&j, r);
    setenv("STRETTO_FAULT", "2:slow", 1);
    run(&j, r);
    unsetenv("STRETTO_FAULT");
    for (i32 k = 0; k < j.ranks; k++) {
        assert_int_equal(r[k].e, -E104);
        assert_non_null(strstr(r[k].why.text, "\"2:slow\" names no fault"));
    }
    done(&j, r);
}

/* A message that never arrives, or too early, or a rank that dies: everybody ends, with a sentence that helps. */
TEST(ranks_whose_messages_go_wrong_all_end) {
    static struct rank r[RANKS];
    static const struct {
        struct comm_fault fault;
        i32 code;
        const char *says;
    } cases[] = {
        {{.rank = 1, .drop = 9}, E801, "has waited"}, /* all wait soon, for one another: who says so first is chance */
        {{.rank = 1, .swap = 9}, E804, "is awaited"},
        {{.rank = 2, .die = 20}, E801, "rank 2 was told to die at message 20"},
    };
    nets_short(&net, (struct shape){.T = 9, .I = 3, .H = 17, .w = 5}, CELL_LSTM, "loss_mse");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct job j = {.B = 45, .ranks = 3, .threads = 1, .fails_at = -1, .optim = "adam", .parallel = "data_sync",
                        .fault = &cases[i].fault};
        i32 found = 0;
        run(&j, r);
        for (i32 k = 0; k < j.ranks; k++) {
            assert_true(r[k].e < 0);
            found += strstr(r[k].why.text, cases[i].says) != NULL && r[k].why.code == cases[i].code;
        }
        if (!found) fail_msg("case %d: %s | %s | %s", (int)i, r[0].why.text, r[1].why.text, r[2].why.text);
        done(&j, r);
    }
}

/* A rank that fails: all others end with its error, and say whose it is. */
TEST(ranks_learn_of_one_that_failed) {
    static struct rank r[RANKS];
    struct job j = {.B = 45, .ranks = 4, .threads = 1, .fails_at = 2, .optim = "adam", .parallel = "data_sync"};
    nets_short(&net, (struct shape){.T = 9, .I = 3, .H = 17, .w = 5}, CELL_LSTM, "loss_mse");
    run(&j, r);
    for (i32 k = 0; k < j.ranks; k++) {
        assert_int_equal(r[k].e, -E703);
        if (k == 2 || strstr(r[k].why.text, "rank 2: the disk of this rank is full")) continue;
        fail_msg("rank %d says: %s", k, r[k].why.text);
    }
    done(&j, r);
}

T_MAIN(cmocka_unit_test(tables_by_lines_give_the_bits_of_whole_vectors),
       cmocka_unit_test(tables_keep_a_gradient_for_the_next_step), cmocka_unit_test(tables_when_messages_are_late),
       cmocka_unit_test(late_updates_of_slices_on_ranks_are_refused),
       cmocka_unit_test(ranks_allot_only_gradients_that_they_use), cmocka_unit_test(ranks_give_the_bits_of_one),
       cmocka_unit_test(ranks_keep_a_gradient_for_the_next_step),
       cmocka_unit_test(ranks_give_the_bits_of_one_when_messages_are_late),
       cmocka_unit_test(late_updates_are_those_of_the_rule_on_any_ranks), cmocka_unit_test(late_steps_tell_of_the_one_before),
       cmocka_unit_test(ranks_give_the_bits_of_one_when_grains_move), cmocka_unit_test(ranks_know_what_a_row_costs),
       cmocka_unit_test(ranks_whose_messages_go_wrong_all_end), cmocka_unit_test(ranks_learn_of_one_that_failed))
