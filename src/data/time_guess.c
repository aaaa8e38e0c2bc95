/* time_guess.c - infers the kind of time of a column's texts, how a sort command can order them, and the advice if they are not
 * times. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "data/time.h"

static const enum time_kind numbers[] = {TIME_YEAR, TIME_COMPACT, TIME_TICKS, TIME_FILETIME, TIME_EPOCH};
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

/* True if every text is one step after the one before. */
static bool has_one_step(enum time_kind kind, const char *const *s, const i32 *len, i32 n) {
    const struct time_parser p = {.kind = kind};
    struct freq f;
    bool one = true;
    i64 *t;
    if (mem_new((void **)&t, n, sizeof *t) < 0) return false;
    for (i32 i = 0; i < n; i++) one = time_parse(&p, s[i], (size_t)len[i], &t[i]) && one;
    freq_infer(t, n, &f);
    for (i32 i = 1; i < n && one; i++) one = time_steps(t[i - 1], t[i], &f) == 1;
    mem_free(t);
    return one;
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
        const bool even = has_one_step(TIME_DMY, s, len, n), even_month_first = has_one_step(TIME_MDY, s, len, n);
        if (even != even_month_first) return even ? TIME_DMY : TIME_MDY;
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
        const bool alike = numbers[k] == TIME_COMPACT ? most < 20 * least : numbers[k] != TIME_EPOCH || most >= EPOCH_LEAST;
        if (fits > 0 && alike) return numbers[k];
    }
    return TIME_NONE;
}

/* Layouts for advice in messages: a date, then a clock time. */
static const char *const layouts[] = {
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%y-%m-%d",  "%y/%m/%d", "%d-%m-%y", "%b-%y",    "%b %y",    "%d-%b-%y",
    "%d %b %y", "%b %d %y", "%m/%Y",    "%m.%Y",     "%m-%Y",    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y",
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d",    "%Y-%m",    "%Y-Q%q",   "%Y/Q%q",   "%YT%q",    "Q%q %Y",   "Q%q-%Y",
    "Q%q/%Y",   "%G-%V",    "%G/%V",    "%G%V",      "%V/%G",    "%V-%G",    "W%V/%G",   "W%V-%G",   "W%V %G",   "%V %G",
    "%Y-%j",    "%Y%j",     "%y%m%d",   "%d %B %Y",  "%B %d, %Y", "%B %Y",   "%d-%b-%Y", "%d/%b/%Y",
    "%d%b%y",   "%d%b%Y",   "Q%q%Y",    "%a, %d %b %Y", "%a %d %b %Y", "%a %b %d %Y", "%a, %b %d, %Y",
    "%a, %d de %B de %Y",   "%a %d de %B de %Y",     "%b.-%y",   "%b. %y",
    "%Y_Q%q",   "Q%q_%Y",   "%qQ%Y",    "%qQ %Y",    "%Y %qQ",   "%Y-%qQ",   "%qT%Y",    "%qT %Y",    "T%q %Y",   "T%q-%Y",
    "%YK%q",    "%qQ%y",    "%qQ %y",   "%qQ-%y",    "Q%q-%y",   "Q%q %y",   "Q%q/%y",   "%y-Q%q",    "%yQ%q",    "%qT%y",
    "%Y:%q",    "%Y:%m",    "Q%q%y",    "%Y %j",    "%d. %m. %Y", "%Y. %m. %d", "%Y. %m. %d.",
       "FY%YQ%q",  "FY%Y-Q%q",  "FY%Y Q%q", "FY%yQ%q",  "FY%y-Q%q", "FY%y Q%q",
    "Q%q FY%Y", "Q%q FY%y", "Q%q-FY%Y", "Q%q-FY%y",  "%Y年%m月%d日", "%Y年%m月",
    "%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S %z %Y", "/Date(%s%z)/", "%s"};
static const char *const clocks[] = {
    "",     " %H:%M", " %H:%M:%S",  "T%H:%M:%S",   "T%H:%M",       " %I:%M %p",     " %I:%M:%S %p", " %I:%M%p", " %I:%M:%S%p",
    " %Hh%M",         " %Hh",
    " %H",  "%H",     "%H%M",       "%H%M%S",      "T%H:%M:%SZ",   "T%H:%M:%S%z",   " %H:%M:%S%z",  " %H:%M:%S %z",
    " %H:%M:%S.%f",   ":%H",        ":%H:%M:%S",   ":%H:%M:%S %z", "_%H%M%S",       "-%H%M%S",
    "-%H"};
enum { LAYOUT = 40, LAYOUTS_MOST = 4, AROUND = 60, FORMAT = LAYOUT * LAYOUTS_MOST + 2 * AROUND };
/* Plausible years of advice, so that 44256 is not read as a day of the year 4425. */
static const i64 first_year = 1600, last_year = 2100;

static bool reads(const char *format, const char *s, i32 len, i64 *t) {
    const struct time_parser p = {.kind = TIME_CUSTOM, .format = format};
    const i32 digits = !strncmp(format, "%y%m%d", 6) ? 6 : !strncmp(format, "%Y%m%d", 6) ? 8 : 0;
    i32 k = 0, spaces = 0;
    for (const char *c = format; *c; c++) spaces += *c == ' ';
    for (i32 i = 0; i < len; i++) spaces -= s[i] == ' ';
    if (spaces > 0) return false; /* a reader is glad without them; advice is not */
    while (k < len && (u8)(s[k] - '0') < 10) k++;
    if (k < digits || !time_parse(&p, s, (size_t)len, t)) return false;
    if (strstr(format, "%s") && *t < EPOCH_LEAST) return false;
    return *t >= time_days(first_year, 1, 1) * 86400 && *t < time_days(last_year, 1, 1) * 86400;
}

/* Number of cells of `left` (NULL = all) that the layout reads. */
static i32 count_read(const char *format, const char *const *s, const i32 *len, i32 n, const bool *left) {
    i64 t;
    i32 count = 0;
    for (i32 i = 0; i < n; i++) count += (!left || left[i]) && reads(format, s[i], len[i], &t);
    return count;
}

/* True if a clock may follow: the layout has a day. */
static bool has_day(const char *layout) {
    return strstr(layout, "%d") || strstr(layout, "%j") || strstr(layout, "%u") || strstr(layout, "%s");
}

/* The first layout that reads most of the cells that are left; their number. */
static i32 best_layout(const char *const *s, const i32 *len, i32 n, const bool *left, char best[LAYOUT]) {
    char format[LAYOUT];
    i32 most = 0;
    for (size_t c = 0; c < COUNT(clocks); c++)
        for (size_t k = 0; k < COUNT(layouts); k++) {
            if (c > 0 && !has_day(layouts[k])) continue;
            if (clocks[c][0] == '%' && strstr(layouts[k], "%j")) continue; /* 1980-1981 is no hour of day 198 */
            snprintf(format, sizeof format, "%s%s", layouts[k], clocks[c]);
            const i32 count = count_read(format, s, len, n, left);
            if (count > most) memcpy(best, format, sizeof format), most = count;
        }
    return most;
}

/* Number of times that are smaller than the one before. */
static i32 count_backs(const char *format, const char *const *s, const i32 *len, i32 n) {
    i64 t = 0, before = INT64_MIN;
    i32 backs = 0;
    for (i32 i = 0; i < n; i++, before = t) backs += reads(format, s[i], len[i], &t) && t < before;
    return backs;
}

/* True if every cell is one step after the one before. */
static bool is_even(const char *format, const char *const *s, const i32 *len, i32 n) {
    struct freq f;
    bool even = n > 2;
    i64 *t;
    if (mem_new((void **)&t, n, sizeof *t) < 0) return false;
    for (i32 i = 0; i < n && even; i++) even = reads(format, s[i], len[i], &t[i]) && (i == 0 || t[i] > t[i - 1]);
    if (even) freq_infer(t, n, &f);
    for (i32 i = 1; i < n && even; i++) even = time_steps(t[i - 1], t[i], &f) == 1;
    mem_free(t);
    return even;
}

/* Exchanges day and month in layouts where both are numbers, "%d/%m" and "%m/%d", or year and day, and six digits; false = there
 * are none. */
static bool exchange_days(const char *format, char out[FORMAT]) {
    bool any = false;
    if (!strcmp(format, "%G%V")) return snprintf(out, FORMAT, "%%y%%m%%d") > 0;
    if (!strncmp(format, "%y-%m-%d", 8) || !strncmp(format, "%y/%m/%d", 8)) /* 01-02-20: the year may be last, too */
        return snprintf(out, FORMAT, "%%d%c%%m%c%%y%s", format[2], format[2], format + 8) > 0;
    snprintf(out, FORMAT, "%s", format);
    for (char *p = out; strlen(p) > 4; p++) {
        if (p[0] != '%' || p[3] != '%' || !strchr("./-", p[2])) continue;
        if ((p[1] != 'd' || p[4] != 'm') && (p[1] != 'm' || p[4] != 'd')) continue;
        if (p[2] == '.' || (p > out && strchr("-/", p[-1]))) continue; /* 02.01.2011, 2011-01-02 */
        const char was = p[1];
        p[1] = p[4];
        p[4] = was;
        any = true;
    }
    return any;
}

/* Several layouts A|B that together read all cells. */
static bool mixed_layouts(const char *const *s, const i32 *len, i32 n, char format[FORMAT]) {
    bool *left;
    i32 rest = n, fill = 0;
    if (mem_new((void **)&left, n, sizeof *left) < 0) return false;
    for (i32 i = 0; i < n; i++) left[i] = true;
    for (i32 k = 0; k < LAYOUTS_MOST && rest > 0; k++) {
        char one[LAYOUT];
        const i32 count = best_layout(s, len, n, left, one);
        if (count == 0) break;
        fill += snprintf(format + fill, (size_t)(FORMAT - fill), "%s%s", k ? "|" : "", one);
        i64 t;
        for (i32 i = 0; i < n; i++) left[i] = left[i] && !reads(one, s[i], len[i], &t);
        rest -= count;
    }
    mem_free(left);
    return rest == 0;
}

/* True if the letters of text beside a time are words that say nothing of it: no month, no letter for a quarter. */
static bool plain_words(const char *s, i32 n) {
    static const char known[] = " z cet cest utc gmt bst ist wet west eet eest est edt cst cdt mst mdt pst pdt jst uhr clock "
                                "h hrs hours week wk w kw woche semaine semana day tag year jahr date time datum local "
                                "of on at the from to starting ending beginning commencing fy ay financial fiscal season ";
    static const char zones[] = " africa america antarctica arctic asia atlantic australia europe indian pacific etc ";
    for (i32 i = 0, to; i < n; i = to + 1) {
        char word[24];
        for (to = i; to < n && (((s[to] | 32) >= 'a' && (s[to] | 32) <= 'z') || (u8)s[to] >= 0x80);) to++;
        if (to == i) continue;
        snprintf(word, sizeof word, " %.*s ", imin(to - i, 20), s + i);
        for (char *p = word; *p; p++) *p = (char)tolower((u8)*p);
        if (to < n && s[to] == '/' && strstr(zones, word)) /* Europe/Berlin */
            while (to < n && s[to] != ' ') to++;
        else if (!strstr(known, word)) return false;
    }
    return true;
}

/* True if the text has a word for a week. */
static bool week_word(const char *s, i32 n) {
    static const char *const weeks[] = {"week", "wk", "w", "kw", "woche", "semaine", "semana"};
    for (i32 i = 0; i < n; i++)
        for (size_t k = 0; k < COUNT(weeks); k++) {
            const i32 size = (i32)strlen(weeks[k]);
            if ((i > 0 && isalpha((u8)s[i - 1])) || i + size > n || (i + size < n && isalpha((u8)s[i + size]))) continue;
            if (!strncasecmp(s + i, weeks[k], (size_t)size)) return true;
        }
    return false;
}

/* Makes weeks of the months of a layout without days, %m/%Y, if it then reads all cells: 01/2021. */
static void weeks_of(const char *const *s, const i32 *len, i32 n, char one[LAYOUT]) {
    char weeks[LAYOUT];
    memcpy(weeks, one, sizeof weeks);
    for (char *p = weeks; *p; p++)
        if (*p == '%' && (p[1] == 'm' || p[1] == 'Y')) p[1] = p[1] == 'm' ? 'V' : 'G';
    if (strstr(one, "%m") && !has_day(one) && count_read(weeks, s, len, n, NULL) == n) memcpy(one, weeks, sizeof weeks);
}

/* Length of the text without digits with which all cells begin (step 1) or end (step -1): "Week ", " CET"; 0 = there is none that
 * a layout may have. */
static i32 common_text(const char *const *s, const i32 *len, i32 n, i32 step) {
    for (i32 k = 0; k < AROUND / 2; k++)
        for (i32 i = 0; i < n; i++) {
            const i32 at = step > 0 ? k : len[i] - 1 - k, first = step > 0 ? k : len[0] - 1 - k;
            const char c = at >= 0 && at < len[i] ? s[i][at] : '0';
            if ((u8)(c - '0') < 10 || strchr("%|'", c) || first < 0 || first >= len[0] || c != s[0][first]) return k;
        }
    return 0;
}

/* Layouts that read the cells between the texts with which all of them begin and end. */
static bool around_layouts(const char *const *s, const i32 *len, i32 n, char format[FORMAT]) {
    static const char *const years[] = {"%Y", "%y"};
    const i32 before = common_text(s, len, n, 1), after = common_text(s, len, n, -1);
    const char **inner;
    i32 *size;
    bool read = false;
    char one[LAYOUT] = "";
    if (before + after == 0 || before + after >= len[0]) return false;
    if (!plain_words(s[0], before) || !plain_words(s[0] + len[0] - after, after)) return false;
    if (mem_new((void **)&inner, n, sizeof *inner) < 0) return false;
    if (mem_new((void **)&size, n, sizeof *size) >= 0) {
        for (i32 i = 0; i < n; i++) inner[i] = s[i] + before, size[i] = imax(0, len[i] - before - after);
        read = best_layout(inner, size, n, NULL, one) == n;
        for (size_t k = 0; k < COUNT(years) && !read; k++) { /* FY2020: a bare number is no layout of its own */
            snprintf(one, sizeof one, "%s", years[k]);
            read = count_read(one, inner, size, n, NULL) == n;
        }
        if (read && (week_word(s[0], before) || week_word(s[0] + len[0] - after, after))) weeks_of(inner, size, n, one);
        if (read) snprintf(format, FORMAT, "%.*s%s%.*s", before, s[0], one, after, s[0] + len[0] - after);
        mem_free(size);
    }
    mem_free(inner);
    return read;
}

static bool has_digit(const char *s, i32 n) {
    for (i32 i = 0; i < n; i++)
        if ((u8)(s[i] - '0') < 10) return true;
    return false;
}

i32 time_advice(const char *const *s, const i32 *len, i32 n, char fix[TIME_ADVICE]) {
    char format[FORMAT] = "", other[FORMAT];
    fix[0] = 0;
    if (n == 0 || !has_digit(s[0], len[0]) || (!mixed_layouts(s, len, n, format) && !around_layouts(s, len, n, format))) return 0;
    const bool either = exchange_days(format, other) && count_read(other, s, len, n, NULL) == n;
    const i32 backs = either ? count_backs(format, s, len, n) : 0, turned = either ? count_backs(other, s, len, n) : 0;
    const bool both = either && (backs > 0) == (turned > 0);
    const bool swap = both && is_even(other, s, len, n) && !is_even(format, s, len, n);
    if (both)
        snprintf(fix, TIME_ADVICE, "--time-format '%s'   or   --time-format '%s'", swap ? other : format, swap ? format : other);
    else snprintf(fix, TIME_ADVICE, "--time-format '%s'", turned < backs ? other : format);
    return 1 + both;
}

bool time_short(const char *s, i32 len) {
    static const char format[] = "%m/%d/%y|%d/%m/%y|%d.%m.%y|%y-%m-%d|%d-%m-%y|%d-%b-%y|%b-%y|%b %y|%d %b %y";
    const struct time_parser p = {.kind = TIME_CUSTOM, .format = format};
    i64 t;
    return time_parse(&p, s, (size_t)len, &t);
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
    case TIME_PERIOD: return equal && n > 0 && (u8)(s[0][0] - '0') < 10 ? ORDER_TEXT : ORDER_NONE;
    case TIME_COMPACT: return equal && n > 0 ? ORDER_TEXT : ORDER_NONE;
    case TIME_YEAR:
    case TIME_TICKS:
    case TIME_FILETIME:
    case TIME_EPOCH: return ORDER_NUMBER;
    case TIME_YMD: return !plain ? ORDER_NONE : equal ? ORDER_TEXT : ORDER_YMD;
    case TIME_DMY: return plain ? ORDER_DMY : ORDER_NONE;
    case TIME_MDY: return plain ? ORDER_MDY : ORDER_NONE;
    case TIME_CLOCK: return plain ? ORDER_CLOCK : ORDER_NONE;
    default: return ORDER_NONE;
    }
}

i32 time_count(const struct time_parser *p, const char *const *s, const i32 *len, i32 n) {
    i32 times = 0;
    i64 t;
    for (i32 i = 0; p->kind != TIME_NONE && i < n; i++) times += time_parse(p, s[i], (size_t)len[i], &t);
    return times;
}

enum time_kind time_guess_most(const char *const *s, const i32 *len, i32 n, bool *ambiguous) {
    struct time_parser p = {.kind = time_guess(s, len, n, false, ambiguous)};
    if (p.kind != TIME_NONE) return p.kind;
    p.kind = time_guess(s, len, 1, false, ambiguous);
    if (3 * time_count(&p, s, len, n) >= 2 * n) return p.kind;
    *ambiguous = false;
    return TIME_NONE;
}
