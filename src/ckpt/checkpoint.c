/* checkpoint.c - see checkpoint.h: names, retention, and reading. */
#include "ckpt/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hdfs.h"
#include "ckpt/crc32c.h"
#include "ckpt/manifest.h"

enum { DIGITS = 12 };
static const char *const ending[] = {[CKPT_WHOLE] = ".ckpt", [CKPT_PART] = ".part"};

/* ------------------------------------------------------------------ the folder ---------------------------------------------- */

/* The number in "000000000300.ckpt", or -1. */
static i64 number_of(const char *name, enum ckpt_state state) {
    i64 n;
    if (strlen(name) != DIGITS + strlen(ending[state]) || strcmp(name + DIGITS, ending[state]) != 0) return -1;
    if (strspn(name, "0123456789") != DIGITS || !str_to_i64(name, DIGITS, &n)) return -1;
    return n;
}

err ckpt_path(const char *dir, i64 number, enum ckpt_state state, char path[4096]) {
    if (number < 0 || number > 999999999999) return FAIL(E1, "a checkpoint cannot have the number %lld", (long long)number);
    const i32 n = snprintf(path, 4096, "%s/%0*lld%s", dir, DIGITS, (long long)number, ending[state]);
    return n < 4096 - SHARD_NAME ? 0 : FAIL(E702, "the path of the run folder is too long");
}

struct below {
    i64 below, best;
    enum ckpt_state state;
};

static err note_below(void *self, const char *name, const struct hdfs_status *s) {
    struct below *b = self;
    const i64 n = number_of(name, b->state);
    (void)s;
    if (n < b->below && n > b->best) b->best = n;
    return 0;
}

static i64 remote_below(const char *dir, i64 below, enum ckpt_state state) {
    struct below b = {.below = below, .best = -1, .state = state};
    const struct err_record before = *err_last();
    if (hdfs_list(dir, note_below, &b) < 0) err_put(&before);
    return b.best;
}

/* The largest number below `below`, or -1; a missing folder has none. */
static i64 newest_below(const char *dir, i64 below, enum ckpt_state state) {
    i64 best = -1;
    if (hdfs_is(dir)) return remote_below(dir, below, state);
    DIR *d = opendir(dir);
    if (!d) return -1;
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        i64 n = number_of(e->d_name, state);
        if (n < below && n > best) best = n;
    }
    closedir(d);
    return best;
}

/* Renames the folder before removing it: a partly removed one must not look like a checkpoint. */
static err remove_one(const char *dir, i64 number) {
    char path[4096], part[4096];
    TRY(ckpt_path(dir, number, CKPT_WHOLE, path));
    if (hdfs_is(path)) return hdfs_remove(path); /* in one step */
    if (unlink(path) == 0 || errno == ENOENT) return 0;
    TRY(ckpt_path(dir, number, CKPT_PART, part));
    TRY(file_remove_dir(part));
    TRY(file_rename(path, part));
    return file_remove_dir(part);
}

err ckpt_trim(const char *dir, i64 number, i32 keep) {
    for (i64 at = newest_below(dir, INT64_MAX, CKPT_WHOLE); at > number; at = newest_below(dir, at, CKPT_WHOLE))
        TRY(remove_one(dir, at));
    i32 seen = 0;
    for (i64 at = newest_below(dir, number + 1, CKPT_WHOLE); at >= 0; at = newest_below(dir, at, CKPT_WHOLE))
        if (++seen > keep) TRY(remove_one(dir, at));
    return 0;
}

err ckpt_sweep(const char *dir) {
    char path[4096];
    for (i64 at = newest_below(dir, INT64_MAX, CKPT_PART); at >= 0; at = newest_below(dir, at, CKPT_PART)) {
        TRY(ckpt_path(dir, at, CKPT_PART, path));
        TRY(file_remove_dir(path));
    }
    return 0;
}

err ckpt_clear(const char *dir) {
    TRY(ckpt_trim(dir, -1, 0));
    return ckpt_sweep(dir);
}

err ckpt_find(const char *dir, i32 k, char path[4096], i64 *number) {
    i64 at = newest_below(dir, INT64_MAX, CKPT_WHOLE);
    for (; k > 0 && at >= 0; k--) at = newest_below(dir, at, CKPT_WHOLE);
    if (at < 0) return FAIL_AT(E705, dir, "name the run directory of a run that was stopped", "there is no checkpoint here");
    if (number) *number = at;
    return ckpt_path(dir, at, CKPT_WHOLE, path);
}

i64 ckpt_number_of(const char *name) { return number_of(name, CKPT_WHOLE); }

struct names {
    err (*each)(void *self, const char *name);
    void *self;
};

static err name_only(void *self, const char *name, const struct hdfs_status *s) {
    const struct names *n = self;
    (void)s;
    return n->each(n->self, name);
}

err ckpt_files(const char *path, err (*each)(void *self, const char *name), void *self) {
    if (hdfs_is(path)) return hdfs_list(path, name_only, &(struct names){each, self});
    DIR *d = opendir(path);
    err e = d ? 0 : FAIL_AT(E701, path, NULL, "cannot read the folder: %s", strerror(errno));
    for (const struct dirent *x = d ? readdir(d) : NULL; e >= 0 && x; x = readdir(d))
        if (x->d_name[0] != '.') e = each(self, x->d_name);
    if (d) closedir(d);
    return e;
}

/* ------------------------------------------------------------------ opening ------------------------------------------------- */

struct ckpt {
    char path[4096];
    i64 number;
    struct st_file *single; /* single-file checkpoint of an older version; else NULL */
    struct manifest m;
};

static err check_shard(const struct ckpt *c, i32 shard) {
    const struct manifest_shard *want = &c->m.shard[shard];
    char path[4096];
    i64 bytes;
    u32 crc;
    TRY(shard_path(c->path, shard, c->m.nshard, path));
    TRY(crc32c_file(path, &bytes, &crc));
    if (bytes != want->bytes)
        return FAIL_AT(E901, path, NULL, "the file has %lld bytes, %lld were written", (long long)bytes, (long long)want->bytes);
    if (crc == want->crc) return 0;
    return FAIL_AT(E901, path, NULL, "the file is damaged: its CRC32C is %08x, that of what was written %08x", crc, want->crc);
}

static err open_shards(struct ckpt *c) {
    char path[4096 + 16];
    snprintf(path, sizeof path, "%s/MANIFEST", c->path);
    TRY(manifest_load(path, &c->m));
    if (c->number >= 0 && c->m.number != c->number)
        return FAIL_AT(E901, path, NULL, "the manifest is that of checkpoint %lld", (long long)c->m.number);
    for (i32 k = 0; k < c->m.nshard; k++) TRY(check_shard(c, k));
    return 0;
}

static err open_single(struct ckpt *c) {
    TRY(st_read(c->path, &c->single));
    const char *schema = st_meta(c->single, "stretto.checkpoint");
    i64 version;
    if (!schema || !str_to_i64(schema, strlen(schema), &version) || version < 1)
        return FAIL_AT(E901, c->path, "name a checkpoint written by stretto",
                       "this safetensors file is no checkpoint of stretto");
    if (version > 1)
        return FAIL_AT(E902, c->path, "continue with the version of stretto that started the run",
                       "the checkpoint has schema %lld, this version of stretto reads files of schema 1", (long long)version);
    return 0;
}

err ckpt_open(const char *path, struct ckpt **out) {
    struct ckpt *c;
    struct stat st;
    const char *name = strrchr(path, '/');
    NEW(c, 1);
    snprintf(c->path, sizeof c->path, "%s", path);
    c->number = number_of(name ? name + 1 : path, CKPT_WHOLE);
    const bool folder = hdfs_is(path) || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
    err e = folder ? open_shards(c) : open_single(c);
    if (e < 0) ckpt_close(c);
    else *out = c;
    return e;
}

/* Appends the base name and error of a skipped checkpoint. */
static void add_skipped(struct str *passed, const char *path) {
    const struct err_record *why = err_last();
    const char *in = strrchr(path, '/'), *name = in ? in + 1 : path;
    const char *file = strncmp(why->where, path, strlen(path)) == 0 ? why->where + strlen(path) : "";
    if (passed) str_addf(passed, "%s%s%s: %s", passed->len ? "\n" : "", name, file, why->text);
}

err ckpt_newest(const char *dir, struct str *passed, struct ckpt **out) {
    struct err_record first = {0};
    char path[4096];
    i64 number;
    TRY(ckpt_find(dir, 0, path, &number));
    for (i32 k = 0; ckpt_find(dir, k, path, &number) == 0; k++) {
        err e = ckpt_open(path, out);
        if (e >= 0 || e == -E601 || e == -E902) return e;
        if (k == 0) first = *err_last();
        add_skipped(passed, path);
    }
    err_put(&first);
    return -first.code;
}

const char *ckpt_name(const struct ckpt *c) { return c->path; }
i64 ckpt_number(const struct ckpt *c) { return c->number; }

void ckpt_close(struct ckpt *c) {
    if (!c) return;
    st_free(c->single);
    manifest_free(&c->m);
    mem_free(c);
}

/* ------------------------------------------------------------------ taking -------------------------------------------------- */

/* Type and size of an item in the checkpoint; false = absent. */
static bool has(const struct ckpt *c, const char *name, enum dtype *dtype, i64 *n) {
    if (c->single) {
        const struct tens *t = st_find(c->single, name);
        if (!t) return false;
        *dtype = t->dtype;
        *n = t->ndim == 1 ? t->dim[0] : -1;
        return true;
    }
    const struct manifest_tensor *t = manifest_find(&c->m, name);
    if (!t) return false;
    *dtype = t->dtype;
    *n = t->n;
    return true;
}

static err check_item(const struct ckpt *c, const struct ckpt_item *item) {
    enum dtype dtype;
    i64 n;
    if (!has(c, item->name, &dtype, &n))
        return FAIL_AT(E901, c->path, NULL, "the checkpoint does not hold \"%s\": it is of another kind of run", item->name);
    if (dtype == item->dtype && n == item->n) return 0;
    return FAIL_AT(E901, c->path, "resume with the options of the original run",
                   "\"%s\" has %lld elements of %s in the checkpoint, this run has %lld of %s", item->name, (long long)n,
                   dtype_name(dtype), (long long)item->n, dtype_name(item->dtype));
}

/* Reads all pieces stored in one shard. */
static err take_from(const struct ckpt *c, const struct file_in *f, i32 shard, const struct ckpt_item *item, i32 nitem) {
    for (i32 i = 0; i < nitem; i++) {
        const struct manifest_tensor *t = manifest_find(&c->m, item[i].name);
        const i64 size = (i64)dtype_size(t->dtype);
        for (i32 k = 0; k < t->npiece; k++) {
            const struct manifest_piece *p = &t->piece[k];
            if (p->shard == shard) TRY(file_read_at(f, p->at, (char *)item[i].p + p->lo * size, (p->hi - p->lo) * size));
        }
    }
    return 0;
}

static err take_shards(const struct ckpt *c, const struct ckpt_item *item, i32 nitem) {
    char path[4096];
    struct file_in f;
    for (i32 k = 0; k < c->m.nshard; k++) {
        TRY(shard_path(c->path, k, c->m.nshard, path));
        TRY(file_open(path, &f));
        err e = take_from(c, &f, k, item, nitem);
        file_close(&f);
        TRY(e);
    }
    return 0;
}

err ckpt_take(const struct ckpt *c, const struct ckpt_item *item, i32 nitem) {
    for (i32 i = 0; i < nitem; i++) TRY(check_item(c, &item[i]));
    if (!c->single) return take_shards(c, item, nitem);
    for (i32 i = 0; i < nitem; i++) {
        const struct tens *t = st_find(c->single, item[i].name);
        if (item[i].n) memcpy(item[i].p, t->data, (size_t)item[i].n * dtype_size(t->dtype));
    }
    return 0;
}
