/* time_like.c - tells whether texts look like times though no reader knows them, so that their column is not ignored in silence.
 *
 *     II kw. 2020, 2020/III, 3 Thermidor 2020     a year, and no other number of more than two digits
 *     11h 40, 11:40h, day 3 at 11:40              a clock time
 *     Jan'20, 3 mars                              a month, and a number
 *     Toy Story (1995), Lot 2020-00017            none: the words all differ; a number of five digits
 *
 * Dates repeat the few words of their language: this tells them from titles, addresses and codes. */
#include <ctype.h>

#include "base/bits.h"
#include "data/time.h"

enum { WORDS_MOST = 24, GROUPS_MOST = 7 };

/* A number in a text. */
struct group {
    i64 value;
    i32 from, to; /* bytes */
};

static i32 groups_of(const char *s, i32 n, struct group g[GROUPS_MOST]) {
    i32 k = 0;
    for (i32 i = 0; i < n; i++) {
        if (!isdigit((u8)s[i])) continue;
        if (k == GROUPS_MOST) return -1;
        g[k] = (struct group){.from = i};
        for (; i < n && isdigit((u8)s[i]); i++) g[k].value = g[k].value * 10 % 100000000 + (s[i] - '0');
        g[k++].to = i;
    }
    return k;
}

static bool is_year(const struct group *g) { return g->to - g->from == 4 && g->value >= 1600 && g->value <= 2100; }

/* True for the hours and minutes of a clock time: two digits after a colon or an h. */
static bool is_clock(const char *s, const struct group *g, const struct group *next) {
    const bool mark = s[g->to] == ':' || (s[g->to] | 32) == 'h';
    return mark && next->from - g->to <= 2 && next->to - next->from == 2 && g->value <= 24 && next->value <= 59;
}

/* True for the offset of a zone, -0500, or the fraction of a second behind a clock time. */
static bool is_tail(const char *s, const struct group *g) {
    const char mark = g->from > 0 ? s[g->from - 1] : 0;
    return (mark == '+' || mark == '-' || mark == '.' || mark == ',') && g->to - g->from > 2;
}

static bool is_letter(char c) { return isalpha((u8)c) || (u8)c >= 0x80; }

/* True if a word is the name of a month. */
static bool has_month(const char *s, i32 n) {
    const struct time_parser month = {.kind = TIME_CUSTOM, .format = "%b"};
    i64 t;
    for (i32 i = 0, to; i < n; i = to + 1) {
        for (to = i; to < n && is_letter(s[to]);) to++;
        if (to - i > 2 && time_parse(&month, s + i, (size_t)(to - i), &t)) return true;
    }
    return false;
}

static bool like_stamp(const char *s, i32 n) {
    struct group g[GROUPS_MOST];
    const i32 k = groups_of(s, n, g);
    bool year = false, clock = false;
    for (i32 i = 0; i < k; i++) {
        clock |= i + 1 < k && is_clock(s, &g[i], &g[i + 1]);
        if (is_year(&g[i])) year = true;
        else if (g[i].to - g[i].from > 2 && !(clock && is_tail(s, &g[i]))) return false;
    }
    return k > 0 && (year || clock || has_month(s, n));
}

/* Adds the words of a text to those known; false if these become too many. */
static bool add_words(const char *s, i32 n, u64 word[WORDS_MOST], i32 *count) {
    for (i32 i = 0; i < n; i++) {
        u64 h = 1469598103934665603u; /* FNV-1a */
        const i32 from = i;
        for (; i < n && is_letter(s[i]); i++) h = (h ^ (u8)tolower((u8)s[i])) * 1099511628211u;
        if (i == from) continue;
        i32 k = 0;
        while (k < *count && word[k] != h) k++;
        if (k == WORDS_MOST) return false;
        word[k] = h;
        if (k == *count) ++*count;
    }
    return true;
}

bool time_like(const char *const *s, const i32 *len, i32 n) {
    u64 word[WORDS_MOST];
    i32 count = 0;
    for (i32 i = 0; i < n; i++)
        if (!like_stamp(s[i], len[i]) || !add_words(s[i], len[i], word, &count)) return false;
    return n > 0;
}
