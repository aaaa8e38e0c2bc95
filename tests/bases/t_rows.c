/* t_rows.c - the naive rows and the ridge on the shared files give reference errors computed without this program. */
#include "tiny.h"
#include "bases/base.h"
#include "train/metrics.h"

/* Windows with targets inside [from, to), `stride` rows apart. */
static struct score measure(const struct base *b, const struct series *s, i64 from, i64 to, i32 H, i64 stride, bool original) {
    enum { BATCH = 64 };
    struct metrics *m;
    struct score out;
    const i32 ldo = round_up(H, LANES);
    f32 *f = mem_alloc(sizeof(f32) * BATCH * (size_t)ldo);
    T_OK(metrics_new(s, s->ntarget, H, NULL, 0, &m));
    for (i32 c = 0; c < s->ntarget; c++)
        for (i64 o = from; o + H <= to; o += BATCH * stride) {
            i32 cols[BATCH];
            i64 origins[BATCH];
            i64 n = 0;
            for (i64 at = o; n < BATCH && at + H <= to; at += stride) cols[n] = c, origins[n++] = at;
            T_OK(base_predict_rows(b, s, n, cols, origins, H, f, ldo, kern_best()));
            for (i64 i = 0; i < n; i++) metrics_add(m, c, series_col(s, c) + origins[i], f + i * ldo, NULL);
        }
    metrics_score(m, -1, -1, original, &out);
    metrics_free(m);
    mem_free(f);
    return out;
}

static void expect(const char *what, f64 got, f64 want, f64 tol) {
    if (!(fabs(got - want) <= tol)) fail_msg("%s: %.5g, expected %.5g", what, got, want);
}

static struct score naive(const struct series *s, i32 season, i64 from, i64 to, i32 H, i64 stride, bool original) {
    struct base *b;
    T_OK(base_naive(season, &b));
    struct score r = measure(b, s, from, to, H, stride, original);
    base_free(b);
    return r;
}

TEST(ettH1_rows_equal_the_published_protocol) {
    static const struct {
        i32 H;
        f64 last[2], day[2], ridge[2];
    } rows[] = {{96, {1.294, .713}, {.512, .433}, {.369, .391}}, {192, {1.325, .733}, {.581, .469}, {.403, .411}},
                {336, {1.330, .746}, {.650, .501}, {.426, .428}}, {720, {1.335, .755}, {.655, .514}, {.429, .450}}};
    struct series *s = tiny_csv("data/ett/ETTh1.csv", 1, 7, 24);
    tiny_scale(s, 8640);
    for (i32 i = 0; i < (i32)COUNT(rows); i++) {
        const i32 H = rows[i].H;
        struct base *b;
        struct base_spec spec = {.constant = INPUTS_ALWAYS, .L = 336, .H = H, .ncol = 7, .train = 8640, .valid = 11520};
        struct score last = naive(s, 0, 11520, 14400, H, 1, false), day = naive(s, 24, 11520, 14400, H, 1, false);
        T_OK(base_ridge(s, &spec, &b));
        struct score ridge = measure(b, s, 11520, 14400, H, 1, false);
        print_message("ETTh1 %3d: last %.4f/%.4f day %.4f/%.4f ridge %.4f/%.4f penalty %g\n", H, last.mse, last.mae, day.mse,
                      day.mae, ridge.mse, ridge.mae, b->ridge->penalty);
        assert_int_equal(last.n, (2880 - H + 1) * 7 * H);
        expect("last mse", last.mse, rows[i].last[0], .0006);
        expect("last mae", last.mae, rows[i].last[1], .0006);
        expect("day mse", day.mse, rows[i].day[0], .0006);
        expect("day mae", day.mae, rows[i].day[1], .0006);
        expect("ridge mse", ridge.mse, rows[i].ridge[0], .01 * rows[i].ridge[0]);
        expect("ridge mae", ridge.mae, rows[i].ridge[1], .01 * rows[i].ridge[1]);
        base_free(b);
    }
    tiny_free(s);
}

static void small(const char *file, i32 col, i32 season, i64 test, i32 H, f64 last, f64 year, f64 tol) {
    struct series *s = tiny_csv(file, col, 1, season);
    const i64 n = s->nrow;
    tiny_scale(s, n - test);
    struct score a = naive(s, 0, n - test, n, H, 1, true), b = naive(s, season, n - test, n, H, 1, true);
    print_message("%s: last %.4f season %.4f\n", file, a.mae, b.mae);
    expect("last", a.mae, last, tol);
    if (year > 0) expect("season", b.mae, year, tol);
    tiny_free(s);
}

TEST(small_series_naive_rows) {
    small("data/univariate/airline-passengers.csv", 1, 12, 12, 12, 76.0, 47.83, .01);
    small("data/univariate/shampoo.csv", 1, 12, 12, 12, 141.1, 215.8, .05);
    small("data/univariate/daily-total-female-births.csv", 1, 7, 28, 28, 6.61, 8.04, .005);
    small("data/univariate/monthly-sunspots.csv", 1, 132, 132, 132, 51.2, 25.2, .05);
    small("data/univariate/daily-min-temperatures.csv", 1, 365, 365, 1, 2.02, 0, .01);
}

TEST(ili_naive_rows) {
    struct series *s = tiny_csv("data/ili/ILINet.csv", 1, 1, 52);
    const i64 n = s->nrow, test = 1040; /* 2017-10-08, line 1042; the four absent weeks stay absent */
    for (i32 i = 0; i < 2; i++) {
        i32 H = i ? 24 : 4;
        struct score a = naive(s, 0, test, n, H, 1, true), b = naive(s, 52, test, n, H, 1, true);
        print_message("ILI %d: last %.4f year %.4f\n", H, a.mae, b.mae);
        expect("last", a.mae, i ? 1.354 : .466, .002);
        expect("year", b.mae, i ? 1.013 : .991, .002);
    }
    tiny_free(s);
}

T_MAIN(cmocka_unit_test(ettH1_rows_equal_the_published_protocol), cmocka_unit_test(small_series_naive_rows),
       cmocka_unit_test(ili_naive_rows))
