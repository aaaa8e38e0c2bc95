/* t_ahead.c - the inputs of a ridge beside its lags: columns known ahead and the calendar, fitted, chosen, seen, kept as text. */
#include "base/rng.h"
#include "bases/base.h"
#include "bases/linear.h"
#include "tiny.h"

enum { ROWS_ALL = 400, H = 9, L = 14 };

/* A target that follows two columns known ahead, one of them at the same row, and its own past; a cell of a column is missing. */
static struct series *led(void) {
    struct series *s = tiny_series(ROWS_ALL, 3, 4);
    s->ntarget = 1;
    s->nknown = 2;
    s->freq.step = 3600;
    s->time = mem_alloc(ROWS_ALL * sizeof(i64));
    f32 *y = s->v, *a = y + ROWS_ALL, *b = a + ROWS_ALL;
    for (i64 i = 0; i < ROWS_ALL; i++) {
        s->time[i] = 1000000000 / 3600 * 3600 + i * 3600;
        a[i] = (f32)rng_normal(2, RNG_TEST, 0, (u64)i);
        b[i] = (f32)rng_normal(2, RNG_TEST, 1, (u64)i);
        y[i] = (f32)(0.9 * (f64)a[i] - 0.4 * (i > 3 ? (f64)b[i - 3] : 0) + 0.1 * rng_normal(2, RNG_TEST, 2, (u64)i) +
                     (i > 0 ? 0.3 * (f64)y[i - 1] : 0));
    }
    a[100] = NAN;
    return s;
}

/* Inputs of a window at o, the slow way: lags but the last less that one, marks by their size, means of groups of rows ahead. */
static i32 slow_inputs(const struct series *s, const struct ridge *r, i64 o, f64 *u) {
    const f32 *x = series_col(s, 0);
    i32 n = 0, mark[3];
    for (i32 k = 0; k < r->L - 1; k++) u[n++] = (f64)x[o - r->L + k] - (f64)x[o - 1];
    if (r->calendar) {
        calendar_marks(s->time[o], mark);
        for (i32 c = 0; c < RIDGE_CALENDAR; c++) u[n++] = c == mark[0] || c == mark[1] || c == mark[2] ? mark_scale(c) : 0;
    }
    for (i32 c = 0; c < r->ahead.ncol; c++)
        for (i64 from = o - r->ahead.back; from < o + r->H; from += r->ahead.group) {
            f64 sum = 0, seen = 0;
            for (i64 i = from; i < from + r->ahead.group && i < o + r->H; i++)
                if (!isnan(series_col(s, 1 + c)[i])) sum += (f64)series_col(s, 1 + c)[i], seen += 1;
            u[n++] = seen > 0 ? sum / seen : 0;
        }
    return n;
}

/* The gradient of mean squared error + penalty |w|^2 at the weights of the ridge is zero for each input and the constant. */
static void assert_is_minimum(const struct series *s, const struct ridge *r, i64 train) {
    enum { MOST = 200 };
    static f64 gradient[MOST + 1][H], w[MOST][H];
    f64 u[MOST], n = 0;
    i32 K = 0;
    memset(gradient, 0, sizeof gradient);
    for (i64 o = r->L; o + H <= train; o++, n++) {
        const f32 *x = series_col(s, 0);
        K = slow_inputs(s, r, o, u);
        assert_in_range(K, 1, MOST);
        for (i32 k = 0; k < K && o == r->L; k++) {
            const f64 size = r->calendar && k >= L - 1 && k < L - 1 + RIDGE_CALENDAR ? mark_scale(k - L + 1) : 1;
            for (i32 h = 0; h < H; h++) w[k][h] = (f64)r->w[(k < L - 1 ? k : k + 2) * r->Hp + h] / size;
        }
        for (i32 h = 0; h < H; h++) {
            f64 d = (f64)r->w[L * r->Hp + h] - ((f64)x[o + h] - (f64)x[o - 1]);
            for (i32 k = 0; k < K; k++) d += u[k] * w[k][h];
            for (i32 k = 0; k < K; k++) gradient[k][h] += u[k] * d;
            gradient[MOST][h] += d;
        }
    }
    assert_int_equal(K, ridge_rows(r) - 2);
    for (i32 h = 0; h < H; h++) {
        for (i32 k = 0; k < K; k++) {
            const f64 g = gradient[k][h] / n + r->penalty * w[k][h];
            if (!(fabs(g) < 1e-5)) fail_msg("input %d, step %d: gradient %g", k, h, g);
        }
        assert_true(fabs(gradient[MOST][h] / n) < 1e-5);
    }
}

TEST(ridge_with_columns_known_ahead_is_the_minimum) {
    for (i32 calendar = 0; calendar < 2; calendar++) {
        struct series *s = led();
        struct base *b;
        const struct base_spec spec = {.constant = INPUTS_ALWAYS,
                                       .L = L,
                                       .H = H,
                                       .ncol = 1,
                                       .train = 300,
                                       .valid = 300,
                                       .penalty = 0.01,
                                       .calendar = (enum inputs)calendar,
                                       .ahead = INPUTS_ALWAYS};
        T_OK(base_ridge(s, &spec, &b));
        assert_int_equal(b->ridge->ahead.ncol, 2);
        assert_int_equal(b->ridge->ahead.back, 8); /* two seasons of four */
        assert_int_equal(b->ridge->ahead.group, 1);
        assert_is_minimum(s, b->ridge, 300);
        base_free(b);
        tiny_free(s);
    }
}

static f64 error_from(const struct series *s, const struct base *b, i64 from) {
    f64 sum = 0, n = 0;
    f32 out[H];
    for (i64 o = from; o + H <= ROWS_ALL; o++) {
        base_predict(b, s, 0, o, H, out);
        for (i32 h = 0; h < H; h++) sum += fabs((f64)out[h] - (f64)series_col(s, 0)[o + h]), n += 1;
    }
    return sum / n;
}

TEST(validation_chooses_the_inputs_of_a_ridge) {
    struct series *s = led();
    struct base *blind, *sees, *none;
    struct base_spec spec = {
        .L = L, .H = H, .ncol = 1, .train = 250, .valid = 330, .calendar = INPUTS_TRIED, .ahead = INPUTS_TRIED};
    T_OK(base_ridge(s, &spec, &sees));
    assert_int_equal(sees->ridge->ahead.ncol, 2);
    assert_false(sees->ridge->calendar);
    spec.ahead = INPUTS_NEVER;
    T_OK(base_ridge(s, &spec, &blind));
    assert_int_equal(blind->ridge->ahead.ncol, 0);
    assert_true(error_from(s, sees, 330) < 0.4 * error_from(s, blind, 330));
    spec.ahead = INPUTS_TRIED;
    for (i64 i = 0; i < ROWS_ALL; i++) s->v[i] = (f32)(sin((f64)i / 3) + 0.1 * rng_normal(3, RNG_TEST, 0, (u64)i));
    T_OK(base_ridge(s, &spec, &none));
    assert_int_equal(none->ridge->ahead.ncol, 0); /* columns that say nothing about the target */
    base_free(blind);
    base_free(sees);
    base_free(none);
    tiny_free(s);
}

TEST(ridge_sees_columns_known_ahead_up_to_the_horizon) {
    struct series *s = led(), *other = led();
    struct base *b, *again;
    struct str text = {0};
    f32 one[H], two[H], bulk[H], tensor[200 * H];
    const struct base_spec spec = {
        .L = L, .H = H, .ncol = 1, .train = 300, .valid = 300, .penalty = 0.01, .ahead = INPUTS_ALWAYS};
    T_OK(base_ridge(s, &spec, &b));
    T_OK(base_text(b, &text));
    assert_string_equal(str_text(&text), "ridge(14,9,0.01,ahead:2:8:1)");
    const i64 n = base_tensor(b, tensor, NULL, NULL);
    T_OK(base_read(str_text(&text), tensor, n, &again));
    assert_int_equal(base_read(str_text(&text), tensor, n - H, &(struct base *){NULL}), -E901);
    for (i64 o = 320; o < 340; o++) {
        for (i32 c = 0; c < 3;
             c++) /* the target from the origin on, the columns behind the horizon and before what it looks at */
            for (i64 i = 0; i < ROWS_ALL; i++) {
                const bool seen = c ? i >= o - 8 && i < o + H : i >= o - L && i < o;
                other->v[c * ROWS_ALL + i] = seen ? s->v[c * ROWS_ALL + i] : 1e6F;
            }
        base_predict(b, s, 0, o, H, one);
        base_predict(again, other, 0, o, H, two);
        assert_memory_equal(one, two, sizeof one);
        T_OK(base_predict_rows(b, s, 1, &(i32){0}, &o, H, bulk, H, kern_best()));
        t_near("bulk", bulk, one, H, 1e-5);
    }
    base_predict(b, s, 0, ROWS_ALL, H, one); /* rows behind the file count as the mean */
    for (i32 h = 0; h < H; h++) assert_true(isfinite(one[h]));
    str_free(&text);
    base_free(b);
    base_free(again);
    tiny_free(s);
    tiny_free(other);
}

/* Rows in groups, where columns and horizon would give too many inputs. */
TEST(many_rows_ahead_are_seen_as_means) {
    struct series *s = led();
    struct base *b;
    const struct base_spec spec = {
        .L = L, .H = 260, .ncol = 1, .train = 390, .valid = 390, .penalty = 0.1, .ahead = INPUTS_ALWAYS};
    f32 out[260];
    T_OK(base_ridge(s, &spec, &b));
    assert_int_equal(b->ridge->ahead.group, 2);
    assert_int_equal(ridge_rows(b->ridge), L + 1 + 2 * 134);
    base_predict(b, s, 0, 130, 260, out);
    for (i32 h = 0; h < 260; h++) assert_true(fabs((f64)out[h] - (f64)s->v[130 + h]) < 2);
    base_free(b);
    tiny_free(s);
}

/* Days over years, whose months differ. */
static struct series *days(i64 rows) {
    struct series *s = tiny_series(rows, 1, 7);
    s->freq.step = 86400;
    s->time = mem_alloc((size_t)rows * sizeof(i64));
    for (i64 i = 0; i < rows; i++) {
        s->time[i] = 1000000000 / 86400 * 86400 + i * 86400;
        s->v[i] = (f32)((f64)(i / 30 % 12 % 5) + 0.1 * rng_normal(4, RNG_TEST, 0, (u64)i));
    }
    return s;
}

TEST(months_count_from_two_years_on) {
    for (i32 years = 1; years < 4; years++) {
        struct series *s = days(years * 366);
        struct base *b;
        const struct base_spec spec = {
            .L = L, .H = H, .ncol = 1, .train = s->nrow, .valid = s->nrow, .penalty = 0.01, .calendar = INPUTS_ALWAYS};
        T_OK(base_ridge(s, &spec, &b));
        f64 sum = 0;
        for (i32 m = 31; m < RIDGE_CALENDAR; m++) sum += fabs((f64)b->ridge->w[(i64)(L + 1 + m) * b->ridge->Hp]);
        assert_true(years < 2 ? sum == 0 : sum > 0.1);
        base_free(b);
        tiny_free(s);
    }
}

/* Mean squared error of the forecasts over the windows of a fold. */
static f64 loss_of(const struct series *s, const struct chain *c, const struct ridge *r, i64 from, i64 to) {
    const struct base b = {.npart = 1, .part = {{.kind = BASE_RIDGE, .weight = 1}}, .ridge = (struct ridge *)r};
    f64 sum = 0, n = 0;
    f32 out[H];
    for (i32 col = 0; col < s->ntarget; col++)
        for (i64 o = from; o + H <= to; o++) {
            if (!window_counts(&c->w, col, o)) continue;
            base_predict(&b, s, col, o, H, out);
            for (i32 h = 0; h < H; h++) {
                const f64 d = (f64)out[h] - (f64)series_col(s, col)[o + h];
                sum += d * d;
                n += 1;
            }
        }
    return sum / n;
}

TEST(loss_from_sums_equals_loss_of_forecasts) {
    struct series *s = led();
    for (i32 k = 0; k < 4; k++) {
        const struct base_spec spec = {
            .ncol = 1, .L = L, .H = H, .calendar = (enum inputs)(k % 2), .ahead = (enum inputs)(k / 2)};
        struct chain *c;
        struct ridge *r;
        f64 loss;
        T_OK(chain_new(s, &spec, &c));
        T_OK(chain_fold(c, 250, 380, &loss, &r));
        const f64 want = loss_of(s, c, r, 250, 380);
        if (!(fabs(loss - want) < 1e-5 * loss)) fail_msg("loss %.9g from sums, %.9g from forecasts", loss, want);
        chain_free(c);
        mem_free(r);
    }
    tiny_free(s);
}

T_MAIN(cmocka_unit_test(ridge_with_columns_known_ahead_is_the_minimum),
       cmocka_unit_test(validation_chooses_the_inputs_of_a_ridge),
       cmocka_unit_test(ridge_sees_columns_known_ahead_up_to_the_horizon), cmocka_unit_test(many_rows_ahead_are_seen_as_means),
       cmocka_unit_test(months_count_from_two_years_on),
       cmocka_unit_test(loss_from_sums_equals_loss_of_forecasts))
