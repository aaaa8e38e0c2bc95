/* t_chain.c - rounds of step/slices/solver.c on recurrences without a network: best paths over integers (max, +), and one in f64.
 * After j rounds the first j slices are those of the serial run; any number of workers gives the same; what never settles, or is
 * not a number, ends all the same. */
#include "t.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "base/rng.h"
#include "step/slices/solver.h"

enum { STATES = 5, SLICES = 12, LEN = 40, T = SLICES * LEN };

/* s'[j] = max_i (s[i] + move[i][j]) + here[t][j]: the scores of the best paths.  A state is the same up to a constant. */
struct paths {
    i32 here[T][STATES], move[STATES][STATES];
    i32 begin[SLICES][STATES], end[SLICES][STATES];
    i32 at[T][STATES]; /* scores after each step */
    i32 ran;
};

static void step(const struct paths *p, i32 t, const i32 *from, i32 *to) {
    for (i32 j = 0; j < STATES; j++) {
        i32 best = -1000000000;
        for (i32 i = 0; i < STATES; i++) best = imax(best, from[i] + p->move[i][j]);
        to[j] = best + p->here[t][j];
    }
}

static bool same_up_to_a_constant(const i32 *a, const i32 *b) {
    for (i32 i = 1; i < STATES; i++)
        if (a[i] - a[0] != b[i] - b[0]) return false;
    return true;
}

static struct paths *of(const struct chain *c) { return (struct paths *)(uintptr_t)c->self; }
static i32 before(const struct chain *c, i32 k) { return (void)c, k - 1; }
static f32 one(const struct chain *c, i32 k) { return (void)c, (void)k, 1; }
static void zeros(const struct chain *c, i32 k) { memset(of(c)->begin[k], 0, sizeof of(c)->begin[k]); }
static void hand(const struct chain *c, i32 k) { memcpy(of(c)->begin[k], of(c)->end[k - 1], sizeof of(c)->end[k]); }
static f32 fits(const struct chain *c, i32 k) { return same_up_to_a_constant(of(c)->end[k - 1], of(c)->begin[k]) ? 0 : 1; }

static void run(const struct chain *c, i32 k0, i32 k1, const u8 *todo, bool again, f32 tol, i32 *steps) {
    struct paths *p = of(c);
    for (i32 k = k0; k < k1; k++) {
        const i32 *from = p->begin[k];
        i32 fresh[STATES], t = k * LEN;
        for (; todo[k] && t < (k + 1) * LEN; t++) {
            step(p, t, from, fresh);
            const bool merged = again && tol == 0 && same_up_to_a_constant(fresh, p->at[t]);
            memcpy(p->at[t], fresh, sizeof fresh);
            from = p->at[t];
            if (!merged) continue;
            for (t++; t < (k + 1) * LEN; t++) step(p, t, from, p->at[t]), from = p->at[t]; /* the constant goes on to the end */
        }
        steps[k] = todo[k] ? t - k * LEN : 0;
        if (todo[k]) memcpy(p->end[k], p->at[(k + 1) * LEN - 1], sizeof p->end[k]);
    }
}

static const struct chain best_paths = {
    .nslice = SLICES, .prev = before, .guess = zeros, .run = run, .scale = one, .gap = fits, .take = hand};

/* keep: how much better it is to stay where one is; large = paths of long ago still matter. */
static void make(struct paths *p, u32 seed, i32 keep) {
    for (i32 t = 0; t < T; t++)
        for (i32 j = 0; j < STATES; j++) p->here[t][j] = (i32)(rng_uniform(seed, RNG_TEST, 1, (u64)(t * STATES + j)) * 100);
    for (i32 i = 0; i < STATES; i++)
        for (i32 j = 0; j < STATES; j++)
            p->move[i][j] = i == j ? keep : -(i32)(rng_uniform(seed, RNG_TEST, 2, (u64)(i * 8 + j)) * 50);
}

struct job {
    struct chain_solver *s;
    struct chain c;
    struct chain_course how;
    i32 n;
};

static void member(void *arg, i32 me) {
    struct job *j = arg;
    if (me < j->n) chain_solve(j->s, &j->c, &j->how, me, j->n, j->c.nslice * me / j->n, j->c.nslice * (me + 1) / j->n);
}

static struct chain_trace solve(struct chain c, struct chain_course how, i32 threads, struct arena *a) {
    struct job j = {.c = c, .how = how, .n = threads};
    struct pool *pool;
    T_OK(chain_solver_new(a, c.nslice, threads, &j.s));
    T_OK(pool_new(threads, &pool));
    pool_run(pool, member, &j);
    pool_free(pool);
    return j.s->trace;
}

static void serial(const struct paths *p, i32 (*out)[STATES]) {
    i32 from[STATES] = {0};
    for (i32 t = 0; t < T; t++) {
        step(p, t, from, out[t]);
        memcpy(from, out[t], sizeof from);
    }
}

static void best_paths_are_those_of_the_serial_run(void **state) {
    (void)state;
    static i32 want[T][STATES];
    for (u32 seed = 0; seed < 20; seed++) {
        for (i32 threads = 1; threads <= 4; threads++) {
            struct arena a = {0};
            struct paths *p = arena_new(&a, sizeof *p);
            struct chain c = best_paths;
            make(p, seed, (i32)seed * 4);
            c.self = p;
            serial(p, want);
            const struct chain_trace t = solve(c, (struct chain_course){0}, threads, &a);
            for (i32 k = 0; k < T; k++) assert_true(same_up_to_a_constant(p->at[k], want[k]));
            assert_memory_equal(p->at[LEN - 1], want[LEN - 1], sizeof want[0]);
            assert_in_range(t.rounds, 1, SLICES);
            assert_int_equal(t.nslice, SLICES);
            arena_free(&a);
        }
    }
}

/* s' = a s + u in f64, cut into slices: with |a| = 1 it never forgets, and every round settles one slice more. */
struct line {
    f64 a, begin[SLICES], end[SLICES], at[T];
    bool stop_nowhere;
};

static struct line *line_of(const struct chain *c) { return (struct line *)(uintptr_t)c->self; }
static void line_zero(const struct chain *c, i32 k) { line_of(c)->begin[k] = 0; }
static void line_hand(const struct chain *c, i32 k) { line_of(c)->begin[k] = line_of(c)->end[k - 1]; }
static f32 line_gap(const struct chain *c, i32 k) { return (f32)fabs(line_of(c)->end[k - 1] - line_of(c)->begin[k]); }

static void line_run(const struct chain *c, i32 k0, i32 k1, const u8 *todo, bool again, f32 tol, i32 *steps) {
    struct line *l = line_of(c);
    for (i32 k = k0; k < k1; k++) {
        f64 s = l->begin[k];
        i32 t = k * LEN;
        bool merged = false;
        for (; todo[k] && t < (k + 1) * LEN && !merged; t++) {
            s = l->a * s + sin(t);
            merged = again && fabs(s - l->at[t]) <= (f64)tol;
            l->at[t] = s;
        }
        steps[k] = todo[k] ? t - k * LEN : 0;
        if (todo[k]) l->end[k] = l->at[(k + 1) * LEN - 1];
    }
}

static const struct chain line_chain = {
    .nslice = SLICES, .prev = before, .guess = line_zero, .run = line_run, .scale = one, .gap = line_gap, .take = line_hand};

static struct chain_trace line_solve(struct line *l, f64 first, struct chain_course how, i32 threads, struct arena *a) {
    struct chain c = line_chain;
    c.self = l;
    l->begin[0] = first;
    return solve(c, how, threads, a);
}

static void what_never_forgets_takes_a_round_a_slice_and_is_exact(void **state) {
    (void)state;
    for (i32 threads = 1; threads <= 3; threads++) {
        struct arena a = {0};
        struct line l = {.a = 1};
        const struct chain_trace t = line_solve(&l, 2, (struct chain_course){.rounds = SLICES}, threads, &a);
        f64 s = 2;
        for (i32 k = 0; k < T; k++) {
            s = s + sin(k);
            assert_true(l.at[k] == s); /* the last bit */
        }
        assert_int_equal(t.rounds, SLICES);
        for (i32 r = 0; r < SLICES; r++) /* round r + 1 leaves alone the slices that were settled before */
            for (i32 k = 0; k < SLICES; k++) assert_int_equal(t.ran[r * SLICES + k], k >= r ? LEN : 0);
        arena_free(&a);
    }
}

static void what_forgets_takes_two_rounds_and_stops_early(void **state) {
    (void)state;
    struct arena a = {0};
    struct line l = {.a = 0.3};
    i32 sorted[SLICES];
    const struct chain_trace t = line_solve(&l, 2, (struct chain_course){.slice_tol = 1e-7f}, 2, &a);
    f64 s = 2;
    for (i32 k = 0; k < T; k++) {
        s = 0.3 * s + sin(k);
        assert_true(fabs(l.at[k] - s) < 1e-6);
    }
    assert_int_equal(t.rounds, 2);
    assert_int_equal(t.first, T);
    assert_in_range(chain_forgets(&t, sorted), 10, 20); /* 0.3^14 = 5e-8 */
    assert_in_range(t.again, 11 * 10, 11 * 20);
    arena_free(&a);
}

/* The rest goes one after another: the same numbers, no slice runs more than once after that. */
static void past_the_limit_the_rest_is_serial(void **state) {
    (void)state;
    struct arena a = {0};
    struct line l = {.a = 1}, m = {.a = 1};
    const struct chain_trace t = line_solve(&l, 2, (struct chain_course){.rounds = 3}, 2, &a);
    line_solve(&m, 2, (struct chain_course){.rounds = SLICES}, 1, &a);
    assert_memory_equal(l.at, m.at, sizeof l.at);
    assert_true(t.serial > 0);
    for (i32 r = 3; r < t.rounds; r++) {
        i32 ran = 0;
        for (i32 k = 0; k < SLICES; k++) ran += t.ran[r * SLICES + k] > 0;
        assert_int_equal(ran, 1);
    }
    arena_free(&a);
}

/* Gaps that stay as they are: noticed after a few rounds, long before the limit. */
static void what_does_not_contract_is_noticed(void **state) {
    (void)state;
    struct arena a = {0};
    struct line l = {.a = -1};
    const struct chain_trace t = line_solve(&l, 2, (struct chain_course){0}, 2, &a);
    f64 s = 2;
    for (i32 k = 0; k < T; k++) {
        s = -s + sin(k);
        assert_true(l.at[k] == s);
    }
    assert_true(t.serial > 0);
    arena_free(&a);
}

static void numbers_that_are_none_end_too(void **state) {
    (void)state;
    for (i32 threads = 1; threads <= 3; threads += 2) {
        struct arena a = {0};
        struct line l = {.a = 0.5};
        const struct chain_trace t = line_solve(&l, NAN, (struct chain_course){.slice_tol = 1e-6f}, threads, &a);
        assert_in_range(t.rounds, 2, SLICES);
        for (i32 k = 0; k < T; k++) assert_true(isnan(l.at[k]));
        assert_true(isnan(t.gap));
        arena_free(&a);
    }
}

/* Of ten slices that ran 1 to 10 steps again it is the ninth; who ran to its end, or not at all, says nothing. */
TEST(what_is_forgotten_by_nine_of_ten_is_the_memory) {
    i32 ran[2 * SLICES], sorted[SLICES];
    struct chain_trace t = {.nslice = SLICES, .rounds = 2, .ran = ran};
    for (i32 k = 0; k < SLICES; k++) {
        ran[k] = LEN;
        ran[SLICES + k] = k == 0 ? 0 : k == 1 ? LEN : SLICES - k;
    }
    assert_int_equal(chain_forgets(&t, sorted), 9);
    t.rounds = 1;
    assert_int_equal(chain_forgets(&t, sorted), -1);
}

T_MAIN(cmocka_unit_test(what_is_forgotten_by_nine_of_ten_is_the_memory), cmocka_unit_test(best_paths_are_those_of_the_serial_run),
       cmocka_unit_test(what_never_forgets_takes_a_round_a_slice_and_is_exact),
       cmocka_unit_test(what_forgets_takes_two_rounds_and_stops_early), cmocka_unit_test(past_the_limit_the_rest_is_serial),
       cmocka_unit_test(what_does_not_contract_is_noticed), cmocka_unit_test(numbers_that_are_none_end_too))
