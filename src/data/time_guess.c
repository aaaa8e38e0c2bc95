/* time_guess.c - infers the kind of time of a column's texts, how a sort command can order them, and the advice if they are not
 * times. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/time.h"

static const enum time_kind numbers[] = {TIME_YEAR, TIME_COMPACT, TIME_EPOCH};
enum { EPOCH_LEAST = 100000000 }; /* March 1973: smaller numbers count something else */

/* True if all texts are of this kind; *ascending: they never decrease. */
static bool all_are(enum time_kind kind, const char *const *s, const i32 *len, i32 n, bool *ascending) {
    struct time_parser p = {.kind = kind};
    i64 t = 0, before = INT64_MIN;
    *ascending = true;
    for (i32 i = 0; i < n; i++) {
        if (!time_parse(&p, s[i], (size_t)len[i], &t)) return false;
        if (t < before) *ascending = false;
        before = t;
    }
    return n > 0;
}

/* True if a number of seconds is so large that it counts nothing else. */
static bool far_from_1970(const char *const *s, const i32 *len, i32 n) {
    const struct time_parser p = {.kind = TIME_EPOCH};
    i64 t, most = 0;
    for (i32 i = 0; i < n; i++)
        if (time_parse(&p, s[i], (size_t)len[i], &t)) most = lmax(most, t < 0 ? -t : t);
    return most >= EPOCH_LEAST;
}

enum time_kind time_guess(const char *const *s, const i32 *len, i32 n, bool named, bool *ambiguous) {
    static const enum time_kind words[] = {TIME_YMD, TIME_PERIOD, TIME_WORDS};
    bool up, up_month_first;
    *ambiguous = false;
    for (size_t k = 0; k < COUNT(words); k++)
        if (all_are(words[k], s, len, n, &up)) return words[k];
    bool day_first = all_are(TIME_DMY, s, len, n, &up), month_first = all_are(TIME_MDY, s, len, n, &up_month_first);
    if (day_first && month_first && !memchr(s[0], '.', 3)) {
        if (up != up_month_first) return up ? TIME_DMY : TIME_MDY;
        *ambiguous = true;
    }
    if (day_first) return TIME_DMY;
    if (month_first) return TIME_MDY;
    if (all_are(TIME_CLOCK, s, len, n, &up)) return TIME_CLOCK;
    bool text = n > 0; /* 20110102T0500, not a bare number */
    for (i32 i = 0; i < n; i++) text = text && len[i] > 9 && (s[i][8] == 'T' || s[i][8] == ' ');
    if (text && all_are(TIME_COMPACT, s, len, n, &up)) return TIME_COMPACT;
    for (size_t k = 0; named && k < COUNT(numbers); k++)
        if (all_are(numbers[k], s, len, n, &up) && (numbers[k] != TIME_EPOCH || far_from_1970(s, len, n))) return numbers[k];
    return TIME_NONE;
}

enum time_kind time_guess_numbers(const f64 *v, i64 n) {
    for (size_t k = 0; k < COUNT(numbers); k++) {
        i64 t, fits = 0;
        f64 least = INFINITY, most = 0; /* by size */
        for (i64 i = 0; i < n; i++) {
            if (isnan(v[i])) continue;
            if (!time_of_number(numbers[k], v[i], &t)) {
                fits = 0;
                break;
            }
            fits++;
            least = fmin(least, fabs(v[i]));
            most = fmax(most, fabs(v[i]));
        }
        const bool alike = numbers[k] == TIME_COMPACT ? most < 20 * least : numbers[k] == TIME_YEAR || most >= EPOCH_LEAST;
        if (fits > 0 && alike) return numbers[k];
    }
    return TIME_NONE;
}

/* Ambiguous layouts, for advice in messages. */
static const char *const layouts[] = {"%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%y-%m-%d", "%y/%m/%d", "%d-%m-%y", "%b-%y",
                                      "%b %y",    "%d-%b-%y", "%d %b %y", "%b %d %y", "%m/%Y",    "%m.%Y",    "%m-%Y",
                                      "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y-%m-%d",
                                      "%Y%m%d"};
static const char *const clocks[] = {"", " %H:%M", " %H:%M:%S", "T%H:%M:%S", " %I:%M %p", " %H", "%H", "%H%M"};

static bool reads_all(const char *format, const char *const *s, const i32 *len, i32 n) {
    const struct time_parser p = {.kind = TIME_CUSTOM, .format = format};
    i64 t;
    for (i32 i = 0; i < n; i++)
        if (!time_parse(&p, s[i], (size_t)len[i], &t)) return false;
    return n > 0;
}

i32 time_advice(const char *const *s, const i32 *len, i32 n, char fix[TIME_ADVICE]) {
    char format[64];
    i32 found = 0, fill = 0;
    fix[0] = 0;
    for (size_t c = 0; c < COUNT(clocks) && found == 0; c++)
        for (size_t k = 0; k < COUNT(layouts) && found < 2; k++) {
            snprintf(format, sizeof format, "%s%s", layouts[k], clocks[c]);
            if (!reads_all(format, s, len, n)) continue;
            fill += snprintf(fix + fill, (size_t)(TIME_ADVICE - fill), "%s--time-format '%s'", found++ ? "   or   " : "", format);
        }
    return found;
}

/* True for digits and marks only, or with a UTC zone: neither AM/PM nor another zone. */
static bool plain_numbers(const char *s, i32 n) {
    bool clock = false;
    for (i32 i = 0; i < n; i++) {
        if ((u8)(s[i] - '0') < 10 || strchr(" /.,", s[i])) continue;
        clock |= s[i] == ':';
        if (clock ? s[i] != ':' && s[i] != 'Z' : s[i] != '-' && s[i] != 'T') return false;
    }
    return true;
}

enum time_order time_order(enum time_kind kind, const char *const *s, const i32 *len, i32 n) {
    bool plain = n > 0, equal = true;
    for (i32 i = 0; i < n; i++) {
        plain = plain && plain_numbers(s[i], len[i]);
        equal = equal && len[i] == len[0];
    }
    switch (kind) {
    case TIME_PERIOD: return equal && n > 0 ? ORDER_TEXT : ORDER_NONE;
    case TIME_COMPACT: return equal && n > 0 ? ORDER_TEXT : ORDER_NONE;
    case TIME_YEAR:
    case TIME_EPOCH: return ORDER_NUMBER;
    case TIME_YMD: return !plain ? ORDER_NONE : equal ? ORDER_TEXT : ORDER_YMD;
    case TIME_DMY: return plain ? ORDER_DMY : ORDER_NONE;
    case TIME_MDY: return plain ? ORDER_MDY : ORDER_NONE;
    case TIME_CLOCK: return plain ? ORDER_CLOCK : ORDER_NONE;
    default: return ORDER_NONE;
    }
}
