/* api_check.c - `stretto check`: reports problems of a data file and proposes a config that works. */
#include <stdio.h>
#include <string.h>

#include "api/advice.h"
#include "api/check.h"
#include "base/json.h"
#include "data/names.h"
#include "data/time.h"
#include "learn/column_rank.h"
#include "learn/series_set.h"

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
        if (c->missing) {
            char where[256];
            table_line_where(t, c->first_missing_line, where);
            str_addf(out, ", %lld missing (first at %s)", (long long)c->missing, where);
        }
        str_add(out, "\n");
    }
}

static void quoted(struct str *out, const char *text) {
    str_add(out, "\"");
    for (const char *p = text; *p; p++) str_addf(out, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    str_add(out, "\"");
}

/* Options for a config: those about the data, as the user and the remedies set them, and the horizon of a training. */
static void propose(const struct options *o, const struct series *s, i64 horizon, struct str *out) {
    str_add(out, "target: [");
    for (i32 i = 0; i < (s->panel ? 1 : s->ntarget); i++) {
        if (i) str_add(out, ", ");
        quoted(out, s->panel ? s->column[i] : s->name[i]);
    }
    str_add(out, "]\n");
    for (i32 i = 0; i < OPT_COUNT; i++) {
        if (i == OPT_target || i == OPT_horizon || !advice_concerns(o, i)) continue;
        str_addf(out, "%s: ", opt_info((enum opt_id)i)->name);
        quoted(out, o->meta[i].text);
        str_add(out, "\n");
    }
    str_addf(out, "horizon: %lld\n", (long long)horizon);
}

enum { ROUNDS = 8 };

/* A check reads the file, applies the first remedy of every finding and reads again until no error is left. So one call
 * finds what `train` would report in several. */
struct checking {
    struct options o;         /* as given, then with remedies */
    struct findings found;    /* errors of all rounds; warnings of the last */
    struct table *t;
    struct series_set *set;   /* NULL = errors are left */
    bool targeted;            /* the user named a target: report if it is missing */
    bool guessed;             /* the target */
    bool dropped;             /* the given roles do not fit: other columns were examined */
    i64 horizon;              /* of a training, if set is not NULL */
    struct split split;
    struct column_ranks ranks; /* n = 0: not asked for */
    struct str table, text, config, command;
};

/* True if the role of a column could not be determined. */
static bool is_role(i32 code) { return code == E102 || code == E105 || code == E214; }

static i32 errors_of(const struct findings *f) {
    i32 n = 0;
    for (i32 i = 0; i < f->n; i++) n += !f->item[i].warning;
    return n;
}

/* Puts the findings of the reader first; a column with unreadable cells gets no finding about missing cells, too. */
static void put_cells_first(struct findings *found, struct findings *cells) {
    const i32 ncell = cells->n;
    for (i32 i = 0; i < found->n; i++) {
        const struct finding *f = &found->item[i];
        bool again = false;
        for (i32 k = 0; k < ncell && f->r.code == E207; k++) again |= cells->item[k].column == f->column;
        if (!again) findings_add(cells, f->warning, f->column, &f->r);
    }
    cells->more += found->more;
    memcpy(cells->roles, found->roles, sizeof cells->roles);
    *found = *cells;
}

/* Collects the errors that a training with these options would report before its first step. Takes ownership of s. */
static err try_training(struct checking *c, const char *path, struct series *s, struct findings *found) {
    TRY(series_set_make(s, path, &c->set));
    stretto_data data = {.set = &c->set->set};
    const err e = trainer_check(&c->o, &data, &c->horizon, &c->split);
    if (e == -E601) return e;
    if (e < 0) {
        findings_add(found, false, NO_COLUMN, err_last());
        return 0;
    }
    str_free(&c->config);
    propose(&c->o, c->set->s, c->horizon, &c->config);
    return 0;
}

/* One round: reads the file and collects what is wrong. */
static err look_once(struct checking *c, const char *path, struct findings *found) {
    struct read_options r = read_options_of(&c->o);
    struct series_options so = series_options_of(&c->o);
    struct findings cells = {0};
    struct series *s = NULL;
    table_free(c->t);
    if (c->set) dataset_free(&c->set->set);
    c->t = NULL;
    c->set = NULL;
    *found = (struct findings){0};
    r.found = &cells;
    const err e = table_read(path, &r, &c->t);
    if (e < 0 && (cells.n < 2 || e == -E601)) return e; /* nothing else to report */
    if (c->t && !c->table.len) describe_table(c->t, &c->table);
    if (e >= 0) TRY(check_table(c->t, &so, found, &s));
    if (cells.n) { /* unreadable cells would count as missing and make the series wrong */
        put_cells_first(found, &cells);
        series_free(s);
        s = NULL;
    }
    return s ? try_training(c, path, s, found) : 0;
}

/* --target is missing: `check` continues with a guess, `train` fails. */
static void put_guess(struct checking *c, const struct finding *f) {
    enum { W36 = 36 };
    struct err_record r = f->r;
    r.code = W36;
    c->guessed = true;
    snprintf(r.text, sizeof r.text, "--target is missing: the config below takes the best guess, train asks for one%s",
             strchr(f->r.text, '\n') ? strchr(f->r.text, '\n') : "");
    if (c->targeted) findings_add(&c->found, true, NO_COLUMN, &r);
}

/* Adds the errors of a round that are new, and applies their first remedies. */
static err take_advice(struct checking *c, const struct findings *found, bool *changed) {
    bool wrong = false, cat = false; /* wrong: a given role does not fit; cat: it came from --cat */
    for (i32 i = 0; i < found->n; i++) {
        const struct finding *f = &found->item[i];
        bool known = f->warning, helps = false;
        if (f->warning) continue;
        for (i32 k = 0; k < c->found.n && !known; k++)
            known = c->found.item[k].r.code == f->r.code && c->found.item[k].column == f->column &&
                    !strcmp(c->found.item[k].r.text, f->r.text);
        if (f->r.code == E105) put_guess(c, f);
        else if (!known) findings_add(&c->found, false, f->column, &f->r);
        TRY(advice_apply(&c->o, f->r.fix, &helps));
        wrong |= is_role(f->r.code) && !helps;
        cat |= f->r.code == E102 && strstr(f->r.text, "(given by --cat)");
        *changed |= helps;
    }
    c->found.more += found->more;
    if (!wrong || c->dropped) return 0;
    static const enum opt_id roles[] = {OPT_target, OPT_past, OPT_known, OPT_cat};
    c->dropped = *changed = true; /* the next round examines other columns */
    for (size_t i = 0; i + !cat < COUNT(roles); i++) TRY(opt_set_id(&c->o, roles[i], "", &OPT_API));
    c->targeted = false;
    return 0;
}

static err look(struct checking *c, const char *path) {
    struct findings found;
    bool again = true;
    for (i32 round = 0; again && round < ROUNDS; round++) {
        again = false;
        const err e = look_once(c, path, &found);
        if (e < 0 && (round == 0 || e == -E601)) return e;
        if (e < 0) findings_add(&found, false, NO_COLUMN, err_last());
        if (errors_of(&found)) TRY(take_advice(c, &found, &again));
    }
    memcpy(c->found.roles, found.roles, sizeof found.roles);
    for (i32 i = 0; i < found.n; i++)
        if (found.item[i].warning) findings_add(&c->found, true, found.item[i].column, &found.item[i].r);
    if (errors_of(&found) || c->dropped) str_free(&c->config);
    else if (errors_of(&c->found) || c->guessed) advice_command(&c->o, path, &c->command);
    return str_ok(&c->table);
}

static bool is_in_series(const struct series *s, const char *name) {
    bool found = false;
    for (i32 i = 0; i < s->ncol; i++) found |= strcmp(s->name[i], name) == 0;
    return found;
}

/* Names of the columns of numbers that the series lacks, as a list for --past. */
static void other_columns(const struct checking *c, struct str *out) {
    const struct series *s = c->set->s;
    for (i32 i = 0; i < c->t->ncol; i++) {
        const struct column *col = &c->t->col[i];
        f64 value;
        const bool useful = col->type == COL_NUMBER && !strchr(col->name, ',') && !column_constant(col, c->t->nrow, &value);
        if (useful && !is_in_series(s, col->name) && !name_listed(s->time_columns, col->name))
            str_addf(out, "%s%s", out->len > 0 ? "," : "", col->name);
    }
}

static err series_with(const struct checking *c, const char *past, struct findings *found, struct series **out) {
    struct options o;
    TRY(opt_copy(&o, &c->o));
    const char *time = c->set->s->time_columns;
    err e = opt_set_id(&o, OPT_past, past, &OPT_API);
    if (e >= 0 && *time && !opt_given(&o, OPT_time)) e = opt_set_id(&o, OPT_time, time, &OPT_API);
    const struct series_options so = series_options_of(&o);
    if (e >= 0) e = check_table(c->t, &so, found, out);
    opt_free(&o);
    return e;
}

/* Where no columns were given beside the target, the others stand as past ones: which of them to give is what the user asks.
 * *out: NULL = there are none. */
static err series_of_all(const struct checking *c, struct series **out) {
    struct findings found = {0};
    struct str past = {0};
    *out = NULL;
    if (opt_given(&c->o, OPT_past) || opt_given(&c->o, OPT_known)) return 0;
    other_columns(c, &past);
    const err e = past.len > 0 ? series_with(c, str_text(&past), &found, out) : 0;
    str_free(&past);
    return e;
}

/* --importance: where a training is possible. */
static err rank_columns(struct checking *c) {
    struct run_context w = {0};
    struct series *all = NULL;
    const struct events none = {0};
    if (!c->o.importance || !c->set) return 0;
    if (c->set->s->panel)
        return FAIL_AT(E106, NULL, "the rows of one series in a file   or   no --importance",
                       "--importance ranks the columns of one series, --id makes a panel of %d", c->set->s->ntarget);
    err e = series_of_all(c, &all);
    if (e >= 0) e = run_context_open(&c->o, &none, NULL, false, &w);
    if (e >= 0) e = column_ranks_make(all ? all : c->set->s, c->split.train, c->horizon, &c->o, &w.use, &c->ranks);
    run_context_close(&w);
    series_free(all);
    return e;
}

enum { BAR = 30 };

static void ranks_text(const struct column_ranks *r, const char *target, struct str *out) {
    if (r->n == 0) return;
    str_addf(out, "importance of columns for %s, %lld row%s ahead (forest of %d trees on %lld rows, R2 %.2f out of bag):\n",
             target, (long long)r->horizon, r->horizon == 1 ? "" : "s", r->trees, (long long)r->rows, r->r2);
    for (i32 i = 0; i < r->n; i++) {
        const struct column_rank *one = &r->of[i];
        const i32 bar = (i32)(one->share / dmax(1e-9, r->of[0].share) * BAR + 0.5);
        const i32 wide = 24 + (i32)strlen(one->name) - str_columns(one->name);
        str_addf(out, "  %-*s %5.1f%%  ", wide, one->name, 100 * one->share);
        for (i32 k = 0; k < bar; k++) str_add(out, "#");
        str_addf(out, "%s\n", one->chance ? "  no more than random numbers" : "");
    }
}

static struct js *ranks_json(const struct column_ranks *r) {
    struct js *o = js_object(), *list = js_array();
    for (i32 i = 0; i < r->n; i++) {
        struct js *one = js_object();
        js_put_text(one, "column", r->of[i].name);
        js_put_f64(one, "share", r->of[i].share);
        js_put_bool(one, "chance", r->of[i].chance);
        js_push(list, one);
    }
    js_put_i64(o, "horizon", r->horizon);
    js_put_i64(o, "rows", r->rows);
    js_put_i64(o, "trees", r->trees);
    js_put_f64(o, "r2_out_of_bag", r->r2);
    js_put(o, "columns", list);
    return o;
}

/* Merges findings of one kind in several columns: the text shows the first and names the other columns, the JSON has all.
 * Non-numeric cells are of one kind if they contain the same word. */
static bool alike(const struct finding *a, const struct finding *b) {
    return a->column != NO_COLUMN && b->column != NO_COLUMN && a->warning == b->warning && a->r.code == b->r.code &&
           (a->r.code != E204 || strcmp(a->r.fix, b->r.fix) == 0);
}

enum { ALIKE_NAMES = 300 };

static void findings_text(const struct checking *c, struct str *out) {
    const struct findings *f = &c->found;
    for (i32 i = 0; i < f->n; i++) {
        const char *name[FINDINGS_MAX];
        char list[ALIKE_NAMES];
        i32 before = 0, behind = 0, series = 0; /* series: of the same column, in a panel */
        for (i32 k = 0; k < i; k++) before += alike(&f->item[k], &f->item[i]);
        for (i32 k = i + 1; k < f->n && before == 0; k++) {
            if (!alike(&f->item[k], &f->item[i])) continue;
            if (f->item[k].column == f->item[i].column) series++;
            else name[behind++] = c->t ? c->t->col[f->item[k].column].name : "?";
        }
        if (before > 0) continue;
        finding_text(&f->item[i], out);
        name_list(name, behind, list, sizeof list);
        if (series > 0) str_addf(out, "  the same in %d more series\n", series);
        if (behind > 0) str_addf(out, "  the same in %d more column%s: %s\n", behind, behind == 1 ? "" : "s", list);
    }
    if (f->more) str_addf(out, "and %lld more\n", (long long)f->more);
    if (f->n == 0) str_add(out, "no problem found\n");
}

static void series_text(const struct series *s, struct str *out) {
    char span[72];
    span_label(s, 0, s->nrow, span);
    str_addf(out, "series: %s, %s, season %d", s->freq.name[0] ? s->freq.name : "no time", span, s->freq.season);
    if (s->freq.season2 > 1) str_addf(out, " and %d", s->freq.season2);
    str_add(out, "\n");
    if (s->merged)
        str_addf(out, "merged: %lld row%s that had the time of the row before (--dups)\n", (long long)s->merged,
                 s->merged == 1 ? "" : "s");
}

static err show(struct checking *c, int json) {
    if (!json) {
        str_add(&c->text, str_text(&c->table));
        if (c->found.roles[0])
            str_addf(&c->text, "columns%s: %s\n", c->guessed ? " (the target is a guess)" : "", c->found.roles);
        if (c->set) series_text(c->set->s, &c->text);
        findings_text(c, &c->text);
        ranks_text(&c->ranks, c->set ? c->set->s->name[0] : "", &c->text);
        if (c->command.len) str_addf(&c->text, "all of it in one command:\n  %s", str_text(&c->command));
        if (c->config.len) str_addf(&c->text, "a config that fits:\n%s", str_text(&c->config));
        return 0;
    }
    struct js *o = js_object(), *list = js_array();
    for (i32 i = 0; i < c->found.n; i++) js_push(list, finding_json(&c->found.item[i]));
    if (c->t) js_put_i64(o, "rows", c->t->nrow);
    if (c->t) js_put_i64(o, "columns", c->t->ncol);
    if (c->found.roles[0]) js_put_text(o, "roles", c->found.roles);
    if (c->set) js_put_i64(o, "merged", c->set->s->merged);
    js_put(o, "findings", list);
    if (c->ranks.n > 0) js_put(o, "importance", ranks_json(&c->ranks));
    if (c->command.len) js_put_text(o, "command", str_text(&c->command));
    js_put_text(o, "config", str_text(&c->config));
    err e = js_text(o, &c->text, 2);
    js_free(o);
    return e;
}

static err look_and_show(stretto_config *config, const char *path, int json, bool targeted, char **out, char **proposed_config) {
    struct checking c = {.targeted = targeted};
    *out = NULL;
    if (proposed_config) *proposed_config = NULL;
    err e = opt_copy(&c.o, &config->o);
    if (e >= 0) e = look(&c, path);
    if (e >= 0) e = rank_columns(&c);
    if (e >= 0) e = show(&c, json);
    if (e >= 0) e = text_give(&c.text, out);
    if (e >= 0 && proposed_config && c.config.len) e = text_give(&c.config, proposed_config);
    for (i32 i = 0; e >= 0 && i < c.found.n; i++)
        if (!c.found.item[i].warning) {
            err_put(&c.found.item[i].r);
            e = -c.found.item[i].r.code;
        }
    str_free(&c.table);
    str_free(&c.text);
    str_free(&c.config);
    str_free(&c.command);
    column_ranks_free(&c.ranks);
    if (c.set) dataset_free(&c.set->set);
    table_free(c.t);
    opt_free(&c.o);
    return e;
}

stretto_err stretto_check(stretto_config *config, const char *path, int json, char **out, char **proposed_config) {
    const struct learner *l;
    *out = NULL;
    if (proposed_config) *proposed_config = NULL;
    TRY(learner_of(&config->o, &l));
    if (l->data != &data_series) return check_records(&config->o, l, path, json, out);
    return look_and_show(config, path, json, true, out, proposed_config);
}

stretto_err stretto_data_info(stretto_config *config, const char *path, int json, char **out) {
    return look_and_show(config, path, json, false, out, NULL);
}
