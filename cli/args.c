/* args.c - parses the command line; all facts about options come from the option table. */
#include "args.h"

#include <stdio.h>
#include <string.h>

struct parser {
    i32 argc, at;
    char *const *argv;
    struct options *o;
    struct args *out;
    bool only_args; /* after "--" */
};

/* E101 for a word that is no verb. */
static err unknown_verb(const char *word) {
    const char *names[VERB_COUNT];
    char fix[160];
    for (i32 i = 0; i < VERB_COUNT; i++) names[i] = verb_info((enum verb)i)->name;
    i32 near = str_nearest(word, names, VERB_COUNT);
    if (near >= 0) snprintf(fix, sizeof fix, "stretto %s   (did you mean this? stretto alone lists the verbs)", names[near]);
    else snprintf(fix, sizeof fix, "stretto   (lists the verbs)");
    return FAIL_AT(E101, NULL, fix, "there is no verb \"%.80s\"", word);
}

/* E101 for an option of other verbs: says which they are. */
static err other_verb(const struct opt_info *info, i32 verb) {
    struct str who = {0};
    char fix[200];
    for (i32 i = 0; i < VERB_COUNT; i++)
        if (info->verbs >> i & 1) str_addf(&who, "%s%s", who.len ? ", " : "", verb_info((enum verb)i)->name);
    bool schema = (verb == VERB_predict || verb == VERB_eval) && (info->group == OPT_DATA || info->group == OPT_MODEL);
    snprintf(fix, sizeof fix, "leave out --%s%s", info->name, schema ? "   (the model file knows its columns and settings)" : "");
    err e = FAIL_AT(E101, NULL, fix, "%s takes no --%s; it is an option of %s", verb_info((enum verb)verb)->name, info->name,
                    str_text(&who));
    str_free(&who);
    return e;
}

/* True if this argument is an option rather than a value. */
static bool looks_like_option(const char *arg) {
    char name[64];
    if (arg[0] != '-' || !arg[1]) return false;
    if (arg[1] != '-') return !arg[2] && (arg[1] == 'h' || opt_find_letter(arg[1]) >= 0);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(arg + 2, "="), arg + 2);
    return opt_find(name) >= 0 || (strncmp(name, "no-", 3) == 0 && opt_find(name + 3) >= 0);
}

/* The value of an option that needs one: behind '=', or the next argument. */
static err take_value(struct parser *p, const struct opt_info *info, const char *behind, const char **value) {
    *value = behind;
    if (behind) return 0;
    const char *next = p->at + 1 < p->argc ? p->argv[p->at + 1] : NULL;
    if (next && !looks_like_option(next)) {
        *value = next;
        p->at++;
        return 0;
    }
    struct str words = {0};
    char fix[200];
    if (info->type == OPT_WORD) opt_words_text(&words, p->o->lists, info, "|");
    snprintf(fix, sizeof fix, "--%s %s", info->name, words.len ? str_text(&words) : info->unit);
    str_free(&words);
    return FAIL_AT(E103, NULL, fix, "--%s needs a value%s%s", info->name, next ? ", and what follows is " : "", next ? next : "");
}

/* A repeated list option appends: --na x --na y is --na x,y. */
static err add_to_list(struct parser *p, i32 id, const char *value) {
    struct str all = {0};
    str_addf(&all, "%s,%s", p->o->meta[id].text, value);
    err e = str_ok(&all);
    if (e >= 0) e = opt_set_id(p->o, (enum opt_id)id, str_text(&all), &OPT_FLAG);
    str_free(&all);
    return e;
}

static err set_option(struct parser *p, i32 id, const char *behind, bool no) {
    const struct opt_info *info = opt_info((enum opt_id)id);
    const char *value = no ? "no" : behind ? behind : "yes";
    if (!(info->verbs >> p->out->verb & 1)) return other_verb(info, p->out->verb);
    if (info->type != OPT_BOOL) TRY(take_value(p, info, behind, &value));
    const bool again = p->o->meta[id].rank == OPT_RANK_FLAG && p->o->meta[id].text[0];
    /* --time of submit is not a list */
    if (info->type == OPT_LIST && again && p->out->verb != VERB_submit) return add_to_list(p, id, value);
    return opt_set_id(p->o, (enum opt_id)id, value, &OPT_FLAG);
}

/* --name, --name=value, --no-name */
static err long_option(struct parser *p, const char *arg) {
    char name[64];
    const char *body = arg + 2, *equals = strchr(body, '=');
    size_t n = equals ? (size_t)(equals - body) : strlen(body);
    snprintf(name, sizeof name, "%.*s", (int)n, body);
    if (strcmp(name, "help") == 0) return p->out->help = true, 0;
    i32 id = n < sizeof name ? opt_find(name) : -1;
    bool no = false;
    if (id < 0 && strncmp(name, "no-", 3) == 0) {
        id = opt_find(name + 3);
        no = id >= 0;
        if (no && opt_info((enum opt_id)id)->type != OPT_BOOL)
            return FAIL_AT(E101, NULL, NULL, "--%s takes a value and has no --%s", name + 3, name);
        if (no && equals) return FAIL_AT(E103, NULL, NULL, "--%s takes no value", name);
    }
    if (id < 0) return opt_unknown(name, arg, 1u << p->out->verb, &OPT_FLAG);
    return set_option(p, id, equals ? equals + 1 : NULL, no);
}

/* -o FILE, -oFILE, -q, -h */
static err short_option(struct parser *p, const char *arg) {
    if (strcmp(arg, "-h") == 0) return p->out->help = true, 0;
    i32 id = opt_find_letter(arg[1]);
    if (id < 0) return opt_unknown(arg + 1, arg, 1u << p->out->verb, &OPT_FLAG);
    if (arg[2] && opt_info((enum opt_id)id)->type == OPT_BOOL)
        return FAIL_AT(E101, NULL, NULL, "\"%.80s\": short options are written one by one", arg);
    return set_option(p, id, arg[2] ? arg + 2 : NULL, false);
}

/* "--norm yes": a switch takes no value. */
static err after_switch(const struct parser *p, const char *arg) {
    char fix[96];
    const char *flag = p->at > 0 ? p->argv[p->at - 1] : "";
    const bool no = strcmp(arg, "no") == 0;
    if ((!no && strcmp(arg, "yes") != 0) || strncmp(flag, "--", 2) != 0) return 0;
    const i32 id = opt_find(flag + 2);
    if (id < 0 || opt_info((enum opt_id)id)->type != OPT_BOOL) return 0;
    snprintf(fix, sizeof fix, "--%s%.60s", no ? "no-" : "", flag + 2);
    return FAIL_AT(E101, NULL, fix, "\"%.60s\" is a switch: no word follows it", flag);
}

static err positional(struct parser *p, const char *arg) {
    char name[64], fix[160];
    const struct verb_info *v = verb_info((enum verb)p->out->verb);
    const char *equals = strchr(arg, '=');
    if (!p->only_args) TRY(after_switch(p, arg));
    if (equals && !p->only_args && (size_t)(equals - arg) < sizeof name) {
        snprintf(name, sizeof name, "%.*s", (int)(equals - arg), arg);
        if (opt_find(name) >= 0) {
            snprintf(fix, sizeof fix, "--%s %.80s", opt_info((enum opt_id)opt_find(name))->name, equals + 1);
            return FAIL_AT(E101, NULL, fix, "\"%.80s\": options are written with two dashes", arg);
        }
    }
    if (p->out->narg >= v->most) {
        snprintf(fix, sizeof fix, "stretto %s %s", v->name, v->args);
        return FAIL_AT(E101, NULL, fix, "unexpected argument \"%.80s\"", arg);
    }
    p->out->arg[p->out->narg++] = arg;
    return 0;
}

static err one(struct parser *p) {
    const char *arg = p->argv[p->at];
    if (p->only_args || arg[0] != '-' || !arg[1]) return positional(p, arg);
    if (strcmp(arg, "--") == 0 && (p->out->verb == VERB_submit || p->out->verb == VERB_join)) {
        p->out->rest = p->argv + p->at + 1;
        p->out->nrest = p->argc - p->at - 1;
        p->at = p->argc;
        return 0;
    }
    if (strcmp(arg, "--") == 0) return p->only_args = true, 0;
    return arg[1] == '-' ? long_option(p, arg) : short_option(p, arg);
}

/* The verb at the front, or --version or --help in its place. */
static err find_verb(struct parser *p) {
    struct args *out = p->out;
    const char *word = p->argc > 1 ? p->argv[1] : NULL;
    if (!word || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        out->help = true;
        p->at = p->argc;
        return 0;
    }
    p->at = 2;
    if (strcmp(word, "--version") == 0) {
        out->version = true;
        out->verb = VERB_version;
        return 0;
    }
    if (word[0] == '-') return FAIL_AT(E101, NULL, "stretto VERB ... --options", "the verb comes first, not \"%.80s\"", word);
    out->verb = verb_find(word);
    return out->verb < 0 ? unknown_verb(word) : 0;
}

err args_missing(const struct args *a) {
    const struct verb_info *v = verb_info((enum verb)a->verb);
    char fix[160];
    snprintf(fix, sizeof fix, "stretto %s %s", v->name, v->args);
    if (v->least == 0) return FAIL_AT(E105, NULL, fix, "%s needs a command line after --", v->name);
    return FAIL_AT(E105, NULL, fix, "%s needs %s, %d given", v->name, v->least == 1 ? "an argument" : "two arguments", a->narg);
}

err args_parse(i32 argc, char *const *argv, struct options *o, struct args *out) {
    struct parser p = {.argc = argc, .argv = argv, .o = o, .out = out};
    *out = (struct args){.verb = -1};
    TRY(find_verb(&p));
    if (out->verb < 0) return 0;
    const struct verb_info *v = verb_info((enum verb)out->verb);
    const bool alone = argc == 2;
    for (; p.at < argc; p.at++) TRY(one(&p));
    out->missing = alone && !out->help && (v->least > 0 || out->verb == VERB_submit || out->verb == VERB_join);
    out->help |= out->missing || (alone && (out->verb == VERB_info || out->verb == VERB_plan));
    return out->help || out->narg >= v->least ? 0 : args_missing(out);
}
