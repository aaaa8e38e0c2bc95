/* model_file.c - see model_file.h. */
#include "ckpt/model_file.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "ckpt/crc32c.h"
#include "model/layer.h"

static const char fix[] = "name a model file written by stretto (its name usually ends in .model)";

err tens_add(struct tens_list *l, const char *name, enum dtype dtype, i64 rows, i64 cols, const void *data) {
    if (l->n == l->cap) {
        struct tens *more;
        i32 cap = imax(16, 2 * l->cap);
        ARENA_NEW(l->arena, more, cap);
        if (l->n) memcpy(more, l->tens, (size_t)l->n * sizeof *more);
        l->tens = more;
        l->cap = cap;
    }
    struct tens *t = &l->tens[l->n];
    *t = (struct tens){.dtype = dtype, .ndim = cols ? 2 : rows ? 1 : 0, .dim = {rows, cols}};
    t->data = (void *)(uintptr_t)data; /* only read by st_write */
    if (!(t->name = arena_strdup(l->arena, name))) return -E601;
    l->n++;
    return 0;
}

/* Upper bound of names: 47 characters of an op's tensor, 79 of a prefix. */
enum { NAME = 128 };

static void full_name(char name[NAME], const char *prefix, const struct tensor_info *t) {
    snprintf(name, NAME, "%.79s%.47s", prefix, t->name);
}

static i32 tensors_of(const struct op *op, struct tensor_info info[8]) {
    return op->layer->tensors ? op->layer->tensors(op, info) : 0;
}

err model_put(struct tens_list *l, const struct net *n, const f32 *theta, const char *prefix) {
    for (i32 k = 0; k < n->nop; k++) {
        const struct op *op = &n->op[k];
        struct tensor_info info[8];
        i32 count = tensors_of(op, info);
        for (i32 i = 0; i < count; i++) {
            char name[NAME];
            f32 *canonical;
            ARENA_NEW(l->arena, canonical, (i64)info[i].rows * imax(1, info[i].cols));
            layer_store(op, i, theta + op->theta0, canonical);
            full_name(name, prefix, &info[i]);
            TRY(tens_add(l, name, DTYPE_F32, info[i].rows, info[i].cols, canonical));
        }
    }
    return 0;
}

/* --- checksum: detects flipped bytes, which would silently change forecasts ---
 *
 * Over every tensor with its name and every metadata text of ours with its key, independent of their order. */
static const char sum_key[] = "stretto.sum";

static u32 sum_of(const struct tens *t, i32 n, const struct meta *meta, i32 nmeta) {
    u32 sum = 0;
    for (i32 i = 0; i < n; i++)
        sum += crc32c(crc32c(0, t[i].name, (i64)strlen(t[i].name)), t[i].data, tens_count(&t[i]) * (i64)dtype_size(t[i].dtype));
    for (i32 i = 0; i < nmeta; i++) {
        const char *key = meta[i].key, *value = meta[i].value;
        if (strncmp(key, "stretto.", 8) != 0 || strcmp(key, sum_key) == 0) continue;
        sum += crc32c(crc32c(0, key, (i64)strlen(key)), value, (i64)strlen(value));
    }
    return sum;
}

static void sum_text(u32 sum, char out[16]) { snprintf(out, 16, "%08x", sum); }

/* A file without a checksum is from an earlier version, or was edited deliberately: accepted. */
static err check_sum(const struct st_file *f) {
    const char *written = st_meta(f, sum_key);
    char found[16];
    sum_text(sum_of(f->tens, f->ntens, f->meta, f->nmeta), found);
    if (!written || strcmp(written, found) == 0) return 0;
    return FAIL_AT(E901, f->path, "copy the file again   (changed on purpose: take \"stretto.sum\" out of its metadata)",
                   "the checksum of its content is %s, but \"%s\" says %.16s: the file is damaged", found, sum_key, written);
}

err model_write(const char *path, const struct tens_list *l, const struct meta *meta, i32 nmeta) {
    struct meta *all;
    char schema[16], sum[16];
    snprintf(schema, sizeof schema, "%d", MODEL_SCHEMA);
    NEW(all, nmeta + 3);
    if (nmeta) memcpy(all, meta, (size_t)nmeta * sizeof *all);
    all[nmeta] = (struct meta){"stretto.schema", schema};
    sum_text(sum_of(l->tens, l->n, all, nmeta + 1), sum);
    all[nmeta + 1] = (struct meta){sum_key, sum};
    all[nmeta + 2] = (struct meta){"format", "pt"};
    err e = st_write(path, l->tens, l->n, all, nmeta + 3);
    mem_free(all);
    return e;
}

static err check_schema(const struct st_file *f) {
    const char *schema = st_meta(f, "stretto.schema");
    i64 version;
    if (!schema)
        return FAIL_AT(E901, f->path, fix, "this safetensors file was not written by stretto: it has no \"stretto.schema\"");
    if (!str_to_i64(schema, strlen(schema), &version) || version < 1)
        return FAIL_AT(E901, f->path, fix, "\"stretto.schema\" is \"%.32s\", want a number from 1", schema);
    if (version > MODEL_SCHEMA)
        return FAIL_AT(E902, f->path, "use the version of stretto that wrote the model, or a newer one",
                       "the model has schema %lld, this version of stretto reads schema 1 to %d", (long long)version,
                       MODEL_SCHEMA);
    return 0;
}

err model_open(const char *path, struct st_file **out) {
    TRY(st_read(path, out));
    err e = check_schema(*out);
    if (e == 0) e = check_sum(*out);
    if (e == 0) return 0;
    st_free(*out);
    *out = NULL;
    return e;
}

/* "[64,16]", or "[]" for a scalar. */
static void shape_text(const i64 *dim, i32 ndim, char out[96]) {
    i32 at = 1;
    out[0] = '[';
    for (i32 i = 0; i < ndim; i++) at += snprintf(out + at, 96 - (size_t)at, "%s%lld", i ? "," : "", (long long)dim[i]);
    snprintf(out + at, 96 - (size_t)at, "]");
}

err model_tensor(const struct st_file *f, const char *name, enum dtype dtype, i64 rows, i64 cols, const struct tens **out) {
    const struct tens *t = st_find(f, name);
    i64 want[2] = {rows, cols};
    i32 ndim = cols ? 2 : rows ? 1 : 0;
    if (!t) return FAIL_AT(E901, f->path, fix, "the file has no tensor \"%s\"", name);
    bool same = t->dtype == dtype && t->ndim == ndim;
    for (i32 i = 0; same && i < ndim; i++) same = t->dim[i] == want[i];
    if (!same) {
        char got[96], wanted[96];
        shape_text(t->dim, t->ndim, got);
        shape_text(want, ndim, wanted);
        return FAIL_AT(E901, f->path, fix, "tensor \"%s\" is %s %s, want %s %s", name, dtype_name(t->dtype), got,
                       dtype_name(dtype), wanted);
    }
    *out = t;
    return 0;
}

err model_meta(const struct st_file *f, const char *key, const char **out) {
    *out = st_meta(f, key);
    return *out ? 0 : FAIL_AT(E901, f->path, fix, "the file has no metadata \"%s\"", key);
}

err model_take(const struct st_file *f, const struct net *n, const char *prefix, f32 *theta) {
    memset(theta, 0, (size_t)n->ntheta * sizeof *theta);
    for (i32 k = 0; k < n->nop; k++) {
        const struct op *op = &n->op[k];
        struct tensor_info info[8];
        i32 count = tensors_of(op, info);
        for (i32 i = 0; i < count; i++) {
            char name[NAME];
            const struct tens *t = NULL;
            full_name(name, prefix, &info[i]);
            TRY(model_tensor(f, name, DTYPE_F32, info[i].rows, info[i].cols, &t));
            layer_load(op, i, t->data, theta + op->theta0);
        }
    }
    return 0;
}
