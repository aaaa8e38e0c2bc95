/* wire.h - the wire format of protocol buffers: fields written into a text buffer, and fields read from bytes of unknown origin.
 *
 *     key (number << 3 | kind), then   VARINT: groups of 7 bits   FIXED64, FIXED32: 8, 4 bytes   BYTES: a length, then as many
 * bytes
 *
 * A reader never leaves its bytes: a length beyond the end, a number of more than 64 bits or an unknown kind sets `bad`. */
#ifndef STRETTO_ONNX_WIRE_H
#define STRETTO_ONNX_WIRE_H

#include "base/str.h"

enum wire_kind { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* --- writing; as str_add, failures are kept in the buffer --- */
void wire_int(struct str *to, i32 field, i64 v);
void wire_f32(struct str *to, i32 field, f32 v);
void wire_f64(struct str *to, i32 field, f64 v);
void wire_bytes(struct str *to, i32 field, const void *p, size_t n);
void wire_text(struct str *to, i32 field, const char *text);
void wire_message(struct str *to, i32 field, struct str *message); /* appends the message, and frees it */

/* --- reading --- */
struct wire {
    const u8 *p, *end;
    bool bad;
};

struct wire_field {
    i32 number;
    enum wire_kind kind;
    u64 v;       /* VARINT, FIXED64, FIXED32: the bits */
    const u8 *p; /* BYTES: borrowed from the reader's bytes */
    i64 n;
};

static inline struct wire wire_of(const void *p, i64 n) {
    const u8 *from = n > 0 ? p : (const u8 *)""; /* p may be NULL where there are no bytes */
    return (struct wire){from, from + lmax(0, n), false};
}
/* The next field; false at the end, or where the bytes are no fields (w->bad). */
bool wire_next(struct wire *w, struct wire_field *f);
/* The next number of packed VARINTs; false at the end or if bad. */
bool wire_packed(struct wire *w, i64 *v);

#endif
