/* safetensors.c - reads safetensors files; validates everything before use. */
#include "ckpt/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[DTYPE_N] = {
    [DTYPE_F32] = {"F32", 4},   [DTYPE_F64] = {"F64", 8}, [DTYPE_I32] = {"I32", 4},
    [DTYPE_I64] = {"I64", 8},   [DTYPE_U8] = {"U8", 1},   [DTYPE_F16] = {"F16", 2},
    [DTYPE_BF16] = {"BF16", 2}, [DTYPE_I8] = {"I8", 1},   [DTYPE_BOOL] = {"BOOL", 1},
};

size_t dtype_size(enum dtype d) { return dtypes[d].size; }
const char *dtype_name(enum dtype d) { return dtypes[d].name; }

i64 tens_count(const struct tens *t) {
    i64 n = 1;
    for (i32 i = 0; i < t->ndim; i++) n *= t->dim[i];
    return n;
}

bool dtype_find(const char *name, enum dtype *out) {
    for (i32 d = 0; d < DTYPE_N; d++)
        if (strcmp(name, dtypes[d].name) == 0) return *out = (enum dtype)d, true;
    return false;
}

/* ------------------------------------------------------------------ reading ------------------------------------------------- */

enum { HEADER_MAX = 16 << 20, TENS_MAX = 1 << 14 };

static const char fix[] = "name a model file written by stretto, or copy the file again: it may be cut short";

struct range {
    i64 begin, end;
    i32 tens;
};

struct reader {
    struct file_in in;
    struct st_file *f;
    char *header;
    i64 nheader, ndata;
    struct js *root;
    struct range *range; /* [ntens] */
};

#define DAMAGED(path, ...) FAIL_AT(E901, path, fix, __VA_ARGS__)

/* Reads the length, the header and the data, and checks that their sizes agree. */
static err read_parts(struct reader *r) {
    const char *path = r->in.path;
    u8 raw[8];
    u64 n = 0;
    if (r->in.size < 0) return DAMAGED(path, "this is not a regular file");
    if (r->in.size < 8) return DAMAGED(path, "the file has %lld bytes, too few for a safetensors file", (long long)r->in.size);
    TRY(file_read_at(&r->in, 0, raw, 8));
    for (i32 i = 7; i >= 0; i--) n = n << 8 | raw[i];
    if (n < 2 || n > HEADER_MAX || (i64)n > r->in.size - 8)
        return DAMAGED(path, "bytes 0-7 say that the header has %llu bytes; the file has %lld, and at most %d are read",
                       (unsigned long long)n, (long long)r->in.size, HEADER_MAX);
    r->nheader = (i64)n;
    r->ndata = r->in.size - 8 - r->nheader;
    NEW(r->header, r->nheader);
    TRY(file_read_at(&r->in, 8, r->header, r->nheader));
    if (r->header[0] != '{')
        return DAMAGED(path, "byte 8 is 0x%02x; the header of a safetensors file begins with {", (u8)r->header[0]);
    return 0;
}

static err parse_header(struct reader *r) {
    err e = js_parse(r->header, (size_t)r->nheader, "header", &r->root);
    if (e == -E601) return e;
    if (e < 0) {
        char why[512];
        snprintf(why, sizeof why, "%.500s", err_last()->text);
        return DAMAGED(r->in.path, "the header (from byte 8) is no JSON: %s", why);
    }
    if (js_kind(r->root) != JS_OBJECT) return DAMAGED(r->in.path, "the header (from byte 8) is not a JSON object");
    return 0;
}

static err read_meta(struct reader *r) {
    const struct js *meta = js_get(r->root, "__metadata__"), *value;
    const char *key;
    if (!meta) return 0;
    if (js_kind(meta) != JS_OBJECT || js_len(meta) > TENS_MAX)
        return DAMAGED(r->in.path, "__metadata__ is not an object of texts");
    struct st_file *f = r->f;
    ARENA_NEW(&f->arena, f->meta, js_len(meta));
    for (i32 i = 0; js_member(meta, i, &key, &value); i++) {
        const char *text = js_str(value, NULL);
        if (!text) return DAMAGED(r->in.path, "__metadata__ \"%.64s\" is not a text", key);
        f->meta[i].key = arena_strdup(&f->arena, key);
        f->meta[i].value = arena_strdup(&f->arena, text);
        if (!f->meta[i].key || !f->meta[i].value) return -E601;
        f->nmeta = i + 1;
    }
    return 0;
}

/* Reads shape and type of one entry, and computes its size in bytes. */
static err read_shape(const struct reader *r, const struct js *entry, struct tens *t, i64 *bytes) {
    const char *type = js_str(js_get(entry, "dtype"), NULL);
    const struct js *shape = js_get(entry, "shape");
    if (!type || !dtype_find(type, &t->dtype))
        return DAMAGED(r->in.path, "tensor \"%.64s\" has dtype \"%.16s\", which is not read here", t->name,
                       type ? type : "(none)");
    if (js_kind(shape) != JS_ARRAY) return DAMAGED(r->in.path, "tensor \"%.64s\" has no shape", t->name);
    if (js_len(shape) > 4)
        return DAMAGED(r->in.path, "tensor \"%.64s\" has %lld dimensions, at most 4 are read", t->name, (long long)js_len(shape));
    t->ndim = (i32)js_len(shape);
    *bytes = (i64)dtype_size(t->dtype);
    for (i32 i = 0; i < t->ndim; i++) {
        t->dim[i] = js_kind(js_at(shape, i)) == JS_INT ? js_i64(js_at(shape, i), -1) : -1;
        if (t->dim[i] < 0 || __builtin_mul_overflow(*bytes, t->dim[i], bytes))
            return DAMAGED(r->in.path, "dimension %d of tensor \"%.64s\" is no possible size", i, t->name);
    }
    return 0;
}

static err read_range(const struct reader *r, const struct js *entry, const struct tens *t, i64 bytes, struct range *out) {
    const struct js *at = js_get(entry, "data_offsets");
    bool whole = js_kind(at) == JS_ARRAY && js_len(at) == 2 && js_kind(js_at(at, 0)) == JS_INT && js_kind(js_at(at, 1)) == JS_INT;
    if (!whole) return DAMAGED(r->in.path, "tensor \"%.64s\" has no data_offsets [begin, end]", t->name);
    out->begin = js_i64(js_at(at, 0), -1);
    out->end = js_i64(js_at(at, 1), -1);
    if (out->begin < 0 || out->end < out->begin || out->end > r->ndata)
        return DAMAGED(r->in.path, "tensor \"%.64s\" lies at [%lld, %lld) of %lld bytes of data", t->name, (long long)out->begin,
                       (long long)out->end, (long long)r->ndata);
    if (out->end - out->begin != bytes)
        return DAMAGED(r->in.path, "tensor \"%.64s\" has %lld bytes, its shape needs %lld", t->name,
                       (long long)(out->end - out->begin), (long long)bytes);
    return 0;
}

static err read_entries(struct reader *r) {
    struct st_file *f = r->f;
    const struct js *entry;
    const char *name;
    i64 n = js_len(r->root);
    if (n > TENS_MAX) return DAMAGED(r->in.path, "the header names %lld tensors, at most %d are read", (long long)n, TENS_MAX);
    ARENA_NEW(&f->arena, f->tens, n);
    NEW(r->range, n);
    for (i64 i = 0; js_member(r->root, i, &name, &entry); i++) {
        if (!strcmp(name, "__metadata__")) continue;
        struct tens *t = &f->tens[f->ntens];
        struct range *g = &r->range[f->ntens];
        i64 bytes = 0;
        if (!(t->name = arena_strdup(&f->arena, name))) return -E601;
        TRY(read_shape(r, entry, t, &bytes));
        TRY(read_range(r, entry, t, bytes, g));
        g->tens = f->ntens++;
    }
    return 0;
}

static int by_begin(const void *a, const void *b) {
    const struct range *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Checks that the sorted ranges cover the data exactly. */
static err check_cover(struct reader *r) {
    i64 at = 0;
    if (r->f->ntens) qsort(r->range, (size_t)r->f->ntens, sizeof *r->range, by_begin);
    for (i32 i = 0; i < r->f->ntens; i++) {
        const struct range *g = &r->range[i];
        if (g->begin != at)
            return DAMAGED(r->in.path, "tensor \"%.64s\" begins at byte %lld of the data, %lld was expected",
                           r->f->tens[g->tens].name, (long long)g->begin, (long long)at);
        at = g->end;
    }
    if (at != r->ndata)
        return DAMAGED(r->in.path, "the tensors end at byte %lld of the data, the file at %lld", (long long)at,
                       (long long)r->ndata);
    return 0;
}

/* Moves data that is not aligned for its type. */
static err place_data(struct reader *r) {
    struct st_file *f = r->f;
    NEW(f->data, r->ndata);
    TRY(file_read_at(&r->in, 8 + r->nheader, f->data, r->ndata));
    for (i32 i = 0; i < f->ntens; i++) {
        struct tens *t = &f->tens[r->range[i].tens];
        i64 begin = r->range[i].begin, size = r->range[i].end - begin;
        t->data = (char *)f->data + begin;
        if (begin % (i64)dtype_size(t->dtype) == 0 || size == 0) continue;
        u8 *copy;
        ARENA_NEW(&f->arena, copy, size);
        memcpy(copy, t->data, (size_t)size);
        t->data = copy;
    }
    return 0;
}

static err read_all(struct reader *r) {
    TRY(read_parts(r));
    TRY(parse_header(r));
    TRY(read_meta(r));
    TRY(read_entries(r));
    TRY(check_cover(r));
    return place_data(r);
}

err st_read(const char *path, struct st_file **out) {
    *out = NULL;
    struct reader r = {0};
    TRY(file_open(path, &r.in));
    err e = mem_new((void **)&r.f, 1, sizeof *r.f);
    if (e == 0 && !(r.f->path = arena_strdup(&r.f->arena, path))) e = -E601;
    if (e == 0) e = read_all(&r);
    file_close(&r.in);
    mem_free(r.header);
    mem_free(r.range);
    js_free(r.root);
    if (e < 0)
        st_free(r.f);
    else
        *out = r.f;
    return e;
}

void st_free(struct st_file *f) {
    if (!f) return;
    mem_free(f->data);
    arena_free(&f->arena);
    mem_free(f);
}

const struct tens *st_find(const struct st_file *f, const char *name) {
    for (i32 i = 0; i < f->ntens; i++)
        if (!strcmp(f->tens[i].name, name)) return &f->tens[i];
    return NULL;
}

const char *st_meta(const struct st_file *f, const char *key) {
    for (i32 i = 0; i < f->nmeta; i++)
        if (!strcmp(f->meta[i].key, key)) return f->meta[i].value;
    return NULL;
}
