/* fuzz_plan.c - any text as a plan: it is refused with E402, or it prints and parses to itself, and two steps on two threads
 * give the bits of the serial plan. This tests that the parser accepts valid steps only. A text with the word " unit " uses a
 * net whose layers can be split by units. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "step/step.h"
#include "plan/toy.h"

enum { B = 32 };
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void add(i64 n, f32 *y, const f32 *x) {
    for (i64 i = 0; i < n; i++) y[i] += x[i];
}

static f64 sumsq(i64 n, const f32 *x) {
    f64 s = 0;
    for (i64 i = 0; i < n; i++) s += (f64)x[i] * (f64)x[i];
    return s;
}

static void step_down(const struct optim_hyper *h, i64 n, f32 *theta, const f32 *grad, f32 *s0, f32 *s1) {
    (void)s1;
    for (i64 i = 0; i < n; i++) theta[i] -= h->lr * (s0[i] = grad[i] * h->grad_scale + 0.5f * s0[i]);
}

static void blocks(i64 n, i64 block, const f32 *x, f64 *sum) {
    for (i64 at = 0; at < n; at += block) sum[at / block] = sumsq(lmin(block, n - at), x + at);
}

static void copy(i64 rows, i64 n, f32 *to, i64 to_ld, const f32 *from, i64 from_ld) {
    for (i64 r = 0; r < rows; r++) copy_or_zero(to + r * to_ld, from ? from + r * from_ld : NULL, n);
}

static const struct kern kern = {.name = "toy", .add = add, .copy = copy, .sumsq = sumsq, .sumsq_blocks = blocks};
static const struct optim optim = {.name = "toy", .nstate = 1, .update = step_down};
static struct net nets[2];
static const struct net *net;
static struct machine machine;
static struct pool *pool;
static f32 x[TOY_T * B * 32], target[TOY_T * B * 16], wants[2][4096];

#define MUST(condition)            \
    do {                           \
        if (!(condition)) abort(); \
    } while (0)

static void run(const struct plan *p, f32 *theta) {
    struct store store;
    struct step *e;
    struct exec_result out;
    f32 *input[NET_BUFS] = {x, target};
    struct step_args s = {.input = input, .loss_scale = 0.01f, .clip = 1};
    s.hyper.lr = 0.1f;
    MUST(store_new(net, &optim, &store) == 0);
    for (i64 i = 0; i < net->ntheta; i++) store.theta[i] = rng_uniform(1, RNG_TEST, 0, (u64)i) - 0.5f;
    MUST(step_bind(p, net, &kern, pool, &store, NULL, NULL, &e) == 0);
    for (i32 k = 0; k < 2; k++) MUST(step_run(e, &s, &out) == 0);
    memcpy(theta, store.theta, (size_t)net->ntheta * sizeof *theta);
    step_free(e);
    store_free(&store);
}

static void begin(void) {
    struct plan *serial;
    if (pool) return;
    toy_net(&nets[0]);
    toy_team_net(&nets[1]);
    MUST(machine_parse("cpu*3", &machine) == 0);
    MUST(pool_new(2, &pool) == 0);
    for (i32 i = 0; i < TOY_T * B; i++) {
        for (i32 f = 0; f < TOY_F; f++) x[i * 32 + f] = rng_uniform(1, RNG_TEST, 1, (u64)(i * 32 + f));
        for (i32 f = 0; f < TOY_OUT; f++) target[i * 16 + f] = rng_uniform(1, RNG_TEST, 2, (u64)(i * 16 + f));
    }
    for (i32 k = 0; k < 2; k++) {
        net = &nets[k];
        struct plan_request q = {.net = net, .machine = &machine, .B = B, .train = true, .nstate = 1, .parallel = "serial"};
        MUST(plan_make(&q, &serial) == 0);
        run(serial, wants[k]);
        plan_free(serial);
    }
}

static void same_step(const struct plan *p, const struct plan_request *q) {
    struct str a = {0}, b = {0};
    struct plan *again;
    f32 got[4096];
    plan_print(p, net, &a);
    MUST(plan_parse(str_text(&a), "printed", q, &again) == 0);
    plan_print(again, net, &b);
    MUST(strcmp(str_text(&a), str_text(&b)) == 0);
    plan_free(again);
    str_free(&a);
    str_free(&b);
    run(p, got);
    MUST(memcmp(got, wants[net - nets], (size_t)net->ntheta * sizeof(f32)) == 0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
    begin();
    char *text = mem_alloc(size + 1); /* zeroed: ends with NUL */
    if (!text) return 0;
    memcpy(text, data, size);
    net = &nets[strstr(text, " unit ") != NULL];
    struct plan_request q = {.net = net, .machine = &machine, .B = B, .train = true, .nstate = 1, .parallel = "auto"};
    struct plan *p;
    err e = plan_parse(text, "plan", &q, &p);
    MUST(e == 0 || e == -E402 || e == -E401);
    if (e == 0) same_step(p, &q);
    plan_free(p);
    mem_free(text);
    return 0;
}
