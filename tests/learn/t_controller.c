/* t_controller.c - slices of time while a model is trained: fewer where they do not pay, a warning where their number was given,
 * and the same bits when the run was stopped in between or goes by a saved plan. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/forecast/resolve.h"
#include "learn/slices/slices.h"
#include "slicing.h"

/* A loss at every row; a loss behind windows that differ by a row. */
static const char *const windows[] = {"preset", "none", "loss-steps", "last", "decoder", "direct", "segment", "1", NULL};
static const char *const *const models[] = {NULL, windows};

static void become_fewer(const char *const *model) {
    struct session s = begun(model);
    struct watcher w = {0};
    struct forecaster *f;
    T_OK(fit(&s, 1, &w, NULL, false, &f));
    assert_true(w.fewer >= 1 && w.warnings == 0 && w.measured >= 1);
    assert_true(f->spec.cut.slices < P && f->slices->watch.slices == f->spec.cut.slices);
    forecast_free(&f->model);
    session_end(&s);
}

TEST(slices_that_do_not_pay_become_fewer) {
    for (size_t i = 0; i < COUNT(models); i++) become_fewer(models[i]);
}

static void stays(const char *const *model) {
    struct session s = begun(model);
    struct watcher w = {0};
    struct forecaster *f;
    T_OK(fit(&s, P, &w, NULL, false, &f));
    assert_int_equal(w.fewer, 0);
    assert_int_equal(w.warnings, 1);
    assert_int_equal(f->spec.cut.slices, P);
    assert_true(f->slices->watch.layer[0].all[0].steps == 24 && f->slices->watch.layer[0].all[1].steps == 24);
    assert_true(f->slices->watch.layer[0].w > 0);
    assert_true(strstr(w.gap, "16 time slices against whole windows") != NULL);
    assert_true(f->slices->gap < 1e-5);
    assert_true(f->slices->picture[0].rounds[0] > 1 && f->slices->picture[0].ran[0][0] == 6);
    forecast_free(&f->model);
    session_end(&s);
}

TEST(a_number_that_was_given_stays_and_is_warned_of_once) {
    for (size_t i = 0; i < COUNT(models); i++) stays(models[i]);
}

/* Stopped in the interval after the number of slices was changed, and resumed: bit for bit the run that was not. */
static void resumed(const char *const *model, i32 id) {
    char dir[700];
    struct session s = begun(model);
    struct watcher w = {0};
    struct forecaster *f, *g;
    T_OK(fit(&s, 1, &w, NULL, false, &f));
    for (i64 at = 2; at <= 20; at += 6) { /* events come after a step was taken: it is stopped one later */
        struct watcher x = {.stop_at = at}, y = {0};
        snprintf(dir, sizeof dir, "%s/run%d.%d", t_dir(), id, (i32)at);
        assert_int_equal(fit(&s, 1, &x, dir, false, &g), STOP_SIGNAL);
        assert_null(g);
        T_OK(fit(&s, 1, &y, dir, true, &g));
        assert_int_equal(g->spec.cut.slices, f->spec.cut.slices);
        assert_memory_equal(g->theta[0], f->theta[0], sizeof(f32) * (size_t)f->net.ntheta);
        assert_memory_equal(g->slices->watch.layer, f->slices->watch.layer, sizeof f->slices->watch.layer);
        forecast_free(&g->model);
    }
    forecast_free(&f->model);
    session_end(&s);
}

TEST(a_resumed_run_has_the_slices_and_the_bits) {
    for (i32 i = 0; i < (i32)COUNT(models); i++) resumed(models[i], i);
}

/* Another plan may update other ranges on a rank: the state of the optimiser goes where it is needed. */
static void on_ranks(const char *const *model) {
    const char *three[16] = {0};
    i32 n = 0;
    for (; model && model[n]; n++) three[n] = model[n];
    three[n] = "ranks", three[n + 1] = "3";
    struct session s = begun(model), t = begun(three);
    struct watcher w = {0}, x = {0};
    struct forecaster *f, *g;
    T_OK(fit(&s, 1, &w, NULL, false, &f));
    T_OK(fit(&t, 1, &x, NULL, false, &g));
    assert_true(w.fewer >= 1 && x.fewer == w.fewer);
    assert_int_equal(g->spec.cut.slices, f->spec.cut.slices);
    assert_memory_equal(g->theta[0], f->theta[0], sizeof(f32) * (size_t)f->net.ntheta);
    forecast_free(&f->model);
    forecast_free(&g->model);
    session_end(&s);
    session_end(&t);
}

TEST(slices_become_fewer_on_ranks_with_the_bits_of_one) {
    for (size_t i = 0; i < COUNT(models); i++) on_ranks(models[i]);
}

static void by_saved_plan(const char *const *model) {
    const char *four[16] = {0}, *by_plan[16] = {0};
    i32 n = 0;
    for (; model && model[n]; n++) four[n] = by_plan[n] = model[n];
    four[n] = "parallel", four[n + 1] = "time:4";
    struct session s = begun(four), again;
    const struct forecaster *f = forecaster_in(stretto_trainer_model(s.t)->m), *g;
    by_plan[n] = "plan", by_plan[n + 1] = t_file("saved.plan", f->model.plan_text.s);
    again = begun(by_plan);
    g = forecaster_in(stretto_trainer_model(again.t)->m);
    assert_int_equal(g->spec.cut.slices, 4);
    assert_memory_equal(g->theta[0], f->theta[0], sizeof(f32) * (size_t)f->net.ntheta);
    session_end(&s);
    session_end(&again);
}

TEST(a_saved_plan_keeps_its_slices) {
    for (size_t i = 0; i < COUNT(models); i++) by_saved_plan(models[i]);
}

/* What is not a number is found, in its slice where it lies in a row. */
TEST(a_loss_that_is_not_finite_says_where) {
    struct forecast_spec cut = {.cut.slices = 4, .context = 96};
    struct session s = begun(NULL);
    struct watcher w = {0};
    struct forecaster *f;
    char where[240];
    session_spec(&s)->lr = 3e38;
    session_spec(&s)->warmup = 0;
    session_spec(&s)->clip = 0;
    T_FAILS(fit(&s, P, &w, NULL, false, &f), 501);
    if (!strstr(err_last()->text, "; first in ")) fail_msg("%s", err_last()->text);
    slices_place(&cut, 8, "output \"lstm.0\": row 7, step 1, feature 3", where); /* 2 windows of 4 slices of 24 steps */
    assert_string_equal(where, "output \"lstm.0\": window 1, slice 3 of 4, step 73 of the window");
    slices_place(&cut, 8, "output \"lstm.0.reverse\": row 7, step 1, feature 3", where); /* read from its end */
    assert_string_equal(where, "output \"lstm.0.reverse\": window 1, slice 3 of 4, step 94 of the window");
    slices_place(&cut, 8, "weights of \"head\"", where);
    assert_string_equal(where, "weights of \"head\"");
    session_end(&s);
}

/* auto: batch first, time second. */
TEST(auto_fills_the_rows_that_windows_leave_empty) {
    struct options o = {.parallel = "auto"};
    static const struct { i32 batch, context, want, segment; bool all_steps, reverse; } cases[] = {
        {1, 65536, 32, 1, true, false}, {2, 65536, 16, 1, true, false}, {8, 65536, 4, 1, true, false},
        {64, 65536, 1, 1, true, false}, {1, 4096, 4, 1, true, false}, {1, 1024, 1, 1, true, false},
        {1, 65536, 32, 1, false, false}, {32, 65536, 1, 1, false, false}, {1, 4096, 4, 1, false, false},
        {1, 65536, 2, 24, false, false}, {1, 4096, 1, 24, false, false}, {1, 65536, 32, 1, false, true}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct head *direct = head_at(0);
        struct forecast_spec spec = {.batch = cases[i].batch, .context = cases[i].context,
                                     .decoder = cases[i].all_steps ? direct->all_steps : direct,
                                     .segment = cases[i].segment, .bidirectional = cases[i].reverse, .correction = true,
                                     .cut = {.slices = 1, .least = 1}};
        T_OK(resolve_slices(&o, 1000, 1, NULL, &spec));
        assert_int_equal(spec.cut.slices, cases[i].want);
        assert_int_equal(spec.cut.least, 1);
        o.deterministic = true;
        spec.cut.slices = 1;
        T_OK(resolve_slices(&o, 1000, 1, NULL, &spec));
        assert_int_equal(spec.cut.slices, 1);
        o.deterministic = false;
    }
}

T_MAIN(cmocka_unit_test(slices_that_do_not_pay_become_fewer),
       cmocka_unit_test(a_number_that_was_given_stays_and_is_warned_of_once),
       cmocka_unit_test(a_resumed_run_has_the_slices_and_the_bits),
       cmocka_unit_test(slices_become_fewer_on_ranks_with_the_bits_of_one), cmocka_unit_test(a_saved_plan_keeps_its_slices),
       cmocka_unit_test(a_loss_that_is_not_finite_says_where),
       cmocka_unit_test(auto_fills_the_rows_that_windows_leave_empty))
