/* wire.c - see wire.h. */
#include "onnx/wire.h"

#include <string.h>

static void varint(struct str *to, u64 v) {
    u8 b[10];
    size_t n = 0;
    for (; v > 0x7F; v >>= 7) b[n++] = (u8)(v | 0x80);
    b[n++] = (u8)v;
    str_addn(to, (const char *)b, n);
}

static void key(struct str *to, i32 field, enum wire_kind kind) { varint(to, (u64)field << 3 | (u64)kind); }

void wire_int(struct str *to, i32 field, i64 v) {
    key(to, field, WIRE_VARINT);
    varint(to, (u64)v);
}

void wire_f32(struct str *to, i32 field, f32 v) {
    key(to, field, WIRE_FIXED32);
    str_addn(to, (const char *)&v, sizeof v);
}

void wire_f64(struct str *to, i32 field, f64 v) {
    key(to, field, WIRE_FIXED64);
    str_addn(to, (const char *)&v, sizeof v);
}

void wire_bytes(struct str *to, i32 field, const void *p, size_t n) {
    key(to, field, WIRE_BYTES);
    varint(to, n);
    str_addn(to, n ? p : "", n);
}

void wire_text(struct str *to, i32 field, const char *text) { wire_bytes(to, field, text, strlen(text)); }

void wire_message(struct str *to, i32 field, struct str *message) {
    if (message->failed) to->failed = true;
    wire_bytes(to, field, str_text(message), message->len);
    str_free(message);
}

static bool read_varint(struct wire *w, u64 *v) {
    *v = 0;
    for (i32 shift = 0; shift < 64; shift += 7) {
        if (w->p == w->end) break;
        const u8 b = *w->p++;
        if (shift == 63 && b > 1) break;
        *v |= (u64)(b & 0x7F) << shift;
        if (!(b & 0x80)) return true;
    }
    w->bad = true;
    return false;
}

/* n bytes of a number, the lowest first. */
static bool read_fixed(struct wire *w, i32 n, u64 *v) {
    *v = 0;
    if (w->end - w->p < n) {
        w->bad = true;
        return false;
    }
    for (i32 i = 0; i < n; i++) *v |= (u64)*w->p++ << 8 * i;
    return true;
}

static bool read_bytes(struct wire *w, struct wire_field *f) {
    u64 n;
    if (!read_varint(w, &n)) return false;
    if (n > (u64)(w->end - w->p)) {
        w->bad = true;
        return false;
    }
    f->p = w->p;
    f->n = (i64)n;
    w->p += n;
    return true;
}

bool wire_next(struct wire *w, struct wire_field *f) {
    u64 head;
    *f = (struct wire_field){0};
    if (w->bad || w->p == w->end || !read_varint(w, &head)) return false;
    f->kind = (enum wire_kind)(head & 7);
    if (head >> 3 > 0 && head >> 3 < (1u << 29)) {
        f->number = (i32)(head >> 3);
        if (f->kind == WIRE_VARINT) return read_varint(w, &f->v);
        if (f->kind == WIRE_FIXED64) return read_fixed(w, 8, &f->v);
        if (f->kind == WIRE_FIXED32) return read_fixed(w, 4, &f->v);
        if (f->kind == WIRE_BYTES) return read_bytes(w, f);
    }
    w->bad = true;
    return false;
}

bool wire_packed(struct wire *w, i64 *v) {
    u64 bits;
    if (w->bad || w->p == w->end || !read_varint(w, &bits)) return false;
    *v = (i64)bits;
    return true;
}
