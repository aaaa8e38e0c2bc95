/* jsonl.c - the reader of JSON lines: walks over the lines of the files twice (jsonl.h).
 *
 * A column is of numbers if its values are numbers or true and false (1 and 0), of text if they are text.  Where both occur, the
 * more frequent decides: a text among numbers is an error as in a CSV file, numbers among texts are words. */
#include "data/jsonl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/input.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/zfile.h"
#include "data/arrow.h"
#include "data/check.h"
#include "data/folder.h"
#include "data/mend.h"
#include "data/names.h"
#include "data/reader.h"

enum { PIECE = 1 << 20, LINE_MAX = 64 << 20, HEAD = 4096, KEYS_MAX = 1 << 20 };

static const char *const endings[] = {".jsonl",   ".ndjson",    ".json",       ".jsonl.gz", ".ndjson.gz",
                                      ".json.gz", ".jsonl.zst", ".ndjson.zst", ".json.zst", NULL};

/* What the first walk counts of a key. */
struct key {
    i64 numbers, flags, texts, nested; /* values; flags: true and false; texts: those that do not mean missing */
    i64 line;                          /* in which it was seen last */
    i64 bad;                           /* texts in a column of numbers */
};

/* The bytes of a file in order. */
struct bytes {
    struct file_in file;
    char *mem; /* of a compressed file; else NULL */
    i64 size, at;
};

struct jsonl {
    struct arrow a;    /* the columns */
    struct vocab keys; /* a word's number is its field */
    struct key *key;
    i64 key_cap;
    char *piece; /* bytes of the file, from `at` on not yet read */
    i64 cap, at, fill;
    const char *path; /* of the file */
    i64 line;         /* of the file, from 1 */
    i64 above;        /* lines of the files before */
    i64 lines, rows;  /* of the first walk */
};

/* ------------------------------------------------------------------ messages ------------------------------------------------ */

static err bad_line(const struct jsonl *j, const struct jsonl_line *l, enum err_code code, const char *fix, const char *text) {
    char where[256];
    file_where(j->path, j->line, (i32)lmin(l->p - l->start + 1, INT32_MAX), where);
    return FAIL_AT(code, where, fix, "%s", text);
}

static err bad_syntax(const struct jsonl *j, const struct jsonl_line *l) {
    return bad_line(j, l, E202, "jq -c . OLD > NEW   (an object a line)   or   repair the line", l->why);
}

static err refuse_nested(const struct jsonl *j, const struct jsonl_line *l, const char *key, const struct jsonl_text *type) {
    char fix[400], text[200], word[MEND_PATH];
    snprintf(fix, sizeof fix, "--ignore %s   or   write its values under names of their own", mend_word(key, word));
    snprintf(text, sizeof text, "column \"%.100s\" is a nested %.*s; numbers, texts, true, false and null are read", key,
             (int)type->n, type->s);
    return bad_line(j, l, E214, fix, text);
}

/* ------------------------------------------------------------------ the first walk ------------------------------------------ */

static err key_of(struct jsonl *j, const struct jsonl_line *l, const struct jsonl_text *k, struct key **out) {
    const i32 before = j->keys.n;
    i32 code;
    char text[200];
    if (k->n > 255) return bad_line(j, l, E202, "a shorter name", "a name of more than 255 bytes");
    TRY(vocab_code(&j->keys, k->s, k->n, &code));
    if (j->keys.n > KEYS_MAX)
        return bad_line(j, l, E202, NULL, "the lines have too many names: values seem to be written as names");
    GROW(j->key, code, j->key_cap);
    if (j->keys.n > before) j->key[code] = (struct key){0};
    *out = &j->key[code];
    snprintf(text, sizeof text, "the name \"%.100s\" comes twice in this line", vocab_word(&j->keys, code));
    if ((*out)->line == j->above + j->line) return bad_line(j, l, E202, "one value for each name", text);
    (*out)->line = j->above + j->line;
    return 0;
}

static err count_line(struct jsonl *j, struct jsonl_line *l) {
    struct jsonl_text k, v;
    enum jsonl_kind kind;
    i32 more;
    while ((more = jsonl_next(l, &k, &kind, &v)) > 0) {
        struct key *key = NULL;
        TRY(key_of(j, l, &k, &key));
        const char *name = vocab_word(&j->keys, (i32)(key - j->key));
        if (kind == JSONL_NESTED && !name_listed(j->a.o->ignore, name)) return refuse_nested(j, l, name, &v);
        key->nested += kind == JSONL_NESTED;
        key->numbers += kind == JSONL_NUMBER;
        key->flags += kind == JSONL_TRUE || kind == JSONL_FALSE;
        key->texts += kind == JSONL_TEXT && !missing_word(&j->a.na, v.s, v.n);
    }
    if (more < 0) return bad_syntax(j, l);
    j->rows++;
    return 0;
}

/* ------------------------------------------------------------------ the second walk ----------------------------------------- */

static err bad_number(struct jsonl *j, const struct jsonl_line *l, struct key *key, const struct arrow_field *f,
                      const struct jsonl_text *v) {
    char fix[600], text[400], cell[120];
    snprintf(cell, sizeof cell, "%.*s", (int)lmin(v->n, 100), v->s);
    mend_cell(cell, f->name, j->a.o->numbers, fix, sizeof fix);
    snprintf(text, sizeof text, "\"%s\" in column \"%.200s\" is not a number", cell, f->name);
    if (key->bad++ > 0) return 0;
    const err e = bad_line(j, l, E204, fix, text);
    if (!j->a.o->found) return e;
    findings_add(j->a.o->found, false, f->col, err_last());
    return 0;
}

static err put_number(struct jsonl *j, const struct jsonl_line *l, struct key *key, struct arrow_field *f, enum jsonl_kind kind,
                      const struct jsonl_text *v) {
    f64 x = kind == JSONL_TRUE;
    const bool none = kind == JSONL_TEXT && missing_word(&j->a.na, v->s, v->n);
    if (kind == JSONL_NUMBER && v->s[v->n - 1] == 'y') {
        x = *v->s == '-' ? (f64)-INFINITY : (f64)INFINITY;
    } else if ((kind == JSONL_NUMBER || kind == JSONL_TEXT) && !none && !str_to_f64(v->s, (size_t)v->n, '.', &x)) {
        if (kind == JSONL_NUMBER) return bad_line(j, l, E202, "repair the line", "this is no number of JSON");
        TRY(bad_number(j, l, key, f, v));
        x = (f64)NAN;
    }
    if (none || isnan(x) || missing_number(&j->a.na, x)) return arrow_put_missing(&j->a, f, j->a.row);
    j->a.t->col[f->col].number[j->a.row] = x;
    return 0;
}

static err put_line(struct jsonl *j, struct jsonl_line *l) {
    struct jsonl_text k, v;
    enum jsonl_kind kind;
    i32 more;
    if (j->a.row == j->a.t->nrow) return arrow_changed(j->path);
    if (j->a.t->line) j->a.t->line[j->a.row] = j->above + j->line;
    while ((more = jsonl_next(l, &k, &kind, &v)) > 0) {
        const i32 code = vocab_find(&j->keys, k.s, k.n);
        if (code < 0) return arrow_changed(j->path);
        struct arrow_field *f = &j->a.field[code];
        if (f->col < 0 || kind == JSONL_NULL) continue;
        j->key[code].line = j->above + j->line;
        if (j->a.t->col[f->col].type == COL_NUMBER)
            TRY(put_number(j, l, &j->key[code], f, kind, &v));
        else
            TRY(arrow_put_word(&j->a, f, j->a.row, v.s, v.n));
    }
    if (more < 0) return bad_syntax(j, l);
    for (i32 i = 0; i < j->a.nfield; i++)
        if (j->a.field[i].col >= 0 && j->key[i].line != j->above + j->line)
            TRY(arrow_put_missing(&j->a, &j->a.field[i], j->a.row));
    j->a.row++;
    return 0;
}

/* ------------------------------------------------------------------ lines --------------------------------------------------- */

static err open_bytes(const char *path, struct bytes *b) {
    u8 head[4] = {0};
    *b = (struct bytes){.file.fd = -1};
    TRY(file_open(path, &b->file));
    const i64 seen = lmax(0, lmin(b->file.size, 4));
    TRY(file_read_at(&b->file, 0, head, seen));
    b->size = b->file.size;
    if (b->size >= 0 && zfile_kind(head, seen) == Z_PLAIN) return 0;
    file_close(&b->file);
    return zfile_load(path, &b->mem, &b->size);
}

/* Up to n bytes; 0 = the end. */
static err read_bytes(struct bytes *b, char *to, i64 n, i64 *got) {
    *got = lmin(n, b->size - b->at);
    if (b->mem)
        memcpy(to, b->mem + b->at, (size_t)*got);
    else
        TRY(file_read_at(&b->file, b->at, to, *got));
    b->at += *got;
    return 0;
}

/* Makes room behind the bytes that are not yet read, and reads more. */
static err refill(struct jsonl *j, struct bytes *b, i64 *got) {
    j->fill -= j->at;
    if (j->at && j->fill) memmove(j->piece, j->piece + j->at, (size_t)j->fill);
    j->at = 0;
    if (j->fill == j->cap || !j->piece) {
        const i64 cap = lmax(PIECE, 2 * j->cap);
        char where[256];
        file_where(j->path, j->line + 1, 0, where);
        if (cap > LINE_MAX)
            return FAIL_AT(E202, where, NULL, "a line of more than %d MiB: these are no JSON lines", LINE_MAX >> 20);
        char *more = mem_realloc(j->piece, (size_t)cap);
        if (!more) return -E601;
        j->piece = more;
        j->cap = cap;
    }
    TRY(read_bytes(b, j->piece + j->fill, j->cap - j->fill, got));
    j->fill += *got;
    return 0;
}

static bool is_blank(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r')) p++;
    return p == end;
}

/* Gives every line that is not blank to `take`. */
static err each_line(struct jsonl *j, struct bytes *b, err (*take)(struct jsonl *j, struct jsonl_line *l)) {
    bool ended = false;
    i64 looked = 0; /* bytes behind j->at without a line feed */
    j->line = j->at = j->fill = 0;
    while (!ended || j->at < j->fill) {
        char *p = j->piece ? j->piece + j->at : NULL, /* nothing was read yet */
             *feed = looked < j->fill - j->at ? memchr(p + looked, '\n', (size_t)(j->fill - j->at - looked)) : NULL;
        if (!feed && !ended) {
            i64 got = 0;
            looked = j->fill - j->at;
            TRY(refill(j, b, &got));
            ended = got == 0;
            continue;
        }
        char *const end = feed ? feed : j->piece + j->fill;
        if (++j->line == 1 && end - p >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0) p += 3;
        struct jsonl_line l = {.start = p, .p = p, .end = end};
        if (!is_blank(p, end)) TRY(take(j, &l));
        j->at = end - j->piece + (feed != NULL);
        looked = 0;
    }
    return 0;
}

static err walk(struct jsonl *j, err (*take)(struct jsonl *j, struct jsonl_line *l)) {
    j->above = 0;
    for (i32 k = 0; k < j->a.npart; k++) {
        struct bytes b;
        const i64 before = j->rows;
        j->a.part[k].above = j->above;
        j->path = input_label(j->a.part[k].path);
        err e = open_bytes(j->a.part[k].path, &b);
        if (e >= 0) e = each_line(j, &b, take);
        mem_free(b.mem);
        file_close(&b.file);
        TRY(e);
        if (take == count_line) j->a.part[k].rows = j->rows - before;
        j->above += j->line;
    }
    j->lines = j->above;
    return 0;
}

/* ------------------------------------------------------------------ columns ------------------------------------------------- */

static err define(struct jsonl *j) {
    struct arrow *a = &j->a;
    a->nfield = j->keys.n;
    ARENA_NEW(&a->memory, a->field, a->nfield);
    for (i32 i = 0; i < a->nfield; i++) {
        const struct key *k = &j->key[i];
        struct arrow_field *f = &a->field[i];
        const i64 numbers = k->numbers + k->flags;
        char name[300];
        const char *s = vocab_word(&j->keys, i);
        snprintf(name, sizeof name, "column%d", i + 1);
        if (*s) snprintf(name, sizeof name, "%s", s);
        for (char *p = name; *p; p++)
            if ((u8)*p < 32) *p = ' ';
        TRY(arena_keep(&a->memory, &f->name, name));
        f->type.kind = k->nested ? ARROW_OTHER : k->texts > 0 && k->texts >= numbers ? ARROW_TEXT : ARROW_FLOAT;
        f->type.bytes = 8;
        snprintf(f->type.name, sizeof f->type.name, "%s", k->nested ? "nested value" : "number");
        j->key[i].line = 0;
    }
    TRY(arrow_define(a));
    for (i32 i = 0; i < a->nfield; i++)
        if (a->field[i].role == AS_TIME && j->key[i].texts > 0) a->field[i].type.kind = ARROW_TEXT;
    TRY(arrow_columns(a));
    for (i32 i = 0; i < a->t->ncol; i++) a->t->col[i].field = 0; /* names have no number in a line */
    return 0;
}

static err read_lines(struct jsonl *j) {
    struct arrow *a = &j->a;
    struct table *t = a->t;
    TRY(walk(j, count_line));
    if (j->keys.n == 0) return FAIL_AT(E201, t->path, NULL, "the lines hold no value");
    t->nrow = j->rows;
    TRY(arrow_name_parts(a));
    if (j->lines != j->rows) NEW(t->line, t->nrow);
    TRY(define(j));
    return walk(j, put_line);
}

static err read(const char *path, const struct read_options *o, struct table **out) {
    struct jsonl j = {0};
    err e = arrow_open(&j.a, path, o, endings, "JSON lines");
    if (e >= 0) e = read_lines(&j);
    vocab_free(&j.keys);
    mem_free(j.key);
    mem_free(j.piece);
    return arrow_close(&j.a, e, out);
}

static bool is(const char *path) {
    const struct err_record before = *err_last();
    char head[HEAD];
    i64 n;
    if (folder_is(path)) return folder_has(path, endings);
    if (zfile_head(path, head, HEAD, &n) >= 0) return jsonl_head(head, n);
    err_put(&before); /* the next reader reports it */
    return false;
}

extern const struct reader reader_jsonl;
const struct reader reader_jsonl = {
    .name = "jsonl",
    .help = "JSON lines: one object a line; .gz, .zst; a folder of them",
    .is = is,
    .read = read,
};
