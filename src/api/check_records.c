/* check_records.c - `stretto check --task forest ..`: what a training of another learner than the forecaster would report, and
 * records that are worth a look. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/advice.h"
#include "api/check.h"
#include "api/check_sequences.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/mend.h"
#include "learn/table_set.h"
#include "learn/tagger/tagger.h"
#include "learn/token_set.h"
#include "report/report.h"

enum { W37 = 37 };

struct records {
    const struct options *o;
    struct dataset *set;
    struct findings found;
    struct str facts, text;
};

static void add(struct records *r, const char *where, const char *fix, const char *text) {
    struct err_record w = {.code = W37};
    snprintf(w.where, sizeof w.where, "%s", where);
    snprintf(w.fix, sizeof w.fix, "%s", fix);
    snprintf(w.text, sizeof w.text, "%s", text);
    findings_add(&r->found, true, NO_COLUMN, &w);
}

/* ------------------------------------------------------------------ tables -------------------------------------------------- */

static u64 cell_hash(u64 h, const struct column *c, i64 row) {
    if (c->type == COL_NUMBER) return hash_bytes(h, &c->number[row], sizeof c->number[row]);
    return hash_bytes(h, &c->code[row], sizeof c->code[row]);
}

static u64 row_hash(const struct table_set *s, i64 row) {
    u64 h = HASH_SEED;
    for (i32 i = 0; i < s->ninput; i++) h = cell_hash(h, table_input(s, i), row);
    return s->target < 0 || table_target(s)->type == COL_TIME ? h : cell_hash(h, table_target(s), row);
}

/* Rows that equal an earlier one: two of 64-bit hashes that agree by chance are not to be expected. */
static err find_repeats(struct records *r, const struct table_set *s) {
    const i64 n = s->t->nrow;
    i64 size = 64, repeats = 0, first = -1;
    u64 *seen;
    char text[160], where[256];
    while (size < 2 * n) size *= 2;
    NEW(seen, size);
    for (i64 i = 0; i < n; i++) {
        const u64 h = row_hash(s, i) | 1; /* 0 = empty */
        u64 at = (h * 0x9e3779b97f4a7c15u) >> 20 & (u64)(size - 1);
        while (seen[at] && seen[at] != h) at = (at + 1) & (u64)(size - 1);
        if (seen[at] && repeats++ == 0) first = i;
        seen[at] = h;
    }
    mem_free(seen);
    if (repeats == 0) return 0;
    table_where(s->t, first, NULL, where);
    snprintf(text, sizeof text,
             "%lld row%s as one before, this is the first: copies in training and test part make scores too good",
             (long long)repeats, repeats == 1 ? " is the same" : "s are the same");
    add(r, where, "each record once, or --test for rows that are not copies", text);
    return 0;
}

static void look_at_column(struct records *r, const struct table_set *s, const struct column *c) {
    char fix[MEND_IGNORE], text[400];
    f64 value;
    mend_ignore(c->name, fix);
    if (column_constant(c, s->t->nrow, &value)) {
        snprintf(text, sizeof text, "column \"%.200s\" is %.6g in every row: it adds nothing", c->name, value);
        add(r, s->t->path, fix, text);
    } else if (c->type == COL_CATEGORY && c->nword >= 20 && c->nword == s->t->nrow - c->missing) {
        snprintf(text, sizeof text, "column \"%.200s\" has another word in every row: it names rows and says nothing of new ones",
                 c->name);
        add(r, s->t->path, fix, text);
    }
}

/* Classes of a single row. */
static err look_at_classes(struct records *r, const struct table_set *s) {
    const struct column *c = table_target(s);
    char where[256], text[300];
    i64 *count, rare = 0, first = -1;
    if (!c || c->type != COL_CATEGORY) return 0;
    NEW(count, c->nword + 1);
    for (i64 i = 0; i < s->t->nrow; i++)
        if (c->code[i] >= 0) count[c->code[i]]++;
    for (i64 i = s->t->nrow - 1; i >= 0; i--)
        if (c->code[i] >= 0 && count[c->code[i]] == 1) rare++, first = i;
    if (rare > 0) {
        table_where(s->t, first, c, where);
        snprintf(text, sizeof text, "%lld of %d classes %s a single row, first \"%.100s\": nothing can be held out of them",
                 (long long)rare, c->nword, rare == 1 ? "has" : "have", c->word[c->code[first]]);
        add(r, where, "more rows of these classes, or one class for all of them", text);
    }
    mem_free(count);
    return 0;
}

static err look_at_table(struct records *r, const struct table_set *s) {
    for (i32 i = 0; i < s->ninput; i++) look_at_column(r, s, table_input(s, i));
    TRY(look_at_classes(r, s));
    return find_repeats(r, s);
}

/* ------------------------------------------------------------------ sentences ----------------------------------------------- */

static err look_at_tags(struct records *r, const struct token_set *s) {
    const struct token_column *c = token_tag(s);
    char where[256], text[300];
    i64 *count, rare = 0, first = -1;
    if (!c) return 0;
    NEW(count, c->word.n + 1);
    for (i64 k = 0; k < s->ntoken; k++) count[c->code[k]]++;
    for (i64 k = s->ntoken - 1; k >= 0; k--)
        if (count[c->code[k]] == 1) rare++, first = k;
    if (rare > 0) {
        token_where(s, first, where);
        snprintf(text, sizeof text, "%lld of %d tags %s once only, first \"%.100s\": a slip of the pen?", (long long)rare,
                 c->word.n, rare == 1 ? "comes" : "come", token_word(c, first));
        add(r, where, "the tag that is meant", text);
    }
    mem_free(count);
    return 0;
}

static err look_at_tokens(struct records *r, const struct token_set *s) {
    char where[256], text[200];
    i32 most = 0, single = 0;
    for (i32 i = 0; i < s->nsentence; i++) {
        if (token_count(s, i) > token_count(s, most)) most = i;
        single += token_count(s, i) == 1;
    }
    if (s->nsentence == 1 && s->ntoken > TAGGER_STEPS)
        add(r, s->set.path, "a blank line behind each sentence", "all tokens are one sentence: no line is blank");
    else if (single > s->nsentence / 2 && s->nsentence > 10)
        add(r, s->set.path, "blank lines between sentences alone",
            "most sentences have a single token: is every other line blank?");
    else if (token_count(s, most) > TAGGER_STEPS) {
        token_where(s, s->first[most], where);
        snprintf(text, sizeof text, "the longest sentence has %d tokens: the tagger learns from the first %d of a sentence",
                 token_count(s, most), TAGGER_STEPS);
        add(r, where, "shorter sentences   or   --task crf, hmm, which take all tokens", text);
    }
    return look_at_tags(r, s);
}

static void add_look(void *self, const char *where, const char *fix, const char *text) { add(self, where, fix, text); }

/* ------------------------------------------------------------------ the check ----------------------------------------------- */

static err collect_facts(struct records *r) {
    struct report_fact fact[DATA_FACTS];
    struct arena a = {0};
    const i32 n = r->set->kind->facts ? r->set->kind->facts(r->set, fact, &a) : 0;
    str_addf(&r->facts, "%s\n", r->set->summary);
    for (i32 i = 0; i < n; i++) str_addf(&r->facts, "  %-24s %s\n", fact[i].name, fact[i].value);
    arena_free(&a);
    return str_ok(&r->facts);
}

static err look_at_set(struct records *r) {
    const struct sequence_looks looks = {add_look, r};
    if (r->set->kind == &data_table) return look_at_table(r, table_set_of(r->set));
    if (r->set->kind == &data_tokens) return look_at_tokens(r, token_set_of(r->set));
    return r->set->kind == &data_sequences ? check_sequences(sequence_set_of(r->set), &looks) : 0;
}

err check_record_set(const struct options *o, struct dataset *set, struct findings *out) {
    struct records r = {.o = o, .set = set};
    const err e = look_at_set(&r);
    *out = r.found;
    return e;
}

static err look(struct records *r, const struct learner *l, const char *path) {
    struct split split;
    i64 horizon;
    err e = l->data->read(r->o, path, &r->set);
    if (e >= 0) e = collect_facts(r);
    if (e >= 0) e = look_at_set(r);
    stretto_data data = {.set = r->set};
    if (e >= 0) e = trainer_check(r->o, &data, &horizon, &split);
    if (e >= 0 || e == -E601) return e;
    findings_add(&r->found, false, NO_COLUMN, err_last());
    return 0;
}

static bool is_command_part(const struct options *o, i32 id) {
    const struct opt_info *info = opt_info((enum opt_id)id);
    const bool group = info->group == OPT_DATA || info->group == OPT_TASK || id == OPT_task;
    return group && (info->verbs & 1u << VERB_train) && opt_given(o, (enum opt_id)id);
}

static void command_of(const struct records *r, const char *path, struct str *out) {
    char word[MEND_PATH];
    str_addf(out, "stretto train %s", mend_data(path, word));
    for (i32 i = 0; i < OPT_COUNT; i++)
        if (is_command_part(r->o, i))
            str_addf(out, " --%s %s", opt_info((enum opt_id)i)->name, mend_words(r->o->meta[i].text, word));
    str_add(out, " -o MODEL");
}

static err show(struct records *r, const char *path, bool json, bool fits) {
    struct str command = {0};
    if (fits) command_of(r, path, &command);
    if (!json) {
        str_add(&r->text, str_text(&r->facts));
        for (i32 i = 0; i < r->found.n; i++) finding_text(&r->found.item[i], &r->text);
        if (r->found.n == 0) str_add(&r->text, "no problem found\n");
        if (fits) str_addf(&r->text, "a command that fits:\n  %s\n", str_text(&command));
        str_free(&command);
        return str_ok(&r->text);
    }
    struct js *o = js_object(), *list = js_array();
    for (i32 i = 0; i < r->found.n; i++) js_push(list, finding_json(&r->found.item[i]));
    js_put_text(o, "data", r->set ? r->set->summary : "");
    if (r->set) js_put_i64(o, "records", r->set->nrow);
    js_put(o, "findings", list);
    if (fits) js_put_text(o, "command", str_text(&command));
    const err e = js_text(o, &r->text, 2);
    js_free(o);
    str_free(&command);
    return e;
}

err check_records(const struct options *o, const struct learner *l, const char *path, bool json, char **out) {
    struct records r = {.o = o};
    const struct finding *wrong = NULL;
    err e = look(&r, l, path);
    for (i32 i = 0; i < r.found.n && !wrong; i++)
        if (!r.found.item[i].warning) wrong = &r.found.item[i];
    if (e >= 0) e = show(&r, path, json, !wrong);
    if (e >= 0) e = text_give(&r.text, out);
    str_free(&r.facts);
    str_free(&r.text);
    if (r.set) dataset_free(r.set);
    if (e < 0 || !wrong) return e;
    err_put(&wrong->r);
    return -wrong->r.code;
}
