/* t_report.c - the HTML report as text: well-formed, escaped, complete; sections without data are omitted. */
#include "t.h"

#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "sample_report.h"

static struct sample sample;
static struct report_line lines[5];

/* Every tag is closed in order (the page is written as XML but for its first line); counts one kind of tag. */
static i32 check_tags(const char *page, const char *count) {
    enum { DEPTH = 64, NAME = 16 };
    static char open[DEPTH][NAME];
    i32 depth = 0, counted = 0;
    for (const char *s = strchr(page, '<'); s; s = strchr(s + 1, '<')) {
        if (s[1] == '!') continue;
        bool close = s[1] == '/';
        const char *name = s + 1 + close, *end = strchr(name, '>');
        assert_non_null(end);
        i32 n = (i32)strcspn(name, " />");
        assert_in_range(n, 1, NAME - 1);
        for (const char *q = name; q < end; q++) assert_true(*q != '<');
        if (close) {
            assert_true(depth > 0);
            depth--;
            if (strncmp(open[depth], name, (size_t)n) != 0 || open[depth][n] != 0)
                fail_msg("</%.*s> closes <%s>", n, name, open[depth]);
        } else {
            counted += strncmp(name, count, (size_t)n) == 0 && count[n] == 0;
            if (end[-1] == '/') continue;
            assert_true(depth < DEPTH);
            snprintf(open[depth++], NAME, "%.*s", n, name);
        }
    }
    assert_int_equal(depth, 0);
    return counted;
}

TEST(report_has_every_section_once_and_well_formed) {
    static const char *const id[] = {"scores", "forecast", "ahead", "series", "curves", "errors", "steps", "calendar",
                                     "calibration", "columns", "parts", "quality", "data", "details", "slices", "store",
                                     "timeline",
                                     "plan", "machine", "options", "notes", "warnings", "verdict", "command"};
    struct str page = {0};
    T_OK(report_html(sample_make(&sample, lines), &page));
    for (size_t i = 0; i < COUNT(id); i++) {
        char want[32];
        snprintf(want, sizeof want, " id=\"%s\"", id[i]);
        const char *at = strstr(page.s, want);
        if (!at) fail_msg("no section %s", id[i]);
        assert_null(strstr(at + 1, want));
    }
    assert_int_equal(check_tags(page.s, "svg"), 5 + 1 + 3 + 1 + 2 + 2 + 1 + 2 + 1 + 1); /* in the order of the page */
    assert_null(strstr(page.s, "nan"));
    assert_null(strstr(page.s, "<script"));
    assert_null(strstr(page.s, "http://"  "www.w3.org/1999"));
    assert_non_null(strstr(page.s, "1 of 300"));
    assert_non_null(strstr(page.s, "round 3"));
    assert_non_null(strstr(page.s, "The model is 67 % better than the best naive forecast, snaive (12): MAE 15.8 against 47.8"));
    assert_non_null(strstr(page.s, ">snaive (12) 47.8<")); /* under the tile of MAE */
    str_free(&page);
}

TEST(report_shows_what_a_parameter_store_came_to) {
    static const char *const text[] = {"ssp:3, 2 servers, codec &lt;int8&gt;",
                                       "2 ranks that only serve",
                                       "<dt>workers</dt>\n<dd>4</dd>",
                                       "<dt>pushes</dt>\n<dd>208</dd>",
                                       "3 not finite",
                                       "2.50M in 1.25k messages; 9.75M as f32, 3.90 times as many",
                                       "12.4 % of their time",
                                       "160 pushes, staleness 1<",
                                       "1 pushes, staleness 15+<",
                                       "<dt>step 40</dt>\n<dd>local:4: workers waited 12% of the time</dd>"};
    struct str page = {0};
    T_OK(report_html(sample_make(&sample, lines), &page));
    for (size_t i = 0; i < COUNT(text); i++)
        if (!strstr(page.s, text[i])) fail_msg("the page has no \"%s\"", text[i]);
    assert_null(strstr(page.s, "staleness 2<")); /* no push, no column */
    str_free(&page);
}

/* Threads on one vector: no servers, no messages. */
TEST(report_shows_what_hogwild_came_to) {
    static const char *const text[] = {"<dt>threads</dt>\n<dd>4, on one vector of weights</dd>", "<dt>updates</dt>\n<dd>208</dd>",
                                       "<dt>refused gradients</dt>\n<dd>3 not finite</dd>", "160 updates, staleness 1<"};
    static const char *const absent[] = {"<dt>servers</dt>", "<dt>bytes between ranks</dt>", "workers waited", " pushes"};
    struct str page = {0};
    sample_make(&sample, lines);
    sample.store = (struct report_store){
        .policy = "hogwild", .shared = true, .workers = 4, .pushes = 208, .refused = 3, .nstale = 16, .stale = sample.stale};
    T_OK(report_html(&sample.report, &page));
    for (size_t i = 0; i < COUNT(text); i++)
        if (!strstr(page.s, text[i])) fail_msg("the page has no \"%s\"", text[i]);
    for (size_t i = 0; i < COUNT(absent); i++) assert_null(strstr(page.s, absent[i]));
    str_free(&page);
}

TEST(report_escapes_what_users_wrote) {
    struct str page = {0};
    T_OK(report_html(sample_make(&sample, lines), &page));
    assert_non_null(strstr(page.s, "&#39;&lt;.005 &amp; &quot;more&quot;&gt;&#39;"));
    assert_non_null(strstr(page.s, "a &amp; b &lt;sum&gt; reproduce"));
    assert_null(strstr(page.s, "<sum>"));
    str_free(&page);
}

TEST(report_of_nothing_is_still_a_page) {
    struct str page = {0};
    T_OK(report_html(&(struct report){.title = "empty", .seconds = (f64)NAN}, &page));
    assert_int_equal(check_tags(page.s, "section"), 0);
    str_free(&page);
}

/* Infinite and missing figures, one point, no history: dashes, no "nan" or "inf" in any coordinate. */
TEST(report_survives_degenerate_figures) {
    f64 bad[3] = {(f64)NAN, INFINITY, -INFINITY}, one[1] = {5}, flat[3] = {2, 2, 2};
    f64 bands[6] = {(f64)NAN, INFINITY, 1, 2, 2, 2};
    struct score_row row = {"model", ROLE_MODEL, {(f64)NAN, INFINITY}, (f64)NAN};
    struct score_table scores = {"test", 2, {"MAE", "MSE"}, 1, &row, 0, -1, 0, {.from = 0}, 0, 0, NULL};
    struct report_curve curve[2] = {{3, 3, flat, bad, bad, flat, 2}, {0, 0, NULL, NULL, NULL, NULL, -1}};
    struct report_forecast f[2] = {{.horizon = 1, .model = one},
                                   {.horizon = 3, .nhistory = 1, .history = one, .model = bad, .nlevel = 2, .level = flat,
                                    .quantile = bands}};
    const char *const label[3] = {"a", "b", "c"};
    struct report_calendar calendar = {"hours", 3, label, bad, bad};
    struct report_line line = {"model", ROLE_MODEL, bad};
    struct span span = {"t", "", 0, 0, 0};
    struct report r = {.title = "<&>",
                       .scores = &scores,
                       .ncurve = 2,
                       .curve = curve,
                       .nforecast = 2,
                       .forecast = f,
                       .horizon = 3,
                       .nline = 1,
                       .line = &line,
                       .ncalendar = 1,
                       .calendar = &calendar,
                       .calibration = {.n = 3, .level = flat, .below = bad, .nstep = 3, .step = bad, .from = .1, .to = .9},
                       .nspan = 1,
                       .span = &span,
                       .seconds = (f64)NAN};
    struct str page = {0};
    T_OK(report_html(&r, &page));
    check_tags(page.s, "svg");
    assert_null(strstr(page.s, "nan"));
    assert_null(strstr(page.s, "\"inf"));
    assert_null(strstr(page.s, "\"-inf"));
    for (const char *s = page.s; (s = strstr(s, "=\"\xe2\x80\x93")); s++) fail_msg("a dash as an attribute: %.40s", s);
    str_free(&page);
}

TEST(report_write_replaces_the_file_or_says_why_not) {
    char path[256];
    struct stat st;
    snprintf(path, sizeof path, "%s/report.html", t_dir());
    T_OK(report_write(sample_make(&sample, lines), path));
    assert_int_equal(stat(path, &st), 0);
    assert_in_range(st.st_size, 20000, 400000);
    snprintf(path, sizeof path, "%s/no/such/folder/report.html", t_dir());
    T_FAILS(report_write(sample_make(&sample, lines), path), 702);
}

TEST(report_out_of_memory_is_an_error) {
    const struct report *r = sample_make(&sample, lines);
    i64 live = mem_stats().live;
    struct str page = {0};
    i64 calls = mem_stats().calls;
    T_OK(report_html(r, &page));
    calls = mem_stats().calls - calls;
    str_free(&page);
    for (i64 n = 1; n <= calls; n += 7) {
        mem_fail_nth(n);
        report_html(r, &page);
        mem_fail_nth(0);
        str_free(&page);
        assert_int_equal(mem_stats().live, live);
    }
    mem_fail_nth(1);
    T_FAILS(report_html(r, &page), 601);
    mem_fail_nth(0);
    str_free(&page);
}

TEST(report_of_a_hostile_run_is_well_formed) {
    static struct sample_hourly hourly;
    struct str page = {0};
    T_OK(report_html(sample_hourly_make(&hourly), &page));
    assert_int_equal(check_tags(page.s, "svg"), 4);
    assert_null(strstr(page.s, "<svg onload"));
    str_free(&page);
}

T_MAIN(cmocka_unit_test(report_has_every_section_once_and_well_formed),
       cmocka_unit_test(report_shows_what_a_parameter_store_came_to), cmocka_unit_test(report_shows_what_hogwild_came_to),
       cmocka_unit_test(report_escapes_what_users_wrote),
       cmocka_unit_test(report_of_a_hostile_run_is_well_formed), cmocka_unit_test(report_of_nothing_is_still_a_page),
       cmocka_unit_test(report_survives_degenerate_figures), cmocka_unit_test(report_write_replaces_the_file_or_says_why_not),
       cmocka_unit_test(report_out_of_memory_is_an_error))
