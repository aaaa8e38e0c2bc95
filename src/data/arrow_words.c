/* arrow_words.c - text columns of an Arrow table.
 *
 *     cells or dictionary --> codes of a vocabulary, in order of first appearance --> category, or times as of a CSV file
 *
 * The codes are those that the CSV reader gives the same rows, so the model is the same, too. */
#include <stdio.h>
#include <string.h>

#include "base/spill.h"
#include "base/str.h"
#include "data/arrow.h"

enum { UNUSED = -2, SAMPLE_ROWS = 1000 };
enum { WORDS_ID, WORDS_DATA, WORDS_DELTA };

err arrow_put_missing(struct arrow *a, const struct arrow_field *f, i64 row) {
    struct column *c = &a->t->col[f->col];
    if (c->missing++ == 0) c->first_missing_line = table_line(a->t, row);
    if (c->type == COL_NUMBER) c->number[row] = (f64)NAN;
    else if (c->type == COL_CATEGORY) c->code[row] = -1;
    else c->time[row] = 0;
    return 0;
}

err arrow_need_time(const struct arrow *a, const struct arrow_field *f, i64 row) {
    char where[256];
    table_where(a->t, row, &a->t->col[f->col], where);
    return FAIL_AT(E205, where, "leave the row out before the table is written", "time column \"%s\" is empty here", f->name);
}

static bool is_whole_text(const char *s, i64 n) {
    for (i64 i = 0; i < n;) {
        const i32 bytes = s[i] ? str_utf8(s + i, (size_t)(n - i)) : 0;
        if (bytes == 0) return false;
        i += bytes;
    }
    return true;
}

/* The code of a word, -1 if it means missing. */
static err code_of(struct arrow *a, struct arrow_field *f, i64 row, const char *s, i64 n, i32 *code) {
    const i32 before = f->vocab.n;
    char where[256];
    *code = -1;
    if (missing_word(&a->na, s, n)) return 0;
    if (f->vocab.n == INT32_MAX) return FAIL(E601, "column \"%s\" has too many words", f->name);
    TRY(vocab_code(&f->vocab, s, n, code));
    if (f->vocab.n == before || is_whole_text(s, n)) return 0;
    table_where(a->t, row, &a->t->col[f->col], where);
    return FAIL_AT(E202, where, "write the column as UTF-8 text without zero bytes", "the text in column \"%s\" is not UTF-8",
                   f->name);
}

static void store(struct arrow *a, const struct arrow_field *f, i64 row, i32 code) {
    if (code < 0) arrow_put_missing(a, f, row);
    else a->t->col[f->col].code[row] = code;
}

err arrow_put_word(struct arrow *a, struct arrow_field *f, i64 row, const char *s, i64 n) {
    i32 code;
    TRY(code_of(a, f, row, s, n, &code));
    store(a, f, row, code);
    return 0;
}

/* ------------------------------------------------------------------ dictionaries -------------------------------------------- */

err arrow_keep_word(struct arrow_words *w, const char *s, i64 n, bool missing) {
    GROW(w->at, w->n + 1, w->at_cap);
    GROW(w->code, w->n, w->code_cap);
    if (w->n == 0) w->at[0] = 0;
    const i64 fill = w->at[w->n];
    if (fill + n > w->cap) {
        const i64 cap = lmax(2 * w->cap, fill + n + 256);
        char *bytes = mem_realloc(w->bytes, (size_t)cap);
        if (!bytes) return -E601;
        w->bytes = bytes;
        w->cap = cap;
    }
    if (n) memcpy(w->bytes + fill, s, (size_t)n);
    w->code[w->n++] = missing ? -1 : UNUSED;
    w->at[w->n] = fill + n;
    return 0;
}

static err keep_words(struct arrow_field *f, struct arrow_message *m, const struct arrow_cells *c) {
    for (i64 i = 0; i < c->rows; i++) {
        const char *s = "";
        i64 n = 0;
        if (!arrow_word(c, &f->type, i, &s, &n)) return arrow_damaged(m, "a word lies outside its buffer");
        TRY(arrow_keep_word(&f->words, s, n, !arrow_valid(c, i)));
    }
    return 0;
}

err arrow_dictionary(struct arrow *a, struct arrow_message *m) {
    struct flat_table data;
    struct arrow_batch b;
    struct arrow_cells c;
    const i64 id = flat_number(&m->header, WORDS_ID, 8, 0);
    const bool more = flat_number(&m->header, WORDS_DELTA, 1, 0) != 0;
    for (i32 i = 0; i < a->nfield; i++) {
        struct arrow_field *f = &a->field[i];
        if (!f->coded || f->col < 0 || f->dictionary != id) continue;
        if (!flat_child(&m->header, WORDS_DATA, &data)) return arrow_damaged(m, "the dictionary has no words");
        TRY(arrow_batch(m, &data, f->type.nodes, 3, &b));
        TRY(arrow_check(&b, &f->type, 0, 0));
        TRY(arrow_load(a, &b, &f->type, 0, 0, &c));
        if (!more) f->words.n = 0;
        TRY(keep_words(f, m, &c));
    }
    return 0;
}

void arrow_free_words(struct arrow_field *f) {
    zone_free(f->place);
    vocab_free(&f->vocab);
    mem_free(f->words.at);
    mem_free(f->words.bytes);
    mem_free(f->words.code);
    f->words = (struct arrow_words){0};
}

static err put_coded(struct arrow *a, struct arrow_field *f, const struct arrow_message *m, const struct arrow_cells *c) {
    struct arrow_words *w = &f->words;
    for (i64 i = 0; i < c->rows; i++) {
        const i64 row = a->row + i, k = arrow_valid(c, i) ? arrow_whole(&f->index, c->data, i) : -1;
        if (k < 0 && !arrow_valid(c, i)) {
            store(a, f, row, -1);
            continue;
        }
        if (k < 0 || k >= w->n) return arrow_damaged(m, "a cell names a word that its dictionary does not have");
        if (w->code[k] == UNUSED) TRY(code_of(a, f, row, w->bytes + w->at[k], w->at[k + 1] - w->at[k], &w->code[k]));
        store(a, f, row, w->code[k]);
    }
    return 0;
}

err arrow_put_words(struct arrow *a, struct arrow_field *f, const struct arrow_message *m, const struct arrow_cells *c) {
    if (f->coded) return put_coded(a, f, m, c);
    for (i64 i = 0; i < c->rows; i++) {
        const char *s;
        i64 n;
        if (!arrow_valid(c, i)) {
            store(a, f, a->row + i, -1);
            continue;
        }
        if (!arrow_word(c, &f->type, i, &s, &n)) return arrow_damaged(m, "a word lies outside its buffer");
        TRY(arrow_put_word(a, f, a->row + i, s, n));
    }
    return 0;
}

/* ------------------------------------------------------------------ times --------------------------------------------------- */

static err no_time(const struct arrow *a, const struct arrow_field *f, i64 row, const char *word, const char *why) {
    char where[256], fix[TIME_ADVICE + 60], known[TIME_ADVICE];
    const i32 len = (i32)lmin((i64)strlen(word), 60);
    const bool told = time_advice(&word, &len, 1, known) > 0;
    snprintf(fix, sizeof fix, "%s", told ? known : "--time-format row   (rows are the time)   or   write it as a timestamp");
    table_where(a->t, row, &a->t->col[f->col], where);
    return FAIL_AT(E205, where, fix, "\"%.*s\" in time column \"%s\": %s", len, word, f->name, why);
}

/* The present cells among the first rows. */
static i32 sample(const struct arrow *a, const struct arrow_field *f, const char **cell, i32 *len) {
    const i32 *code = a->t->col[f->col].code;
    i32 n = 0;
    for (i64 i = 0; i < a->t->nrow && n < SAMPLE_ROWS; i++) {
        if (code[i] < 0) continue;
        cell[n] = vocab_word(&f->vocab, code[i]);
        len[n] = (i32)lmin((i64)strlen(cell[n]), INT32_MAX);
        n++;
    }
    return n;
}

/* The layout in which a text column holds times; TIME_NONE: it holds words. */
static err find_layout(struct arrow *a, const struct arrow_field *f, bool have_time, struct time_parser *p) {
    const struct read_options *o = a->o;
    const bool by_row = o->time_format && !strcmp(o->time_format, "row"), named = f->role == AS_TIME;
    const char **cell;
    i32 *len;
    bool ambiguous = false;
    *p = (struct time_parser){.kind = TIME_NONE};
    if (by_row || f->role == AS_WORDS || (!named && (have_time || (o->time && *o->time)))) return 0;
    ARENA_NEW(&a->memory, cell, SAMPLE_ROWS);
    ARENA_NEW(&a->memory, len, SAMPLE_ROWS);
    const i32 n = sample(a, f, cell, len);
    const struct time_parser custom = {.kind = TIME_CUSTOM, .format = o->time_format};
    if (n == 0) return named ? arrow_need_time(a, f, 0) : 0;
    if (o->time_format) {
        if (named || 3 * time_count(&custom, cell, len, n) >= 2 * n) *p = custom;
        return 0;
    }
    p->kind = named ? time_guess(cell, len, n, !strchr(o->time, ','), &ambiguous) : time_guess_most(cell, len, n, &ambiguous);
    if (ambiguous) return no_time(a, f, 0, cell[0], "day or month first? No row settles it");
    if (named && p->kind == TIME_NONE) return no_time(a, f, 0, cell[0], "not in a known date or time format");
    if (!named && p->kind == TIME_CLOCK) p->kind = TIME_NONE; /* a time of day is part of a time, as a word */
    return 0;
}

/* Replaces the codes of a column by times. */
static err words_to_times(struct arrow *a, struct arrow_field *f, const struct time_parser *p) {
    struct column *c = &a->t->col[f->col];
    i64 *time;
    bool zones = false;
    ARENA_NEW(&a->memory, time, f->vocab.n);
    i32 *offset;
    ARENA_NEW(&a->memory, offset, f->vocab.n);
    for (i64 i = 0; i < a->t->nrow; i++) {
        const i32 k = c->code[i];
        if (k < 0) return arrow_need_time(a, f, i);
        if (offset[k] < 0) continue; /* parsed, without a zone */
        const char *word = vocab_word(&f->vocab, k);
        i32 zone;
        if (!time_parse(p, word, strlen(word), &time[k]))
            return no_time(a, f, i, word, "no date or time in the layout of the rows before");
        offset[k] = time_offset(p, word, (i64)strlen(word), &zone) ? zone + 86400 : -1;
        zones |= offset[k] > 0;
    }
    NEW_SPILL(c->time, a->t->nrow);
    if (zones) NEW_SPILL(c->offset, a->t->nrow);
    for (i64 i = 0; i < a->t->nrow; i++) {
        c->time[i] = time[c->code[i]];
        if (zones) c->offset[i] = imax(offset[c->code[i]], 0);
    }
    mem_free(c->code);
    c->code = NULL;
    c->type = COL_TIME;
    c->by_layout = p->kind == TIME_CUSTOM;
    return zones ? table_settle_zone(a->t, c) : 0;
}

/* Moves the vocabulary to the column: words in the arena of the table. */
static err give_words(struct arrow *a, struct arrow_field *f) {
    struct column *c = &a->t->col[f->col];
    struct vocab *v = &f->vocab;
    char *bytes;
    c->nword = v->n;
    ARENA_NEW(&a->t->names, c->word, v->n + 1);
    ARENA_NEW(&a->t->names, bytes, v->fill + 1);
    if (v->fill) memcpy(bytes, v->bytes, (size_t)v->fill);
    for (i32 w = 0; w < v->n; w++) c->word[w] = bytes + v->at[w];
    return 0;
}

err arrow_settle_words(struct arrow *a) {
    bool have_time = false;
    for (i32 i = 0; i < a->t->ncol; i++) have_time |= a->t->col[i].type == COL_TIME;
    for (i32 i = 0; i < a->nfield; i++) {
        struct arrow_field *f = &a->field[i];
        struct time_parser p;
        if (f->place) TRY(table_settle_zone(a->t, &a->t->col[f->col]));
        if (f->col < 0 || a->t->col[f->col].type != COL_CATEGORY) continue;
        TRY(find_layout(a, f, have_time, &p));
        if (p.kind == TIME_NONE) TRY(give_words(a, f));
        else TRY(words_to_times(a, f, &p));
        have_time |= p.kind != TIME_NONE;
    }
    return 0;
}
