/* checkpoint.c - see checkpoint.h. */
#include "ckpt/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { DIGITS = 12 };
static const char ending[] = ".ckpt";

static const enum dtype dtype_of[] = {
    [CKPT_F32] = DTYPE_F32, [CKPT_F64] = DTYPE_F64, [CKPT_I64] = DTYPE_I64, [CKPT_BYTES] = DTYPE_U8};

/* The number in "000000000300.ckpt", or -1. */
static i64 number_of(const char *name) {
    i64 n;
    if (strlen(name) != DIGITS + sizeof ending - 1 || strcmp(name + DIGITS, ending) != 0) return -1;
    if (strspn(name, "0123456789") != DIGITS || !str_to_i64(name, DIGITS, &n)) return -1;
    return n;
}

static void path_of(const char *dir, i64 number, char path[4096]) {
    snprintf(path, 4096, "%s/%0*lld%s", dir, DIGITS, (long long)number, ending);
}

/* The largest number below `below`, or -1; a missing folder has none. */
static i64 newest_below(const char *dir, i64 below) {
    i64 best = -1;
    DIR *d = opendir(dir);
    if (!d) return -1;
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        i64 n = number_of(e->d_name);
        if (n < below && n > best) best = n;
    }
    closedir(d);
    return best;
}

static err write_items(const char *path, const struct ckpt_item *item, i32 nitem, const char *note) {
    struct tens *tens;
    char schema[16];
    snprintf(schema, sizeof schema, "%d", CKPT_SCHEMA);
    struct meta meta[2] = {{"stretto.checkpoint", schema}, {"note", note}};
    NEW(tens, nitem);
    for (i32 i = 0; i < nitem; i++)
        tens[i] = (struct tens){
            .name = item[i].name, .dtype = dtype_of[item[i].kind], .ndim = 1, .dim = {item[i].n}, .data = item[i].p};
    err e = st_write(path, tens, nitem, meta, note ? 2 : 1);
    mem_free(tens);
    return e;
}

static err remove_file(const char *path) {
    if (unlink(path) == 0 || errno == ENOENT) return 0;
    return FAIL_AT(E702, path, "check the rights of the folder", "cannot remove the old checkpoint: %s", strerror(errno));
}

/* The newest `keep` up to `number` stay; larger numbers are of a course that was given up. */
static err remove_others(const char *dir, i64 number, i32 keep) {
    char path[4096];
    for (i64 at = newest_below(dir, INT64_MAX); at > number; at = newest_below(dir, at)) {
        path_of(dir, at, path);
        TRY(remove_file(path));
    }
    i32 seen = 1;
    for (i64 at = newest_below(dir, number); at >= 0; at = newest_below(dir, at)) {
        if (++seen <= keep) continue;
        path_of(dir, at, path);
        TRY(remove_file(path));
    }
    return 0;
}

err ckpt_write(const char *dir, i64 number, const struct ckpt_item *item, i32 nitem, const char *note, i32 keep) {
    char path[4096];
    if (number < 0 || number > 999999999999) return FAIL(E1, "a checkpoint cannot have the number %lld", (long long)number);
    TRY(file_make_dir(dir));
    path_of(dir, number, path);
    TRY(write_items(path, item, nitem, note));
    return remove_others(dir, number, keep);
}

err ckpt_clear(const char *dir) { return remove_others(dir, -1, 0); }

err ckpt_find(const char *dir, i32 k, char path[4096], i64 *number) {
    i64 at = newest_below(dir, INT64_MAX);
    for (; k > 0 && at >= 0; k--) at = newest_below(dir, at);
    if (at < 0) return FAIL_AT(E705, dir, "name the run directory of a run that was stopped", "there is no checkpoint here");
    path_of(dir, at, path);
    if (number) *number = at;
    return 0;
}

static err check_kind(const struct st_file *f) {
    const char *schema = st_meta(f, "stretto.checkpoint");
    i64 version;
    if (!schema || !str_to_i64(schema, strlen(schema), &version) || version < 1)
        return FAIL_AT(E901, f->path, "name a checkpoint written by stretto",
                       "this safetensors file is no checkpoint of stretto");
    if (version > CKPT_SCHEMA)
        return FAIL_AT(E902, f->path, "go on with the version of stretto that began the run",
                       "the checkpoint has schema %lld, this version of stretto reads schema 1 to %d", (long long)version,
                       CKPT_SCHEMA);
    return 0;
}

static err check_items(const struct st_file *f, const struct ckpt_item *item, i32 nitem) {
    TRY(check_kind(f));
    for (i32 i = 0; i < nitem; i++) {
        const struct tens *t = st_find(f, item[i].name);
        if (!t)
            return FAIL_AT(E901, f->path, NULL, "the checkpoint does not hold \"%s\": it is of another kind of run",
                           item[i].name);
        if (t->dtype != dtype_of[item[i].kind] || t->ndim != 1 || t->dim[0] != item[i].n)
            return FAIL_AT(E901, f->path, "resume with the options the run was begun with",
                           "\"%s\" has %lld elements of %s in the checkpoint, this run has %lld of %s", item[i].name,
                           (long long)tens_count(t), dtype_name(t->dtype), (long long)item[i].n,
                           dtype_name(dtype_of[item[i].kind]));
    }
    return 0;
}

static err take(const struct st_file *f, const struct ckpt_item *item, i32 nitem, struct str *note) {
    TRY(check_items(f, item, nitem));
    for (i32 i = 0; i < nitem; i++) {
        const struct tens *t = st_find(f, item[i].name);
        if (item[i].n) memcpy(item[i].p, t->data, (size_t)item[i].n * dtype_size(t->dtype));
    }
    const char *text = st_meta(f, "note");
    if (!note || !text) return 0;
    str_add(note, text);
    return str_ok(note);
}

err ckpt_read(const char *path, const struct ckpt_item *item, i32 nitem, struct str *note) {
    struct st_file *f;
    TRY(st_read(path, &f));
    err e = take(f, item, nitem, note);
    st_free(f);
    return e;
}

err ckpt_resume(const char *dir, const struct ckpt_item *item, i32 nitem, struct str *note, i64 *number) {
    char path[4096];
    TRY(ckpt_find(dir, 0, path, number));
    err e = ckpt_read(path, item, nitem, note);
    if (e != -E901) return e;
    struct err_record first = *err_last();
    for (i32 k = 1; ckpt_find(dir, k, path, number) == 0; k++)
        if (ckpt_read(path, item, nitem, note) == 0) return 0;
    err_put(&first);
    return e;
}

err ckpt_note(const char *dir, struct str *note) {
    i64 number;
    return ckpt_resume(dir, NULL, 0, note, &number);
}
