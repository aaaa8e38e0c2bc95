/* opt_dump.c - every value with its origin, as YAML that loads again and as JSON.
 *
 *     target: value                 # load.yaml:3
 *     hidden: 64                    # flag (preset panel: 40)
 *     context: 72                   # auto: 3 x horizon
 *     task: forecast                # default */
#include <string.h>

#include "opt/opt.h"

enum { COMMENT_COLUMN = 30 };

/* Order of a dump: values of the user, then values resolved from "auto", then presets and defaults. */
static i32 shown_as(const struct opt_meta *m) {
    if (m->rank >= OPT_RANK_FILE && !m->resolved) return m->rank == OPT_RANK_FILE ? 0 : 1;
    if (m->resolved) return 2;
    return m->rank == OPT_RANK_PRESET ? 3 : 4;
}

/* Options in the order of a dump; returns how many. */
static i32 ordered(const struct options *o, u32 verbs, enum opt_id id[OPT_COUNT]) {
    i32 n = 0;
    for (i32 i = 0; i < OPT_COUNT; i++) {
        const struct opt_info *info = opt_info((enum opt_id)i);
        bool acts = i == OPT_config || i == OPT_print_config; /* not part of a configuration */
        if (!(info->verbs & verbs) || info->group == OPT_HIDDEN || acts) continue;
        const struct opt_meta *m = &o->meta[i];
        i32 at = n++;
        for (; at > 0; at--) {
            const struct opt_meta *before = &o->meta[id[at - 1]];
            i32 a = shown_as(before), b = shown_as(m);
            if (a < b || (a == b && before->order < m->order)) break;
            id[at] = id[at - 1];
        }
        id[at] = (enum opt_id)i;
    }
    return n;
}

static void add_quoted(struct str *out, const char *text) {
    str_add(out, "\"");
    for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
        if (*s == '"' || *s == '\\') str_addf(out, "\\%c", *s);
        else if (*s < 32 || *s == 127) str_addf(out, "\\u%04x", *s);
        else str_addn(out, (const char *)s, 1);
    }
    str_add(out, "\"");
}

/* Unquoted if every YAML reader reads it as the same string, otherwise quoted. */
static void add_yaml(struct str *out, const char *text) {
    static const char *const special[] = {"null",  "Null",  "NULL",  "~",   "true", "True", "TRUE",
                                          "false", "False", "FALSE", "nan", "inf"};
    size_t n = strlen(text);
    bool plain = n > 0 && text[0] != ' ' && text[n - 1] != ' ' && !strchr("-?.=", text[0]);
    for (size_t i = 0; plain && i < n; i++)
        plain = (unsigned char)text[i] > 31 && text[i] != 127 && !strchr(",[]{}:#&*!|>'\"%@`\\", text[i]);
    for (size_t i = 0; plain && i < COUNT(special); i++) plain = strcmp(text, special[i]) != 0;
    if (plain) str_add(out, text);
    else add_quoted(out, text);
}

static void add_items(struct str *out, const char *text, bool numbers, bool json) {
    char item[512];
    str_add(out, "[");
    bool first = true;
    for (const char *p = text; str_list_next(&p, item, sizeof item); first = false) {
        if (!first) str_add(out, ", ");
        if (numbers) str_add(out, item);
        else if (json) add_quoted(out, item);
        else add_yaml(out, item);
    }
    str_add(out, "]");
}

static bool is_list(enum opt_type t) { return t == OPT_LIST || t == OPT_NUMS; }

static void pad_to(struct str *out, size_t start, size_t column) {
    while (out->len - start < column && !out->failed) str_add(out, " ");
}

void opt_dump_line(const struct options *o, enum opt_id id, struct str *out) {
    const struct opt_info *info = opt_info(id);
    const struct opt_meta *m = &o->meta[id];
    const size_t start = out->len;
    str_addf(out, "%s: ", info->name);
    if (is_list(info->type) && strchr(m->text, ',')) add_items(out, m->text, info->type == OPT_NUMS, false);
    else add_yaml(out, m->text);
    pad_to(out, start, COMMENT_COLUMN - 1);
    str_addf(out, " # %s", m->origin);
    if (m->preset && o->preset_name) str_addf(out, " (preset %s: %s)", o->preset_name, m->preset);
    str_add(out, "\n");
}

void opt_dump(const struct options *o, u32 verbs, struct str *out) {
    enum opt_id id[OPT_COUNT];
    const i32 n = ordered(o, verbs, id);
    for (i32 i = 0; i < n; i++) opt_dump_line(o, id[i], out);
}

static void add_json_value(struct str *out, const struct opt_info *info, const char *text, bool is_auto) {
    if (is_list(info->type)) add_items(out, text, info->type == OPT_NUMS, true);
    else if (info->type == OPT_BOOL) str_add(out, strcmp(text, "yes") == 0 ? "true" : "false");
    else if ((info->type == OPT_INT || info->type == OPT_REAL) && !is_auto) str_add(out, text);
    else add_quoted(out, text);
}

static void dump_members(const struct options *o, u32 verbs, bool origins, struct str *out) {
    enum opt_id id[OPT_COUNT];
    i32 n = ordered(o, verbs, id);
    str_add(out, "{");
    for (i32 i = 0; i < n; i++) {
        const struct opt_meta *m = &o->meta[id[i]];
        str_addf(out, "%s\n  \"%s\": ", i ? "," : "", opt_info(id[i])->name);
        if (origins) add_quoted(out, m->origin);
        else add_json_value(out, opt_info(id[i]), m->text, opt_is_auto(o, id[i]));
    }
    str_add(out, "\n}\n");
}

void opt_dump_json(const struct options *o, u32 verbs, struct str *out) { dump_members(o, verbs, false, out); }
void opt_dump_origins(const struct options *o, u32 verbs, struct str *out) { dump_members(o, verbs, true, out); }
