/* thrift.c - see thrift.h. */
#include "data/thrift.h"

enum { DEPTH = 32 };

static u8 byte(struct thrift *t) {
    if (t->bad || t->p >= t->end) {
        t->bad = true;
        return 0;
    }
    return *t->p++;
}

u64 thrift_varint(struct thrift *t) {
    u64 v = 0;
    for (i32 shift = 0; shift < 64; shift += 7) {
        const u8 b = byte(t);
        v |= (u64)(b & 0x7F) << shift;
        if (!(b & 0x80)) return v;
    }
    t->bad = true;
    return 0;
}

i64 thrift_zigzag(struct thrift *t) {
    const u64 v = thrift_varint(t);
    return (i64)(v >> 1) ^ -(i64)(v & 1);
}

bool thrift_next(struct thrift *t, struct thrift_field *f) {
    const u8 head = byte(t);
    if (t->bad || head == 0) return false;
    const i64 id = head >> 4 ? f->id + (head >> 4) : thrift_zigzag(t);
    if (id < 0 || id > INT16_MAX) t->bad = true;
    *f = (struct thrift_field){(i32)id, head & 15};
    return !t->bad;
}

i64 thrift_whole(struct thrift *t, const struct thrift_field *f) {
    if (f->type == THRIFT_TRUE || f->type == THRIFT_FALSE) return f->type == THRIFT_TRUE;
    if (f->type == THRIFT_BYTE) return (int8_t)byte(t);
    if (f->type >= THRIFT_I16 && f->type <= THRIFT_I64) return thrift_zigzag(t);
    t->bad = true;
    return 0;
}

bool thrift_text(struct thrift *t, const struct thrift_field *f, const char **s, i64 *n) {
    const u64 size = f->type == THRIFT_BINARY ? thrift_varint(t) : 0;
    if (f->type != THRIFT_BINARY || t->bad || size > (u64)(t->end - t->p)) {
        t->bad = true;
        return false;
    }
    *s = (const char *)t->p;
    *n = (i64)size;
    t->p += size;
    return true;
}

static i64 list_head(struct thrift *t, i32 *type) {
    const u8 head = byte(t);
    const u64 n = head >> 4 == 15 ? thrift_varint(t) : head >> 4;
    *type = head & 15;
    if (t->bad || n > (u64)(t->end - t->p)) {
        t->bad = true;
        return 0;
    }
    return (i64)n;
}

i64 thrift_list(struct thrift *t, const struct thrift_field *f, i32 type) {
    i32 has = type;
    const i64 n = f->type == THRIFT_LIST ? list_head(t, &has) : 0;
    if (f->type != THRIFT_LIST || (n > 0 && has != type)) t->bad = true;
    return t->bad ? 0 : n;
}

bool thrift_struct(struct thrift *t, const struct thrift_field *f) {
    if (f->type != THRIFT_STRUCT) t->bad = true;
    return !t->bad;
}

static void skip_value(struct thrift *t, i32 type);

static void skip_struct(struct thrift *t) {
    struct thrift_field f = {0};
    while (thrift_next(t, &f)) thrift_skip(t, &f);
}

static void skip_pairs(struct thrift *t) {
    const u64 n = thrift_varint(t);
    const u8 types = n ? byte(t) : 0;
    if (n > (u64)(t->end - t->p)) t->bad = true;
    for (u64 i = 0; i < n && !t->bad; i++) {
        skip_value(t, types >> 4);
        skip_value(t, types & 15);
    }
}

/* A value of a list, where true and false take a byte. */
static void skip_value(struct thrift *t, i32 type) {
    const struct thrift_field text = {.type = THRIFT_BINARY};
    const char *s;
    i64 n;
    i32 of;
    if (++t->depth > DEPTH) t->bad = true;
    if (t->bad) return;
    switch (type) {
        case THRIFT_TRUE:
        case THRIFT_FALSE:
        case THRIFT_BYTE:
            byte(t);
            break;
        case THRIFT_I16:
        case THRIFT_I32:
        case THRIFT_I64:
            thrift_varint(t);
            break;
        case THRIFT_DOUBLE:
            if (t->end - t->p < 8)
                t->bad = true;
            else
                t->p += 8;
            break;
        case THRIFT_BINARY:
            thrift_text(t, &text, &s, &n);
            break;
        case THRIFT_LIST:
        case THRIFT_SET:
            n = list_head(t, &of);
            for (i64 i = 0; i < n && !t->bad; i++) skip_value(t, of);
            break;
        case THRIFT_MAP:
            skip_pairs(t);
            break;
        case THRIFT_STRUCT:
            skip_struct(t);
            break;
        default:
            t->bad = true;
    }
    t->depth--;
}

void thrift_skip(struct thrift *t, const struct thrift_field *f) {
    if (f->type != THRIFT_TRUE && f->type != THRIFT_FALSE) skip_value(t, f->type);
}
