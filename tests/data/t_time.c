/* t_time.c - reading, writing and stepping times. */
#include "t.h"

#include <stdio.h>
#include <string.h>

#include "data/time.h"

static i64 at(i64 y, i32 mo, i32 d, i32 h, i32 mi, i32 s) {
    struct civil c = {y, mo, d, h, mi, s};
    return time_make(&c);
}

static void reads(enum time_kind kind, const char *text, i64 want) {
    struct time_parser p = {.kind = kind};
    i64 t = -12345;
    if (!time_parse(&p, text, strlen(text), &t) || t != want)
        fail_msg("\"%s\": got %lld want %lld", text, (long long)t, (long long)want);
}

static void refuses(enum time_kind kind, const char *text) {
    struct time_parser p = {.kind = kind};
    i64 t;
    if (time_parse(&p, text, strlen(text), &t)) fail_msg("\"%s\" was read as %lld", text, (long long)t);
}

TEST(time_civil_days_round_trip) {
    assert_int_equal(time_days(1970, 1, 1), 0);
    assert_int_equal(time_days(2000, 2, 29), 11016);
    assert_int_equal(time_days(1749, 1, 1) * 86400, -6974035200);
    for (i64 day = -200000; day < 200000; day += 13) {
        struct civil c;
        time_split(day * 86400 + 12345, &c);
        assert_int_equal(time_make(&c), day * 86400 + 12345);
    }
}

TEST(time_reads_iso_and_its_relatives) {
    i64 t = at(2011, 1, 2, 5, 0, 0);
    reads(TIME_YMD, "2011-01-02 05:00", t);
    reads(TIME_YMD, "2011-01-02T05:00:00", t);
    reads(TIME_YMD, "2011-01-02T05:00:00Z", t);
    reads(TIME_YMD, "2011-01-02 05:00:00.123456", t);
    reads(TIME_YMD, "2011-01-02 05:00:00,5", t);
    reads(TIME_YMD, "2011-01-02T06:00:00+01:00", t);
    reads(TIME_YMD, "2011-01-01 23:30:00-0530", t);
    reads(TIME_YMD, "2011/1/2 5:00", t);
    reads(TIME_YMD, "2011/01/02 05:00:00 UTC", t);
    reads(TIME_YMD, "2011-01-02 5:00 AM", t);
    reads(TIME_YMD, "2011-01-02 05:00:00 pm", t + 12 * 3600);
    reads(TIME_YMD, "2011-01", at(2011, 1, 1, 0, 0, 0));
    reads(TIME_YMD, "2011-01-02", at(2011, 1, 2, 0, 0, 0));
    reads(TIME_YMD, "2011.01.02", at(2011, 1, 2, 0, 0, 0));
    reads(TIME_YMD, "2012-02-29 24:00", at(2012, 3, 1, 0, 0, 0));
    reads(TIME_DMY, "02.01.2011 05:00", t);
    reads(TIME_DMY, "2/1/2011", at(2011, 1, 2, 0, 0, 0));
    reads(TIME_MDY, "1/2/2011", at(2011, 1, 2, 0, 0, 0));
    reads(TIME_PERIOD, "2011-Q3", at(2011, 7, 1, 0, 0, 0));
    reads(TIME_PERIOD, "2011q1", at(2011, 1, 1, 0, 0, 0));
    reads(TIME_PERIOD, "2011M03", at(2011, 3, 1, 0, 0, 0));
    reads(TIME_PERIOD, "2011-H2", at(2011, 7, 1, 0, 0, 0));
    reads(TIME_PERIOD, "2021-W05", at(2021, 2, 1, 0, 0, 0));
    reads(TIME_PERIOD, "2021W05", at(2021, 2, 1, 0, 0, 0));
    reads(TIME_PERIOD, "2021-W05-7", at(2021, 2, 7, 0, 0, 0));
    reads(TIME_PERIOD, "2020W537", at(2021, 1, 3, 0, 0, 0));
    reads(TIME_PERIOD, "2009-W01-1", at(2008, 12, 29, 0, 0, 0));
    reads(TIME_CLOCK, "17.24.00", 17 * 3600 + 24 * 60);
    reads(TIME_YEAR, "1949", at(1949, 1, 1, 0, 0, 0));
    reads(TIME_COMPACT, "20110102", at(2011, 1, 2, 0, 0, 0));
    reads(TIME_COMPACT, "201101", at(2011, 1, 1, 0, 0, 0));
    reads(TIME_COMPACT, "2011010205", t);
    reads(TIME_COMPACT, "201101020500", t);
    reads(TIME_COMPACT, "20110102050000", t);
    reads(TIME_COMPACT, "20110102T0500", t);
    reads(TIME_COMPACT, "20110102T060000+01:00", t);
    reads(TIME_COMPACT, "20110102 05:00", t);
    reads(TIME_EPOCH, "1293944400", t);
    reads(TIME_EPOCH, "1293944400.5", t);
    reads(TIME_EPOCH, "1293944400000", t);
    reads(TIME_EPOCH, "1293944400000000", t);
    reads(TIME_EPOCH, "1293944400000000000", t);
    reads(TIME_EPOCH, "-86400", -86400);
}

TEST(time_offset_is_read_after_a_clock) {
    const struct time_parser ymd = {.kind = TIME_YMD};
    static const struct {
        const char *text;
        i32 zone;
    } good[] = {{"2021-03-01T05:00Z", 0},         {"2021-03-01 05:00 UTC", 0},       {"2021-03-01 05:00+02:00", 7200},
                {"2021-03-01 05:00:00.5-0530", -19800}, {"20210301T0500+09", 32400}, {"1 Mar 2021 05:00 GMT", 0}};
    static const char *const none[] = {"2021-03-01", "2021-03", "2021-03-01 05:00", "05:00 PM", "1609804800", "", "Z", "-05:30"};
    for (size_t i = 0; i < COUNT(good); i++) {
        i32 zone = -1;
        assert_true(time_offset(&ymd, good[i].text, (i64)strlen(good[i].text), &zone) && zone == good[i].zone);
    }
    for (size_t i = 0; i < COUNT(none); i++) {
        i32 zone;
        if (time_offset(&ymd, none[i], (i64)strlen(none[i]), &zone)) fail_msg("\"%s\" has an offset", none[i]);
    }
}

TEST(time_reads_zones_by_their_names) {
    const struct time_parser ymd = {.kind = TIME_YMD};
    const struct time_parser literal = {.kind = TIME_CUSTOM, .format = "%Y-%m-%d %H:%M CET"};
    const struct time_parser zone_of = {.kind = TIME_CUSTOM, .format = "%Y-%m-%d %H:%M %z"};
    const char cet[] = "2021-03-01 05:00 CET", ist[] = "2021-03-01 05:00 IST";
    const i64 t = time_days(2021, 3, 1) * 86400 + 5 * 3600;
    i32 zone;
    reads(TIME_YMD, cet, t - 3600);
    reads(TIME_YMD, "2021-03-01 05:00 CEST", t - 7200);
    reads(TIME_YMD, "2021-03-01T05:00:00 EDT", t + 4 * 3600);
    reads(TIME_YMD, "2021-03-01 05:00 UTC+01:00", t - 3600);
    refuses(TIME_YMD, ist); /* three countries have it */
    assert_true(time_offset(&ymd, cet, sizeof cet - 1, &zone) && zone == 3600);
    assert_true(time_offset(&zone_of, cet, sizeof cet - 1, &zone) && zone == 3600);
    assert_false(time_offset(&literal, cet, sizeof cet - 1, &zone)); /* the layout took it as text */
    assert_false(time_offset(&ymd, ist, sizeof ist - 1, &zone));
}

TEST(time_reads_counted_days_and_hundreds_of_nanoseconds) {
    const i64 t = time_days(2021, 3, 1) * 86400;
    i64 out;
    assert_true(time_of_number(TIME_TICKS, 637501536000000000., &out) && out == t);
    assert_true(time_of_number(TIME_FILETIME, 132589440000000000., &out) && out == time_days(2021, 2, 28) * 86400);
    assert_false(time_of_number(TIME_TICKS, 1293944400e9, &out));
    const f64 ticks[] = {637501536000000000., 637502400000000000.}, ns[] = {1614556800e9, 1614643200e9};
    assert_int_equal(time_guess_numbers(ticks, 2), TIME_TICKS);
    assert_int_equal(time_guess_numbers(ns, 2), TIME_EPOCH);
    struct time_parser p = {.kind = TIME_CUSTOM, .format = "excel"};
    assert_true(time_parse(&p, "44256", 5, &out) && out == t);
    assert_true(time_parse(&p, "44256.0417", 10, &out) && out == t + 3600);
    assert_true(time_parse(&p, "44256.00001157", 14, &out) && out == t + 1);
    assert_false(time_parse(&p, "12.5", 4, &out));
    p.format = "%Y|julian";
    assert_true(time_parse(&p, "2459274.5", 9, &out) && out == t);
    assert_true(time_parse(&p, "2459275", 7, &out) && out == t + 43200);
    p.format = "/Date(%s)/";
    assert_true(time_parse(&p, "/Date(1614556800000)/", 21, &out) && out == t);
    assert_true(time_parse(&p, "/Date(9999999999999999999)/", 27, &out)); /* more than an i64 holds */
}

TEST(time_like_tells_times_from_titles_and_codes) {
    static const char *const likes[] = {"II kw. 2020",    "2020/III", "3. kuu 2020", "day 3 at 11:40",
                                        "11:40:05.123 x", "Jan'20",   "3 mars"};
    static const char *const none[] = {"INV-2020-00017", "10.0.0.1", "Main St 12", "Toy Story", "", "item 7", "2020-123"};
    char title[30][16];
    const char *many[30];
    i32 len[30];
    for (size_t i = 0; i < COUNT(likes); i++) {
        const i32 n = (i32)strlen(likes[i]);
        if (!time_like(&likes[i], &n, 1)) fail_msg("\"%s\" looks like no time", likes[i]);
    }
    for (size_t i = 0; i < COUNT(none); i++) {
        const i32 n = (i32)strlen(none[i]);
        if (time_like(&none[i], &n, 1)) fail_msg("\"%s\" looks like a time", none[i]);
    }
    for (i32 i = 0; i < 30; i++) {
        snprintf(title[i], sizeof title[i], "%c%c (1995)", 'a' + i % 26, 'a' + i / 26);
        many[i] = title[i];
        len[i] = (i32)strlen(title[i]);
    }
    assert_false(time_like(many, len, 30));
    assert_true(time_like(many, len, 10));
}

TEST(time_refuses_what_is_none) {
    static const char *const bad[] = {"1-01",
                                      "2011-13-01",
                                      "2011-02-29",
                                      "2011-00-01",
                                      "2011-01-32",
                                      "11-01-02",
                                      "2011-01-02 25:00",
                                      "2011-01-02 05:60",
                                      "2011-01-02x",
                                      "",
                                      "2011",
                                      "2011-",
                                      "12.5",
                                      "abc"};
    for (size_t i = 0; i < COUNT(bad); i++) refuses(TIME_YMD, bad[i]);
    refuses(TIME_DMY, "31.02.2011");
    refuses(TIME_MDY, "13/01/2011");
    refuses(TIME_PERIOD, "2011-Q5");
    refuses(TIME_PERIOD, "Q5 2011");
    refuses(TIME_PERIOD, "H3 2011");
    refuses(TIME_PERIOD, "Q1 11");
    reads(TIME_PERIOD, "Q2 2011", time_days(2011, 4, 1) * 86400);
    reads(TIME_PERIOD, "H2/2011", time_days(2011, 7, 1) * 86400);
    refuses(TIME_PERIOD, "2021-W53"); /* a short year */
    refuses(TIME_PERIOD, "2021-W05-8");
    refuses(TIME_COMPACT, "20110230");
    refuses(TIME_COMPACT, "2011010225");
    refuses(TIME_COMPACT, "20110102T2500");
    refuses(TIME_CLOCK, "25:00");
    refuses(TIME_YEAR, "49");
    refuses(TIME_COMPACT, "210101"); /* yymmdd, not a month of 2101 */
    refuses(TIME_COMPACT, "159912");
}

TEST(time_custom_format_reads_names_and_halves) {
    struct time_parser p = {.kind = TIME_CUSTOM, .format = "%d-%b-%y %I:%M %p"};
    i64 t;
    assert_true(time_parse(&p, "02-Jan-11 05:07 PM", 18, &t));
    assert_int_equal(t, at(2011, 1, 2, 17, 7, 0));
    assert_false(time_parse(&p, "02-Jax-11 05:07 PM", 18, &t));
    struct time_parser day = {.kind = TIME_CUSTOM, .format = "%Y%j"};
    assert_true(time_parse(&day, "2012060", 7, &t));
    assert_int_equal(t, at(2012, 2, 29, 0, 0, 0));
    assert_false(time_parse(&day, "2011366", 7, &t));
    assert_false(time_parse(&day, "2012000", 7, &t));
    struct time_parser either = {.kind = TIME_CUSTOM, .format = "%Y-%m-%d|%d.%m.%Y|%Y-%m-%d %H:%M"};
    assert_true(time_parse(&either, "02.01.2011", 10, &t) && t == at(2011, 1, 2, 0, 0, 0));
    assert_true(time_parse(&either, "2011-01-02 05:00", 16, &t) && t == at(2011, 1, 2, 5, 0, 0));
    assert_false(time_parse(&either, "2011/01/02", 10, &t));
    struct time_parser year = {.kind = TIME_CUSTOM, .format = "year %Y, week 1"};
    assert_true(time_parse(&year, "year 1999, week 1", 17, &t));
}

TEST(time_reads_months_as_words) {
    static const struct {
        const char *text;
        i64 year;
        i32 month, day, hour;
    } good[] = {{"Jan 2024", 2024, 1, 1, 0},          {"January 2024", 2024, 1, 1, 0},    {"1. März 2024", 2024, 3, 1, 0},
                {"MÄRZ 2024", 2024, 3, 1, 0},         {"15 Dec 2023", 2023, 12, 15, 0},   {"15-Dez-2023 07:00", 2023, 12, 15, 7},
                {"March 5, 2024", 2024, 3, 5, 0},     {"Sept. 30, 2024", 2024, 9, 30, 0}, {"2024-Feb-29", 2024, 2, 29, 0},
                {"2024 Mai", 2024, 5, 1, 0},          {"3. Oktober 2024", 2024, 10, 3, 0}, {"may 2024", 2024, 5, 1, 0},
                {"1 Jun 2024 11:00 PM", 2024, 6, 1, 23}};
    static const char *const bad[] = {"Jan", "Jan 24", "2024", "Febr 30, 2024", "30 Feb 2024", "decision 2024",
                                      "Jan 2024 units", "x Jan 2024"};
    for (size_t i = 0; i < COUNT(good); i++)
        reads(TIME_WORDS, good[i].text, at(good[i].year, good[i].month, good[i].day, good[i].hour, 0, 0));
    for (size_t i = 0; i < COUNT(bad); i++) refuses(TIME_WORDS, bad[i]);
    bool ambiguous;
    const char *months[] = {"Jan 2024", "Feb 2024", "Mrz 2024"};
    i32 len[] = {8, 8, 8};
    assert_int_equal(time_guess(months, len, 3, false, &ambiguous), TIME_WORDS);
}

static void advises(const char *a, const char *b, const char *want) {
    const char *s[] = {a, b};
    const i32 len[] = {(i32)strlen(a), (i32)strlen(b)};
    char fix[TIME_ADVICE];
    assert_true((time_advice(s, len, 2, fix) > 0) == (*want != 0));
    if (strcmp(fix, want) != 0) fail_msg("%s: got \"%s\", want \"%s\"", a, fix, want);
}

TEST(time_advice_names_layouts_that_read_the_cells) {
    advises("31.12.23", "01.01.24", "--time-format '%d.%m.%y'");
    advises("12/31/23", "1/1/24", "--time-format '%m/%d/%y'");
    advises("1/2/24", "2/2/24", "--time-format '%d/%m/%y'   or   --time-format '%m/%d/%y'");
    advises("31.12.23 23:00", "01.01.24 00:00", "--time-format '%d.%m.%y %H:%M'");
    advises("Jan-24", "Feb-24", "--time-format '%b-%y'");
    advises("12/2023", "01/2024", "--time-format '%m/%Y'");
    advises("week 1", "week 2", "");
    advises("210101", "210213", "--time-format '%y%m%d'");
    advises("202101", "202152", "--time-format '%G%V'");
    advises("Mar 01 2021 00h", "Mar 02 2021 00h", "");
    advises("M11 2019", "M12 2019", "");
    advises("T1 1990", "T1 1991", "--time-format 'T%q %Y'");
    advises("1Q90", "2Q90", "--time-format '%qQ%y'");
    advises("1980-1981", "1981-1982", "");
    advises("30-12-20", "31-12-20", "--time-format '%y-%m-%d'   or   --time-format '%d-%m-%y'");
    advises("FY2020", "FY2021", "--time-format 'FY%Y'");
    advises("FY20-Q1", "FY20-Q2", "--time-format 'FY%y-Q%q'");
    advises("/Date(1577836800000)/", "/Date(1577840400000)/", "--time-format '/Date(%s)/'");
    advises("Mar 10 00:00:00", "Mar 11 00:00:00", "");
    advises("2021-0001", "2021-0002", "");
    advises("2021-001", "2021-060", "--time-format '%Y-%j'");
    advises("2021-366", "2021-366", "");
    advises("2020-366", "2020-365", "--time-format '%Y-%j'");
    advises("KW 01/2021", "KW 02/2021", "--time-format 'KW %V/%G'");
    advises("01/2021", "02/2021", "--time-format '%m/%Y'");
    advises("01.02.21 10:00 Uhr", "13.02.21 10:00 Uhr", "--time-format '%d.%m.%y %H:%M Uhr'");
    advises("14/3/21 5:00PM", "15/3/21 5:00PM", "--time-format '%d/%m/%y %I:%M%p'");
    advises("01MAR21", "02MAR21", "--time-format '%d%b%y'");
    advises("day 2021-03-01 05:00 Europe/Berlin", "day 2021-03-02 05:00 Europe/Berlin",
            "--time-format 'day %Y-%m-%d %H:%M Europe/Berlin'");
    advises("44197", "44198", "");
}

static enum time_kind guess(bool named, bool *ambiguous, i32 n, const char *const *s) {
    i32 len[16];
    for (i32 i = 0; i < n; i++) len[i] = (i32)strlen(s[i]);
    return time_guess(s, len, n, named, ambiguous);
}

TEST(time_guess_tells_day_from_month) {
    bool ambiguous;
    const char *day[] = {"11/01/2011", "12/01/2011", "13/01/2011"}, *month[] = {"01/12/2011", "01/13/2011"},
               *either[] = {"01/02/2011", "02/02/2011"}, *order[] = {"28.01.2011", "01.02.2011"},
               *back[] = {"09/01/2011", "01/02/2011"};
    assert_int_equal(guess(false, &ambiguous, 3, day), TIME_DMY);
    assert_int_equal(guess(false, &ambiguous, 2, month), TIME_MDY);
    assert_false(ambiguous);
    guess(false, &ambiguous, 2, either);
    assert_true(ambiguous);
    assert_int_equal(guess(false, &ambiguous, 2, order), TIME_DMY);
    assert_false(ambiguous);
    assert_int_equal(guess(false, &ambiguous, 2, back), TIME_DMY); /* as month first the time would go back */
    assert_false(ambiguous);
    const char *years[] = {"1949", "1950"};
    assert_int_equal(guess(false, &ambiguous, 2, years), TIME_NONE);
    assert_int_equal(guess(true, &ambiguous, 2, years), TIME_YEAR);
}

static struct freq infer(i64 first, i64 step, i32 months, i32 n) {
    i64 t[400];
    struct freq make = {.step = step, .months = months}, f;
    for (i32 i = 0; i < n; i++) t[i] = time_add(first, &make, i);
    freq_infer(t, n, &f);
    assert_true(f.step > 0 || f.months > 0);
    return f;
}

TEST(freq_inference_knows_calendar_and_seasons) {
    static const struct {
        i64 step;
        i32 months, season;
        const char *name;
    } want[] = {{3600, 0, 24, "hourly"}, {86400, 0, 7, "daily"}, {604800, 0, 52, "weekly"}, {0, 1, 12, "monthly"},
                {0, 3, 4, "quarterly"},  {0, 12, 1, "yearly"},   {900, 0, 96, "15min"},     {600, 0, 144, "10min"},
                {60, 0, 60, "minutely"}, {21600, 0, 4, "6h"},    {1, 0, 60, "every second"}};
    for (size_t i = 0; i < COUNT(want); i++) {
        struct freq f = infer(at(2011, 1, 1, 0, 0, 0), want[i].step, want[i].months, 40);
        assert_string_equal(f.name, want[i].name);
        assert_int_equal(f.season, want[i].season);
        assert_int_equal(f.step, want[i].step);
        assert_int_equal(f.months, want[i].months);
    }
    struct freq ends = infer(at(2011, 1, 31, 0, 0, 0), 0, 1, 30);
    assert_int_equal(ends.months, 1);
}

/* 30 Jan, 28 Feb: the next is 30 Mar.  31 Jan, 28 Feb: the next is 31 Mar. */
TEST(months_go_on_at_their_day_after_a_short_one) {
    static const struct {
        i32 day, months, want;
    } cases[] = {{28, 1, 28}, {29, 1, 29}, {30, 1, 30}, {31, 1, 0}, {15, 1, 0}, {1, 1, 0}, {30, 3, 30}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const i32 n = cases[i].months == 1 ? 14 : 6, day = cases[i].day;
        const i64 first = at(2010, cases[i].months == 1 ? 1 : 8, day, 6, 0, 0);
        struct freq f = infer(first, 0, cases[i].months, n);
        assert_int_equal(f.day, cases[i].want);
        i64 t = first;
        for (i32 k = 1; k < 40; k++) {
            t = time_add(t, &f, 1);
            if (t != time_add(first, &f, k)) fail_msg("day %d: step %d goes on at another day", day, k);
        }
        t = time_add(at(2011, 2, 28, 6, 0, 0), &f, 1);
        if (day >= 28) assert_int_equal(t, at(2011, cases[i].months == 1 ? 3 : 5, day, 6, 0, 0));
    }
}

TEST(freq_words_are_understood) {
    static const char *const words[] = {"1h", "hourly", "60min", "3600s", "1 hour"};
    struct freq f;
    for (size_t i = 0; i < COUNT(words); i++) {
        T_OK(freq_parse(words[i], &f));
        assert_int_equal(f.step, 3600);
        assert_int_equal(f.season, 24);
    }
    T_OK(freq_parse("1month", &f));
    assert_int_equal(f.months, 1);
    T_OK(freq_parse("Q", &f));
    assert_int_equal(f.months, 3);
    T_FAILS(freq_parse("fortnight", &f), 103);
    T_FAILS(freq_parse("0h", &f), 103);
    T_FAILS(freq_parse("10ms", &f), 103);
    T_OK(freq_parse("MS", &f));
    assert_int_equal(f.months, 1);
}

TEST(time_steps_and_texts_follow_the_frequency) {
    struct freq month = {.months = 1}, hour = {.step = 3600}, day = {.step = 86400}, year = {.months = 12}, second = {.step = 1};
    assert_int_equal(time_add(at(2011, 1, 31, 0, 0, 0), &month, 1), at(2011, 2, 28, 0, 0, 0));
    assert_int_equal(time_add(at(2011, 2, 28, 0, 0, 0), &month, 1), at(2011, 3, 31, 0, 0, 0));
    assert_int_equal(time_add(at(2011, 3, 15, 6, 0, 0), &month, -14), at(2010, 1, 15, 6, 0, 0));
    assert_int_equal(time_steps(at(1949, 1, 1, 0, 0, 0), at(1960, 12, 1, 0, 0, 0), &month), 143);
    assert_int_equal(time_steps(0, 5400, &hour), -1);
    char text[32];
    time_format(at(1949, 1, 1, 0, 0, 0), &month, text);
    assert_string_equal(text, "1949-01");
    time_format(at(1949, 1, 1, 0, 0, 0), &year, text);
    assert_string_equal(text, "1949");
    time_format(at(2011, 1, 2, 0, 0, 0), &day, text);
    assert_string_equal(text, "2011-01-02");
    time_format(at(2011, 1, 2, 5, 0, 0), &hour, text);
    assert_string_equal(text, "2011-01-02 05:00");
    time_format(at(2011, 1, 2, 5, 0, 0), &second, text);
    assert_string_equal(text, "2011-01-02 05:00:00");
    freq_span(&hour, 36, text);
    assert_string_equal(text, "36 hours");
}

TEST(time_memory_gives_the_same_times) {
    struct time_parser p = {.kind = TIME_YMD};
    struct time_memory m = {0};
    const char *texts[] = {"2011-01-02 05:00:00,1,2,3,4,5,6,7,8,9", "2011-01-02 06:00:00,1,2,3,4,5,6,7,8,9",
                           "2011-01-02 06:00,1,2,3,4,5,6,7,8,9,10", "2011-01-03,1,2,3,4,5,6,7,8,9,10,11,12",
                           "2011-01,1,2,3,4,5,6,7,8,9,10,11,12,13", "2011-01-03T23:59:59,1,2,3,4,5,6,7,8,9",
                           "2011-02-30 05:00:00,1,2,3,4,5,6,7,8,9", "2011-02-30 06:00:00,1,2,3,4,5,6,7,8,9"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        i64 a = 0, b = 0;
        const char *end = texts[i] + strlen(texts[i]);
        const char *x = time_read_again(&p, &m, texts[i], end, &a), *y = time_read(&p, texts[i], end, &b);
        assert_ptr_equal(x, y);
        if (x) assert_int_equal(a, b);
    }
}

T_MAIN(cmocka_unit_test(time_civil_days_round_trip), cmocka_unit_test(time_reads_iso_and_its_relatives),
       cmocka_unit_test(time_offset_is_read_after_a_clock), cmocka_unit_test(time_reads_zones_by_their_names),
       cmocka_unit_test(time_reads_counted_days_and_hundreds_of_nanoseconds),
       cmocka_unit_test(time_like_tells_times_from_titles_and_codes),
        cmocka_unit_test(time_refuses_what_is_none), cmocka_unit_test(time_custom_format_reads_names_and_halves),
       cmocka_unit_test(time_reads_months_as_words), cmocka_unit_test(time_advice_names_layouts_that_read_the_cells),
       cmocka_unit_test(time_guess_tells_day_from_month), cmocka_unit_test(freq_inference_knows_calendar_and_seasons),
       cmocka_unit_test(months_go_on_at_their_day_after_a_short_one),
       cmocka_unit_test(freq_words_are_understood), cmocka_unit_test(time_steps_and_texts_follow_the_frequency),
       cmocka_unit_test(time_memory_gives_the_same_times))
