/* t_trees.c - boosted trees: growth against an exact greedy search, equal bits for any threads, gaps, the model text, the choice.
 */
#include "base/rng.h"
#include "bases/trees/fit.h"
#include "tiny.h"

enum { H = 6 };

/* ------------------------------------------------------------------ growth -------------------------------------------------- */

enum { ROWS = 240, INPUTS = 4, LEAVES = 6, VALUES = 12 };

/* Small whole targets, which the integer gradients hold exactly; a third of input 2 is missing. */
static void fill_small(struct trees_table *t, u64 seed) {
    for (i32 r = 0; r < ROWS; r++) {
        f64 y = 3 * rng_normal(seed, RNG_TEST, 9, (u64)r);
        for (i32 i = 0; i < INPUTS; i++) {
            const i32 v = 1 + (i32)(VALUES * rng_uniform(seed, RNG_TEST, (u32)i, (u64)r));
            const bool missing = i == 2 && rng_uniform(seed, RNG_TEST, 20, (u64)r) < 0.33f;
            t->bin[i * ROWS + r] = missing ? 0 : (u8)v;
            if (i < 3 && v > 3 * i + 2) y += i == 2 && missing ? 3 : 2 - i;
        }
        t->y[r] = (f32)fmin(7, fmax(-7, rint(y)));
    }
    t->y[0] = 7; /* the largest one, so that a gradient is a whole number of units */
}

struct slow_leaf {
    bool in[ROWS];
    f64 gain;
    i32 input, bin;
    bool missing_right;
};

static bool slow_left(const struct trees_table *t, i32 r, i32 input, i32 bin, bool missing_right) {
    const u8 b = t->bin[input * ROWS + r];
    return b == 0 ? !missing_right : b <= bin;
}

/* Gain of one candidate; < 0 = not allowed. */
static f64 slow_gain(const struct trees_table *t, const struct trees_growth *q, const struct slow_leaf *leaf, i32 input, i32 bin,
                     bool missing_right) {
    f64 sum[2] = {0}, n[2] = {0};
    for (i32 r = 0; r < ROWS; r++) {
        if (!leaf->in[r]) continue;
        const i32 side = !slow_left(t, r, input, bin, missing_right);
        sum[side] += (f64)t->y[r];
        n[side] += 1;
    }
    if (n[0] < q->min_rows || n[1] < q->min_rows) return -1;
    const f64 all = sum[0] + sum[1];
    return sum[0] * sum[0] / (n[0] + q->l2) + sum[1] * sum[1] / (n[1] + q->l2) - all * all / (n[0] + n[1] + q->l2);
}

/* The best split of a leaf, every candidate summed on its own. */
static void slow_search(const struct trees_table *t, const struct trees_growth *q, struct slow_leaf *leaf) {
    leaf->gain = 1e-9;
    leaf->input = -1;
    for (i32 input = 0; input < INPUTS; input++)
        for (i32 right = 0; right < 2; right++)
            for (i32 bin = right; bin <= VALUES; bin++) {
                const f64 gain = slow_gain(t, q, leaf, input, bin, right);
                if (!(gain > leaf->gain * (1 + 1e-12))) continue;
                leaf->gain = gain;
                leaf->input = input;
                leaf->bin = bin;
                leaf->missing_right = right;
            }
}

/* Sum of squared residuals that the slow tree leaves. */
static f64 slow_tree(const struct trees_table *t, const struct trees_growth *q) {
    static struct slow_leaf leaf[LEAVES];
    f64 rest = 0;
    i32 n = 1;
    memset(leaf, 0, sizeof leaf);
    for (i32 r = 0; r < ROWS; r++) leaf[0].in[r] = true;
    slow_search(t, q, &leaf[0]);
    for (; n < q->leaves; n++) {
        i32 at = 0;
        for (i32 i = 1; i < n; i++)
            if (leaf[i].input >= 0 && (leaf[at].input < 0 || leaf[i].gain > leaf[at].gain)) at = i;
        if (leaf[at].input < 0) break;
        const struct slow_leaf old = leaf[at];
        for (i32 r = 0; r < ROWS; r++) {
            const bool left = slow_left(t, r, old.input, old.bin, old.missing_right);
            leaf[at].in[r] = old.in[r] && left;
            leaf[n].in[r] = old.in[r] && !left;
        }
        slow_search(t, q, &leaf[at]);
        slow_search(t, q, &leaf[n]);
    }
    for (i32 i = 0; i < n; i++) {
        f64 sum = 0, count = 0;
        for (i32 r = 0; r < ROWS; r++)
            if (leaf[i].in[r]) sum += (f64)t->y[r], count += 1;
        for (i32 r = 0; r < ROWS; r++)
            if (leaf[i].in[r]) rest += ((f64)t->y[r] - sum / (count + q->l2)) * ((f64)t->y[r] - sum / (count + q->l2));
    }
    return rest;
}

TEST(tree_is_that_of_an_exact_greedy_search) {
    static u8 bin[INPUTS * ROWS];
    static f32 y[ROWS], fit[ROWS];
    static i32 ncut[INPUTS] = {VALUES - 1, VALUES - 1, VALUES - 1, VALUES - 1};
    static f64 cut[INPUTS * CUTS_MOST];
    const struct trees_cuts cuts = {.n = INPUTS, .ncut = ncut, .cut = cut};
    const struct trees_growth q = {
        .leaves = LEAVES, .depth = 20, .min_rows = 5, .l2 = 2, .rate = 1, .rows_share = 1, .inputs_share = 1};
    struct trees_table t = {.rows = ROWS, .n = INPUTS, .bin = bin, .y = y, .fit = fit};
    const struct trees_inputs in = {.n = INPUTS};
    for (u64 seed = 1; seed <= 20; seed++) {
        struct trees_grower *g;
        struct trees *tree;
        f64 rest = 0;
        memset(fit, 0, sizeof fit);
        fill_small(&t, seed);
        T_OK(trees_grower_new(&t, &cuts, &q, NULL, &g));
        T_OK(trees_new(&in, 2 * LEAVES, &tree));
        trees_grow(g, 0, tree);
        trees_fit_add(g, &t);
        for (i32 r = 0; r < ROWS; r++) rest += ((f64)y[r] - (f64)fit[r]) * ((f64)y[r] - (f64)fit[r]);
        const f64 want = slow_tree(&t, &q);
        assert_int_equal(tree->nnode, 2 * LEAVES - 1);
        if (!(fabs(rest - want) < 1e-4 * want))
            fail_msg("seed %d: squared residuals %.6f, greedy search %.6f", (int)seed, rest, want);
        trees_free(tree);
        trees_grower_free(g);
    }
}

TEST(leaf_of_absolute_loss_is_the_median) {
    static u8 bin[ROWS];
    static f32 y[ROWS], fit[ROWS];
    static f64 cut[CUTS_MOST];
    static i32 ncut[1] = {1};
    const struct trees_cuts cuts = {.n = 1, .ncut = ncut, .cut = cut};
    const struct trees_growth q = {
        .leaves = 2, .depth = 2, .min_rows = 5, .l2 = 0, .rate = 1, .rows_share = 1, .inputs_share = 1, .absolute = true};
    struct trees_table t = {.rows = ROWS, .n = 1, .bin = bin, .y = y, .fit = fit};
    const struct trees_inputs in = {.n = 1};
    struct trees_grower *g;
    struct trees *tree;
    for (i32 r = 0; r < ROWS; r++) bin[r] = r < 99 ? 1 : 2;
    for (i32 r = 0; r < ROWS; r++) y[r] = r < 99 ? (f32)((r * 37) % 99 - 200) : (f32)((r * 37) % 141 * (r == 100 ? 1000 : 1));
    T_OK(trees_grower_new(&t, &cuts, &q, NULL, &g));
    T_OK(trees_new(&in, 4, &tree));
    trees_grow(g, 0, tree);
    trees_fit_add(g, &t);
    assert_float_equal(fit[0], 49 - 200, 1e-6); /* ranks 0..98 */
    assert_float_equal(fit[150], fit[ROWS - 1], 0);
    assert_in_range((i64)fit[150], 69, 72);
    trees_free(tree);
    trees_grower_free(g);
}

/* ------------------------------------------------------------------ series -------------------------------------------------- */

enum { N = 1600, TRAIN = 1200, VALID = 1400 };

/* Two targets, one past-only column, two columns known ahead. Targets follow products and thresholds of the known ones, which no
 * linear map has; where column 4 is missing, they are higher. */
static struct series *driven(void) {
    struct series *s = tiny_series(N, 5, 12);
    s->ntarget = 2;
    s->npast = 1;
    s->nknown = 2;
    s->freq.step = 3600;
    s->time = mem_alloc(N * sizeof(i64));
    f32 *y = s->v, *z = y + N, *past = z + N, *a = past + N, *b = a + N;
    for (i64 i = 0; i < N; i++) {
        s->time[i] = 1000000000 / 3600 * 3600 + i * 3600;
        a[i] = (f32)rng_normal(3, RNG_TEST, 0, (u64)i);
        b[i] = (f32)rng_normal(3, RNG_TEST, 1, (u64)i);
        past[i] = (f32)rng_normal(3, RNG_TEST, 2, (u64)i);
        f64 v = a[i] > 0.2f ? (b[i] > 0 ? 1.0 : -1.0) : (b[i] > 0 ? -0.5 : 0.5);
        if (rng_uniform(3, RNG_TEST, 3, (u64)i) < 0.15f) b[i] = NAN, v = 2;
        y[i] = (f32)(v + 0.1 * rng_normal(3, RNG_TEST, 4, (u64)i));
        z[i] = (f32)(-v + 0.1 * rng_normal(3, RNG_TEST, 5, (u64)i));
    }
    y[500] = y[501] = NAN;
    return s;
}

static struct base_spec spec_of(struct pool *pool) {
    return (struct base_spec){.L = 24,
                              .H = H,
                              .ncol = 2,
                              .season = 12,
                              .calendar = INPUTS_TRIED,
                              .ahead = INPUTS_TRIED,
                              .constant = INPUTS_TRIED,
                              .train = TRAIN,
                              .valid = VALID,
                              .pool = pool,
                              .absolute = true};
}

static f64 error_of(const struct base *b, const struct series *s) {
    f64 sum = 0, n = 0;
    f32 out[H];
    for (i32 c = 0; c < 2; c++)
        for (i64 o = VALID; o + H <= N; o += H) {
            base_predict(b, s, c, o, H, out);
            for (i32 h = 0; h < H; h++) sum += fabs((f64)out[h] - (f64)series_col(s, c)[o + h]), n += 1;
        }
    return sum / n;
}

TEST(trees_learn_thresholds_and_missing_cells) {
    struct series *s = driven();
    const struct base_spec spec = spec_of(NULL);
    struct base *b, *ridge;
    T_OK(base_trees(s, &spec, &b));
    T_OK(base_ridge(s, &spec, &ridge));
    print_message("    mean absolute error: trees %.3f, ridge %.3f\n", error_of(b, s), error_of(ridge, s));
    assert_true(error_of(b, s) < 0.5 * error_of(ridge, s));
    base_free(b);
    base_free(ridge);
    tiny_free(s);
}

TEST(any_number_of_threads_gives_the_same_trees) {
    struct series *s = driven();
    f32 *first = NULL;
    i64 n = 0;
    for (i32 threads = 1; threads <= 3; threads++) {
        struct pool *pool;
        struct base *b;
        T_OK(pool_new(threads, &pool));
        const struct base_spec spec = spec_of(pool);
        T_OK(base_trees(s, &spec, &b));
        const i64 count = base_trees_tensor(b, NULL, NULL, NULL);
        f32 *w = mem_alloc((size_t)count * sizeof *w);
        base_trees_tensor(b, w, NULL, NULL);
        if (first) {
            assert_int_equal(count, n);
            assert_memory_equal(w, first, (size_t)n * sizeof *w);
            mem_free(w);
        } else
            first = w;
        n = count;
        base_free(b);
        pool_free(pool);
    }
    mem_free(first);
    tiny_free(s);
}

TEST(forecast_reads_targets_before_its_origin_and_known_rows_of_its_horizon) {
    struct series *s = driven(), *other = driven();
    const struct base_spec spec = spec_of(NULL);
    struct base *b;
    f32 one[H], two[H];
    const i64 o = 1500;
    T_OK(base_trees(s, &spec, &b));
    for (i32 c = 0; c < 5; c++)
        for (i64 i = c < 3 ? o : o + H; i < N; i++) other->v[c * N + i] = 1e9f;
    base_predict(b, s, 1, o, H, one);
    base_predict(b, other, 1, o, H, two);
    assert_memory_equal(one, two, sizeof one);
    for (i32 c = 3; c < 5; c++) other->v[c * N + o] = -other->v[c * N + o];
    base_predict(b, other, 1, o, H, two);
    assert_true(one[0] != two[0]);
    base_free(b);
    tiny_free(s);
    tiny_free(other);
}

TEST(text_and_tensor_give_the_same_forecasts_and_damaged_ones_are_refused) {
    struct series *s = driven();
    const struct base_spec spec = spec_of(NULL);
    struct base *b, *again;
    struct str text = {0};
    i32 cols[40];
    i64 origins[40];
    static f32 bulk[40 * H];
    f32 one[2 * H], two[2 * H];
    T_OK(base_trees(s, &spec, &b));
    T_OK(base_text(b, &text));
    const i64 n = base_trees_tensor(b, NULL, NULL, NULL);
    f32 *w = mem_alloc((size_t)n * sizeof *w);
    base_trees_tensor(b, w, NULL, NULL);
    T_OK(base_read_all(str_text(&text), (struct base_tensors){.trees = w, .ntrees = n}, &again));
    for (i32 i = 0; i < 40; i++) cols[i] = i & 1, origins[i] = i < 20 ? i : N - 20 + i;
    T_OK(base_predict_rows(again, s, 40, cols, origins, H, bulk, H, kern_best()));
    for (i32 i = 0; i < 40; i++) {
        base_predict(b, s, cols[i], origins[i], 2 * H, one);
        base_predict(again, s, cols[i], origins[i], 2 * H, two);
        assert_memory_equal(one, two, sizeof one);
        assert_memory_equal(one, bulk + i * H, sizeof *one * H);
        assert_true(one[H] == one[H - 1]); /* steps that the trees do not have */
    }
    const f32 bad[] = {-2, 0.5f, 1e9f, NAN, INFINITY, 4096};
    for (i64 at = 0; at < n; at += at < 64 ? 1 : 97)
        for (i32 k = 0; k < (i32)COUNT(bad); k++) {
            struct base *odd = NULL;
            const f32 old = w[at];
            w[at] = bad[k];
            const err e = base_read_all(str_text(&text), (struct base_tensors){.trees = w, .ntrees = n}, &odd);
            assert_true(e >= 0 || e == -E901);
            if (e >= 0) base_predict(odd, s, 0, 700, H, two); /* a cut or a leaf of another value is sound */
            base_free(odd);
            w[at] = old;
        }
    base_free(again);
    for (i64 less = 1; less < n; less += 61)
        assert_int_equal(base_read_all(str_text(&text), (struct base_tensors){.trees = w, .ntrees = n - less}, &again) < 0, 1);
    mem_free(w);
    str_free(&text);
    base_free(b);
    tiny_free(s);
}

/* ------------------------------------------------------------------ the choice ---------------------------------------------- */

TEST(validation_takes_trees_where_they_win) {
    struct series *s = driven();
    const struct base_spec spec = spec_of(NULL);
    struct trees_choice table;
    struct base *b;
    T_OK(base_ridge(s, &spec, &b));
    const f64 before = error_of(b, s);
    T_OK(base_try_trees(s, &spec, &table, &b));
    assert_true(table.tried && table.weight > 0.5 && table.both <= table.rival);
    assert_true(error_of(b, s) < 0.5 * before);
    struct base_spec all = spec;
    struct base *again;
    all.train = VALID;
    T_OK(base_again(s, &all, b, &again));
    assert_int_equal(again->npart, b->npart);
    for (i32 i = 0; i < b->npart; i++) assert_float_equal(again->part[i].weight, b->part[i].weight, 1e-12);
    assert_int_equal(again->trees->ntree, b->trees->ntree);
    assert_true(error_of(again, s) < 0.5 * before);
    base_free(again);
    base_free(b);
    tiny_free(s);
}

TEST(validation_keeps_the_last_value_of_a_random_walk) {
    struct series *s = driven();
    struct base_spec spec = spec_of(NULL);
    struct trees_choice table;
    struct base *b;
    for (i32 c = 0; c < 2; c++)
        for (i64 i = 1; i < N; i++) s->v[c * N + i] = s->v[c * N + i - 1] + (f32)rng_normal(5, RNG_TEST, (u32)c, (u64)i);
    T_OK(base_naive(0, &b));
    T_OK(base_try_trees(s, &spec, &table, &b));
    assert_true(table.tried);
    assert_true(table.weight <= 0.3);
    spec.train = 200;
    spec.valid = 203;
    T_OK(base_try_trees(s, &spec, &table, &b));
    assert_false(table.tried);
    base_free(b);
    tiny_free(s);
}

TEST(too_few_rows_are_an_error) {
    struct series *s = driven();
    struct base_spec spec = spec_of(NULL);
    struct base *b = NULL;
    spec.train = spec.valid = 12;
    assert_int_equal(base_trees(s, &spec, &b), -E301);
    tiny_free(s);
}

T_MAIN(cmocka_unit_test(tree_is_that_of_an_exact_greedy_search), cmocka_unit_test(leaf_of_absolute_loss_is_the_median),
       cmocka_unit_test(trees_learn_thresholds_and_missing_cells), cmocka_unit_test(any_number_of_threads_gives_the_same_trees),
       cmocka_unit_test(forecast_reads_targets_before_its_origin_and_known_rows_of_its_horizon),
       cmocka_unit_test(text_and_tensor_give_the_same_forecasts_and_damaged_ones_are_refused),
       cmocka_unit_test(validation_takes_trees_where_they_win),
       cmocka_unit_test(validation_keeps_the_last_value_of_a_random_walk), cmocka_unit_test(too_few_rows_are_an_error))
