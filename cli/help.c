/* help.c - overview, options of a verb, topics, error texts. */
#include "help.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WIDTH = 108, LEFT = 34, WORDS_SHOWN = 30, TOPICS_WIDE = 78 };

static const struct {
    const char *name, *line;
    i32 group;
    const char *text;
} topics[] = {
#define TOPIC(name, line, group, text) {#name, line, group, text},
#include "topics.def"
#undef TOPIC
};

static const struct {
    i32 code;
    const char *title, *help;
} warnings[] = {
#define W(code, status, title, help) {code, title, help},
#include "base/warnings.def"
#undef W
};

static const struct {
    const char *word, *line, *text;
} terms[] = {
#define TERM(word, line, text) {word, line, text},
#include "terms.def"
#undef TERM
};

/* Text in lines of at most WIDTH columns, each after `indent` spaces; the first continues at column `at`.  Lines that begin with
 * spaces or a digit (examples, tables) stay as they are. */
static void wrap(FILE *f, const char *text, i32 indent, i32 at) {
    while (*text) {
        i32 line = (i32)strcspn(text, "\n");
        bool keep = *text == ' ' || (*text >= '0' && *text <= '9');
        const char *end = text + line;
        for (const char *s = text; s < end && !keep;) {
            while (*s == ' ') s++;
            i32 n = 0;
            while (s + n < end && s[n] != ' ') n++;
            if (at > indent && at + 1 + n > WIDTH) {
                fputc('\n', f);
                at = 0;
            }
            if (at == 0) at = fprintf(f, "%*s", (int)indent, "");
            else if (at > indent) at += fprintf(f, " ");
            at += fprintf(f, "%.*s", (int)n, s);
            s += n;
        }
        if (keep) fprintf(f, "%*s%.*s", (int)indent, "", (int)line, text);
        fputc('\n', f);
        at = 0;
        text = *end ? end + 1 : end;
    }
}

void help_flag(struct str *out, enum opt_id id, const struct opt_list *lists) {
    const struct opt_info *info = opt_info(id);
    static const char *const arg[] = {
        [OPT_INT] = "N", [OPT_REAL] = "X", [OPT_TIME] = "TIME", [OPT_SIZE] = "SIZE", [OPT_NUMS] = "X,.."};
    char letter = opt_letter(id);
    if (letter) str_addf(out, "-%c, ", letter);
    bool on = info->type == OPT_BOOL && strcmp(info->def, "yes") == 0;
    str_addf(out, "--%s%s", on ? "[no-]" : "", info->name);
    if (info->type == OPT_BOOL) return;
    str_add(out, " ");
    if (info->type != OPT_WORD) {
        str_add(out, info->type < COUNT(arg) && arg[info->type] ? arg[info->type] : info->unit);
        return;
    }
    struct str words = {0};
    opt_words_text(&words, lists, info, "|");
    str_add(out, words.len <= WORDS_SHOWN ? str_text(&words) : "WORD");
    str_free(&words);
}

void help_note(struct str *out, enum opt_id id, const struct opt_list *lists) {
    const struct opt_info *info = opt_info(id);
    str_add(out, info->help);
    struct str words = {0};
    if (info->type == OPT_WORD) opt_words_text(&words, lists, info, "|");
    if (words.len > WORDS_SHOWN) str_addf(out, ": %s", str_text(&words));
    str_free(&words);
    if ((info->type == OPT_INT || info->type == OPT_REAL || info->type == OPT_NUMS) && info->most > info->least) {
        char low[32], high[32];
        str_from_f64(low, info->least);
        str_from_f64(high, info->most);
        str_addf(out, " (%s to %s)", low, high);
    }
    if (info->def[0] && strcmp(info->def, "no") != 0) str_addf(out, " [%s]", info->def);
}

static void print_option(FILE *f, enum opt_id id, const struct opt_list *lists) {
    struct str flag = {0}, note = {0};
    help_flag(&flag, id, lists);
    help_note(&note, id, lists);
    i32 at = fprintf(f, opt_letter(id) ? "  %s" : "      %s", str_text(&flag));
    if (at + 2 > LEFT) {
        fputc('\n', f);
        at = 0;
    }
    if (at) at += fprintf(f, "%*s", (int)(LEFT - at), "");
    wrap(f, str_text(&note), LEFT, at);
    str_free(&flag);
    str_free(&note);
}

/* The options of one group that one of `verbs` takes, under its name. */
static void print_group(FILE *f, enum opt_group group, u32 verbs, const struct opt_list *lists) {
    bool any = false;
    for (i32 i = 0; i < OPT_COUNT; i++) {
        const struct opt_info *info = opt_info((enum opt_id)i);
        if (info->group != group || !(info->verbs & verbs)) continue;
        if (!any) fprintf(f, "\n%s:\n", opt_group_name(group));
        any = true;
        print_option(f, (enum opt_id)i, lists);
    }
}

void help_overview(FILE *f) {
    fputs("stretto - train recurrent forecasters of time series in parallel, and score them against naive forecasts\n\n"
          "usage: stretto VERB ARGUMENTS [options]\n\n",
          f);
    for (i32 i = 0; i < VERB_COUNT; i++) {
        const struct verb_info *v = verb_info((enum verb)i);
        i32 at = fprintf(f, "  %-9s %s", v->name, v->args);
        if (at >= LEFT + 2) at = fprintf(f, "\n") - 1;
        fprintf(f, "%*s%s\n", LEFT + 2 - at, "", v->help);
    }
    fputs("\nfirst steps:\n"
          "  stretto sample tides -o tides.csv\n"
          "  stretto train tides.csv --target height --horizon 24 -o tides.model\n"
          "  stretto predict tides.model tides.csv -o next.csv\n\n"
          "more:\n"
          "  stretto VERB --help      options of a verb, with defaults\n"
          "  stretto help TOPIC       ",
          f);
    for (size_t i = 0, at = 0; i < COUNT(topics); i++) {
        const bool wraps = at + strlen(topics[i].name) > TOPICS_WIDE;
        at = (wraps ? 0 : at) + strlen(topics[i].name) + 2;
        fprintf(f, "%s%s", i == 0 ? "" : wraps ? ",\n                           " : ", ", topics[i].name);
    }
    fputs("\n  stretto explain WHAT     an error code (E204) or a term (MASE)\n", f);
}

void help_verb(FILE *f, enum verb verb, const struct opt_list *lists) {
    const struct verb_info *v = verb_info(verb);
    fprintf(f, "usage: stretto %s%s%s [options]\n  %s\n", v->name, v->args[0] ? " " : "", v->args, v->help);
    print_group(f, OPT_VERB, 1u << verb, lists);
    for (i32 g = 0; g < OPT_VERB; g++) print_group(f, (enum opt_group)g, 1u << verb, lists);
}

const char *help_topic_name(i32 index) { return index < (i32)COUNT(topics) ? topics[index].name : NULL; }

static void print_presets(FILE *f) {
    for (i32 i = 0; i < preset_count(); i++) {
        const struct preset_info *p = preset_at(i);
        enum opt_id id;
        const char *text;
        fprintf(f, "\n%s: chosen by auto for %s\n", p->name, p->when);
        for (i32 k = 0; preset_value(p->name, k, &id, &text); k++) fprintf(f, "  %s: %s\n", opt_info(id)->name, text);
    }
}

static void print_codes(FILE *f) {
    fputc('\n', f);
    for (i32 i = 0; i < err_count(); i++) {
        const struct err_info *e = err_at(i);
        fprintf(f, "  E%03d %*sexit %-3d %s\n", e->code, e->code < 1000 ? 2 : 1, "", e->exit_status, e->title);
    }
    for (size_t i = 0; i < COUNT(warnings); i++) fprintf(f, "  W%03d            %s\n", warnings[i].code, warnings[i].title);
}

static void print_terms(FILE *f) {
    fputc('\n', f);
    for (size_t i = 0; i < COUNT(terms); i++) fprintf(f, "  %-11s %s\n", terms[i].word, terms[i].line);
}

static err no_topic(const char *topic) {
    const char *names[COUNT(topics) + VERB_COUNT];
    char fix[120];
    i32 n = 0;
    for (size_t i = 0; i < COUNT(topics); i++) names[n++] = topics[i].name;
    for (i32 i = 0; i < VERB_COUNT; i++) names[n++] = verb_info((enum verb)i)->name;
    i32 near = str_nearest(topic, names, n);
    if (near >= 0) snprintf(fix, sizeof fix, "stretto help %s   (did you mean this?)", names[near]);
    else snprintf(fix, sizeof fix, "stretto help   (lists the topics)");
    return FAIL_AT(E101, NULL, fix, "there is no topic \"%.80s\"", topic);
}

err help_topic(FILE *f, const char *topic, const struct opt_list *lists) {
    i32 verb = verb_find(topic);
    if (verb >= 0) return help_verb(f, (enum verb)verb, lists), 0;
    for (size_t i = 0; i < COUNT(topics); i++) {
        if (strcmp(topics[i].name, topic) != 0) continue;
        fprintf(f, "%s: %s\n\n", topics[i].name, topics[i].line);
        wrap(f, topics[i].text, 0, 0);
        if (topics[i].group >= 0) print_group(f, (enum opt_group)topics[i].group, ~0u, lists);
        if (strcmp(topic, "presets") == 0) print_presets(f);
        if (strcmp(topic, "errors") == 0) print_codes(f);
        if (strcmp(topic, "terms") == 0) print_terms(f);
        for (i32 g = 0; strcmp(topic, "options") == 0 && g < OPT_HIDDEN; g++) print_group(f, (enum opt_group)g, ~0u, lists);
        return 0;
    }
    return no_topic(topic);
}

/* What an exit status stands for, in words. */
static const char *status_text(i32 status) {
    static const struct {
        i32 status;
        const char *text;
    } texts[] = {{1, "a bug"},
                 {2, "invalid usage, config or plan"},
                 {3, "invalid data"},
                 {4, "data too short"},
                 {5, "training diverged"},
                 {6, "out of memory"},
                 {7, "files"},
                 {8, "cluster"},
                 {9, "model file"},
                 {10, "worse than naive"},
                 {11, "doctor found an obstacle"},
                 {75, "stopped, can be resumed"},
                 {76, "unfinished at the time limit"}};
    for (size_t i = 0; i < COUNT(texts); i++)
        if (texts[i].status == status) return texts[i].text;
    return "";
}

static bool explain_term(FILE *f, const char *word) {
    for (size_t i = 0; i < COUNT(terms); i++) {
        if (strcasecmp(terms[i].word, word) != 0) continue;
        fprintf(f, "%s: %s\n\n", terms[i].word, terms[i].line);
        wrap(f, terms[i].text, 0, 0);
        return true;
    }
    return false;
}

err help_explain(FILE *f, const char *code) {
    if (explain_term(f, code)) return 0;
    bool warning = code[0] == 'W' || code[0] == 'w';
    const char *digits = code + (warning || code[0] == 'E' || code[0] == 'e');
    i64 n = -1;
    if (!str_to_i64(digits, strlen(digits), &n) || n < 0 || n > 99999) n = -1;
    for (size_t i = 0; warning && i < COUNT(warnings); i++) {
        if (warnings[i].code != n) continue;
        fprintf(f, "W%03d %s   (a warning: the run continues)\n\n", warnings[i].code, warnings[i].title);
        wrap(f, warnings[i].help, 0, 0);
        return 0;
    }
    const struct err_info *info = warning ? NULL : err_info((i32)n);
    if (!info)
        return FAIL_AT(E101, NULL, "stretto help errors   (lists the codes)   or   stretto help terms   (lists the words)",
                       "there is no error, warning or term \"%.40s\"", code);
    fprintf(f, "E%03d %s   (exit status %d: %s)\n\n", info->code, info->title, info->exit_status, status_text(info->exit_status));
    wrap(f, info->help, 0, 0);
    return 0;
}
