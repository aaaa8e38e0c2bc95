/* parquet.h - private parts of the reader of Parquet files; only parquet*.c include it.
 *
 *     PAR1 | pages of column 1 | pages of column 2 | ..next row group.. | metadata | bytes of the metadata | PAR1
 *            | dictionary | data | data ..                                thrift.c
 *
 *     metadata --walk 1--> columns, parts that agree, number of rows      parquet_meta.c
 *     pages --walk 2--> levels and values                                 parquet_page.c, parquet_values.c, parquet_unpack.c
 *     values --> the cells that the Arrow reader would get                arrow_cells.c, arrow_words.c
 *
 * Beside the columns, memory holds the metadata of one file, and one page and its dictionary. */
#ifndef STRETTO_DATA_PARQUET_H
#define STRETTO_DATA_PARQUET_H

#include "data/arrow.h"

enum parquet_type {
    PARQUET_BOOL,
    PARQUET_INT32,
    PARQUET_INT64,
    PARQUET_INT96,
    PARQUET_FLOAT,
    PARQUET_DOUBLE,
    PARQUET_BYTES,
    PARQUET_FIXED
};

/* A column of numbers or text in the file. */
struct parquet_leaf {
    i32 field; /* of the table */
    enum parquet_type type;
    i32 length;    /* PARQUET_FIXED: bytes of a value */
    bool optional; /* values may be missing: definition levels of a bit */
};

struct parquet_chunk {
    i64 at, bytes; /* of its pages */
    i64 values;
    i32 codec;
};

struct parquet_group {
    i64 rows;
    struct parquet_chunk *chunk; /* [nleaf] */
};

/* The metadata of a file. */
struct parquet_meta {
    struct arena memory;
    const char *path;
    i32 nfield, nleaf;
    struct arrow_field *field;
    struct parquet_leaf *leaf;
    i64 ngroup;
    struct parquet_group *group;
    i64 rows;
};

/* parquet_meta.c */
err parquet_meta_read(const struct file_in *f, struct parquet_meta *m); /* E202, E213; the caller frees m->memory also then */
/* parquet_zone.c: the zones of timestamps, from the value of the key ARROW:schema; what is damaged names none.  E601. */
err parquet_zones(struct parquet_meta *m, const char *text, i64 n);
err parquet_damaged(const char *path, const char *why);

/* parquet_unpack.c: true if the bytes unpack to exactly `size`.  codec: of the format; *known false: it is none that is read. */
bool parquet_unpack(i32 codec, const u8 *from, i64 n, u8 *to, i64 size, bool *known);

/* parquet_values.c: values as they follow each other in a page, without the missing ones.  Each function returns the place behind
 * what it read, or NULL where the page is damaged. */
enum parquet_encoding {
    PARQUET_PLAIN,
    PARQUET_OLD_DICTIONARY = 2,
    PARQUET_RLE,
    PARQUET_BITS,
    PARQUET_DELTA,
    PARQUET_DELTA_LENGTH,
    PARQUET_DELTA_TEXT,
    PARQUET_DICTIONARY,
    PARQUET_SPLIT
};
/* n numbers of so many bits: runs of equal ones, and packed ones. */
const u8 *parquet_runs(const u8 *p, const u8 *end, i32 bits, u32 *out, i64 n);
const u8 *parquet_deltas(const u8 *p, const u8 *end, i64 *out, i64 n);
i32 parquet_width(
    const struct parquet_leaf *l); /* bytes of a value for the functions below: a cell of arrow.h, a bool is a byte */
/* n values of a fixed width; spare [n] for deltas. */
const u8 *parquet_fixed(const struct parquet_leaf *l, i32 encoding, const u8 *p, const u8 *end, u8 *out, i64 n, i64 *spare);

/* parquet_page.c: the cells of one column of a row group, from row a->row on. */
struct parquet_pages;
err parquet_pages_new(struct parquet_pages **out);
void parquet_pages_free(struct parquet_pages *p);
err parquet_column(struct arrow *a, struct parquet_pages *p, const struct file_in *f, const struct parquet_meta *m, i64 group,
                   i32 leaf);

#endif
