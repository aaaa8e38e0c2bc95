/* t_series.c - roles, times from several columns, gaps, missing cells, scaling, splits; the counts known of the shared files. */
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/series_build.h"
#include "data/time.h"

static err build(const char *path, struct series_options so, struct series **s) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    *s = NULL;
    o.time = so.time;
    o.time_format = so.time_format;
    o.cat = so.cat;
    o.ignore = so.ignore;
    TRY(table_read(path, &o, &t));
    err e = series_build(t, &so, s);
    table_free(t);
    return e;
}

static struct series *built(const char *path, struct series_options so) {
    struct series *s;
    T_OK(build(path, so, &s));
    return s;
}

static const struct err_record *refused(const char *path, struct series_options so, int code) {
    struct series *s;
    i64 before = mem_stats().live;
    T_FAILS(build(path, so, &s), code);
    assert_null(s);
    assert_int_equal(mem_stats().live, before);
    return err_last();
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

#define SO(...) ((struct series_options){__VA_ARGS__})

TEST(series_single_numeric_column_is_the_target) {
    struct series *s = built(t_file("a.csv", "Month,Passengers\n1949-01,112\n1949-02,118\n1949-03,132\n"), SO(.target = ""));
    assert_int_equal(s->ntarget, 1);
    assert_string_equal(s->name[0], "Passengers");
    assert_string_equal(s->freq.name, "monthly");
    assert_int_equal(s->nrow, 3);
    assert_int_equal(s->line[2], 4);
    assert_true(s->v[1] == 118);
    series_free(s);
}

TEST(series_lists_name_a_column_once) {
    const char *path = t_file("twice.csv", "t,h,a,b\n2011-01-01,0,1,2\n2011-01-02,1,2,3\n2011-01-03,2,3,5\n");
    const struct err_record *r = refused(path, SO(.target = "a,b,a"), 103);
    has(r->text, "--target names the column \"a\" twice");
    assert_string_equal(r->fix, "--target a,b");
    r = refused(path, SO(.target = "a,3"), 103); /* once by its number */
    assert_string_equal(r->fix, "--target a");
    assert_string_equal(refused(path, SO(.target = "a", .past = "b,b"), 103)->fix, "--past b");
    assert_string_equal(refused(path, SO(.target = "a", .time = "t,t"), 103)->fix, "--time t");
}

TEST(series_names_with_commas_are_written_with_a_backslash) {
    const char *path = t_file("comma.csv", "\"a,b\",c\\,\"d\\,e\"\n1,2,3\n2,3,5\n3,5,8\n");
    struct series *s = built(path, SO(.target = "a\\,b, d\\\\,e", .past = "c\\"));
    assert_int_equal(s->ncol, 3);
    assert_string_equal(s->name[0], "a,b");
    assert_string_equal(s->name[1], "d\\,e");
    assert_string_equal(s->name[2], "c\\");
    series_free(s);
}

TEST(series_dates_with_short_years_get_their_layout_as_advice) {
    const char *path = t_file("short.csv", "date,y\n30.12.23,1\n31.12.23,2\n01.01.24,4\n");
    has(refused(path, SO(.target = "y"), 205)->fix, "--time-format '%d.%m.%y'");
    has(refused(path, SO(.target = "y", .time = "date"), 205)->fix, "--time-format '%d.%m.%y'");
    struct series *s = built(path, SO(.target = "y", .time_format = "%d.%m.%y")); /* the suggested option as printed */
    assert_true(s->time && s->freq.step == 86400);
    series_free(s);
}

TEST(series_target_is_never_chosen_silently) {
    const char *text = "t,a,b\n2011-01-01,1,2\n2011-01-02,2,3\n";
    const struct err_record *r = refused(t_file("a.csv", text), SO(.target = NULL), 105);
    has(r->text, "2 numeric columns could be meant\ncolumns: a, b");
    has(r->fix, "--target b   or   --target all");
    struct series *s = built(t_file("a.csv", text), SO(.target = "all"));
    assert_int_equal(s->ntarget, 2);
    series_free(s);
    s = built(t_file("a.csv", text), SO(.target = "b,a"));
    assert_string_equal(s->name[0], "b");
    series_free(s);
    refused(t_file("a.csv", text), SO(.target = "c"), 102);
    refused(t_file("a.csv", text), SO(.target = "a", .past = "a"), 106);
    refused(t_file("a.csv", text), SO(.target = "t"), 106); /* the time */
    refused(t_file("a.csv", "t,w\n2011-01-01,x\n2011-01-02,y\n"), SO(.target = "w"), 214);
    refused(t_file("a.csv", "t,w\n2011-01-01,x\n2011-01-02,y\n"), SO(.target = ""), 214);
    refused(t_file("a.csv", text), SO(.target = "a", .gaps = "maybe"), 103);
}

TEST(series_columns_come_in_the_order_of_their_roles) {
    const char *text = "t,k,y,w,p,q\n2011-01-01,1,2,u,3,9\n2011-01-02,2,3,v,4,9\n2011-01-03,3,,u,,\n";
    struct series *s = built(t_file("r.csv", text), SO(.target = "y", .known = "k", .past = "p", .cat = "w"));
    assert_int_equal(s->ncol, 3);
    assert_string_equal(s->name[0], "y");
    assert_string_equal(s->name[1], "p");
    assert_string_equal(s->name[2], "k");
    assert_int_equal(s->ncat, 1);
    assert_string_equal(s->word[0][s->code[0][1]], "v");
    assert_int_equal(s->nrow, 3); /* the last row has no target: a future row of the known column */
    assert_true(isnan(s->v[2]));
    assert_true(series_col(s, 2)[2] == 3);
    series_free(s);
    refused(t_file("r.csv", text), SO(.target = "y", .past = "p"), 207); /* without known columns it is a missing target */
}

TEST(series_time_of_several_columns_adds_up) {
    struct series *s = built(t_file("m.csv", "day,hr,y\n2011-01-01,22,1\n2011-01-01,23,2\n2011-01-02,0,3\n"),
                             SO(.time = "day,hr", .target = "y"));
    assert_int_equal(s->time[2] - s->time[0], 7200);
    series_free(s);
    s = built(t_file("m.csv", "Date;Time;y\n16/12/2006;17:24:00;1\n16/12/2006;17:25:00;2\n"),
              SO(.time = "Date,Time", .target = "y"));
    assert_string_equal(s->freq.name, "minutely");
    series_free(s);
    const struct err_record *r =
        refused(t_file("m.csv", "year,month,y\n2011,1,1\n2011,13,2\n"), SO(.time = "year,month", .target = "y"), 205);
    has(r->text, "13 in time column \"month\": no month");
    has(r->where, ":3:2");
    s = built(t_file("m.csv", "year,y\n1999,1\n2000,4\n2001,2\n"), SO(.time = "year"));
    assert_string_equal(s->freq.name, "yearly");
    series_free(s);
}

TEST(series_gaps_are_counted_and_filled_as_asked) {
    const char *text =
        "t,y,x\n2011-01-01 00:00,1,5\n2011-01-01 01:00,2,6\n2011-01-01 04:00,5,9\n2011-01-01 05:00,6,7\n2011-01-01 07:00,9,1\n";
    const struct err_record *r = refused(t_file("g.csv", text), SO(.target = "y"), 210);
    has(r->text, "hourly steps expected, 3 hours absent in 2 gaps (1 of them one hour)\n"
                 "first before line 4 (2011-01-01 02:00); longest 2 hours before line 4 (2011-01-01 02:00 to 2011-01-01 03:00)");
    has(r->fix, "--gaps mask");
    struct series *s = built(t_file("g.csv", text), SO(.target = "y", .past = "x", .gaps = "mask"));
    assert_int_equal(s->nrow, 8);
    assert_true(isnan(s->v[2]) && isnan(s->v[3]) && s->v[4] == 5 && isnan(s->v[6]));
    assert_int_equal(s->line[2], -1);
    assert_int_equal(s->line[4], 4);
    series_free(s);
    s = built(t_file("g.csv", text), SO(.target = "y", .past = "x", .gaps = "zero"));
    assert_true(s->v[2] == 0 && isnan(series_col(s, 1)[2]));
    series_free(s);
    s = built(t_file("g.csv", text), SO(.target = "y", .past = "x", .gaps = "interpolate"));
    assert_true(s->v[2] == 3 && s->v[3] == 4 && s->v[6] == 7.5f && series_col(s, 1)[2] == 7);
    assert_true(series_is_target(s, 0, 1) && !series_is_target(s, 0, 2) && isnan(series_target(s, 0, 3)) &&
                series_target(s, 0, 4) == 5);
    assert_int_equal(series_known(s, 0, 4), 2); /* from row 4 the line to row 4 is not known */
    assert_int_equal(series_known(s, 0, 5), 5);
    assert_int_equal(series_known(s, 1, 3), 2);
    assert_true(series_filled(s, 1, 2));
    series_free(s);
    s = built(t_file("g.csv", text), SO(.target = "y", .known = "x", .gaps = "interpolate"));
    assert_false(series_filled(s, 1, 2)); /* what is known beforehand may be drawn to what comes */
    series_free(s);
    r = refused(t_file("g.csv", "t,y\n2011-01-01 00:00,1\n2011-01-01 01:00,2\n2011-01-01 02:00,5\n2011-01-01 02:20,6\n"),
                SO(.target = "y"), 210);
    has(r->text, "lie between them");
}

TEST(series_missing_targets_are_counted_in_runs) {
    const char *text = "t,y\n2011-01-01,NA\n2011-01-02,NA\n2011-01-03,3\n2011-01-04,\n2011-01-05,5\n2011-01-06,6\n";
    const struct err_record *r = refused(t_file("n.csv", text), SO(.target = "y"), 207);
    has(r->where, "n.csv:2:2");
    has(r->text,
        "\"NA\" in target \"y\" (3 of 6 rows, 50.0%, in 2 runs)\nfirst run: 2 rows at the start; longest: 2 rows from line 2 "
        "(2011-01-01)");
    struct series *s = built(t_file("n.csv", text), SO(.target = "y", .gaps = "interpolate"));
    assert_true(isnan(s->v[0]) && s->v[3] == 4); /* never before the first value */
    series_free(s);
}

TEST(series_order_duplicates_and_absurd_values_are_refused) {
    has(refused(t_file("o.csv", "t,y\n2011-01-02,1\n2011-01-01,2\n2011-01-03,3\n"), SO(.target = "y"), 209)->fix,
        "sort -s -t ','");
    has(refused(t_file("o.csv", "t,y\n2011-01-03,1\n2011-01-02,2\n2011-01-01,3\n"), SO(.target = "y"), 209)->text,
        "newest row comes first");
    const struct err_record *r = refused(
        t_file("o.csv", "id,t,y\na,2011-01-01,1\na,2011-01-02,2\nb,2011-01-01,3\nb,2011-01-02,3\n"), SO(.target = "y"), 209);
    has(r->text, "where \"id\" changes: several series in one file (2 of them)");
    const char *twice = "t,y\n2011-01-01,1\n2011-01-02,2\n2011-01-02,4\n2011-01-03,3\n";
    has(refused(t_file("o.csv", twice), SO(.target = "y"), 211)->where, "o.csv:4");
    static const struct {
        const char *policy;
        f32 value;
    } dups[] = {{"mean", 3}, {"first", 2}, {"last", 4}};
    for (size_t i = 0; i < COUNT(dups); i++) {
        struct series *s = built(t_file("o.csv", twice), SO(.target = "y", .dups = dups[i].policy));
        assert_int_equal(s->nrow, 3);
        assert_true(s->v[1] == dups[i].value && s->v[2] == 3);
        series_free(s);
    }
    const char *beside = "id,t,y\na,2011-01-01,1\nb,2011-01-01,2\na,2011-01-02,3\nb,2011-01-02,4\n";
    for (size_t i = 0; i < COUNT(dups); i++) /* interleaved series are never merged */
        has(refused(t_file("o.csv", beside), SO(.target = "y", .dups = dups[i].policy), 211)->text, "another \"id\"");
    struct series *same = built(t_file("o.csv", "id,t,y\na,2011-01-01,1\na,2011-01-01,2\na,2011-01-02,3\nb,2011-01-03,4\n"),
                                SO(.target = "y", .dups = "first"));
    assert_true(same->nrow == 3 && same->merged == 1);
    series_free(same);
    has(refused(t_file("o.csv", "t,y\n2011-01-01,1\n2011-01-02,inf\n2011-01-03,3\n"), SO(.target = "y"), 208)->where,
        "o.csv:3:2");
    has(refused(t_file("o.csv", "t,y\n2011-01-01,1\n2011-01-02,2\n2011-01-03,3\n2011-01-04,1e20\n"), SO(.target = "y"), 208)
            ->fix,
        "--na 1e+20");
    has(refused(t_file("o.csv", "t,y\n2011-01-01,7\n2011-01-02,7\n2011-01-03,7\n"), SO(.target = "y"), 212)->text,
        "is 7 in all 3 rows");
}

TEST(series_since_and_until_cut_by_calendar) {
    const char *path = t_file("c.csv", "t,y\n1958-11,1\n1958-12,2\n1959-01,3\n1959-12,4\n1960-01,5\n");
    struct series *s = built(path, SO(.since = "1958-12", .until = "1959", .gaps = "mask"));
    assert_int_equal(s->nrow, 13);
    assert_true(s->v[0] == 2 && s->v[12] == 4);
    series_free(s);
    refused(path, SO(.since = "1999"), 201);
    refused(path, SO(.since = "yesterday"), 103);
}

TEST(series_since_and_until_are_row_numbers_where_rows_have_no_time) {
    const char *path = t_file("n.csv", "y\n1\n2\n3\n4\n5\n");
    struct series *s = built(path, SO(.since = "1", .until = "3"));
    assert_true(s->nrow == 3 && s->v[0] == 2 && s->v[2] == 4 && s->line[0] == 3);
    series_free(s);
    refused(path, SO(.since = "5"), 201);
    refused(path, SO(.since = "2011-01-01"), 103);
    refused(path, SO(.until = "-1"), 103);
}

TEST(series_scale_uses_training_rows_only) {
    struct series *s = built(t_file("s.csv", "y,x\n1,5\n3,5\n100,7\n"), SO(.target = "y", .past = "x"));
    T_OK(series_scale(s, 2));
    assert_true(s->mean[0] == 2 && s->dev[0] == 1 && s->mean[1] == 5 && s->dev[1] == 1);
    assert_true(s->v[0] == -1 && s->v[1] == 1 && s->v[2] == 98);
    assert_true(series_raw(s, 0, 2) == 100);
    T_OK(series_scale(s, 3)); /* scaling twice keeps the original units */
    assert_true(fabs(series_raw(s, 0, 2) - 100) < 1e-4);
    series_free(s);
    s = built(t_file("s.csv", "y\n4\n4\n5\n"), SO(.target = "y"));
    T_FAILS(series_scale(s, 2), 212);
    series_free(s);
}

/* 20 sin + noise, plus far: two hundred rows from memory, some of them missing. */
static struct series *far_wave(f64 far, const char *gaps) {
    static f64 v[200];
    const char *names[] = {"y"};
    struct series_options so = SO(.target = "y", .gaps = gaps);
    struct series *s;
    for (i32 i = 0; i < 200; i++) v[i] = i % 17 == 3 ? (f64)NAN : far + 20 * sin(i / 3.0) + rng_normal(3, RNG_TEST, 0, (u64)i);
    T_OK(series_wrap(v, 200, 1, names, 0, 3600, &so, &s));
    return s;
}

TEST(series_far_from_zero_keeps_its_digits) {
    static const char *const gaps[] = {"mask", "interpolate"};
    for (size_t k = 0; k < 2 * COUNT(gaps); k++) {
        f64 far = k % 2 ? 1e9 : -1e9;
        struct series *a = far_wave(far, gaps[k / 2]), *b = far_wave(0, gaps[k / 2]);
        assert_true(b->mean[0] == 0 && b->dev[0] == 1);
        for (i32 pass = 0; pass < 3; pass++) { /* as read, scaled, scaled again */
            for (i64 i = 0; i < 200; i++) {
                f64 x = series_raw(a, 0, i) - far, z = series_raw(b, 0, i);
                if (isnan(x) != isnan(z) || fabs(x - z) > 1e-4) fail_msg("row %lld: %.9g, expected %.9g", (long long)i, x, z);
                if (pass && fabs((f64)a->v[i] - (f64)b->v[i]) > 1e-4)
                    fail_msg("row %lld: scaled %g and %g", (long long)i, (f64)a->v[i], (f64)b->v[i]);
            }
            T_OK(series_scale(a, pass ? 100 : 150));
            T_OK(series_scale(b, pass ? 100 : 150));
        }
        series_free(a);
        series_free(b);
    }
    struct series *z = far_wave(1e9, "zero");
    assert_true(series_raw(z, 0, 3) == 0 && fabs(series_raw(z, 0, 4) - 1e9) < 30);
    series_free(z);
}

/* Rows 1000 + k / 7, of which the last fifth is multiplied by `late`. */
static struct series *far_series(const char *name, f64 late) {
    enum { ROWS = 100 };
    struct str text = {0};
    str_add(&text, "y\n");
    for (i32 k = 0; k < ROWS; k++) str_addf(&text, "%.6f\n", (1000 + k / 7.) * (k < ROWS * 4 / 5 ? 1 : late));
    struct series *s = built(t_file(name, str_text(&text)), SO(.target = "y"));
    str_free(&text);
    return s;
}

TEST(series_early_rows_do_not_depend_on_late_targets) {
    struct series *a = far_series("near.csv", 1), *b = far_series("late.csv", 2);
    assert_true(a->mean[0] > 0 && a->mean[0] == b->mean[0]);
    assert_memory_equal(a->v, b->v, 80 * sizeof *a->v);
    assert_true(fabs(series_raw(b, 0, 99) / (2 * (1000 + 99 / 7.)) - 1) < 1e-6);
    series_free(a);
    series_free(b);
}

TEST(split_takes_rows_shares_and_dates) {
    char text[2000] = "t,y\n";
    for (i32 i = 0; i < 100; i++) {
        char row[40];
        snprintf(row, sizeof row, "%04d-%02d-01,%d\n", 2000 + i / 12, i % 12 + 1, i);
        strcat(text, row);
    }
    struct series *s = built(t_file("p.csv", text), SO(.target = "y"));
    static const struct {
        const char *validation, *test;
        i64 a, b;
    } cases[] = {{"10", "20", 70, 80},
                 {"0.1", "20%", 70, 80},
                 {"2007-01", "2008-01-01", 84, 96},
                 {"0", "0", 100, 100},
                 {"", "12", 88, 88}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct split p;
        T_OK(split_make(s, series_end(s), cases[i].validation, cases[i].test, &p));
        assert_int_equal(p.train, cases[i].a);
        assert_int_equal(p.validation, cases[i].b);
        assert_int_equal(p.test, 100);
    }
    struct split p;
    T_FAILS(split_make(s, series_end(s), "60", "60", &p), 301);
    T_FAILS(split_make(s, series_end(s), "much", "0", &p), 103);
    T_FAILS(split_make(s, series_end(s), "2008-01", "2007-01", &p), 103);
    series_free(s);
}

TEST(series_from_memory_has_times) {
    const f64 v[] = {1, 2, 3, 10, 20, 30};
    const char *names[] = {"a", "b"};
    struct series *s;
    struct series_options so = SO(.target = "b", .past = "a");
    T_OK(series_wrap(v, 3, 2, names, 0, 3600, &so, &s));
    assert_true(s->v[1] == 20 && series_col(s, 1)[2] == 3 && s->time[2] == 7200);
    assert_string_equal(s->freq.name, "hourly");
    series_free(s);
    T_OK(series_wrap(v, 3, 2, names, 0, 0, &so, &s));
    assert_null(s->time);
    series_free(s);
}

TEST(series_memory_at_any_allocation_is_an_error) {
    const char *path = t_file("m.csv", "t,y,x,w\n2011-01-01,1,5,a\n2011-01-02,2,6,b\n2011-01-02,3,6,b\n2011-01-05,7,7,a\n");
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct series_options so = SO(.target = "y", .past = "x", .cat = "w", .gaps = "mask", .dups = "mean");
    struct table *t;
    T_OK(table_read(path, &o, &t));
    i64 before = mem_stats().live;
    err e = -1;
    for (i64 n = 1; e < 0 && n < 500; n++) {
        struct series *s;
        mem_fail_nth(n);
        e = series_build(t, &so, &s);
        mem_fail_nth(0);
        if (e < 0 && e != -102) assert_int_equal(e, -601); /* a name cannot be looked up without memory */
        series_free(s);
        assert_int_equal(mem_stats().live, before);
    }
    T_OK(e);
    table_free(t);
}

TEST(shared_bike_gaps) {
    const char *path = t_shared("data/bike_sharing/hour.csv");
    const struct err_record *r = refused(path, SO(.time = "dteday,hr", .target = "cnt"), 210);
    has(r->text, "hourly steps expected, 165 hours absent in 75 gaps (64 of them one hour)\n");
    has(r->text,
        "first before line 31 (2011-01-02 05:00); longest 36 hours before line 15888 (2012-10-29 01:00 to 2012-10-30 12:00)");
    struct series *s = built(path, SO(.time = "dteday,hr", .target = "cnt", .gaps = "zero"));
    assert_int_equal(s->nrow, 17544);
    series_free(s);
}

TEST(shared_beijing_missing) {
    const struct err_record *r =
        refused(t_shared("data/beijing_pm25/pollution.csv"),
                SO(.time = "year,month,day,hour", .target = "pm2.5", .cat = "cbwd", .ignore = "No"), 207);
    has(r->where, "pollution.csv:2:6");
    has(r->text, "\"NA\" in target \"pm2.5\" (2067 of 43824 rows, 4.7%, in 214 runs)\n"
                 "first run: 24 rows at the start; longest: 155 rows from line 6319 (2010-09-21 05:00)");
}

static void gap_lines(const char *path, struct series_options so, const i64 *lines, i32 n) {
    struct series *s = built(path, so);
    i32 k = 0;
    for (i64 i = 1; i < s->nrow; i++)
        if (s->line[i] >= 0 && s->line[i - 1] < 0) {
            assert_in_range(k, 0, n - 1);
            assert_int_equal(s->line[i], lines[k++]);
        }
    assert_int_equal(k, n);
    series_free(s);
}

TEST(shared_gaps_of_other_files) {
    static const i64 ili[] = {223, 535, 795, 1107}, temperatures[] = {1462, 2922};
    gap_lines(t_shared("data/ili/ILINet.csv"), SO(.target = "ILITOTAL", .gaps = "mask"), ili, 4);
    gap_lines(t_shared("data/univariate/daily-min-temperatures.csv"), SO(.gaps = "mask"), temperatures, 2);
    has(refused(t_shared("data/univariate/daily-min-temperatures.csv"), SO(.target = ""), 210)->text, "2 days absent in 2 gaps");
}

TEST(shared_shampoo_is_refused_or_told) {
    const char *path = t_shared("data/univariate/shampoo.csv");
    const struct err_record *r = refused(path, SO(.target = ""), 205);
    has(r->where, "shampoo.csv:2:1");
    has(r->text, "\"1-01\" in column \"Month\"");
    has(r->fix, "--time-format row");
    struct series *s = built(path, SO(.time_format = "row", .freq = "1month"));
    assert_int_equal(s->nrow, 36);
    assert_int_equal(s->freq.season, 12);
    assert_null(s->time);
    series_free(s);
}

TEST(shared_exchange_rate_needs_no_times) {
    struct series *s = built(t_shared("data/exchange_rate/exchange_rate.txt.gz"), SO(.target = "all"));
    assert_int_equal(s->nrow, 7588);
    assert_int_equal(s->ntarget, 8);
    series_free(s);
}

T_MAIN(cmocka_unit_test(series_single_numeric_column_is_the_target), cmocka_unit_test(series_target_is_never_chosen_silently),
       cmocka_unit_test(series_lists_name_a_column_once),
       cmocka_unit_test(series_names_with_commas_are_written_with_a_backslash),
       cmocka_unit_test(series_dates_with_short_years_get_their_layout_as_advice),
       cmocka_unit_test(series_columns_come_in_the_order_of_their_roles),
       cmocka_unit_test(series_time_of_several_columns_adds_up), cmocka_unit_test(series_gaps_are_counted_and_filled_as_asked),
       cmocka_unit_test(series_missing_targets_are_counted_in_runs),
       cmocka_unit_test(series_order_duplicates_and_absurd_values_are_refused),
       cmocka_unit_test(series_since_and_until_cut_by_calendar),
       cmocka_unit_test(series_since_and_until_are_row_numbers_where_rows_have_no_time),
       cmocka_unit_test(series_scale_uses_training_rows_only),
       cmocka_unit_test(series_far_from_zero_keeps_its_digits),
       cmocka_unit_test(series_early_rows_do_not_depend_on_late_targets), cmocka_unit_test(split_takes_rows_shares_and_dates),
       cmocka_unit_test(series_from_memory_has_times), cmocka_unit_test(series_memory_at_any_allocation_is_an_error),
       cmocka_unit_test(shared_bike_gaps), cmocka_unit_test(shared_beijing_missing),
       cmocka_unit_test(shared_gaps_of_other_files), cmocka_unit_test(shared_shampoo_is_refused_or_told),
       cmocka_unit_test(shared_exchange_rate_needs_no_times))
