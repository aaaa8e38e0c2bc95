/* cut.c - nets, samples and weights of the cases of bench_slices. */
#include "cut.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "model/layer.h"
#include "plan/slice.h"

i64 cut_steps(const struct cut *c) { return (c->T + c->P - 1) / c->P; }
static i64 len_of(const struct cut *c, i64 k) {
    i32 from;
    return slice_steps((i32)c->T, (i32)c->P, (i32)k, &from);
}
static i64 first_of(const struct cut *c, i64 k) {
    i32 from;
    slice_steps((i32)c->T, (i32)c->P, (i32)k, &from);
    return from;
}

static err layers(struct cut *c) {
    struct net *n = &c->net;
    i32 op, length = -1, after = -1, T = (i32)cut_steps(c);
    net_init(n);
    TRY(net_input(n, "x", T, (i32)c->I, false, &c->in));
    if (c->T % c->P) TRY(net_input(n, "length", 1, 1, true, &length));
    if (c->P > 1) TRY(net_input(n, "after", 1, 1, true, &after));
    i32 from = c->in;
    for (i32 k = 0; k < c->layers; k++) {
        char name[16];
        snprintf(name, sizeof name, "lstm.%d", k);
        struct op_spec l = net_spec("recurrent", name, from);
        l.cell = CELL_LSTM, l.hidden = (i32)c->H, l.precision = c->prec, l.in[2] = length, l.in[3] = after;
        TRY(net_op(n, &l, &c->lstm[k]));
        from = n->op[c->lstm[k]].out;
    }
    struct op_spec head = net_spec("dense", "head", from), loss;
    head.units = 1;
    TRY(net_op(n, &head, &op));
    loss = net_spec("loss_mse", "loss", n->op[op].out);
    TRY(net_input(n, "target", T, 1, false, &c->target));
    loss.in[1] = c->target;
    TRY(net_op(n, &loss, NULL));
    return net_check(n);
}

static void rows(struct cut *c) {
    const i64 B = c->B * c->P;
    for (i32 i = 0; i < c->net.nbuf; i++) {
        i32 *ids = (i32 *)(void *)c->input[i];
        for (i64 r = 0; r < B && c->net.buf[i].input && c->net.buf[i].ids; r++)
            ids[r] = strcmp(c->net.buf[i].name, "after") == 0 ? (r < c->B ? -1 : (i32)(r - c->B)) : (i32)len_of(c, r / c->B);
    }
}

err cut_request(const struct cut *c, const struct machine *m, struct plan **out) {
    const struct plan_request q = {.net = &c->net,
                                   .machine = m,
                                   .B = (i32)(c->B * c->P),
                                   .train = true,
                                   .nstate = optim_find("adam")->nstate,
                                   .parallel = c->P > 1 ? "time" : "auto",
                                   .slices = (i32)c->P,
                                   .course = {.slice_tol = (f32)c->tol, .slice_rounds = (i32)c->stale}};
    return plan_make(&q, out);
}

err cut_bind(struct cut *c) {
    char text[32];
    TRY(layers(c));
    snprintf(text, sizeof text, "cpu*%d", (int)c->threads);
    TRY(machine_parse(text, &c->machine));
    TRY(cut_request(c, &c->machine, &c->plan));
    TRY(pool_new((i32)c->threads, &c->pool));
    TRY(store_new(&c->net, optim_find("adam"), &c->store));
    TRY(step_bind(c->plan, &c->net, kern_best(), c->pool, &c->store, NULL, NULL, &c->x));
    for (i32 i = 0; i < c->net.nbuf; i++)
        if (c->net.buf[i].input) ARENA_NEW(&c->arena, c->input[i], buf_floats(&c->net.buf[i], c->plan->B));
    rows(c);
    return 0;
}

/* Reads the first n floats of a file. */
static err raw(const char *dir, const char *name, i64 n, f32 *out) {
    char path[PATHS];
    snprintf(path, sizeof path, "%s/%s.f32", dir, name);
    FILE *f = fopen(path, "rb");
    const size_t got = f ? fread(out, sizeof *out, (size_t)n, f) : 0;
    if (f) fclose(f);
    return got == (size_t)n ? 0 : FAIL(E1, "%s: %lld floats are wanted", path, (long long)n);
}

static err weights(struct cut *c, const char *dir, f32 *most) {
    for (i32 l = 0; l < c->net.nop; l++) {
        const struct op *op = &c->net.op[l];
        struct tensor_info info[8];
        const i32 n = op->layer->tensors ? op->layer->tensors(op, info) : 0;
        for (i32 t = 0; t < n; t++) {
            TRY(raw(dir, info[t].name, (i64)info[t].rows * (info[t].cols ? info[t].cols : 1), most));
            layer_load(op, t, most, c->store.theta + op->theta0);
        }
    }
    return 0;
}

/* Writes every tensor of theta (or of a gradient with the same layout) to its file. */
err cut_save(const struct cut *c, const f32 *theta, const char *dir) {
    f32 *canonical = mem_alloc((size_t)(8 * c->H * (c->H + c->I + 1)) * sizeof *canonical);
    err e = canonical ? 0 : -E601;
    for (i32 l = 0; l < c->net.nop; l++) {
        const struct op *op = &c->net.op[l];
        struct tensor_info info[8];
        const i32 n = op->layer->tensors ? op->layer->tensors(op, info) : 0;
        for (i32 t = 0; t < n && e == 0; t++) {
            char path[PATHS];
            snprintf(path, sizeof path, "%s/%s.f32", dir, info[t].name);
            layer_store(op, t, theta + op->theta0, canonical);
            const size_t size = (size_t)info[t].rows * (size_t)(info[t].cols ? info[t].cols : 1);
            FILE *f = fopen(path, "wb");
            const size_t put = f ? fwrite(canonical, sizeof *canonical, size, f) : 0;
            if (f) fclose(f);
            if (put != size) e = FAIL(E1, "%s cannot be written", path);
        }
    }
    mem_free(canonical);
    return e;
}

/* Reads a series [T][B][F] and arranges it as rows of slices. */
static err series(struct cut *c, const char *dir, const char *name, i32 buf, f32 *all_of_it) {
    const struct buf *b = &c->net.buf[buf];
    TRY(raw(dir, name, c->T * c->B * b->F, all_of_it));
    for (i64 k = 0; k < c->P; k++)
        for (i64 t = 0; t < cut_steps(c); t++)
            for (i64 w = 0; w < c->B; w++)
                for (i64 f = 0; f < b->F; f++)
                    c->input[buf][(t * c->B * c->P + k * c->B + w) * buf_fp(b) + f] =
                        t < len_of(c, k)      ? all_of_it[((first_of(c, k) + t) * c->B + w) * b->F + f]
                        : buf == c->target    ? (f32)NAN
                                              : 0;
    return 0;
}

err cut_load(struct cut *c, const char *dir) {
    f32 *most = mem_alloc((size_t)(c->T * c->B * (c->I > 1 ? c->I : 1) + 8 * c->H * (c->H + c->I + 1)) * sizeof *most);
    if (!most) return -E601;
    err e = weights(c, dir, most);
    if (e == 0) e = series(c, dir, "x", c->in, most);
    if (e == 0) e = series(c, dir, "y", c->target, most);
    mem_free(most);
    return e;
}

err cut_train(struct cut *c, f64 rate) {
    struct exec_result out;
    struct step_args s = {.input = c->input, .loss_scale = 1.f / (f32)(c->T * c->B), .seed = 1, .step = c->step++};
    s.hyper = (struct optim_hyper){.lr = (f32)rate, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .grad_scale = 1};
    s.hyper.step = c->step;
    s.warm = c->stale > 0;
    TRY(step_run(c->x, &s, &out));
    c->loss = out.loss;
    return 0;
}

static f64 seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (f64)t.tv_sec + 1e-9 * (f64)t.tv_nsec;
}

struct watch watch_begin(void) { return (struct watch){seconds_of(CLOCK_PROCESS_CPUTIME_ID), seconds_of(CLOCK_MONOTONIC)}; }

f64 watch_end(const struct watch *w, f64 *seconds) {
    *seconds = seconds_of(CLOCK_MONOTONIC) - w->wall;
    return (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - w->cpu) / *seconds;
}

err cut_timed(struct cut *c, f64 *ms) {
    f64 most = 0, took;
    for (i32 k = 0; k < STEP_TRIES && most < STEP_SHARE * (f64)c->threads; k++) {
        const struct watch w = watch_begin();
        TRY(cut_train(c, 0));
        const f64 cores = watch_end(&w, &took);
        if (cores > most) *ms = 1e3 * took;
        most = fmax(most, cores);
    }
    return 0;
}
