/* time_limit.c - the time limit of a job, as schedulers write it. */
#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "launch/launch.h"

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

/* Numbers between colons, the last one seconds; days in front of '-'. */
static bool clock_text(const char *text, i64 *seconds) {
    i64 part[3], v, days = 0;
    i32 n = 0;
    const char *dash = strchr(text, '-');
    if (dash) {
        if (!str_to_i64(text, (size_t)(dash - text), &days) || days < 0 || days > 366) return false;
        text = dash + 1;
    }
    for (;;) {
        size_t len = strcspn(text, ":");
        if (n == 3 || len == 0 || len > 6 || !isdigit((unsigned char)text[0]) || !str_to_i64(text, len, &v)) return false;
        part[n++] = v;
        if (!text[len]) break;
        text += len + 1;
    }
    if (n < 2 || (dash && n != 3)) return false;
    for (i32 i = 1; i < n; i++)
        if (part[i] > 59) return false;
    *seconds = days * DAY + (n == 3 ? part[0] * HOUR + part[1] * MINUTE + part[2] : part[0] * MINUTE + part[1]);
    return true;
}

err launch_seconds(const char *text, i64 *seconds) {
    static const char fix[] = "--time 2:00:00   or   --time 90m";
    f64 s = 0;
    const size_t n = strlen(text);
    const bool unit = n > 0 && isalpha((unsigned char)text[n - 1]) && str_time(text, &s);
    if (unit) *seconds = (i64)s;
    if (!unit && !clock_text(text, seconds))
        return FAIL_AT(E103, "--time", fix, "\"%.40s\" is no time: hours, minutes and seconds, or a number with its unit", text);
    if (*seconds < MINUTE || *seconds > (i64)366 * DAY)
        return FAIL_AT(E103, "--time", fix, "%.40s: a time limit is from a minute to a year", text);
    return 0;
}
