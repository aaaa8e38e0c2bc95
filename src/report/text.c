/* text.c - see text.h. */
#include "report/text.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"

/* Copies one character that needs no escape and returns its length; damaged bytes become U+FFFD. */
static size_t copy_char(struct str *b, const char *s) {
    i32 n = str_utf8(s, 4);
    if (n > 0) {
        str_addn(b, s, (size_t)n);
        return (size_t)n;
    }
    str_add(b, "\xef\xbf\xbd");
    return 1;
}

void text_xml(struct str *b, const char *s) {
    for (s = s ? s : ""; *s;) {
        const char *as = NULL;
        switch (*s) {
        case '&': as = "&amp;"; break;
        case '<': as = "&lt;"; break;
        case '>': as = "&gt;"; break;
        case '"': as = "&quot;"; break;
        case '\'': as = "&#39;"; break;
        case '\n': as = "\n"; break;
        default: as = (unsigned char)*s < 0x20 || *s == 0x7f ? " " : NULL;
        }
        if (as) str_add(b, as);
        s += as ? 1 : copy_char(b, s);
    }
}

void text_xmlf(struct str *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    while (*fmt) {
        const size_t n = strcspn(fmt, "%");
        str_addn(b, fmt, n);
        fmt += n;
        if (strncmp(fmt, "%s", 2) == 0) text_xml(b, va_arg(ap, const char *));
        else if (strncmp(fmt, "%d", 2) == 0) str_addf(b, "%d", va_arg(ap, int));
        else if (strncmp(fmt, "%lld", 4) == 0) str_addf(b, "%lld", va_arg(ap, long long));
        else if (*fmt) str_add(b, "%");
        fmt += strncmp(fmt, "%lld", 4) == 0 ? 4 : *fmt ? 2 : 0;
    }
    va_end(ap);
}

void text_json(struct str *b, const char *s) {
    str_add(b, "\"");
    for (s = s ? s : ""; *s;) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') str_addf(b, "\\%c", c);
        else if (c == '\n') str_add(b, "\\n");
        else if (c == '\t') str_add(b, "\\t");
        else if (c < 0x20 || c == 0x7f) str_addf(b, "\\u%04x", c);
        else {
            s += copy_char(b, s);
            continue;
        }
        s++;
    }
    str_add(b, "\"");
}

struct figure text_json_number(f64 v) {
    struct figure t = {"null"};
    if (isfinite(v)) str_from_f64(t.s, v);
    return t;
}

static struct figure figure(const char *fmt, ...) PRINTF_LIKE(1, 2);
static struct figure figure(const char *fmt, ...) {
    struct figure t;
    va_list ap;
    va_start(ap, fmt);
    str_print_args(t.s, sizeof t.s, fmt, ap);
    va_end(ap);
    return t;
}

struct figure text_fixed(f64 v, i32 decimals) {
    if (isnan(v)) return figure("\xe2\x80\x93");
    if (isinf(v)) return figure(v > 0 ? "inf" : "-inf");
    f64 half = 0.5 * pow(10, -decimals);
    if (fabs(v) < half) v = 0; /* never "-0.0" */
    return figure(fabs(v) < 1e15 ? "%.*f" : "%.*e", imin(imax(decimals, 0), 15), v);
}

struct figure text_digits(f64 v, i32 digits) {
    f64 size = fabs(v);
    if (!isfinite(v) || v == 0) return text_fixed(v, 0);
    if (size >= 1e9 || size < 1e-5) return figure("%.*e", digits - 1, v);
    return text_fixed(v, imax(0, digits - 1 - (i32)floor(log10(size))));
}

struct figure text_si(f64 v) {
    static const char *const unit[] = {"", "k", "M", "G", "T"};
    i32 u = 0;
    while (isfinite(v) && fabs(v) >= 999.5 && u < 4) {
        v /= 1000;
        u++;
    }
    const bool whole = u == 0 && v == floor(v);
    return figure("%s%s", (whole ? text_fixed(v, 0) : text_digits(v, 3)).s, unit[u]);
}

struct figure text_seconds(f64 s) {
    if (!isfinite(s)) return text_fixed(s, 0);
    if (s < 9.95) return figure("%s s", text_digits(s, 2).s);
    long long n = (long long)(s + .5);
    if (n < 60) return figure("%lld s", n);
    if (n < 3600) return figure("%lldm%02llds", n / 60, n % 60);
    return figure("%lldh%02lldm", n / 3600, n / 60 % 60);
}

struct figure text_clock(f64 s) {
    if (!isfinite(s) || s < 0 || s > 1e9) return figure("?");
    long long n = (long long)(s + .5);
    if (n >= 3600) return figure("%lld:%02lld:%02lld", n / 3600, n / 60 % 60, n % 60);
    return figure("%02lld:%02lld", n / 60, n % 60);
}

struct figure text_skill(f64 share) {
    f64 p = 100 * share;
    const char *sign = isfinite(p) && p > -.05 ? "+" : "";
    return figure("%s%s%s", sign, text_fixed(p, fabs(p) < 9.95 ? 1 : 0).s, isfinite(p) ? "%" : "");
}

struct figure text_time(f64 t, f64 step) {
    if (!isfinite(t) || fabs(t) > 1e14) return text_fixed((f64)NAN, 0);
    struct civil c;
    time_split((i64)floor(t), &c);
    const bool days = step < 27 * 86400. || c.day != 1, seconds = step < 60 || c.second > 0;
    const bool clock = step < 86400 || c.hour + c.minute + c.second > 0;
    char day[16] = "", hour[16] = "", second[16] = "";
    if (days) str_print(day, sizeof day, "-%02d", c.day);
    if (clock) str_print(hour, sizeof hour, " %02d:%02d", c.hour, c.minute);
    if (seconds) str_print(second, sizeof second, ":%02d", c.second);
    return figure("%04lld-%02d%s%s%s", (long long)c.year, c.month, day, hour, second);
}
