/* jsonl.h - private parts of the reader of JSON lines; only jsonl*.c include it.
 *
 *     {"ds": "2024-01-01", "y": 3, "shop": "a"}        keys of all lines --> columns, in order of first appearance
 *     {"ds": "2024-01-02", "y": null}                  null, or no such key --> missing
 *
 *     lines --walk 1--> keys, kinds of values, number of rows          jsonl.c
 *     lines --walk 2--> cells of the columns                           jsonl.c, arrow_words.c
 *     text of a line --> pairs of key and value                        jsonl_line.c
 *
 * Beside the columns, memory holds one piece of the file, or a compressed file unpacked. */
#ifndef STRETTO_DATA_JSONL_H
#define STRETTO_DATA_JSONL_H

#include "base/err.h"

enum jsonl_kind { JSONL_NULL, JSONL_NUMBER, JSONL_TEXT, JSONL_TRUE, JSONL_FALSE, JSONL_NESTED };

struct jsonl_text {
    const char *s; /* in the line; not ended by a NUL */
    i64 n;
};

/* A line while it is read.  Texts lose their escapes in place. */
struct jsonl_line {
    char *start, *p, *end;
    bool inside;     /* a pair was read */
    const char *why; /* what is wrong at p; NULL = nothing */
};

/* The pair at p: 1 = one was read, 0 = the object and the line have ended, -1 = l->why.  value: of a number as it is written, of
 * a nested value its type ("object", "list"). */
i32 jsonl_next(struct jsonl_line *l, struct jsonl_text *key, enum jsonl_kind *kind, struct jsonl_text *value);

/* True if a text begins as an object of JSON. */
bool jsonl_head(const char *head, i64 n);

#endif
