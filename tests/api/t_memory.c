/* t_memory.c - `train` uses the memory of the series once plus what the plan states, within 5 %. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "stretto/stretto.h"
#include "t.h"

enum { ROWS = 400000, COLUMNS = 3 };

struct watch {
    f64 stated;       /* bytes, from the note */
    i64 before, most; /* live bytes before the data were read; the most while training */
    int seen;
};

static void on_event(void *user, const stretto_event *e) {
    struct watch *w = user;
    f64 series, plan;
    if (e->text && sscanf(e->text, "memory: series %lf MiB + plan %lf MiB", &series, &plan) == 2)
        w->stated = (series + plan) * 1048576.0;
    if (e->kind != 3 && e->kind != 4) return;
    w->most = lmax(w->most, mem_stats().live - w->before);
    w->seen++;
}

static const char *large_file(void) {
    static char path[600];
    if (path[0]) return path;
    snprintf(path, sizeof path, "%s/large.csv", t_dir());
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("t,a,b,c\n", f);
    for (i32 i = 0; i < ROWS; i++)
        fprintf(f, "%lld,%d.%d,%d,%d\n", 1600000000LL + 3600LL * i, i % 24, i % 10, (i * 7) % 101, (int)((i64)i * i % 13));
    assert_int_equal(fclose(f), 0);
    return path;
}

static void measure(const char *preset, const char *batch, const char *threads) {
    static const char *const options[][2] = {{"target", "all"}, {"time", "t"},   {"horizon", "24"},      {"context", "96"},
                                             {"base", "last"},  {"steps", "10"}, {"validate-every", "5"}};
    struct watch w = {.before = mem_stats().live};
    stretto_config *config = stretto_config_new();
    stretto_data *data = NULL;
    stretto_trainer *t = NULL;
    for (size_t i = 0; i < COUNT(options); i++) T_OK(stretto_config_set(config, options[i][0], options[i][1]));
    T_OK(stretto_config_set(config, "guard", "no"));
    T_OK(stretto_config_set(config, "preset", preset));
    T_OK(stretto_config_set(config, "batch", batch));
    T_OK(stretto_config_set(config, "threads", threads));
    T_OK(stretto_data_open(config, large_file(), &data));
    T_OK(stretto_trainer_new(config, data, &t));
    stretto_trainer_on_event(t, on_event, &w);
    mem_reset_peak();
    assert_true(stretto_trainer_run(t) > 0);
    printf("preset %s, batch %s: stated %.2f MiB, held %.2f MiB while training, %+.1f %%; peak of fitting and scoring %.2f MiB\n",
           preset, batch, w.stated / 1048576.0, (f64)w.most / 1048576.0, 100 * ((f64)w.most / w.stated - 1),
           (f64)(mem_stats().peak - w.before) / 1048576.0);
    assert_true(w.seen > 2 && w.stated > 0);
    assert_true((f64)w.most < 1.05 * w.stated && (f64)w.most > 0.95 * w.stated);
    stretto_trainer_free(t);
    stretto_data_free(data);
    stretto_config_free(config);
    assert_int_equal(mem_stats().live, w.before);
}

TEST(train_holds_the_series_once_and_what_the_plan_states) { measure("long", "32", "2"); }
TEST(train_holds_what_is_stated_with_large_batches_too) { measure("long", "256", "1"); }
TEST(train_holds_what_is_stated_in_preset_day) { measure("day", "64", "2"); }
TEST(train_holds_what_is_stated_in_preset_stream) { measure("stream", "64", "2"); }

T_MAIN(cmocka_unit_test(train_holds_the_series_once_and_what_the_plan_states),
       cmocka_unit_test(train_holds_what_is_stated_with_large_batches_too),
       cmocka_unit_test(train_holds_what_is_stated_in_preset_day), cmocka_unit_test(train_holds_what_is_stated_in_preset_stream))
