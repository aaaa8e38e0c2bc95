/* calendar.c - days and seconds since 1970 from dates, and dates from seconds. */
#include "data/time.h"
#include "data/timefmt.h"

enum { DAY = 86400 };

i64 time_make(const struct civil *c) {
    return time_days(c->year, c->month, c->day) * DAY + c->hour * 3600 + c->minute * 60 + c->second;
}

bool time_clocks_change(i64 t, bool forward) {
    struct civil c;
    time_split(t, &c);
    const bool sunday = (time_days(c.year, c.month, c.day) % 7 + 11) % 7 == 0; /* 1970-01-01 was a Thursday */
    const bool north = forward ? c.month == 3 : c.month == 10 || c.month == 11;
    const bool south = forward ? c.month == 9 || c.month == 10 : c.month == 4;
    return sunday && c.hour < 4 && (north || south);
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
