/* sequence_set.c - reads sequences from tables in long form; roles, order, labels, splits; see sequence_set.h. */
#include "learn/sequence_set.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/mend.h"
#include "data/names.h"
#include "data/share.h"
#include "learn/series_set.h"
#include "learn/table_set.h"
#include "report/report.h"

/* ------------------------------------------------------------------ roles --------------------------------------------------- */

static const char *given(const char *text, const char *by_file) { return text && *text ? text : by_file; }

/* E105 that lists the columns. */
static err need_option(const struct table *t, const char *flag, const char *what) {
    char list[400], fix[MEND_PATH + 40], word[MEND_PATH];
    const char **names;
    NEW(names, t->ncol);
    for (i32 i = 0; i < t->ncol; i++) names[i] = t->col[i].name;
    name_list(names, t->ncol, list, sizeof list);
    snprintf(fix, sizeof fix, "%s %s", flag, mend_word(names[strcmp(flag, "--id") == 0 ? 0 : t->ncol - 1], word));
    mem_free(names);
    return FAIL_AT(E105, t->path, fix, "sequences need %s, %s\ncolumns: %s", flag, what, list);
}

static err find_ids(struct sequence_set *s, const char *list) {
    char name[256];
    if (!list) return need_option(s->t, "--id", "the column that names the sequence of a row");
    NEW(s->id, s->t->ncol);
    while (name_next(&list, name) && s->nid < s->t->ncol) {
        TRY(table_need(s->t, name, "--id", &s->id[s->nid]));
        if (s->t->col[s->id[s->nid]].type != COL_CATEGORY)
            return FAIL_AT(E214, s->t->path, "--id of a column of words or codes", "column \"%s\" cannot name sequences", name);
        s->nid++;
    }
    return 0;
}

static err find_target(struct sequence_set *s, const char *name, bool optional) {
    char flag[] = "--target";
    s->target = -1;
    if (!name) return optional ? 0 : need_option(s->t, flag, "the label");
    const err e = table_need(s->t, name, flag, &s->target);
    if (e < 0 && optional && e != -E601) {
        err_clear();
        s->target = -1;
        return 0;
    }
    TRY(e);
    const enum col_type type = s->t->col[s->target].type, wanted = s->classes ? COL_CATEGORY : COL_NUMBER;
    if (type == wanted) return 0;
    return FAIL_AT(E214, s->t->path, s->classes ? "--task regress" : "--task classify", "the label \"%s\" holds %s", name,
                   type == COL_TIME ? "times"
                   : s->classes     ? "numbers"
                                    : "words");
}

static bool is_id(const struct sequence_set *s, i32 column) {
    for (i32 i = 0; i < s->nid; i++)
        if (s->id[i] == column) return true;
    return false;
}

/* --time, or the first column of times. */
static err find_time(struct sequence_set *s, const char *list) {
    char name[256];
    s->time = -1;
    if (name_next(&list, name)) {
        TRY(table_need(s->t, name, "--time", &s->time));
        if (s->t->col[s->time].type == COL_CATEGORY)
            return FAIL_AT(E214, s->t->path, "--time-format   or   --time of a column of times or numbers",
                           "column \"%s\" holds words, which do not order steps", name);
        if (name_next(&list, name))
            return FAIL_AT(E106, "--time", "one column of times", "the steps of sequences are ordered by one column");
    }
    for (i32 i = s->t->ncol - 1; i >= 0 && s->time < 0; i--)
        if (s->t->col[i].type == COL_TIME && !is_id(s, i) && i != s->target) s->time = i;
    return 0;
}

static err channel_of_words(const struct sequence_set *s, const struct column *c) {
    char where[256], fix[MEND_IGNORE];
    i64 row = 0;
    while (row + 1 < s->t->nrow && c->code[row] < 0) row++;
    table_where(s->t, row, c, where);
    return FAIL_AT(E204, where, mend_ignore(c->name, fix), "column \"%s\" holds words (\"%.60s\"): channels are numbers", c->name,
                   c->code[row] < 0 ? "" : c->word[c->code[row]]);
}

static err find_channels(struct sequence_set *s, const char *ignore) {
    NEW(s->channel, s->t->ncol);
    for (i32 i = 0; i < s->t->ncol; i++) {
        const struct column *c = &s->t->col[i];
        if (i == s->target || i == s->time || is_id(s, i) || table_lists(s->t, ignore, i) || c->type == COL_TIME) continue;
        if (c->type == COL_CATEGORY && c->missing < s->t->nrow) return channel_of_words(s, c);
        if (c->type == COL_NUMBER) s->channel[s->nchannel++] = i;
    }
    if (s->nchannel > 0) return 0;
    return FAIL_AT(E102, s->t->path, "a file with columns of numbers", "there is no channel to learn from");
}

/* Exactly the channels of a model. */
static err take_channels(struct sequence_set *s, i32 n, const char *const *name) {
    NEW(s->channel, n);
    for (i32 k = 0; k < n; k++) {
        const i32 i = s->channel[k] = table_find(s->t, name[k]);
        if (i >= 0 && s->t->col[i].type == COL_NUMBER) continue;
        return FAIL_AT(E903, s->t->path, "a file with the channels of the training",
                       i < 0 ? "there is no channel \"%s\", which the model needs" : "channel \"%s\" holds no numbers", name[k]);
    }
    s->nchannel = n;
    return 0;
}

/* A .ts file numbers its channels: another number of them is another kind of data. */
static err same_count(const struct sequence_set *s, i32 n) {
    const i32 here = s->t->ncol - 1 - (s->t->target != NULL);
    if (!s->t->id || here == n) return 0;
    return FAIL_AT(E903, s->t->path, "a file with the channels of the training",
                   "the sequences have %d channel%s, the model was "
                   "trained on %d",
                   here, here == 1 ? "" : "s", n);
}

/* ------------------------------------------------------------------ order --------------------------------------------------- */

struct placed { /* a row of the table */
    i32 sequence;
    f64 time;
    i64 row;
};

static int by_place(const void *a, const void *b) {
    const struct placed *x = a, *y = b;
    if (x->sequence != y->sequence) return x->sequence < y->sequence ? -1 : 1;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static err apart(const struct sequence_set *s, i64 row, const char *name) {
    char where[256];
    table_where(s->t, row, &s->t->col[s->id[0]], where);
    return FAIL_AT(E209, where, "--time COLUMN   or   the rows of a sequence one after the other",
                   "the sequence \"%.60s\" begins again behind another one, and no column of times orders the rows", name);
}

static const char *row_name(const struct sequence_set *s, i64 row, char out[256]) {
    i32 n = 0;
    out[0] = 0;
    for (i32 i = 0; i < s->nid; i++) {
        const struct column *c = &s->t->col[s->id[i]];
        if (c->code[row] < 0) return NULL;
        n = imin(255, n + snprintf(out + n, (size_t)(256 - n), "%s%s", i ? "/" : "", c->word[c->code[row]]));
    }
    return out;
}

/* Numbers the sequences in order of first appearance. */
static err number_rows(struct sequence_set *s, struct vocab *names, struct placed *p) {
    char name[256], where[256];
    for (i64 i = 0; i < s->t->nrow; i++) {
        const i32 before = names->n;
        p[i].row = i;
        if (!row_name(s, i, name)) {
            table_where(s->t, i, &s->t->col[s->id[0]], where);
            return FAIL_AT(E207, where, "the name of the sequence in every row", "the row has no id");
        }
        TRY(vocab_code(names, name, (i64)strlen(name), &p[i].sequence));
        const bool again = p[i].sequence < before && i > 0 && p[i - 1].sequence != p[i].sequence;
        if (again && s->time < 0) return apart(s, i, name);
    }
    s->set.nrow = names->n;
    return 0;
}

static err take_times(struct sequence_set *s, struct placed *p) {
    const struct column *c = s->time < 0 ? NULL : &s->t->col[s->time];
    char where[256];
    for (i64 i = 0; c && i < s->t->nrow; i++) {
        p[i].time = c->type == COL_TIME ? (f64)c->time[i] : c->number[i];
        if (!isnan(p[i].time)) continue;
        table_where(s->t, i, c, where);
        return FAIL_AT(E205, where, "a time in every row", "the time is missing");
    }
    if (!c) return 0;
    qsort(p, (size_t)s->t->nrow, sizeof *p, by_place);
    for (i64 i = 1; i < s->t->nrow; i++) {
        if (p[i].sequence != p[i - 1].sequence || p[i].time != p[i - 1].time) continue;
        char name[256], fix[MEND_PATH + 80], word[MEND_PATH];
        table_where(s->t, p[i].row, c, where);
        snprintf(fix, sizeof fix, "one row for each time of a sequence   or   --ignore %s and rows in order",
                 mend_word(c->name, word));
        return FAIL_AT(E211, where, fix, "the sequence \"%.60s\" has two rows of this time", row_name(s, p[i].row, name));
    }
    return 0;
}

static bool is_empty(const struct sequence_set *s, i64 row) {
    for (i32 k = 0; k < s->nchannel; k++)
        if (!isnan(s->t->col[s->channel[k]].number[row])) return false;
    return true;
}

/* The steps of each sequence, without the padding at its end. */
static err take_steps(struct sequence_set *s, const struct placed *p) {
    char name[256], where[256];
    NEW(s->row, s->t->nrow);
    NEW(s->first, s->set.nrow + 1);
    NEW(s->length, s->set.nrow);
    NEW(s->at, s->set.nrow);
    for (i64 i = 0; i < s->t->nrow; i++) {
        s->row[i] = p[i].row;
        s->first[p[i].sequence + 1] = i + 1;
    }
    for (i64 k = 0; k < s->set.nrow; k++) {
        i64 n = s->first[k + 1] - s->first[k];
        s->at[k] = k;
        while (n > 0 && is_empty(s, s->row[s->first[k] + n - 1])) n--;
        if (n == 0) {
            table_where(s->t, s->row[s->first[k]], NULL, where);
            return FAIL_AT(E207, where, "a value in at least one channel   or   a file without this sequence",
                           "the sequence \"%.60s\" is empty: it has no value", sequence_name(s, k, name));
        }
        if (n > INT32_MAX / 4) return FAIL_AT(E202, s->t->path, "shorter sequences", "a sequence has too many steps");
        s->length[k] = (i32)n;
        s->nstep += n;
    }
    return 0;
}

static err order_rows(struct sequence_set *s) {
    struct vocab names = {0};
    struct placed *p;
    NEW(p, s->t->nrow);
    err e = number_rows(s, &names, p);
    if (e >= 0) e = take_times(s, p);
    if (e >= 0) e = take_steps(s, p);
    vocab_free(&names);
    mem_free(p);
    return e;
}

/* ------------------------------------------------------------------ labels -------------------------------------------------- */

static bool differ(const struct column *c, i64 a, i64 b) {
    return c->type == COL_CATEGORY ? c->code[a] != c->code[b] : !(c->number[a] == c->number[b]);
}

static bool is_missing(const struct column *c, i64 row) {
    return c->type == COL_CATEGORY ? c->code[row] < 0 : isnan(c->number[row]);
}

/* Whether a label changes inside a sequence. */
static void look_at_labels(struct sequence_set *s) {
    const struct column *c = &s->t->col[s->target];
    for (i64 k = 0; k < s->set.nrow && !s->per_step; k++) {
        i64 seen = -1;
        for (i32 i = 0; i < s->length[k] && !s->per_step; i++) {
            const i64 row = s->row[s->first[k] + i];
            if (is_missing(c, row)) continue;
            s->per_step = seen >= 0 && differ(c, seen, row);
            if (s->per_step) s->change = row;
            seen = row;
        }
    }
}

/* The row with the label of a sequence, or of a step of it. */
static i64 label_row(const struct sequence_set *s, i64 sequence, i32 step) {
    const i64 *row = s->row + s->first[sequence];
    const struct column *c = &s->t->col[s->target];
    for (i32 i = 0; i < s->length[sequence] && !s->per_step; i++)
        if (!is_missing(c, row[i])) return row[i];
    return row[step];
}

i32 sequence_class(const struct sequence_set *s, i64 sequence, i32 step) {
    return s->target < 0 ? -1 : s->t->col[s->target].code[label_row(s, sequence, step)];
}

f64 sequence_number(const struct sequence_set *s, i64 sequence, i32 step) {
    return s->target < 0 ? (f64)NAN : s->t->col[s->target].number[label_row(s, sequence, step)];
}

/* ------------------------------------------------------------------ reading ------------------------------------------------- */

i32 sequence_longest(const struct sequence_set *s, i64 from, i64 to) {
    i32 most = 1;
    for (i64 k = from; k < to; k++) most = imax(most, s->length[s->at[k]]);
    return most;
}

static void summarise(struct sequence_set *s) {
    struct dataset *d = &s->set;
    const char *slash = strrchr(d->path, '/');
    i32 least = INT32_MAX, n;
    const i32 most = sequence_longest(s, 0, d->nrow);
    for (i64 k = 0; k < d->nrow; k++) least = imin(least, s->length[k]);
    d->ntarget = s->target >= 0;
    d->ncol = s->nchannel + d->ntarget;
    n = snprintf(d->summary, sizeof d->summary, "read %.200s: %lld sequence%s of ", slash ? slash + 1 : d->path,
                 (long long)d->nrow, d->nrow == 1 ? "" : "s");
    if (least < most) n += snprintf(d->summary + n, sizeof d->summary - (size_t)n, "%d to ", least);
    n += snprintf(d->summary + n, sizeof d->summary - (size_t)n, "%d steps, %d channel%s", most, s->nchannel,
                  s->nchannel == 1 ? "" : "s");
    if (s->target >= 0)
        snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", label %.100s%s", s->t->col[s->target].name,
                 s->per_step ? " of each step" : "");
}

/* Labels that are classes are words, also where they look like numbers; the column of times is found by its name.  Data to
 * predict may lack the labels. */
static err read_table(const struct options *o, const char *path, bool may_lack, struct sequence_set *s) {
    struct read_options r = read_options_of(o);
    struct str cat = {0};
    str_addf(&cat, "%s%s%s", o->cat ? o->cat : "", o->cat && *o->cat ? "," : "", s->classes && o->target ? o->target : "");
    err e = str_ok(&cat);
    r.cat = cat.len > 0 ? str_text(&cat) : NULL;
    r.time = r.time_format ? o->time : NULL;
    if (e >= 0) e = table_read(path, &r, &s->t);
    if (e == -E102 && may_lack) {
        err_clear();
        r.cat = o->cat;
        e = table_read(path, &r, &s->t);
    }
    str_free(&cat);
    return e;
}

/* Channels, and labels that are numbers, are computed in f32. */
static err check_size(const struct sequence_set *s, const struct column *c) {
    char where[256];
    for (i64 r = 0; c->type == COL_NUMBER && r < s->t->nrow; r++) {
        if (!(fabs(c->number[r]) > (f64)FLT_MAX)) continue;
        table_where(s->t, r, c, where);
        return FAIL_AT(E208, where, "a number below 3.4e38, or an empty cell for a missing one",
                       "%g in column \"%s\" is larger than 32 bits hold", c->number[r], c->name);
    }
    return 0;
}

static err check_sizes(const struct sequence_set *s) {
    for (i32 k = 0; k < s->nchannel; k++) TRY(check_size(s, &s->t->col[s->channel[k]]));
    return s->target >= 0 ? check_size(s, &s->t->col[s->target]) : 0;
}

static err find_roles(const struct options *o, struct sequence_set *s, i32 n, const char *const *channel) {
    TRY(find_ids(s, given(o->id, s->t->id)));
    TRY(find_target(s, given(o->target, s->t->target), channel != NULL));
    TRY(find_time(s, o->time));
    if (channel) TRY(same_count(s, n));
    return channel ? take_channels(s, n, channel) : find_channels(s, o->ignore);
}

static err make_sequences(const struct options *o, i32 n, const char *const *channel, struct sequence_set *s) {
    TRY(find_roles(o, s, n, channel));
    TRY(check_sizes(s));
    TRY(order_rows(s));
    if (s->target >= 0) look_at_labels(s);
    summarise(s);
    return 0;
}

static err read_set(const struct options *o, const char *path, i32 n, const char *const *channel, struct dataset **out) {
    struct sequence_set *s;
    *out = NULL;
    TRY(dataset_new(&data_sequences, path, sizeof *s, &s));
    s->classes = strcmp(o->task, "classify") == 0;
    err e = read_table(o, path, channel != NULL, s);
    if (e >= 0) e = make_sequences(o, n, channel, s);
    if (e < 0) dataset_free(&s->set);
    else *out = &s->set;
    return e;
}

err sequence_set_read(const struct options *o, const char *path, struct dataset **out) { return read_set(o, path, 0, NULL, out); }

err sequence_set_read_as(const struct options *o, const char *path, i32 n, const char *const *channel, struct dataset **out) {
    return read_set(o, path, n, channel, out);
}

/* The table of another rank; the order of its rows is this rank's own. */
static err share(const struct options *o, const char *path, struct share *x, struct dataset **d) {
    struct sequence_set *s = x->gives ? sequence_set_of(*d) : NULL;
    if (s && !table_shares(s->t)) return 1;
    if (!x->gives) {
        TRY(dataset_new(&data_sequences, path, sizeof *s, &s));
        *d = &s->set;
        s->classes = strcmp(o->task, "classify") == 0;
        NEW(s->t, 1);
    }
    table_share(x, s->t);
    return x->gives || x->e < 0 ? x->e : make_sequences(o, 0, NULL, s);
}

/* ------------------------------------------------------------------ splits -------------------------------------------------- */

struct drawn { /* a sequence in the order of records */
    f64 key;   /* share of its class that comes before it */
    u32 tie;
    i64 sequence;
};

static int by_key(const void *a, const void *b) {
    const struct drawn *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (x->tie != y->tie) return x->tie < y->tie ? -1 : 1;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* Classes of whole sequences are dealt in proportion; all others are one class. */
static err draw(struct sequence_set *s, u64 seed) {
    const bool dealt = s->classes && !s->per_step && s->target >= 0;
    const i32 n = dealt ? s->t->col[s->target].nword + 1 : 1;
    i64 *count, *seen;
    struct drawn *d;
    NEW(count, 2 * (i64)n);
    NEW(d, s->set.nrow);
    seen = count + n;
    for (i64 k = 0; k < s->set.nrow; k++) count[dealt ? sequence_class(s, k, 0) + 1 : 0]++;
    for (i64 k = 0; k < s->set.nrow; k++) {
        const i32 c = dealt ? sequence_class(s, k, 0) + 1 : 0;
        u32 word[4];
        rng_words(seed, RNG_SHUFFLE, UINT32_MAX, (u64)k, word);
        d[k].key = ((f64)rng_shuffle(seed, (u32)c, count[c], seen[c]++) + 0.5) / (f64)count[c];
        d[k].tie = word[0];
        d[k].sequence = k;
    }
    qsort(d, (size_t)s->set.nrow, sizeof *d, by_key);
    for (i64 k = 0; k < s->set.nrow; k++) s->at[k] = d[k].sequence;
    mem_free(count);
    mem_free(d);
    return 0;
}

/* A .ts file has its test in another file; of a table a fifth is held out. */
err sequence_set_split(const struct options *o, struct sequence_set *s, struct split *out) {
    static const char fifth[] = "20%";
    const struct series bare = {.nrow = s->set.nrow};
    if (!s->cut) TRY(draw(s, (u64)o->seed));
    if (out->test > 0) return 0;
    return split_make(&bare, s->set.nrow, opt_is_auto(o, OPT_validation) ? fifth : o->validation,
                      !opt_is_auto(o, OPT_test) ? o->test
                      : s->t->id                ? "0"
                                                : fifth,
                      out);
}

/* ------------------------------------------------------------------ the kind ------------------------------------------------ */

void sequence_where(const struct sequence_set *s, i64 sequence, i32 step, char where[256]) {
    table_where(s->t, s->row[s->first[sequence] + step], s->target < 0 ? NULL : &s->t->col[s->target], where);
}

const char *sequence_name(const struct sequence_set *s, i64 sequence, char out[256]) {
    return row_name(s, s->row[s->first[sequence]], out);
}

/* The first records in the order that sequence_set_split drew. */
static err copy_records(const struct sequence_set *from, i64 rows, struct sequence_set *s) {
    NEW(s->channel, from->nchannel + 1);
    NEW(s->id, from->nid + 1);
    NEW(s->first, rows + 1);
    NEW(s->length, rows + 1);
    NEW(s->at, rows + 1);
    memcpy(s->channel, from->channel, sizeof *s->channel * (size_t)from->nchannel);
    memcpy(s->id, from->id, sizeof *s->id * (size_t)from->nid);
    s->nstep = 0;
    for (i64 k = 0; k < rows; k++) {
        s->at[k] = k;
        s->length[k] = from->length[from->at[k]];
        s->nstep += s->length[k];
        s->first[k + 1] = s->first[k] + s->length[k];
    }
    NEW(s->row, s->t->nrow + 1); /* as many as hash() reads */
    for (i64 k = 0; k < rows; k++)
        memcpy(s->row + s->first[k], from->row + from->first[from->at[k]], sizeof *s->row * (size_t)s->length[k]);
    return 0;
}

static err before(const struct dataset *d, i64 rows, u64 seed, struct dataset **out) {
    const struct sequence_set *from = sequence_set_of(d);
    struct sequence_set *s;
    (void)seed; /* the order is drawn already */
    TRY(dataset_new(&data_sequences, d->path, sizeof *s, &s));
    struct dataset head = s->set;
    *s = *from;
    head.ncol = d->ncol;
    head.ntarget = d->ntarget;
    head.nrow = rows;
    s->set = head;
    s->cut = true;
    s->channel = s->id = s->length = NULL;
    s->row = s->first = s->at = NULL;
    const err e = copy_records(from, rows, s);
    if (e < 0) dataset_free(&s->set);
    else *out = &s->set;
    return e;
}

static void free_set(struct dataset *d) {
    struct sequence_set *s = sequence_set_of(d);
    if (!s->cut) table_free(s->t);
    mem_free(s->channel);
    mem_free(s->id);
    mem_free(s->row);
    mem_free(s->first);
    mem_free(s->length);
    mem_free(s->at);
    mem_free(s);
}

static u64 hash(const struct dataset *d) {
    const struct sequence_set *s = sequence_set_of(d);
    u64 h = comm_hash(COMM_HASH, s->row, sizeof *s->row * (size_t)s->t->nrow);
    h = comm_hash(h, s->first, sizeof *s->first * (size_t)(d->nrow + 1));
    if (s->target >= 0) h = table_column_hash(h, &s->t->col[s->target], s->t->nrow);
    for (i32 k = 0; k < s->nchannel; k++) h = table_column_hash(h, &s->t->col[s->channel[k]], s->t->nrow);
    return h;
}

static const char *column(const struct dataset *d, i32 i) {
    const struct sequence_set *s = sequence_set_of(d);
    return s->t->col[i < d->ntarget ? s->target : s->channel[i - d->ntarget]].name;
}

static f64 value(const struct dataset *d, i32 i, i64 row) {
    const struct sequence_set *s = sequence_set_of(d);
    return i < d->ntarget && !s->classes ? sequence_number(s, s->at[row], 0) : (f64)NAN;
}

static void label(const struct dataset *d, i64 row, char out[32]) {
    char name[256];
    snprintf(out, 32, "%.31s", sequence_name(sequence_set_of(d), sequence_set_of(d)->at[row], name));
}

static i32 facts(const struct dataset *d, struct report_fact *fact, struct arena *a) {
    const struct sequence_set *s = sequence_set_of(d);
    fact[0] = (struct report_fact){"channels", arena_printf(a, "%d", s->nchannel)};
    fact[1] = (struct report_fact){"steps of all sequences", arena_printf(a, "%lld", (long long)s->nstep)};
    if (s->target < 0 || !s->classes) return 2;
    fact[2] = (struct report_fact){"classes", arena_printf(a, "%d", s->t->col[s->target].nword)};
    return 3;
}

static const enum opt_id takes[] = {OPT_time,       OPT_time_format, OPT_target,       OPT_id,   OPT_cat,
                                    OPT_ignore,     OPT_header,      OPT_na,           OPT_sep,  OPT_decimal,
                                    OPT_validation, OPT_test,        OPT_data_changed, OPT_COUNT};

const struct data_kind data_sequences = {
    .name = "sequences",
    .takes = takes,
    .read = sequence_set_read,
    .share = share,
    .before = before,
    .free = free_set,
    .hash = hash,
    .column = column,
    .value = value,
    .label = label,
    .facts = facts,
};
