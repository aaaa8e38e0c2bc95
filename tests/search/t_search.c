/* t_search.c - space, schedule and choice of a search, on errors that are a known function of the options. */
#include <stdio.h>

#include "search/simulated.h"
#include "t.h"

TEST(space_leaves_out_what_is_fixed) {
    struct options o;
    struct search s;
    sim_search(&o, &s, 4, 1, 8);
    assert_int_equal(s.space.n, 6);
    for (i32 i = 0; i < s.space.n; i++) assert_false(sim_fixed(NULL, s.space.dim[i].id));
    opt_free(&o);
}

TEST(every_default_of_the_table_is_inside_its_words_or_range) {
    struct options o;
    struct search s;
    sim_search(&o, &s, 4, 1, 8);
    for (i32 i = 0; i < s.space.n; i++) {
        const struct dim *d = &s.space.dim[i];
        if (d->kind == DIM_CHOICE) assert_true(d->standard >= 0);
        else assert_true(d->usual >= d->least && d->usual <= d->most);
    }
    opt_free(&o);
}

TEST(points_survive_json) {
    struct options o;
    struct search s;
    struct dice dice = {.seed = 3};
    sim_search(&o, &s, 4, 1, 8);
    for (i32 k = 0; k < 200; k++) {
        struct point p = point_origin(), q;
        for (i32 i = 0; i < s.space.n; i++)
            if (dice_uniform(&dice) < 0.5) p.v[i] = dim_draw(&s.space.dim[i], &dice);
        struct js *text = point_json(&s.space, &p);
        assert_true(point_read(&s.space, text, &q));
        js_free(text);
        assert_true(point_equal(&s.space, &p, &q));
    }
    opt_free(&o);
}

TEST(a_draw_is_in_its_range_and_a_move_stays_there) {
    struct options o;
    struct search s;
    struct dice dice = {.seed = 4};
    sim_search(&o, &s, 4, 1, 8);
    for (i32 k = 0; k < 500; k++)
        for (i32 i = 0; i < s.space.n; i++) {
            const struct dim *d = &s.space.dim[i];
            f64 v = dim_draw(d, &dice);
            if (d->kind == DIM_CHOICE) assert_true((i32)v != d->standard);
            for (i32 m = 0; m < 5; m++) {
                assert_true(d->kind == DIM_CHOICE ? v >= 0 && v < d->nword : v >= d->least && v <= d->most);
                v = dim_move(d, v, &dice);
            }
        }
    opt_free(&o);
}

static bool nothing_fixed(const void *self, enum opt_id id) {
    (void)self;
    (void)id;
    return false;
}

TEST(conditions_switch_values_off) {
    struct options o;
    struct space all;
    T_OK(opt_defaults(&o, NULL));
    T_OK(opt_set_id(&o, OPT_base, "none", &OPT_API));
    space_make(&o, nothing_fixed, NULL, 4, &all);
    i32 combine = 0, base = 0;
    while (all.dim[combine].id != OPT_combine) combine++;
    while (all.dim[base].id != OPT_base) base++;
    struct point p = point_origin();
    p.v[combine] = 1;
    assert_false(point_acts(&all, &p, combine)); /* --base none has nothing to combine with */
    assert_true(point_is_origin(&all, &p));
    p.v[base] = 1;
    assert_true(point_acts(&all, &p, combine));
    assert_false(point_is_origin(&all, &p));
    opt_free(&o);
}
TEST(ladders_end_with_every_group_in_full) {
    for (i32 groups = 1; groups <= 8; groups *= 2) {
        struct ladder l;
        bool seen[8] = {0};
        ladder_make(groups, 8 / groups, true, &l);
        const i32 from = ladder_first(&l, l.nlevel - 1);
        assert_int_equal(l.end[l.nlevel - 1], l.nfit);
        assert_int_equal(l.nfit - from, groups);
        for (i32 k = from; k < l.nfit; k++) {
            assert_true(l.fit[k].share == 1 && !seen[l.fit[k].group]);
            seen[l.fit[k].group] = true;
        }
    }
}

TEST(the_defaults_are_trial_0_and_go_up_to_the_last_level_at_once) {
    struct options o;
    struct search s;
    struct search_job job[SEARCH_JOBS];
    i32 n;
    sim_search(&o, &s, 8, 1, 4);
    T_OK(search_next(&s, 8, job, &n));
    assert_int_equal(n, 4); /* `most` trials */
    assert_true(point_is_origin(&s.space, &s.trial[0].at));
    assert_int_equal(job[0].level, s.ladder.nlevel - 1);
    for (i32 i = 1; i < n; i++) assert_int_equal(job[i].level, 0);
    search_free(&s);
    opt_free(&o);
}

TEST(no_trial_is_tried_twice) {
    struct options o;
    struct search s;
    sim_search(&o, &s, 4, 5, 60);
    T_OK(sim_run(&s, 8, 0.02));
    for (i32 i = 0; i < s.n; i++)
        for (i32 k = 0; k < i; k++) assert_false(point_equal(&s.space, &s.trial[i].at, &s.trial[k].at));
    search_free(&s);
    opt_free(&o);
}

TEST(the_same_results_give_the_same_schedule) {
    struct options o;
    struct search a, b;
    sim_search(&o, &a, 4, 5, 40);
    T_OK(sim_run(&a, 8, 0.02));
    opt_free(&o);
    sim_search(&o, &b, 4, 5, 40);
    T_OK(sim_run(&b, 8, 0.02));
    assert_int_equal(a.n, b.n);
    for (i32 i = 0; i < a.n; i++) {
        assert_true(point_equal(&a.space, &a.trial[i].at, &b.trial[i].at));
        assert_int_equal(a.trial[i].done, b.trial[i].done);
    }
    search_free(&a);
    search_free(&b);
    opt_free(&o);
}

/* About a third of a level goes on, and the fits of a search are far fewer than those of all trials. */
TEST(halving_spends_few_fits_on_bad_trials) {
    struct options o;
    struct search s;
    i32 fits = 0, full = 0;
    sim_search(&o, &s, 8, 2, 100);
    T_OK(sim_run(&s, 8, 0.02));
    for (i32 i = 0; i < s.n; i++) fits += s.trial[i].done, full += s.trial[i].done == s.ladder.nfit;
    assert_int_equal(s.n, 100);
    assert_in_range(full, 4, 45);
    assert_in_range(fits, 200, 500); /* of 800 */
    search_free(&s);
    opt_free(&o);
}

/* Random search with the fits of the evolution: all trials in full. */
static f64 random_best(u64 seed, i32 trials, f64 noise) {
    struct options o;
    struct search s;
    struct dice dice = {.seed = seed + 1000};
    f64 best = (f64)INFINITY, found = 0;
    sim_search(&o, &s, 8, seed, trials);
    for (i32 t = 0; t < trials; t++) {
        struct point p = point_origin();
        for (i32 i = 0; i < s.space.n && t > 0; i++)
            if (dice_uniform(&dice) < 0.5) p.v[i] = dim_draw(&s.space.dim[i], &dice);
        const f64 seen = sim_error(&s, &p) * exp(noise * rng_normal(seed, RNG_TEST, 3, (u64)t) / sqrt(8));
        if (seen < best) best = seen, found = sim_error(&s, &p);
    }
    opt_free(&o);
    return found;
}

TEST(evolution_finds_a_better_optimum_than_random_search) {
    f64 evolved = 0, random = 0;
    for (u64 seed = 1; seed <= 20; seed++) {
        struct options o;
        struct search s;
        struct search_choice c;
        i32 fits = 0;
        sim_search(&o, &s, 8, seed, 60);
        T_OK(sim_run(&s, 8, 0.03));
        search_choose(&s, &c);
        for (i32 i = 0; i < s.n; i++) fits += s.trial[i].done;
        evolved += sim_error(&s, &s.trial[c.trial].at) / 20;
        random += random_best(seed, fits / 8, 0.03) / 20;
        search_free(&s);
        opt_free(&o);
    }
    printf("mean error of the choice: evolution %.4f, random %.4f, optimum 1, defaults 1.34\n", evolved, random);
    assert_true(evolved < 1.06);
    assert_true(evolved - 1 < 0.8 * (random - 1));
}

/* No option acts: whatever looks better does so by chance. */
TEST(the_defaults_stay_where_trials_differ_by_noise_alone) {
    i32 left = 0;
    for (u64 seed = 1; seed <= 40; seed++) {
        struct options o;
        struct search s;
        struct search_choice c;
        struct search_job job[SEARCH_JOBS];
        sim_search(&o, &s, 8, seed, 40);
        for (i32 n = 1; n > 0;) {
            T_OK(search_next(&s, 8, job, &n));
            for (i32 i = 0; i < n; i++)
                for (struct trial *t = &s.trial[job[i].trial]; t->done < s.ladder.end[job[i].level]; t->done++)
                    t->error[t->done][0] = exp(0.1 * rng_normal(seed, RNG_TEST, (u32)job[i].trial, (u64)t->done));
        }
        search_choose(&s, &c);
        left += c.trial > 0;
        search_free(&s);
        opt_free(&o);
    }
    printf("the defaults were left in %d of 40 searches without any effect\n", left);
    assert_in_range(left, 0, 8);
}

TEST(a_failed_trial_is_neither_promoted_nor_chosen) {
    struct options o;
    struct search s;
    struct search_choice c;
    struct search_job job[SEARCH_JOBS];
    sim_search(&o, &s, 4, 1, 20);
    for (i32 n = 1; n > 0;) {
        T_OK(search_next(&s, 8, job, &n));
        for (i32 i = 0; i < n; i++) {
            struct trial *t = &s.trial[job[i].trial];
            assert_false(t->failed);
            t->failed = job[i].trial % 2 == 1;
            while (!t->failed && t->done < s.ladder.end[job[i].level]) sim_fit(&s, job[i].trial, 0.02);
        }
    }
    search_choose(&s, &c);
    assert_true(c.trial % 2 == 0);
    search_free(&s);
    opt_free(&o);
}

TEST(importance_names_what_acts) {
    struct options o;
    struct search s;
    f64 share[SPACE_MOST], acting = 0, idle = 0;
    sim_search(&o, &s, 4, 7, 200);
    T_OK(sim_run(&s, 8, 0.01));
    search_importance(&s, share);
    for (i32 i = 0; i < s.space.n; i++) {
        const enum opt_id id = s.space.dim[i].id;
        if (id == OPT_batch || id == OPT_layers) idle += share[i];
        else acting += share[i];
    }
    printf("importance: %.2f of the acting options, %.2f of the idle ones\n", acting, idle);
    assert_true(acting > 0.5 && idle < 0.25 && acting + idle <= 1.0001);
    search_free(&s);
    opt_free(&o);
}

T_MAIN(cmocka_unit_test(space_leaves_out_what_is_fixed),
       cmocka_unit_test(every_default_of_the_table_is_inside_its_words_or_range),
       cmocka_unit_test(points_survive_json), cmocka_unit_test(a_draw_is_in_its_range_and_a_move_stays_there),
       cmocka_unit_test(conditions_switch_values_off), cmocka_unit_test(ladders_end_with_every_group_in_full),
       cmocka_unit_test(the_defaults_are_trial_0_and_go_up_to_the_last_level_at_once), cmocka_unit_test(no_trial_is_tried_twice),
       cmocka_unit_test(the_same_results_give_the_same_schedule), cmocka_unit_test(halving_spends_few_fits_on_bad_trials),
       cmocka_unit_test(evolution_finds_a_better_optimum_than_random_search),
       cmocka_unit_test(the_defaults_stay_where_trials_differ_by_noise_alone),
       cmocka_unit_test(a_failed_trial_is_neither_promoted_nor_chosen), cmocka_unit_test(importance_names_what_acts))
