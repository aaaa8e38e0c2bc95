/* t_report_again.c - stretto_report: a report from a run, from a model and its run, on other data; errors leave nothing behind.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "stretto/stretto.h"
#include "t.h"

enum { ROWS = 300 };

static char data[300], model[300], run[300];

static void write_rows(void) {
    struct str text = {0};
    str_add(&text, "y\n");
    for (i32 i = 0; i < ROWS; i++) str_addf(&text, "%.4f\n", 50 + 10 * sin(i * 0.7) + i * 37 % 11);
    snprintf(data, sizeof data, "%s/y.csv", t_dir());
    T_OK(file_write_text(data, &text));
}

static void train(void) {
    static const char *const options[][2] = {{"target", "y"}, {"horizon", "6"}, {"context", "24"}, {"steps", "20"},
                                             {"hidden", "8"}, {"members", "1"}, {"test", "60"}};
    stretto_config *c = stretto_config_new();
    stretto_data *d;
    stretto_trainer *t;
    for (size_t i = 0; i < COUNT(options); i++) T_OK(stretto_config_set(c, options[i][0], options[i][1]));
    snprintf(model, sizeof model, "%s/y.model", t_dir());
    snprintf(run, sizeof run, "%s/y.model.run", t_dir());
    T_OK(stretto_data_open(c, data, &d));
    T_OK(stretto_trainer_new(c, d, &t));
    T_OK(stretto_trainer_target(t, model));
    T_OK(stretto_trainer_run_dir(t, run, 0));
    assert_true(stretto_trainer_run(t) > 0);
    T_OK(stretto_trainer_save(t, model));
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

static int set_up(void **state) {
    (void)state;
    write_rows();
    train();
    return 0;
}

static void expect_page(const char *path, const char *text) {
    char *page;
    i64 size;
    T_OK(file_load(path, 1 << 24, &page, &size));
    if (!strstr(page, text)) fail_msg("%s has no \"%s\"", path, text);
    mem_free(page);
}

TEST(report_of_a_run_goes_into_it) {
    char *path;
    T_OK(stretto_report(run, NULL, NULL, NULL, &path));
    assert_non_null(strstr(path, "y.model.run/report.html"));
    expect_page(path, "<section id=\"curves\">");
    stretto_text_free(path);
}

TEST(report_of_a_model_uses_its_run_and_takes_options) {
    char *path, own[300];
    stretto_config *c = stretto_config_new();
    T_OK(stretto_config_set(c, "stride", "6"));
    snprintf(own, sizeof own, "%s/own.html", t_dir());
    T_OK(stretto_report(model, NULL, c, own, &path));
    assert_string_equal(path, own);
    expect_page(path, " 10 windows, every one counted"); /* of 60 rows, 6 rows apart */
    stretto_text_free(path);
    stretto_config_free(c);
}

TEST(report_on_other_data_has_no_split) {
    char *path, *page;
    i64 size;
    T_OK(stretto_report(model, data, NULL, NULL, &path));
    assert_non_null(strstr(path, "y.model.html"));
    T_OK(file_load(path, 1 << 24, &page, &size));
    assert_null(strstr(page, "</span>validation</th>"));
    assert_non_null(strstr(page, "<section id=\"scores\">"));
    mem_free(page);
    stretto_text_free(path);
}

TEST(report_of_nothing_says_what_is_missing) {
    char *path, gone[300];
    const i64 live = mem_stats().live;
    snprintf(gone, sizeof gone, "%s/none.model", t_dir());
    T_FAILS(stretto_report(gone, NULL, NULL, NULL, &path), 701);
    assert_null(path);
    T_FAILS(stretto_report(t_dir(), NULL, NULL, NULL, &path), 705);
    T_FAILS(stretto_report(data, data, NULL, NULL, &path), 901);
    T_FAILS(stretto_report(model, gone, NULL, NULL, &path), 701);
    T_FAILS(stretto_report(model, NULL, NULL, "no/such/x.html", &path), 702);
    assert_int_equal(mem_stats().live, live);
}

TEST(report_out_of_memory_leaves_nothing_behind) {
    char *path;
    T_OK(stretto_report(run, NULL, NULL, NULL, &path)); /* what is kept for the process is there now */
    stretto_text_free(path);
    const i64 live = mem_stats().live;
    i64 calls = mem_stats().calls;
    T_OK(stretto_report(run, NULL, NULL, NULL, &path));
    stretto_text_free(path);
    calls = mem_stats().calls - calls;
    for (i64 n = 1; n <= calls; n += calls / 60 + 1) {
        mem_fail_nth(n);
        if (stretto_report(run, NULL, NULL, NULL, &path) >= 0) stretto_text_free(path);
        mem_fail_nth(0);
        assert_int_equal(mem_stats().live, live);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_of_a_run_goes_into_it), cmocka_unit_test(report_of_a_model_uses_its_run_and_takes_options),
        cmocka_unit_test(report_on_other_data_has_no_split), cmocka_unit_test(report_of_nothing_says_what_is_missing),
        cmocka_unit_test(report_out_of_memory_leaves_nothing_behind)};
    return cmocka_run_group_tests(tests, set_up, NULL) ? 1 : 0;
}
