/* token_set.c - reads files of tagged sequences in one pass; see token_set.h. */
#include "learn/token_set.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/input.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/zfile.h"
#include "data/first_bytes.h"
#include "data/table.h"
#include "report/report.h"

/* ------------------------------------------------------------------ lines --------------------------------------------------- */

enum { COLUMNS_MAX = 1024 };

struct reading {
    struct token_set *s;
    const char *file; /* name for messages */
    i64 line;
    bool inside;      /* the last line held a token */
    err (*take)(struct reading *r, const char *p, const char *end); /* a line with a token */
};

static err fail_at(const struct reading *r, enum err_code code, const char *fix, const char *text) {
    char where[256];
    file_where(r->file, r->line, 0, where);
    return FAIL_AT(code, where, fix, "%s", text);
}

static err check_text(const struct reading *r, const char *p, const char *end) {
    while (p < end) {
        const i32 n = *p > 0 ? 1 : *p == 0 ? 0 : str_utf8(p, (size_t)(end - p));
        if (n == 0) return fail_at(r, E202, "save the file again as UTF-8 text", "the line is not UTF-8 text");
        p += n;
    }
    return 0;
}

static inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* The next field of a line; false = there is none. */
static bool next_field(const char **p, const char *end, const char **field, i64 *n) {
    const char *at = *p;
    while (at < end && is_blank(*at)) at++;
    *field = at;
    while (at < end && !is_blank(*at)) at++;
    *n = at - *field;
    *p = at;
    return *n > 0;
}

static i32 count_fields(const char *p, const char *end) {
    const char *field;
    i64 n;
    i32 count = 0;
    while (count <= COLUMNS_MAX && next_field(&p, end, &field, &n)) count++;
    return count;
}

static err begin_sentence(struct reading *r) {
    struct token_set *s = r->s;
    if (s->nsentence == INT32_MAX - 1) return fail_at(r, E202, "a smaller file", "there are too many sentences");
    GROW(s->first, s->nsentence + 1, s->first_cap);
    GROW(s->line, s->nsentence, s->line_cap);
    s->first[s->nsentence] = s->ntoken;
    s->line[s->nsentence++] = r->line;
    r->inside = true;
    return 0;
}

/* The first line with a token says how many columns there are. */
static err set_columns(struct reading *r, const char *p, const char *end) {
    const i32 n = count_fields(p, end);
    if (n > COLUMNS_MAX) return fail_at(r, E203, "a file of tagged sequences", "the line has more than 1024 columns");
    NEW(r->s->column, n);
    r->s->tabs = memchr(p, '\t', (size_t)(end - p)) != NULL;
    r->s->ncolumn = n;
    return 0;
}

static err wrong_count(const struct reading *r, const char *p, const char *end) {
    char text[200];
    snprintf(text, sizeof text, "the line has %d columns, the lines before it have %d", count_fields(p, end), r->s->ncolumn);
    return fail_at(r, E203, "the same number of columns in every line; a blank line between sentences", text);
}

/* The word of the present token in a column. */
static err take_field(struct reading *r, i32 column, const char *p, i64 n) {
    struct token_column *c = &r->s->column[column];
    GROW(c->code, r->s->ntoken, c->cap);
    return vocab_code(&c->word, p, n, &c->code[r->s->ntoken]);
}

static err take_line(struct reading *r, const char *p, const char *end) {
    struct token_set *s = r->s;
    const char *at = p, *field;
    i64 n;
    i32 c = 0;
    if (s->ncolumn == 0) TRY(set_columns(r, p, end));
    if (!r->inside) TRY(begin_sentence(r));
    for (; next_field(&at, end, &field, &n); c++) {
        if (c == s->ncolumn) return wrong_count(r, p, end);
        TRY(take_field(r, c, field, n));
    }
    if (c < s->ncolumn) return wrong_count(r, p, end);
    s->ntoken++;
    return 0;
}

/* ------------------------------------------------------------------ items --------------------------------------------------- */

enum { ITEM_BYTES = 4096 };

/* The text of an item without its escapes, not ended by a NUL; its length.  *weight: what follows a colon, NULL = nothing. */
static i64 unescape(const char *p, const char *end, char *to, const char **weight) {
    i64 n = 0;
    *weight = NULL;
    for (; p < end && n < ITEM_BYTES; p++) {
        if (*p == ':') {
            *weight = p + 1;
            break;
        }
        if (*p == '\\' && p + 1 < end && (p[1] == ':' || p[1] == '\\')) p++;
        to[n++] = *p;
    }
    return n;
}

static err take_item(struct reading *r, const char *p, const char *end) {
    struct token_set *s = r->s;
    char word[ITEM_BYTES], text[200];
    const char *weight;
    f64 value;
    const i64 n = unescape(p, end, word, &weight);
    if (n == ITEM_BYTES) return fail_at(r, E203, "shorter items", "an item is longer than 4095 bytes");
    if (weight && (!str_to_f64(weight, (size_t)(end - weight), '.', &value) || value != 1)) {
        snprintf(text, sizeof text, "the item \"%.*s\" has the weight \"%.*s\": items either hold or do not",
                 (int)lmin(60, n), word, (int)lmin(30, end - weight), weight);
        return fail_at(r, E204, "items without weights (\\: for a colon in an item), or one item for each range of values", text);
    }
    GROW(s->item, s->nitem, s->item_cap);
    return vocab_code(&s->item_word, word, n, &s->item[s->nitem++]);
}

static err take_items(struct reading *r, const char *p, const char *end) {
    struct token_set *s = r->s;
    const char *stop = memchr(p, '\t', (size_t)(end - p));
    const char *label = p;
    if (!stop) stop = end;
    if (stop == p) return fail_at(r, E203, "LABEL, a tab, ITEM, a tab, ITEM ..", "the line begins with a tab: it has no label");
    if (s->ncolumn == 0) {
        s->ncolumn = 2;
        s->items = s->tabs = true;
        NEW(s->column, 2);
    }
    if (!r->inside) TRY(begin_sentence(r));
    GROW(s->item_at, s->ntoken + 1, s->item_at_cap);
    s->item_at[s->ntoken] = s->nitem;
    TRY(take_field(r, 0, label, stop - label));
    while (stop < end) {
        p = stop + 1;
        stop = memchr(p, '\t', (size_t)(end - p));
        if (!stop) stop = end;
        if (stop > p) TRY(take_item(r, p, stop));
    }
    const bool none = s->nitem == s->item_at[s->ntoken];
    const char *first = none ? "-" : vocab_word(&s->item_word, s->item[s->item_at[s->ntoken]]);
    TRY(take_field(r, 1, first, (i64)strlen(first)));
    s->item_at[++s->ntoken] = s->nitem;
    return 0;
}

/* ------------------------------------------------------------------ text ---------------------------------------------------- */

static err take_text(struct reading *r, const char *p, const char *const end) {
    if (end - p >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0) p += 3;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        const char *next = stop ? stop + 1 : end;
        if (!stop) stop = end;
        while (stop > p && (stop[-1] == '\r' || is_blank(stop[-1]))) stop--;
        r->line++;
        TRY(check_text(r, p, stop));
        while (p < stop && is_blank(*p) && r->take == take_line) p++;
        if (p == stop) r->inside = false;
        else TRY(r->take(r, p, stop));
        p = next;
    }
    if (r->s->nsentence == 0) return FAIL_AT(E201, r->file, "a file with one token per line", "the file holds no token");
    r->s->first[r->s->nsentence] = r->s->ntoken;
    return 0;
}

/* ------------------------------------------------------------------ roles --------------------------------------------------- */

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void summarise(struct token_set *s) {
    struct dataset *d = &s->set;
    d->nrow = s->nsentence;
    d->ncol = s->ncolumn;
    d->ntarget = s->tag >= 0;
    const i64 parts = s->items ? s->item_word.n : s->ncolumn;
    const char *what = s->items ? "different item" : "column";
    const i32 n = snprintf(d->summary, sizeof d->summary, "read %.200s: %d sentence%s, %lld tokens, %lld %s%s",
                           base_name(d->path), s->nsentence, s->nsentence == 1 ? "" : "s", (long long)s->ntoken,
                           (long long)parts, what, parts == 1 ? "" : "s");
    if (s->tag >= 0 && n < (i32)sizeof d->summary)
        snprintf(d->summary + n, sizeof d->summary - (size_t)n, ", %d different tags", token_tag(s)->word.n);
}

static err set_roles(struct token_set *s, i32 tag) {
    s->tag = tag == TOKENS_NO_TAG ? -1 : tag == TOKENS_LAST ? s->ncolumn - 1 : tag;
    if (s->tag >= s->ncolumn)
        return FAIL_AT(E102, s->set.path, "--target of a column that exists", "the tag is in column %d, the file has %d",
                       s->tag + 1, s->ncolumn);
    NEW(s->input, s->ncolumn);
    for (i32 c = 0; c < s->ncolumn; c++) {
        if (c == s->tag) snprintf(s->column[c].name, sizeof s->column[c].name, "tag");
        else if (s->items) snprintf(s->column[c].name, sizeof s->column[c].name, "first item");
        else snprintf(s->column[c].name, sizeof s->column[c].name, "column %d", c + 1);
        if (c != s->tag) s->input[s->ninput++] = c;
    }
    if (s->ninput == 0)
        return FAIL_AT(E102, s->set.path, "a file with a column of words before the tags",
                       "the lines have one column, which would be the tag");
    summarise(s);
    return 0;
}

/* ------------------------------------------------------------------ reading ------------------------------------------------- */

static err load(const char *path, bool items, struct token_set **out) {
    struct reading r = {.file = base_name(input_label(path)), .take = items ? take_items : take_line};
    char *text;
    i64 n;
    *out = NULL;
    TRY(zfile_load(path, &text, &n));
    err e = first_bytes_check(r.file, text, n, "a text of sentences", "write the data as text");
    if (e >= 0) e = dataset_new(&data_tokens, path, sizeof *r.s, &r.s);
    if (e >= 0) e = take_text(&r, text, text + n);
    mem_free(text);
    if (e < 0 && r.s) dataset_free(&r.s->set);
    if (e >= 0) *out = r.s;
    return e;
}

static err end_read(struct token_set *s, err e, struct dataset **out) {
    if (e < 0) dataset_free(&s->set);
    else *out = &s->set;
    return e;
}

err token_set_read(const char *path, i32 tag, struct dataset **out) {
    struct token_set *s;
    *out = NULL;
    TRY(load(path, false, &s));
    return end_read(s, set_roles(s, tag), out);
}

err token_set_read_as(const char *path, i32 ncolumn, i32 tag, struct dataset **out) {
    struct token_set *s;
    err e;
    *out = NULL;
    TRY(load(path, false, &s));
    if (s->ncolumn == ncolumn) e = set_roles(s, tag);
    else if (tag >= 0 && s->ncolumn == ncolumn - 1) e = set_roles(s, TOKENS_NO_TAG);
    else
        e = FAIL_AT(E903, s->set.path, "a file with the columns of the training",
                    "the lines have %d columns, the model was trained on %d%s", s->ncolumn, ncolumn,
                    tag >= 0 ? " with the tag" : "");
    return end_read(s, e, out);
}

err token_set_read_items(const char *path, struct dataset **out) {
    struct token_set *s;
    *out = NULL;
    TRY(load(path, true, &s));
    return end_read(s, set_roles(s, 0), out);
}

static err read_items(const struct options *o, const char *path, struct dataset **out) {
    if (strcmp(o->task, "crf") != 0)
        return FAIL_AT(E106, "--tokens", "--task crf", "--task %s reads columns of words, not items as CRFsuite does", o->task);
    if (o->target && *o->target)
        return FAIL_AT(E106, "--target", "no --target", "the tag is what a line of CRFsuite's format begins with");
    return token_set_read_items(path, out);
}

static err read_file(const struct options *o, const char *path, struct dataset **out) {
    i64 column;
    if (strcmp(o->tokens, "crfsuite") == 0) return read_items(o, path, out);
    if (!o->target || !*o->target) return token_set_read(path, o->states > 0 ? TOKENS_NO_TAG : TOKENS_LAST, out);
    if (!str_to_i64(o->target, strlen(o->target), &column) || column < 0 || column > COLUMNS_MAX)
        return FAIL_AT(E103, "--target", "--target 3", "\"%.100s\" is no number of a column", o->target);
    return token_set_read(path, column == 0 ? TOKENS_NO_TAG : (i32)column - 1, out);
}

err token_set_split(const struct options *o, const struct token_set *s, struct split *out) {
    const struct series bare = {.nrow = s->nsentence};
    if (out->test > 0) return 0;
    return split_make(&bare, s->nsentence, opt_is_auto(o, OPT_validation) ? "0" : o->validation,
                      opt_is_auto(o, OPT_test) ? "0" : o->test, out);
}

/* ------------------------------------------------------------------ the kind ------------------------------------------------ */

static void free_set(struct dataset *d) {
    struct token_set *s = token_set_of(d);
    for (i32 c = 0; c < s->ncolumn; c++) {
        mem_free(s->column[c].code);
        vocab_free(&s->column[c].word);
    }
    mem_free(s->item_at);
    mem_free(s->item);
    vocab_free(&s->item_word);
    mem_free(s->column);
    mem_free(s->input);
    mem_free(s->first);
    mem_free(s->line);
    mem_free(s);
}

static u64 hash(const struct dataset *d) {
    const struct token_set *s = token_set_of(d);
    u64 h = comm_hash(COMM_HASH, s->first, sizeof *s->first * (size_t)(s->nsentence + 1));
    h = comm_hash(h, &s->tag, sizeof s->tag);
    for (i32 c = 0; c < s->ncolumn; c++) {
        h = comm_hash(h, s->column[c].code, sizeof *s->column[c].code * (size_t)s->ntoken);
        h = comm_hash(h, s->column[c].word.bytes, (size_t)s->column[c].word.fill);
    }
    if (!s->items) return h;
    h = comm_hash(h, s->item_at, sizeof *s->item_at * (size_t)(s->ntoken + 1));
    h = comm_hash(h, s->item, sizeof *s->item * (size_t)s->nitem);
    h = comm_hash(h, s->item_word.bytes, (size_t)s->item_word.fill);
    return h;
}

/* The tag comes first, as targets of other kinds do. */
static const char *column(const struct dataset *d, i32 i) {
    const struct token_set *s = token_set_of(d);
    return i < d->ntarget ? token_tag(s)->name : token_input(s, i - d->ntarget)->name;
}

static f64 value(const struct dataset *d, i32 i, i64 row) {
    (void)d, (void)i, (void)row;
    return (f64)NAN; /* words */
}

static void label(const struct dataset *d, i64 row, char out[32]) {
    snprintf(out, 32, "line %lld", (long long)token_set_of(d)->line[row]);
}

err token_one_tag(const struct token_set *s, i64 tokens) {
    char where[256];
    token_where(s, 0, where);
    return FAIL_AT(E212, where, "a file with at least two different tags",
                   "this token and all %lld of the training have the tag \"%.100s\"", (long long)tokens,
                   token_word(token_tag(s), 0));
}

void token_where(const struct token_set *s, i64 token, char where[256]) {
    i32 lo = 0, hi = s->nsentence - 1;
    while (lo < hi) {
        const i32 mid = lo + (hi - lo + 1) / 2;
        if (s->first[mid] <= token) lo = mid;
        else hi = mid - 1;
    }
    file_where(base_name(s->set.path), s->line[lo] + token - s->first[lo], 0, where);
}

static i32 facts(const struct dataset *d, struct report_fact *fact, struct arena *a) {
    const struct token_set *s = token_set_of(d);
    fact[0] = (struct report_fact){"tokens", arena_printf(a, "%lld", (long long)s->ntoken)};
    fact[1] = (struct report_fact){"input columns", arena_printf(a, "%d", s->ninput)};
    if (s->tag < 0) return 2;
    fact[2] = (struct report_fact){"tags", arena_printf(a, "%d", token_tag(s)->word.n)};
    return 3;
}

static const enum opt_id takes[] = {OPT_tokens, OPT_target, OPT_validation, OPT_test, OPT_data_changed, OPT_COUNT};

const struct data_kind data_tokens = {
    .name = "tokens",
    .takes = takes,
    .read = read_file,
    .free = free_set,
    .hash = hash,
    .column = column,
    .value = value,
    .label = label,
    .facts = facts,
};
