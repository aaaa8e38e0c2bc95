/* safetensors_write.c - writes safetensors files in canonical order, so that equal content gives equal bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "ckpt/safetensors.h"

/* Order by decreasing element size, then name: aligns every tensor without gaps. */
static int by_size_then_name(const void *a, const void *b) {
    const struct tens *x = *(const struct tens *const *)a, *y = *(const struct tens *const *)b;
    size_t sx = dtype_size(x->dtype), sy = dtype_size(y->dtype);
    if (sx != sy) return sx > sy ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_key(const void *a, const void *b) {
    return strcmp((*(const struct meta *const *)a)->key, (*(const struct meta *const *)b)->key);
}

static i64 tens_bytes(const struct tens *t) { return tens_count(t) * (i64)dtype_size(t->dtype); }

static struct js *entry(const struct tens *t, i64 at) {
    struct js *e = js_object(), *shape = js_array(), *range = js_array();
    for (i32 i = 0; i < t->ndim; i++) js_push(shape, js_new_i64(t->dim[i]));
    js_push(range, js_new_i64(at));
    js_push(range, js_new_i64(at + tens_bytes(t)));
    js_put_text(e, "dtype", dtype_name(t->dtype));
    js_put(e, "shape", shape);
    js_put(e, "data_offsets", range);
    return e;
}

static err header_of(const struct tens *const *tens, i32 ntens, const struct meta *const *meta, i32 nmeta, struct str *out) {
    struct js *root = js_object();
    i64 at = 0;
    if (nmeta) {
        struct js *m = js_object();
        for (i32 i = 0; i < nmeta; i++) js_put_text(m, meta[i]->key, meta[i]->value);
        js_put(root, "__metadata__", m);
    }
    for (i32 i = 0; i < ntens; i++) {
        js_put(root, tens[i]->name, entry(tens[i], at));
        at += tens_bytes(tens[i]);
    }
    err e = js_text(root, out, 0);
    js_free(root);
    TRY(e);
    while (out->len && out->s[out->len - 1] == '\n') out->s[--out->len] = 0;
    while (out->len % 8 && !out->failed) str_add(out, " ");
    return str_ok(out);
}

static err check_names(const struct tens *const *tens, i32 ntens) {
    for (i32 i = 1; i < ntens; i++)
        if (dtype_size(tens[i]->dtype) == dtype_size(tens[i - 1]->dtype) && !strcmp(tens[i]->name, tens[i - 1]->name))
            return FAIL(E1, "two tensors of a file are named \"%s\"", tens[i]->name);
    return 0;
}

static err write_all(const char *path, const struct str *header, const struct tens *const *tens, i32 ntens) {
    struct file_out f;
    u8 length[8];
    for (i32 i = 0; i < 8; i++) length[i] = (u8)((u64)header->len >> (8 * i));
    TRY(file_create(path, &f));
    err e = file_write(&f, length, 8);
    if (e == 0) e = file_write(&f, header->s, (i64)header->len);
    for (i32 i = 0; i < ntens && e == 0; i++)
        if (tens_bytes(tens[i])) e = file_write(&f, tens[i]->data, tens_bytes(tens[i]));
    if (e == 0) return file_commit(&f);
    file_abort(&f);
    return e;
}

static err write_sorted(const char *path, const struct tens **tens, i32 ntens, const struct meta **meta, i32 nmeta) {
    struct str header = {0};
    if (ntens) qsort(tens, (size_t)ntens, sizeof *tens, by_size_then_name);
    if (nmeta) qsort(meta, (size_t)nmeta, sizeof *meta, by_key);
    TRY(check_names(tens, ntens));
    err e = header_of(tens, ntens, meta, nmeta, &header);
    if (e == 0) e = write_all(path, &header, tens, ntens);
    str_free(&header);
    return e;
}

err st_write(const char *path, const struct tens *tens, i32 ntens, const struct meta *meta, i32 nmeta) {
    const struct tens **t;
    const struct meta **m = NULL;
    NEW(t, ntens);
    err e = mem_new((void **)&m, nmeta, sizeof *m);
    for (i32 i = 0; e == 0 && i < ntens; i++) t[i] = &tens[i];
    for (i32 i = 0; e == 0 && i < nmeta; i++) m[i] = &meta[i];
    if (e == 0) e = write_sorted(path, t, ntens, m, nmeta);
    mem_free(t);
    mem_free(m);
    return e;
}
