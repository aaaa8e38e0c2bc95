/* t_sinks.c - the progress line and metrics.jsonl. */
#define _GNU_SOURCE
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "report/console.h"
#include "report/jsonl.h"

static f64 clock_now;
static f64 tell(void *clock) { return *(f64 *)clock; }

struct screen {
    char *text;
    size_t size;
    FILE *f;
    struct console c;
    struct sink sink;
};

static void screen_open(struct screen *s, struct console_options o) {
    *s = (struct screen){0};
    s->f = open_memstream(&s->text, &s->size);
    o.to = s->f;
    o.now = tell;
    o.clock = &clock_now;
    clock_now = 0;
    console_open(&s->c, &o);
    s->sink = console_sink(&s->c);
}

static void screen_close(struct screen *s) {
    console_close(&s->c);
    fclose(s->f);
    free(s->text);
}

static void send(const struct screen *s, struct event e) { s->sink.on(s->sink.self, &e); }

static struct event at_step(i64 step, f64 valid, bool best) {
    return (struct event){.kind = isnan(valid) ? EVENT_STEP : EVENT_VALID,
                          .members = 1,
                          .step = step,
                          .steps = 300,
                          .epoch = 1.2,
                          .seconds = .01 * (f64)step,
                          .left = 3,
                          .train = .312,
                          .valid = valid,
                          .lr = .003,
                          .windows_per_s = 12400,
                          .best = best};
}

static i32 count(const char *s, char c) {
    i32 n = 0;
    for (; *s; s++) n += *s == c;
    return n;
}

TEST(console_redraws_at_most_ten_times_a_second) {
    struct screen s;
    screen_open(&s, (struct console_options){.terminal = 1, .colour = COLOUR_NEVER, .width = 100});
    for (i32 i = 0; i < 1000; i++) {
        clock_now = i * .001;
        send(&s, at_step(i % 300, (f64)NAN, false));
    }
    fflush(s.f);
    assert_in_range(count(s.text, '\r'), 8, 11);
    assert_int_equal(count(s.text, '\n'), 0);
    assert_non_null(strstr(s.text, "loss 0.312"));
    assert_non_null(strstr(s.text, "12.4k windows/s"));
    screen_close(&s);
}

TEST(console_line_fits_every_width) {
    for (i32 width = 20; width < 140; width++) {
        struct screen s;
        screen_open(&s, (struct console_options){.terminal = 1, .colour = COLOUR_NEVER, .width = width});
        struct event e = at_step(123, .287, true);
        e.members = 5;
        e.member = 1;
        send(&s, e);
        fflush(s.f);
        i32 columns = 0;
        for (const char *t = s.text; *t && *t != '\033'; t++) columns += *t != '\r' && (*t & 0xc0) != 0x80;
        assert_true(columns < width);
        if (width > 100) assert_non_null(strstr(s.text, "val 0.287*"));
        screen_close(&s);
    }
}

TEST(console_prints_plain_lines_at_intervals_off_a_terminal) {
    struct screen s;
    screen_open(&s, (struct console_options){.terminal = -1, .interval = 5});
    send(&s, (struct event){.kind = EVENT_BEGIN, .members = 1, .steps = 300, .train = (f64)NAN, .valid = (f64)NAN, .left = -1});
    for (i32 i = 1; i <= 120; i++) {
        clock_now = i * .1;
        send(&s, at_step(i, i % 50 == 0 ? .287 : (f64)NAN, i == 50));
    }
    send(&s, (struct event){.kind = EVENT_END, .members = 1, .step = 120, .steps = 300, .seconds = 12, .text = "early stop"});
    fflush(s.f);
    assert_null(strchr(s.text, '\r'));
    assert_null(strchr(s.text, '\033'));
    assert_int_equal(count(s.text, '\n'), 3);
    assert_non_null(
        strstr(s.text, "step 50 of 300  epoch 1.2  train 0.3120  val 0.2870 (best)  12.4k windows/s  0.50 s  left 3.0 s\n"));
    assert_non_null(strstr(s.text, "trained 120 steps in 12 s; best val 0.2870 at step 50; early stop\n"));
    screen_close(&s);
}

TEST(console_counts_the_members_that_were_trained) {
    struct screen s;
    screen_open(&s, (struct console_options){.terminal = -1});
    for (i32 m = 0; m < 2; m++) {
        send(&s, (struct event){.kind = EVENT_BEGIN, .member = m, .members = 5, .valid = (f64)NAN});
        send(&s, (struct event){.kind = EVENT_VALID, .member = m, .members = 5, .step = 30, .train = (f64)NAN, .valid = 2 - m});
        send(&s,
             (struct event){.kind = EVENT_END, .member = m, .members = 5, .step = 30, .seconds = 3, .text = "all steps done"});
    }
    send(&s, (struct event){.kind = EVENT_END, .member = 1, .members = 2, .text = ""});
    fflush(s.f);
    assert_non_null(strstr(s.text, "trained 2 members, 60 steps in 6.0 s; best val 1.000 at step 30 of member 2\n"));
    assert_int_equal(count(s.text, '\n'), 1);
    screen_close(&s);
}

TEST(console_notes_step_in_front_of_the_line) {
    struct screen s;
    screen_open(&s, (struct console_options){.terminal = 1, .colour = COLOUR_ALWAYS, .width = 90});
    send(&s, at_step(1, (f64)NAN, false));
    send(&s, (struct event){.kind = EVENT_WARNING, .text = "warning[W031] hum: 22 zeros"});
    send(&s, (struct event){.kind = EVENT_NOTE, .text = "preset short"});
    fflush(s.f);
    assert_non_null(strstr(s.text, "\r\033[K\033[1;33mwarning[W031]\033[0m hum: 22 zeros\n\r"));
    assert_non_null(strstr(s.text, "\r\033[Kpreset short\n\r"));
    screen_close(&s);
}

static void work(const struct screen *s, f64 seconds, i64 step) {
    clock_now = seconds;
    send(s, (struct event){.kind = EVENT_WORK, .text = "scoring", .step = step, .steps = 1000, .seconds = seconds,
                           .left = step > 0 ? seconds * (f64)(1000 - step) / (f64)step : -1});
}

TEST(console_shows_long_work_and_takes_its_line_away) {
    struct screen s;
    screen_open(&s, (struct console_options){.terminal = 1, .colour = COLOUR_NEVER, .width = 60});
    work(&s, .5, 100); /* not long yet */
    work(&s, 2, 400);
    send(&s, (struct event){.kind = EVENT_NOTE, .text = "a note"});
    work(&s, 4, 800);
    work(&s, 5, 1000);
    fflush(s.f);
    assert_int_equal(count(s.text, '\n'), 1);
    assert_null(strstr(s.text, "10%"));
    assert_non_null(strstr(s.text, "\rscoring  40%|"));
    assert_non_null(strstr(s.text, "| [00:02<00:03]\033[K"));
    assert_non_null(strstr(s.text, "\r\033[Ka note\n\rscoring  80%"));
    assert_string_equal(s.text + strlen(s.text) - 4, "\r\033[K");
    screen_close(&s);
    screen_open(&s, (struct console_options){.terminal = -1, .interval = 5});
    for (i64 i = 1; i <= 12; i++) work(&s, (f64)i, i * 1000 / 12);
    fflush(s.f);
    assert_string_equal(s.text, "scoring  41%  5.0 s  left 7.0 s\nscoring  83%  10 s  left 2.0 s\n");
    screen_close(&s);
}

TEST(console_none_and_quiet_keep_warnings) {
    struct screen s;
    screen_open(&s, (struct console_options){.terminal = 1, .mode = CONSOLE_NONE, .colour = COLOUR_NEVER, .quiet = true});
    send(&s, at_step(1, .2, true));
    send(&s, (struct event){.kind = EVENT_NOTE, .text = "note"});
    send(&s, (struct event){.kind = EVENT_WARNING, .text = "odd"});
    fflush(s.f);
    assert_string_equal(s.text, "warning: odd\n");
    screen_close(&s);
}

TEST(console_colour_wish_beats_no_color_beats_force) {
    FILE *f = tmpfile();
    unsetenv("NO_COLOR");
    unsetenv("FORCE_COLOR");
    unsetenv("CLICOLOR_FORCE");
    assert_false(console_colours(f, COLOUR_AUTO));
    setenv("FORCE_COLOR", "1", 1);
    assert_true(console_colours(f, COLOUR_AUTO));
    setenv("NO_COLOR", "", 1);
    assert_true(console_colours(f, COLOUR_AUTO));
    setenv("NO_COLOR", "1", 1);
    assert_false(console_colours(f, COLOUR_AUTO));
    assert_true(console_colours(f, COLOUR_ALWAYS));
    unsetenv("NO_COLOR");
    assert_false(console_colours(f, COLOUR_NEVER));
    unsetenv("FORCE_COLOR");
    fclose(f);
}

static void expect_file(const char *path, const char *want) {
    char *text = NULL;
    i64 size = 0;
    T_OK(file_load(path, 1 << 20, &text, &size));
    assert_string_equal(text, want);
    mem_free(text);
}

/* Lines of a part of a run, from where it begins: NULL = it is not said. */
static void write_steps(const char *path, const struct event *begin, i64 from, i64 to) {
    struct jsonl j;
    T_OK(jsonl_open(&j, path));
    struct sink sink = jsonl_sink(&j);
    if (begin) sink.on(sink.self, begin);
    for (i64 i = from; i <= to; i++) {
        struct event e = {.kind = EVENT_STEP, .members = 1, .step = i, .train = .5, .valid = (f64)NAN};
        if (begin) e.member = begin->member, e.refit = begin->refit, e.rollbacks = begin->rollbacks;
        sink.on(sink.self, &e);
    }
    T_OK(jsonl_close(&j));
    T_OK(jsonl_close(&j));
}

static void same_files(const char *a, const char *b) {
    char *text = NULL;
    i64 size = 0;
    T_OK(file_load(a, 1 << 20, &text, &size));
    expect_file(b, text);
    mem_free(text);
}

static struct event begins(bool refit, i32 member, i32 rollbacks, i64 kept) {
    return (struct event){.kind = EVENT_BEGIN, .member = member, .refit = refit, .rollbacks = rollbacks, .kept = kept};
}

TEST(jsonl_broken_and_resumed_equals_unbroken) {
    char whole[256], broken[256];
    snprintf(whole, sizeof whole, "%s/whole.jsonl", t_dir());
    snprintf(broken, sizeof broken, "%s/broken.jsonl", t_dir());
    write_steps(whole, NULL, 1, 20);
    write_steps(broken, NULL, 1, 14);
    FILE *f = fopen(broken, "ab");
    assert_non_null(f);
    fputs("{\"step\":15,\"epo", f); /* killed while writing */
    fclose(f);
    const struct event at = begins(false, 0, 0, 10); /* the checkpoint was of step 10 */
    write_steps(broken, &at, 11, 20);
    same_files(whole, broken);
}

/* A run of two members, the second one rolled back, and a refit; the same, broken at any place and begun again there. */
TEST(jsonl_goes_on_at_any_place) {
    char whole[256], broken[256];
    const struct event place[] = {begins(false, 0, 0, -1), begins(false, 1, 0, -1), begins(false, 1, 1, 3),
                                  begins(true, 0, 0, -1), begins(true, 1, 0, -1)};
    snprintf(whole, sizeof whole, "%s/all.jsonl", t_dir());
    snprintf(broken, sizeof broken, "%s/some.jsonl", t_dir());
    for (size_t i = 0; i < COUNT(place); i++) write_steps(whole, &place[i], place[i].kept + 1, 6);
    for (size_t stop = 0; stop < COUNT(place); stop++)
        for (i64 kept = place[stop].kept; kept <= 6; kept++) {
            unlink(broken);
            for (size_t i = 0; i < COUNT(place); i++) write_steps(broken, &place[i], place[i].kept + 1, 6);
            for (size_t i = stop; i < COUNT(place); i++) {
                struct event at = place[i];
                at.kept = i == stop ? kept : at.kept;
                write_steps(broken, &at, at.kept + 1, 6);
            }
            same_files(whole, broken);
        }
}

/* What was measured because the time was over is no part of the run that goes on. */
TEST(jsonl_forgets_an_early_validation) {
    char whole[256], broken[256];
    snprintf(whole, sizeof whole, "%s/long.jsonl", t_dir());
    snprintf(broken, sizeof broken, "%s/late.jsonl", t_dir());
    write_steps(whole, NULL, 1, 9);
    write_steps(broken, NULL, 1, 5);
    struct jsonl j;
    T_OK(jsonl_open(&j, broken));
    struct event e = at_step(5, .25, true);
    e.early = true;
    jsonl_sink(&j).on(&j, &e);
    T_OK(jsonl_close(&j));
    const struct event at = begins(false, 0, 0, 5);
    write_steps(broken, &at, 6, 9);
    same_files(whole, broken);
}

TEST(jsonl_line_holds_every_field) {
    const char *path = t_file("m.jsonl", "");
    struct jsonl j;
    T_OK(jsonl_open(&j, path));
    struct sink sink = jsonl_sink(&j);
    struct event e = at_step(50, .25, true);
    e.grad_norm = INFINITY;
    sink.on(sink.self, &e);
    sink.on(sink.self, &(struct event){.kind = EVENT_NOTE, .text = "not here"});
    e.slices = 16, e.rounds = 2.5, e.forgets = 310, e.useful = 0.9, e.serial = 1;
    sink.on(sink.self, &e);
    T_OK(jsonl_close(&j));
    expect_file(path,
                "{\"step\":50,\"epoch\":1.2,\"seconds\":0.5,\"split\":\"valid\",\"train\":0.312,\"valid\":0.25,\"lr\":0.003,"
                "\"grad_norm\":null,\"windows_per_s\":12400,\"device_share\":0,\"best\":true,\"member\":0}\n"
                "{\"step\":50,\"epoch\":1.2,\"seconds\":0.5,\"split\":\"valid\",\"train\":0.312,\"valid\":0.25,\"lr\":0.003,"
                "\"grad_norm\":null,\"windows_per_s\":12400,\"device_share\":0,\"slices\":16,\"rounds\":2.5,\"forgets\":310,"
                "\"efficiency\":0.9,\"serial_steps\":1,\"best\":true,\"member\":0}\n");
}

TEST(jsonl_says_when_it_cannot_write) {
    struct jsonl j;
    T_FAILS(jsonl_open(&j, "/nonexistent/m.jsonl"), 702);
    if (access("/dev/full", W_OK) != 0) return;
    j = (struct jsonl){.fd = -1};
    T_OK(jsonl_open(&j, t_file("full.jsonl", "")));
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    assert_true(dup2(fileno(full), j.fd) >= 0);
    fclose(full);
    struct sink sink = jsonl_sink(&j);
    struct event e = at_step(1, .2, true);
    sink.on(sink.self, &e);
    T_FAILS(jsonl_close(&j), 703);
}

T_MAIN(cmocka_unit_test(console_redraws_at_most_ten_times_a_second), cmocka_unit_test(console_line_fits_every_width),
       cmocka_unit_test(console_prints_plain_lines_at_intervals_off_a_terminal),
       cmocka_unit_test(console_counts_the_members_that_were_trained),
       cmocka_unit_test(console_notes_step_in_front_of_the_line),
       cmocka_unit_test(console_shows_long_work_and_takes_its_line_away),
       cmocka_unit_test(console_none_and_quiet_keep_warnings),
       cmocka_unit_test(console_colour_wish_beats_no_color_beats_force),
       cmocka_unit_test(jsonl_broken_and_resumed_equals_unbroken), cmocka_unit_test(jsonl_goes_on_at_any_place),
       cmocka_unit_test(jsonl_forgets_an_early_validation), cmocka_unit_test(jsonl_line_holds_every_field),
       cmocka_unit_test(jsonl_says_when_it_cannot_write))
