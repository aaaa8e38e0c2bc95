/* jsonl_line.c - one line of JSON lines: an object of names, numbers, texts, true, false and null (RFC 8259).
 *
 * Python writes NaN and Infinity, so they are read, too. Nested values are passed over, up to a depth. */
#include "data/jsonl.h"

#include <string.h>

#include "base/str.h"

enum { DEPTH = 64 };

static void skip_space(struct jsonl_line *l) {
    while (l->p < l->end && (*l->p == ' ' || *l->p == '\t' || *l->p == '\r')) l->p++;
}

static bool bad(struct jsonl_line *l, const char *why) {
    l->why = why;
    return false;
}

/* Takes a character, or says what is missing. */
static bool take(struct jsonl_line *l, char c, const char *why) {
    skip_space(l);
    if (l->p == l->end || *l->p != c) return bad(l, l->p == l->end ? "the line ends within the object" : why);
    l->p++;
    return true;
}

static bool hex4(const char *p, const char *end, u32 *out) {
    *out = 0;
    if (end - p < 4) return false;
    for (i32 i = 0; i < 4; i++) {
        const char c = p[i], low = (char)(c | 32);
        const bool digit = c >= '0' && c <= '9';
        if (!digit && !(low >= 'a' && low <= 'f')) return false;
        *out = *out * 16 + (u32)(digit ? c - '0' : low - 'a' + 10);
    }
    return true;
}

/* The character behind a backslash and u; moves l->p behind it.  Returns the place behind its bytes at `to`, NULL = bad. */
static char *put_unicode(struct jsonl_line *l, char *to) {
    u32 c, low;
    if (!hex4(l->p, l->end, &c)) return NULL;
    l->p += 4;
    if (c >= 0xD800 && c < 0xDC00) { /* a pair of surrogates is one character */
        if (l->end - l->p < 6 || l->p[0] != '\\' || l->p[1] != 'u' || !hex4(l->p + 2, l->end, &low)) return NULL;
        if (low < 0xDC00 || low >= 0xE000) return NULL;
        c = 0x10000 + ((c & 0x3FF) << 10 | (low & 0x3FF));
        l->p += 6;
    } else if (c == 0 || (c >= 0xDC00 && c < 0xE000)) {
        return NULL;
    }
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
    } else {
        if (c >= 0x10000) *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(c >= 0x10000 ? 0x80 | (c >> 12 & 0x3F) : 0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
    }
    *to++ = (char)(0x80 | (c & 0x3F));
    return to;
}

static char *put_escape(struct jsonl_line *l, char *to) {
    static const char from[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
    if (l->p == l->end) return NULL;
    const char c = *l->p++;
    if (c == 'u') return put_unicode(l, to);
    const char *at = c ? strchr(from, c) : NULL;
    if (!at) return NULL;
    *to++ = is[at - from];
    return to;
}

/* A text, p at its quote. */
static bool text(struct jsonl_line *l, struct jsonl_text *out) {
    char *to = ++l->p;
    out->s = to;
    for (;;) {
        if (l->p == l->end) return bad(l, "a text begins in this line and does not end in it");
        const char c = *l->p;
        if (c == '"') break;
        if (c == '\\') {
            l->p++;
            char *next = put_escape(l, to);
            if (!next) return bad(l, "no character is written like this behind a backslash");
            to = next;
            continue;
        }
        const i32 n = (u8)c < 0x20 ? 0 : (u8)c < 0x80 ? 1 : str_utf8(l->p, (size_t)(l->end - l->p));
        if (n == 0) return bad(l, (u8)c < 0x20 ? "a control character within a text" : "the text is not UTF-8");
        for (i32 i = 0; i < n; i++) *to++ = *l->p++;
    }
    out->n = to - out->s;
    l->p++;
    return true;
}

static bool is_word(struct jsonl_line *l, const char *word) {
    const i64 n = (i64)strlen(word);
    if (l->end - l->p < n || memcmp(l->p, word, (size_t)n) != 0) return false;
    l->p += n;
    return true;
}

/* Passes over an object or a list. */
static bool nested(struct jsonl_line *l) {
    char open[DEPTH];
    i32 depth = 0;
    struct jsonl_text unused;
    do {
        if (l->p == l->end) return bad(l, "the line ends within the object");
        const char c = *l->p;
        if (c == '"') {
            if (!text(l, &unused)) return false;
            continue;
        }
        if (c == '{' || c == '[') {
            if (depth == DEPTH) return bad(l, "objects and lists are nested too deeply");
            open[depth++] = c;
        } else if (c == '}' || c == ']') {
            if (open[--depth] != (c == '}' ? '{' : '[')) return bad(l, "an object or a list ends with the bracket of the other");
        }
        l->p++;
    } while (depth > 0);
    return true;
}

static bool number(struct jsonl_line *l, struct jsonl_text *out) {
    out->s = l->p;
    while (l->p < l->end && ((*l->p >= '0' && *l->p <= '9') || (*l->p && strchr("+-.eE", *l->p)))) l->p++;
    out->n = l->p - out->s;
    return out->n > 0 || bad(l, "this is no value of JSON");
}

static bool take_value(struct jsonl_line *l, enum jsonl_kind *kind, struct jsonl_text *out) {
    static const struct {
        const char *word;
        enum jsonl_kind kind;
    } words[] = {{"null", JSONL_NULL}, {"true", JSONL_TRUE},       {"false", JSONL_FALSE},
                 {"NaN", JSONL_NULL},  {"Infinity", JSONL_NUMBER}, {"-Infinity", JSONL_NUMBER}};
    skip_space(l);
    if (l->p == l->end) return bad(l, "the line ends within the object");
    for (size_t i = 0; i < COUNT(words); i++) {
        if (!is_word(l, words[i].word)) continue;
        *kind = words[i].kind;
        *out = (struct jsonl_text){words[i].word, (i64)strlen(words[i].word)};
        return true;
    }
    if (*l->p == '"') {
        *kind = JSONL_TEXT;
        return text(l, out);
    }
    if (*l->p == '{' || *l->p == '[') {
        *kind = JSONL_NESTED;
        *out = *l->p == '{' ? (struct jsonl_text){"object", 6} : (struct jsonl_text){"list", 4};
        return nested(l);
    }
    *kind = JSONL_NUMBER;
    return number(l, out);
}

i32 jsonl_next(struct jsonl_line *l, struct jsonl_text *key, enum jsonl_kind *kind, struct jsonl_text *value) {
    if (!l->inside && !take(l, '{', "a line is an object: it begins with {")) return -1;
    skip_space(l);
    if (l->p < l->end && *l->p == '}') {
        l->p++;
        skip_space(l);
        if (l->p < l->end) return bad(l, "text behind the object: one object a line") - 1;
        return 0;
    }
    if (l->inside && !take(l, ',', "a comma or } is expected")) return -1;
    l->inside = true;
    skip_space(l);
    if (l->p == l->end) return bad(l, "the line ends within the object") - 1;
    if (*l->p != '"') return bad(l, "a name in quotes is expected") - 1;
    if (!text(l, key) || !take(l, ':', "a colon is expected") || !take_value(l, kind, value)) return -1;
    return 1;
}

bool jsonl_head(const char *head, i64 n) {
    i64 i = n >= 3 && memcmp(head, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    while (i < n && head[i] && strchr(" \t\r\n", head[i])) i++;
    if (i == n || head[i++] != '{') return false;
    while (i < n && head[i] && strchr(" \t\r\n", head[i])) i++;
    return i < n && (head[i] == '"' || head[i] == '}');
}
