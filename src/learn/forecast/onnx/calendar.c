/* calendar.c - fields of times as nodes: whole numbers, by the days of a 400-year cycle that begins in March (H. Hinnant). */
#include "learn/forecast/onnx/window.h"

enum { CYCLE = 146097, DAYS_BEFORE_1970 = 719468, MARCH_FIRST = 59, JANUARY_FIRST = 306 };

static val two(const struct window_graph *w, const char *op, val a, i64 b) { return onnx_2(w->g, op, a, onnx_i64(w->g, b)); }
static val sum(const struct window_graph *w, val a, val b) { return onnx_2(w->g, "Add", a, b); }
static val less(const struct window_graph *w, val a, val b) { return onnx_2(w->g, "Sub", a, b); }
static val is(const struct window_graph *w, val a, i64 b) { return onnx_cast(w->g, two(w, "Equal", a, b), ONNX_INT64); }

/* Days since 1 March, year of the cycle. */
static val day_of_year(const struct window_graph *w, val days, val *year) {
    const val doe = two(w, "Mod", two(w, "Add", days, DAYS_BEFORE_1970), CYCLE);
    const val leaps = less(w, two(w, "Div", doe, 36524), sum(w, two(w, "Div", doe, 1460), two(w, "Div", doe, 146096)));
    *year = two(w, "Div", sum(w, doe, leaps), 365);
    const val leap_days = less(w, two(w, "Div", *year, 4), two(w, "Div", *year, 100));
    return less(w, doe, sum(w, two(w, "Mul", *year, 365), leap_days));
}

struct calendar_graph wg_calendar(const struct window_graph *w, val time) {
    struct calendar_graph c;
    const i64 cycles = 10; /* so that times before 1970 are positive */
    const val t = two(w, "Add", time, cycles * CYCLE * 86400), clock = two(w, "Mod", t, 86400);
    const val days = two(w, "Add", two(w, "Div", t, 86400), -cycles * CYCLE);
    val year;
    const val doy = day_of_year(w, two(w, "Add", days, cycles * CYCLE), &year);
    const val march = two(w, "Div", two(w, "Add", two(w, "Mul", doy, 5), 2), 153); /* 0 = March */
    c.hour = two(w, "Div", clock, 3600);
    c.minute = two(w, "Div", two(w, "Mod", clock, 3600), 60);
    c.weekday = two(w, "Mod", two(w, "Add", days, 7 * CYCLE * cycles + 4), 7);
    c.month = two(w, "Mod", two(w, "Add", march, 2), 12);
    const val leap = sum(w, less(w, is(w, two(w, "Mod", year, 4), 0), is(w, two(w, "Mod", year, 100), 0)), is(w, year, 0));
    const val early = two(w, "GreaterOrEqual", march, 10); /* January, February */
    c.yearday = onnx_where(w->g, early, two(w, "Sub", doy, JANUARY_FIRST), sum(w, two(w, "Add", doy, MARCH_FIRST), leap));
    return c;
}
