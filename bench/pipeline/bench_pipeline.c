/* bench_pipeline.c - a training run on ranks as threads with emulated input and network times; the loop is that of `train`.
 *
 *     bench_pipeline MODE RANKS LAYERS HIDDEN T ROWS STEPS INPUT_MS RATE LAG_MS
 *         -> PARAMETERS HASH ms ms ms ..      time of every step after the first ones; HASH of the weights
 *            KIND OP ms BYTES STAGE           per task of rank 0: usual time; bytes sent when it is done, for fwd bytes it waits
 *            ..                               for; for a merge the backward task of the other rank that produces its input,
 *                                             counted from 0, -1 = none
 *
 * Emulated: a batch is ready after its reader has slept INPUT_MS; a message arrives after RATE bytes per second (0 = unlimited)
 * and LAG_MS. Meanwhile sender and receiver sleep between polls, as with a network card. Real: all computation, one thread per
 * rank, and the contents of the messages. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "comm/faulty.h"
#include "data/prefetch.h"
#include "plan/exchange.h"
#include "train/loop.h"

enum { RANKS = 8, WARM = 6, INPUTS = 8, HORIZON = 8, SPANS = 4096 };

struct setup {
    const struct policy *pipe;
    i32 ranks, layers, hidden, T, rows;
    i64 steps;
    f64 input_s;
    struct net net;
    i32 x, y;
};

struct rank {
    const struct setup *is;
    struct comm *comm;
    struct machine machine;
    struct plan *plan;
    struct pool *pool;
    struct store store;
    struct step *exec;
    f32 *input[PREFETCH_SLOTS][NET_BUFS];
    struct arena arena;
    f64 *stamp; /* [steps] */
    i64 stamps;
    err e;
    struct err_record why;
    pthread_t thread;
};

static err make_net(struct setup *s) {
    struct net *n = &s->net;
    i32 op;
    net_init(n);
    TRY(net_input(n, "x", s->T, INPUTS, false, &s->x));
    TRY(net_input(n, "y", s->T, HORIZON, false, &s->y));
    i32 from = s->x;
    for (i32 k = 0; k < s->layers; k++) {
        char name[16];
        snprintf(name, sizeof name, "lstm.%d", k);
        struct op_spec l = net_spec("recurrent", name, from);
        l.cell = CELL_LSTM, l.hidden = s->hidden;
        TRY(net_op(n, &l, &op));
        from = n->op[op].out;
    }
    struct op_spec head = net_spec("dense", "head", from), loss;
    head.units = HORIZON;
    TRY(net_op(n, &head, &op));
    loss = net_spec("loss_mse", "loss", n->op[op].out);
    loss.in[1] = s->y;
    TRY(net_op(n, &loss, NULL));
    return net_check(n);
}

/* Priorities under SCHED_RR (chrt -r 20): threads that mostly sleep go first, as with the default scheduler: agents, then batch
 * readers, then workers. With equal priority a wake-up would wait for the end of a time slice, which is longer than a step. */
static void stand_back(i32 by) {
    static _Thread_local i32 now;
    struct sched_param p;
    if (now == by || sched_getscheduler(0) != SCHED_RR || sched_getparam(0, &p) != 0) return;
    p.sched_priority += now - by;
    if (pthread_setschedparam(pthread_self(), SCHED_RR, &p) == 0) now = by;
}

static void fill(void *self, i64 batch, i32 slot) {
    struct rank *r = self;
    const struct setup *s = r->is;
    const i32 buf[] = {s->x, s->y};
    if (!policy_serial(s->pipe)) stand_back(-1);
    const time_t whole = (time_t)s->input_s;
    nanosleep(&(struct timespec){.tv_sec = whole, .tv_nsec = (long)(1e9 * (s->input_s - (f64)whole))}, NULL);
    for (i32 b = 0; b < 2; b++) {
        const i64 n = buf_floats(&s->net.buf[buf[b]], s->rows);
        for (i64 i = 0; i < n; i++) r->input[slot][buf[b]][i] = rng_uniform(7, RNG_TEST, (u32)b, (u64)(batch * n + i)) - 0.5f;
    }
}

static f32 *const *inputs(void *self, i64 batch, i32 slot, f32 *scale) {
    struct rank *r = self;
    (void)batch;
    *scale = 1.f / (f32)(r->is->rows * r->is->T);
    return r->input[slot];
}

static void stepped(void *self, bool finite) {
    struct rank *r = self;
    (void)finite;
    r->stamp[r->stamps++] = clock_now();
}

static err prepare(struct rank *r) {
    const struct setup *s = r->is;
    const struct optim *o = optim_find("adam");
    char text[32];
    snprintf(text, sizeof text, "host*%d(cpu*1)", s->ranks);
    TRY(machine_parse(text, &r->machine));
    struct plan_request q = {.net = &s->net, .machine = &r->machine, .B = s->rows, .train = true, .nstate = o->nstate,
                             .parallel = s->ranks > 1 ? "data_sync" : "serial"};
    TRY(plan_make(&q, &r->plan));
    TRY(pool_new(1, &r->pool));
    TRY(store_new(&s->net, o, &r->store));
    net_weights_init(&s->net, 7, r->store.theta);
    TRY(step_bind(r->plan, &s->net, kern_best(), r->pool, &r->store, r->comm, s->pipe, &r->exec));
    exec_trace(step_exec(r->exec), comm_rank(r->comm) == 0);
    for (i32 k = 0; k < PREFETCH_SLOTS; k++)
        for (i32 i = 0; i < s->net.nbuf; i++)
            if (s->net.buf[i].input) ARENA_NEW(&r->arena, r->input[k][i], buf_floats(&s->net.buf[i], s->rows));
    ARENA_NEW(&r->arena, r->stamp, s->steps);
    return 0;
}

static err train(struct rank *r) {
    const struct setup *s = r->is;
    struct train_state state;
    TRY(comm_connect(r->comm));
    TRY(prepare(r));
    struct train_job j = {.exec = r->exec, .store = &r->store, .steps = s->steps, .validate_every = s->steps, .accumulate = 1,
                          .lr = 1e-3f, .hyper = {.beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .grad_scale = 1}, .clip = 1,
                          .seed = 1, .members = 1, .self = r, .fill = fill, .inputs = inputs, .stepped = stepped,
                          .prefetch = !policy_serial(s->pipe), .late = policy_delay(s->pipe) > 0, .comm = r->comm};
    TRY(train_state_new(&r->store, &state));
    err e = train_run(&j, &state);
    train_state_free(&state);
    return e < 0 ? e : 0;
}

static void *live(void *self) {
    struct rank *r = self;
    stand_back(2);
    r->e = train(r);
    if (r->e < 0) r->why = *err_last();
    if (r->e < 0) comm_abort(r->comm);
    return NULL;
}

struct tasks {
    const struct plan *p;
    struct plan_message *m;
    struct task_span *span;
    u32 nm;
    i32 nspan;
};

static int rising(const void *a, const void *b) {
    const f64 x = *(const f64 *)a, y = *(const f64 *)b;
    return (x > y) - (x < y);
}

/* Merges that run together are all attributed to the first. */
static f64 usual_ms(const struct tasks *t, u32 task) {
    f64 v[SPANS];
    i32 n = 0;
    for (i32 i = 0; i < t->nspan; i++)
        if (t->span[i].task == task) v[n++] = t->span[i].t1 - t->span[i].t0;
    qsort(v, (size_t)n, sizeof *v, rising);
    return n > 0 ? 1e3 * v[n / 2] : 0;
}

static i64 common(const struct plan_message *m, i64 lo, i64 hi) { return lmax(0, lmin(m->hi, hi) - lmax(m->lo, lo)); }

static i64 bytes_of(const struct tasks *t, u32 task, const struct op *op) {
    const bool forward = t->p->task[task].kind == TASK_FWD;
    i64 n = 0;
    for (u32 i = 0; i < t->nm; i++) {
        const struct plan_message *m = &t->m[i];
        const u8 kind = t->p->buf[m->buf].kind;
        if (m->when != MESSAGE_STEP) continue;
        if (forward && kind == PBUF_THETA && m->to == 0) n += common(m, op->theta0, op->theta0 + op->ntheta);
        if (!forward && kind == PBUF_GRAD && m->from == 0 && m->after == task) n += m->hi - m->lo;
    }
    return 4 * n;
}

static i32 backward_before(const struct tasks *t, const struct plan_message *m) {
    i32 n = -1;
    for (u32 i = 0; i <= m->after; i++) {
        const struct task *k = &t->p->task[i];
        n += (k->kind == TASK_BWD || k->kind == TASK_DW) && t->p->place[k->device].rank == m->from;
    }
    return n;
}

static i32 stage_of(const struct tasks *t, u32 task) {
    const struct task *of = &t->p->task[task];
    i32 stage = -1;
    for (u32 i = 0; i < t->nm && of->kind == TASK_MERGE; i++) {
        const struct plan_message *m = &t->m[i];
        const struct pbuf *b = &t->p->buf[m->buf];
        if (b->kind != PBUF_GRAD || m->when != MESSAGE_STEP || m->to != 0 || common(m, of->lo, of->hi) == 0) continue;
        if (b->index != of->node_a && b->index != of->node_b) continue;
        stage = imax(stage, backward_before(t, m));
    }
    return stage;
}

static err tell(const struct setup *s, const struct rank *r) {
    struct arena a = {0};
    struct tasks t = {.p = r->plan};
    err e = plan_exchange(r->plan, &a, &t.m, &t.nm);
    if (e >= 0) t.span = arena_new(&a, SPANS * sizeof *t.span);
    if (e >= 0 && !t.span) e = -E601;
    if (e >= 0) t.nspan = exec_spans(step_exec(r->exec), t.span, SPANS);
    for (u32 i = 0; i < r->plan->ntask && e >= 0; i++) {
        const struct task *k = &r->plan->task[i];
        if (r->plan->place[k->device].rank != 0) continue;
        printf("%s %s %.4f %lld %d\n", task_forms[k->kind].name, s->net.op[k->op].spec.name, usual_ms(&t, i),
               (long long)bytes_of(&t, i, &s->net.op[k->op]), stage_of(&t, i));
    }
    arena_free(&a);
    return e;
}

static err run(struct setup *s, const struct comm_fault *line) {
    static struct rank r[RANKS];
    struct comm *comm[RANKS] = {0};
    err e = 0;
    if (s->ranks > 1) TRY(comm_faulty(s->ranks, line, comm));
    for (i32 k = 0; k < s->ranks; k++) {
        r[k] = (struct rank){.is = s, .comm = comm[k]};
        if (pthread_create(&r[k].thread, NULL, live, &r[k]) != 0) return FAIL(E601, "no thread could be made for rank %d", k);
    }
    for (i32 k = 0; k < s->ranks; k++) pthread_join(r[k].thread, NULL);
    for (i32 k = 0; k < s->ranks && e >= 0; k++)
        if ((e = r[k].e) < 0) err_put(&r[k].why);
    if (e >= 0) printf("%lld %016llx", (long long)s->net.ntheta, (unsigned long long)comm_hash(COMM_HASH, r[0].store.theta,
                                                                           sizeof(f32) * (size_t)s->net.ntheta));
    for (i64 i = WARM; i < r[0].stamps && e >= 0; i++) printf(" %.3f", 1e3 * (r[0].stamp[i] - r[0].stamp[i - 1]));
    printf("\n");
    if (e >= 0) e = tell(s, &r[0]);
    for (i32 k = 0; k < s->ranks; k++) {
        step_free(r[k].exec);
        store_free(&r[k].store);
        pool_free(r[k].pool);
        plan_free(r[k].plan);
        arena_free(&r[k].arena);
        comm_free(comm[k]);
    }
    return e;
}

static i32 whole(const char *text) { return (i32)strtol(text, NULL, 10); }

int main(int argc, char **argv) {
    if (argc != 11) {
        fprintf(stderr, "bench_pipeline overlap|linear|delay1 RANKS LAYERS HIDDEN T ROWS STEPS INPUT_MS RATE LAG_MS\n");
        return 2;
    }
    static struct setup s;
    s.pipe = policy_find(argv[1]);
    s.ranks = imin(RANKS, imax(1, whole(argv[2])));
    s.layers = whole(argv[3]);
    s.hidden = whole(argv[4]);
    s.T = whole(argv[5]);
    s.rows = whole(argv[6]);
    s.steps = imax(WARM + 1, whole(argv[7]));
    s.input_s = 1e-3 * strtod(argv[8], NULL);
    const struct comm_fault line = {.rate = strtod(argv[9], NULL), .lag = 1e-3 * strtod(argv[10], NULL)};
    err e = make_net(&s);
    if (e >= 0) e = run(&s, &line);
    if (e < 0) fprintf(stderr, "bench_pipeline: %s\n", err_last()->text);
    return e < 0;
}
