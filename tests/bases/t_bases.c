/* t_bases.c - the bases: no look ahead, gaps, text form, rows in bulk, and the ridge against normal equations summed plainly. */
#include "base/rng.h"
#include "data/time.h"
#include "tiny.h"
#include "bases/base.h"
#include "bases/linear.h"

enum { ROWS_ALL = 400, H = 9, L = 14 };

/* Two columns: season 12 + trend + noise, with hours as time; some cells missing. */
static struct series *waves(bool gaps) {
    struct series *s = tiny_series(ROWS_ALL, 2, 12);
    s->time = mem_alloc(ROWS_ALL * sizeof(i64));
    s->freq.step = 3600;
    for (i64 i = 0; i < ROWS_ALL; i++) {
        s->time[i] = 1000000000 / 3600 * 3600 + i * 3600;
        for (i32 c = 0; c < 2; c++) {
            f64 v = sin(2 * M_PI * (f64)i / 12 + c) + 0.004 * (f64)i + 0.3 * rng_normal(1, RNG_TEST, (u32)c, (u64)i);
            if (gaps && (i % 37 == 5 || (i > 200 && i < 215 && c == 1) || (i < 3 && c == 0))) v = NAN;
            s->v[c * ROWS_ALL + i] = (f32)v;
        }
    }
    s->mean[0] = 12, s->mean[1] = 9, s->dev[0] = 2;
    return s;
}

static const char *const TEXTS[] = {
    "last", "season(12)", "season(7)", "growth(12)", "ratio(12)", "average(12)", "drift", "mean", "ses(0.3)", "theta(12,0.2)",
    "theta(1,0.5)", "0.25*last + 0.75*season(12)",
};

static struct base *every(const struct series *s, i32 which) {
    struct base *b;
    struct base_spec spec = {.L = L, .H = H, .ncol = 2, .train = 250, .valid = 330, .calendar = which == (i32)COUNT(TEXTS) + 1};
    if (which < (i32)COUNT(TEXTS)) T_OK(base_read(TEXTS[which], NULL, 0, &b));
    else T_OK(base_ridge(s, &spec, &b));
    return b;
}

TEST(forecast_uses_only_rows_before_its_origin) {
    for (i32 which = 0; which < (i32)COUNT(TEXTS) + 2; which++) {
        struct series *s = waves(true), *other = waves(true);
        struct base *b = every(s, which);
        for (i64 o = 0; o <= ROWS_ALL; o += 25) {
            f32 a[H], z[H];
            for (i64 i = o; i < ROWS_ALL; i++)
                for (i32 c = 0; c < 2; c++) other->v[c * ROWS_ALL + i] = (i + c) % 3 ? 1e6F : NAN;
            for (i32 c = 0; c < 2; c++) {
                base_predict(b, s, c, o, H, a);
                base_predict(b, other, c, o, H, z);
                for (i32 h = 0; h < H; h++) {
                    if (!isfinite(a[h])) fail_msg("base %d at %lld: %g", which, (long long)o, (f64)a[h]);
                    if (a[h] != z[h]) fail_msg("base %d looks ahead of row %lld", which, (long long)o);
                }
            }
            memcpy(other->v, s->v, sizeof(f32) * 2 * ROWS_ALL);
        }
        base_free(b);
        tiny_free(s);
        tiny_free(other);
    }
}

TEST(rules_give_what_their_names_say) {
    struct series *s = tiny_series(12, 1, 4);
    const f32 v[12] = {1, 2, 3, 4, 2, 4, 6, 8, 4, 8, NAN, 16};
    f32 out[6];
    struct base *b;
    memcpy(s->v, v, sizeof v);
    const struct {
        const char *text;
        f32 want[6];
    } cases[] = {
        {"last", {16, 16, 16, 16, 16, 16}},
        {"season(4)", {4, 8, 6, 16, 4, 8}}, /* the gap: one season further back */
        {"average(4)", {7 / 3.F, 14 / 3.F, 4.5F, 28 / 3.F, 7 / 3.F, 14 / 3.F}},
        {"drift", {16 + 15 / 11.F, 16 + 30 / 11.F, 16 + 45 / 11.F, 16 + 60 / 11.F, 16 + 75 / 11.F, 16 + 90 / 11.F}},
        {"mean", {58 / 11.F, 58 / 11.F, 58 / 11.F, 58 / 11.F, 58 / 11.F, 58 / 11.F}},
        {"ses(1)", {16, 16, 16, 16, 16, 16}},
    };
    for (i32 i = 0; i < (i32)COUNT(cases); i++) {
        T_OK(base_read(cases[i].text, NULL, 0, &b));
        base_predict(b, s, 0, 12, 6, out);
        t_near(cases[i].text, out, cases[i].want, 6, 1e-6);
        base_free(b);
    }
    s->v[10] = 12;
    T_OK(base_read("growth(4)", NULL, 0, &b));
    base_predict(b, s, 0, 12, 6, out);
    t_near("growth", out, (f32[]){9, 13, 17, 21, 14, 18}, 6, 1e-6);
    base_free(b);
    T_OK(base_read("ratio(4)", NULL, 0, &b));
    base_predict(b, s, 0, 12, 6, out);
    t_near("ratio", out, (f32[]){8, 16, 24, 32, 16, 32}, 6, 1e-6);
    for (i32 i = 8; i < 12; i++) s->v[i] *= 10; /* twenty times the season before counts as twice, a twentieth as half */
    base_predict(b, s, 0, 12, 4, out);
    t_near("ratio", out, (f32[]){80, 160, 240, 320}, 4, 1e-6);
    for (i32 i = 8; i < 12; i++) s->v[i] /= 400;
    base_predict(b, s, 0, 12, 4, out);
    t_near("ratio", out, (f32[]){0.05F, 0.1F, 0.15F, 0.2F}, 4, 1e-6);
    base_free(b);
    tiny_free(s);
}

/* The gap lies at a high place of the season: a mean without it is not to be compared with one that has it. */
TEST(gains_are_of_places_that_both_seasons_have_seen) {
    struct series *s = tiny_series(8, 1, 4);
    const f32 v[8] = {2, 4, 60, 8, 4, 8, NAN, 16};
    f32 out[4];
    struct base *b;
    memcpy(s->v, v, sizeof v);
    T_OK(base_read("growth(4)", NULL, 0, &b));
    base_predict(b, s, 0, 8, 4, out);
    t_near("growth", out, (f32[]){4 + 14 / 3.F, 8 + 14 / 3.F, 60 + 14 / 3.F, 16 + 14 / 3.F}, 4, 1e-6);
    base_free(b);
    T_OK(base_read("ratio(4)", NULL, 0, &b));
    base_predict(b, s, 0, 8, 4, out);
    t_near("ratio", out, (f32[]){8, 16, 120, 32}, 4, 1e-6);
    for (i32 i = 0; i < 4; i++) s->v[i] = i == 2 ? 60 : NAN; /* no place in common: no gain */
    base_predict(b, s, 0, 8, 4, out);
    t_near("ratio", out, (f32[]){4, 8, 60, 16}, 4, 1e-6);
    base_free(b);
    tiny_free(s);
}

/* Column 1 begins late, far from zero: what a rule says before that is no forecast. */
TEST(mix_is_measured_where_a_column_has_begun) {
    struct series *s = waves(false);
    struct base_spec p = {.L = L, .H = H, .ncol = 2, .season = 12, .train = ROWS_ALL};
    struct mix t;
    struct base *b;
    i32 last = -1;
    for (i64 i = 0; i < ROWS_ALL; i++) s->v[ROWS_ALL + i] = i < 240 ? NAN : 1000;
    T_OK(base_mix(s, &p, &t, &b));
    for (i32 i = 0; i < t.nrow; i++)
        if (t.row[i].part.kind == BASE_LAST) last = i;
    assert_true(last >= 0 && t.norigin > 50);
    if (!(t.row[last].mae < 2)) fail_msg("mean error of the last value %g", t.row[last].mae);
    base_free(b);
    tiny_free(s);
}

TEST(theta_finds_trend_and_season_of_a_clean_series) {
    struct series *s = tiny_series(120, 1, 12);
    f32 out[12], want[12];
    struct base *b;
    for (i32 i = 0; i < 132; i++) {
        f32 v = (f32)(5 + 0.1 * i + 3 * sin(2 * M_PI * i / 12));
        if (i < 120) s->v[i] = v;
        else want[i - 120] = v;
    }
    T_OK(base_read("theta(12,1)", NULL, 0, &b));
    base_predict(b, s, 0, 120, 12, out);
    t_near("theta", out, want, 12, 0.06); /* half the slope is the method's own caution */
    base_free(b);
    tiny_free(s);
}

/* Hyndman and Billah 2003: step h is the smoothed level + b / 2 (h - 1 + (1 - (1 - a)^n) / a), b the slope of a straight line. */
TEST(theta_without_a_season_is_its_formula) {
    enum { N = 30, STEPS = 5 };
    const f64 a = 0.3;
    struct series *s = tiny_series(N, 1, 1);
    f64 level = 0, x = 0, y = 0, xx = 0, xy = 0;
    f32 out[STEPS], want[STEPS];
    struct base *b;
    for (i32 i = 0; i < N; i++) {
        const f64 v = (f64)(s->v[i] = (f32)(2 + 0.5 * i + i * 7 % 5));
        level = i ? a * v + (1 - a) * level : v;
        x += i, y += v, xx += i * i, xy += i * v;
    }
    const f64 slope = (N * xy - x * y) / (N * xx - x * x);
    for (i32 h = 1; h <= STEPS; h++) want[h - 1] = (f32)(level + slope / 2 * (h - 1 + (1 - pow(1 - a, N)) / a));
    T_OK(base_read("theta(1,0.3)", NULL, 0, &b));
    base_predict(b, s, 0, N, STEPS, out);
    t_near("theta", out, want, STEPS, 1e-5);
    base_free(b);
    tiny_free(s);
}

TEST(rows_in_bulk_equal_single_forecasts) {
    enum { N = 150, LD = 16 };
    struct series *s = waves(true);
    for (i32 which = 0; which < (i32)COUNT(TEXTS) + 2; which++) {
        struct base *b = every(s, which);
        i32 cols[N];
        i64 origins[N];
        f32 *bulk = mem_alloc(sizeof(f32) * N * LD), one[H];
        for (i32 i = 0; i < N; i++) cols[i] = i % 2, origins[i] = (i64)i * 2 + 3;
        T_OK(base_predict_rows(b, s, N, cols, origins, H, bulk, LD, kern_best()));
        for (i32 i = 0; i < N; i++) {
            base_predict(b, s, cols[i], origins[i], H, one);
            t_near("bulk", bulk + i * LD, one, H, 1e-5);
        }
        mem_free(bulk);
        base_free(b);
    }
    tiny_free(s);
}

TEST(text_and_tensor_read_back_to_the_same_forecasts) {
    struct series *s = waves(false);
    for (i32 which = 0; which < (i32)COUNT(TEXTS) + 2; which++) {
        struct base *b = every(s, which), *again;
        struct str text = {0}, second = {0};
        f32 *w = NULL, one[H], two[H];
        i64 n = base_tensor(b, NULL, NULL, NULL);
        if (n) {
            w = mem_alloc((size_t)n * sizeof *w);
            assert_int_equal(base_tensor(b, w, NULL, NULL), n);
        }
        T_OK(base_text(b, &text));
        T_OK(base_read(str_text(&text), w, n, &again));
        T_OK(base_text(again, &second));
        assert_string_equal(str_text(&text), str_text(&second));
        base_predict(b, s, 1, 380, H, one);
        base_predict(again, s, 1, 380, H, two);
        assert_memory_equal(one, two, sizeof one);
        str_free(&text);
        str_free(&second);
        mem_free(w);
        base_free(b);
        base_free(again);
    }
    tiny_free(s);
}

TEST(text_that_is_no_base_is_refused) {
    static const char *const bad[] = {
        "",         "lost",      "season",          "season(0)", "season(x)", "ses(2)",       "ses(0.3", "0.5*",
        "last + ", "last last", "theta(12)",       "nan*last",  "last(3)",   "season(12,3)", "*last",   "ridge(1,1,1,moon)",
        "ridge(14,9,0.1)",
        "ridge(14,9,0.1,ahead:0:8:1)", "ridge(14,9,0.1,ahead:1:8)", "ridge(14,9,0.1,ahead:1:8:0)",
        "ridge(14,9,0.1,ahead:9:999999:1)",
    };
    for (i32 i = 0; i < (i32)COUNT(bad); i++) {
        struct base *b;
        err e = base_read(bad[i], NULL, 0, &b);
        if (e != -E901) fail_msg("\"%s\" was read as a base (%d)", bad[i], e);
    }
}

/* Gram sums the slow way, over windows with observed targets. */
static void slow_ridge(const struct series *s, i64 train, f64 penalty, f64 *W, f64 *b) {
    enum { K = L - 1 };
    static f64 A[K][K + H], mu[K], mv[H];
    f64 n = 0;
    memset(A, 0, sizeof A);
    memset(mu, 0, sizeof mu);
    memset(mv, 0, sizeof mv);
    for (i32 pass = 0; pass < 2; pass++)
        for (i32 c = 0; c < 2; c++)
            for (i64 o = L; o + H <= train; o++) {
                const f32 *x = series_col(s, c);
                f64 z[L + H];
                bool ok = true;
                for (i32 i = 0; i < H; i++) ok = ok && !isnan(x[o + i]);
                for (i32 i = 0; i < L + H && ok; i++) {
                    i64 at = o - L + i;
                    while (at >= 0 && isnan(x[at])) at--;
                    ok = at >= 0;
                    z[i] = ok ? (f64)x[at] : 0;
                }
                if (!ok) continue;
                f64 last = z[L - 1];
                if (!pass) {
                    n += 1;
                    for (i32 i = 0; i < K; i++) mu[i] += z[i] - last;
                    for (i32 h = 0; h < H; h++) mv[h] += z[L + h] - last;
                    continue;
                }
                for (i32 i = 0; i < K; i++)
                    for (i32 j = 0; j < K + H; j++) {
                        f64 v = j < K ? z[j] - last - mu[j] / n : z[j + 1] - last - mv[j - K] / n;
                        A[i][j] += (z[i] - last - mu[i] / n) * v;
                    }
            }
    for (i32 i = 0; i < K; i++) A[i][i] += penalty * n;
    for (i32 k = 0; k < K; k++) /* Gauss-Jordan: the matrix is positive definite */
        for (i32 i = 0; i < K; i++) {
            if (i == k) continue;
            f64 f = A[i][k] / A[k][k];
            for (i32 j = k; j < K + H; j++) A[i][j] -= f * A[k][j];
        }
    for (i32 h = 0; h < H; h++) {
        b[h] = mv[h] / n;
        for (i32 i = 0; i < K; i++) {
            W[i * H + h] = A[i][K + h] / A[i][i];
            b[h] -= W[i * H + h] * mu[i] / n;
        }
    }
}

TEST(ridge_equals_plain_normal_equations_with_gaps) {
    for (i32 gaps = 0; gaps < 2; gaps++) {
        struct series *s = waves(gaps);
        struct base *b;
        static f64 W[(L - 1) * H], bias[H];
        f32 tensor[(L + 1) * H];
        struct base_spec spec = {.L = L, .H = H, .ncol = 2, .train = 300, .valid = 300, .penalty = 0.01,
                                 .constant = INPUTS_ALWAYS};
        T_OK(base_ridge(s, &spec, &b));
        slow_ridge(s, 300, 0.01, W, bias);
        assert_int_equal(base_tensor(b, tensor, NULL, NULL), (L + 1) * H);
        t_near64("W", tensor, W, (L - 1) * H, 1e-6);
        t_near64("constant", tensor + L * H, bias, H, 1e-6);
        for (i32 h = 0; h < H; h++) assert_true(tensor[(L - 1) * H + h] == 0);
        assert_int_equal(b->ridge->L, L);
        assert_int_equal(b->ridge->H, H);
        base_free(b);
        tiny_free(s);
    }
}

TEST(ridge_loss_from_sums_equals_loss_of_its_forecasts) {
    struct series *s = waves(true);
    for (i32 calendar = 0; calendar < 2; calendar++) {
        struct chain *c;
        struct ridge *r;
        f64 loss, sum = 0, n = 0;
        f32 out[H];
        const struct base_spec spec = {.ncol = 2, .L = L, .H = H, .constant = INPUTS_TRIED, .calendar = (enum inputs)calendar};
        T_OK(chain_new(s, &spec, &c));
        T_OK(chain_fold(c, 250, 380, &loss, &r));
        const struct base b = {.npart = 1, .part = {{.kind = BASE_RIDGE, .weight = 1}}, .ridge = r};
        for (i32 col = 0; col < 2; col++)
            for (i64 o = 250; o + H <= 380; o++) {
                if (!window_counts(&c->w, col, o)) continue;
                base_predict(&b, s, col, o, H, out);
                for (i32 h = 0; h < H; h++) {
                    f64 d = (f64)out[h] - (f64)series_col(s, col)[o + h];
                    sum += d * d;
                    n += 1;
                }
            }
        if (!(fabs(loss - sum / n) < 1e-5 * loss)) fail_msg("loss %.9g from sums, %.9g from forecasts", loss, sum / n);
        chain_free(c);
        mem_free(r);
    }
    tiny_free(s);
}

TEST(ridge_too_short_says_how_many_windows) {
    struct series *s = waves(false);
    struct base *b;
    struct base_spec spec = {.L = L, .H = H, .ncol = 2, .train = L + H + 5, .valid = L + H + 5};
    T_FAILS(base_ridge(s, &spec, &b), E301);
    tiny_free(s);
}

TEST(calendar_marks_know_dates_before_and_after_1970) {
    i32 m[3];
    calendar_marks(0, m);
    assert_true(m[0] == 0 && m[1] == 24 + 4 && m[2] == 31 + 0);
    calendar_marks(1709211600, m); /* 2024-02-29 13:00, a Thursday */
    assert_true(m[0] == 13 && m[1] == 24 + 4 && m[2] == 31 + 1);
    calendar_marks(-1, m); /* 1969-12-31 23:59:59, a Wednesday */
    assert_true(m[0] == 23 && m[1] == 24 + 3 && m[2] == 31 + 11);
}

/* Hourly or monthly rows with times from 2001 on, and a ridge that leans on their calendar. */
static struct series *dated(bool monthly) {
    struct series *s = waves(false);
    s->freq = monthly ? (struct freq){.months = 1, .season = 12} : (struct freq){.step = 3600, .season = 24};
    for (i64 i = 0; i < ROWS_ALL; i++) {
        i32 mark[3];
        s->time[i] = time_add(978307200, &s->freq, i);
        calendar_marks(s->time[i], mark);
        for (i32 c = 0; c < 2; c++) s->v[c * ROWS_ALL + i] += (f32)(mark[0] % 5) + (f32)(mark[2] * mark[2] % 7);
    }
    return s;
}

TEST(ridge_knows_the_date_of_the_row_behind_the_file) {
    for (i32 monthly = 0; monthly < 2; monthly++) {
        struct series *s = dated(monthly);
        struct base *b;
        struct base_spec spec = {.L = L, .H = H, .ncol = 1, .train = 250, .valid = 330, .calendar = true};
        T_OK(base_ridge(s, &spec, &b));
        for (i64 o = 330; o < 345; o++) {
            struct series cut = *s; /* column 0 alone: its first o rows are those of the file cut there */
            f32 whole[H], end[H], bulk[H];
            cut.nrow = o;
            cut.ncol = cut.ntarget = 1;
            base_predict(b, s, 0, o, H, whole);
            base_predict(b, &cut, 0, o, H, end);
            if (memcmp(whole, end, sizeof end))
                fail_msg("row %lld, %d months: %g or %g", (long long)o, monthly, (f64)whole[0], (f64)end[0]);
            T_OK(base_predict_rows(b, &cut, 1, &(i32){0}, &o, H, bulk, H, NULL));
            assert_memory_equal(bulk, end, sizeof end);
        }
        base_free(b);
        tiny_free(s);
    }
}

TEST(algebra_gives_the_same_bits_on_every_instruction_set) {
    enum { N = 77, R = 53 };
    extern const struct algebra algebra_base;
    const struct algebra *sets[2] = {&algebra_base, algebra_best()};
    f64 *A[2], *X[2], *A0 = mem_alloc(sizeof(f64) * N * N), lags[2][R] = {{0}};
    for (i32 i = 0; i < N; i++)
        for (i32 j = 0; j < N; j++) A0[i * N + j] = (i == j) * 2.0 * N + cos(i * j % 19);
    for (i32 k = 0; k < 2; k++) {
        A[k] = mem_alloc(sizeof(f64) * N * N);
        X[k] = mem_alloc(sizeof(f64) * N * R);
        memcpy(A[k], A0, sizeof(f64) * N * N);
        for (i32 i = 0; i < N * R; i++) X[k][i] = sin(i);
        assert_true(cholesky(sets[k], N, A[k]));
        cholesky_solve(sets[k], N, A[k], R, X[k]);
        sets[k]->add_lags(200, R, A0, lags[k]);
    }
    assert_memory_equal(X[0], X[1], sizeof(f64) * N * R);
    assert_memory_equal(lags[0], lags[1], sizeof lags[0]);
    for (i32 i = 0; i < N; i++)
        for (i32 r = 0; r < R; r++) {
            f64 sum = 0;
            for (i32 j = 0; j < N; j++) sum += A0[imin(i, j) * N + imax(i, j)] * X[0][j * R + r];
            if (!(fabs(sum - sin(i * R + r)) < 1e-10)) fail_msg("row %d: %g instead of %g", i, sum, sin(i * R + r));
        }
    A0[5 * N + 5] = -1;
    assert_false(cholesky(algebra_best(), N, A0));
    for (i32 k = 0; k < 2; k++) mem_free(A[k]), mem_free(X[k]);
    mem_free(A0);
}

TEST(fits_give_back_all_memory_when_any_is_refused) {
    struct series *s = waves(false);
    struct base_spec spec = {.L = L, .H = H, .ncol = 2, .train = 300, .valid = 380};
    struct base *b;
    i64 live = mem_stats().live;
    err e = -1;
    for (i64 n = 1; e < 0; n++) {
        mem_fail_nth(n);
        e = base_ridge(s, &spec, &b);
        mem_fail_nth(0);
        if (e < 0) {
            assert_int_equal(e, -E601);
            assert_int_equal(mem_stats().live, live);
        }
    }
    base_free(b);
    tiny_free(s);
}

T_MAIN(cmocka_unit_test(forecast_uses_only_rows_before_its_origin), cmocka_unit_test(rules_give_what_their_names_say),
       cmocka_unit_test(gains_are_of_places_that_both_seasons_have_seen),
       cmocka_unit_test(mix_is_measured_where_a_column_has_begun),
       cmocka_unit_test(theta_finds_trend_and_season_of_a_clean_series),
       cmocka_unit_test(theta_without_a_season_is_its_formula), cmocka_unit_test(rows_in_bulk_equal_single_forecasts),
       cmocka_unit_test(text_and_tensor_read_back_to_the_same_forecasts), cmocka_unit_test(text_that_is_no_base_is_refused),
       cmocka_unit_test(ridge_equals_plain_normal_equations_with_gaps),
       cmocka_unit_test(ridge_loss_from_sums_equals_loss_of_its_forecasts),
       cmocka_unit_test(ridge_too_short_says_how_many_windows),
       cmocka_unit_test(calendar_marks_know_dates_before_and_after_1970),
       cmocka_unit_test(ridge_knows_the_date_of_the_row_behind_the_file),
       cmocka_unit_test(algebra_gives_the_same_bits_on_every_instruction_set),
       cmocka_unit_test(fits_give_back_all_memory_when_any_is_refused))
