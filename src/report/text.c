/* text.c - see text.h. */
#include "report/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

i32 text_utf8(const char *s) {
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0x80) return u[0] ? 1 : 0;
    i32 n = u[0] >= 0xf0 && u[0] < 0xf5 ? 4 : u[0] >= 0xe0 && u[0] < 0xf0 ? 3 : u[0] >= 0xc2 && u[0] < 0xe0 ? 2 : 0;
    for (i32 i = 1; i < n; i++)
        if ((u[i] & 0xc0) != 0x80) return 0;
    if (n == 3 && u[0] == 0xe0 && u[1] < 0xa0) return 0; /* overlong */
    if (n == 3 && u[0] == 0xed && u[1] >= 0xa0) return 0; /* surrogate */
    if (n == 4 && ((u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] >= 0x90))) return 0;
    return n;
}

/* Copies one character that needs no escape and returns its length; damaged bytes become U+FFFD. */
static size_t copy_char(struct str *b, const char *s) {
    i32 n = text_utf8(s);
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

void text_json_number(struct str *b, f64 v) {
    char t[32];
    if (!isfinite(v)) {
        str_add(b, "null");
        return;
    }
    str_addn(b, t, (size_t)str_from_f64(t, v));
}

void text_fixed(struct str *b, f64 v, i32 decimals) {
    if (!isfinite(v)) {
        str_add(b, isnan(v) ? "\xe2\x80\x93" : v > 0 ? "inf" : "-inf");
        return;
    }
    f64 half = 0.5 * pow(10, -decimals);
    if (fabs(v) < half) v = 0; /* never "-0.0" */
    str_addf(b, fabs(v) < 1e15 ? "%.*f" : "%.*e", imin(imax(decimals, 0), 15), v);
}

void text_digits(struct str *b, f64 v, i32 digits) {
    f64 size = fabs(v);
    if (!isfinite(v) || v == 0) {
        text_fixed(b, v, 0);
    } else if (size >= 1e9 || size < 1e-5) {
        str_addf(b, "%.*e", digits - 1, v);
    } else {
        text_fixed(b, v, imax(0, digits - 1 - (i32)floor(log10(size))));
    }
}

void text_si(struct str *b, f64 v) {
    static const char *const unit[] = {"", "k", "M", "G", "T"};
    i32 u = 0;
    while (isfinite(v) && fabs(v) >= 999.5 && u < 4) {
        v /= 1000;
        u++;
    }
    if (u == 0 && v == floor(v)) text_fixed(b, v, 0);
    else text_digits(b, v, 3);
    str_add(b, unit[u]);
}

void text_seconds(struct str *b, f64 s) {
    if (!isfinite(s)) {
        text_fixed(b, s, 0);
        return;
    }
    if (s < 9.95) {
        text_digits(b, s, 2);
        str_add(b, " s");
        return;
    }
    i64 n = (i64)(s + .5);
    if (n < 60) str_addf(b, "%lld s", (long long)n);
    else if (n < 3600) str_addf(b, "%lldm%02llds", (long long)n / 60, (long long)n % 60);
    else str_addf(b, "%lldh%02lldm", (long long)n / 3600, (long long)n / 60 % 60);
}

void text_clock(struct str *b, f64 s) {
    if (!isfinite(s) || s < 0 || s > 1e9) {
        str_add(b, "?");
        return;
    }
    long long n = (long long)(s + .5);
    if (n >= 3600) str_addf(b, "%lld:%02lld:%02lld", n / 3600, n / 60 % 60, n % 60);
    else str_addf(b, "%02lld:%02lld", n / 60, n % 60);
}

void text_skill(struct str *b, f64 share) {
    f64 p = 100 * share;
    if (isfinite(p) && p > -.05) str_add(b, "+");
    text_fixed(b, p, fabs(p) < 9.95 ? 1 : 0);
    if (isfinite(p)) str_add(b, "%");
}

/* Gregorian calendar, years of 400 beginning in March (Hinnant, "chrono-compatible low-level date algorithms"). */
i64 date_to_days(i64 year, i32 month, i32 day) {
    year -= month <= 2;
    i64 era = (year >= 0 ? year : year - 399) / 400, y = year - era * 400;
    i64 doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + y * 365 + y / 4 - y / 100 + doy - 719468;
}

void date_of_days(i64 days, i64 *year, i32 *month, i32 *day) {
    i64 z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, doe = z - era * 146097;
    i64 yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    i64 doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    *day = (i32)(doy - (153 * mp + 2) / 5 + 1);
    *month = (i32)(mp < 10 ? mp + 3 : mp - 9);
    *year = yoe + era * 400 + (*month <= 2);
}

void text_time(struct str *b, f64 t, f64 step) {
    if (!isfinite(t) || fabs(t) > 1e14) {
        text_fixed(b, NAN, 0);
        return;
    }
    i64 s = (i64)floor(t), days = (s >= 0 ? s : s - 86399) / 86400, rest = s - days * 86400, year;
    i32 month, day;
    date_of_days(days, &year, &month, &day);
    str_addf(b, "%04lld-%02d", (long long)year, month);
    if (step < 27 * 86400. || day != 1) str_addf(b, "-%02d", day);
    if (step < 86400 || rest) str_addf(b, " %02d:%02d", (i32)(rest / 3600), (i32)(rest / 60 % 60));
    if (step < 60 || rest % 60) str_addf(b, ":%02d", (i32)(rest % 60));
}
