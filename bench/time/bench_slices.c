/* bench_slices.c - one long series as whole steps and as slices of time: full training steps, on orders from run.py.
 *
 *     case T=65536 B=1 I=8 H=128 layers=1 P=16 threads=2 prec=fp32 tol=1e-6      -> ok N     P=1: whole, units shared out
 *     load N DIR           PyTorch's tensors and x, y as raw f32 files                -> ok
 *     save N DIR, grad N DIR   the tensors, or the last gradients of them, as raw f32 files              -> ok
 *     step N K [RATE]      K training steps (forward, loss at every step, backward, Adam; rate 0)       -> ok ms ms ..
 *     loss N               of the last step                                                             -> ok 0.0123
 *     grads N M            largest relative L2 distance of a tensor's gradient, and of the losses       -> ok 3.1e-07 1.2e-08
 *     chain N              rounds, serial rounds, again / first, w; forward and backward, each layer    -> ok 2 0 0.06 240 2 ..
 *     trace N              one step, task by task: name, lane, ms                   -> ok fwd_lstm:0:12.3 ..
 *     plan N               predicted ms of the step with w as given                                     -> ok ms
 *
 * One process runs all variants, so that run.py can take turns between them and PyTorch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "exec/chain.h"
#include "exec/exec.h"
#include "model/layer.h"

enum { CASES = 64, LINE = 512, PATHS = 640, LAYERS = 8 };

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
static struct cut *all[CASES];
static i32 count;

static i64 steps_of(const struct cut *c) { return (c->T + c->P - 1) / c->P; }
static i64 len_of(const struct cut *c, i64 k) { return c->T / c->P + (k < c->T % c->P); }
static i64 first_of(const struct cut *c, i64 k) { return k * (c->T / c->P) + (k < c->T % c->P ? k : c->T % c->P); }

static err layers(struct cut *c) {
    struct net *n = &c->net;
    i32 op, length = -1, after = -1, T = (i32)steps_of(c);
    net_init(n);
    TRY(net_input(n, "x", T, (i32)c->I, false, &c->in));
    if (c->T % c->P) TRY(net_input(n, "length", 1, 1, true, &length));
    if (c->P > 1) TRY(net_input(n, "after", 1, 1, true, &after));
    i32 from = c->in;
    for (i32 k = 0; k < c->layers; k++) {
        char name[16];
        snprintf(name, sizeof name, "lstm.%d", k);
        struct op_spec l = net_spec("recurrent", name, from);
        l.cell = CELL_LSTM, l.units = (i32)c->H, l.precision = c->prec, l.in[2] = length, l.in[3] = after;
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

static err bind(struct cut *c) {
    char text[32];
    TRY(layers(c));
    snprintf(text, sizeof text, "cpu*%d", (int)c->threads);
    TRY(machine_parse(text, &c->machine));
    const struct optim *adam = optim_find("adam");
    struct plan_request q = {.net = &c->net,
                             .machine = &c->machine,
                             .B = (i32)(c->B * c->P),
                             .train = true,
                             .nstate = adam->nstate,
                             .parallel = c->P > 1 ? "time" : "auto",
                             .slices = (i32)c->P,
                             .course = {.tol = (f32)c->tol}};
    TRY(plan_make(&q, &c->plan));
    TRY(pool_new((i32)c->threads, &c->pool));
    TRY(store_new(&c->net, adam, &c->store));
    TRY(exec_bind(c->plan, &c->net, kern_best(), c->pool, &c->store, &c->x));
    for (i32 i = 0; i < c->net.nbuf; i++)
        if (c->net.buf[i].input) ARENA_NEW(&c->arena, c->input[i], buf_floats(&c->net.buf[i], q.B));
    rows(c);
    return 0;
}

/* A file of n floats, n at most what it holds. */
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
            op->layer->load(op, t, most, c->store.theta + op->theta0);
        }
    }
    return 0;
}

/* Every tensor of theta (or of a gradient, which lies like theta) to a file of its own. */
static err save(const struct cut *c, const f32 *theta, const char *dir) {
    f32 *canonical = mem_alloc((size_t)(8 * c->H * (c->H + c->I + 1)) * sizeof *canonical);
    err e = canonical ? 0 : -E601;
    for (i32 l = 0; l < c->net.nop; l++) {
        const struct op *op = &c->net.op[l];
        struct tensor_info info[8];
        const i32 n = op->layer->tensors ? op->layer->tensors(op, info) : 0;
        for (i32 t = 0; t < n && e == 0; t++) {
            char path[PATHS];
            snprintf(path, sizeof path, "%s/%s.f32", dir, info[t].name);
            op->layer->store(op, t, theta + op->theta0, canonical);
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

/* The series [T][B][F] of a file as rows of slices. */
static err series(struct cut *c, const char *dir, const char *name, i32 buf, f32 *all_of_it) {
    const struct buf *b = &c->net.buf[buf];
    TRY(raw(dir, name, c->T * c->B * b->F, all_of_it));
    for (i64 k = 0; k < c->P; k++)
        for (i64 t = 0; t < steps_of(c); t++)
            for (i64 w = 0; w < c->B; w++)
                for (i64 f = 0; f < b->F; f++)
                    c->input[buf][(t * c->B * c->P + k * c->B + w) * buf_fp(b) + f] =
                        t < len_of(c, k)      ? all_of_it[((first_of(c, k) + t) * c->B + w) * b->F + f]
                        : buf == c->target    ? (f32)NAN
                                              : 0;
    return 0;
}

static err load(struct cut *c, const char *dir) {
    f32 *most = mem_alloc((size_t)(c->T * c->B * (c->I > 1 ? c->I : 1) + 8 * c->H * (c->H + c->I + 1)) * sizeof *most);
    if (!most) return -E601;
    err e = weights(c, dir, most);
    if (e == 0) e = series(c, dir, "x", c->in, most);
    if (e == 0) e = series(c, dir, "y", c->target, most);
    mem_free(most);
    return e;
}

static err train(struct cut *c, f64 rate) {
    struct exec_result out;
    struct exec_step s = {.input = c->input, .loss_scale = 1.f / (f32)(c->T * c->B), .seed = 1, .step = c->step++};
    s.hyper = (struct optim_hyper){.lr = (f32)rate, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .grad_scale = 1};
    s.hyper.step = c->step;
    TRY(exec_step(c->x, &s, &out));
    c->loss = out.loss;
    return 0;
}

static f64 now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (f64)t.tv_sec + 1e-6 * (f64)t.tv_nsec;
}

static err do_case(char *words) {
    if (count == CASES) return FAIL(E1, "no more than %d cases", CASES);
    struct cut *c = mem_alloc(sizeof *c);
    if (!c) return -E601;
    *c = (struct cut){.T = 1024, .B = 1, .I = 8, .H = 128, .P = 1, .threads = 1, .layers = 1};
    for (char *w = strtok_r(words, " \n", &words); w; w = strtok_r(NULL, " \n", &words)) {
        static const char *const name[] = {"T", "B", "I", "H", "P", "threads", "layers"};
        i64 *const to[] = {&c->T, &c->B, &c->I, &c->H, &c->P, &c->threads, &c->layers};
        char *value = strchr(w, '=');
        if (!value) return FAIL(E1, "%s: NAME=VALUE is wanted", w);
        *value++ = 0;
        for (size_t i = 0; i < COUNT(to); i++)
            if (strcmp(w, name[i]) == 0) str_to_i64(value, strlen(value), to[i]);
        if (strcmp(w, "prec") == 0) c->prec = strcmp(value, "bf16") == 0 ? PREC_BF16 : PREC_F32;
        if (strcmp(w, "tol") == 0) str_to_f64(value, strlen(value), '.', &c->tol);
    }
    if (c->layers < 1 || c->layers > LAYERS) return FAIL(E1, "layers=1 to %d", LAYERS);
    TRY(bind(c));
    all[count++] = c;
    printf("ok %d\n", (int)count - 1);
    return 0;
}

static err do_step(struct cut *c, i64 n, f64 rate) {
    printf("ok");
    for (i64 i = 0; i < n; i++) {
        const f64 t = now();
        TRY(train(c, rate));
        printf(" %.4f", now() - t);
    }
    printf("\n");
    return 0;
}

static void do_grads(const struct cut *a, const struct cut *b) {
    f64 worst = 0;
    for (i32 l = 0; l < a->net.nop; l++) {
        const struct op *op = &a->net.op[l];
        f64 diff = 0, size = 0;
        for (i64 i = op->theta0; i < op->theta0 + op->ntheta; i++) {
            const f64 x = (f64)exec_grad(a->x)[i], y = (f64)exec_grad(b->x)[i];
            diff += (x - y) * (x - y);
            size += y * y;
        }
        if (size > 0) worst = fmax(worst, sqrt(diff / size));
    }
    printf("ok %.3e %.3e\n", worst, fabs(a->loss - b->loss) / b->loss);
}

static err do_chain(struct cut *c) {
    i32 *sorted = mem_alloc((size_t)(c->B * c->P) * sizeof *sorted);
    if (!sorted) return -E601;
    printf("ok");
    for (i32 i = 0; i < 2 * c->layers; i++) {
        const struct chain_trace *t = exec_chain(c->x, c->lstm[i / 2], i % 2 == 1);
        if (t) printf(" %d %d %.4f %d", t->rounds, t->serial, (f64)t->again / (f64)t->first, chain_forgets(t, sorted));
    }
    printf("\n");
    mem_free(sorted);
    return 0;
}

static err do_trace(struct cut *c) {
    static struct task_span span[4096];
    exec_trace(c->x, true);
    const f64 t = now();
    TRY(train(c, 0));
    const f64 ms = now() - t;
    const i32 n = exec_spans(c->x, span, COUNT(span));
    printf("ok step:0:%.3f", ms);
    for (i32 i = 0; i < n; i++) {
        for (char *p = span[i].name; *p; p++) *p = *p == ' ' ? '_' : *p;
        if (span[i].t1 - span[i].t0 > 1e-4 * ms / 1e3)
            printf(" %s:%d:%.3f", span[i].name, span[i].lane, 1e3 * (span[i].t1 - span[i].t0));
    }
    printf("\n");
    exec_trace(c->x, false);
    return 0;
}

static err obey(char *line) {
    char word[16], rest[LINE];
    int a = -1, b = -1;
    if (sscanf(line, "%15s %511[^\n]", word, rest) < 1) return 0;
    if (strcmp(word, "case") == 0) return do_case(rest);
    double rate = 0;
    if (sscanf(rest, "%d %d %lf", &a, &b, &rate) < 1 || a < 0 || a >= count) return FAIL(E1, "no such case");
    const char *dir = strchr(rest, ' ') ? strchr(rest, ' ') + 1 : ".";
    const bool files = strcmp(word, "load") == 0 || strcmp(word, "save") == 0 || strcmp(word, "grad") == 0;
    if (files) {
        TRY(word[0] == 'l' ? load(all[a], dir) : save(all[a], word[0] == 's' ? all[a]->store.theta : exec_grad(all[a]->x), dir));
        printf("ok\n");
        return 0;
    }
    if (strcmp(word, "loss") == 0) return printf("ok %.9g\n", all[a]->loss), 0;
    if (strcmp(word, "step") == 0) return do_step(all[a], b, rate);
    if (strcmp(word, "trace") == 0) return do_trace(all[a]);
    if (strcmp(word, "chain") == 0) return do_chain(all[a]);
    if (strcmp(word, "grads") == 0 && b >= 0 && b < count) return do_grads(all[a], all[b]), 0;
    if (strcmp(word, "plan") == 0) return printf("ok %.3f %s\n", 1e3 * all[a]->plan->predicted, all[a]->plan->strategy), 0;
    return FAIL(E1, "what is \"%s\"?", word);
}

int main(void) {
    char line[LINE];
    if (kern_init() < 0) return 1;
    while (fgets(line, sizeof line, stdin) && strncmp(line, "quit", 4) != 0) {
        if (obey(line) < 0) printf("error %s\n", err_last()->text);
        fflush(stdout);
    }
    return 0;
}
