/* t_text.c - numbers and names as text, the score table, the trace. */
#include "t.h"

#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "report/table.h"
#include "report/text.h"
#include "report/trace.h"

/* Appends with `call` into a fresh buffer b and compares. */
#define SAYS(call, want)                                                                                                         \
    do {                                                                                                                         \
        struct str b = {0};                                                                                                      \
        call;                                                                                                                    \
        assert_string_equal(str_text(&b), want);                                                                                 \
        str_free(&b);                                                                                                            \
    } while (0)

TEST(text_numbers_read_well) {
    assert_string_equal(text_digits(15.8234, 3).s, "15.8");
    assert_string_equal(text_digits(.02634, 3).s, "0.0263");
    assert_string_equal(text_digits(1.25e-7, 2).s, "1.2e-07");
    assert_string_equal(text_fixed(-.0001, 2).s, "0.00");
    assert_string_equal(text_fixed((f64)NAN, 2).s, "\xe2\x80\x93");
    assert_string_equal(text_si(950).s, "950");
    assert_string_equal(text_si(12435).s, "12.4k");
    assert_string_equal(text_si(1.84e6).s, "1.84M");
    assert_string_equal(text_seconds(.42).s, "0.42 s");
    assert_string_equal(text_seconds(370).s, "6m10s");
    assert_string_equal(text_seconds(7500).s, "2h05m");
    assert_string_equal(text_clock(3723).s, "1:02:03");
    assert_string_equal(text_clock(-1).s, "?");
    assert_string_equal(text_skill(.674).s, "+67%");
    assert_string_equal(text_skill(-.003).s, "-0.3%");
    assert_string_equal(text_json_number(INFINITY).s, "null");
    assert_string_equal(text_json_number(.1).s, "0.1");
}

TEST(text_dates_follow_the_calendar) {
    struct civil c;
    for (i64 day = -800000; day < 800000; day += 997) {
        time_split(day * 86400, &c);
        assert_int_equal(time_days(c.year, c.month, c.day), day);
    }
    f64 t = 86400. * (f64)time_days(2012, 10, 29) + 3600;
    assert_string_equal(text_time(t, 3600).s, "2012-10-29 01:00");
    assert_string_equal(text_time(86400. * (f64)time_days(1959, 1, 1), 31 * 86400.).s, "1959-01");
    assert_string_equal(text_time(-86400, 86400).s, "1969-12-31");
}

TEST(text_escapes_hostile_names) {
    SAYS(text_xml(&b, "<a href='x'>&\"\x01\xff"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot; \xef\xbf\xbd");
    SAYS(text_json(&b, "a\"\\\n\x02\xc3"), "\"a\\\"\\\\\\n\\u0002\xef\xbf\xbd\"");
    SAYS(text_xml(&b, "Ü€"), "Ü€");
}

TEST(text_ignores_a_decimal_comma_of_the_process) {
    if (!t_comma_locale()) skip(); /* another C library has other locales */
    assert_string_equal(text_fixed(1.5, 2).s, "1.50");
    assert_string_equal(text_json_number(1.25).s, "1.25");
    setlocale(LC_NUMERIC, "C");
}

static const struct score_row row[] = {{"model", ROLE_MODEL, {15.8, .5213, .0262}, .674},
                                       {"snaive (12)", ROLE_SNAIVE, {47.83, 1.57, .1}, (f64)NAN},
                                       {"naive", ROLE_NAIVE, {76, 2.5, .16}, (f64)NAN}};
static const struct score_table table = {.title = "test 1960-01..12", .nmetric = 3, .metric = {"MAE", "MASE", "wQL"}, .nrow = 3,
                                         .row = row, .best_naive = 1, .windows = 1};

/* The layout of the table in README.md. */
TEST(table_is_aligned_as_documented) {
    SAYS(table_text(&b, &table), "test 1960-01..12      MAE   MASE    wQL   skill (vs best naive)\n"
                                 "  model              15.8   0.52  0.026   +67%\n"
                                 "  snaive (12)        47.8   1.57  0.100\n"
                                 "  naive              76.0   2.50  0.160\n");
}

TEST(table_grows_with_long_names_and_large_figures) {
    struct score_row big[] = {{"a name longer than others", ROLE_MODEL, {123456.7, (f64)NAN}, (f64)NAN},
                              {"b", ROLE_NAIVE, {1e12, .00001}, (f64)NAN}};
    struct score_table t = {.title = "t", .nmetric = 2, .metric = {"MSE", "a long metric"}, .nrow = 2, .row = big,
                            .best_naive = -1};
    SAYS(table_text(&b, &t), "t                                MSE  a long metric\n"
                             "  a name longer than others   123457              -\n"
                             "  b                          1.0e+12       0.000010\n");
}

TEST(table_as_json) {
    static const f64 step[] = {.5, .25};
    const struct score_band band = {.1, .9, .25, 2, {1, 3}, {.5, .125}, 2, step};
    SAYS(table_json(&b, &(struct score_table){.title = "t", .nmetric = 1, .metric = {"MAE"}, .nrow = 1, .row = row,
                                              .best_naive = -1, .windows = 4, .band = band}),
         "{\"title\":\"t\",\"windows\":4,\"band\":{\"from\":0.1,\"to\":0.9,\"coverage\":0.25,"
         "\"by_step\":[{\"last_step\":1,\"coverage\":0.5},{\"last_step\":3,\"coverage\":0.125}],\"steps\":[0.5,0.25]},"
         "\"rows\":[{\"name\":\"model\",\"MAE\":15.8,\"skill\":0.674}]}");
}

TEST(trace_names_lanes_once_and_uses_microseconds) {
    struct span s[] = {{"w0", "fwd lstm.0", 0, 1e-3, 0},
                       {"w1", "bwd \"x\"", 2e-6, 3e-6, 0},
                       {"w0", "wait", 1e-3, 2e-3, 0},
                       {"w0", "fwd", 0, 1, 1}};
    struct str b = {0};
    trace_json(&b, s, 4);
    assert_int_equal(b.failed, false);
    const char *names = strstr(b.s, "thread_name");
    i32 n = 0;
    for (; names; names = strstr(names + 1, "thread_name")) n++;
    assert_int_equal(n, 3);
    assert_non_null(
        strstr(b.s, "{\"name\":\"bwd \\\"x\\\"\",\"cat\":\"bwd\",\"ph\":\"X\",\"ts\":2.000,\"dur\":1.000,\"pid\":0,\"tid\":1}"));
    str_free(&b);
    trace_json(&b, NULL, 0);
    assert_string_equal(b.s, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n]}\n");
    str_free(&b);
}

T_MAIN(cmocka_unit_test(text_numbers_read_well), cmocka_unit_test(text_dates_follow_the_calendar),
       cmocka_unit_test(text_escapes_hostile_names), cmocka_unit_test(text_ignores_a_decimal_comma_of_the_process),
       cmocka_unit_test(table_is_aligned_as_documented), cmocka_unit_test(table_grows_with_long_names_and_large_figures),
       cmocka_unit_test(table_as_json), cmocka_unit_test(trace_names_lanes_once_and_uses_microseconds))
