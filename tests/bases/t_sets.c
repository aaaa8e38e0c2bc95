/* t_sets.c - the larger shared sets through the reader: exchange rates, Beijing's air, rented bikes. */
#include "data/table.h"
#include "tiny.h"
#include "bases/base.h"
#include "train/metrics.h"

/* A column (and its times) of a table as a series; steps absent from an hourly table become missing rows. */
static struct series *from_table(const struct table *t, const i32 *cols, i32 ncol, const i64 *time) {
    const i64 n = time ? (time[t->nrow - 1] - time[0]) / 3600 + 1 : t->nrow;
    struct series *s = tiny_series(n, ncol, time ? 24 : 1);
    if (time) {
        s->time = mem_alloc(sizeof(i64) * (size_t)n);
        s->freq.step = 3600;
        for (i64 i = 0; i < n; i++) s->time[i] = time[0] + i * 3600;
    }
    for (i32 c = 0; c < ncol; c++)
        for (i64 i = 0; i < t->nrow; i++)
            s->v[c * n + (time ? (time[i] - time[0]) / 3600 : i)] = (f32)t->col[cols[c]].number[i];
    return s;
}

/* An hourly file: rows 1, 2, .. hours after the start, or a date column and an hour column. */
static struct series *hourly(const char *file, const char *date, const char *hour, i64 start, const char *target) {
    struct table *t;
    struct read_options o = READ_OPTIONS_DEFAULT;
    i32 col = -1, d = -1, h = -1;
    o.time = date;
    T_OK(table_read(t_shared(file), &o, &t));
    T_OK(table_need(t, target, "target", &col));
    if (date) T_OK(table_need(t, date, "time", &d));
    if (date) T_OK(table_need(t, hour, "time", &h));
    i64 *time = mem_alloc(sizeof(i64) * (size_t)t->nrow);
    for (i64 i = 0; i < t->nrow; i++) time[i] = date ? t->col[d].time[i] + 3600 * (i64)t->col[h].number[i] : start + 3600 * i;
    struct series *s = from_table(t, &col, 1, time);
    mem_free(time);
    table_free(t);
    return s;
}

static struct score measure(const struct base *b, const struct series *s, i64 from, i64 to, i32 H, i64 stride, bool original) {
    struct metrics *m;
    struct score out;
    f32 *f = mem_alloc(sizeof(f32) * (size_t)H);
    T_OK(metrics_new(s, s->ntarget, H, NULL, 0, &m));
    for (i32 c = 0; c < s->ntarget; c++)
        for (i64 o = from; o + H <= to; o += stride) {
            base_predict(b, s, c, o, H, f);
            metrics_add(m, c, series_col(s, c) + o, f, NULL);
        }
    metrics_score(m, original ? H - 1 : -1, -1, original, &out);
    metrics_free(m);
    mem_free(f);
    return out;
}

static f64 nd(const struct base *b, const struct series *s, i64 from, i64 to) {
    struct metrics *m;
    struct score out;
    f32 f[24];
    T_OK(metrics_new(s, 1, 24, NULL, 0, &m));
    for (i64 o = from; o + 24 <= to; o += 24) {
        base_predict(b, s, 0, o, 24, f);
        metrics_add(m, 0, series_col(s, 0) + o, f, NULL);
    }
    metrics_score(m, -1, -1, true, &out);
    metrics_free(m);
    return out.nd;
}

static void expect(const char *what, f64 got, f64 want, f64 tol) {
    if (!(fabs(got - want) <= tol)) fail_msg("%s: %.5g, expected %.5g", what, got, want);
}

/* ND of last, day and the ridges; the ridge may be 2 % above what the notes found. */
static void day_ahead(const char *name, struct series *s, i64 train, i64 valid, i64 end, i32 L, const f64 want[3]) {
    struct base *b;
    f64 got[4];
    tiny_scale(s, train);
    T_OK(base_naive(0, &b));
    got[0] = nd(b, s, valid, end);
    base_free(b);
    T_OK(base_naive(24, &b));
    got[1] = nd(b, s, valid, end);
    base_free(b);
    for (i32 calendar = 0; calendar < 2; calendar++) {
        struct base_spec p = {.constant = INPUTS_TRIED, .L = L, .H = 24, .ncol = 1, .train = train, .valid = valid,
                              .calendar = calendar, .refit = true};
        T_OK(base_ridge(s, &p, &b));
        got[2 + calendar] = nd(b, s, valid, end);
        print_message("%s L %d%s: penalty %g, %lld windows\n", name, L, calendar ? " calendar" : "", b->ridge->penalty,
                      (long long)b->ridge->windows);
        base_free(b);
    }
    print_message("%s: ND last %.4f day %.4f ridge %.4f + calendar %.4f\n", name, got[0], got[1], got[2], got[3]);
    struct choice t;
    struct base_spec p = {.constant = INPUTS_TRIED, .L = L, .H = 24, .ncol = 1, .season = 24, .train = train, .valid = valid,
                          .calendar = true};
    T_OK(base_choose(s, &p, &t, &b));
    print_message("%s: chosen %s, t %.1f, gain %+.1f %%\n", name, base_kind_name(t.row[t.chosen]), t.t, 100 * t.gain);
    base_free(b);
    expect("last", got[0], want[0], .001);
    expect("day", got[1], want[1], .001);
    assert_true(dmin(got[2], got[3]) < 1.02 * want[2]);
    tiny_free(s);
}

TEST(beijing_rows) {
    struct series *s = hourly("data/beijing_pm25/pollution.csv", NULL, NULL, 1262304000, "pm2.5");
    assert_int_equal(s->nrow, 43824);
    const f64 want[3] = {.505, .695, .477};
    day_ahead("beijing", s, 26304, 35064, 43824, 168, want); /* 2010-2012, 2013, 2014 */
}

TEST(bike_rows) {
    struct series *s = hourly("data/bike_sharing/hour.csv", "dteday", "hr", 0, "cnt");
    assert_int_equal(s->nrow, 17544);
    const f64 want[3] = {.773, .339, .341};
    day_ahead("bike", s, 17544 - 2 * 672, 17544 - 672, 17544, 168, want);
}

TEST(exchange_rate_keeps_last_and_gives_the_published_rse) {
    struct table *t;
    struct read_options o = READ_OPTIONS_DEFAULT;
    i32 cols[8];
    o.header = 0;
    T_OK(table_read(t_shared("data/exchange_rate/exchange_rate.txt.gz"), &o, &t));
    assert_int_equal(t->nrow, 7588);
    for (i32 c = 0, n = 0; c < t->ncol && n < 8; c++)
        if (t->col[c].type == COL_NUMBER) cols[n++] = c;
    struct series *s = from_table(t, cols, 8, NULL);
    struct base *b;
    table_free(t);
    static const f64 rse[4] = {.0171, .0238, .0329, .0434}, corr[4] = {.9761, .9679, .9526, .9331};
    T_OK(base_naive(0, &b));
    for (i32 i = 0; i < 4; i++) { /* one step at distance h: the last step of windows of h, original units */
        const i32 h = 3 << i;
        struct score r = measure(b, s, 6071 - h + 1, 7588, h, 1, true);
        print_message("exchange_rate at distance %2d: RSE %.4f CORR %.4f\n", h, r.rse, r.corr);
        expect("rse", r.rse, rse[i], .0002);
        expect("corr", r.corr, corr[i], .0005);
    }
    tiny_scale(s, 5311);
    static const i32 H[4] = {96, 192, 336, 720};
    static const f64 mse[4] = {.0811, .1671, .3057, .8101};
    for (i32 i = 0; i < 4; i++) {
        struct score r = measure(b, s, 6071, 7588, H[i], 1, false);
        struct choice table;
        struct base *chosen;
        struct base_spec p = {.constant = INPUTS_TRIED, .L = 336, .H = H[i], .ncol = 8, .season = 1, .train = 5311,
                              .valid = 6071};
        T_OK(base_choose(s, &p, &table, &chosen));
        print_message("exchange_rate %d: last %.4f, t %.2f gain %+.1f %%\n", H[i], r.mse, table.t, 100 * table.gain);
        expect("mse", r.mse, mse[i], .0006);
        assert_int_equal(table.row[table.chosen], BASE_LAST);
        base_free(chosen);
    }
    base_free(b);
    tiny_free(s);
}

T_MAIN(cmocka_unit_test(beijing_rows), cmocka_unit_test(bike_rows),
       cmocka_unit_test(exchange_rate_keeps_last_and_gives_the_published_rse))
