/* remedy.c - fits the remedies of an error to the verb that failed: every option that they name must be one that it takes.
 *
 *     resume:  --least-rows 2   (leave such series out)    ->    a new run with --least-rows 2   (leave such series out)
 *     predict: --cat x   or   repair the line              ->    repair the line
 *
 * The readers of data give the remedies of `train`. A verb that reads with a model, or goes on with a run, takes few of them. */
#include "remedy.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char between[] = "   or   ";

/* True if the verb takes all options that are named in a remedy. Commands have options of their own. */
static bool is_taken(enum verb verb, const char *s, size_t n) {
    char name[64];
    for (const char *p = s; p + 2 < s + n; p++) {
        if (p[0] != '-' || p[1] != '-' || (p > s && p[-1] != ' ' && p[-1] != '(')) continue;
        size_t k = 0;
        while (p + 2 + k < s + n && k + 1 < sizeof name && (isalnum((unsigned char)p[2 + k]) || p[2 + k] == '-')) k++;
        snprintf(name, sizeof name, "%.*s", (int)k, p + 2);
        i32 id = opt_find(name);
        if (id < 0 && !strncmp(name, "no-", 3)) id = opt_find(name + 3);
        if (id >= 0 && !(opt_info((enum opt_id)id)->verbs >> verb & 1)) return false;
    }
    return true;
}

/* True for a remedy that gives the command other options: "--gaps mask", "another --out". Others are shell commands and
 * sentences: "stretto train ..", "leave out --target", "a model of --task hmm". */
static bool gives_options(const char *s, size_t n) {
    static const char *const begin[] = {"--", "another ", "a smaller --", "a larger --", "make room"};
    for (size_t k = 0; k < COUNT(begin); k++)
        if (n > strlen(begin[k]) && !strncmp(s, begin[k], strlen(begin[k]))) return true;
    return false;
}

/* What comes before a remedy that the verb cannot take; NULL = its remedies are not changed. */
static const char *instead(enum verb verb) {
    const bool model = verb == VERB_predict || verb == VERB_eval || verb == VERB_decode || verb == VERB_export;
    return verb == VERB_resume ? "a new run with " : model ? "a model trained with " : NULL;
}

/* Length of what the verb can do of a remedy: "make room, or another place: --run-dir OTHER" has a first part. 0 = nothing. */
static size_t fitting(enum verb verb, const char *s, size_t n) {
    if (!gives_options(s, n) || is_taken(verb, s, n)) return n;
    for (size_t k = 0; k + 5 < n; k++)
        if (!strncmp(s + k, ", or ", 5)) return is_taken(verb, s, k) ? k : 0;
    return 0;
}

/* One line. */
static void fit_line(enum verb verb, const char *line, size_t n, struct str *out) {
    const size_t start = out->len;
    size_t first = n;
    for (size_t at = 0, next; at <= n; at = next) {
        const char *or = at < n ? strstr(line + at, between) : NULL;
        const size_t size = or && or < line + n ? (size_t)(or - line) - at : n - at;
        next = at + size + sizeof between - 1;
        if (at == 0) first = size;
        const size_t fits = fitting(verb, line + at, size);
        if (fits > 0) str_addf(out, "%s%.*s", out->len > start ? between : "", (int)fits, line + at);
    }
    if (out->len == start && first > 0) str_addf(out, "%s%.*s", instead(verb), (int)first, line);
}

void cli_fit_remedy(enum verb verb, const char *fix, struct str *out) {
    for (size_t n; *fix; fix += n + (fix[n] == '\n')) {
        n = strcspn(fix, "\n");
        if (out->len > 0) str_add(out, "\n");
        if (instead(verb)) fit_line(verb, fix, n, out);
        else str_addn(out, fix, n);
    }
}
