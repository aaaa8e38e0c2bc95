/* advice.c - remedies of findings that are made of options: applies them, and writes the command line that they lead to.
 *
 *     fix: --gaps mask   (train on what is there)   or   --gaps zero        the first remedy: {gaps: mask}
 *     fix: awk ... a.csv > a-one.csv   or   ...                             no options: for people */
#include "api/advice.h"

#include <string.h>

#include "base/input.h"
#include "data/mend.h"

enum { WORD_BYTES = 700 };

static bool at_end(const char *p) { return !*p || *p == '\n' || !strncmp(p, "   ", 3); }

/* The next word as a shell splits it: quotes are removed. False at the end of the remedy, or if the word is too long. */
static bool next_word(const char **at, char word[WORD_BYTES]) {
    const char *p = *at;
    size_t n = 0;
    bool quoted = false;
    while (*p == ' ' && !at_end(p)) p++;
    if (at_end(p)) return false;
    for (; n + 1 < WORD_BYTES && (quoted ? *p != 0 : *p != ' ' && !at_end(p)); p++) {
        if (*p == '\'') quoted = !quoted;
        else if (*p == '\\' && !quoted && p[1]) word[n++] = *++p;
        else word[n++] = *p;
    }
    word[n] = 0;
    *at = p;
    return n + 1 < WORD_BYTES;
}

/* The option of `check` with this flag that takes a value; -1 = none. */
static i32 option_of(const char *flag) {
    const i32 id = strncmp(flag, "--", 2) ? -1 : opt_find(flag + 2);
    return id >= 0 && (opt_info((enum opt_id)id)->verbs & 1u << VERB_check) && opt_info((enum opt_id)id)->type != OPT_BOOL ? id
                                                                                                                          : -1;
}

/* True if the list has every item of `items`. */
static bool has_all(const char *list, const char *items) {
    char wanted[256], item[256];
    while (str_list_next(&items, wanted, sizeof wanted)) {
        bool found = false;
        for (const char *p = list; !found && str_list_next(&p, item, sizeof item);) found = !strcmp(item, wanted);
        if (!found) return false;
    }
    return true;
}

static err give(struct options *o, enum opt_id id, const char *value, bool *changed) {
    const char *old = o->meta[id].text ? o->meta[id].text : "";
    struct str joined = {0};
    if ((id == OPT_na || id == OPT_ignore || id == OPT_cat) && *old) {
        if (has_all(old, value)) return 0;
        str_addf(&joined, "%s,%s", old, value);
        value = str_text(&joined);
    }
    err e = 0;
    if (strcmp(old, value) != 0) {
        e = opt_set_id(o, id, value, &OPT_API);
        *changed = true;
    }
    str_free(&joined);
    return e;
}

err advice_apply(struct options *o, const char *fix, bool *changed) {
    char flag[WORD_BYTES], value[WORD_BYTES];
    const char *p = fix;
    while (next_word(&p, flag))
        if (option_of(flag) < 0 || !next_word(&p, value)) return 0;
    for (p = fix; next_word(&p, flag) && next_word(&p, value);) TRY(give(o, (enum opt_id)option_of(flag), value, changed));
    return 0;
}

bool advice_concerns(const struct options *o, i32 id) {
    const struct opt_info *info = opt_info((enum opt_id)id);
    const bool group = info->group == OPT_DATA || info->group == OPT_MODEL;
    return group && (info->verbs & 1u << VERB_check) && opt_given(o, (enum opt_id)id);
}

void advice_command(const struct options *o, const char *path, struct str *out) {
    char word[MEND_PATH];
    if (input_is(path)) str_add(out, "cat DATA | stretto train -");
    else str_addf(out, "stretto train %s", mend_data(path, word));
    for (i32 i = 0; i < OPT_COUNT; i++)
        if (advice_concerns(o, i)) str_addf(out, " --%s %s", opt_info((enum opt_id)i)->name, mend_words(o->meta[i].text, word));
    str_add(out, "\n");
}
