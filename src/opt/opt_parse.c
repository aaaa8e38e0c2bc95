/* opt_parse.c - the text of an option becomes a checked value: numbers, words, times, sizes, comma lists.
 *
 * Messages differ by where the text came from: a flag is shown as --name VALUE, a line of a config file as name: VALUE. */
#include "opt/opt_parse.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ITEM_MAX = 512 };

struct opt_words opt_words(const struct opt_list *lists, const struct opt_info *info) {
    return (struct opt_words){.at = info->unit, .lists = lists};
}

/* The words of list `name` (n characters), or NULL. */
static const char *list_words(const struct opt_list *lists, const char *name, size_t n) {
    for (; lists && lists->name; lists++)
        if (strlen(lists->name) == n && strncmp(lists->name, name, n) == 0) return lists->words;
    return NULL;
}

static const char preset_words[] =
#define PRESET(name, when) " " #name
#include "opt/presets.def"
    ;

bool opt_words_next(struct opt_words *w, char word[32], char *alias) {
    if (alias) *alias = 0;
    for (;;) {
        while (*w->at == ' ') w->at++;
        if (!*w->at) {
            if (!w->rest) return false;
            w->at = w->rest;
            w->rest = NULL;
            continue;
        }
        size_t n = strcspn(w->at, " ");
        const char *start = w->at;
        w->at += n;
        if (start[0] == '@') {
            const char *words = list_words(w->lists, start + 1, n - 1);
            if (!words && strncmp(start, "@presets", n) == 0) words = preset_words;
            if (words) {
                w->rest = w->at;
                w->at = words;
            } else {
                w->open = true;
            }
            continue;
        }
        size_t length = n > 2 && start[n - 2] == '=' ? n - 2 : n;
        if (alias && length < n) *alias = start[n - 1];
        snprintf(word, 32, "%.*s", (int)length, start);
        return true;
    }
}

void opt_words_text(struct str *out, const struct opt_list *lists, const struct opt_info *info, const char *between) {
    char word[32];
    struct opt_words w = opt_words(lists, info);
    for (bool first = true; opt_words_next(&w, word, NULL); first = false) {
        if (!first) str_add(out, between);
        str_add(out, word);
    }
    if (w.open) str_add(out, *info->unit == '@' ? "NAME" : "|NAME");
}

/* E103: "--lr "fast" is not a number", fix "--lr 0.003   (0 to 10)". */
static err bad(const struct opt_info *info, const struct opt_from *from, const char *text, const char *advice, const char *what) {
    char fix[400], value[96] = "";
    bool file = from->rank == OPT_RANK_FILE;
    if (text) snprintf(value, sizeof value, " \"%.80s%s\"", text, strlen(text) > 80 ? "..." : "");
    for (char *s = value; *s; s++)
        if ((unsigned char)*s < 32 || *s == 127) *s = '?';
    snprintf(fix, sizeof fix, file ? "%s: %s" : "--%s %s", info->name, advice);
    return FAIL_AT(E103, from->where, fix, "%s%s%s %s", file ? "" : "--", info->name, value, what);
}

/* The value that a fix proposes: the default, or the unit's name if the default is "auto" or empty. */
static const char *advice(const struct opt_info *info, char *buf, size_t size) {
    char low[32], high[32];
    const char *value = info->def[0] ? info->def : info->unit, *unit = info->type == OPT_NUMS ? "" : info->unit;
    if (info->type == OPT_SIZE) {
        snprintf(buf, size, "4G");
    } else if (info->most > info->least) {
        str_from_f64(low, info->least);
        str_from_f64(high, info->most);
        snprintf(buf, size, "%s   (%s to %s%s%s)", value, low, high, unit[0] ? " " : "", unit);
    } else {
        snprintf(buf, size, "%s", value);
    }
    return buf;
}

static err in_range(const struct opt_info *info, const struct opt_from *from, const char *text, f64 v) {
    char buf[200], what[120], low[32], high[32];
    if (v >= info->least && v <= info->most) return 0;
    str_from_f64(low, info->least);
    str_from_f64(high, info->most);
    snprintf(what, sizeof what, "is out of range: %s to %s", low, high);
    return bad(info, from, text, advice(info, buf, sizeof buf), what);
}

static bool parse_int(const char *text, i64 *out) {
    f64 f;
    if (str_to_i64(text, strlen(text), out)) return true;
    if (!str_to_f64(text, strlen(text), '.', &f) || !(fabs(f) < 9e15) || f != floor(f)) return false;
    *out = (i64)f;
    return true;
}

static bool parse_real(const char *text, f64 *out) { return str_to_f64(text, strlen(text), '.', out) && isfinite(*out); }

static bool parse_bool(const char *text, bool *out) {
    static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {"no", "false", "off", "0"};
    for (size_t i = 0; i < COUNT(yes); i++) {
        if (strcmp(text, yes[i]) == 0) return *out = true, true;
        if (strcmp(text, no[i]) == 0) return *out = false, true;
    }
    return false;
}

static err parse_word(const struct opt_list *lists, const struct opt_info *info, const char *text, const struct opt_from *from,
                      struct opt_value *v) {
    enum { WORDS = 64 };
    char word[WORDS][32], alias;
    const char *words[WORDS];
    i32 n = 0;
    struct opt_words w = opt_words(lists, info);
    while (n < WORDS && opt_words_next(&w, word[n], &alias)) {
        words[n] = word[n];
        if (strcmp(word[n], text) == 0 || (alias && text[0] == alias && !text[1])) {
            str_add(&v->buffer, word[n]);
            return 0;
        }
        n++;
    }
    if (w.open && text[0]) return str_add(&v->buffer, text), 0;
    struct str what = {0};
    i32 near = str_nearest(text, words, n);
    str_add(&what, "is not one of ");
    opt_words_text(&what, lists, info, ", ");
    err e = bad(info, from, text, words[near < 0 ? 0 : near], str_text(&what));
    str_free(&what);
    return e;
}

/* A list in its plain form: no spaces around items, none empty; numbers checked one by one. */
static err parse_list(const struct opt_info *info, const char *text, const struct opt_from *from, struct opt_value *v) {
    char item[ITEM_MAX], buf[200];
    f64 number;
    for (const char *p = text; str_list_next(&p, item, sizeof item);) {
        if (!item[0]) return bad(info, from, text, advice(info, buf, sizeof buf), "has an empty item");
        if (info->type == OPT_NUMS) {
            if (!parse_real(item, &number)) return bad(info, from, item, advice(info, buf, sizeof buf), "is not a number");
            TRY(in_range(info, from, item, number));
            str_from_f64(item, number);
        }
        str_list_add(&v->buffer, item);
    }
    if (info->type == OPT_NUMS && !v->buffer.len && !v->buffer.failed)
        return bad(info, from, text, advice(info, buf, sizeof buf), "is empty");
    return 0;
}

static err parse_number(const struct opt_info *info, const char *text, const struct opt_from *from, struct opt_value *v) {
    static const char *const what[] = {[OPT_INT] = "is not a whole number",
                                       [OPT_REAL] = "is not a number",
                                       [OPT_TIME] = "is not a time such as 90, 10m or 1h30m",
                                       [OPT_SIZE] = "is not a size such as 512M or 8G"};
    char buf[200], shown[32];
    bool good = info->type == OPT_INT    ? parse_int(text, &v->i)
                : info->type == OPT_REAL ? parse_real(text, &v->f)
                : info->type == OPT_TIME ? str_time(text, &v->f)
                                         : str_size(text, &v->i);
    if (!good) return bad(info, from, text, advice(info, buf, sizeof buf), what[info->type]);
    bool whole = info->type == OPT_INT || info->type == OPT_SIZE;
    TRY(in_range(info, from, text, whole ? (f64)v->i : v->f));
    if (info->type == OPT_INT) str_addf(&v->buffer, "%lld", (long long)v->i);
    else if (info->type == OPT_REAL) str_addn(&v->buffer, shown, (size_t)str_from_f64(shown, v->f));
    else str_add(&v->buffer, text);
    return 0;
}

static bool printable(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < 32 || *text == 127) return false;
    return true;
}

err opt_parse(const struct opt_list *lists, const struct opt_info *info, const char *text, const struct opt_from *from,
              struct opt_value *v) {
    char buf[200];
    bool free_text = info->type == OPT_TEXT || info->type == OPT_PATH || info->type == OPT_LIST;
    if (free_text && !printable(text)) return bad(info, from, text, advice(info, buf, sizeof buf), "holds a control character");
    if (info->type == OPT_TEXT && !*text && *info->def) return bad(info, from, text, info->def, "is empty");
    v->i = OPT_AUTO_INT;
    v->f = OPT_AUTO_REAL;
    if (strcmp(info->def, "auto") == 0 && strcmp(text, "auto") == 0) {
        v->text = "auto";
        return 0;
    }
    switch (info->type) {
    case OPT_BOOL:
        if (!parse_bool(text, &v->b)) return bad(info, from, text, v->b ? "no" : "yes", "is neither yes nor no");
        str_add(&v->buffer, v->b ? "yes" : "no");
        break;
    case OPT_INT:
    case OPT_REAL:
    case OPT_TIME:
    case OPT_SIZE: TRY(parse_number(info, text, from, v)); break;
    case OPT_WORD: TRY(parse_word(lists, info, text, from, v)); break;
    case OPT_LIST:
    case OPT_NUMS: TRY(parse_list(info, text, from, v)); break;
    case OPT_TEXT:
    case OPT_PATH: str_add(&v->buffer, text); break;
    }
    TRY(str_ok(&v->buffer));
    v->text = str_text(&v->buffer);
    return 0;
}
