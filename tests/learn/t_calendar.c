/* t_calendar.c - errors by hour, weekday and month: the sums of a bin are those of its cells, in original units and scaled. */
#include <math.h>

#include "base/clock.h"
#include "learn/forecast/calendar.h"
#include "t.h"

enum { ROWS = 24 * 40, H = 4 };

static i64 times[ROWS];
static f64 mean[1] = {100}, dev[1] = {5};

static struct series hourly(void) {
    const i64 start = 86400 * time_days(2021, 1, 4); /* a Monday */
    for (i32 i = 0; i < ROWS; i++) times[i] = start + 3600 * i;
    return (struct series){
        .nrow = ROWS, .ncol = 1, .ntarget = 1, .time = times, .mean = mean, .dev = dev, .freq = {.step = 3600, .season = 24}};
}

TEST(errors_fall_into_the_bin_of_their_record) {
    struct series s = hourly();
    struct calendar c;
    struct arena a = {0};
    const f32 y[H] = {1, 2, (f32)NAN, 4}, f[H] = {1.5f, 2, 0, 2};
    T_OK(calendar_new(&s, 0, ROWS + H, 2, &a, &c));
    calendar_add(&c, &s, 1, 0, 22, H, y, f); /* Monday 22:00 .. Tuesday 01:00 */
    const struct calendar_sums h22 = calendar_of(&c, 1, CALENDAR_HOUR, 22), h0 = calendar_of(&c, 1, CALENDAR_HOUR, 0),
                               h1 = calendar_of(&c, 1, CALENDAR_HOUR, 1), tue = calendar_of(&c, 1, CALENDAR_DAY, 1),
                               jan = calendar_of(&c, 1, CALENDAR_MONTH, 0);
    assert_true(h22.n == 1 && h22.absolute == 2.5 && h22.scaled_absolute == 0.5 && h22.square == 6.25);
    assert_true(h0.n == 0); /* no target */
    assert_true(h1.n == 1 && h1.absolute == 10 && h1.scaled_square == 4);
    assert_true(tue.n == 1 && tue.absolute == 10);
    assert_true(jan.n == 3 && jan.absolute == 12.5);
    assert_true(calendar_of(&c, 0, CALENDAR_MONTH, 0).n == 0); /* another row of the table */
    calendar_add(&c, &s, 1, 0, 24 * 28, H, y, f);              /* 2021-02-01 */
    assert_true(calendar_of(&c, 1, CALENDAR_MONTH, 1).n == 3);
    arena_free(&a);
}

TEST(parts_of_the_calendar_that_say_nothing_are_left_out) {
    struct series s = hourly();
    struct calendar c;
    struct arena a = {0};
    const f32 y[H] = {1, 1, 1, 1}, f[H] = {0};
    T_OK(calendar_new(&s, 0, ROWS, 1, &a, &c));
    assert_false(calendar_matters(&c, &s.freq, CALENDAR_HOUR)); /* no target at all */
    calendar_add(&c, &s, 0, 0, 0, H, y, f);
    assert_true(calendar_matters(&c, &s.freq, CALENDAR_HOUR));
    assert_false(calendar_matters(&c, &s.freq, CALENDAR_DAY)); /* all on Monday */
    assert_false(calendar_matters(&c, &(struct freq){.step = 86400}, CALENDAR_HOUR));
    s.time = NULL;
    T_OK(calendar_new(&s, 0, ROWS, 1, &a, &c));
    calendar_add(&c, &s, 0, 0, 0, H, y, f); /* rows without times */
    assert_false(calendar_matters(&c, &s.freq, CALENDAR_HOUR));
    arena_free(&a);
}

T_MAIN(cmocka_unit_test(errors_fall_into_the_bin_of_their_record),
       cmocka_unit_test(parts_of_the_calendar_that_say_nothing_are_left_out))
