/* t_face.c - the small functions of stretto.h: options, data, models, plans, each called as a client program would. */
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stretto/stretto.h"

static const char *series_file(void) {
    char *text = NULL;
    T_OK(stretto_sample("tides", 400, 3, &text));
    const char *path = t_file("tides.csv", text);
    stretto_text_free(text);
    return path;
}

static stretto_config *small(void) {
    stretto_config *c = stretto_config_new();
    assert_non_null(c);
    T_OK(stretto_config_set(c, "target", "height"));
    T_OK(stretto_config_set(c, "horizon", "6"));
    T_OK(stretto_config_set(c, "members", "1"));
    T_OK(stretto_config_set(c, "steps", "5"));
    T_OK(stretto_config_set(c, "threads", "1"));
    return c;
}

static bool gives(stretto_err e, char *text, const char *what) {
    T_OK(e);
    bool found = text && strstr(text, what);
    if (!found) print_error("\"%s\" is not in:\n%.2000s\n", what, text ? text : "(null)");
    stretto_text_free(text);
    return found;
}

TEST(version_and_build_are_told) {
    char *text = NULL;
    assert_string_equal(stretto_version(), STRETTO_VERSION);
    assert_int_equal(stretto_abi(), 1);
    stretto_err e = stretto_build_info(&text);
    assert_true(gives(e, text, "\"kernels\""));
    assert_non_null(strstr(stretto_samples(), "tides"));
}

TEST(options_are_listed_set_and_ranked) {
    const char *name, *value, *help;
    stretto_config *c = stretto_config_new();
    for (int i = 0; i < stretto_option_count(); i++) {
        T_OK(stretto_option(i, &name, &value, &help));
        assert_non_null(stretto_config_get(c, name));
        assert_true(strlen(help) > 3);
    }
    T_FAILS(stretto_option(-1, &name, &value, &help), 103);
    T_OK(stretto_config_set(c, "hidden", "64"));
    T_OK(stretto_config_flag(c, "hidden", "16")); /* a call has priority over a flag */
    assert_string_equal(stretto_config_get(c, "hidden"), "64");
    T_FAILS(stretto_config_set(c, "hiden", "1"), 101);
    assert_true(stretto_exit_status(-101) == 2 && strlen(stretto_errfix()) > 0);
    assert_true(stretto_rank() == 0 && stretto_ranks() == 1); /* no launcher */
    T_OK(stretto_config_load(c, t_file("c.yaml", "horizon: 7\n")));
    char *text = NULL;
    stretto_err e = stretto_config_print(c, &text);
    assert_true(gives(e, text, "horizon: 7"));
    stretto_config_free(c);
}

TEST(data_are_checked_and_cached) {
    char *text = NULL, *proposed = NULL;
    char cache[512];
    stretto_config *c = small();
    const char *path = series_file();
    stretto_err e = stretto_check(c, path, 0, &text, &proposed);
    assert_true(gives(e, text, "400 rows"));
    assert_true(gives(0, proposed, "height"));
    snprintf(cache, sizeof cache, "%s/tides.bin", t_dir());
    T_OK(stretto_cache(c, path, cache));
    stretto_data *a, *b;
    T_OK(stretto_data_open(c, path, &a));
    T_OK(stretto_data_open(c, cache, &b));
    assert_int_equal(stretto_data_rows(a), stretto_data_rows(b));
    for (int64_t i = 0; i < 400; i++) assert_true(stretto_data_value(a, 0, i) == stretto_data_value(b, 0, i));
    stretto_data_free(a);
    stretto_data_free(b);
    const char *two = t_file("two.csv", "a,b\n1,2\n3,5\n2,4\n5,1\n4,9\n6,2\n");
    stretto_config *bare = stretto_config_new();
    e = stretto_check(bare, two, 0, &text, &proposed); /* a guess, which training would not take */
    assert_true(gives(e, text, "--target is missing"));
    assert_true(gives(0, proposed, "target: [\"b\"]"));
    T_FAILS(stretto_data_open(bare, two, &a), E105);
    e = stretto_data_info(bare, two, 0, &text);
    stretto_config_free(bare);
    assert_true(gives(e, text, "(the target is a guess): target b"));
    stretto_config_free(c);
}

TEST(a_run_folder_remembers_its_paths) {
    char folder[512], model[512], *data_path = NULL, *model_path = NULL, *yaml = NULL;
    stretto_config *c = small();
    stretto_data *d;
    stretto_trainer *t;
    T_OK(stretto_data_open(c, series_file(), &d));
    T_OK(stretto_trainer_new(c, d, &t));
    stretto_err e = stretto_trainer_config(t, &yaml);
    assert_true(gives(e, yaml, "preset: short"));
    snprintf(folder, sizeof folder, "%s/t.run", t_dir());
    snprintf(model, sizeof model, "%s/t.model", t_dir());
    T_OK(stretto_trainer_target(t, model));
    T_OK(stretto_trainer_run_dir(t, folder, 0));
    T_FAILS(stretto_run_paths(folder, &data_path, &model_path), 705); /* not begun: nothing to resume */
    assert_true(stretto_trainer_run(t) > 0);
    T_OK(stretto_run_fetch(folder, &yaml)); /* a folder of this host is itself */
    assert_string_equal(yaml, folder);
    stretto_text_free(yaml);
    T_FAILS(stretto_run_fetch("hdfs://127.0.0.1:1/t.model.run", &yaml), 706);
    T_OK(stretto_run_paths(folder, &data_path, &model_path));
    assert_non_null(strstr(data_path, "tides.csv"));
    assert_non_null(strstr(model_path, "t.model"));
    stretto_text_free(data_path);
    stretto_text_free(model_path);
    T_OK(stretto_trainer_save(t, model));
    T_FAILS(stretto_run_paths(folder, &data_path, &model_path), 705); /* finished: nothing to resume */

    stretto_model *m = stretto_trainer_model(t);
    assert_true(stretto_model_parameters(m) > 4000);
    assert_true(fabs(stretto_model_quantile(m, 0) - 0.1) < 1e-12);
    assert_string_equal(stretto_config_get(stretto_model_config(m), "horizon"), "6");
    char svg[512];
    snprintf(svg, sizeof svg, "%s/next.svg", t_dir());
    T_OK(stretto_model_plot(m, d, svg));
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

TEST(a_config_is_refused_before_data_are_read) {
    stretto_config *c = small();
    T_OK(stretto_config_check(c));
    T_OK(stretto_config_set(c, "plan", t_file("p.plan", "(plan data_sync:2 of nobody knows")));
    T_OK(stretto_config_check(c)); /* checks as far as a plan; the rest needs the model */
    T_OK(stretto_config_set(c, "plan", t_file("p.plan", "(plant data_sync:2")));
    T_FAILS(stretto_config_check(c), 402);
    T_OK(stretto_config_set(c, "plan", ""));
    T_OK(stretto_config_set(c, "parallel", "time"));
    T_OK(stretto_config_check(c));
    T_OK(stretto_config_set(c, "deterministic", "yes"));
    T_FAILS(stretto_config_check(c), 401);
    T_OK(stretto_config_join(c)); /* no launcher: nothing to join */
    stretto_config_free(c);
}

TEST(what_is_doubtful_in_data_is_told_beside_a_model) {
    char text[8000] = "kind,height\n", *at = text + strlen(text);
    for (int i = 0; i < 300; i++) at += snprintf(at, 8, "%c,%d\n", i % 2 ? 'a' : 'b', 3 + i % 7);
    const char *path = t_file("kinds.csv", text);
    stretto_config *c = small();
    stretto_data *d;
    stretto_trainer *t;
    T_OK(stretto_config_set(c, "cat", "kind"));
    T_OK(stretto_data_open(c, path, &d));
    T_OK(stretto_trainer_new(c, d, &t));
    assert_true(stretto_trainer_run(t) > 0);
    stretto_model *m = stretto_trainer_model(t);
    stretto_data *other = NULL;
    T_OK(stretto_model_open(m, path, &other));
    assert_string_equal(stretto_model_warnings(m), "");
    stretto_data_free(other);
    memcpy(strstr(text, "b,"), "c,", 2);
    T_OK(stretto_model_open(m, t_file("others.csv", text), &other));
    assert_string_equal(stretto_model_warnings(m),
                        "column \"kind\": 1 row holds a word that training has not seen "
                        "(\"c\", first in line 2): taken for missing");
    stretto_data_free(other);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

TEST(backtest_scores_every_fold) {
    char *text = NULL;
    stretto_config *c = small();
    stretto_data *d;
    T_OK(stretto_config_set(c, "folds", "2"));
    T_OK(stretto_data_open(c, series_file(), &d));
    stretto_err e = stretto_backtest(c, d, NULL, NULL, 0, &text);
    assert_true(gives(e, text, "fold 2 of 2"));
    stretto_data_free(d);
    stretto_config_free(c);
}

static void stop_backtest(void *config, const stretto_event *event) {
    if (event->kind == 2) stretto_backtest_stop(config);
}

TEST(backtest_ends_when_asked) {
    char *text = NULL;
    stretto_config *c = small();
    stretto_data *d;
    T_OK(stretto_config_set(c, "steps", "1000000"));
    T_OK(stretto_config_set(c, "max-steps", "0"));
    T_OK(stretto_data_open(c, series_file(), &d));
    stretto_err e = stretto_backtest(c, d, stop_backtest, c, 0, &text);
    assert_true(e == STRETTO_STOP_SIGNAL || e == -806);
    assert_null(text);
    T_OK(stretto_config_set(c, "steps", "4"));
    e = stretto_backtest(c, d, NULL, NULL, 0, &text); /* the request has been used up */
    assert_true(gives(e, text, "fold 1 of"));
    stretto_data_free(d);
    stretto_config_free(c);
}

TEST(plans_print_draw_and_save) {
    char *text = NULL, path[512];
    stretto_config *c = small();
    stretto_plan *p;
    stretto_err e = stretto_machine_info(0, &text);
    assert_true(gives(e, text, "cpu"));
    T_OK(stretto_plan_new(c, NULL, &p));
    e = stretto_plan_print(p, &text);
    assert_true(gives(e, text, "(fwd lstm.0"));
    e = stretto_plan_place(p, "all", &text);
    assert_true(gives(e, text, "lower bound"));
    e = stretto_plan_draw(p, 1, &text);
    assert_true(gives(e, text, "<svg"));
    snprintf(path, sizeof path, "%s/a.plan", t_dir());
    T_OK(stretto_plan_save(p, path));
    stretto_plan_free(p);
    T_OK(stretto_config_set(c, "repeat", "1"));
    T_OK(stretto_config_set(c, "hidden", "16"));
    e = stretto_bench(c, 1, &text);
    assert_true(gives(e, text, "step_ms"));
    stretto_config_free(c);
}

TEST(work_is_dealt_to_unlike_devices) {
    char *text = NULL;
    stretto_config *c = stretto_config_new();
    T_OK(stretto_config_set(c, "machine", "gpu*2 cpu*4"));
    stretto_err e = stretto_plan_deal(c, &text);
    assert_true(gives(e, text, "6 devices, together 404 times the slowest"));
    stretto_config_free(c);
}

TEST(doctor_looks_at_this_host) {
    char *text = NULL;
    stretto_config *c = stretto_config_new();
    T_OK(stretto_config_set(c, "threads", "1"));
    T_OK(stretto_config_set(c, "run-dir", t_dir()));
    stretto_err e = stretto_doctor(c, 0, &text);
    assert_true(gives(e, text, "run folder"));
    e = stretto_doctor(c, 1, &text);
    assert_true(gives(e, text, "\"findings\""));
    T_OK(stretto_config_set(c, "run-dir", "/proc/absent/run"));
    T_FAILS(stretto_doctor(c, 0, &text), E1101);
    assert_non_null(strstr(text, "stop  run folder"));
    stretto_text_free(text);
    stretto_config_free(c);
}

TEST(gpuload_plays_what_was_recorded) {
    char *text = NULL;
    stretto_config *c = stretto_config_new();
    T_OK(stretto_config_set(c, "node", "n1"));
    T_OK(stretto_config_set(c, "recorded", t_file("day.csv", "time,gpu,utilisation,memory\n0,0,0,0\n60,0,100,0\n")));
    T_OK(stretto_config_set(c, "dry-run", "yes"));
    stretto_err e = stretto_gpuload(c, 0, &text);
    assert_true(gives(e, text, "recorded: dry run: scontrol update NodeName=n1 Weight=64\n"));
    e = stretto_gpuload(c, 1, &text);
    assert_true(gives(e, text, "\"why\": \"moved\""));
    T_OK(stretto_config_set(c, "shares", "yes"));
    T_FAILS(stretto_gpuload(c, 0, &text), E106); /* it prints what earlier calls left */
    T_OK(stretto_config_set(c, "recorded", ""));
    T_OK(stretto_config_set(c, "dry-run", "no"));
    T_OK(stretto_config_set(c, "state", t_dir()));
    T_FAILS(stretto_gpuload(c, 0, &text), E202); /* a folder */
    assert_null(text);
    stretto_config_free(c);
}

T_MAIN(cmocka_unit_test(version_and_build_are_told), cmocka_unit_test(options_are_listed_set_and_ranked),
       cmocka_unit_test(data_are_checked_and_cached), cmocka_unit_test(a_run_folder_remembers_its_paths),
       cmocka_unit_test(a_config_is_refused_before_data_are_read),
       cmocka_unit_test(what_is_doubtful_in_data_is_told_beside_a_model), cmocka_unit_test(backtest_scores_every_fold),
       cmocka_unit_test(backtest_ends_when_asked),
       cmocka_unit_test(plans_print_draw_and_save), cmocka_unit_test(work_is_dealt_to_unlike_devices),
       cmocka_unit_test(doctor_looks_at_this_host),
       cmocka_unit_test(gpuload_plays_what_was_recorded))
