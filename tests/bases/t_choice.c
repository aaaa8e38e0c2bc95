/* t_choice.c - the base chosen for preset `long`, the mix for preset `short`, and the guard. */
#include "base/rng.h"
#include "tiny.h"
#include "bases/base.h"
#include "train/guard.h"
#include "train/metrics.h"

/* --- helpers --- */

static f64 test_mae(const struct base *b, const struct series *s, i64 from, i32 H) {
    struct metrics *m;
    struct score out;
    f32 *f = mem_alloc(sizeof(f32) * (size_t)H);
    T_OK(metrics_new(s, 1, H, NULL, 0, &m));
    for (i64 o = from; o + H <= s->nrow; o++) {
        base_predict(b, s, 0, o, H, f);
        metrics_add(m, 0, series_col(s, 0) + o, f, NULL);
    }
    metrics_score(m, -1, -1, true, &out);
    metrics_free(m);
    mem_free(f);
    return out.mae;
}

static void print_mix(const struct series *s, const struct mix *t) {
    for (i32 i = 0; i < t->nrow; i++)
        print_message("    %-8s season %3d alpha %.2f  error %8.4f  weight %.3f\n", base_kind_name(t->row[i].part.kind),
                      t->row[i].part.season, t->row[i].part.alpha, t->row[i].mae * s->dev[0], t->row[i].part.weight);
}

/* The mix from all rows before the test part: its error there may be 5 % above `reached`, the error of a prototype, and must be
 * below the better naive baseline. */
static void small(const char *file, i64 test, i32 season, i32 H, f64 reached, f64 naive) {
    struct series *s = tiny_csv(file, 1, 1, season);
    struct mix t;
    struct base *b;
    struct base_spec p = {.constant = INPUTS_TRIED, .H = H, .ncol = 1, .season = season, .train = s->nrow - test};
    p.L = (i32)lmin(imax(24, 3 * H), p.train / 2);
    tiny_scale(s, p.train);
    T_OK(base_mix(s, &p, &t, &b));
    f64 mae = test_mae(b, s, p.train, H);
    print_message("%s H %d: MAE %.4f (notes %.4g, naive %.4g), %d origins\n", file, H, mae, reached, naive, t.norigin);
    print_mix(s, &t);
    if (!(mae <= 1.05 * reached && mae < naive)) fail_msg("%s: %.4f, reached before %.4f", file, mae, reached);
    base_free(b);
    tiny_free(s);
}

TEST(mix_reaches_the_figures_of_the_notes) {
    small("data/univariate/airline-passengers.csv", 12, 12, 12, 13.6, 47.8);
    small("data/univariate/shampoo.csv", 12, 12, 12, 140.95, 141.08);
    small("data/univariate/daily-total-female-births.csv", 28, 7, 28, 5.86, 6.61);
    small("data/univariate/monthly-sunspots.csv", 132, 12, 132, 20.9, 25.2);
    small("data/univariate/daily-min-temperatures.csv", 365, 7, 1, 1.77, 2.02);
    small("data/ili/ILINet.csv", 261, 52, 4, .410, .466);
    small("data/ili/ILINet.csv", 261, 52, 24, .810, 1.013);
}

/* --- made-up series --- */

/* One column: season 12 and trend with little noise, or noise summed up (a random walk). */
static struct series *made(i64 n, bool walk) {
    struct series *s = tiny_series(n, 1, 12);
    f64 level = 0;
    for (i64 i = 0; i < n; i++) {
        f64 noise = rng_normal(7, RNG_TEST, walk, (u64)i);
        level += noise;
        s->v[i] = (f32)(walk ? level : 10 * sin(2 * M_PI * (f64)i / 12) + 0.01 * (f64)i + noise);
    }
    tiny_scale(s, n * 7 / 10);
    return s;
}

static void same_text(const struct base *a, const struct base *b) {
    struct str x = {0}, y = {0};
    T_OK(base_text(a, &x));
    T_OK(base_text(b, &y));
    assert_string_equal(str_text(&x), str_text(&y));
    str_free(&x);
    str_free(&y);
}

TEST(choice_takes_ridge_on_waves_and_last_on_a_random_walk) {
    for (i32 walk = 0; walk < 2; walk++) {
        struct series *s = made(3000, walk);
        struct choice t;
        struct base *b;
        struct base_spec p = {.constant = INPUTS_TRIED, .L = 48, .H = 24, .ncol = 1, .season = 12, .train = 2100, .valid = 2400};
        T_OK(base_choose(s, &p, &t, &b));
        print_message("%s: t %.2f gain %+.1f %%\n", walk ? "walk" : "waves", t.t, 100 * t.gain);
        assert_int_equal(t.nrow, 3);
        assert_int_equal(t.row[t.chosen], walk ? BASE_LAST : BASE_RIDGE);
        assert_int_equal(b->part[0].kind, walk ? BASE_LAST : BASE_RIDGE);
        assert_true(t.from[0] == 960 && t.to[4] == 2400);
        base_free(b);
        tiny_free(s);
    }
}

TEST(choice_and_mix_do_not_look_at_the_test_part) {
    struct series *s = made(600, false), *other = made(600, false);
    struct base_spec c = {.constant = INPUTS_TRIED, .L = 36, .H = 12, .ncol = 1, .season = 12, .train = 420, .valid = 480};
    struct base_spec m = {.constant = INPUTS_TRIED, .L = 36, .H = 12, .ncol = 1, .season = 12, .train = 480};
    struct choice t1, t2;
    struct mix x1, x2;
    struct base *a, *b;
    for (i64 i = 480; i < 600; i++) other->v[i] = i % 2 ? NAN : 1e5F;
    T_OK(base_choose(s, &c, &t1, &a));
    T_OK(base_choose(other, &c, &t2, &b));
    assert_memory_equal(t1.loss, t2.loss, sizeof t1.loss);
    same_text(a, b);
    assert_int_equal(a->ridge != NULL, b->ridge != NULL);
    if (a->ridge) assert_memory_equal(a->ridge->w, b->ridge->w, sizeof(f32) * 37 * 16);
    base_free(a);
    base_free(b);
    T_OK(base_mix(s, &m, &x1, &a));
    T_OK(base_mix(other, &m, &x2, &b));
    same_text(a, b);
    base_free(a);
    base_free(b);
    tiny_free(s);
    tiny_free(other);
}

TEST(mix_weights_sum_to_one_and_small_ones_are_dropped) {
    struct series *s = made(300, false);
    struct base_spec p = {.constant = INPUTS_TRIED, .L = 36, .H = 12, .ncol = 1, .season = 12, .train = 280};
    struct mix t;
    struct base *b;
    f64 sum = 0, best = INFINITY;
    T_OK(base_mix(s, &p, &t, &b));
    assert_int_equal(t.nrow, 9);
    assert_int_equal(t.norigin, 80);
    for (i32 i = 0; i < t.nrow; i++) best = dmin(best, t.row[i].mae);
    for (i32 i = 0; i < b->npart; i++) sum += b->part[i].weight;
    for (i32 i = 0; i < t.nrow; i++) {
        f64 w = t.row[i].part.weight;
        assert_true(w == 0 || w >= 0.05);
        if (t.row[i].mae == best) assert_true(w > 0);
    }
    assert_true(fabs(sum - 1) < 1e-12);
    struct str label = {0};
    b->npart = 2;
    b->part[0].weight = 0.123456;
    T_OK(base_label(b, &label));
    assert_memory_equal(str_text(&label), "0.12 ", 5);
    str_free(&label);
    base_free(b);
    tiny_free(s);
}

TEST(mix_of_few_rows_is_theta_alone_and_of_none_is_refused_nowhere) {
    struct series *s = made(40, false);
    struct mix t;
    struct base *b;
    f32 out[12];
    for (i64 train = 1; train < 40; train += 3) {
        struct base_spec p = {.constant = INPUTS_TRIED, .L = 24, .H = 12, .ncol = 1, .season = 12, .train = train};
        T_OK(base_mix(s, &p, &t, &b));
        assert_int_equal(b->npart, 1);
        assert_int_equal(b->part[0].kind, BASE_THETA);
        base_predict(b, s, 0, train, 12, out);
        for (i32 h = 0; h < 12; h++) assert_true(isfinite(out[h]));
        base_free(b);
    }
    tiny_free(s);
}

TEST(mix_of_a_constant_or_broken_series_still_forecasts) {
    for (i32 kind = 0; kind < 3; kind++) {
        struct series *s = tiny_series(200, 2, 7);
        struct base_spec p = {.constant = INPUTS_TRIED, .L = 24, .H = 7, .ncol = 2, .season = 7, .train = 180};
        struct mix t;
        struct base *b;
        f32 out[7];
        for (i64 i = 0; i < 400; i++) s->v[i] = kind == 0 ? 3 : kind == 1 ? (i % 5 ? NAN : (f32)(i % 7)) : i < 200 ? NAN : 1;
        T_OK(base_mix(s, &p, &t, &b));
        base_predict(b, s, 0, 180, 7, out);
        for (i32 h = 0; h < 7; h++) assert_true(isfinite(out[h]));
        if (kind == 0) assert_true(fabs((f64)out[3] - 3) < 1e-5);
        base_free(b);
        tiny_free(s);
    }
}

TEST(choice_and_mix_give_back_all_memory_when_any_is_refused) {
    struct series *s = made(400, false);
    struct base_spec c = {.constant = INPUTS_TRIED, .L = 24, .H = 6, .ncol = 1, .season = 12, .train = 300, .valid = 360};
    struct base_spec m = {.constant = INPUTS_TRIED, .L = 24, .H = 6, .ncol = 1, .season = 12, .train = 360};
    struct choice t;
    struct mix x;
    struct base *b;
    const i64 live = mem_stats().live;
    for (i32 which = 0; which < 2; which++) {
        err e = -1;
        for (i64 n = 1; e < 0; n++) {
            mem_fail_nth(n);
            e = which ? base_mix(s, &m, &x, &b) : base_choose(s, &c, &t, &b);
            mem_fail_nth(0);
            if (e < 0 && (e != -E601 || mem_stats().live != live)) fail_msg("allocation %lld: %d", (long long)n, e);
        }
        base_free(b);
    }
    tiny_free(s);
}

TEST(a_signal_ends_the_choice_and_its_progress_ends_at_one) {
    struct series *s = made(400, false);
    volatile int stop = 0;
    struct workload work = workload_start("choosing the base", NULL, &stop);
    struct base_spec r = {.constant = INPUTS_TRIED, .L = 24, .H = 6, .ncol = 1, .train = 300, .valid = 360, .refit = true,
                          .work = &work};
    struct base_spec c = {.constant = INPUTS_TRIED, .L = 24, .H = 6, .ncol = 1, .season = 12, .train = 300, .valid = 360,
                          .work = &work};
    struct base_spec m = {.constant = INPUTS_TRIED, .L = 24, .H = 6, .ncol = 1, .season = 12, .train = 360, .work = &work};
    struct choice t;
    struct mix x;
    struct base *b;
    T_OK(base_choose(s, &c, &t, &b));
    base_free(b);
    if (!(work.done > .5 * work.all && work.done < 1.5 * work.all)) fail_msg("%g of %g", work.done, work.all);
    stop = 1;
    const i64 live = mem_stats().live;
    T_FAILS(base_choose(s, &c, &t, &b), E806);
    T_FAILS(base_mix(s, &m, &x, &b), E806);
    T_FAILS(base_ridge(s, &r, &b), E806);
    assert_int_equal(mem_stats().live, live);
    tiny_free(s);
}

TEST(ettH1_choice_is_ridge) {
    struct series *s = tiny_csv("data/ett/ETTh1.csv", 1, 7, 24);
    struct base_spec p = {.constant = INPUTS_TRIED, .L = 336, .H = 96, .ncol = 7, .season = 24, .train = 8640, .valid = 11520};
    struct choice t;
    struct base *b;
    tiny_scale(s, 8640);
    T_OK(base_choose(s, &p, &t, &b));
    print_message("ETTh1 96: t %.2f gain %+.1f %%\n", t.t, 100 * t.gain);
    for (i32 i = 0; i < t.nrow; i++)
        print_message("    %-7s %.4f %.4f %.4f %.4f %.4f\n", base_kind_name(t.row[i]), t.loss[i][0], t.loss[i][1], t.loss[i][2],
                      t.loss[i][3], t.loss[i][4]);
    assert_int_equal(t.row[t.chosen], BASE_RIDGE);
    assert_int_equal(t.row[t.naive], BASE_SEASON);
    assert_true(t.t > 5 && t.t < 12);
    assert_int_equal(b->ridge->windows, 7 * (8640 - 336 - 96 + 1));
    base_free(b);
    tiny_free(s);
}

/* --- guard --- */

enum { N = 40 };

static struct guard weigh(f64 gain, f64 noise, i32 n, i32 block, i32 least) {
    f64 base[N], both[N];
    struct guard g;
    for (i32 i = 0; i < n; i++) base[i] = 1 + 0.1 * sin(i), both[i] = base[i] - gain + noise * (i / block % 2 ? 1 : -1);
    guard_weigh(base, both, n, block, least, &g);
    return g;
}

TEST(guard_follows_its_formula_over_blocks) {
    struct guard g = weigh(0.1, 0.05, 40, 10, GUARD_BLOCKS); /* d = .15 .05 .15 .05: mean .1, deviation .0577, t = 3.46 */
    assert_int_equal(g.nblock, 4);
    assert_true(fabs(g.t - 2.0473) < 0.02); /* t = 3.464 with 3 degrees of freedom is as rare as 2.047 */
    assert_true(fabs(g.a - g.t * g.t / (1 + g.t * g.t)) < 1e-12);
    assert_true(fabs(g.loss_base - g.loss_both - 0.1) < 1e-12);
    g = weigh(0.1, 0.05, 39, 10, GUARD_BLOCKS); /* the 9 left over join the third block */
    assert_int_equal(g.nblock, 3);
}

TEST(guard_gives_nothing_without_gain_or_evidence) {
    assert_true(weigh(-0.1, 0.01, 40, 10, GUARD_BLOCKS).a == 0);
    assert_true(weigh(0, 0, 40, 10, GUARD_BLOCKS).a == 0);
    assert_true(weigh(0.1, 0.01, 20, 10, GUARD_BLOCKS).a == 0); /* two blocks */
    assert_true(weigh(0.1, 0.01, 2, 10, 1).a == 0);             /* two origins */
    assert_true(weigh(0, 0.05, 30, 5, GUARD_BLOCKS).a < 0.5);
    assert_true(weigh(0.1, 0, 40, 10, GUARD_BLOCKS).a > 0.98); /* the same gain everywhere */
}

TEST(guard_of_short_series_works_from_one_block) {
    f64 base[13], both[13];
    struct guard g;
    for (i32 i = 0; i < 13; i++) base[i] = 2, both[i] = i % 2 ? 1 : 2; /* d = 0 1 0 1 ..: mean 6/13, deviation .5189 */
    guard_weigh(base, both, 13, 12, 1, &g);
    assert_int_equal(g.nblock, 1);
    assert_true(fabs(g.t - 6.0 / 13 / 0.518874521663) < 1e-6);
    assert_true(fabs(g.a - 0.5 * g.t * g.t / (1 + g.t * g.t)) < 1e-12);
    for (i32 i = 0; i < 13; i++) both[i] = 1; /* the same gain everywhere, in one block */
    guard_weigh(base, both, 13, 12, 1, &g);
    assert_true(g.a > 0.49 && g.a <= 0.5);
    guard_weigh(base, both, 13, 6, 1, &g);
    assert_true(g.nblock == 2 && g.a > 0.74 && g.a <= 0.75);
}

TEST(guard_skips_unscored_origins_and_refuses_what_is_not_finite) {
    f64 base[12] = {1, NAN, 1, 1, 1, 1, 1, NAN, 1, 1, 1, 1}, both[12] = {.5, NAN, .6, .5, .6, .5, .6, NAN, .5, .6, .5, .6};
    struct guard g;
    guard_weigh(base, both, 12, 1, GUARD_BLOCKS, &g);
    assert_int_equal(g.norigin, 10);
    assert_true(g.a > 0.9);
    for (i32 i = 0; i < 2; i++) {
        both[3] = i ? (f64)NAN : INFINITY; /* no forecast where the base has one */
        guard_weigh(base, both, 12, 1, GUARD_BLOCKS, &g);
        assert_true(g.a == 0);
    }
    for (i32 i = 0; i < 12; i++) both[i] = NAN;
    guard_weigh(base, both, 12, 1, GUARD_BLOCKS, &g);
    assert_true(g.a == 0);
}

T_MAIN(cmocka_unit_test(mix_reaches_the_figures_of_the_notes),
       cmocka_unit_test(choice_takes_ridge_on_waves_and_last_on_a_random_walk),
       cmocka_unit_test(choice_and_mix_do_not_look_at_the_test_part),
       cmocka_unit_test(mix_weights_sum_to_one_and_small_ones_are_dropped),
       cmocka_unit_test(mix_of_few_rows_is_theta_alone_and_of_none_is_refused_nowhere),
       cmocka_unit_test(mix_of_a_constant_or_broken_series_still_forecasts),
       cmocka_unit_test(choice_and_mix_give_back_all_memory_when_any_is_refused),
       cmocka_unit_test(a_signal_ends_the_choice_and_its_progress_ends_at_one), cmocka_unit_test(ettH1_choice_is_ridge),
       cmocka_unit_test(guard_follows_its_formula_over_blocks), cmocka_unit_test(guard_gives_nothing_without_gain_or_evidence),
       cmocka_unit_test(guard_of_short_series_works_from_one_block),
       cmocka_unit_test(guard_skips_unscored_origins_and_refuses_what_is_not_finite))
