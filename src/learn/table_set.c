/* table_set.c - reads a table for learners of records; roles of columns; see table_set.h. */
#include "learn/table_set.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "data/fingerprint.h"
#include "data/mend.h"
#include "data/names.h"
#include "data/share.h"
#include "learn/series_set.h"
#include "report/report.h"

/* ------------------------------------------------------------------ roles --------------------------------------------------- */

static err find_target(struct table_set *s, const char *target, bool optional) {
    s->target = -1;
    if (!target || !*target) return 0;
    const err e = table_need(s->t, target, "--target", &s->target);
    if (e >= 0 || !optional || e == -E601) return e;
    err_clear();
    s->target = -1;
    return 0;
}

static err find_inputs(struct table_set *s, const char *ignore) {
    NEW(s->input, s->t->ncol + 1);
    s->ninput = s->ntime = 0;
    for (i32 i = 0; i < s->t->ncol; i++) {
        if (i == s->target || table_lists(s->t, ignore, i)) continue;
        if (s->t->col[i].type == COL_TIME) s->ntime++;
        else s->input[s->ninput++] = i;
    }
    if (s->ninput > 0) return 0;
    return FAIL_AT(E102, s->t->path, "a file with columns of numbers or words", "there is no column to learn from");
}

static i64 missing_inputs(const struct table_set *s) {
    i64 n = 0;
    for (i32 i = 0; i < s->ninput; i++) n += table_input(s, i)->missing;
    return n;
}

static void summarise(struct table_set *s) {
    struct dataset *d = &s->set;
    const char *slash = strrchr(d->path, '/');
    i32 words = 0;
    for (i32 i = 0; i < s->ninput; i++) words += table_input(s, i)->type == COL_CATEGORY;
    d->nrow = s->t->nrow;
    d->ntarget = s->target >= 0;
    d->ncol = s->ninput + d->ntarget;
    i32 n = snprintf(d->summary, sizeof d->summary, "read %.200s: %lld rows, %d input column%s", slash ? slash + 1 : d->path,
                     (long long)d->nrow, s->ninput, s->ninput == 1 ? "" : "s");
    if (words > 0 && n < (i32)sizeof d->summary)
        n += snprintf(d->summary + n, sizeof d->summary - (size_t)n, " (%d of words)", words);
    if (s->target >= 0 && n < (i32)sizeof d->summary)
        n += snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", target %.100s", table_target(s)->name);
    if (s->ntime > 0 && n < (i32)sizeof d->summary)
        n += snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", %d time column%s not used", s->ntime,
                      s->ntime == 1 ? "" : "s");
    if (missing_inputs(s) > 0 && n < (i32)sizeof d->summary)
        snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", %lld missing cells", (long long)missing_inputs(s));
}

static err find_roles(const struct options *o, struct table_set *s, const char *target, bool optional) {
    TRY(find_target(s, target, optional));
    TRY(find_inputs(s, o->ignore));
    summarise(s);
    return 0;
}

err table_set_read(const struct options *o, const char *path, const char *target, bool optional, struct dataset **out) {
    const struct read_options r = read_options_of(o);
    struct table_set *s;
    *out = NULL;
    TRY(dataset_new(&data_table, path, sizeof *s, &s));
    err e = table_read(path, &r, &s->t);
    if (e >= 0) e = find_roles(o, s, target, optional);
    if (e < 0) dataset_free(&s->set);
    else *out = &s->set;
    return e;
}

/* ------------------------------------------------------------------ what learners ask for ----------------------------------- */

/* Names the first word where numbers are due. */
static err other_type(const struct table_set *s, const struct column *c, enum col_type wanted) {
    static const char *const type[] = {"numbers", "times", "words"};
    char where[256], word[80] = "";
    i64 row = 0;
    snprintf(where, sizeof where, "%s", s->t->path);
    if (c->type == COL_CATEGORY) {
        f64 v;
        const char *w;
        while (row + 1 < s->t->nrow &&
               (c->code[row] < 0 || (w = c->word[c->code[row]], str_to_f64(w, strlen(w), '.', &v)))) row++;
        table_where(s->t, row, c, where);
        if (c->code[row] >= 0) snprintf(word, sizeof word, " (\"%.60s\")", c->word[c->code[row]]);
    }
    return FAIL_AT(E903, where, "a file with columns as in the training",
                   "column \"%s\" holds %s%s here, the model was trained on %s", c->name, type[c->type], word, type[wanted]);
}

err table_set_inputs(struct table_set *s, i32 n, const char *const *name, const bool *words) {
    i32 *input;
    NEW(input, n + 1);
    for (i32 i = 0; i < n; i++) {
        input[i] = table_find(s->t, name[i]);
        const struct column *c = input[i] < 0 ? NULL : &s->t->col[input[i]];
        const enum col_type wanted = words[i] ? COL_CATEGORY : COL_NUMBER;
        if (c && (c->type == wanted || c->missing == s->t->nrow)) continue;
        mem_free(input);
        if (!c)
            return FAIL_AT(E903, s->t->path, "a file with the columns of the training",
                           "there is no column \"%s\", which the model needs", name[i]);
        return other_type(s, c, wanted);
    }
    mem_free(s->input);
    s->input = input;
    s->ninput = n;
    summarise(s);
    return 0;
}

err table_set_need_numbers(const struct table_set *s, const char *why) {
    for (i32 i = 0; i < s->ninput; i++) {
        const struct column *c = table_input(s, i);
        char where[256], fix[MEND_IGNORE];
        i64 row = 0;
        if (c->type != COL_CATEGORY) continue;
        while (row + 1 < s->t->nrow && c->code[row] < 0) row++;
        table_where(s->t, row, c, where);
        return FAIL_AT(E204, where, mend_ignore(c->name, fix), "column \"%s\" holds words (\"%.60s\"): %s", c->name,
                       c->code[row] < 0 ? "" : c->word[c->code[row]], why);
    }
    return 0;
}

static i64 first_missing(const struct column *c, i64 nrow) {
    for (i64 i = 0; i < nrow; i++)
        if (c->type == COL_CATEGORY ? c->code[i] < 0 : isnan(c->number[i])) return i;
    return -1;
}

err table_set_need_all(const struct table_set *s, const char *fix) {
    for (i32 i = 0; i < s->ninput; i++) {
        const struct column *c = table_input(s, i);
        const i64 row = c->missing ? first_missing(c, s->t->nrow) : -1;
        char where[256];
        if (row < 0) continue;
        table_where(s->t, row, c, where);
        return FAIL_AT(E207, where, fix, "column \"%s\" has %lld missing cell%s", c->name, (long long)c->missing,
                       c->missing == 1 ? "" : "s");
    }
    return 0;
}

/* ------------------------------------------------------------------ the kind ------------------------------------------------ */

static err read_file(const struct options *o, const char *path, struct dataset **out) {
    return table_set_read(o, path, o->target, false, out);
}

static err share(const struct options *o, const char *path, struct share *x, struct dataset **d) {
    struct table_set *s = x->gives ? table_set_of(*d) : NULL;
    if (s && !table_shares(s->t)) return 1;
    if (!x->gives) {
        TRY(dataset_new(&data_table, path, sizeof *s, &s));
        *d = &s->set;
        NEW(s->t, 1);
    }
    table_share(x, s->t);
    return x->gives || x->e < 0 ? x->e : find_roles(o, s, o->target, false);
}

static err before(const struct dataset *d, i64 rows, u64 seed, struct dataset **out) {
    const struct table_set *from = table_set_of(d);
    struct table_set *s;
    TRY(dataset_new(&data_table, d->path, sizeof *s, &s));
    s->set.ncol = d->ncol;
    s->set.ntarget = d->ntarget;
    s->target = from->target;
    s->ninput = from->ninput;
    s->ntime = from->ntime;
    err e = mem_new((void **)&s->input, from->ninput + 1, sizeof *s->input);
    for (i32 i = 0; e >= 0 && i < from->ninput; i++) s->input[i] = from->input[i];
    if (e >= 0) e = table_before(from->t, rows, seed, &s->t);
    if (e >= 0) s->set.nrow = s->t->nrow;
    if (e < 0) dataset_free(&s->set);
    else *out = &s->set;
    return e;
}

static void free_set(struct dataset *d) {
    struct table_set *s = table_set_of(d);
    table_free(s->t);
    mem_free(s->input);
    mem_free(s);
}

u64 table_column_hash(u64 h, const struct column *c, i64 nrow) {
    h = hash_bytes(h, c->name, strlen(c->name) + 1);
    if (c->type == COL_NUMBER) return comm_hash(h, c->number, sizeof *c->number * (size_t)nrow);
    h = comm_hash(h, c->code, sizeof *c->code * (size_t)nrow);
    for (i32 w = 0; w < c->nword; w++) h = hash_bytes(h, c->word[w], strlen(c->word[w]) + 1);
    return h;
}

static u64 hash(const struct dataset *d) {
    const struct table_set *s = table_set_of(d);
    u64 h = comm_hash(COMM_HASH, &d->nrow, sizeof d->nrow);
    if (s->target >= 0) h = table_column_hash(h, table_target(s), d->nrow);
    for (i32 i = 0; i < s->ninput; i++) h = table_column_hash(h, table_input(s, i), d->nrow);
    return h;
}

static const struct column *column_at(const struct dataset *d, i32 i) {
    const struct table_set *s = table_set_of(d);
    return i < d->ntarget ? table_target(s) : table_input(s, i - d->ntarget);
}

static const char *column(const struct dataset *d, i32 i) { return column_at(d, i)->name; }

static f64 value(const struct dataset *d, i32 i, i64 row) {
    const struct column *c = column_at(d, i);
    return c->type == COL_NUMBER ? c->number[row] : (f64)NAN;
}

static void label(const struct dataset *d, i64 row, char out[32]) {
    snprintf(out, 32, "line %lld", (long long)table_line(table_set_of(d)->t, row));
}

static i32 facts(const struct dataset *d, struct report_fact *fact, struct arena *a) {
    const struct table_set *s = table_set_of(d);
    fact[0] = (struct report_fact){"inputs", arena_printf(a, "%d", s->ninput)};
    fact[1] = (struct report_fact){"missing cells", arena_printf(a, "%lld", (long long)missing_inputs(s))};
    return 2;
}

static const enum opt_id takes[] = {OPT_time, OPT_time_format, OPT_target, OPT_cat, OPT_ignore, OPT_header, OPT_na, OPT_sep,
                                    OPT_decimal, OPT_validation, OPT_test, OPT_data_changed, OPT_COUNT};

const struct data_kind data_table = {
    .name = "table",
    .takes = takes,
    .read = read_file,
    .share = share,
    .before = before,
    .free = free_set,
    .hash = hash,
    .column = column,
    .value = value,
    .label = label,
    .facts = facts,
};
