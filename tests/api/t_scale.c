/* t_scale.c - scaling of data: a model's own scale is applied to raw rows; rows scaled by another model are refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stretto/stretto.h"
#include "t.h"

enum { ROWS = 300, H = 6 };

static f64 values[ROWS];

static stretto_config *config_of(const char *test) {
    static const char *const options[][2] = {{"horizon", "6"}, {"context", "24"}, {"steps", "20"}, {"hidden", "8"},
                                             {"guard", "no"},  {"base", "last"},  {"validation", "40"}, {"scale", "series"}};
    stretto_config *c = stretto_config_new();
    for (size_t i = 0; i < COUNT(options); i++) T_OK(stretto_config_set(c, options[i][0], options[i][1]));
    T_OK(stretto_config_set(c, "test", test));
    return c;
}

/* Rows around `level` with growing variance; the value at one row is missing, -1 = none. */
static stretto_data *rows_without(stretto_config *c, f64 level, i32 hole) {
    static const char *const name[] = {"y"};
    stretto_data *d;
    for (i32 i = 0; i < ROWS; i++) values[i] = level + 3 * sin(i * 0.7) + (i * 37 % 11) * 0.1 + (i > 150 ? 5 * sin(i * 0.3) : 0);
    if (hole >= 0) values[hole] = (f64)NAN;
    T_OK(stretto_data_wrap(c, values, ROWS, 1, name, 1600000000, 3600, &d));
    return d;
}

static stretto_data *rows_around(stretto_config *c, f64 level) { return rows_without(c, level, -1); }

static stretto_trainer *trained(stretto_config *c, stretto_data *d) {
    stretto_trainer *t;
    T_OK(stretto_trainer_new(c, d, &t));
    assert_true(stretto_trainer_run(t) > 0);
    return t;
}

TEST(rows_from_memory_take_the_scale_of_the_model) {
    f64 there[H], here[H], skill, again;
    char *text = NULL;
    stretto_config *c = config_of("60");
    stretto_data *d = rows_around(c, 500), *raw = rows_around(c, 500);
    stretto_trainer *t = trained(c, d);
    stretto_model *m = stretto_trainer_model(t);
    T_OK(stretto_predict(m, d, there, NULL));
    T_OK(stretto_predict(m, raw, here, NULL));
    for (i32 i = 0; i < H; i++) assert_true(fabs(there[i] - here[i]) < 1e-3);
    stretto_data_free(raw);
    raw = rows_around(c, 500);
    T_OK(stretto_eval(m, d, NULL, 1, &text, &skill));
    stretto_text_free(text);
    T_OK(stretto_eval(m, raw, NULL, 1, &text, &again));
    stretto_text_free(text);
    assert_true(fabs(skill - again) < 1e-3);
    stretto_data_free(raw);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

TEST(rows_of_other_columns_are_refused) {
    static const char *const names[] = {"y", "z"}, *const other[] = {"z"};
    static f64 two[2 * ROWS];
    f64 mean[2 * H];
    char *text = NULL;
    stretto_config *c = config_of("60");
    stretto_data *d = rows_around(c, 500), *wide, *alien, *timeless;
    stretto_trainer *t = trained(c, d);
    for (i32 i = 0; i < 2 * ROWS; i++) two[i] = i * 31 % 17;
    T_OK(stretto_data_wrap(c, two, ROWS, 2, names, 1600000000, 3600, &wide));
    T_OK(stretto_data_wrap(c, two, ROWS, 1, other, 1600000000, 3600, &alien));
    T_OK(stretto_data_wrap(c, two, ROWS, 1, names, 0, 0, &timeless));
    T_FAILS(stretto_predict(stretto_trainer_model(t), wide, mean, NULL), E903);
    T_FAILS(stretto_predict_file(stretto_trainer_model(t), wide, "-", 0, &text), E903);
    T_FAILS(stretto_predict(stretto_trainer_model(t), alien, mean, NULL), E903);
    T_FAILS(stretto_predict(stretto_trainer_model(t), timeless, mean, NULL), E903);
    T_FAILS(stretto_eval(stretto_trainer_model(t), wide, NULL, 0, &text, NULL), E903);
    stretto_data_free(wide);
    stretto_data_free(alien);
    stretto_data_free(timeless);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

static f64 deviation_of(stretto_trainer *t) {
    char *text = NULL;
    T_OK(stretto_model_info(stretto_trainer_model(t), 1, &text));
    const char *at = strstr(text, "\"deviation\":");
    assert_non_null(at);
    const f64 v = atof(at + 12);
    stretto_text_free(text);
    return v;
}

/* The second trainer holds out rows that the first used for scaling: they must be as unknown to it as in a separate run. */
TEST(a_second_trainer_is_not_scaled_by_what_it_is_tested_on) {
    f64 mean[H];
    stretto_config *late = config_of("20"), *early = config_of("160");
    stretto_data *d = rows_around(late, 500), *fresh = rows_around(late, 500);
    stretto_trainer *first = trained(late, d), *second = trained(early, d), *alone = trained(early, fresh);
    assert_true(deviation_of(first) > 1.2 * deviation_of(alone));
    assert_true(fabs(deviation_of(second) - deviation_of(alone)) < 1e-5);
    T_OK(stretto_predict(stretto_trainer_model(second), d, mean, NULL));
    T_FAILS(stretto_predict(stretto_trainer_model(first), d, mean, NULL), E903);
    stretto_trainer_free(first);
    stretto_trainer_free(second);
    stretto_trainer_free(alone);
    stretto_data_free(d);
    stretto_data_free(fresh);
    stretto_config_free(late);
    stretto_config_free(early);
}

/* A missing cell in the training rows adds a presence input; one in the test part must not, since it is not known yet. */
TEST(what_is_missing_in_the_test_part_makes_no_other_model) {
    static const i32 hole[] = {-1, ROWS - 5, 100};
    i64 parameters[COUNT(hole)];
    stretto_config *c = config_of("60");
    T_OK(stretto_config_set(c, "gaps", "mask"));
    for (size_t i = 0; i < COUNT(hole); i++) {
        stretto_data *d = rows_without(c, 500, hole[i]);
        stretto_trainer *t = trained(c, d);
        parameters[i] = stretto_model_parameters(stretto_trainer_model(t));
        stretto_trainer_free(t);
        stretto_data_free(d);
    }
    assert_int_equal(parameters[0], parameters[1]);
    assert_true(parameters[2] > parameters[0]);
    stretto_config_free(c);
}

/* 1e9 + 3 as an f32 is 1e9. */
TEST(a_forecast_far_from_zero_keeps_its_digits_in_a_file) {
    f64 mean[H];
    char *text = NULL;
    stretto_config *c = config_of("60");
    stretto_data *d = rows_around(c, 1e9);
    stretto_trainer *t = trained(c, d);
    T_OK(stretto_predict(stretto_trainer_model(t), d, mean, NULL));
    T_OK(stretto_predict_file(stretto_trainer_model(t), d, "-", 1, &text));
    const char *line = text;
    for (i32 i = 0; i < H; i++) {
        line = strchr(line, '\n') + 1;
        f64 written = 0;
        assert_int_equal(sscanf(line, "%*[^,],%*d,%lf", &written), 1); /* time,step,y */
        assert_true(fabs(written - mean[i]) < 1e-5);
    }
    stretto_text_free(text);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

T_MAIN(cmocka_unit_test(rows_from_memory_take_the_scale_of_the_model), cmocka_unit_test(rows_of_other_columns_are_refused),
       cmocka_unit_test(a_second_trainer_is_not_scaled_by_what_it_is_tested_on),
       cmocka_unit_test(what_is_missing_in_the_test_part_makes_no_other_model),
       cmocka_unit_test(a_forecast_far_from_zero_keeps_its_digits_in_a_file))
