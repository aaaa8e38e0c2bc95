/* mirror_fetch.c - see mirror.h: the run folder of this host from its copy in HDFS. The ranks of a host take turns. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "api/api.h"
#include "api/mirror.h"
#include "base/checkpoints.h"
#include "base/file.h"
#include "base/hdfs.h"
#include "base/json.h"
#include "ckpt/checkpoint.h"

enum { PATH_BYTES = 4096, PIECE = 1 << 20 };

static err path_in(const char *folder, const char *name, char out[PATH_BYTES]) {
    const i32 n = snprintf(out, PATH_BYTES, "%s/%s", folder, name);
    return n < PATH_BYTES ? 0 : FAIL(E702, "the path of the run folder is too long: %s", folder);
}

static err copy_bytes(struct file_in *in, struct file_out *out) {
    char *piece;
    err e = 0;
    NEW(piece, PIECE);
    for (i64 got = 1; e >= 0 && got > 0;) {
        e = file_read_some(in, piece, PIECE, &got);
        if (e >= 0 && got > 0) e = file_write(out, piece, got);
    }
    mem_free(piece);
    return e;
}

static err fetch_file(const char *from, const char *to) {
    struct file_in in;
    struct file_out out;
    TRY(file_open(from, &in));
    err e = file_create(to, &out);
    if (e >= 0) {
        e = copy_bytes(&in, &out);
        if (e >= 0) e = file_commit(&out);
        else file_abort(&out);
    }
    file_close(&in);
    return e;
}

/* ------------------------------------------------------------------ checkpoints --------------------------------------------- */

/* The largest number below `below`. */
struct newest {
    i64 below, number;
};

static err note_newest(void *self, const char *name, const struct hdfs_status *s) {
    struct newest *n = self;
    const i64 number = s->folder ? ckpt_number_of(name) : -1;
    if (number < n->below && number > n->number) n->number = number;
    return 0;
}

struct pair {
    const char *from, *to;
};

static err fetch_member(void *self, const char *name, const struct hdfs_status *s) {
    const struct pair *p = self;
    char from[PATH_BYTES], to[PATH_BYTES];
    if (s->folder) return 0;
    TRY(path_in(p->from, name, from));
    TRY(path_in(p->to, name, to));
    return fetch_file(from, to);
}

static err fetch_one(const char *from, const char *to, i64 number) {
    char whole[PATH_BYTES], part[PATH_BYTES], remote[PATH_BYTES];
    struct ckpt *c;
    TRY(ckpt_path(from, number, CKPT_WHOLE, remote));
    TRY(ckpt_path(to, number, CKPT_WHOLE, whole));
    TRY(ckpt_path(to, number, CKPT_PART, part));
    TRY(file_remove_dir(part));
    TRY(file_make_dir(part));
    TRY(hdfs_list(remote, fetch_member, &(struct pair){remote, part}));
    TRY(file_remove_dir(whole));
    TRY(file_rename(part, whole));
    err e = ckpt_open(whole, &c);
    if (e >= 0) ckpt_close(c);
    else if (e == -E901 || e == -E701) {
        const struct err_record why = *err_last();
        (void)file_remove_dir(whole);
        err_put(&why);
    }
    return e;
}

/* The newest whole checkpoint in HDFS that is newer than those of this host. */
static err fetch_newest(const char *from, const char *to, i64 here) {
    struct err_record first = {0};
    struct newest n = {.below = INT64_MAX};
    for (;;) {
        n.number = -1;
        TRY(hdfs_list(from, note_newest, &n));
        if (n.number <= here) break;
        const err e = fetch_one(from, to, n.number);
        if (e >= 0 || (e != -E901 && e != -E701)) return e;
        if (!first.code) first = *err_last();
        n.below = n.number;
    }
    if (here >= 0 || !first.code) return 0;
    err_put(&first);
    return -first.code;
}

/* ------------------------------------------------------------------ the folder ---------------------------------------------- */

/* E704 if the folder of this host belongs to a run of another model; *there: it belongs to this one. */
static err check_owner(const char *run, const char *local, bool *there) {
    char path[PATH_BYTES], fix[PATH_BYTES];
    struct js *o = NULL;
    *there = false;
    TRY(path_in(local, "run.json", path));
    if (!file_exists(path)) return 0;
    TRY(js_load(path, &o));
    const char *model = js_str(js_get(o, "model"), "");
    const size_t n = strlen(model);
    *there = strncmp(model, run, n) == 0 && strcmp(run + n, ".run") == 0;
    snprintf(fix, sizeof fix, "STRETTO_RUNS=OTHER_FOLDER stretto resume %.400s", run);
    err e = 0;
    if (!*there) e = FAIL_AT(E704, run, fix, "%.300s on this host is the run folder of %.400s", local, model);
    js_free(o);
    return e;
}

static err fetch(const char *run, const char *local) {
    static const char *const name[] = {"config.json", "data.json", "metrics.jsonl", "run.json"}; /* the last names the run */
    char from[PATH_BYTES], to[PATH_BYTES], path[PATH_BYTES];
    struct newest there = {.below = INT64_MAX, .number = -1};
    bool ours;
    i64 here = -1;
    TRY(check_owner(run, local, &ours));
    TRY(path_in(run, "checkpoints", from));
    TRY(path_in(local, "checkpoints", to));
    TRY(hdfs_list(from, note_newest, &there));
    if (ckpt_find(to, 0, path, &here) < 0) err_clear();
    if (ours && (checkpoints_apart() || (here >= there.number && here >= 0))) return 0;
    for (size_t i = 0; i < COUNT(name); i++) {
        TRY(path_in(run, name[i], from));
        TRY(path_in(local, name[i], to));
        if (i + 1 == COUNT(name) && !file_exists(from))
            return FAIL_AT(E705, run, "the folder beside the model (MODEL.run)", "there is no run in this folder of HDFS");
        if (file_exists(from)) TRY(fetch_file(from, to));
    }
    if (checkpoints_apart()) return 0; /* read where they are */
    TRY(path_in(run, "checkpoints", from));
    TRY(path_in(local, "checkpoints", to));
    return fetch_newest(from, to, here);
}

err mirror_fetch(const char *run, char **local) {
    char folder[PATH_BYTES], path[PATH_BYTES], whole[PATH_BYTES];
    *local = NULL;
    if (snprintf(whole, sizeof whole, "%s", run) >= PATH_BYTES) return FAIL(E702, "the path of the run folder is too long");
    for (size_t n = strlen(whole); n > 0 && whole[n - 1] == '/'; n--) whole[n - 1] = 0;
    mirror_folder(whole, "", folder, sizeof folder);
    TRY(path_in(folder, "fetch.lock", path));
    TRY(file_make_dir(folder));
    const int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock < 0 || flock(lock, LOCK_EX) != 0) {
        const err e = file_failed(path);
        if (lock >= 0) close(lock);
        return e;
    }
    err e = fetch(whole, folder);
    close(lock);
    if (e >= 0 && !(*local = mem_strdup(folder))) e = -E601;
    return e;
}
