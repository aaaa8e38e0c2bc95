/* config.c - YAML events -> opt_set.
 *
 *     text --check: UTF-8, tabs--> libyaml --events--> { key value }* --opt_set(rank file, "load.yaml:5")--> options
 *
 * A file is one flat mapping.  Every other shape is refused where it begins, so depth is bounded by 2. */
#include "api/config.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/mem.h"

enum { CONFIG_MAX = 1 << 18, NAME_MAX_SHOWN = 60 };

struct reader {
    yaml_parser_t yaml;
    yaml_event_t event;
    bool has_event;
    const char *name; /* name of the file */
    struct options *o;
    i64 line[OPT_COUNT]; /* where an option was set, 0 = not yet */
};

static err fail_at(const char *name, size_t line, size_t column, const char *fix, const char *text) {
    char where[256];
    snprintf(where, sizeof where, "%s:%zu:%zu", name, line + 1, column + 1);
    return FAIL_AT(E104, where, fix, "%s", text);
}

/* E104 at the current event. */
static err refuse(const struct reader *r, const char *fix, const char *text) {
    yaml_mark_t at = r->event.start_mark;
    return fail_at(r->name, at.line, at.column, fix, text);
}

/* The error of libyaml as a message about this file. */
static err syntax(const struct reader *r) {
    static const struct {
        const char *problem, *text, *fix;
    } known[] = {
        {"could not find expected ':'", "a line without \": \" between name and value", "name: value"},
        {"mapping values are not allowed", "a second \": \" in the line, or a line set further in than the one above",
         "name: \"text: with colon\"   or remove the spaces in front"},
        {"did not find expected <document start>", "a line set further in or out than the lines above",
         "begin every line in the first column"},
        {"did not find expected key", "a line set further in or out than the lines above",
         "begin every line in the first column"},
        {"unexpected end of stream", "a quote that is never closed", "close the quote"},
        {"did not find expected ',' or ']'", "a list that is never closed, or without commas", "name: [a, b]"},
        {"did not find expected node content", "a list that is never closed, or a comma too many", "name: [a, b]"},
        {"did not find expected ',' or '}'", "a brace that is never closed, or without commas",
         "{\"name\": value, \"name\": value}"},
        {"cannot start any token", "a value that begins with a sign of YAML", "name: \"value\"   (in quotes)"},
        {"expected alphabetic or numeric", "a value that begins with a sign of YAML", "name: \"value\"   (in quotes)"},
        {"unknown escape character", "a backslash in double quotes that YAML does not know",
         "name: 'C:\\data'   (single quotes)"},
        {"control characters", "a control character", "remove it"},
    };
    const yaml_parser_t *y = &r->yaml;
    if (y->error == YAML_MEMORY_ERROR) return FAIL(E601, "no memory to read %s", r->name);
    const char *problem = y->problem ? y->problem : "";
    yaml_mark_t at = y->error == YAML_READER_ERROR ? y->mark : y->problem_mark;
    /* an unclosed quote or list: report where it begins, not the end of the file */
    if (y->context && (strstr(y->context, "quoted scalar") || strstr(y->context, "simple key") || strstr(y->context, "flow")) &&
        !strstr(problem, "escape"))
        at = y->context_mark;
    for (size_t i = 0; i < COUNT(known); i++)
        if (strstr(problem, known[i].problem)) return fail_at(r->name, at.line, at.column, known[i].fix, known[i].text);
    char text[200];
    snprintf(text, sizeof text, "YAML is not understood: %.120s", problem);
    return fail_at(r->name, at.line, at.column, "stretto help config   (shows the form)", text);
}

static err next(struct reader *r) {
    if (r->has_event) yaml_event_delete(&r->event);
    r->has_event = yaml_parser_parse(&r->yaml, &r->event) != 0;
    return r->has_event ? 0 : syntax(r);
}

/* Scalars without anchors and tags; anything else is refused with its name. */
static err plain_scalar(const struct reader *r, const char *what) {
    const yaml_event_t *e = &r->event;
    char text[120];
    if (e->type == YAML_ALIAS_EVENT || (e->type == YAML_SCALAR_EVENT && e->data.scalar.anchor))
        return refuse(r, "write the value out, or put it in quotes", "anchors (&) and aliases (*) are not used here");
    if (e->type == YAML_SCALAR_EVENT && e->data.scalar.tag && strcmp((const char *)e->data.scalar.tag, "!") != 0)
        return refuse(r, "put the value in quotes", "tags (!) are not used here: the option decides the type");
    if (e->type == YAML_SCALAR_EVENT) {
        bool runs_on = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && e->end_mark.line != e->start_mark.line;
        if (runs_on && strcmp(what, "a list") == 0)
            return refuse(r, "name: [a, b]", "a list that is never closed, or an item that runs on into the next line");
        if (runs_on)
            return refuse(r, "begin every line in the first column   or put the value in quotes",
                          "a value that runs on into the next line");
        if (strlen((const char *)e->data.scalar.value) == e->data.scalar.length) return 0;
        return refuse(r, "remove it", "a zero byte in a text");
    }
    snprintf(text, sizeof text, "%s within %s: a config file is flat, one \"name: value\" a line",
             e->type == YAML_MAPPING_START_EVENT ? "names" : "a list", what);
    return refuse(r, "name: value   or   name: [a, \"?\"]   (signs in quotes)", text);
}

/* Path of a file named in the config: relative ones count from the config's folder. */
static void add_path(const struct reader *r, struct str *out, const char *path) {
    const char *slash = strrchr(r->name, '/');
    if (path[0] && path[0] != '/' && slash) str_addn(out, r->name, (size_t)(slash - r->name) + 1);
    str_add(out, path);
}

/* The items of a YAML list as comma-separated text. */
static err list_value(struct reader *r, const struct opt_info *info, struct str *value) {
    char text[120], fix[120];
    if (info->type != OPT_LIST && info->type != OPT_NUMS) {
        snprintf(text, sizeof text, "%s takes one value, not a list", info->name);
        snprintf(fix, sizeof fix, "%s: %s", info->name, info->def[0] ? info->def : info->unit);
        return refuse(r, fix, text);
    }
    for (;;) {
        TRY(next(r));
        if (r->event.type == YAML_SEQUENCE_END_EVENT) return 0;
        TRY(plain_scalar(r, "a list"));
        const char *item = (const char *)r->event.data.scalar.value;
        if (!item[0]) return refuse(r, "name: [a, b]", "an empty item in a list");
        str_list_add(value, item);
    }
}

static err set_value(struct reader *r, enum opt_id id, struct str *value) {
    const struct opt_info *info = opt_info(id);
    char origin[256], where[256], fix[160], text[120];
    yaml_mark_t at = r->event.start_mark;
    snprintf(origin, sizeof origin, "%s:%zu", r->name, at.line + 1);
    snprintf(where, sizeof where, "%s:%zu:%zu", r->name, at.line + 1, at.column + 1);
    struct opt_from from = {.rank = OPT_RANK_FILE, .origin = origin, .where = where};
    if (r->event.type == YAML_SEQUENCE_START_EVENT) {
        TRY(list_value(r, info, value));
    } else {
        TRY(plain_scalar(r, "a value"));
        const char *scalar = (const char *)r->event.data.scalar.value;
        if (!scalar[0] && r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
            snprintf(text, sizeof text, "%s has no value", info->name);
            snprintf(fix, sizeof fix, "%s: %s   or remove the line", info->name, info->def[0] ? info->def : info->unit);
            return FAIL_AT(E103, where, fix, "%s", text);
        }
        if (info->type == OPT_PATH) add_path(r, value, scalar);
        else str_add(value, scalar);
    }
    TRY(str_ok(value));
    return opt_set_id(r->o, id, str_text(value), &from);
}

/* E101 for an unknown key. A key with nested keys, as "model:" of other programs, gets a message that describes the format
 * of a config file. */
static err unknown_key(struct reader *r, const struct opt_from *from) {
    char shown[160];
    snprintf(shown, sizeof shown, "%s", (const char *)r->event.data.scalar.value);
    if (next(r) < 0) err_clear(); /* ignore errors inside the nested part */
    else if (r->event.type == YAML_MAPPING_START_EVENT) return plain_scalar(r, "a value");
    return opt_unknown(strncmp(shown, "--", 2) == 0 ? shown + 2 : shown, shown, ~0u, from);
}

/* The option of a key; E101 if there is none, E104 if it was set before. */
static err find_key(struct reader *r, enum opt_id *id) {
    char where[256], text[160];
    TRY(plain_scalar(r, "a name"));
    const char *key = (const char *)r->event.data.scalar.value;
    yaml_mark_t at = r->event.start_mark;
    snprintf(where, sizeof where, "%s:%zu:%zu", r->name, at.line + 1, at.column + 1);
    struct opt_from from = {.rank = OPT_RANK_FILE, .where = where};
    if (strncmp(key, "--", 2) == 0) key += 2; /* opt_unknown then shows the name without dashes */
    i32 found = key != (const char *)r->event.data.scalar.value ? -1 : opt_find(key);
    if (found < 0) return unknown_key(r, &from);
    if (found == OPT_config || found == OPT_print_config || opt_info((enum opt_id)found)->group == OPT_HIDDEN)
        return FAIL_AT(E101, where, "remove the line", "%s is for the command line only", opt_info((enum opt_id)found)->name);
    if (r->line[found]) {
        snprintf(text, sizeof text, "%s was set before, in line %lld", key, (long long)r->line[found]);
        return refuse(r, "remove one of the two lines", text);
    }
    r->line[found] = (i64)at.line + 1;
    *id = (enum opt_id)found;
    return 0;
}

static err read_mapping(struct reader *r) {
    for (;;) {
        enum opt_id id = OPT_COUNT;
        TRY(next(r));
        if (r->event.type == YAML_MAPPING_END_EVENT) return 0;
        TRY(find_key(r, &id));
        TRY(next(r));
        struct str value = {0};
        err e = set_value(r, id, &value);
        str_free(&value);
        TRY(e);
    }
}

static err read_stream(struct reader *r) {
    char text[200];
    TRY(next(r)); /* stream start */
    TRY(next(r));
    if (r->event.type == YAML_STREAM_END_EVENT) return refuse(r, "horizon: 24", "the config file holds no options");
    TRY(next(r));
    if (r->event.type == YAML_SCALAR_EVENT) {
        snprintf(text, sizeof text, "\"%.*s\" is not of the form \"name: value\"", NAME_MAX_SHOWN, r->event.data.scalar.value);
        return refuse(r, "horizon: 24   (a colon and a space)", text);
    }
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return refuse(r, "horizon: 24", "the file is a list, and not lines of the form \"name: value\"");
    TRY(read_mapping(r));
    TRY(next(r)); /* document end */
    TRY(next(r));
    if (r->event.type == YAML_DOCUMENT_START_EVENT)
        return refuse(r, "one file for each, --config FILE", "a second document begins here; a config file is one");
    return 0;
}

/* Checks what libyaml reports unclearly: other encodings, and tabs at the start of a line. */
static err check_text(const char *text, size_t n, const char *name) {
    size_t line = 0, start = 0, i = 0;
    bool indent = true, json = false;
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) start = i = 3;
    for (size_t j = i; j < n && strchr(" \t\r\n{", text[j]) && text[j]; j++) json |= text[j] == '{';
    while (i < n) {
        const size_t bytes = (size_t)str_utf8(text + i, n - i);
        if (bytes == 0 || text[i] == 0)
            return fail_at(name, line, i - start, "save the file as UTF-8", "the file is not UTF-8 text");
        if (indent && text[i] == '\t' && !json)
            return fail_at(name, line, i - start, "replace the tab by spaces, or begin in the first column",
                           "a tab in front of a line");
        if (text[i] != ' ') indent = false;
        if (text[i] == '\n') {
            line++;
            start = i + 1;
            indent = true;
        }
        i += bytes;
    }
    return 0;
}

err config_parse(const char *text, size_t n, const char *name, struct options *o) {
    struct reader r = {.name = name, .o = o};
    TRY(check_text(text, n, name));
    if (!yaml_parser_initialize(&r.yaml)) return FAIL(E601, "no memory to read %s", name);
    yaml_parser_set_encoding(&r.yaml, YAML_UTF8_ENCODING);
    const size_t mark = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* libyaml would count it as a column */
    yaml_parser_set_input_string(&r.yaml, (const unsigned char *)text + mark, n - mark);
    err e = read_stream(&r);
    if (r.has_event) yaml_event_delete(&r.event);
    yaml_parser_delete(&r.yaml);
    return e;
}

err config_load(const char *path, struct options *o) {
    char *text;
    i64 n;
    TRY(file_load(path, CONFIG_MAX, &text, &n));
    err e = config_parse(text, (size_t)n, path, o);
    mem_free(text);
    return e;
}
