/* flat.c - see flat.h. */
#include "data/flat.h"

#include <string.h>

static bool inside(struct flat *f, i64 at, i64 bytes) {
    const bool ok = at >= 0 && bytes >= 0 && bytes <= f->n && at <= f->n - bytes;
    f->bad |= !ok;
    return ok;
}

i64 flat_number_at(struct flat *f, i64 at, i32 bytes) {
    u64 v = 0;
    if (!inside(f, at, bytes)) return 0;
    for (i32 i = 0; i < bytes; i++) v |= (u64)f->p[at + i] << 8 * i;
    const i32 unused = 64 - 8 * bytes;
    return (i64)(v << unused) >> unused;
}

static i64 offset_at(struct flat *f, i64 at) { return (i64)(u32)flat_number_at(f, at, 4); }

/* The table at an offset of the buffer. */
static bool table(struct flat *f, i64 at, struct flat_table *out) {
    if (!inside(f, at, 4)) return false;
    const i64 vtable = at - flat_number_at(f, at, 4);
    if (!inside(f, vtable, 4)) return false;
    *out = (struct flat_table){.in = f, .at = at, .vtable = vtable};
    out->vbytes = (i32)(u16)flat_number_at(f, vtable, 2);
    out->bytes = (i32)(u16)flat_number_at(f, vtable + 2, 2);
    return inside(f, vtable, out->vbytes) && inside(f, at, out->bytes);
}

bool flat_table_at(struct flat *f, i64 at, struct flat_table *out) {
    const i64 step = offset_at(f, at);
    return !f->bad && table(f, at + step, out);
}

bool flat_root(struct flat *f, struct flat_table *out) { return flat_table_at(f, 0, out); }

/* Offset of a field in the buffer, 0 = absent. */
static i64 place(const struct flat_table *t, i32 field, i32 bytes) {
    const i32 slot = 4 + 2 * field;
    if (slot + 2 > t->vbytes) return 0;
    const i64 step = (i64)(u16)flat_number_at(t->in, t->vtable + slot, 2);
    if (step == 0) return 0;
    if (step + bytes > t->bytes) t->in->bad = true;
    return step + bytes > t->bytes ? 0 : t->at + step;
}

i64 flat_number(const struct flat_table *t, i32 field, i32 bytes, i64 absent) {
    const i64 at = place(t, field, bytes);
    return at ? flat_number_at(t->in, at, bytes) : absent;
}

bool flat_child(const struct flat_table *t, i32 field, struct flat_table *out) {
    const i64 at = place(t, field, 4);
    return at && flat_table_at(t->in, at, out);
}

bool flat_vector(const struct flat_table *t, i32 field, i32 bytes, i64 *at, i64 *count) {
    const i64 slot = place(t, field, 4);
    if (!slot) return false;
    const i64 vector = slot + offset_at(t->in, slot);
    *count = offset_at(t->in, vector);
    *at = vector + 4;
    return !t->in->bad && inside(t->in, *at, *count * bytes);
}

bool flat_text(const struct flat_table *t, i32 field, const char **s, i64 *n) {
    i64 at;
    if (!flat_vector(t, field, 1, &at, n)) return false;
    *s = (const char *)t->in->p + at;
    return true;
}
