/* t_paths.c - sample paths through stretto.h: marginals are the quantiles that are forecast, the course over the steps is that of
 * errors, and a seed gives the same bytes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/rng.h"
#include "learn/forecast/paths.h"
#include "stretto/stretto.h"
#include "t.h"

enum { ROWS = 1200, H = 8, N = 400, NQ = 5, COLUMNS = 2 };

struct session {
    stretto_config *c;
    stretto_data *d;
    stretto_trainer *t;
    stretto_model *m;
};

/* Two columns that follow their own last value with factor phi, and share half of their noise; of counts, if asked for. */
static void begin(struct session *s, f64 phi, const char *head, const char *base, const char *steps) {
    static const char *const names[] = {"a", "b"};
    static f64 v[COLUMNS * ROWS];
    const bool counts = strcmp(head, "poisson") == 0;
    const char *const options[][2] = {
        {"target", "all"},  {"horizon", "8"}, {"context", "16"}, {"quantiles", "0.05,0.25,0.5,0.75,0.95"},
        {"head", head},     {"base", base},   {"steps", steps},  {"correction", *steps == '0' ? "no" : "yes"},
        {"preset", "none"}, {"season", "1"}};
    f64 x[COLUMNS] = {0};
    for (i32 i = 0; i < ROWS; i++)
        for (i32 k = 0; k < COLUMNS; k++) {
            const f64 noise = rng_normal(3, RNG_TEST, 0, (u64)i) + rng_normal(3, RNG_TEST, (u32)k + 1, (u64)i);
            x[k] = phi * x[k] + noise;
            v[k * ROWS + i] = counts ? floor(fabs(x[k])) : 20 + x[k];
        }
    s->c = stretto_config_new();
    for (size_t i = 0; i < COUNT(options); i++)
        if (strcmp(options[i][0], "steps") != 0 || *steps != '0') T_OK(stretto_config_set(s->c, options[i][0], options[i][1]));
    T_OK(stretto_data_wrap(s->c, v, ROWS, COLUMNS, names, 1600000000, 3600, &s->d));
    T_OK(stretto_trainer_new(s->c, s->d, &s->t));
    assert_true(stretto_trainer_run(s->t) >= 0);
    s->m = stretto_trainer_model(s->t);
}

static void end(struct session *s) {
    stretto_trainer_free(s->t);
    stretto_data_free(s->d);
    stretto_config_free(s->c);
}

/* out [COLUMNS][H][N] */
static void sample(stretto_model *m, stretto_data *d, i64 seed, f64 *out) {
    char *text = NULL;
    i64 n = 0;
    T_OK(stretto_sample_file(m, d, "-", N, seed, &text));
    assert_true(strncmp(text, "id,origin,time,step,sample.1,sample.2,", 38) == 0);
    for (char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        char *at = line + 1;
        for (i32 key = 0; key < 4; key++) at = strchr(at, ',') + 1;
        for (i32 i = 0; i < N; i++, at++) out[n++] = strtod(at, &at);
    }
    assert_int_equal(n, COLUMNS * H * N);
    stretto_text_free(text);
}

static f64 correlation(const f64 *x, const f64 *y) {
    f64 sx = 0, sy = 0, xx = 0, yy = 0, xy = 0;
    for (i32 i = 0; i < N; i++) sx += x[i], sy += y[i];
    for (i32 i = 0; i < N; i++) {
        const f64 a = x[i] - sx / N, b = y[i] - sy / N;
        xx += a * a, yy += b * b, xy += a * b;
    }
    return xy / sqrt(xx * yy);
}

static f64 samples[COLUMNS * H * N], others[COLUMNS * H * N];

/* The share of the samples below each quantile is its level, but for the sample next to it. */
static void check_marginals(const struct session *s) {
    static const f64 level[NQ] = {0.05, 0.25, 0.5, 0.75, 0.95};
    f64 mean[H * COLUMNS], q[H * COLUMNS * NQ];
    T_OK(stretto_predict(s->m, s->d, mean, q));
    for (i32 c = 0; c < COLUMNS; c++)
        for (i32 k = 0; k < H; k++)
            for (i32 j = 0; j < NQ; j++) {
                const f64 at = q[(k * COLUMNS + c) * NQ + j], *v = samples + (c * H + k) * N;
                i32 below = 0, upto = 0;
                for (i32 i = 0; i < N; i++) below += v[i] < at - 1e-6, upto += v[i] <= at + 1e-6;
                assert_true(below <= level[j] * N + 1 && upto >= level[j] * N - 1);
            }
}

TEST(samples_have_the_marginals_of_every_head) {
    static const char *const heads[] = {"point", "quantile", "normal", "student-t", "poisson"};
    for (size_t i = 0; i < COUNT(heads); i++) {
        struct session s;
        begin(&s, 0.8, heads[i], "last", "20");
        sample(s.m, s.d, 7, samples);
        check_marginals(&s);
        for (i32 k = 0; k < COLUMNS * H * N && strcmp(heads[i], "poisson") == 0; k++)
            assert_true(samples[k] >= 0 && samples[k] == floor(samples[k]));
        end(&s);
    }
}

/* Correlation of neighbouring steps, mean over columns and steps; of the columns at a step. */
static void courses(f64 *steps, f64 *columns) {
    *steps = *columns = 0;
    for (i32 k = 0; k < H; k++) *columns += correlation(samples + k * N, samples + (H + k) * N) / H;
    for (i32 c = 0; c < COLUMNS; c++)
        for (i32 k = 0; k + 1 < H; k++)
            *steps += correlation(samples + (c * H + k) * N, samples + (c * H + k + 1) * N) / (COLUMNS * (H - 1));
}

/* The last value of a random walk has errors that add up: corr(step k, k + 1) = sqrt(k / (k + 1)), 0.87 in the mean of
 * steps 1..7. Errors about the mean of noise are independent: 0. Half of the noise is common. */
TEST(samples_follow_the_course_of_errors) {
    struct session s;
    f64 steps, columns;
    begin(&s, 1, "point", "last", "0");
    sample(s.m, s.d, 1, samples);
    courses(&steps, &columns);
    assert_true(fabs(steps - 0.87) < 0.06);
    assert_true(fabs(columns - 0.5) < 0.15);
    end(&s);
    begin(&s, 0, "point", "ridge", "0");
    sample(s.m, s.d, 1, samples);
    courses(&steps, &columns);
    assert_true(fabs(steps) < 0.2);
    end(&s);
}

TEST(samples_depend_on_the_seed_and_survive_a_file) {
    char path[600];
    struct session s;
    stretto_model *m;
    stretto_data *d;
    begin(&s, 0.8, "student-t", "last", "20");
    sample(s.m, s.d, 1, samples);
    sample(s.m, s.d, 1, others);
    assert_memory_equal(samples, others, sizeof samples);
    snprintf(path, sizeof path, "%s/p.model", t_dir());
    T_OK(stretto_trainer_save(s.t, path));
    T_OK(stretto_model_load(path, &m));
    sample(m, s.d, 1, others);
    assert_memory_equal(samples, others, sizeof samples);
    sample(m, s.d, 2, others);
    assert_true(memcmp(samples, others, sizeof samples) != 0);
    stretto_model_free(m);
    d = s.d;
    T_FAILS(stretto_sample_file(s.m, d, "-", 0, 1, NULL), E106);
    end(&s);
}

TEST(ranks_are_shares_of_their_step) {
    enum { WINDOWS = 40 };
    f32 r[2 * WINDOWS], u[2];
    for (i32 i = 0; i < WINDOWS; i++) r[i] = (f32)i, r[WINDOWS + i] = (f32)(-i * i);
    r[WINDOWS + 3] = (f32)NAN;
    paths_rank(r, 2, WINDOWS, 9, u);
    assert_true(fabsf(u[0] - 9.5f / WINDOWS) < 1e-6f && fabsf(u[1] - 29.5f / 39) < 0.03f);
    paths_rank(r, 2, WINDOWS, 3, u);
    assert_true(u[1] == u[0]);
}

T_MAIN(cmocka_unit_test(samples_have_the_marginals_of_every_head), cmocka_unit_test(samples_follow_the_course_of_errors),
       cmocka_unit_test(samples_depend_on_the_seed_and_survive_a_file), cmocka_unit_test(ranks_are_shares_of_their_step))
