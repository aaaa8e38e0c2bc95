/* t_crf_sgd.c - stochastic gradient descent of the learner crf: against dense weights in f64, against L-BFGS, equal bits. */
#include <math.h>
#include <string.h>

#include "base/pool.h"
#include "base/rng.h"
#include "kern/kern.h"
#include "learn/crf/crf.h"
#include "learn/crf/sgd.h"
#include "crf_session.h"

static f32 draw(u64 index) { return rng_uniform(5, RNG_TEST, 0, index) * 2 - 1; }

static i32 draw_below(i32 n, u64 index) { return (i32)(rng_uniform(6, RNG_TEST, 0, index) * (f32)n); }

/* ------------------------------------------------------------------ the kernel ---------------------------------------------- */

enum { ROWS = 40, TOKENS = 9 };

/* Rows of one vector, of three, and of more; a token with more attributes than are looked for together. */
TEST(rows_of_attributes_get_the_bits_of_the_plain_loop) {
    static const i32 width[] = {8, 24, 40};
    static const i32 range[][2] = {{0, ROWS}, {0, 7}, {7, 30}, {30, ROWS}, {12, 12}};
    for (size_t v = 0; v < COUNT(width); v++)
        for (size_t k = 0; k < COUNT(range); k++) {
            const i32 Lp = width[v];
            f32 a[ROWS * 40], b[ROWS * 40], d[TOKENS * 40];
            i32 attribute[200 + CRF_AHEAD];
            i64 at[TOKENS + 2] = {0};
            for (i32 t = 0; t < TOKENS + 1; t++) at[t + 1] = at[t] + (t == 4 ? 130 : t);
            for (i32 i = 0; i < 200; i++) attribute[i] = draw_below(ROWS, (u64)i);
            for (i32 i = 0; i < ROWS * Lp; i++) a[i] = b[i] = draw((u64)i);
            for (i32 i = 0; i < TOKENS * Lp; i++) d[i] = draw((u64)(9000 + i));
            struct crf_spread s = {.Lp = Lp, .at = at, .attribute = attribute, .to = a, .factor = -0.3f, .lo = range[k][0],
                                   .hi = range[k][1]};
            crf_kern_for((i32)kern_best()->arch)->spread(&s, 1, TOKENS, d);
            s.to = b;
            crf_kern_ref.spread(&s, 1, TOKENS, d);
            assert_memory_equal(a, b, sizeof *a * (size_t)(ROWS * Lp));
        }
}

/* ------------------------------------------------------------------ dense weights ------------------------------------------- */

enum { L = 3, LP = 8, ATTRIBUTES = 11, SENTENCES = 150, ALL = (ATTRIBUTES + L) * LP };

static void make_problem(struct crf_problem *p, i64 *first) {
    *p = (struct crf_problem){.L = L, .Lp = LP, .nattr = ATTRIBUTES, .nrow = ATTRIBUTES + L, .nsentence = SENTENCES,
                              .first = first, .bigram = true};
    for (i32 j = 0; j < SENTENCES; j++) first[j + 1] = first[j] + 1 + draw_below(7, (u64)j);
    const i64 n = p->ntoken = p->f.ntoken = first[SENTENCES];
    T_OK(mem_new((void **)&p->f.at, n + 1, sizeof *p->f.at));
    T_OK(mem_new((void **)&p->f.attribute, 2 * n + CRF_AHEAD, sizeof *p->f.attribute));
    T_OK(mem_new((void **)&p->gold, n, sizeof *p->gold));
    for (i64 t = 0; t < n; t++) {
        p->gold[t] = draw_below(L, (u64)(1000 + t));
        p->f.at[t + 1] = p->f.at[t] + 1 + t % 2;
        p->f.attribute[p->f.at[t]] = (p->gold[t] * 3 + draw_below(4, (u64)(5000 + t))) % ATTRIBUTES;
        if (t % 2) p->f.attribute[p->f.at[t] + 1] = draw_below(ATTRIBUTES, (u64)(9000 + t)); /* perhaps the same one */
    }
    T_OK(crf_problem_index(p));
}

/* Adds the gradient of a sentence with weights w, by the plain loops. */
static void add_gradient(const struct crf_problem *p, const f64 *w, i32 j, f64 *g) {
    f32 v[ALL], E[LP * LP], back[LP * LP], mask[LP] = {1, 1, 1}, u[8 * LP], a[9 * LP], inverse[8], d[8 * LP], pair[LP * LP] = {0};
    for (i32 i = 0; i < ALL; i++) v[i] = (f32)w[i];
    struct crf_pass x = {.L = L, .Lp = LP, .w = v, .scale = 1, .A = v + ATTRIBUTES * LP, .E = E, .back = back, .mask = mask,
                         .at = p->f.at, .attribute = p->f.attribute, .gold = p->gold, .u = u, .a = a, .inverse = inverse};
    x.top = crf_transitions(L, LP, x.A, E, back);
    const i64 t0 = p->first[j], T = p->first[j + 1] - t0;
    crf_kern_ref.sentence(&x, t0, (i32)T, d, pair);
    for (i64 t = t0; t < t0 + T; t++) {
        for (i64 k = p->f.at[t]; k < p->f.at[t + 1]; k++)
            for (i32 y = 0; y < L; y++) g[p->f.attribute[k] * LP + y] += (f64)d[(t - t0) * LP + y];
        if (t > t0) g[(ATTRIBUTES + p->gold[t - 1]) * LP + p->gold[t]] -= 1;
    }
    for (i32 i = 0; i < L * LP; i++) g[ATTRIBUTES * LP + i] += (f64)(pair[i] * (i % LP < L ? E[i] : 0));
}

/* Passes over dense weights, and their mean from the second pass on: what sgd.h does by scales and lags. */
static void dense(const struct crf_problem *p, const struct crf_settings *s, f64 eta0, i32 batch, i32 passes, f64 *out) {
    f64 w[ALL] = {0}, sum[ALL] = {0};
    const f64 lambda = 1 / (s->c * SENTENCES);
    i64 seen = 0, averaged = 0;
    for (i32 k = 0; k < passes; k++)
        for (i32 at = 0; at < SENTENCES; at += batch) {
            const i32 n = imin(batch, SENTENCES - at);
            const f64 t = 1 + lambda * eta0 * (f64)seen, step = eta0 / (s->method == CRF_ASGD ? pow(t, 0.75) : t);
            f64 g[ALL] = {0};
            for (i32 i = at; i < at + n; i++) add_gradient(p, w, (i32)rng_shuffle(s->seed, (u32)k, SENTENCES, i), g);
            for (i32 i = 0; i < ALL; i++) w[i] -= step * (g[i] + n * lambda * w[i]);
            for (i32 i = 0; k > 0 && i < ALL; i++) sum[i] += w[i];
            averaged += k > 0;
            seen += n;
        }
    for (i32 i = 0; i < ALL; i++) out[i] = s->method == CRF_ASGD && averaged > 0 ? sum[i] / (f64)averaged : w[i];
}

/* Penalties so small that scales stay near 1, and so large that they are folded into v. */
TEST(sparse_steps_and_averages_are_those_of_dense_weights) {
    static const f64 c[] = {10, 0.02};
    enum { PASSES = 4 };
    struct crf_problem p;
    i64 first[SENTENCES + 1] = {0};
    make_problem(&p, first);
    for (i32 k = 0; k < 4; k++) {
        const struct crf_settings set = {.method = k % 2 ? CRF_ASGD : CRF_SGD, .c = c[k / 2], .seed = 4};
        struct pool *pool;
        T_OK(pool_new(1 + k % 3, &pool));
        const struct resources use = {.kern = kern_best(), .pool = pool};
        const struct crf_run r = {.p = &p, .s = &set, .kern = crf_kern_for((i32)kern_best()->arch), .run.use = &use};
        f64 want[ALL];
        f32 got[ALL];
        struct sgd s;
        T_OK(sgd_open(&r, &s));
        s.eta0 = 0.2;
        for (i32 pass = 0; pass < PASSES; pass++) {
            s.averages = s.lag && pass > 0;
            T_OK(sgd_begin(&s, pass, SENTENCES));
            while (s.at < s.n) T_OK(sgd_batch(&s, true));
        }
        sgd_weights(&s, got);
        dense(&p, &set, s.eta0, s.batch, PASSES, want);
        f64 largest = 0;
        for (i32 i = 0; i < ALL; i++) {
            largest = dmax(largest, fabs(want[i]));
            assert_true(fabs((f64)got[i] - want[i]) < 2e-5 * (1 + fabs(want[i])));
        }
        assert_true(largest > 1e-2);
        sgd_close(&s);
        pool_free(pool);
    }
    crf_problem_free(&p);
}

/* ------------------------------------------------------------------ trainings ----------------------------------------------- */

/* Sentences of words whose tags depend on the word before, with noise. */
static const char *sentences(i32 n) {
    struct str text = {0};
    u64 k = 20000;
    for (i32 j = 0; j < n; j++, str_add(&text, "\n"))
        for (i32 t = 0, before = 0; t < 3 + j % 9; t++) {
            const i32 word = draw_below(30, k++), noise = draw_below(12, k++) == 0;
            str_addf(&text, "w%d T%d\n", word, (word / 6 + before + noise) % 5);
            before = word % 2;
        }
    const char *path = t_file("words.txt", text.s);
    str_free(&text);
    return path;
}

TEST(objective_comes_near_that_of_lbfgs) {
    static const char *const way[][2] = {{"sgd", "50"}, {"asgd", "20"}};
    const char *path = sentences(1200);
    struct session best;
    T_OK(start(&best, path, (const char *[]){"threads", "2", "epsilon", "1e-7", NULL}));
    const f64 least = model_of(&best)->objective;
    for (size_t i = 0; i < COUNT(way); i++) {
        struct session s;
        T_OK(start(&s, path, (const char *[]){"threads", "2", "trainer", way[i][0], "steps", way[i][1], "epsilon", "0", NULL}));
        const struct crf *f = model_of(&s);
        assert_true(f->objective > least * (1 - 1e-5) && f->objective < least * 1.01);
        assert_int_equal(f->iterations, i ? 20 : 50);
        end(&s);
    }
    end(&best);
}

TEST(weights_have_equal_bits_for_any_threads_and_ranks) {
    static const char *const count[][2] = {{"1", "1"}, {"2", "1"}, {"3", "1"}, {"1", "2"}, {"1", "4"}, {"2", "3"}};
    const char *path = sentences(1600); /* more turns of batches than there are modes */
    for (i32 k = 0; k < 2; k++) {
        struct session first = {0};
        for (size_t i = 0; i < COUNT(count); i++) {
            struct session s;
            T_OK(start(i ? &s : &first, path, (const char *[]){"threads", count[i][0], "ranks", count[i][1], "steps", "4",
                                                                         "trainer", k ? "asgd" : "sgd", NULL}));
            if (i == 0) continue;
            const struct crf *f = model_of(&s), *g = model_of(&first);
            assert_int_equal(f->nattr, g->nattr);
            assert_true(f->objective == g->objective);
            assert_memory_equal(f->w, g->w, sizeof *f->w * (size_t)((f->nattr + f->L) * f->Lp));
            end(&s);
        }
        end(&first);
    }
}

/* Fewer sentences than a batch; another seed is another order. */
TEST(seed_orders_the_sentences) {
    const char *path = sentences(20);
    f32 w[3];
    for (i32 k = 0; k < 3; k++) {
        struct session s;
        T_OK(start(&s, path, (const char *[]){"threads", "1", "steps", "3", "trainer", "sgd", "seed", k == 1 ? "8" : "7", NULL}));
        w[k] = model_of(&s)->w[0];
        end(&s);
    }
    assert_true(w[0] == w[2] && w[0] != w[1]);
}

T_MAIN(cmocka_unit_test(rows_of_attributes_get_the_bits_of_the_plain_loop),
       cmocka_unit_test(sparse_steps_and_averages_are_those_of_dense_weights),
       cmocka_unit_test(objective_comes_near_that_of_lbfgs), cmocka_unit_test(weights_have_equal_bits_for_any_threads_and_ranks),
       cmocka_unit_test(seed_orders_the_sentences))
