/* table.h - a parsed file in memory: named, typed columns of equal length.
 *
 *     file --csv/cache--> table --schema (roles)--> series --window--> rows of a batch
 *
 * A table owns its columns (or maps them from a cache file).  Missing cells are NaN in numbers and -1 in categories. */
#ifndef STRETTO_DATA_TABLE_H
#define STRETTO_DATA_TABLE_H

#include "base/arena.h"
#include "data/vocab.h"

enum col_type { COL_NUMBER, COL_TIME, COL_CATEGORY };

/* A file among those that a table was read from. */
struct table_part {
    const char *path;
    i64 row;  /* its first */
    i64 line; /* of that row, in the table as if it were one file */
    i64 own;  /* of that row in the file */
};

struct column {
    const char *name;
    i32 field;             /* number in the file, from 1 */
    enum col_type type;
    f64 *number;           /* COL_NUMBER: [nrow], NaN = missing */
    bool lent;             /* COL_NUMBER: number lies in the memory of table.frame, and is read only */
    i64 *time;             /* COL_TIME: [nrow] seconds since 1970-01-01 00:00, no zone */
    bool zoned;            /* COL_TIME: the cells have offsets from UTC; times are those of the zone */
    i32 zone;              /* its offset: that of the first cell, in seconds east */
    i32 *offset;           /* while a file is read: [nrow] offset of a cell + 1 day, 0 = it has none; else NULL */
    bool by_layout;        /* COL_TIME: read in the --time-format */
    i32 order;             /* COL_TIME: enum time_order of its cells in the file, 0 = not known */
    i32 *code;             /* COL_CATEGORY: [nrow] index into words, -1 = missing */
    const char **word;     /* [nword] */
    i32 nword;
    i64 missing;           /* cells missing */
    i64 first_missing_line; /* line in the file, 0 = none */
    const char *missing_text; /* text of the first missing cell ("NA", ""), or NULL */
};

struct table {
    const char *path;
    i32 ncol;
    i64 nrow;
    struct column *col;
    bool has_header;
    char sep, decimal;
    i64 grouped;       /* numbers with thousands separators (with the non-decimal mark, if that matters) */
    const char *doubt; /* text: numbers are ambiguous, or a cache file is older than its source; NULL = neither */
    const char *doubt_fix; /* option, or command, that resolves it */
    i32 doubt_code;        /* its warning; 0 = W035 */
    const char *id, *target; /* columns that the format of the file gives these roles (.ts); NULL = it gives none */
    i32 turned; /* columns of names of a file with a series per row (--orient rows), 0 = a series per column */
    bool records;  /* the file has records instead of lines (Arrow), numbered from 1 */
    i32 npart;     /* files of the table, 0 = one */
    struct table_part *part; /* [npart] */
    i64 *line; /* line of each row when rows and lines differ (quoted newlines, blank lines); NULL = row + 1 + header */
    struct arena names;
    struct vocab index; /* of the column names, if all differ: a word's number is its column */
    void *map;             /* cache file mapping, or NULL */
    size_t map_size;
    struct frame *frame;   /* what `lent` columns lie in, or NULL; the table holds it */
};

/* share.h; *t is zeroed for the taker.  Not for tables of a mapped cache file or a frame (table_shares). */
struct share;
void table_share(struct share *x, struct table *t);
static inline bool table_shares(const struct table *t) { return !t->map && !t->frame; }

struct findings;
struct frame; /* data/frame.h */

/* Options of reading; every field has a default in READ_OPTIONS_DEFAULT. */
struct read_options {
    char sep;              /* 0 = detect among , ; tab | */
    char decimal;          /* 0 = detect ('.' unless sep is ';' and cells look like 1,5) */
    i32 header;            /* -1 = detect, 0 = no, 1 = yes */
    bool rows;             /* a series per row: the file is transposed first */
    const char *na;        /* comma-separated words that mean missing, besides the empty cell */
    const char *more_na;   /* additional words, or NULL */
    const char *time;      /* comma-separated names (or numbers from 1) of the time column(s); NULL = detect */
    const char *time_format; /* strptime-like; "row" = the row number is the time; NULL = known formats */
    bool guess_time;         /* time_format is a hint: a file that it does not fit is read in a known format */
    const char *id;          /* comma-separated names of the columns that name series: read as categories */
    const char *cat;         /* comma-separated names of columns to read as categories even if they look like numbers */
    const char *ignore;      /* comma-separated names of columns to ignore */
    bool numbers;            /* words and missing cells are of no use: remedies do not suggest them */
    i32 threads;             /* parser threads, >= 1 */
    struct findings *found;  /* NULL = the first bad cell is an error; else bad cells are recorded and treated as missing */
    i32 chunk;               /* chunk size in bytes, 0 = default (tests use small ones) */
};
#define READ_MISSING "NA,N/A,n/a,#N/A,NaN,nan,null,NULL,None,?,-"
#define READ_OPTIONS_DEFAULT ((struct read_options){.header = -1, .na = READ_MISSING, .threads = 1})

/* Reads a text table (plain, .gz, .zst) or a cache file (recognized by its magic). Errors: E2xx, E7xx with file:line:field. The
 * caller frees with table_free (NULL is allowed, also after a failure). */
err table_read(const char *path, const struct read_options *o, struct table **out);
void table_free(struct table *t);
/* table_cut.c: the first rows of a table, in an order drawn by the seed.  It borrows names and words of t, which must outlive it.
 * E601 .. E703. */
err table_before(const struct table *t, i64 rows, u64 seed, struct table **out);
err table_index(struct table *t); /* fills t->index, for the functions that find a column by its name */
/* From UTC to the zone of the first cell, and frees c->offset.  Where offsets change with daylight saving time and all rows have
 * the same time of the day, they are days: the dates as they are written. */
err table_settle_zone(const struct table *t, struct column *c);
void table_drop_columns(struct table *t); /* frees the columns of a table that is not mapped */

bool column_constant(const struct column *c, i64 nrow, f64 *value); /* a number, equal in all rows that have one */
i32 table_find(const struct table *t, const char *name);                     /* index or -1 */
bool table_lists(const struct table *t, const char *list, i32 col);          /* true if the list (or NULL) names the column */
err table_need(const struct table *t, const char *name, const char *flag, i32 *out); /* or E102 with the nearest name */
i64 table_line(const struct table *t, i64 row);                              /* line in the file, from 1 */
/* The place of a row, or of a cell in column c (c may be NULL), for messages. */
void table_where(const struct table *t, i64 row, const struct column *c, char where[256]);
/* The place of a line of the table, as column.first_missing_line. */
void table_line_where(const struct table *t, i64 line, char where[256]);
/* The same for a cell at a line and field of the table; file: the name to show. A field of a transposed table is a line. */
void table_where_at(const struct table *t, const char *file, i64 line, i32 field, char where[256]);
/* True if commands on the lines of the file fit the table. */
static inline bool table_is_file(const struct table *t) { return !t->map && !t->turned && !t->records && !t->npart; }
void file_where(const char *file, i64 line, i32 field, char where[256]); /* "file:line:field"; field 0 is omitted */

/* Writes the cache file (cache.c): magic, JSON header, 64-byte aligned columns; loading maps it. */
err table_write_cache(const struct table *t, const char *path);

#endif
