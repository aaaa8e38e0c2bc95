/* arrow.h - private parts of the reader of Arrow tables.  Columns and cells (arrow_cells.c, arrow_words.c) serve the readers of
 * JSON lines and Parquet, too: the same rows give the same table.
 *
 *     part-00000.arrows: schema | dictionary .. | record batch | record batch .. | end      Arrow IPC stream, or file (ARROW1)
 *     part-00001.arrows: ..                                                                 a folder of them is one table
 *
 *     messages --walk 1--> schema, parts that agree, number of rows     arrow.c, arrow_message.c, arrow_schema.c
 *     messages --walk 2--> cells, written to their place in the columns arrow_batch.c (buffers), arrow_cells.c
 *     words of text columns --> categories, or times                    arrow_words.c
 *
 * The first walk reads metadata alone and compares them with the bytes that the bodies have, so the columns are allocated once
 * and a damaged file cannot ask for more memory than its size warrants.  The second reads one buffer at a time: beside the
 * columns, memory holds one buffer of one batch.  A text is read as a cell of a CSV file: words of --na are missing, times are
 * recognized. */
#ifndef STRETTO_DATA_ARROW_H
#define STRETTO_DATA_ARROW_H

#include <string.h>

#include "base/file.h"
#include "data/flat.h"
#include "data/missing.h"
#include "data/table.h"
#include "data/time.h"
#include "data/vocab.h"
#include "data/zone.h"

enum {
    ARROW_FIELDS_MAX = 1 << 20,
    ARROW_DEPTH = 16,          /* of nested types */
    ARROW_META_MAX = 64 << 20, /* bytes of the metadata of a message */
    ARROW_RATIO = 1 << 16,     /* no zstd frame holds more bytes per byte */
    ARROW_NAME = 256,          /* bytes of the name of a column at most */
    ARROW_TYPE = 60,           /* bytes of the name of a type */
    ARROW_ZONE = 48,           /* bytes of the name of a zone */
    ARROW_BUFFERS = 3          /* of a column at most: valid, offsets, bytes */
};

enum arrow_kind {
    ARROW_OTHER, /* not read: only its nodes and buffers are counted */
    ARROW_NULL,
    ARROW_INT,
    ARROW_FLOAT,
    ARROW_BOOL,
    ARROW_DECIMAL,
    ARROW_DATE,
    ARROW_TIME,
    ARROW_TEXT
};

struct arrow_type {
    enum arrow_kind kind;
    i32 bytes;      /* of a cell; of an offset for ARROW_TEXT */
    bool sign;      /* ARROW_INT */
    i32 scale;      /* ARROW_DECIMAL: digits behind the point */
    i64 per_second; /* ARROW_TIME, ARROW_DATE: units; a day is -86400 */
    bool zoned;     /* ARROW_TIME */
    i32 zone;       /* seconds east of UTC */
    char zone_name[ARROW_ZONE]; /* Europe/Berlin; "" = it is UTC, or has an offset */
    i32 nodes, buffers; /* in a record batch, with those of its children */
    char name[ARROW_TYPE]; /* "float", "list", "timestamp[us]", for messages */
};

/* The values of a dictionary. */
struct arrow_words {
    i64 n, cap;
    i64 *at;    /* [n + 1] offsets in bytes */
    i64 at_cap, code_cap;
    char *bytes;
    i32 *code;  /* [n] in the vocabulary of the column; -1 = missing, -2 = not yet used */
};

enum arrow_role { AS_VALUES, AS_WORDS, AS_TIME, AS_NOTHING }; /* by --cat, --time, --ignore */

struct arrow_field {
    const char *name;
    struct arrow_type type;  /* of the cells; with a dictionary, of its words */
    struct arrow_type index; /* with a dictionary: of the cells */
    bool coded;              /* it has a dictionary */
    i64 dictionary;          /* its number in the file */
    enum arrow_role role;
    i32 col;             /* of the table, -1 = not read */
    bool lent;           /* the cells stay where they are: the table gets no array for them */
    struct zone *place;  /* of zone_name; NULL = none, or the system does not know it: read in UTC */
    struct vocab vocab;  /* of a text column */
    struct arrow_words words;
};

struct arrow_part {
    const char *path;
    i64 rows, above; /* above: records, or lines, of the parts before */
};

struct arrow_room {
    u8 *p;
    i64 cap;
};

struct arrow {
    struct arena memory;
    const struct read_options *o;
    struct table *t;
    struct missing na;
    i32 npart;
    struct arrow_part *part;
    i32 nfield;
    struct arrow_field *field;
    struct vocab index; /* of the names */
    i64 nodes, buffers; /* of a record batch */
    struct arrow_room room[ARROW_BUFFERS], packed, meta;
    i64 row;                     /* where the next batch goes */
};

/* One message of a stream.  The metadata live until the next one is read. */
enum arrow_header { ARROW_NO_HEADER, ARROW_SCHEMA, ARROW_DICTIONARY, ARROW_BATCH };
struct arrow_message {
    const char *path;    /* of the part */
    const struct file_in *file;
    i64 number;          /* from 1 */
    i64 next;            /* offset of the next message; -1 = the stream has ended */
    struct flat flat;
    i64 header_kind;
    struct flat_table header;
    i64 body, bytes;     /* offset and size of the body in the file */
};

/* arrow_message.c */
/* Recognizes a part by its first bytes; *first: offset of the first message. */
bool arrow_head(const char *head, i64 n, i64 *first);
err arrow_next(struct arrow *a, struct arrow_message *m); /* reads the message at m->next */
err arrow_damaged(const struct arrow_message *m, const char *why);
err arrow_room(struct arrow_room *r, i64 bytes);

/* arrow_schema.c */
/* The first schema defines the fields, the others must agree. */
err arrow_schema(struct arrow *a, struct arrow_message *m, i32 part);
/* The name of a column without control characters, cut to whole characters of UTF-8; false: it is no UTF-8. */
bool arrow_clean_name(const char *s, i64 n, char to[ARROW_NAME]);
/* The zone of a timestamp: an offset as +02:00, or a name. */
void arrow_set_zone(struct arrow_type *t, const char *zone, i64 n);
/* Unique names, the roles that the options give, and the columns of the table, from a->field. */
err arrow_define(struct arrow *a);
err arrow_refuse(const struct arrow *a, const struct arrow_field *f, const char *why);

/* arrow_batch.c: the rows of a record batch, or the words of a dictionary. */
struct arrow_batch {
    struct arrow_message *m;
    i64 rows;
    i64 node, buffer; /* offsets of the lists in the metadata */
    bool packed;      /* buffers are compressed with zstd */
};
struct arrow_cells {
    i64 rows, nulls;
    const u8 *valid; /* bit of a cell: it has a value; NULL = all have */
    const u8 *data;  /* numbers, or bytes of words */
    const u8 *offset; /* of words */
    i64 bytes;       /* of data */
};
/* Finds the lists of a batch of so many nodes and buffers, and checks that every buffer lies in the body. */
err arrow_batch(struct arrow_message *m, const struct flat_table *header, i64 nodes, i64 buffers, struct arrow_batch *b);
/* Checks that the buffers of a column at these places in the lists can hold the rows; reads nothing. */
err arrow_check(const struct arrow_batch *b, const struct arrow_type *t, i64 node, i64 buffer);
/* Reads the buffers of a column; they live until the next call. */
err arrow_load(struct arrow *a, const struct arrow_batch *b, const struct arrow_type *t, i64 node, i64 buffer,
               struct arrow_cells *c);
static inline bool arrow_valid(const struct arrow_cells *c, i64 i) { return !c->valid || (c->valid[i >> 3] >> (i & 7) & 1); }
/* Cell i of a column of whole numbers; one of u64 above the largest i64 wraps. */
static inline i64 arrow_whole(const struct arrow_type *t, const u8 *p, i64 i) {
    u64 v = 0;
    memcpy(&v, p + t->bytes * i, (size_t)t->bytes);
    const i32 unused = 64 - 8 * t->bytes;
    return t->sign ? (i64)(v << unused) >> unused : (i64)v;
}
/* Word i of a text column; false: its offsets lie outside. */
bool arrow_word(const struct arrow_cells *c, const struct arrow_type *t, i64 i, const char **s, i64 *n);

/* arrow_table.c */
/* Begins a table; `ending`: of the files of a folder, `what`: "an Arrow table".  arrow_close follows, also after a failure. */
err arrow_open(struct arrow *a, const char *path, const struct read_options *o, const char *const *ending, const char *what);
err arrow_name_parts(struct arrow *a); /* of a folder, when the rows of the parts are known */
err arrow_changed(const char *path);   /* E213 */
/* Ends the reading, whose result was e: the table in *out, or the error. */
err arrow_close(struct arrow *a, err e, struct table **out);

/* arrow_cells.c */
err arrow_columns(struct arrow *a);                           /* allocates the columns of the table */
err arrow_put(struct arrow *a, struct arrow_field *f, const struct arrow_message *m, const struct arrow_cells *c);
const struct arrow_type *arrow_stored(const struct arrow_field *f); /* the type of the cells in a record batch */

/* arrow_words.c */
err arrow_dictionary(struct arrow *a, struct arrow_message *m); /* its words, for each field that has the dictionary */
err arrow_keep_word(struct arrow_words *w, const char *s, i64 n, bool missing); /* adds a word to a dictionary */
err arrow_put_words(struct arrow *a, struct arrow_field *f, const struct arrow_message *m, const struct arrow_cells *c);
err arrow_put_word(struct arrow *a, struct arrow_field *f, i64 row, const char *s, i64 n); /* one cell as text */
err arrow_put_missing(struct arrow *a, const struct arrow_field *f, i64 row);
err arrow_settle_words(struct arrow *a); /* at the end: text columns become categories or times */
err arrow_need_time(const struct arrow *a, const struct arrow_field *f, i64 row); /* E205: the cell is empty */
void arrow_free_words(struct arrow_field *f);

#endif
