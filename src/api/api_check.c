/* api_check.c - `stretto check`: what is wrong or odd about a file, and a config that would work. */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/json.h"
#include "data/check.h"
#include "data/time.h"
#include "learn/series_set.h"

static void finding_text(const struct finding *f, struct str *out) {
    size_t n = strcspn(f->r.text, "\n");
    str_addf(out, "%s[%c%03d] %s%s%.*s\n", f->warning ? "warning" : "error", f->warning ? 'W' : 'E', f->r.code, f->r.where,
             f->r.where[0] ? ": " : "", (int)n, f->r.text);
    str_add_lines(out, "  ", f->r.text + n + (f->r.text[n] ? 1 : 0));
    str_add_lines(out, "  fix: ", f->r.fix);
}

static struct js *finding_json(const struct finding *f) {
    struct js *o = js_object();
    char code[16];
    snprintf(code, sizeof code, "%c%03d", f->warning ? 'W' : 'E', f->r.code);
    js_put_text(o, "code", code);
    js_put_bool(o, "warning", f->warning);
    js_put_text(o, "where", f->r.where);
    js_put_text(o, "text", f->r.text);
    js_put_text(o, "fix", f->r.fix);
    return o;
}

static void describe_table(const struct table *t, struct str *out) {
    static const char *const type[] = {"number", "time", "category"};
    f64 value;
    str_addf(out, "%s: %lld rows, %d columns\n", t->path, (long long)t->nrow, t->ncol);
    for (i32 i = 0; i < t->ncol; i++) {
        const struct column *c = &t->col[i];
        const i32 wide = 24 + (i32)strlen(c->name) - str_columns(c->name);
        str_addf(out, "  %-*s %s", wide, c->name, type[c->type]);
        if (c->type == COL_CATEGORY) str_addf(out, ", %d words", c->nword);
        if (column_constant(c, t->nrow, &value)) str_addf(out, ", always %.6g", value);
        if (c->missing)
            str_addf(out, ", %lld missing (first at line %lld)", (long long)c->missing, (long long)c->first_missing_line);
        str_add(out, "\n");
    }
}

static void quoted(struct str *out, const char *text) {
    str_add(out, "\"");
    for (const char *p = text; *p; p++) str_addf(out, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    str_add(out, "\"");
}

/* Options for a config: those that the user gave about the data, and a horizon that fits the file. */
static void propose(const struct options *o, const struct series *s, struct str *out) {
    str_add(out, "target: [");
    for (i32 i = 0; i < s->ntarget; i++) {
        if (i) str_add(out, ", ");
        quoted(out, s->name[i]);
    }
    str_add(out, "]\n");
    for (i32 i = 0; i < OPT_COUNT; i++) {
        const struct opt_info *info = opt_info((enum opt_id)i);
        if (info->group != OPT_DATA || i == OPT_target || !opt_given(o, (enum opt_id)i)) continue;
        str_addf(out, "%s: ", info->name);
        quoted(out, o->meta[i].text);
        str_add(out, "\n");
    }
    i64 horizon = s->freq.season > 1 && s->freq.season * 6 <= s->nrow ? s->freq.season : lmax(1, s->nrow / 12);
    str_addf(out, "horizon: %lld\n", (long long)(opt_is_auto(o, OPT_horizon) ? horizon : o->horizon));
}

struct checking {
    struct findings found;
    struct table *t;
    struct series *s;
    bool open; /* no target is chosen: the series holds all columns that could be one */
    struct str text, config;
};

/* True if the role of a column could not be determined. */
static bool is_role(i32 code) { return code == E102 || code == E105 || code == E214; }

/* Without a chosen target the rows are checked all the same: every column counts as a target. */
static err look_without_target(struct checking *c, struct series_options so) {
    struct findings rest;
    so.target = "all";
    so.past = so.known = so.cat = NULL;
    c->open = true;
    TRY(check_table(c->t, &so, &rest, &c->s));
    for (i32 i = 0; i < rest.n; i++) {
        const i32 code = rest.item[i].r.code;
        if (code != E212 && !is_role(code)) /* a constant column matters only as a target */
            findings_add(&c->found, rest.item[i].warning, rest.item[i].column, &rest.item[i].r);
    }
    c->found.more += rest.more;
    const size_t skip = strncmp(rest.roles, "target ", 7) == 0 ? 7 : 0;
    snprintf(c->found.roles, sizeof c->found.roles, "no --target yet among %.670s", rest.roles + skip);
    return 0;
}

/* Puts the findings of the reader first; a column with unreadable cells gets no finding about missing cells, too. */
static void put_cells_first(struct checking *c, struct findings *cells) {
    const i32 ncell = cells->n;
    for (i32 i = 0; i < c->found.n; i++) {
        const struct finding *f = &c->found.item[i];
        bool again = false;
        for (i32 k = 0; k < ncell && f->r.code == E207; k++) again |= cells->item[k].column == f->column;
        if (!again) findings_add(cells, f->warning, f->column, &f->r);
    }
    cells->more += c->found.more;
    memcpy(cells->roles, c->found.roles, sizeof cells->roles);
    c->found = *cells;
    series_free(c->s); /* unread cells count as missing there: the series is wrong */
    c->s = NULL;
}

/* targeted: the user wants a target, so a missing one is the first finding. */
static err look(struct checking *c, const struct options *o, const char *path, bool targeted) {
    struct read_options r = read_options_of(o);
    struct series_options so = series_options_of(o);
    struct findings cells = {0};
    r.found = &cells;
    err e = table_read(path, &r, &c->t);
    if (e < 0 && cells.n < 2) return e; /* nothing else to tell */
    if (e >= 0) TRY(check_table(c->t, &so, &c->found, &c->s));
    if (c->t && c->found.n > 0 && !c->found.item[0].warning && is_role(c->found.item[0].r.code)) {
        c->found.n = targeted || c->found.item[0].r.code != E105;
        TRY(look_without_target(c, so));
    }
    if (cells.n) put_cells_first(c, &cells);
    if (c->s && !c->open) propose(o, c->s, &c->config);
    return 0;
}

/* Columns with gaps that the same option fixes: the text shows the first one, the JSON all. */
static bool alike(const struct finding *a, const struct finding *b) {
    return a->r.code == E207 && b->r.code == E207 && strcmp(a->r.fix, b->r.fix) == 0;
}

static void findings_text(const struct findings *f, struct str *out) {
    for (i32 i = 0; i < f->n; i++) {
        i32 before = 0, behind = 0;
        for (i32 k = 0; k < i; k++) before += alike(&f->item[k], &f->item[i]);
        for (i32 k = i + 1; k < f->n; k++) behind += alike(&f->item[k], &f->item[i]);
        if (before > 0) continue;
        finding_text(&f->item[i], out);
        if (behind > 0) str_addf(out, "  the same in %d more column%s: --json lists them\n", behind, behind == 1 ? "" : "s");
    }
    if (f->more) str_addf(out, "and %lld more\n", (long long)f->more);
    if (f->n == 0) str_add(out, "no problem found\n");
}

static err show(struct checking *c, int json) {
    if (!json) {
        if (c->t) describe_table(c->t, &c->text);
        if (c->found.roles[0]) str_addf(&c->text, "columns: %s\n", c->found.roles);
        if (c->s) {
            char span[72];
            span_label(c->s, 0, c->s->nrow, span);
            str_addf(&c->text, "series: %s, %s, season %d\n", c->s->freq.name[0] ? c->s->freq.name : "no time", span,
                     c->s->freq.season);
            const i64 merged = c->s->merged;
            if (merged)
                str_addf(&c->text, "merged: %lld row%s that had the time of the row before (--dups)\n", (long long)merged,
                         merged == 1 ? "" : "s");
        }
        findings_text(&c->found, &c->text);
        if (c->config.len) str_addf(&c->text, "a config that fits:\n%s", str_text(&c->config));
        return 0;
    }
    struct js *o = js_object(), *list = js_array();
    for (i32 i = 0; i < c->found.n; i++) js_push(list, finding_json(&c->found.item[i]));
    if (c->t) js_put_i64(o, "rows", c->t->nrow);
    if (c->t) js_put_i64(o, "columns", c->t->ncol);
    if (c->found.roles[0]) js_put_text(o, "roles", c->found.roles);
    if (c->s) js_put_i64(o, "merged", c->s->merged);
    js_put(o, "findings", list);
    js_put_text(o, "config", str_text(&c->config));
    err e = js_text(o, &c->text, 2);
    js_free(o);
    return e;
}

static err look_and_show(stretto_config *config, const char *path, int json, bool targeted, char **out, char **proposed_config) {
    struct checking c = {0};
    *out = NULL;
    if (proposed_config) *proposed_config = NULL;
    err e = look(&c, &config->o, path, targeted);
    if (e >= 0) e = show(&c, json);
    if (e >= 0) e = text_give(&c.text, out);
    if (e >= 0 && proposed_config && c.config.len) e = text_give(&c.config, proposed_config);
    for (i32 i = 0; e >= 0 && i < c.found.n; i++)
        if (!c.found.item[i].warning) {
            err_put(&c.found.item[i].r);
            e = -c.found.item[i].r.code;
        }
    str_free(&c.text);
    str_free(&c.config);
    series_free(c.s);
    table_free(c.t);
    return e;
}

stretto_err stretto_check(stretto_config *config, const char *path, int json, char **out, char **proposed_config) {
    return look_and_show(config, path, json, true, out, proposed_config);
}

stretto_err stretto_data_info(stretto_config *config, const char *path, int json, char **out) {
    return look_and_show(config, path, json, false, out, NULL);
}
