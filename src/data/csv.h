/* csv.h - private parts of the text table reader; only csv*.c and table.c include it.
 *
 *     head (first MiB) --sniff--> separator, decimal mark, header, kind of each field   csv_sniff.c, csv_marks.c, csv_header.c
 *     chunks --scan, parallel--> records, lines, quotes, encoding of each chunk                csv_scan.c
 *     chunks --parse, parallel--> cells, written to their final place in the columns           csv_parse.c
 *     tallies --> one error with the first line and the count, or the table                    csv_report.c
 *     parts of a folder, without the headers of the others --> one text          csv_parts.c, csv_folder.c
 *
 * Large files without quotes and blank lines need no scan: csv_once.c estimates the number of rows from samples, counts a chunk
 * while it is in cache, and parses it as soon as the previous chunk knows its last row.
 *
 * Chunks end after a line feed. The scan assumes that a chunk starts outside quotes. If the previous chunk proves otherwise, it
 * is scanned again as inside a quoted field and its range starts at its first record. So the rows are counted exactly before
 * memory is allocated, each cell is written once, and the result does not depend on the number of threads. */
#ifndef STRETTO_DATA_CSV_H
#define STRETTO_DATA_CSV_H

#include "base/file.h"
#include "data/missing.h"
#include "data/table.h"
#include "data/time.h"
#include "data/vocab.h"

enum {
    CSV_CHUNK = 1 << 19,      /* bytes */
    CSV_HEAD = 1 << 20,       /* bytes examined to type the columns */
    CSV_FRONT = 16,           /* readable bytes before a chunk in its buffer, all line feeds */
    CSV_BACK = 32,            /* readable bytes after it */
    CSV_LINE_MAX = 64 << 20,  /* longer than any line of a text table */
    CSV_FIELDS_MAX = 1 << 20,
    CSV_PROBLEMS = 20,
    CSV_WORD = 16,
    CSV_SEEN = 8              /* cells kept of a time column */
};

/* The source of the bytes: a file, memory (decompressed, or decoded), or the parts of a folder. */
struct csv_source {
    const char *path, *name; /* name: for messages */
    struct file_in file;     /* of a part it is open only while it is read */
    char *mem;               /* NULL = file */
    i64 size;
    struct csv_part *part;   /* [npart]; NULL = no folder */
    i32 npart;
};

/* A file of a folder as a piece of one text: its records, without the header behind the first file, each line with its end. */
struct csv_part {
    struct csv_source src;
    i64 from;     /* first byte that counts */
    i64 at, size; /* first byte in the text, and bytes there */
    i64 lines;    /* lines of the file before byte `from` */
    i64 chunk;    /* the first with its records; of none, that of the next part */
};

struct csv;
struct csv_buffer {
    char *p; /* CSV_FRONT line feeds, bytes, CSV_BACK line feeds */
    i64 cap;
};
/* The folder at c->src.path as a source.  own: a copy of the options in which it sets what the first file tells (header,
 * separator).  E201: no record; E202: the header of a file differs. */
err csv_open_parts(struct csv *c, struct read_options *own);
void csv_close_parts(struct csv_source *s);
/* Bytes [from, from + n) of the file of a part; E213 if its size has changed. */
err csv_read_part(const struct csv_source *s, i64 from, i64 n, char *out);
/* Bytes [from, to) of the text. */
err csv_read_parts(const struct csv_source *s, i64 from, i64 to, char *out);
err csv_name_parts(struct csv *c); /* t->part, when the rows of the chunks are known */
/* The file of a line of the text, and the line there.  Counts the lines up to it: for messages. */
const struct csv_part *csv_part_of(const struct csv_source *s, i64 line, i64 *own);

err csv_open(struct csv_source *s); /* opens the file; decompresses and decodes it if necessary; E202 for malformed UTF-16 */
/* Reads bytes [from, to) with a margin of line feeds; *p is the first. */
err csv_read(const struct csv_source *s, struct csv_buffer *b, i64 from, i64 to, char **p);
void csv_buffer_free(struct csv_buffer *b);

extern const char *const csv_endings[]; /* of the files of a folder */

enum csv_kind { FIELD_SKIP, FIELD_NUMBER, FIELD_TIME, FIELD_TEXT };

struct csv_field { /* within a cache line: rows of many fields pass over all of them */
    enum csv_kind kind;
    i32 col;  /* table column, -1 = ignored */
    i32 text; /* index among the text fields */
    struct time_parser time;
    bool zoned;  /* FIELD_TIME: cells have offsets from UTC */
    bool either; /* ambiguous: numbers with spaces between thousands, or codes */
    i32 order; /* of column.order */
    const char **seen; /* FIELD_TIME: [CSV_SEEN] cells of the sample, for advice; NULL after the last */
    union {
        f64 *number;
        i64 *t;
        i32 *code;
    };
};

struct csv_chunk {
    i64 begin, end;    /* borders before they are moved to ends of lines */
    bool first;        /* of a file of a folder */
    i64 from, to;      /* bytes of whole records */
    i64 rows, lines;   /* non-blank records; line feeds */
    i64 row0, line0;   /* row and line (from 1) of the first record */
    bool uneven;       /* rows and lines differ */
    bool open;         /* the chunk ends inside quotes */
    i64 open_line;     /* line feeds in the chunk before the quote that stays open */
    i64 bad_byte;      /* offset of the first invalid byte, -1 = none; relative to from */
    i32 bad_kind;      /* 1 = NUL, 2 = not UTF-8 */
    struct vocab *word; /* [text columns] */
};

struct csv_problem {
    i64 row, line;
    i32 field, fields; /* fields > 0: number of fields of a ragged row */
    char text[120];
};

/* The first CSV_PROBLEMS problems of one kind, in order. */
struct csv_problems {
    i32 n;
    struct csv_problem p[CSV_PROBLEMS];
};

/* Problems counted by one thread, merged at the end. Each thread keeps its first ones, so together they include the first of
 * the file. */
struct csv_tally {
    i64 *missing, *first_missing, *bad; /* [ncol]: cells, line (0 = none), cells */
    char (*missing_text)[CSV_WORD];     /* [ncol]: the first such cell */
    i64 ragged, longer;                 /* rows; rows with too many fields */
    i64 grouped;                        /* numbers with thousands separators */
    struct csv_problems cells, rows;
};

struct csv {
    struct arena memory; /* of the arrays below, unless they say otherwise */
    const struct read_options *o;
    struct csv_source src;
    struct table *t;
    char sep, mark;
    bool apart;         /* the mark (point or comma) that is not decimal may separate thousands */
    struct marks *marks; /* [nfield] csv_marks.c */
    struct missing na;  /* words and numbers that mean missing */
    i32 nfield, ntext;
    const char **name;  /* [nfield] */
    struct vocab index; /* of name: a word's number is its field */
    struct csv_field *field;
    i64 data_from, data_line; /* first byte and line after the header */
    i64 bytes, nchunk;          /* nominal chunk size; number of chunks */
    struct csv_chunk *chunk;
    i32 nthread;
    struct csv_buffer *buffer; /* [nthread] */
    struct once *once;         /* csv_once.c, only while it runs */
    struct csv_tally *tally;   /* [nthread] */
    struct vocab *vocab;       /* [ntext] of the whole file */
};

/* The head of the file, split into cells. */
struct csv_sample {
    struct arena memory;
    char *text;  /* a copy, since csv_split_record modifies it */
    i64 size;
    char **cell; /* [rows][nfield] */
    i32 *len;
    i32 rows, nfield;
    bool cut;    /* the file continues after the head */
};
static inline char **csv_cells(const struct csv_sample *s, i32 row) { return s->cell + (i64)row * s->nfield; }
static inline i32 *csv_lens(const struct csv_sample *s, i32 row) { return s->len + (i64)row * s->nfield; }

/* csv_record.c */
static inline bool csv_blank_at(const char *p, const char *end) {
    return *p == '\n' || (*p == '\r' && p + 1 < end && p[1] == '\n');
}
/* Counts the fields of the record at p; returns the position after it. */
const char *csv_count_fields(const char *p, const char *end, char sep, i32 *n);
/* Splits one record into cells in place (removes quotes). Returns the position after the record; *n = number of cells, also
 * beyond max. */
char *csv_split_record(char *p, char *end, char sep, char **cell, i32 *len, i32 max, i32 *n);

/* csv_sniff.c */
err csv_sniff(struct csv *c);
err csv_sniff_names(struct csv *c); /* separator, header and names alone */

/* csv_header.c: *header = the first record holds names; E105 if that cannot be told. */
err csv_find_header(const struct csv *c, const struct csv_sample *s, bool *header);

/* csv_turn.c: replaces the source by its transpose, so that a series per row becomes one per column. */
err csv_turn(struct csv *c);

/* csv_marks.c */
bool csv_is_missing(const struct csv *c, const char *s, i64 n);
bool csv_is_number(const struct csv *c, const char *s, i32 n);
/* Sets c->mark and c->apart from a sample of cells [rows][nfield]; csv_doubt sets t->doubt once the fields are
 * typed */
err csv_find_mark(struct csv *c, char *const *cell, const i32 *len, i32 rows, i32 nfield);
err csv_doubt(struct csv *c, char *const *cell, const i32 *len);
/* Cells of digit groups separated by spaces: 12 480 in every cell is a number, 555 1234 makes it a code, 555 123 in all is
 * ambiguous. */
enum csv_spaced { SPACED_NUMBER, SPACED_CODE, SPACED_EITHER };
enum csv_spaced csv_spaced(const char *const *cell, const i32 *len, i32 n);

/* csv_scan.c */
struct csv_counts {
    i64 lines, blank;
    bool quotes, high, nul;
};
struct csv_counts csv_count(const char *p, i64 n); /* two bytes before p are readable */
void csv_check_text(struct csv_chunk *k, const char *p, i64 n); /* sets bad_byte at invalid UTF-8 or a NUL */
err csv_cut(struct csv *c);                        /* allocates the chunks */
err csv_load(struct csv *c, i64 chunk, i32 thread, char **p, i64 *framed); /* framed: bytes including the final line feed */
err csv_scan(struct csv *c);
/* Runs work(c, chunk, thread) on all chunks with all threads; returns the error of the lowest chunk. */
err csv_each(struct csv *c, err (*work)(struct csv *c, i64 chunk, i32 thread));

/* csv_parse.c */
err csv_parse(struct csv *c);
err csv_parse_bytes(struct csv *c, struct csv_chunk *k, char *first, i64 bytes, i32 thread);
err csv_merge_words(struct csv *c); /* categorical columns: merges the vocabularies of the chunks, renumbers the codes */

/* csv_once.c: both passes in one, if the file allows it */
bool csv_once_guess(struct csv *c, i64 *rows);     /* worth trying? *rows: capacity needed */
err csv_once(struct csv *c, i64 room, bool *done); /* done false: no error, but the file needs two passes */

/* csv_report.c */
void csv_where(const struct csv *c, i64 line, i32 field, char where[256]); /* file_where, in the file as it is */
err csv_fail_encoding(struct csv *c, const struct csv_chunk *k, i64 line); /* line of the chunk's first byte */
err csv_fail_text(const struct csv *c, const struct csv_chunk *k, const char *p, i64 line); /* the same for text at p */
err csv_fail_first_bytes(const struct csv *c, const char *head, i64 n);
err csv_report(struct csv *c, bool *again); /* again: some columns were changed to text, parse once more */
void csv_clean(char *to, size_t size, const char *s, i64 n); /* text for a message: truncated, without control characters */

#endif
