/* t_tune.c - autotuning: a table of cells with known times, the real kernels, short runs, disabled wisdom. */
#include "t.h"

#include "base/clock.h"
#include "base/mem.h"
#include "tune/tune.h"

/* Cells that only sleep: folding is slow in f32, and f32 slower than bf16. */
static void idle(f64 seconds) {
    f64 until = clock_now() + seconds;
    while (clock_now() < until) {
    }
}

static i64 floats4(i32 T, i32 B, i32 I, i32 H) { return (i64)T * B * (I + H); }
static i64 floats2(i32 I, i32 H) { return I + H; }
static void prep(i32 I, i32 H, const f32 *w, f32 *wt) { (void)I, (void)H, (void)w, (void)wt; }
static void fwd(const struct cell_args *b, i32 b0, i32 b1, i32 t0, i32 t1) {
    (void)b0, (void)b1, (void)t0, (void)t1;
    idle(b->how == CELL_FOLD ? 200e-6 : 50e-6);
}
static void bwd(const struct cell_args *b, i32 b0, i32 b1, i32 t0, i32 t1) {
    (void)b, (void)b0, (void)b1, (void)t0, (void)t1;
    idle(100e-6);
}
static void bwd16(const struct cell_args *b, i32 b0, i32 b1, i32 t0, i32 t1) { (void)b, (void)b0, (void)b1, (void)t0, (void)t1; }
static void dw(const struct cell_args *b, i32 b0, i32 b1, i32 t0, i32 t1, f32 *w, f32 *bias) {
    (void)b, (void)b0, (void)b1, (void)t0, (void)t1;
    w[0] += 1;
    bias[0] += 1;
}

static const struct kern fake = {
    .arch = KERN_AMX,
    .name = "fake",
    .cell[CELL_LSTM] = {.act_floats = floats4, .wt_floats = floats2, .prep = prep, .fwd = fwd, .bwd = bwd, .dw = dw},
    .bf16[CELL_LSTM] = {.act_floats = floats4, .wt_floats = floats2, .prep = prep, .fwd = fwd, .bwd = bwd16, .dw = dw},
};
static const struct tune_shape shape = {.cell = CELL_LSTM, .T = 10, .B = 4, .I = 3, .H = 20, .threads = 1, .rows = 4};

static struct wisdom empty(void) {
    struct wisdom w = {0};
    cpu_signature("test", w.cpu);
    return w;
}

TEST(tune_measures_once_and_remembers) {
    struct wisdom w = empty();
    const struct tune_entry *e;
    u32 how;
    T_OK(tune_how(&w, &fake, &shape, 1e3, &how, &e));
    assert_int_equal(how, CELL_AHEAD);
    assert_non_null(e);
    assert_true(e->fresh && e->seconds[0] > 150e-6 && e->seconds[1] < e->seconds[0]);
    w.entry[0].best = 0; /* a person's hand: what is written is what counts */
    T_OK(tune_how(&w, &fake, &shape, 1e3, &how, NULL));
    assert_int_equal(how, CELL_FOLD);
    assert_int_equal(w.n, 1);
    enum precision p;
    T_OK(tune_precision(&w, &fake, &shape, 1e3, &p, &e));
    assert_int_equal(p, PREC_BF16);
    assert_int_equal(w.n, 2);
    wisdom_close(&w);
}

TEST(tune_leaves_short_runs_to_the_kernels) {
    struct wisdom w = empty();
    const struct tune_entry *e;
    enum precision p;
    u32 how;
    T_OK(tune_how(&w, &fake, &shape, 0, &how, &e));
    assert_true(how == 0 && !e);
    T_OK(tune_how(&w, &fake, &shape, 0.9 * TUNE_WORTH * tune_cost(TUNE_HOW, &shape), &how, &e));
    assert_true(how == 0 && !e && w.n == 0);
    T_OK(tune_precision(&w, &fake, &shape, 0, &p, NULL));
    assert_int_equal(p, PREC_F32);
    w.off = true;
    T_OK(tune_how(&w, &fake, &shape, 1e6, &how, &e));
    assert_true(how == 0 && w.n == 0);
    T_OK(tune_how(NULL, &fake, &shape, 1e6, &how, &e));
    assert_true(how == 0 && !e);
}

TEST(tune_precision_needs_cells_that_have_it) {
    struct wisdom w = empty();
    struct tune_shape gru = shape;
    enum precision p;
    gru.cell = CELL_GRU; /* the fake table has none */
    T_OK(tune_precision(&w, &fake, &gru, 1e6, &p, NULL));
    assert_int_equal(p, PREC_F32);
    u32 how;
    T_OK(tune_how(&w, kern_get(KERN_REF), &shape, 1e6, &how, NULL)); /* the references have one variant */
    assert_true(how == 0 && w.n == 0);
    wisdom_close(&w);
}

/* fp32 takes three times as long as bf16, four workers share it: it wins.  Measured again where other programs disturb it. */
TEST(tune_precision_counts_who_shares_a_step) {
    struct wisdom w = empty();
    struct tune_shape team = shape;
    const struct tune_entry *e;
    enum precision p = PREC_BF16;
    team.threads = team.members = 4;
    for (i32 tries = 0; p != PREC_F32 && tries < 10; tries++) {
        wisdom_close(&w);
        w = empty();
        T_OK(tune_precision(&w, &fake, &team, 1e3, &p, &e));
    }
    assert_int_equal(p, PREC_F32);
    assert_true(e->seconds[0] > 30e-6 && e->seconds[0] < e->seconds[1]);
    wisdom_close(&w);
}

/* Real kernels of every set of this machine: times are there, memory goes back, and it takes about what tune_cost says. */
TEST(tune_runs_every_real_kernel) {
    static const struct tune_shape shapes[] = {
        {.T = 50, .B = 1, .I = 8, .H = 64, .threads = 1, .rows = 1},
        {.T = 3, .B = 64, .I = 5, .H = 33, .threads = 2, .rows = 32},
    };
    i64 live = mem_stats().live;
    for (i32 a = KERN_BASE; a < KERN_NARCH; a++) {
        const struct kern *k = kern_get((enum kern_arch)a);
        for (size_t i = 0; k && i < COUNT(shapes); i++)
            for (i32 kind = 0; kind < TUNE_NKIND; kind++) {
                struct tune_shape s = shapes[i];
                f64 seconds[TUNE_VARIANTS] = {0};
                s.cell = (enum cell_kind)(i % CELL_NKIND);
                if (kind == TUNE_PRECISION && !cell_at(k, s.cell, PREC_BF16)) continue;
                T_OK(tune_measure(k, (enum tune_kind)kind, &s, seconds));
                assert_true(seconds[0] > 0 && seconds[1] > 0 && seconds[0] < 1 && seconds[1] < 1);
                assert_int_equal(mem_stats().live, live);
            }
    }
    assert_true(tune_cost(TUNE_HOW, &shapes[0]) < 0.1);
}

TEST(tune_survives_every_refused_allocation) {
    i64 live = mem_stats().live;
    for (i64 nth = 1; nth < 60; nth++) {
        struct wisdom w = empty();
        u32 how;
        mem_fail_nth(nth);
        err e = tune_how(&w, &fake, &shape, 1e3, &how, NULL);
        mem_fail_nth(0);
        wisdom_close(&w);
        assert_int_equal(mem_stats().live, live);
        if (e == 0) return;
        assert_int_equal(e, -E601);
    }
    fail_msg("more than 60 allocations to measure");
}

T_MAIN(cmocka_unit_test(tune_measures_once_and_remembers), cmocka_unit_test(tune_leaves_short_runs_to_the_kernels),
       cmocka_unit_test(tune_precision_needs_cells_that_have_it), cmocka_unit_test(tune_precision_counts_who_shares_a_step),
       cmocka_unit_test(tune_runs_every_real_kernel),
       cmocka_unit_test(tune_survives_every_refused_allocation))
