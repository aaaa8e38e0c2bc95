/* csv_parse.c - the second pass: reads each cell once and writes it to its final place. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "data/csv.h"
#include "data/number.h"

/* One chunk being parsed. */
struct parse {
    struct csv *c;
    struct csv_chunk *k;
    struct csv_tally *tally;
    const char *end;      /* after the last line feed */
    i64 row, line;        /* row; line on which it starts */
    i64 feeds;            /* line feeds inside quotes in this row */
    struct time_memory time;
    char *scratch;        /* for cells with doubled quotes */
    i64 scratch_cap;
    err failed;
};

/* Records a problem for the report, up to CSV_PROBLEMS. fields: number found in a row that has too many or too few; 0 = the
 * cell in column `field` (from 1) cannot be read. */
static void problem(struct parse *s, i32 field, i32 fields, const char *text, i64 n) {
    struct csv_problems *list = fields ? &s->tally->rows : &s->tally->cells;
    if (list->n == CSV_PROBLEMS) return;
    struct csv_problem *p = &list->p[list->n++];
    *p = (struct csv_problem){.row = s->row, .line = s->line, .field = field, .fields = fields};
    csv_clean(p->text, sizeof p->text, text, n);
}

static void missing(struct parse *s, i32 col, const char *text, i64 n) {
    if (s->tally->missing[col]++ > 0) return;
    s->tally->first_missing[col] = s->line;
    csv_clean(s->tally->missing_text[col], CSV_WORD, text, n);
}

/* Stores a cell's text, without quotes. */
static void store(struct parse *s, i32 field, const char *p, i64 n) {
    const struct csv_field *f = &s->c->field[field];
    if (f->kind == FIELD_SKIP) return;
    bool none = csv_is_missing(s->c, p, n);
    if (f->kind == FIELD_TEXT) {
        i32 code = -1;
        if (none) missing(s, f->col, p, n);
        else if (vocab_code(&s->k->word[f->text], p, n, &code) < 0) s->failed = -E601;
        f->code[s->row] = code;
    } else if (f->kind == FIELD_NUMBER) {
        f64 v = (f64)NAN;
        const bool plain = none || number_read(p, p + n, s->c->mark, &v) == p + n;
        const bool grouped = !plain && number_grouped(p, n, s->c->mark, s->c->apart, &v);
        s->tally->grouped += grouped;
        if (!plain && !grouped) {
            v = (f64)NAN;
            if (s->tally->bad[f->col]++ < CSV_PROBLEMS) problem(s, field + 1, 0, p, n);
        } else if (none || isnan(v) || missing_number(&s->c->na, v)) {
            missing(s, f->col, p, n);
            v = (f64)NAN;
        }
        f->number[s->row] = v;
    } else if (none || !time_parse(&f->time, p, (size_t)n, &f->t[s->row])) {
        if (s->tally->bad[f->col]++ < CSV_PROBLEMS) problem(s, field + 1, 0, p, n);
    } else if (f->zoned) {
        i32 zone;
        s->c->t->col[f->col].offset[s->row] = time_offset(&f->time, p, n, &zone) ? zone + 86400 : 0;
    }
}

/* A quoted cell, copied to the scratch buffer without quotes. Returns the delimiter after it. */
static const char *quoted_cell(struct parse *s, i32 field, const char *p) {
    const char *from = p + 1, *end = s->end - 1; /* the last line feed remains a delimiter */
    const char *close = from;
    while (close < end && (close = memchr(close, '"', (size_t)(end - close))) != NULL && close + 1 < end && close[1] == '"')
        close += 2;
    if (!close || close > end) close = end;
    const char *q = close < end ? close + 1 : end;
    char sep = s->c->sep;
    while (*q != sep && *q != '\n') q++;
    const char *stop = q > close && *q == '\n' && q[-1] == '\r' ? q - 1 : q;
    i64 most = stop - from + CSV_BACK;
    if (most > s->scratch_cap) {
        char *room = mem_realloc(s->scratch, (size_t)(2 * most));
        if (!room) {
            s->failed = -E601;
            return q;
        }
        s->scratch = room;
        s->scratch_cap = 2 * most;
    }
    char *to = s->scratch;
    for (const char *i = from; i < close; i++) {
        *to++ = *i;
        s->feeds += *i == '\n';
        if (*i == '"') i++;
    }
    for (const char *i = close + 1; i < stop; i++) *to++ = *i;
    memset(to, 0, 16);
    store(s, field, s->scratch, to - s->scratch);
    return stop;
}

/* Any cell; returns the delimiter after it: the separator, a line feed, or the carriage return before one. */
static const char *slow_cell(struct parse *s, i32 field, const char *p) {
    if (*p == '"') return quoted_cell(s, field, p);
    const char *q = p;
    char sep = s->c->sep;
    while (*q != sep && *q != '\n') q++;
    if (q > p && *q == '\n' && q[-1] == '\r') q--;
    const char *from = p, *to = q;
    while (from < to && *from == ' ') from++;
    while (to > from && to[-1] == ' ') to--;
    store(s, field, from, to - from);
    return q;
}

static inline bool delimits(const char *q, char sep) { return *q == sep || *q == '\n' || (*q == '\r' && q[1] == '\n'); }

/* A row with too many or too few fields; returns the position after it. */
static const char *ragged(struct parse *s, const char *row) {
    i32 fields;
    const char *next = csv_count_fields(row, s->end, s->c->sep, &fields);
    s->feeds = 0;
    for (const char *p = row; p < next - 1; p++) s->feeds += *p == '\n';
    s->tally->ragged++;
    s->tally->longer += fields > s->c->nfield;
    problem(s, 0, fields, row, next - 1 - row);
    return next;
}

static const char *parse_row(struct parse *s, const char *p) {
    const struct csv *c = s->c;
    char sep = c->sep, mark = c->mark;
    const char *start = p;
    i32 n = c->nfield;
    for (i32 i = 0; i < n; i++) {
        const struct csv_field *f = &c->field[i];
        const char *q = NULL;
        f64 v = 0;
        if (f->kind == FIELD_NUMBER) {
            q = number_read(p, s->end, mark, &v); /* not into the column: that would wait for its cache line */
            f->number[s->row] = v;
        } else if (f->kind == FIELD_TIME && !f->zoned) { /* store() keeps the zones */
            q = time_read_again(&f->time, &s->time, p, s->end + CSV_BACK, &f->t[s->row]);
        } else if (f->kind == FIELD_SKIP && *p != '"') {
            for (q = p; *q != sep && *q != '\n';) q++;
        }
        if (!q || !delimits(q, sep) ||
            (f->kind == FIELD_NUMBER && (isnan(v) || missing_number(&c->na, v))))
            q = slow_cell(s, i, p);
        if (*q != sep) {
            if (i + 1 < n) return ragged(s, start);
            return q + 1 + (*q == '\r');
        }
        p = q + 1;
    }
    return ragged(s, start);
}

err csv_parse_bytes(struct csv *c, struct csv_chunk *k, char *first, i64 bytes, i32 thread) {
    if (c->ntext) NEW(k->word, c->ntext);
    struct parse s = {.c = c, .k = k, .tally = &c->tally[thread], .end = first + bytes, .row = k->row0, .line = k->line0};
    i64 last = k->row0 + k->rows;
    const char *p = first;
    while (p < s.end && s.failed >= 0) {
        if (*p == '\n' || (*p == '\r' && p[1] == '\n')) {
            p += 1 + (*p == '\r');
            s.line++;
            continue;
        }
        if (s.row == last) break;
        if (c->t->line) c->t->line[s.row] = s.line;
        p = parse_row(&s, p);
        s.row++;
        s.line += 1 + s.feeds;
        s.feeds = 0;
    }
    mem_free(s.scratch);
    if (s.failed < 0) return s.failed;
    if (s.row != last || p < s.end)
        return FAIL_AT(E213, c->src.name, "wait until it is written, then run again", "the file changed while it was read");
    return 0;
}

static err parse_chunk(struct csv *c, i64 i, i32 thread) {
    struct csv_chunk *k = &c->chunk[i];
    if (k->rows == 0) return 0;
    char *first;
    TRY(csv_read(&c->src, &c->buffer[thread], k->from, k->to, &first));
    i64 bytes = k->to - k->from;
    return csv_parse_bytes(c, k, first, bytes + (first[bytes - 1] != '\n'), thread); /* the margin consists of line feeds */
}

/* Merges the vocabularies of the chunks in order and renumbers the codes. */
static err merge_words(struct csv *c, const struct csv_field *f, i32 text) {
    struct vocab *all = &c->vocab[text];
    for (i64 i = 0; i < c->nchunk; i++) {
        struct csv_chunk *k = &c->chunk[i];
        if (!k->word) continue;
        struct vocab *part = &k->word[text];
        i32 *map;
        bool same = true;
        NEW(map, part->n);
        for (i32 w = 0; w < part->n; w++) {
            i64 len = (w + 1 < part->n ? part->at[w + 1] : part->fill) - part->at[w] - 1;
            if (vocab_code(all, vocab_word(part, w), len, &map[w]) < 0) {
                mem_free(map);
                return -E601;
            }
            same &= map[w] == w;
        }
        for (i64 r = k->row0; !same && r < k->row0 + k->rows; r++)
            if (f->code[r] >= 0) f->code[r] = map[f->code[r]];
        mem_free(map);
        vocab_free(part);
    }
    return 0;
}

/* Moves the merged vocabulary to the column: words in the arena of the table. */
static err keep_words(struct csv *c, struct column *col, struct vocab *v) {
    col->nword = v->n;
    ARENA_NEW(&c->t->names, col->word, v->n + 1);
    char *bytes;
    ARENA_NEW(&c->t->names, bytes, v->fill + 1);
    if (v->fill) memcpy(bytes, v->bytes, (size_t)v->fill);
    for (i32 w = 0; w < v->n; w++) col->word[w] = bytes + v->at[w];
    vocab_free(v);
    return 0;
}

err csv_parse(struct csv *c) {
    TRY(csv_each(c, parse_chunk));
    return csv_merge_words(c);
}

err csv_merge_words(struct csv *c) {
    for (i32 i = 0; i < c->nfield; i++) {
        struct csv_field *f = &c->field[i];
        if (f->kind != FIELD_TEXT) continue;
        TRY(merge_words(c, f, f->text));
        TRY(keep_words(c, &c->t->col[f->col], &c->vocab[f->text]));
    }
    return 0;
}
