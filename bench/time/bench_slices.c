/* bench_slices.c - one long series, whole or in time slices: full training steps, controlled by commands from run.py.
 *
 *     case T=65536 B=1 I=8 H=128 layers=1 P=16 threads=2 prec=fp32 tol=1e-6      -> ok N     P=1: whole, split by units
 *                                                              stale=2: two rounds per step, from the previous final states
 *     load N DIR           PyTorch's tensors and x, y as raw f32 files                -> ok
 *     save N DIR, grad N DIR   writes the tensors, or their last gradients, as raw f32 files             -> ok
 *     step N K [RATE]      K training steps (forward, loss at every step, backward, Adam; rate 0: cut_timed) -> ok ms ms ..
 *     loss N               of the last step                                                             -> ok 0.0123
 *     grads N M            largest relative L2 distance of a tensor's gradient, and of the losses       -> ok 3.1e-07 1.2e-08
 *     chain N              rounds, serial rounds, rerun / first, w; forward and backward, each layer    -> ok 2 0 0.06 240 2 ..
 *     trace N              one step, per task: name, worker, ms                     -> ok fwd_lstm:0:12.3 ..
 *     plan N [W]           predicted ms of the step at the rate measured now; W: forget window, if known  -> ok ms
 *     sample N S           samples task times of one more step of N and parts of its rows on one thread; S: whole series -> ok
 *     tasks N D            the simulated step on D devices, per task: name, device, ms                  -> ok ..
 *     simulate N D D ..    from these: ms on D devices, devices with work, tasks with estimated times   -> ok ms 2 0 ..
 *
 * One process holds all variants, so that run.py can alternate them with PyTorch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "step/slices/solver.h"
#include "model/layer.h"
#include "step/planner.h"
#include "sampled.h"

enum { CASES = 64, LINE = 512, RATES = 6, RATE_ROUNDS = 50000 };

static struct cut *all[CASES];
static struct sampled *sampled[CASES];
static i32 count;

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
        static const char *const name[] = {"T", "B", "I", "H", "P", "threads", "layers", "stale"};
        i64 *const to[] = {&c->T, &c->B, &c->I, &c->H, &c->P, &c->threads, &c->layers, &c->stale};
        char *value = strchr(w, '=');
        if (!value) return FAIL(E1, "%s: NAME=VALUE is wanted", w);
        *value++ = 0;
        for (size_t i = 0; i < COUNT(to); i++)
            if (strcmp(w, name[i]) == 0) str_to_i64(value, strlen(value), to[i]);
        if (strcmp(w, "prec") == 0) c->prec = strcmp(value, "bf16") == 0 ? PREC_BF16 : PREC_F32;
        if (strcmp(w, "tol") == 0) str_to_f64(value, strlen(value), '.', &c->tol);
    }
    if (c->layers < 1 || c->layers > LAYERS) return FAIL(E1, "layers=1 to %d", LAYERS);
    TRY(cut_bind(c));
    all[count++] = c;
    printf("ok %d\n", (int)count - 1);
    return 0;
}

static err do_step(struct cut *c, i64 n, f64 rate) {
    printf("ok");
    for (i64 i = 0; i < n; i++) {
        const f64 t = now();
        f64 ms;
        if (rate > 0) TRY(cut_train(c, rate));
        else TRY(cut_timed(c, &ms));
        printf(" %.4f", rate > 0 ? now() - t : ms);
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
            const f64 x = (f64)step_grad(a->x)[i], y = (f64)step_grad(b->x)[i];
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
        const struct chain_trace *t = step_chain(c->x, c->lstm[i / 2], i % 2 == 1);
        if (t) printf(" %d %d %.4f %d", t->rounds, t->serial, (f64)t->again / (f64)t->first, chain_forgets(t, sorted));
    }
    printf("\n");
    mem_free(sorted);
    return 0;
}

static err do_trace(struct cut *c) {
    static struct task_span span[4096];
    exec_trace(step_exec(c->x), true);
    const f64 t = now();
    TRY(cut_train(c, 0));
    const f64 ms = now() - t;
    const i32 n = exec_spans(step_exec(c->x), span, COUNT(span));
    printf("ok step:0:%.3f", ms);
    for (i32 i = 0; i < n; i++) {
        for (char *p = span[i].name; *p; p++) *p = *p == ' ' ? '_' : *p;
        if (span[i].t1 - span[i].t0 > 1e-4 * ms / 1e3)
            printf(" %s:%d:%.3f", span[i].name, span[i].worker, 1e3 * (span[i].t1 - span[i].t0));
    }
    printf("\n");
    exec_trace(step_exec(c->x), false);
    return 0;
}

/* Prediction of the cost model at the measured rate, as `train` would compute it. */
static void do_plan(struct cut *c, i32 forgets) {
    f64 best = 0;
    for (i32 i = 0; i < RATES; i++) best = fmax(best, kern_best()->fma_rate(RATE_ROUNDS));
    machine_set_rate(&c->machine, "cpu", best);
    netplan(c->plan)->forgets = imax(0, forgets);
    plan_cost(c->plan, &c->net, &c->machine, NULL);
    printf("ok %.3f %s\n", 1e3 * c->plan->predicted, c->plan->strategy);
}

static err do_sample(i32 n, i32 serial) {
    if (!sampled[n]) {
        TRY(sampled_new(all[n], all[serial], &sampled[n]));
        TRY(sampled_step(sampled[n]));
    }
    TRY(sampled_step(sampled[n]));
    printf("ok\n");
    return 0;
}

static err do_simulate(i32 n, const char *devices) {
    if (!sampled[n]) return FAIL(E1, "nothing was sampled of %d", n);
    char out[LINE] = "";
    int used = 0, d, len = 0;
    while (sscanf(devices, "%d%n", &d, &used) == 1 && len < LINE - 64) {
        struct plan *p;
        u32 guessed;
        const err e = sampled_plan(sampled[n], d, &p, &guessed);
        if (e == 0) len += snprintf(out + len, (size_t)(LINE - len), " %.4f %d %u", 1e3 * p->predicted, p->ndevice, guessed);
        plan_free(p);
        TRY(e);
        devices += used;
    }
    printf("ok%s\n", out);
    return 0;
}

/* Like do_trace, for the simulated step. */
static err do_tasks(i32 n, i32 devices) {
    struct plan *p;
    u32 guessed;
    if (!sampled[n]) return FAIL(E1, "nothing was sampled of %d", n);
    const err e = sampled_plan(sampled[n], devices, &p, &guessed);
    if (e == 0) printf("ok step:0:%.3f", 1e3 * p->predicted);
    for (u32 i = 0; e == 0 && i < p->ntask; i++) {
        char name[64];
        plan_task_name(p, &all[n]->net, i, name);
        for (char *c = name; *c; c++) *c = *c == ' ' ? '_' : *c;
        const f64 cost = (f64)p->task[i].cost;
        if (cost > 1e-4 * p->predicted) printf(" %s:%u:%.3f", name, p->task[i].device, 1e3 * cost);
    }
    if (e == 0) printf("\n");
    plan_free(p);
    return e;
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
        const f32 *what = word[0] == 's' ? all[a]->store.theta : step_grad(all[a]->x);
        TRY(word[0] == 'l' ? cut_load(all[a], dir) : cut_save(all[a], what, dir));
        printf("ok\n");
        return 0;
    }
    if (strcmp(word, "loss") == 0) return printf("ok %.9g\n", all[a]->loss), 0;
    if (strcmp(word, "step") == 0) return do_step(all[a], b, rate);
    if (strcmp(word, "trace") == 0) return do_trace(all[a]);
    if (strcmp(word, "chain") == 0) return do_chain(all[a]);
    if (strcmp(word, "sample") == 0 && b >= 0 && b < count) return do_sample(a, b);
    if (strcmp(word, "simulate") == 0) return do_simulate(a, dir);
    if (strcmp(word, "tasks") == 0) return do_tasks(a, b);
    if (strcmp(word, "grads") == 0 && b >= 0 && b < count) return do_grads(all[a], all[b]), 0;
    if (strcmp(word, "plan") == 0) return do_plan(all[a], b), 0;
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
