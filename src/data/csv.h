/* csv.h - the inside of the text reader; only csv*.c and table.c include it.
 *
 *     head (first MiB) --sniff--> separator, decimal mark, header, kind of each field          csv_sniff.c, csv_marks.c
 *     chunks --scan, parallel--> records, lines, quotes, encoding of each chunk                csv_scan.c
 *     chunks --parse, parallel--> cells straight to their final place in the columns           csv_parse.c
 *     tallies --> one error with the first line and the count, or the table                    csv_report.c
 *
 * A large file without quotes and blank lines needs no scan: rows are guessed from samples, a chunk is counted when it is in
 * the cache and parsed as soon as the chunk before knows its last row (csv_once.c).
 *
 * Chunks are cut after a line feed.  Scanning assumes that a cut is outside of quotes; where the chunk before proves otherwise
 * it is scanned again from within a quoted field, and its range then begins at its first record.  So rows are counted exactly
 * before memory is asked for, every cell is written once, and the result does not depend on the number of threads. */
#ifndef STRETTO_DATA_CSV_H
#define STRETTO_DATA_CSV_H

#include "base/file.h"
#include "data/table.h"
#include "data/time.h"
#include "data/vocab.h"

enum {
    CSV_CHUNK = 1 << 19,      /* bytes */
    CSV_HEAD = 1 << 20,       /* bytes looked at before typing the columns */
    CSV_FRONT = 16,           /* readable bytes before a chunk in its buffer, all line feeds */
    CSV_BACK = 32,            /* and behind */
    CSV_LINE_MAX = 64 << 20,  /* longer than any line of a text table */
    CSV_FIELDS_MAX = 1 << 20,
    CSV_PROBLEMS = 20,
    CSV_WORD = 16,
    CSV_NA_WORDS = 64,        /* words for missing */
    CSV_NA = 8                /* numbers among them */
};

/* Where the bytes come from: a file, or memory (unpacked or from a pipe). */
struct csv_source {
    const char *path, *name; /* name: without the folders, for messages */
    struct file_in file;
    char *mem;               /* NULL = file */
    i64 size;
};

struct csv_buffer {
    char *p; /* CSV_FRONT line feeds, bytes, CSV_BACK line feeds */
    i64 cap;
};
/* Bytes [from, to) with a margin of line feeds; *p is the first. */
err csv_read(const struct csv_source *s, struct csv_buffer *b, i64 from, i64 to, char **p);
void csv_buffer_free(struct csv_buffer *b);

enum csv_kind { FIELD_SKIP, FIELD_NUMBER, FIELD_TIME, FIELD_TEXT };

struct csv_field {
    enum csv_kind kind;
    i32 col;  /* in the table, -1 = left out */
    i32 text; /* number among the text fields */
    struct time_parser time;
    bool either; /* numbers with spaces between thousands, or codes: the cells do not tell */
    i32 order; /* of column.order */
    f64 *number;
    i64 *t;
    i32 *code;
};

struct csv_chunk {
    i64 from, to;      /* bytes of whole records */
    i64 rows, lines;   /* records that are not blank; line feeds */
    i64 row0, line0;   /* of the first record; lines from 1 */
    bool uneven;       /* rows and lines differ */
    bool open;         /* the chunk ends inside quotes */
    i64 open_line;     /* line feeds in the chunk before the quote that stays open */
    i64 bad_byte;      /* place of the first byte that is no text, -1 = none; relative to from */
    i32 bad_kind;      /* 1 = NUL, 2 = not UTF-8 */
    struct vocab *word; /* [text columns] */
};

struct csv_problem {
    i64 row, line;
    i32 field, fields; /* fields > 0: number found in a ragged row */
    char text[120];
};

/* The first CSV_PROBLEMS of their kind, in order. */
struct csv_problems {
    i32 n;
    struct csv_problem p[CSV_PROBLEMS];
};

/* What one thread met; merged at the end.  Each list holds the first of its thread, so together they hold those of the file. */
struct csv_tally {
    i64 *missing, *first_missing, *bad; /* [ncol]: cells, line (0 = none), cells */
    char (*missing_text)[CSV_WORD];     /* [ncol]: the first such cell */
    i64 ragged, longer;                 /* rows; rows with too many fields */
    i64 grouped;                        /* numbers with thousands separators */
    struct csv_problems cells, rows;
};

struct csv {
    const struct read_options *o;
    struct csv_source src;
    struct table *t;
    char sep, mark;
    bool apart;         /* of point and comma, the one that is not the decimal mark may stand between thousands */
    struct marks *marks; /* [nfield] of csv_marks.c, while the file is sniffed */
    bool na_first[256]; /* bytes with which a word for "missing" begins */
    struct {
        const char *s;
        i64 n;
    } na_word[CSV_NA_WORDS];
    i32 nword, nna;
    f64 na[CSV_NA];     /* numbers that mean missing */
    i32 nfield, ntext;
    const char **name;  /* [nfield] */
    struct csv_field *field;
    i64 data_from, data_line; /* first byte and line after the header */
    i64 bytes, nchunk;          /* of a chunk, before it is cut at a line feed */
    struct csv_chunk *chunk;
    i32 nthread;
    struct csv_buffer *buffer; /* [nthread] */
    struct once *once;         /* of csv_once.c, while it runs */
    struct csv_tally *tally;   /* [nthread] */
    struct vocab *vocab;       /* [ntext] of the whole file */
};

/* csv_sniff.c */
err csv_sniff(struct csv *c);
/* Cut one record into cells, in place (quotes are removed).  Returns the place after the record; *n = all cells, also beyond
 * max. */
char *csv_split(char *p, char *end, char sep, char **cell, i32 *len, i32 max, i32 *n);
bool csv_is_missing(const struct csv *c, const char *s, i64 n);

/* csv_marks.c: c->mark and c->apart by the cells of a sample [rows][nfield]; then, the fields being typed, t->doubt */
err csv_find_mark(struct csv *c, char *const *cell, const i32 *len, i32 rows, i32 nfield);
err csv_doubt(struct csv *c, char *const *cell, const i32 *len);
void csv_marks_free(struct csv *c);
/* Cells of digits with spaces between: 12 480 in every cell is a number, 555 1234 makes a code, and 555 123 in all is either. */
enum csv_spaced { SPACED_NUMBER, SPACED_CODE, SPACED_EITHER };
enum csv_spaced csv_spaced(const char *const *cell, const i32 *len, i32 n);

/* csv_utf16.c */
bool csv_is_utf16(const char *head, i64 n);    /* by the mark at the start */
err csv_decode_utf16(struct csv_source *s);    /* s->mem, to UTF-8; E202 where it is broken */

/* csv_scan.c */
struct csv_counts {
    i64 lines, blank;
    bool quotes, high, nul;
};
struct csv_counts csv_count(const char *p, i64 n); /* two bytes before p are readable */
void csv_check_text(struct csv_chunk *k, const char *p, i64 n); /* sets bad_byte where it is no UTF-8, or a NUL */
err csv_cut(struct csv *c);                        /* number and memory of the chunks */
err csv_load(struct csv *c, i64 chunk, i32 thread, char **p, i64 *framed); /* framed: bytes with the last line feed */
err csv_scan(struct csv *c);
/* work(c, chunk, thread) for all chunks from all threads; the error of the lowest chunk. */
err csv_each(struct csv *c, err (*work)(struct csv *c, i64 chunk, i32 thread));

/* csv_parse.c */
err csv_parse(struct csv *c);
err csv_parse_bytes(struct csv *c, struct csv_chunk *k, char *first, i64 bytes, i32 thread);
err csv_merge_words(struct csv *c);

/* csv_once.c: both passes in one, where the file allows it */
bool csv_once_guess(struct csv *c, i64 *rows);     /* worth a try? then room for so many rows is needed */
err csv_once(struct csv *c, i64 room, bool *done); /* done false: nothing is wrong, but it takes two passes */

/* csv_report.c */
void csv_where(const struct csv *c, char where[256], i64 line, i32 field); /* "file:line:field"; field 0 is left out */
err csv_fail_encoding(struct csv *c, const struct csv_chunk *k, i64 line); /* line: of the chunk's first byte */
err csv_fail_text(const struct csv *c, const struct csv_chunk *k, const char *p, i64 line); /* the same, of text at p */
err csv_fail_first_bytes(const struct csv *c, const char *head, i64 n);
err csv_report(struct csv *c, bool *again); /* again: columns that are text after all were turned, parse once more */
void csv_clean(char *to, size_t size, const char *s, i64 n); /* a text for a message: cut, no control characters */

#endif
