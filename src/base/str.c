/* str.c - see str.h. */
#define _GNU_SOURCE
#include "base/str.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { STR_MAX = 1 << 30 };

/* The C locale, created once per thread: strtod and printf follow the locale of the host program, where "0,5" may be a number. */
static locale_t c_locale(void) {
    static _Thread_local locale_t loc;
    if (!loc) loc = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return loc;
}

int str_print_args(char *out, size_t size, const char *fmt, va_list ap) {
    const locale_t around = uselocale(c_locale());
    const int n = vsnprintf(out, size, fmt, ap);
    uselocale(around);
    return n;
}

int str_print(char *out, size_t size, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const int n = str_print_args(out, size, fmt, ap);
    va_end(ap);
    return n;
}

static bool reserve(struct str *b, size_t more) {
    if (b->failed) return false;
    size_t need = b->len + more + 1;
    if (need <= b->cap) return true;
    size_t cap = b->cap ? b->cap : 256;
    while (cap < need) cap *= 2;
    char *s = need > STR_MAX ? NULL : mem_realloc(b->s, cap);
    if (!s) {
        b->failed = true;
        return false;
    }
    b->s = s;
    b->cap = cap;
    return true;
}

void str_addn(struct str *b, const char *text, size_t n) {
    if (!reserve(b, n)) return;
    memcpy(b->s + b->len, text, n);
    b->len += n;
    b->s[b->len] = 0;
}

void str_add(struct str *b, const char *text) { str_addn(b, text, strlen(text)); }

void str_addf(struct str *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = str_print_args(NULL, 0, fmt, ap);
    if (n >= 0 && reserve(b, (size_t)n)) {
        str_print_args(b->s + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    va_end(ap);
}

void str_add_csv(struct str *b, const char *text) {
    if (!strpbrk(text, ",\"\n\r")) {
        str_add(b, text);
        return;
    }
    str_add(b, "\"");
    for (const char *p = text; *p; p++) str_addn(b, *p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1);
    str_add(b, "\"");
}

void str_add_lines(struct str *b, const char *front, const char *text) {
    while (*text) {
        const size_t n = strcspn(text, "\n");
        str_addf(b, "%s%.*s\n", front, (int)n, text);
        text += n + (text[n] != 0);
    }
}

void str_free(struct str *b) {
    mem_free(b->s);
    *b = (struct str){0};
}

err str_ok(const struct str *b) { return b->failed ? FAIL(E601, "a text of %zu bytes did not fit in memory", b->len) : 0; }
const char *str_text(const struct str *b) { return b->s ? b->s : ""; }

bool str_to_f64(const char *s, size_t n, char decimal, f64 *out) {
    char buf[128];
    if (n == 0 || n >= sizeof buf || isspace((unsigned char)s[0])) return false;
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (c == 'x' || c == 'X' || c == 0) return false;
        if (decimal != '.' && c == '.') return false;
        buf[i] = c == decimal ? '.' : c;
    }
    buf[n] = 0;
    char *end = NULL;
    *out = strtod_l(buf, &end, c_locale());
    return end == buf + n;
}

bool str_to_i64(const char *s, size_t n, i64 *out) {
    size_t i = 0;
    bool negative = n > 0 && s[0] == '-';
    if (n > 0 && (s[0] == '-' || s[0] == '+')) i = 1;
    if (i == n || n - i > 18) return false;
    i64 v = 0;
    for (; i < n; i++) {
        if (s[i] < '0' || s[i] > '9') return false;
        v = v * 10 + (s[i] - '0');
    }
    *out = negative ? -v : v;
    return true;
}

int str_from_f64(char out[32], f64 v) {
    for (int digits = 15; digits < 17; digits++) {
        int n = str_print(out, 32, "%.*g", digits, v);
        if (strtod_l(out, NULL, c_locale()) == v) return n;
    }
    return str_print(out, 32, "%.17g", v);
}

int str_from_f32(char out[32], f32 v) {
    for (int digits = 6; digits < 9; digits++) {
        int n = str_print(out, 32, "%.*g", digits, (f64)v);
        if (strtof_l(out, NULL, c_locale()) == v) return n;
    }
    return str_print(out, 32, "%.9g", (f64)v);
}

i32 str_utf8(const char *s, size_t left) {
    const u8 *u = (const u8 *)s;
    if (u[0] < 0x80) return 1;
    const i32 n = u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : 2;
    if (u[0] < 0xc2 || u[0] > 0xf4 || left < (size_t)n) return 0;
    for (i32 i = 1; i < n; i++)
        if ((u[i] & 0xc0) != 0x80) return 0;
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xf0 && u[1] < 0x90)) return 0; /* overlong */
    if ((u[0] == 0xed && u[1] > 0x9f) || (u[0] == 0xf4 && u[1] > 0x8f)) return 0; /* surrogate; above U+10FFFF */
    return n;
}

/* Edit distance in half steps (optimal string alignment): a change of case costs 1, any other edit 2, and so does a swap of
 * neighbours. */
static i32 distance(const char *a, const char *b) {
    enum { MAX = 64 };
    size_t n = strlen(a), m = strlen(b);
    if (n >= MAX || m >= MAX) return 1000;
    i32 row[MAX], last[MAX], before[MAX]; /* of i, i - 1, i - 2 */
    for (size_t j = 0; j <= m; j++) row[j] = last[j] = 2 * (i32)j;
    for (size_t i = 1; i <= n; i++) {
        memcpy(before, last, sizeof before);
        memcpy(last, row, sizeof last);
        row[0] = 2 * (i32)i;
        for (size_t j = 1; j <= m; j++) {
            bool same = a[i - 1] == b[j - 1];
            bool folded = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            i32 change = last[j - 1] + (same ? 0 : folded ? 1 : 2);
            row[j] = imin(change, 2 + imin(last[j], row[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = imin(row[j], before[j - 2] + 2);
        }
    }
    return row[m];
}

i32 str_columns(const char *s) {
    i32 n = 0;
    for (; *s; s++) n += (*s & 0xc0) != 0x80;
    return n;
}

i32 str_nearest(const char *word, const char *const *words, i32 n) {
    i32 best = -1, least = imax(4, (i32)strlen(word)) + 1;
    for (i32 i = 0; i < n; i++) {
        i32 d = distance(word, words[i]);
        if (d < least) {
            least = d;
            best = i;
        }
    }
    return best;
}

/* Length of the number at s: digits with at most one point. */
static size_t number_length(const char *s) {
    size_t n = strspn(s, "0123456789");
    if (s[n] == '.') n += 1 + strspn(s + n + 1, "0123456789");
    return n;
}

bool str_time(const char *text, f64 *seconds) {
    static const struct {
        const char *unit;
        f64 seconds;
    } units[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    f64 total = 0, v;
    if ((str_to_f64(text, strlen(text), '.', seconds) && isfinite(*seconds))) return true;
    for (const char *s = text; *s;) {
        size_t n = number_length(s), u = 0;
        if (!str_to_f64(s, n, '.', &v)) return false;
        s += n;
        while (u < COUNT(units) && strncmp(s, units[u].unit, strlen(units[u].unit)) != 0) u++;
        if (u == COUNT(units)) return false;
        s += strlen(units[u].unit);
        total += v * units[u].seconds;
    }
    *seconds = total;
    return text[0] != 0;
}

bool str_size(const char *text, i64 *bytes) {
    static const char units[] = "KMGT";
    size_t n = number_length(text);
    f64 v;
    if (!str_to_f64(text, n, '.', &v)) return false;
    const char *s = text + n, *unit = *s ? strchr(units, *s >= 'a' ? *s - 'a' + 'A' : *s) : NULL;
    if (unit) {
        for (const char *u = units; u <= unit; u++) v *= 1024;
        s++;
        if (*s == 'i' && s[1] == 'B') s++;
    }
    if (*s == 'B') s++;
    if (*s || v >= 9e18) return false;
    *bytes = (i64)v;
    return true;
}

bool str_list_next(const char **cursor, char *item, size_t size) {
    const char *s = *cursor;
    size_t n = 0, kept = 0;
    while (*s == ' ') s++;
    if (!*s) return false;
    for (; *s && *s != ','; s++) {
        bool escaped = s[0] == '\\' && s[1] == ',';
        if (escaped) s++;
        if (n + 1 < size) item[n++] = *s;
        if (*s != ' ' || escaped) kept = n;
    }
    item[kept] = 0;
    *cursor = *s ? s + 1 : s;
    return true;
}

void str_list_add(struct str *list, const char *item) {
    if (list->len) str_add(list, ",");
    for (; *item; item++) {
        if (*item == ',') str_add(list, "\\");
        str_addn(list, item, 1);
    }
}
