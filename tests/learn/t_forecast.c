/* t_forecast.c - forecasts through stretto.h: the same before saving and after, for one window and for many, from file and from
 * memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "learn/forecast/fit.h"
#include "learn/forecast/out.h"
#include "learn/forecast/overlap.h"
#include "learn/series_set.h"
#include "stretto/stretto.h"
#include "t.h"

#include "api/api.h"

enum { ROWS = 400, H = 12, NQ = 3 };

static f64 columns[2 * ROWS];

static stretto_config *config_of(const char *preset) {
    static const char *const options[][2] = {{"target", "all"}, {"horizon", "12"}, {"context", "48"}, {"steps", "30"},
                                             {"hidden", "12"},  {"guard", "no"},   {"gaps", "mask"}};
    stretto_config *c = stretto_config_new();
    for (size_t i = 0; i < COUNT(options); i++) T_OK(stretto_config_set(c, options[i][0], options[i][1]));
    T_OK(stretto_config_set(c, "preset", preset));
    return c;
}

static stretto_data *data_of(stretto_config *c, i32 ncol) {
    static const char *const names[] = {"a", "b"};
    stretto_data *d;
    for (i32 i = 0; i < ROWS; i++) {
        columns[i] = 50 + 9 * sin(i * 0.2618) + 0.01 * i + (i * 37 % 11) * 0.2;
        columns[ROWS + i] = i % 97 == 5 ? (f64)NAN : 1e4 - 300 * cos(i * 0.2618) + (i * 53 % 17);
    }
    T_OK(stretto_data_wrap(c, columns, ROWS, ncol, names, 1600000000, 3600, &d));
    return d;
}

static const char *model_path(void) {
    static char path[600];
    snprintf(path, sizeof path, "%s/f.model", t_dir());
    return path;
}

/* Bytes of the forecast before saving = after loading. */
static void saved(const char *preset, i32 ncol) {
    f64 before[H * 2], after[H * 2], qb[H * 2 * NQ], qa[H * 2 * NQ];
    stretto_config *c = config_of(preset);
    stretto_data *d = data_of(c, ncol);
    stretto_trainer *t;
    stretto_model *m;
    T_OK(stretto_trainer_new(c, d, &t));
    assert_true(stretto_trainer_run(t) > 0);
    assert_int_equal(stretto_model_quantiles(stretto_trainer_model(t)), NQ);
    T_OK(stretto_predict(stretto_trainer_model(t), d, before, qb));
    T_OK(stretto_trainer_save(t, model_path()));
    T_OK(stretto_model_load(model_path(), &m));
    T_OK(stretto_predict(m, d, after, qa));
    assert_memory_equal(before, after, sizeof(f64) * H * (size_t)ncol);
    assert_memory_equal(qb, qa, sizeof(f64) * H * (size_t)ncol * NQ);
    for (i32 i = 0; i < H * ncol; i++)
        assert_true(isfinite(before[i]) && qb[i * NQ] <= qb[i * NQ + 1] && qb[i * NQ + 1] <= qb[i * NQ + 2]);
    /* saved again: the same bytes */
    char again[700];
    snprintf(again, sizeof again, "%s.2", model_path());
    T_OK(stretto_model_save(m, again));
    FILE *a = fopen(model_path(), "rb"), *b = fopen(again, "rb");
    assert_non_null(a);
    assert_non_null(b);
    int x, y;
    do {
        x = fgetc(a);
        y = fgetc(b);
        assert_int_equal(x, y);
    } while (x != EOF);
    fclose(a);
    fclose(b);
    stretto_model_free(m);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

TEST(forecast_after_loading_equals_the_one_before_preset_short) { saved("short", 1); }
TEST(forecast_after_loading_equals_the_one_before_preset_long) { saved("long", 2); }
TEST(forecast_after_loading_equals_the_one_before_preset_day) { saved("day", 1); }
TEST(forecast_after_loading_equals_the_one_before_preset_wide) { saved("wide", 2); }

/* Columns a and b as above, the one up to row `a`, the other up to row `b`. */
static stretto_trainer *trained_to(stretto_config *c, i32 a, i32 b, stretto_data **d) {
    static const char *const names[] = {"a", "b"};
    stretto_trainer *t;
    stretto_data_free(data_of(c, 2));
    for (i32 i = a; i < ROWS; i++) columns[i] = (f64)NAN;
    for (i32 i = b; i < ROWS; i++) columns[ROWS + i] = (f64)NAN;
    T_OK(stretto_data_wrap(c, columns, ROWS, 2, names, 1600000000, 3600, d));
    T_OK(stretto_trainer_new(c, *d, &t));
    assert_true(stretto_trainer_run(t) > 0);
    return t;
}

/* A file that goes on for the columns known ahead is tested on the rows before them. */
TEST(rows_behind_the_last_target_are_no_test_part) {
    stretto_config *c = config_of("short");
    stretto_data *d;
    stretto_trainer *t = trained_to(c, ROWS - 30, ROWS - 30, &d);
    assert_true(isfinite(stretto_trainer_skill(t)));
    assert_int_equal(t->job.split.test, ROWS - 30);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

/* Forecast of a model whose column b has no targets from row 200 on, where validation begins later. */
static void bands_of_short_column(const char *preset, const char *base, f64 mean[2 * H], f64 q[2 * H * NQ], char **text) {
    stretto_config *c = config_of(preset);
    stretto_data *d;
    T_OK(stretto_config_set(c, "base", base));
    stretto_trainer *t = trained_to(c, ROWS, 200, &d);
    stretto_model *m = stretto_trainer_model(t);
    T_OK(stretto_predict(m, d, mean, q));
    T_OK(stretto_predict_file(m, d, "-", 0, text));
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

/* The errors of a base on training rows are known. */
TEST(a_column_without_validation_targets_has_bands_of_its_training_rows) {
    f64 mean[2 * H], q[2 * H * NQ];
    char *text = NULL;
    bands_of_short_column("short", "mix", mean, q, &text);
    for (i32 c = 0; c < 2; c++) assert_true(isfinite(mean[c]) && q[c * NQ] < q[c * NQ + NQ - 1]);
    stretto_text_free(text);
}

/* Nothing is known of the residuals of a network alone: no band, and none of width 0. */
TEST(a_column_without_validation_targets_has_no_bands_without_a_base) {
    f64 mean[2 * H], q[2 * H * NQ];
    char *text = NULL;
    bands_of_short_column("short", "none", mean, q, &text);
    assert_true(isfinite(mean[1]) && isfinite(q[0]) && q[0] < q[NQ - 1]);
    for (i32 i = 0; i < NQ; i++) assert_true(isnan(q[NQ + i]));
    assert_non_null(strstr(strstr(text, "\nb,"), ",,,\n")); /* three empty cells */
    assert_null(strstr(text, "nan"));
    stretto_text_free(text);
}

/* --- validation that tells nothing --- */

/* Forecasts of a model of two columns, column b observed in one of `every` rows from row `from` on; the network alone, whose head
 * begins at zero. */
static void forecast_of(const char *validation, i32 from, i32 every, const char *refit, f64 *mean, f64 *bands) {
    stretto_config *c = config_of("none");
    stretto_data *d;
    stretto_trainer *t;
    static const char *const names[] = {"a", "b"};
    const char *const more[][2] = {{"test", "12"}, {"validation", validation}, {"base", "none"}, {"refit-all", refit}};
    for (size_t i = 0; i < COUNT(more); i++) T_OK(stretto_config_set(c, more[i][0], more[i][1]));
    stretto_data_free(data_of(c, 2)); /* fills the columns */
    for (i32 i = from; i < ROWS; i++)
        if (i % every != 0) columns[ROWS + i] = (f64)NAN;
    T_OK(stretto_data_wrap(c, columns, ROWS, 2, names, 1600000000, 3600, &d));
    T_OK(stretto_trainer_new(c, d, &t));
    assert_true(stretto_trainer_run(t) > 0);
    T_OK(stretto_predict(stretto_trainer_model(t), d, mean, bands));
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

/* There are no more rows to train on and no better step to stop at: the weights are those of the last step, twice. */
TEST(without_validation_a_refit_ends_with_the_same_weights) {
    f64 mean[2 * H], again[2 * H], bands[2 * H * NQ];
    forecast_of("0", 0, 1, "no", mean, bands);
    forecast_of("0", 0, 1, "yes", again, bands);
    assert_memory_equal(mean, again, sizeof mean);
}

/* Of each step fewer residuals than quantiles are made of, of all steps together enough. */
TEST(a_column_that_validation_saw_a_few_times_has_bands_of_all_its_steps) {
    f64 mean[2 * H], bands[2 * H * NQ];
    forecast_of("77", 300, 20, "no", mean, bands);
    for (i32 i = 0; i < H; i++) {
        const f64 *b = bands + (2 * i + 1) * NQ;
        if (!(b[NQ - 1] - b[0] > 1e-3)) fail_msg("step %d: %g %g", i, b[0], b[NQ - 1]);
    }
}

/* A ridge alone: what bands are made of does not depend on whether the ridge is fitted again afterwards, on the rows that they
 * are measured on. */
static f32 *spread_of(const char *refit, i64 *n) {
    stretto_config *c = config_of("none");
    const char *const more[][2] = {{"base", "ridge"}, {"correction", "no"}, {"refit-all", refit}};
    for (size_t i = 0; i < COUNT(more); i++) T_OK(stretto_config_set(c, more[i][0], more[i][1]));
    stretto_data *d = data_of(c, 2);
    stretto_trainer *t;
    T_OK(stretto_trainer_new(c, d, &t));
    T_OK(stretto_trainer_run(t));
    const struct forecaster *f = forecaster_in(stretto_trainer_model(t)->m);
    *n = 2 * f->spec.nband * f->spec.horizon;
    f32 *out = mem_alloc(sizeof(f32) * (size_t)*n);
    memcpy(out, f->spread, sizeof(f32) * (size_t)*n);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
    return out;
}

TEST(bands_are_measured_with_a_ridge_that_has_not_seen_the_rows) {
    i64 n, m;
    f32 *once = spread_of("no", &n), *again = spread_of("yes", &m);
    assert_int_equal(n, m);
    assert_memory_equal(once, again, sizeof(f32) * (size_t)n);
    mem_free(once);
    mem_free(again);
}

TEST(thinned_origins_come_to_every_phase_of_the_season) {
    for (i64 season = 0; season < 400; season++)
        for (i64 about = 1; about < 60; about++) {
            const i64 stride = forecast_stride(about, season);
            i64 phases = 0;
            static bool met[400];
            memset(met, 0, sizeof met);
            for (i64 k = 0; k < season; k++) {
                phases += !met[k * stride % season];
                met[k * stride % season] = true;
            }
            assert_int_equal(phases, season);
            assert_true(season > 1 || stride == about);
            if (season == 7 || season == 24 || season == 52 || season == 60 || season == 144)
                assert_in_range(5 * stride, 2 * about, 13 * about); /* about as many */
        }
}

static int rising(const void *a, const void *b) {
    const f32 x = *(const f32 *)a, y = *(const f32 *)b;
    return (x > y) - (x < y);
}

/* The value at a place of n sorted ones. */
static f64 at_place(const f32 *r, i64 n, f64 place) {
    const f64 at = fmax(0, fmin((f64)(n - 1), place)), part = at - floor(at);
    const i64 i = (i64)at;
    return (f64)r[i] * (1 - part) + (f64)r[i + (i + 1 < n)] * part;
}

/* The last value alone: residuals of all rows before the test part in units of the window's deviation, sorted.  Half way between
 * place q (n + 1) - 1 from 0, and that of as many independent ones as they are worth; the forecast is the median. */
TEST(bands_are_the_quantiles_of_the_residuals_before_the_test_part) {
    stretto_config *c = config_of("none");
    const char *const more[][2] = {{"base", "last"}, {"correction", "no"}, {"validation", "45"}, {"test", "20"},
                                   {"scale", "series"}};
    for (size_t i = 0; i < COUNT(more); i++) T_OK(stretto_config_set(c, more[i][0], more[i][1]));
    stretto_data *d = data_of(c, 1);
    stretto_trainer *t;
    struct overlap o;
    T_OK(stretto_trainer_new(c, d, &t));
    T_OK(stretto_trainer_run(t));
    const struct forecaster *f = forecaster_in(stretto_trainer_model(t)->m);
    const struct series *s = series_of(d->set);
    const f32 *x = series_col(s, 0), power = f->spread[NQ * H];
    const i64 train = t->job.split.train, valid = t->job.split.validation, before = train - H + 1 - f->spec.context;
    const i64 n = before + valid - H + 1 - train;
    assert_true(power == 0 || power == 0.5F || power == 1);
    static f32 r[H * ROWS];
    for (i32 k = 0; k < H; k++)
        for (i64 i = 0; i < n; i++) {
            const i64 origin = i < before ? f->spec.context + i : train + i - before;
            r[k * n + i] = (x[origin + k] - x[origin - 1]) / powf(row_deviation(f, s, origin, 0), power);
        }
    T_OK(overlap_new(H, n, before, 1, &o));
    overlap_add(&o, r);
    for (i32 k = 0; k < H; k++) {
        const f64 worth = fmax(2, (f64)n / overlap_time(&o, k));
        qsort(r + k * n, (size_t)n, sizeof *r, rising);
        for (i32 q = 0; q < NQ; q++) {
            const f64 level = f->spec.quantiles.v[q], plain = level * (f64)(n + 1) - 1;
            const f64 few = (level * (worth + 1) - 1) / (worth - 1) * (f64)(n - 1);
            const f64 want = level == 0.5 ? 0 : (at_place(r + k * n, n, plain) + at_place(r + k * n, n, few)) / 2;
            const f64 got = (f64)f->spread[q * H + k];
            if (!(fabs(got - want) < 1e-6)) fail_msg("step %d, quantile %g: %g, not %g", k, level, got, want);
        }
    }
    overlap_free(&o);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

/* Shares of calibration in the bins of scores, and a noise that is three times as large after training: bands of calibration
 * would hold a third of it. */
TEST(bands_widen_when_errors_grow) {
    stretto_config *c = config_of("none");
    const char *const more[][2] = {{"base", "last"}, {"correction", "no"}, {"validation", "100"}, {"test", "600"},
                                   {"horizon", "4"}, {"scale", "series"}};
    static f64 x[2000];
    static const char *const names[] = {"a"};
    u64 noise = 1;
    for (size_t i = 0; i < COUNT(more); i++) T_OK(stretto_config_set(c, more[i][0], more[i][1]));
    for (i32 i = 0; i < 2000; i++) {
        noise = noise * 6364136223846793005ULL + 1442695040888963407ULL;
        x[i] = (i < 1400 ? 1 : 3) * ((f64)(noise >> 40) / (f64)(1 << 24) - 0.5);
    }
    stretto_data *d;
    stretto_trainer *t;
    T_OK(stretto_data_wrap(c, x, 2000, 1, names, 1600000000, 3600, &d));
    T_OK(stretto_trainer_new(c, d, &t));
    T_OK(stretto_trainer_run(t));
    f32 *shares = forecaster_in(stretto_trainer_model(t)->m)->spread + NQ * 4 + 1, sum = 0;
    for (i32 b = 0; b < BAND_BINS; b++) sum += shares[b];
    assert_true(fabsf(sum - 1) < 1e-4F);
    const f64 coverage = t->scores.table->band.coverage;
    if (!(coverage > 0.74 && coverage < 0.86)) fail_msg("coverage %g", coverage);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

/* The power of the window's deviation that errors are in units of; x has 2000 rows. */
static f32 power_of(const f64 *x, const char *base) {
    stretto_config *c = config_of("none");
    const char *const more[][2] = {{"base", base}, {"season", "24"}, {"correction", "no"}, {"validation", "400"}, {"test", "100"},
                                   {"horizon", "4"}, {"scale", "series"}};
    static const char *const names[] = {"a"};
    for (size_t i = 0; i < COUNT(more); i++) T_OK(stretto_config_set(c, more[i][0], more[i][1]));
    stretto_data *d;
    stretto_trainer *t;
    T_OK(stretto_data_wrap(c, x, 2000, 1, names, 1600000000, 3600, &d));
    T_OK(stretto_trainer_new(c, d, &t));
    T_OK(stretto_trainer_run(t));
    const f32 power = forecaster_in(stretto_trainer_model(t)->m)->spread[NQ * 4];
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
    return power;
}

/* Noise of changing size, and a wave of changing size under noise that is always the same. */
TEST(bands_are_in_units_of_the_window_where_errors_follow_it) {
    static f64 noise[2000], wave[2000];
    u64 seed = 1;
    for (i32 i = 0; i < 2000; i++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        const f64 e = (f64)(seed >> 40) / (f64)(1 << 24) - 0.5, size = 2.5 + 2 * sin(i * 0.01);
        noise[i] = size * e;
        wave[i] = size * sin(i * 0.26179938779914943) + 2 * e;
    }
    assert_true(power_of(noise, "last") == 1);
    assert_true(power_of(wave, "season") == 0);
}

/* Of a quantile head, where its quantiles do not cross. */
TEST(the_forecast_of_a_quantile_head_is_the_quantile_nearest_to_the_median) {
    f64 mean[H], q[H * NQ];
    i32 middle = 0;
    stretto_config *c = config_of("none");
    const char *const more[][2] = {{"head", "quantile"}, {"quantiles", "0.05,0.6,0.98"}, {"base", "none"}, {"lr", "0.02"},
                                   {"steps", "60"}};
    for (size_t i = 0; i < COUNT(more); i++) T_OK(stretto_config_set(c, more[i][0], more[i][1]));
    stretto_data *d = data_of(c, 1);
    stretto_trainer *t;
    T_OK(stretto_trainer_new(c, d, &t));
    assert_true(stretto_trainer_run(t) > 0);
    T_OK(stretto_predict(stretto_trainer_model(t), d, mean, q));
    for (i32 k = 0; k < H; k++) middle += q[k * NQ] < q[k * NQ + 1] && q[k * NQ + 1] < q[k * NQ + 2] && mean[k] == q[k * NQ + 1];
    if (middle < H * 3 / 4) fail_msg("%d of %d forecasts are the middle quantile", middle, H);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

/* --- a batch in parts, with targets missing --- */

/* Weights after a few plain steps, and how far the farthest went; column b is missing in most of the rows. */
static f32 *weights(const char *parts, i64 *n, f32 *moved) {
    stretto_config *c = config_of("none");
    static const char *const names[] = {"a", "b"};
    const char *const more[][2] = {{"base", "none"}, {"optim", "sgd"}, {"lr", "0.05"}, {"steps", "6"}, {"batch", "12"},
                                   {"accumulate", parts}, {"schedule", "constant"}};
    for (size_t i = 0; i < COUNT(more); i++) T_OK(stretto_config_set(c, more[i][0], more[i][1]));
    stretto_data *d;
    stretto_trainer *t;
    stretto_data_free(data_of(c, 2)); /* fills the columns */
    for (i32 i = 0; i < 300; i++)
        if (i / 40 % 2) columns[ROWS + i] = (f64)NAN;
    T_OK(stretto_data_wrap(c, columns, ROWS, 2, names, 1600000000, 3600, &d));
    T_OK(stretto_trainer_new(c, d, &t));
    assert_true(stretto_trainer_run(t) > 0);
    const struct forecaster *f = forecaster_in(stretto_trainer_model(t)->m);
    f32 *out = mem_alloc(sizeof(f32) * (size_t)f->net.ntheta), *first = mem_alloc(sizeof(f32) * (size_t)f->net.ntheta);
    *n = f->net.ntheta;
    memcpy(out, f->theta[0], sizeof(f32) * (size_t)*n);
    net_weights_init(&f->net, (u64)f->spec.seed, first);
    *moved = 0;
    for (i64 i = 0; i < *n; i++) *moved = fmaxf(*moved, fabsf(out[i] - first[i]));
    mem_free(first);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
    return out;
}

TEST(parts_of_a_batch_make_its_gradient_where_targets_are_missing) {
    i64 n, m;
    f32 far, ignored;
    f32 *whole = weights("1", &n, &far), *parts = weights("4", &m, &ignored);
    assert_int_equal(n, m);
    assert_true(far > 1e-3F);
    f32 worst = 0;
    for (i64 i = 0; i < n; i++) worst = fmaxf(worst, fabsf(whole[i] - parts[i]));
    if (!(worst <= 1e-4F * far)) fail_msg("a weight is %g away in parts; the farthest went %g", (f64)worst, (f64)far);
    mem_free(whole);
    mem_free(parts);
}

TEST(cells_of_a_batch_are_counted_before_it_is_filled) {
    stretto_config *c = config_of("none");
    stretto_data *d;
    stretto_trainer *t = trained_to(c, ROWS, ROWS / 2, &d);
    const struct forecaster *f = forecaster_in(stretto_trainer_model(t)->m);
    struct batcher b;
    T_OK(batcher_new(f, &f->net, &f->shape, series_of(d->set), t->job.use.kern, 6, 1, &b));
    b.set = (struct window_set){.first = 48, .end = ROWS - H + 1, .stride = 1};
    b.nwin = 3;
    b.seed = 5;
    i64 least = INT64_MAX;
    for (i64 k = 0; k < 200; k++) {
        batch_fill_train(&b, k, 0);
        assert_int_equal(b.slot[0].present, batch_cells(&b, k));
        least = lmin(least, b.slot[0].present);
    }
    assert_true(least < 6 * H / 2 + H);
    batcher_free(&b);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

/* --- a window alone, and among others --- */
struct kept {
    i64 from;
    i32 n, cap;
    f32 *mean, *band;
};

static err keep(void *self, const struct forecast_row *row) {
    struct kept *k = self;
    assert_true(k->n < k->cap);
    memcpy(k->mean + (size_t)k->n * H, row->mean, sizeof(f32) * H);
    if (row->band) memcpy(k->band + (size_t)k->n * H * NQ, row->band, sizeof(f32) * H * NQ);
    k->n++;
    return 0;
}

static void alone(const char *preset, i32 ncol) {
    enum { MANY = 2 * ROWS };
    static f32 mean[MANY * H], band[MANY * H * NQ], one[2 * H], one_band[2 * H * NQ];
    stretto_config *c = config_of(preset);
    stretto_data *d = data_of(c, ncol);
    stretto_trainer *t;
    T_OK(stretto_trainer_new(c, d, &t));
    assert_true(stretto_trainer_run(t) > 0);
    const struct forecaster *f = forecaster_in(stretto_trainer_model(t)->m);
    struct window_set all = {.first = 48, .end = ROWS - H + 1, .stride = 1};
    struct kept many = {.cap = MANY, .mean = mean, .band = band};
    T_OK(forecast_windows(f, series_of(d->set), &all, &t->job.use, keep, &many));
    assert_int_equal(many.n, (ROWS - H + 1 - 48) * ncol);
    for (i64 o = 48; o < ROWS - H + 1; o += 29) {
        struct window_set w = {.first = o, .end = o + 1, .stride = 1};
        struct kept k = {.cap = 2, .mean = one, .band = one_band};
        T_OK(forecast_windows(f, series_of(d->set), &w, &t->job.use, keep, &k));
        assert_int_equal(k.n, ncol);
        assert_memory_equal(one, mean + (size_t)(o - 48) * (size_t)ncol * H, sizeof(f32) * H * (size_t)ncol);
        assert_memory_equal(one_band, band + (size_t)(o - 48) * (size_t)ncol * H * NQ, sizeof(f32) * H * NQ * (size_t)ncol);
    }
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

TEST(window_alone_equals_the_same_window_in_a_batch_preset_short) { alone("short", 1); }
TEST(window_alone_equals_the_same_window_in_a_batch_preset_long) { alone("long", 2); }
TEST(window_alone_equals_the_same_window_in_a_batch_preset_day) { alone("day", 1); }
TEST(window_alone_equals_the_same_window_in_a_batch_preset_wide) { alone("wide", 2); }

/* --- handles --- */
TEST(free_of_nothing_is_fine) {
    stretto_config_free(NULL);
    stretto_data_free(NULL);
    stretto_trainer_free(NULL);
    stretto_model_free(NULL);
    stretto_plan_free(NULL);
    stretto_text_free(NULL);
}

TEST(calls_before_a_run_say_so) {
    stretto_config *c = config_of("short");
    stretto_data *d = data_of(c, 1);
    stretto_trainer *t;
    T_OK(stretto_trainer_new(c, d, &t));
    T_FAILS(stretto_trainer_save(t, "x"), 105);
    T_FAILS(stretto_trainer_report(t, "x"), 105);
    T_FAILS(stretto_trainer_plot(t, "x"), 105);
    T_FAILS(stretto_trainer_trace(t, "x"), 105);
    assert_null(stretto_trainer_model(t));
    assert_string_equal(stretto_trainer_scores(t, 0), "");
    assert_true(isnan(stretto_trainer_skill(t)));
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

TEST(data_from_memory_keep_values_and_gaps) {
    stretto_config *c = config_of("short");
    stretto_data *d = data_of(c, 2);
    assert_int_equal(stretto_data_rows(d), ROWS);
    assert_int_equal(stretto_data_columns(d), 2);
    assert_int_equal(stretto_data_targets(d), 2);
    assert_string_equal(stretto_data_column(d, 1), "b");
    assert_null(stretto_data_column(d, 2));
    assert_true(isnan(stretto_data_value(d, 1, 5)) && isnan(stretto_data_value(d, 0, -1)) && isnan(stretto_data_value(d, 2, 0)));
    assert_true(fabs(stretto_data_value(d, 0, 7) - columns[7]) < 1e-4);
    stretto_data_free(d);
    stretto_config_free(c);
}

/* A model trained in bf16 gives nearly the same forecasts where there is no bf16, and says that it does. */
TEST(bf16_model_forecasts_in_fp32_where_bf16_is_missing) {
    f64 there[H * 2], here[H * 2];
    stretto_config *c = config_of("none");
    bool bf16 = cell_at(kern_best(), CELL_LSTM, PREC_BF16) != NULL;
    stretto_data *d = data_of(c, 2);
    stretto_trainer *t;
    T_OK(stretto_config_set(c, "precision", bf16 ? "bf16" : "fp32"));
    T_OK(stretto_trainer_new(c, d, &t));
    assert_true(stretto_trainer_run(t) > 0);
    stretto_model *m = stretto_trainer_model(t);
    T_OK(stretto_predict(m, d, there, NULL));
    assert_string_equal(stretto_model_note(m), "");
    T_OK(stretto_config_set(stretto_model_config(m), "kernel", "base"));
    T_OK(stretto_predict(m, d, here, NULL));
    assert_int_equal(*stretto_model_note(m) != 0, bf16);
    if (bf16) assert_non_null(strstr(stretto_model_note(m), "trained in bf16"));
    for (i32 i = 0; i < H * 2; i++) assert_true(fabs(here[i] - there[i]) < (i % 2 ? 30 : 1)); /* amplitudes 300 and 9 */
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

T_MAIN(cmocka_unit_test(forecast_after_loading_equals_the_one_before_preset_short),
       cmocka_unit_test(forecast_after_loading_equals_the_one_before_preset_long),
       cmocka_unit_test(forecast_after_loading_equals_the_one_before_preset_day),
       cmocka_unit_test(forecast_after_loading_equals_the_one_before_preset_wide),
       cmocka_unit_test(rows_behind_the_last_target_are_no_test_part),
       cmocka_unit_test(a_column_without_validation_targets_has_bands_of_its_training_rows),
       cmocka_unit_test(a_column_without_validation_targets_has_no_bands_without_a_base),
       cmocka_unit_test(bands_widen_when_errors_grow),
       cmocka_unit_test(bands_are_in_units_of_the_window_where_errors_follow_it),
       cmocka_unit_test(without_validation_a_refit_ends_with_the_same_weights),
       cmocka_unit_test(a_column_that_validation_saw_a_few_times_has_bands_of_all_its_steps),
       cmocka_unit_test(bands_are_measured_with_a_ridge_that_has_not_seen_the_rows),
       cmocka_unit_test(bands_are_the_quantiles_of_the_residuals_before_the_test_part),
       cmocka_unit_test(the_forecast_of_a_quantile_head_is_the_quantile_nearest_to_the_median),
       cmocka_unit_test(thinned_origins_come_to_every_phase_of_the_season),
       cmocka_unit_test(parts_of_a_batch_make_its_gradient_where_targets_are_missing),
       cmocka_unit_test(cells_of_a_batch_are_counted_before_it_is_filled),
       cmocka_unit_test(window_alone_equals_the_same_window_in_a_batch_preset_short),
       cmocka_unit_test(window_alone_equals_the_same_window_in_a_batch_preset_long),
       cmocka_unit_test(window_alone_equals_the_same_window_in_a_batch_preset_day),
       cmocka_unit_test(window_alone_equals_the_same_window_in_a_batch_preset_wide), cmocka_unit_test(free_of_nothing_is_fine),
       cmocka_unit_test(calls_before_a_run_say_so), cmocka_unit_test(data_from_memory_keep_values_and_gaps),
       cmocka_unit_test(bf16_model_forecasts_in_fp32_where_bf16_is_missing))
