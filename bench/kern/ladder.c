/* ladder.c - one line for every kernel slot on every instruction set of this machine, to find which kernel became slower.
 *
 *     lstm.fwd  avx512  T16 B32 I16 H64    ns per call, GF/s, fraction of that set's FMA rate   bench_kern --ladder
 *     lstm.fwd  avx512  1234567            instructions of one call, smaller shape              bench_kern --count
 *
 * Times vary with the machine and its load, instruction counts do not: the test compares counts (bench/kern/ladder.py,
 * bench/baseline.tsv). Valgrind's callgrind counts ref, base and avx2. It supports neither AVX-512 nor AMX, so there the
 * processor single-steps: with the trap flag set it raises SIGTRAP after every instruction, and the handler counts. That costs
 * ~20 us per instruction under a hypervisor, hence the small shape. A slot shared with a lower set is listed once. */
#define _GNU_SOURCE
#include "ladder.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(BENCH_CALLGRIND)
#include <valgrind/callgrind.h>
#endif
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include "base/arena.h"
#include "base/clock.h"
#include "calib.h"
#if defined(BENCH_STEP)
#include "model/optim/optim.h"
#endif
#include "rig.h"

enum { CALLS = 31 };
struct size {
    i32 T, B, I, H;
};
static const struct size timed = {16, 32, 16, 64}, counted = {3, 7, 5, 32};

/* Arguments of all slots. */
struct bench {
    const struct kern *k;
    const struct cell_kern *cell;
    const struct optim *optim;
    struct size s;
    struct cell_args box;
    f32 *kept, *dw, *dbias, *v[5], *fresh; /* kept: act after forward; fresh: initial v[0] */
    i64 act, n;                            /* floats of act, of v */
    f64 sum;
    struct arena arena;
};

struct slot {
    char name[32];
    const char *isa;
    f64 flop; /* 0 = element-wise */
    void (*before)(struct bench *b);
    void (*run)(struct bench *b);
};

static void nothing(struct bench *b) { (void)b; }
static void restore(struct bench *b) { memcpy(b->box.act, b->kept, (size_t)b->act * sizeof(f32)); }
static void renew(struct bench *b) { memcpy(b->v[0], b->fresh, (size_t)b->n * sizeof(f32)); }
static void run_prep(struct bench *b) { b->cell->prep(b->s.I, b->s.H, b->box.w, (f32 *)(uintptr_t)b->box.wt); }
static void run_fwd(struct bench *b) { b->cell->fwd(&b->box, 0, b->s.B, 0, b->s.T); }
static void run_bwd(struct bench *b) { b->cell->bwd(&b->box, 0, b->s.B, 0, b->s.T); }
static void run_dw(struct bench *b) { b->cell->dw(&b->box, 0, b->s.B, 0, b->s.T, b->dw, b->dbias); }
static void run_point_fwd(struct bench *b) { b->cell->point_fwd(b->s.B, b->s.H, b->v[0], b->v[1], b->v[2], b->v[3]); }
static void run_point_bwd(struct bench *b) { b->cell->point_bwd(b->s.B, b->s.H, b->v[0], b->v[1], b->v[2], b->v[3], b->v[4]); }
static void run_gemm_nn(struct bench *b) {
    b->k->gemm_nn(b->s.B, b->s.H, b->s.H, b->v[0], b->s.H, b->v[1], b->s.H, b->v[2], b->s.H, false);
}
static void run_gemm_tn(struct bench *b) {
    b->k->gemm_tn(b->s.H, b->s.H, b->s.B, b->v[0], b->s.H, b->v[1], b->s.H, b->v[2], b->s.H, false);
}
static void run_add(struct bench *b) { b->k->add(b->n, b->v[0], b->v[1]); }
static void run_sigmoid(struct bench *b) { b->k->sigmoid(b->n, b->v[0], b->v[1]); }
static void run_tanh(struct bench *b) { b->k->tanh(b->n, b->v[0], b->v[1]); }
static void run_sumsq(struct bench *b) { b->sum = b->k->sumsq(b->n, b->v[1]); }
#if defined(BENCH_STEP)
static void run_optim(struct bench *b) {
    const struct optim_hyper h = {
        .lr = 1e-3f, .momentum = 0.9f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .grad_scale = 1, .step = 3};
    b->optim->update(&h, b->n, b->v[0], b->v[1], b->v[2], b->v[3]);
}
#endif

/* ------------------------------------------------------------------ buffers ------------------------------------------------- */

static f32 *drawn(struct bench *b, i64 n, f32 scale) {
    f32 *p = arena_new(&b->arena, (size_t)lmax(n, 1) * sizeof *p);
    if (!p) {
        fprintf(stderr, "bench_kern: no memory\n");
        exit(1);
    }
    if (scale > 0) raw_draw(n, scale, p);
    return p;
}

static void vectors(struct bench *b) {
    b->n = (i64)b->s.B * round_up(b->s.H, LANES) * 4;
    for (i32 i = 0; i < 5; i++) b->v[i] = drawn(b, lmax(b->n, (i64)b->s.H * b->s.H), 1);
    b->fresh = drawn(b, b->n, 0);
    memcpy(b->fresh, b->v[0], (size_t)b->n * sizeof(f32));
    for (i64 i = 0; i < b->n; i++) b->v[3][i] = fabsf(b->v[3][i]); /* second moments */
}

static void bind_cell(struct bench *b, enum cell_kind kind) {
    const struct size s = b->s;
    const i64 TB = (i64)s.T * s.B, Hp = round_up(s.H, LANES), nw = cell_w_floats(kind, s.I, s.H),
              nb = cell_bias_floats(kind, s.H);
    b->act = b->cell->act_floats(s.T, s.B, s.I, s.H);
    b->box = (struct cell_args){.T = s.T, .B = s.B, .I = s.I, .H = s.H, .x_ld = s.I, .dx_ld = s.I};
    b->box.x = drawn(b, TB * s.I, 2), b->box.y = drawn(b, TB * Hp, 0), b->box.act = drawn(b, b->act, 0);
    b->box.w = drawn(b, nw, 2 / sqrtf((f32)s.H)), b->box.bias = drawn(b, nb, 0.1f),
    b->box.wt = drawn(b, b->cell->wt_floats(s.I, s.H), 0);
    b->box.dy = drawn(b, TB * Hp, 1), b->box.carry = drawn(b, 2 * s.B * Hp, 0);
    b->kept = drawn(b, b->act, 0), b->dw = drawn(b, nw, 0), b->dbias = drawn(b, nb, 0);
    run_prep(b);
    run_fwd(b);
    memcpy(b->kept, b->box.act, (size_t)b->act * sizeof(f32));
}

/* ------------------------------------------------------------------ which slots --------------------------------------------- */

typedef void visit(struct bench *b, const struct slot *s);

/* The next lower table; a slot with the same function there has been listed. */
static const struct kern *lower(enum kern_arch a) {
    while (a-- > 0)
        if (kern_get(a)) return kern_get(a);
    return NULL;
}

static void cells(const struct kern *k, const struct kern *low, struct size s, visit *f) {
    static const char *const kinds[CELL_NKIND] = {"lstm", "gru", "rnn"}, *const precs[PREC_N] = {"", ".bf16"};
    for (enum precision p = 0; p < PREC_N; p++)
        for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
            const struct cell_kern *c = cell_at(k, kind, p), *below = low ? cell_at(low, kind, p) : NULL;
            if (!c || (below && below->fwd == c->fwd)) continue;
            struct bench b = {.k = k, .cell = c, .s = s};
            vectors(&b);
            bind_cell(&b, kind);
            const f64 side = 2.0 * s.T * s.B * cell_gates(kind) * s.H;
            const struct slot slots[] = {
                {"prep", k->name, 0, nothing, run_prep},         {"fwd", k->name, side * (s.I + s.H), nothing, run_fwd},
                {"bwd", k->name, side * s.H, restore, run_bwd},  {"dw", k->name, side * (s.I + s.H), nothing, run_dw},
                {"point_fwd", k->name, 0, renew, run_point_fwd}, {"point_bwd", k->name, 0, renew, run_point_bwd}};
            for (size_t i = 0; i < COUNT(slots); i++) {
                struct slot one = slots[i];
                snprintf(one.name, sizeof one.name, "%.4s%.5s.%.12s", kinds[kind], precs[p], slots[i].name);
                if (i < 4 || (c->point_fwd && c->point_bwd)) f(&b, &one);
            }
            arena_free(&b.arena);
        }
}

static void plain(const struct kern *k, const struct kern *low, struct size s, visit *f) {
    struct bench b = {.k = k, .s = s};
    vectors(&b);
    const f64 flop = 2.0 * s.B * s.H * s.H;
    const struct {
        struct slot slot;
        bool known;
    } slots[] = {{{"gemm_nn", k->name, flop, nothing, run_gemm_nn}, low && low->gemm_nn == k->gemm_nn},
                 {{"gemm_tn", k->name, flop, nothing, run_gemm_tn}, low && low->gemm_tn == k->gemm_tn},
                 {{"add", k->name, 0, nothing, run_add}, low && low->add == k->add},
                 {{"sumsq", k->name, 0, nothing, run_sumsq}, low && low->sumsq == k->sumsq},
                 {{"sigmoid", k->name, 0, nothing, run_sigmoid}, low && low->sigmoid == k->sigmoid},
                 {{"tanh", k->name, 0, nothing, run_tanh}, low && low->tanh == k->tanh}};
    for (size_t i = 0; i < COUNT(slots); i++)
        if (!slots[i].known) f(&b, &slots[i].slot);
    arena_free(&b.arena);
}

#if defined(BENCH_STEP)
static void optimisers(struct size s, visit *f) {
    for (i32 i = 0; i < optim_count(); i++) {
        struct bench b = {.k = kern_get(KERN_REF), .optim = optim_at(i), .s = s};
        vectors(&b);
        struct slot one = {"", "any", 0, renew, run_optim};
        snprintf(one.name, sizeof one.name, "%s", b.optim->name);
        f(&b, &one);
        arena_free(&b.arena);
    }
}
#else
static void optimisers(struct size s, visit *f) { (void)s, (void)f; }
#endif

/* ------------------------------------------------------------------ seconds ------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    return (*(const f64 *)a > *(const f64 *)b) - (*(const f64 *)a < *(const f64 *)b);
}

static void time_slot(struct bench *b, const struct slot *s) {
    f64 ns[CALLS];
    for (i32 i = -3; i < CALLS; i++) {
        s->before(b);
        const f64 t = clock_now();
        s->run(b);
        if (i >= 0) ns[i] = (clock_now() - t) * 1e9;
    }
    qsort(ns, CALLS, sizeof *ns, by_value);
    const f64 mid = ns[CALLS / 2], peak = s->flop > 0 ? calib_fma() : 0;
    if (s->flop > 0)
        printf("%-22s %-12s %12.0f ns %9.1f GF/s %6.1f %%\n", s->name, s->isa, mid, s->flop / mid, 100 * s->flop / mid / peak);
    else
        printf("%-22s %-12s %12.0f ns %9s      %6s\n", s->name, s->isa, mid, "-", "-");
    fflush(stdout);
}

err ladder_time(void) {
    for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
        if (!kern_get(a)) continue;
        TRY(calib_init(kern_get(a)));
        cells(kern_get(a), lower(a), timed, time_slot);
        plain(kern_get(a), lower(a), timed, time_slot);
    }
    optimisers(timed, time_slot);
    return 0;
}

/* ------------------------------------------------------------------ instructions -------------------------------------------- */

#if defined(__x86_64__)
static volatile u64 trapped;
static void on_trap(int number) {
    (void)number;
    trapped++;
}
#define FLAGS(change) __asm__ volatile("sub $128, %%rsp\n pushfq\n " change "\n popfq\n add $128, %%rsp" ::: "memory", "cc")

static u64 step_through(struct bench *b, void (*run)(struct bench *b)) {
    trapped = 0;
    FLAGS("orq $0x100, (%%rsp)");
    run(b);
    FLAGS("andq $~0x100, (%%rsp)");
    return trapped;
}

static void count_slot(struct bench *b, const struct slot *s) {
    s->before(b);
    s->run(b); /* resolves lazily bound symbols */
    s->before(b);
    const u64 frame = step_through(b, nothing);
    printf("%s\t%s\t%llu\n", s->name, s->isa, (unsigned long long)(step_through(b, s->run) - frame));
    fflush(stdout);
}

static bool can_step(void) {
    static u8 stack[1 << 16]; /* a frame holds the vector and tile registers */
    const stack_t alt = {.ss_sp = stack, .ss_size = sizeof stack};
    const struct sigaction act = {.sa_handler = on_trap, .sa_flags = SA_ONSTACK};
    return sigaltstack(&alt, NULL) == 0 && sigaction(SIGTRAP, &act, NULL) == 0 && step_through(NULL, nothing) > 0;
}
#else
static void count_slot(struct bench *b, const struct slot *s) { (void)b, (void)s; }
static bool can_step(void) { return false; }
#endif

#if defined(BENCH_CALLGRIND)
static void callgrind_slot(struct bench *b, const struct slot *s) {
    char name[64];
    s->before(b);
    s->run(b);
    s->before(b);
    snprintf(name, sizeof name, "%s/%s", s->name, s->isa);
    CALLGRIND_ZERO_STATS;
    s->run(b);
    CALLGRIND_DUMP_STATS_AT(name);
}
static bool on_valgrind(void) { return RUNNING_ON_VALGRIND; }
#else
static void callgrind_slot(struct bench *b, const struct slot *s) { (void)b, (void)s; }
static bool on_valgrind(void) { return false; }
#endif

err ladder_count(void) {
    const bool under = on_valgrind();
#if defined(__GLIBC__)
    printf("# compiler %s, libc %s\n", __VERSION__, gnu_get_libc_version());
#else
    printf("# compiler %s, libc unknown\n", __VERSION__);
#endif
    if (!under && !can_step()) return FAIL(E103, "this machine does not let a program step through itself");
    for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
        if (!kern_get(a) || (!under && a < KERN_AVX512)) continue;
        cells(kern_get(a), lower(a), counted, under ? callgrind_slot : count_slot);
        plain(kern_get(a), lower(a), counted, under ? callgrind_slot : count_slot);
    }
    optimisers(counted, under ? callgrind_slot : count_slot);
    return 0;
}
