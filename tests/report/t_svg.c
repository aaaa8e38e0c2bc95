/* t_svg.c - axes with round ticks, charts, timelines. */
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "report/svg.h"
#include "report/text.h"

static f64 day(i64 y, i32 m, i32 d) { return 86400. * (f64)time_days(y, m, d); }

/* All ticks of an axis as "a b c", second lines in brackets. */
static const char *ticks(enum axis_kind kind, f64 lo, f64 hi, f64 room, bool across) {
    static char text[1024];
    struct axis a;
    axis_make(&a, kind, lo, hi, room, across);
    size_t n = 0;
    text[0] = 0;
    for (i32 i = 0; i < a.n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, a.tick[i].under[0] ? "%s%s(%s)" : "%s%s", i ? " " : "", a.tick[i].text,
                              a.tick[i].under);
    return text;
}

TEST(axis_ticks_are_round) {
    assert_string_equal(ticks(AXIS_NUMBER, 104, 622, 180, false), "100 200 300 400 500 600");
    assert_string_equal(ticks(AXIS_NUMBER, .0123, .0188, 150, false), "0.014 0.016 0.018");
    assert_string_equal(ticks(AXIS_NUMBER, -3e6, 9e6, 150, false), "0 5M");
    assert_string_equal(ticks(AXIS_WHOLE, 1, 12, 480, true), "1 2 3 4 5 6 7 8 9 10 11 12");
    assert_string_equal(ticks(AXIS_WHOLE, 1, 3, 600, true), "1 2 3");
    assert_string_equal(ticks(AXIS_LOG, .001, 100, 200, false), "0.001 0.01 0.1 1 10 100");
    assert_string_equal(ticks(AXIS_LOG, 1, 1e6, 600, true), "1 10 100 1000 10000 100k 1M");
}

TEST(axis_calendar_ticks_are_dates) {
    assert_string_equal(ticks(AXIS_TIME, day(1956, 3, 1), day(1960, 12, 1), 480, true),
                        "Jul(1956) Jan(1957) Jul Jan(1958) Jul Jan(1959) Jul Jan(1960) Jul");
    assert_string_equal(ticks(AXIS_TIME, day(2011, 11, 20), day(2012, 3, 2), 300, true), "Dec(2011) Jan(2012) Feb Mar");
    assert_string_equal(ticks(AXIS_TIME, day(2012, 8, 17), day(2012, 8, 18) + 43200, 480, true),
                        "00:00(17 Aug 2012) 06:00 12:00 18:00 00:00(18 Aug 2012) 06:00 12:00");
}

/* Whatever the range, an axis has finite, growing ticks inside its span. */
TEST(axis_is_sane_for_any_range) {
    static const f64 end[] = {-INFINITY, -1e300, -1e9, -1,  -1e-9, 0,     1e-300,   1e-9,
                              .3,        1,      7,    1e6, 1e13,  1e300, INFINITY, (f64)NAN};
    static const enum axis_kind kind[] = {AXIS_NUMBER, AXIS_WHOLE, AXIS_LOG, AXIS_TIME};
    for (size_t k = 0; k < COUNT(kind); k++)
        for (size_t i = 0; i < COUNT(end) * COUNT(end); i++) {
            f64 lo = end[i / COUNT(end)], hi = end[i % COUNT(end)];
            if (kind[k] == AXIS_TIME && (fabs(lo) > 1e11 || fabs(hi) > 1e11)) continue;
            struct axis a;
            axis_make(&a, kind[k], lo, hi, i % 2 ? 480 : 150, i % 2);
            assert_true(isfinite(a.lo) && isfinite(a.hi) && a.lo < a.hi);
            assert_in_range(a.n, 0, TICKS_MAX);
            for (i32 t = 0; t < a.n; t++) {
                f64 p = axis_place(&a, a.tick[t].at);
                if (!(p > -.01 && p < 1.01)) fail_msg("kind %d [%g,%g]: tick %g at %g", kind[k], lo, hi, a.tick[t].at, p);
                if (t) assert_true(a.tick[t].at > a.tick[t - 1].at);
            }
        }
}

static i32 count(const char *text, const char *what) {
    i32 n = 0;
    for (const char *s = text; (s = strstr(s, what)); s++) n++;
    return n;
}

TEST(chart_draws_layers_and_leaves_gaps) {
    f64 y[] = {1, 2, (f64)NAN, 4, 3}, hi[] = {2, 3, 4, 5, 4};
    struct chart_layer l[] = {{.mark = MARK_BAND, .name = "a <band>", .n = 5, .y = y, .y2 = hi},
                        {.name = "line", .n = 5, .y = y, .hover = true},
                        {.mark = MARK_POINTS, .n = 5, .y = hi},
                        {.mark = MARK_RULE, .x0 = 2, .name = "now"}};
    struct str b = {0};
    svg_chart(&b, &(struct chart){.title = "t & u", .layer = l, .n = 4}, true);
    assert_non_null(strstr(b.s, "a &lt;band&gt;"));
    assert_non_null(strstr(b.s, "t &amp; u"));
    assert_non_null(strstr(b.s, "<style>"));
    assert_int_equal(count(b.s, "Z\"/>"), 2);           /* the band in two pieces */
    assert_int_equal(count(b.s, "<circle"), 4 + 5);     /* hover dots, points */
    assert_int_equal(count(b.s, "nan"), 0);
    str_free(&b);
}

/* The first day of two begins at the left edge, where half of its label has no room. */
TEST(chart_keeps_labels_of_times_inside) {
    f64 x[50], y[50], at = 0;
    for (i32 i = 0; i < 50; i++) x[i] = day(2017, 11, 12) + 3600 * i, y[i] = i % 7;
    struct chart_layer l = {.name = "line", .n = 50, .x = x, .y = y};
    struct str b = {0};
    svg_chart(&b, &(struct chart){.layer = &l, .n = 1, .xkind = AXIS_TIME, .xstep = 3600, .width = 560, .height = 250}, false);
    const char *label = strstr(b.s, ">12 Nov 2017<"), *from = label;
    assert_non_null(label);
    while (strncmp(from, "<text", 5) != 0) from--;
    assert_int_equal(sscanf(strstr(from, " x=\""), " x=\"%lf", &at), 1);
    assert_true(at >= .5 * text_width("12 Nov 2017", 11));
    assert_true(at < 60); /* and it stays near its tick */
    str_free(&b);
}

TEST(chart_thins_long_lines_but_keeps_peaks) {
    static f64 y[200000];
    for (i32 i = 0; i < 200000; i++) y[i] = sin(i * .01);
    y[77777] = 50;
    struct chart_layer l = {.name = "long", .n = 200000, .y = y, .hover = true};
    struct str b = {0};
    svg_chart(&b, &(struct chart){.layer = &l, .n = 1}, false);
    assert_true(b.len < 60000);
    struct axis a;
    axis_make(&a, AXIS_NUMBER, -1, 50, 200, false);
    f64 top = 0, x, yy = 1e9, least = 1e9; /* the peak reaches far above everything else */
    for (const char *s = strstr(b.s, " d=\"M0") ? b.s : b.s; (s = strpbrk(s, "LM")); s++)
        if (sscanf(s + 1, "%lf %lf", &x, &yy) == 2) {
            least = yy < least ? yy : least;
            top++;
        }
    assert_true(top > 500);
    assert_true(least < 60);
    str_free(&b);
}

TEST(lanes_merge_what_touches_and_state_busy_share) {
    static struct span s[20000];
    for (i32 i = 0; i < 20000; i++)
        s[i] = (struct span){i % 2 ? "w1" : "w0", i % 2 ? "wait" : "fwd x", i * 1e-6, (i + 2) * 1e-6, 0};
    struct str b = {0};
    svg_timeline(&b, s, 20000, 1000, false);
    assert_true(b.len < 6000);
    assert_non_null(strstr(b.s, ">100%<"));
    assert_non_null(strstr(b.s, ">0%<"));
    str_free(&b);
}

T_MAIN(cmocka_unit_test(axis_ticks_are_round), cmocka_unit_test(axis_calendar_ticks_are_dates),
       cmocka_unit_test(axis_is_sane_for_any_range), cmocka_unit_test(chart_draws_layers_and_leaves_gaps),
       cmocka_unit_test(chart_keeps_labels_of_times_inside),
       cmocka_unit_test(chart_thins_long_lines_but_keeps_peaks), cmocka_unit_test(lanes_merge_what_touches_and_state_busy_share))
