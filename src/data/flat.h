/* flat.h - reads FlatBuffers that are not trusted: the metadata of Arrow messages.
 *
 *     root offset -> table:  | offset back to its vtable | fields ..
 *                    vtable: | bytes | bytes of the table | offset of field 0 | ..      offset 0: absent, with its default
 *
 * Every access is checked against the bytes of the buffer.  One that leaves them sets `bad` and reads as absent, so a caller
 * reads all it needs and asks once. */
#ifndef STRETTO_DATA_FLAT_H
#define STRETTO_DATA_FLAT_H

#include "base/bits.h"

struct flat {
    const u8 *p;
    i64 n;
    bool bad;
};

struct flat_table {
    struct flat *in;
    i64 at, vtable;    /* offsets in the buffer */
    i32 vbytes, bytes; /* of the vtable and of the table */
};

bool flat_root(struct flat *f, struct flat_table *out);
/* A signed number of 1, 2, 4 or 8 bytes; `absent` where the table lacks the field. */
i64 flat_number(const struct flat_table *t, i32 field, i32 bytes, i64 absent);
bool flat_child(const struct flat_table *t, i32 field, struct flat_table *out);    /* a table, or the table of a union */
bool flat_text(const struct flat_table *t, i32 field, const char **s, i64 *n);
/* The elements of a vector: *at = offset of the first in the buffer. */
bool flat_vector(const struct flat_table *t, i32 field, i32 bytes, i64 *at, i64 *count);
bool flat_table_at(struct flat *f, i64 at, struct flat_table *out); /* follows the offset at `at`, an element of a vector */
i64 flat_number_at(struct flat *f, i64 at, i32 bytes);

#endif
