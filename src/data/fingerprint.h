/* fingerprint.h - what a training run read: hashes of a series by column and block of rows, and the comparison with a later read.
 *
 *          training           validation   test        beyond (rows of known columns)
 *     |------|------|------|--|------|----|------|--|----|
 *     block                   a block ends at the end of its part
 *
 * A block has a hash of its values and missing marks, so a difference is located to the lines of a block without a copy of the
 * data. Blocks have one row, or as many more as keep their number small. Hashes are those of an unscaled series, before
 * series_scale, with the words of categories, not their codes. */
#ifndef STRETTO_DATA_FINGERPRINT_H
#define STRETTO_DATA_FINGERPRINT_H

#include "base/json.h"
#include "data/series.h"

enum { FINGERPRINT_BLOCKS = 1 << 15, FINGERPRINT_PARTS = 4 }; /* blocks: of all columns together, fewer within --memory */

struct print_block {
    u64 hash;
    i64 missing; /* cells */
    f64 mean;    /* of the others; 0 for times and categories */
};

struct print_column {
    const char *name, *role; /* role: "time", "target", "past", "known", "category" */
    struct print_block *block; /* [nblock] */
};

struct fingerprint {
    i64 rows, step;      /* step: rows of a block, a power of two */
    i64 nblock;          /* of a column */
    struct split split;
    i32 ncolumn;
    struct print_column *column;
    const char *freq;    /* sampling interval */
    const char *first[FINGERPRINT_PARTS], *last[FINGERPRINT_PARTS]; /* times of the first and last row of a part; "" = no row */
    struct arena arena;  /* owns all of the above */
};

err fingerprint_make(const struct series *s, const struct split *p, struct fingerprint *out);
void fingerprint_free(struct fingerprint *f);

struct js *fingerprint_json(const struct fingerprint *f);                /* E601 shows in js_text */
err fingerprint_read(const struct js *o, struct fingerprint *out); /* E901 if it is none, E902 if a newer version wrote it */

enum data_verdict {
    DATA_SAME,
    DATA_BEYOND,  /* only rows behind the test part differ: rows were appended, or known columns have other future rows */
    DATA_CHANGED, /* values differ, or rows of the test part are gone */
    DATA_LOST,    /* training cannot go on: other columns, or rows of the training or validation part are gone or moved */
};

struct data_change {
    enum data_verdict verdict;
    struct split split; /* that of the fingerprint; the test part ends earlier if its rows are gone */
    const char *file;   /* of a folder, in which the first difference begins; NULL = the data file. It is the series' */
    i64 line;           /* of the first difference; 0 = not known, or the row is spread over several lines */
    i32 column;         /* of the first difference in values, among those of the series; -1 = it is in times or words */
    i64 from, to;       /* its rows */
    char text[700];     /* the first difference: column, rows, what was and what is; "" if DATA_SAME */
    const char *why;    /* DATA_LOST: why training cannot go on; else NULL */
};

/* The file that holds a line of a table of several files (NULL = one file); *line becomes the number of the line in it. */
const char *fingerprint_file(const struct series *s, i64 *line);

/* Compares an unscaled series with the fingerprint of an earlier read. */
err fingerprint_compare(const struct fingerprint *was, const struct series *s, struct data_change *out);

#endif
