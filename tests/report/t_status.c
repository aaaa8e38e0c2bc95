/* t_status.c - status records: when they are written, what is read back, and who counts as silent. */
#include "t.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "report/status.h"

static char run[600];

static void new_run(const char *name) {
    snprintf(run, sizeof run, "%s/%s", t_dir(), name);
    T_OK(file_make_dir(run));
}

static void nap(f64 seconds) { nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds)}, NULL); }

static struct status_record seen(i32 rank) {
    struct status_record r;
    if (!status_read(run, rank, &r)) fail_msg("there is no record of rank %d", rank);
    return r;
}

static void tick(struct status *s, i64 step) {
    struct sink to = status_sink(s);
    to.on(to.self, &(struct event){.kind = EVENT_TICK, .members = 2, .step = step, .steps = 900});
}

TEST(record_follows_phases_at_once_and_steps_seldom) {
    struct status s;
    new_run("follow.run");
    status_open(&s, run, 3, 4);
    struct status_record r = seen(3);
    assert_string_equal(r.phase, "data");
    assert_int_equal(r.world, 4);
    assert_int_equal(r.pid, (i32)getpid());
    assert_int_equal(r.exit, -1);
    assert_true(clock_wall() - r.time < 5 && r.host[0]);

    tick(&s, 1); /* a new phase, but too early */
    assert_string_equal(seen(3).phase, "data");
    nap(0.12);
    tick(&s, 2);
    r = seen(3);
    assert_string_equal(r.phase, "train");
    assert_int_equal(r.step, 2);
    assert_int_equal(r.steps, 900);
    nap(0.12);
    for (i64 k = 3; k < 1000; k++) tick(&s, k);
    assert_int_equal(seen(3).step, 2); /* less than a second later, and only the step is another */

    struct events to = {.sink = {status_sink(&s)}, .n = 1};
    event_phase(&to, "guard");
    r = seen(3);
    assert_string_equal(r.phase, "guard");
    assert_int_equal(r.step, 999);
    status_end(&s, "failed", 5);
    status_end(&s, "done", 0); /* the first end counts */
    r = seen(3);
    assert_string_equal(r.phase, "failed");
    assert_int_equal(r.exit, 5);
}

TEST(rank_0_removes_ranks_of_a_larger_world) {
    struct status s[4];
    struct status_record r[STATUS_MOST];
    i32 n;
    new_run("shrink.run");
    for (i32 k = 0; k < 4; k++) status_open(&s[k], run, k, 4);
    status_read_all(run, r, &n);
    assert_int_equal(n, 4);
    assert_int_equal(rename(s[2].path, s[2].tmp), 0); /* killed between writing and renaming its first record */
    status_open(&s[0], run, 0, 2);
    status_read_all(run, r, &n);
    assert_int_equal(n, 2);
    assert_int_equal(access(s[2].tmp, F_OK), -1);
    assert_int_equal(access(s[3].path, F_OK), -1);
    assert_int_equal(r[1].rank, 1);
}

TEST(table_marks_who_is_silent) {
    const struct status_record r[] = {{.rank = 0,
                                       .world = 3,
                                       .host = "a",
                                       .pid = 11,
                                       .phase = "train",
                                       .members = 1,
                                       .step = 7,
                                       .steps = 9,
                                       .windows_per_s = 1840,
                                       .share = 0.6875,
                                       .period = 1,
                                       .time = 1000,
                                       .exit = -1},
                                      {.rank = 1,
                                       .world = 3,
                                       .host = "node-2",
                                       .pid = 12,
                                       .phase = "validate",
                                       .members = 1,
                                       .step = 6,
                                       .steps = 9,
                                       .period = 1,
                                       .time = 985,
                                       .exit = -1},
                                      {.rank = 2,
                                       .world = 3,
                                       .host = "a",
                                       .pid = 13,
                                       .phase = "train",
                                       .members = 1,
                                       .step = 7,
                                       .steps = 9,
                                       .period = 8,
                                       .time = 985,
                                       .exit = -1},
                                      {.rank = 3,
                                       .world = 3,
                                       .host = "a",
                                       .pid = 14,
                                       .phase = "failed",
                                       .members = 1,
                                       .step = 7,
                                       .steps = 9,
                                       .period = 1,
                                       .time = 900,
                                       .exit = 5}};
    struct str s = {0};
    status_table(r, COUNT(r), 1002, &s);
    assert_string_equal(str_text(&s),
                        "rank  host         pid  phase       member             step  windows/s  rows      age  state\n"
                        "   0  a             11  train          1/1              7/9      1.84k   69%    2.0 s  runs\n"
                        "   1  node-2        12  validate       1/1              6/9          0     -     17 s  silent\n"
                        "   2  a             13  train          1/1              7/9          0     -     17 s  runs\n"
                        "   3  a             14  failed         1/1              7/9          0     -    1m42s  failed "
                        "(exit 5)\n");
    s.len = 0;
    status_json(r + 1, 1, 1002, false, &s);
    assert_string_equal(str_text(&s),
                        "{\"finished\":false,\"ranks\":[{\"rank\":1,\"world\":3,\"host\":\"node-2\",\"pid\":12,\"member\":0,"
                        "\"members\":1,\"step\":6,\"steps\":9,\"phase\":\"validate\",\"windows_per_s\":0,\"share\":0,"
                        "\"period\":1,\"time\":985.000,\"exit\":-1,\"age\":17.000,\"state\":\"silent\"}]}");
    str_free(&s);
}

/* The program that the library is in may write 0,5; a record is JSON all the same. */
TEST(record_has_points_whatever_the_locale) {
    struct status s;
    new_run("comma.run");
    if (!t_comma_locale()) skip(); /* another C library has other locales */
    status_open(&s, run, 0, 1);
    const struct status_record r = seen(0);
    setlocale(LC_NUMERIC, "C");
    assert_true(clock_wall() - r.time < 5);
    status_end(&s, "done", 0);
}

TEST(nothing_is_written_without_a_folder) {
    struct status s;
    snprintf(run, sizeof run, "%s/not/there", t_dir());
    status_open(&s, run, 0, 1);
    tick(&s, 1);
    status_end(&s, "done", 0);
    struct status_record r;
    assert_false(status_read(run, 0, &r));
}

T_MAIN(cmocka_unit_test(record_follows_phases_at_once_and_steps_seldom), cmocka_unit_test(rank_0_removes_ranks_of_a_larger_world),
       cmocka_unit_test(table_marks_who_is_silent), cmocka_unit_test(record_has_points_whatever_the_locale),
       cmocka_unit_test(nothing_is_written_without_a_folder))
