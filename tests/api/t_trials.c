/* t_trials.c - stretto_tune in memory: what it may see, what it gives, how it ends. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "stretto/stretto.h"
#include "t.h"

enum { ROWS = 160, TEST_ROWS = 12 };

static stretto_config *config(const char *const (*set)[2]) {
    static const char *const usual[][2] = {{"horizon", "6"},  {"test", "12"},   {"steps", "4"},      {"members", "1"},
                                           {"trials", "10"}, {"threads", "2"}, {"season", "12"},    {"seed", "3"}, {NULL, NULL}};
    stretto_config *c = stretto_config_new();
    for (i32 i = 0; usual[i][0]; i++) T_OK(stretto_config_set(c, usual[i][0], usual[i][1]));
    for (i32 i = 0; set && set[i][0]; i++) T_OK(stretto_config_set(c, set[i][0], set[i][1]));
    return c;
}

/* tail: what the rows of the test part are multiplied by. */
static stretto_data *data(stretto_config *c, f64 tail) {
    static f64 v[ROWS];
    static const char *const name[] = {"y"};
    stretto_data *d = NULL;
    for (i32 i = 0; i < ROWS; i++)
        v[i] = (100 + 0.5 * i + 20 * sin(i * 0.5236) + 3 * sin(i * 1.7)) * (i >= ROWS - TEST_ROWS ? tail : 1);
    T_OK(stretto_data_wrap(c, v, ROWS, 1, name, 0, 86400, &d));
    return d;
}

/* The result as JSON without times. */
static struct js *search(const char *const (*set)[2], f64 tail, char **yaml) {
    stretto_config *c = config(set);
    stretto_data *d = data(c, tail);
    struct js *o = NULL;
    char *text = NULL;
    T_OK(stretto_tune(c, d, NULL, NULL, 1, &text, yaml));
    T_OK(js_parse(text, strlen(text), "tune", &o));
    stretto_text_free(text);
    stretto_data_free(d);
    stretto_config_free(c);
    return o;
}

static void same(const struct js *a, const struct js *b) {
    const struct js *x = js_get(a, "trials"), *y = js_get(b, "trials");
    static const char *const member[] = {"options", "errors", "failed", "fits"};
    assert_int_equal(js_len(x), js_len(y));
    for (i64 i = 0; i < js_len(x); i++)
        for (size_t k = 0; k < COUNT(member); k++) {
            struct str p = {0}, q = {0};
            if (js_get(js_at(x, i), member[k])) T_OK(js_text(js_get(js_at(x, i), member[k]), &p, 0));
            if (js_get(js_at(y, i), member[k])) T_OK(js_text(js_get(js_at(y, i), member[k]), &q, 0));
            assert_string_equal(str_text(&p), str_text(&q));
            str_free(&p);
            str_free(&q);
        }
    assert_int_equal(js_i64(js_get(a, "chosen"), -1), js_i64(js_get(b, "chosen"), -2));
}

TEST(the_rows_of_the_test_part_change_nothing) {
    char *first, *second;
    struct js *a = search(NULL, 1, &first), *b = search(NULL, -5, &second);
    same(a, b);
    assert_string_equal(first, second);
    js_free(a);
    js_free(b);
    stretto_text_free(first);
    stretto_text_free(second);
}

TEST(threads_do_not_change_the_result) {
    static const char *const one[][2] = {{"threads", "1"}, {NULL, NULL}};
    char *first, *second;
    struct js *a = search(NULL, 1, &first), *b = search(one, 1, &second);
    same(a, b);
    js_free(a);
    js_free(b);
    stretto_text_free(first);
    stretto_text_free(second);
}

TEST(given_options_do_not_vary_and_stand_in_the_config) {
    static const char *const given[][2] = {{"lr", "0.01"}, {"cell", "gru"}, {NULL, NULL}};
    char *yaml;
    struct js *o = search(given, 1, &yaml);
    const struct js *trials = js_get(o, "trials");
    for (i64 i = 0; i < js_len(trials); i++) {
        const struct js *set = js_get(js_at(trials, i), "options");
        assert_null(js_get(set, "lr"));
        assert_null(js_get(set, "cell"));
        assert_null(js_get(set, "steps"));
    }
    assert_non_null(strstr(yaml, "\nlr: 0.01 "));
    assert_non_null(strstr(yaml, "\ncell: gru "));
    assert_null(strstr(yaml, "\ntrials"));
    js_free(o);
    stretto_text_free(yaml);
}

TEST(the_data_stay_as_they_were) {
    char *text, *yaml;
    stretto_config *c = config(NULL);
    stretto_data *d = data(c, 1);
    const f64 last = stretto_data_value(d, 0, ROWS - 1);
    T_OK(stretto_tune(c, d, NULL, NULL, 0, &text, &yaml));
    assert_true(stretto_data_value(d, 0, ROWS - 1) == last);
    assert_non_null(strstr(text, "the defaults"));
    stretto_text_free(text);
    stretto_text_free(yaml);
    stretto_data_free(d);
    stretto_config_free(c);
}

static void stop_at_work(void *user, const stretto_event *e) {
    int trial = 0;
    (void)user;
    if (e->kind == 7 && sscanf(e->text, "tuning: trial %d of", &trial) == 1 && trial >= 16) stretto_tune_stop();
}

TEST(a_stop_before_the_defaults_are_fitted_is_an_error_else_the_best_so_far) {
    char *text, *yaml;
    stretto_config *c = config(NULL);
    stretto_data *d = data(c, 1);
    stretto_tune_stop();
    T_FAILS(stretto_tune(c, d, NULL, NULL, 0, &text, &yaml), E806);
    assert_null(text);
    T_OK(stretto_config_set(c, "trials", "100000"));
    assert_int_equal(stretto_tune(c, d, stop_at_work, NULL, 0, &text, &yaml), STRETTO_STOP_SIGNAL);
    assert_non_null(strstr(yaml, "horizon: 6"));
    stretto_text_free(text);
    stretto_text_free(yaml);
    stretto_data_free(d);
    stretto_config_free(c);
}

TEST(too_few_rows_are_refused) {
    static const char *const far[][2] = {{"horizon", "80"}, {"test", "10"}, {NULL, NULL}};
    char *text, *yaml;
    stretto_config *c = config(far);
    stretto_data *d = data(c, 1);
    T_FAILS(stretto_tune(c, d, NULL, NULL, 0, &text, &yaml), E301);
    stretto_data_free(d);
    stretto_config_free(c);
}

T_MAIN(cmocka_unit_test(the_rows_of_the_test_part_change_nothing), cmocka_unit_test(threads_do_not_change_the_result),
       cmocka_unit_test(given_options_do_not_vary_and_stand_in_the_config), cmocka_unit_test(the_data_stay_as_they_were),
       cmocka_unit_test(a_stop_before_the_defaults_are_fitted_is_an_error_else_the_best_so_far),
       cmocka_unit_test(too_few_rows_are_refused))
