/* t_torture.c - fails the n-th allocation, for all n of a short run: the result is an error (E601) or success, never a crash or
 * leak.
 *
 *     wrap -> train (two members, few steps) -> scores -> save -> load -> predict -> eval   via stretto.h, one process
 *
 * n counts from a run without failure: the first ones individually (they differ most), then a sample; every n with
 * STRETTO_TORTURE=all. Leaks: live bytes after each run equal those before it, and the leak checker of the asan build runs too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "stretto/stretto.h"
#include "t.h"

enum { ROWS = 60, ALL_UP_TO = 300, SPREAD = 250, SECONDS = 45 };

static f64 column[ROWS];
static char model_path[512], csv_path[512];

static stretto_err fresh_config(stretto_config **out) {
    static const char *const options[][2] = {{"horizon", "3"},    {"context", "8"},       {"members", "2"}, {"steps", "4"},
                                             {"hidden", "4"},     {"batch", "8"},         {"threads", "1"}, {"target", "y"},
                                             {"preset", "short"}, {"validate-every", "2"}};
    *out = stretto_config_new();
    if (!*out) return -601;
    for (size_t i = 0; i < COUNT(options); i++) TRY(stretto_config_set(*out, options[i][0], options[i][1]));
    return 0;
}

static stretto_err train(stretto_config *config, stretto_data *data) {
    stretto_trainer *t = NULL;
    stretto_err e = stretto_trainer_new(config, data, &t);
    if (e >= 0) e = stretto_trainer_run(t);
    if (e >= 0) stretto_trainer_scores(t, 0);
    if (e >= 0) e = stretto_trainer_save(t, model_path);
    stretto_trainer_free(t);
    return e < 0 ? e : 0;
}

static stretto_err use(void) {
    stretto_model *m = NULL;
    stretto_data *d = NULL;
    char *text = NULL, *table = NULL;
    double skill;
    stretto_err e = stretto_model_load(model_path, &m);
    if (e >= 0) e = stretto_model_open(m, csv_path, &d);
    if (e >= 0) e = stretto_predict_file(m, d, "-", 0, &text);
    if (e >= 0) e = stretto_eval(m, d, NULL, 0, &table, &skill);
    stretto_text_free(text);
    stretto_text_free(table);
    stretto_data_free(d);
    stretto_model_free(m);
    return e;
}

static stretto_err session(void) {
    static const char *const name[] = {"y"};
    stretto_config *config = NULL;
    stretto_data *data = NULL;
    stretto_err e = fresh_config(&config);
    if (e >= 0) e = stretto_data_wrap(config, column, ROWS, 1, name, 0, 86400, &data);
    if (e >= 0) e = train(config, data);
    stretto_data_free(data);
    stretto_config_free(config);
    return e < 0 ? e : use();
}

static int prepare(void **state) {
    (void)state;
    char text[4096] = "day,y\n";
    for (i32 i = 0; i < ROWS; i++) {
        column[i] = 20 + 3 * (i % 7) + 0.1 * i;
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "1970-%02d-%02d,%.2f\n", 1 + i / 31 + (i >= 59),
                 i < 31   ? i + 1
                 : i < 59 ? i - 30
                          : i - 58,
                 column[i]);
    }
    snprintf(csv_path, sizeof csv_path, "%s", t_file("t.csv", text));
    snprintf(model_path, sizeof model_path, "%s/t.model", t_dir());
    char wisdom[512]; /* of this test alone: what the process keeps of the file grows when another program adds to it */
    snprintf(wisdom, sizeof wisdom, "%s/wisdom", t_dir());
    setenv("STRETTO_WISDOM", wisdom, 1);
    return 0;
}

static void one(i64 n, i64 *failed) {
    i64 live = mem_stats().live;
    mem_fail_nth(n);
    stretto_err e = session();
    mem_fail_nth(0);
    if (e < 0 && stretto_errcode() != E601)
        fail_msg("allocation %lld: E%03d %s", (long long)n, stretto_errcode(), stretto_errmsg());
    if (mem_stats().live != live)
        fail_msg("allocation %lld: %lld bytes stay", (long long)n, (long long)(mem_stats().live - live));
    *failed += e < 0;
}

TEST(every_allocation_of_a_session_may_fail) {
    T_OK(session()); /* initializes what is created once (kernel tables) */
    i64 before = mem_stats().calls, failed = 0, tried = 0;
    T_OK(session());
    i64 calls = mem_stats().calls - before;
    bool all = getenv("STRETTO_TORTURE") && strcmp(getenv("STRETTO_TORTURE"), "all") == 0;
    i64 stride = all ? 1 : lmax(1, (calls - ALL_UP_TO) / SPREAD);
    f64 start = clock_now();
    for (i64 n = 1; n <= calls && (all || clock_now() - start < SECONDS); n += n < ALL_UP_TO ? 1 : stride, tried++)
        one(n, &failed);
    printf("%lld allocations in a session, %lld of them made to fail in turn, %lld sessions ended with E601\n", (long long)calls,
           (long long)tried, (long long)failed);
    assert_true(failed > tried / 2); /* most failures must be reported */
    T_OK(session());
}

TEST(refused_memory_of_the_system_is_an_error_too) {
    stretto_config *config;
    stretto_data *data = NULL;
    static const char *const name[] = {"y"};
    T_OK(fresh_config(&config));
    T_OK(stretto_config_set(config, "memory", "1"));
    stretto_err e = stretto_data_wrap(config, column, ROWS, 1, name, 0, 86400, &data);
    stretto_trainer *t = NULL;
    if (e >= 0) e = stretto_trainer_new(config, data, &t);
    mem_set_limit(0);
    assert_int_equal(e, -E601);
    assert_non_null(strstr(stretto_errmsg(), "--memory allows"));
    stretto_trainer_free(t);
    stretto_data_free(data);
    stretto_config_free(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_of_a_session_may_fail),
                                       cmocka_unit_test(refused_memory_of_the_system_is_an_error_too)};
    return cmocka_run_group_tests(tests, prepare, NULL) ? 1 : 0;
}
