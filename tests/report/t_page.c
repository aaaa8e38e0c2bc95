/* t_page.c - renders the report in a headless browser and inspects the result. Skipped without Chromium.
 *
 * With STRETTO_PAGE_DIR set, the page, the plot and screenshots (light, dark, phone) are kept in that folder for inspection. */
#define _GNU_SOURCE
#include "t.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "sample_report.h"

static struct sample sample;
static struct sample_hourly hourly;
static struct report_line lines[5];
static char dir[256], browser[32];

static bool found(const char *program) {
    char command[128];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", program);
    return system(command) == 0;
}

/* Runs the browser on dir/file with `flags`, standard output to dir/out. */
static void browse(const char *flags, const char *file) {
    char command[2048];
    snprintf(
        command, sizeof command,
        "timeout 60 %s --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --hide-scrollbars --user-data-dir=%s/profile %s file://%s/%s >%s/out 2>%s/err",
        browser, t_dir(), flags, dir, file, dir, dir);
    if (system(command) != 0) fail_msg("the browser failed: %s", command);
}

static i32 count(const char *text, const char *what) {
    i32 n = 0;
    for (const char *s = text; (s = strstr(s, what)); s++) n++;
    return n;
}

static int set_up(void **state) {
    (void)state;
    const char *keep = getenv("STRETTO_PAGE_DIR");
    snprintf(dir, sizeof dir, "%s", keep && *keep ? keep : t_dir());
    static const char *const name[] = {"chromium", "chromium-browser", "google-chrome"};
    for (size_t i = 0; i < COUNT(name) && !browser[0]; i++)
        if (found(name[i])) snprintf(browser, sizeof browser, "%s", name[i]);
    return 0;
}

static void need_browser(void) {
    if (browser[0]) return;
    print_message("skipped: no Chromium on this machine (Debian and Ubuntu: package chromium)\n");
    skip();
}

static void screenshot(const char *file, const char *png, i32 width, i32 height, const char *more) {
    char flags[512];
    struct stat st;
    snprintf(flags, sizeof flags, "--screenshot=%s/%s --window-size=%d,%d %s", dir, png, width, height, more);
    browse(flags, file);
    snprintf(flags, sizeof flags, "%s/%s", dir, png);
    assert_int_equal(stat(flags, &st), 0);
    assert_true(st.st_size > 5000);
}

static void write_measured(const struct report *r) {
    char path[512], *script;
    i64 size;
    struct str page = {0}, with = {0};
    T_OK(report_html(r, &page));
    T_OK(file_load(MEASURE, 1 << 20, &script, &size));
    const char *end = strstr(page.s, "</body>");
    assert_non_null(end);
    str_addn(&with, page.s, (size_t)(end - page.s));
    str_addf(&with, "<script>%.*s</script></body></html>", (int)size, script);
    mem_free(script);
    snprintf(path, sizeof path, "%s/measured.html", dir);
    T_OK(file_write_all(path, with.s, (i64)with.len));
    str_free(&page);
    str_free(&with);
}

static const char dark[] = "--blink-settings=preferredColorScheme=0";

/* A frame of that width, since the window of a headless browser has a least one. The frame's findings are copied out of it. */
static const char frame[] =
    "<body style='margin:0'><iframe src='measured.html' style='width:%dpx;height:1000px;border:0' "
    "onload=\"document.body.innerHTML=this.contentDocument.documentElement.outerHTML\"></iframe></body>";

static char *dom_at_width(i32 width, const char *more) {
    char path[512], *dom = NULL;
    struct str page = {0};
    i64 size;
    snprintf(path, sizeof path, "%s/frame.html", dir);
    str_addf(&page, frame, width);
    T_OK(file_write_text(path, &page));
    snprintf(path, sizeof path, "--dump-dom --allow-file-access-from-files %s", more);
    browse(path, "frame.html");
    snprintf(path, sizeof path, "%s/out", dir);
    T_OK(file_load(path, 1 << 26, &dom, &size));
    return dom;
}

static void expect_no_clash(const char *dom, i32 width) {
    const char *measured = strstr(dom, "<p id=\"measured\">");
    assert_non_null(measured);
    if (strncmp(measured, "<p id=\"measured\">[]", 19) != 0) fail_msg("%d wide: %.2000s", width, measured);
}

TEST(page_in_a_browser_has_its_parts_and_no_clash) {
    need_browser();
    write_measured(sample_make(&sample, lines));
    static const i32 width[] = {1200, 1200, 760, 360}; /* the first in dark colors */
    for (size_t i = 0; i < COUNT(width); i++) {
        char *dom = dom_at_width(width[i], i ? "" : dark);
        expect_no_clash(dom, width[i]);
        assert_int_equal(count(dom, "<section id="), 18);
        assert_int_equal(count(dom, "<svg"), 19);
        assert_int_equal(count(dom, "class=\"opt"), (i32)COUNT(sample_option) + 1); /* and the box around them */
        assert_null(strstr(dom, "NaN"));
        assert_null(strstr(dom, ">nan"));
        mem_free(dom);
    }
}

TEST(page_of_a_hostile_long_run_has_no_clash) {
    need_browser();
    write_measured(sample_hourly_make(&hourly));
    char *dom = dom_at_width(360, "");
    expect_no_clash(dom, 360);
    assert_int_equal(count(dom, "<svg"), 4);
    assert_null(strstr(dom, "<svg onload"));
    assert_non_null(strstr(dom, "worse than the best naive forecast, snaive (168)"));
    mem_free(dom);
}

TEST(page_and_plot_can_be_drawn) {
    need_browser();
    char path[512];
    snprintf(path, sizeof path, "%s/report.html", dir);
    T_OK(report_write(sample_make(&sample, lines), path));
    snprintf(path, sizeof path, "%s/plot.svg", dir);
    sample.forecast[0].actual = NULL;
    T_OK(report_plot(&sample.forecast[0], path));
    screenshot("report.html", "light.png", 1280, 3400, "");
    screenshot("plot.svg", "plot.png", 800, 400, "");
    if (!getenv("STRETTO_PAGE_DIR")) return;
    screenshot("report.html", "screen.png", 1366, 900, "");
    screenshot("report.html", "dark.png", 1280, 3400, "--blink-settings=preferredColorScheme=0");
    snprintf(path, sizeof path, "%s/hourly.html", dir);
    T_OK(report_write(sample_hourly_make(&hourly), path));
    screenshot("hourly.html", "hourly.png", 1280, 1900, "");
    screenshot("report.html", "phone.png", 500, 4200, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(page_in_a_browser_has_its_parts_and_no_clash),
                                       cmocka_unit_test(page_of_a_hostile_long_run_has_no_clash),
                                       cmocka_unit_test(page_and_plot_can_be_drawn)};
    return cmocka_run_group_tests(tests, set_up, NULL) ? 1 : 0;
}
