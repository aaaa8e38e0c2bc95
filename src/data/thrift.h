/* thrift.h - a bounded reader of Thrift's compact protocol, in which Parquet writes its metadata.
 *
 *     struct = field .. 0        field = (id difference, type) value        list = (size, type) values
 *
 * A damaged text sets `bad`; from then on every read gives zero and every loop ends. */
#ifndef STRETTO_DATA_THRIFT_H
#define STRETTO_DATA_THRIFT_H

#include "base/bits.h"

enum {
    THRIFT_TRUE = 1,
    THRIFT_FALSE,
    THRIFT_BYTE,
    THRIFT_I16,
    THRIFT_I32,
    THRIFT_I64,
    THRIFT_DOUBLE,
    THRIFT_BINARY,
    THRIFT_LIST,
    THRIFT_SET,
    THRIFT_MAP,
    THRIFT_STRUCT
};

struct thrift {
    const u8 *p, *end;
    bool bad;
    i32 depth;
};

/* The field that was read last; start with {0}. */
struct thrift_field {
    i32 id, type;
};

u64 thrift_varint(struct thrift *t);
i64 thrift_zigzag(struct thrift *t);
/* The next field of a struct; false at its end.  Its value is read by one of the functions below, or passed over. */
bool thrift_next(struct thrift *t, struct thrift_field *f);
i64 thrift_whole(struct thrift *t, const struct thrift_field *f); /* a number, or true and false as 1 and 0 */
bool thrift_text(struct thrift *t, const struct thrift_field *f, const char **s, i64 *n);
/* Number of values of a list of this type, each of a byte at least; 0 if it is something else. */
i64 thrift_list(struct thrift *t, const struct thrift_field *f, i32 type);
void thrift_skip(struct thrift *t, const struct thrift_field *f);
/* True for a field that is a struct: its fields follow. */
bool thrift_struct(struct thrift *t, const struct thrift_field *f);

#endif
