/* bench_devices.c - a training step of recurrent layers, a head and a squared error on a device, beside the cores of this host.
 *
 *     bench_devices MACHINE CELL T B I H LAYERS SECONDS [STRATEGY]
 *         -> median ms a step; loss and gradient norm of the first step, relative to those of the host's kernels; ms on one core
 *
 * MACHINE: a text such as cpu*2, opencl*1, cuda:1*2.  A step: inputs to the device, forward, backward, weight gradients, norm,
 * Adam. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "step/step.h"

enum { WARM = 3, STEPS_MOST = 4000 };

struct setup {
    i32 T, B, I, H, layers, x, y;
    enum cell_kind cell;
    struct net net;
    struct machine *machine;
    struct plan *plan;
    struct pool *pool;
    struct store store;
    struct step *step;
    f32 *input[NET_BUFS];
    struct arena arena;
};

static err make_net(struct setup *s) {
    static const char *const names[] = {"lstm", "gru", "rnn"};
    struct net *n = &s->net;
    i32 op, from;
    net_init(n);
    TRY(net_input(n, "x", s->T, s->I, false, &s->x));
    TRY(net_input(n, "y", s->T, 1, false, &s->y));
    from = s->x;
    for (i32 k = 0; k < s->layers; k++) {
        char name[24];
        snprintf(name, sizeof name, "%s.%d", names[s->cell], k);
        struct op_spec l = net_spec("recurrent", name, from);
        l.cell = s->cell, l.hidden = s->H;
        TRY(net_op(n, &l, &op));
        from = n->op[op].out;
    }
    struct op_spec head = net_spec("dense", "head", from), loss;
    head.units = 1;
    TRY(net_op(n, &head, &op));
    loss = net_spec("loss_mse", "loss", n->op[op].out);
    loss.in[1] = s->y;
    TRY(net_op(n, &loss, NULL));
    return net_check(n);
}

static err prepare(struct setup *s, const char *machine, const char *parallel) {
    const struct optim *o = optim_find("adam");
    NEW(s->machine, 1);
    TRY(machine_parse(machine, s->machine));
    struct plan_request q = {
        .net = &s->net, .machine = s->machine, .B = s->B, .train = true, .nstate = o->nstate, .parallel = parallel};
    if (s->machine->ndevice == 1) q.parallel = "serial";
    TRY(plan_make(&q, &s->plan));
    TRY(pool_new(s->machine->ndevice, &s->pool));
    TRY(store_new(&s->net, o, &s->store));
    net_weights_init(&s->net, 1, s->store.theta);
    for (i32 i = 0; i < s->net.nbuf; i++) {
        const struct buf *b = &s->net.buf[i];
        if (!b->input) continue;
        ARENA_NEW(&s->arena, s->input[i], buf_floats(b, s->B));
        for (i64 row = 0; row < (i64)b->T * s->B; row++)
            for (i32 f = 0; f < b->F; f++)
                s->input[i][row * buf_fp(b) + f] = rng_uniform(5, RNG_TEST, (u32)i, (u64)(row * b->F + f)) - 0.5f;
    }
    return step_bind(s->plan, &s->net, kern_best(), s->pool, &s->store, NULL, NULL, &s->step);
}

static err one_step(struct setup *s, u32 number, struct exec_result *out) {
    struct step_args a = {.input = s->input, .loss_scale = 1.0f / (f32)(s->T * s->B), .seed = 1, .step = number, .clip = 1};
    a.hyper = (struct optim_hyper){.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .step = number + 1};
    return step_run(s->step, &a, out);
}

static int by_size(const void *a, const void *b) {
    const f64 x = *(const f64 *)a, y = *(const f64 *)b;
    return x < y ? -1 : x > y;
}

static f64 median(f64 *v, i32 n) {
    qsort(v, (size_t)n, sizeof *v, by_size);
    return n > 0 ? v[n / 2] : 0;
}

static err measure(struct setup *s, f64 seconds, struct exec_result *first, f64 *ms) {
    static f64 took[STEPS_MOST];
    struct exec_result out;
    i32 n = 0;
    TRY(one_step(s, 0, first));
    for (u32 k = 1; k < WARM; k++) TRY(one_step(s, k, &out));
    for (const f64 end = clock_now() + seconds; n < STEPS_MOST && (n < 3 || clock_now() < end); n++) {
        const f64 t0 = clock_now();
        TRY(one_step(s, (u32)(WARM + n), &out));
        took[n] = clock_now() - t0;
    }
    *ms = 1e3 * median(took, n);
    return 0;
}

/* With BENCH_TASKS: the time of each task of one step, by the clock of the device. */
static err show_tasks(struct setup *s) {
    static struct task_span span[256];
    struct exec_result out;
    if (!getenv("BENCH_TASKS")) return 0;
    exec_trace(step_exec(s->step), true);
    TRY(one_step(s, 9999, &out));
    const i32 n = exec_spans(step_exec(s->step), span, 256);
    for (i32 i = 0; i < n; i++) printf("    %-31s %8.1f us\n", span[i].name, 1e6 * (span[i].t1 - span[i].t0));
    return 0;
}

static void drop(struct setup *s) {
    step_free(s->step);
    store_free(&s->store);
    pool_free(s->pool);
    plan_free(s->plan);
    arena_free(&s->arena);
    mem_free(s->machine);
}

static err run(int argc, char **argv, struct setup *s, struct setup *host) {
    struct exec_result at, there;
    f64 ms, host_ms = 0;
    const f64 seconds = atof(argv[8]);
    TRY(kern_init());
    s->cell = strcmp(argv[2], "gru") == 0 ? CELL_GRU : strcmp(argv[2], "rnn") == 0 ? CELL_RNN : CELL_LSTM;
    s->T = atoi(argv[3]), s->B = atoi(argv[4]), s->I = atoi(argv[5]), s->H = atoi(argv[6]), s->layers = atoi(argv[7]);
    *host = *s;
    TRY(make_net(s));
    TRY(make_net(host));
    TRY(prepare(s, argv[1], argc > 9 ? argv[9] : "auto"));
    TRY(measure(s, seconds, &at, &ms));
    TRY(show_tasks(s));
    TRY(prepare(host, "cpu*1", "serial"));
    TRY(measure(host, 0, &there, &host_ms));
    printf("%s %s T %d B %d I %d H %d L %d: %.3f ms a step by %s, loss off by %.1e, norm by %.1e; one core %.2f ms\n", argv[1],
           argv[2], s->T, s->B, s->I, s->H, s->layers, ms, s->plan->strategy, fabs(at.loss - there.loss) / fabs(there.loss),
           fabs(at.norm - there.norm) / there.norm, host_ms);
    return 0;
}

int main(int argc, char **argv) {
    static struct setup s, host;
    if (argc < 9) {
        fprintf(stderr, "usage: bench_devices MACHINE CELL T B I H LAYERS SECONDS [STRATEGY]\n");
        return 2;
    }
    const err e = run(argc, argv, &s, &host);
    if (e < 0) fprintf(stderr, "%s: %s\n", err_last()->where, err_last()->text);
    drop(&s);
    drop(&host);
    return e < 0;
}
