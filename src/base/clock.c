/* clock.c - see clock.h. */
#define _GNU_SOURCE
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"

enum { DAY = 86400 };

static f64 read_clock(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (f64)t.tv_sec + 1e-9 * (f64)t.tv_nsec;
}

f64 clock_now(void) { return read_clock(CLOCK_MONOTONIC); }
f64 clock_cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (f64)t.tv_sec + 1e-9 * (f64)t.tv_nsec;
}

void clock_sleep(f64 seconds) {
    const time_t whole = (time_t)seconds;
    nanosleep(&(struct timespec){whole, (long)(1e9 * (seconds - (f64)whole))}, NULL);
}

f64 clock_deadline(void) {
    const char *text = getenv("STRETTO_DEADLINE");
    f64 seconds = 0;
    return text && str_to_f64(text, strlen(text), '.', &seconds) && seconds > 0 ? seconds : CLOCK_DEADLINE;
}

f64 clock_wall(void) { return read_clock(CLOCK_REALTIME); }

void clock_date(char out[32]) {
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm);
}

i64 time_make(const struct civil *c) {
    return time_days(c->year, c->month, c->day) * DAY + c->hour * 3600 + c->minute * 60 + c->second;
}

void time_split(i64 t, struct civil *c) {
    i64 days = (t >= 0 ? t : t - (DAY - 1)) / DAY, rest = t - days * DAY;
    *c = (struct civil){.hour = (i32)(rest / 3600), .minute = (i32)(rest / 60 % 60), .second = (i32)(rest % 60)};
    days += 719468;
    i64 era = (days >= 0 ? days : days - 146096) / 146097, in_era = days - era * 146097;
    i64 y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    i64 in_year = in_era - (365 * y + y / 4 - y / 100), march = (5 * in_year + 2) / 153;
    c->day = (i32)(in_year - (153 * march + 2) / 5 + 1);
    c->month = (i32)(march < 10 ? march + 3 : march - 9);
    c->year = y + era * 400 + (c->month <= 2);
}
