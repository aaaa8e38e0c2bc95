/* saver.c - see saver.h. */
#include "ckpt/saver.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "ckpt/crc32c.h"
#include "ckpt/manifest.h"

struct ckpt_saver {
    char dir[4096], part[4096];  /* checkpoint folder; temporary folder of the current checkpoint */
    char who[SAVER_WHO];
    i32 rank, keep;
    i64 step;
    bool flying, committing;     /* flying: between begin and done or drop; committing: rank 0 has all checksums */
    struct manifest m;           /* manifest of the current checkpoint */
    char *buf;                   /* this rank's shard */
    i64 room;
    struct ckpt_sum sum, *all;   /* all: [m.nshard], for commit */
    err (*job)(struct ckpt_saver *s);
    pthread_t thread;
    bool running;
    _Atomic bool done;
};

/* ------------------------------------------------------------------ the thread ---------------------------------------------- */

static void *work(void *self) {
    struct ckpt_saver *s = self;
    if (s->job(s) < 0) s->sum.why = *err_last();
    atomic_store_explicit(&s->done, true, memory_order_release);
    return NULL;
}

/* Runs a job on a thread, or synchronously if no thread can be created. */
static void go(struct ckpt_saver *s, err (*job)(struct ckpt_saver *s)) {
    s->job = job;
    s->sum.why.code = 0;
    atomic_store(&s->done, false);
    s->running = pthread_create(&s->thread, NULL, work, s) == 0;
    if (!s->running) work(s);
}

static void join(struct ckpt_saver *s) {
    if (s->running) pthread_join(s->thread, NULL);
    s->running = false;
}

static err disk_full(const char *path) {
    errno = ENOSPC;
    return file_failed(path);
}

/* Writes the shard; fault injection points after half of it and after all of it. */
static err fill(const struct ckpt_saver *s, struct file_out *f) {
    enum fault fault;
    const i64 half = s->sum.bytes / 2;
    TRY(file_write(f, s->buf, half));
    TRY(fault_at("write", s->rank, s->step, &fault));
    if (fault == FAULT_ENOSPC) return disk_full(f->tmp);
    if (fault == FAULT_BITFLIP) s->buf[half] ^= 4;
    TRY(file_write(f, s->buf + half, s->sum.bytes - half));
    TRY(file_sync(f));
    TRY(fault_at("rename", s->rank, s->step, &fault));
    if (fault == FAULT_ENOSPC) return disk_full(f->tmp);
    const char other = (char)(s->sum.bytes ? s->buf[half] ^ 4 : 0);
    if (fault == FAULT_BITFLIP && pwrite(f->fd, &other, 1, half) != 1) return disk_full(f->tmp);
    return 0;
}

/* Reads the file back by name and compares all of it (mostly from the page cache). */
static err read_back(const struct ckpt_saver *s, const char *path) {
    i64 n;
    u32 crc;
    TRY(crc32c_file(path, &n, &crc));
    if (n == s->sum.bytes && crc == s->sum.crc) return 0;
    return FAIL_AT(E901, path, NULL, "what is read back is not what was written: %lld bytes of CRC32C %08x, not %lld of %08x",
                   (long long)n, crc, (long long)s->sum.bytes, s->sum.crc);
}

static err write_shard(struct ckpt_saver *s) {
    char path[4096];
    struct file_out f;
    s->sum.crc = crc32c(0, s->buf, s->sum.bytes);
    TRY(shard_path(s->part, s->rank, s->m.nshard, path));
    TRY(file_make_dir(s->part));
    TRY(file_create(path, &f));
    err e = fill(s, &f);
    if (e < 0) {
        file_abort(&f);
        return e;
    }
    TRY(file_commit(&f));
    return read_back(s, path);
}

/* Checks that a shard is visible: detects folders that are not shared between hosts. */
static err check_visible(const struct ckpt_saver *s, i32 shard) {
    char path[4096];
    struct file_in f;
    const struct ckpt_sum *a = &s->all[shard];
    TRY(shard_path(s->part, shard, s->m.nshard, path));
    if (file_open(path, &f) < 0)
        return FAIL_AT(E701, path, "a run folder that all hosts see alike (--run-dir), or all ranks on one host",
                       "%s does not see the part of the checkpoint that %s wrote into this folder", s->who, a->who);
    const i64 size = f.size;
    file_close(&f);
    if (size == a->bytes) return 0;
    return FAIL_AT(E901, path, NULL, "%s sees %lld bytes of the %lld that %s wrote", s->who, (long long)size,
                   (long long)a->bytes, a->who);
}

static err write_manifest(struct ckpt_saver *s, const char *path, struct str *text) {
    enum fault fault;
    struct manifest again;
    TRY(fault_at("manifest", s->rank, s->step, &fault));
    if (fault == FAULT_ENOSPC) return disk_full(path);
    if (fault == FAULT_BITFLIP) text->s[text->len / 2] ^= 4;
    TRY(file_write_all(path, text->s, (i64)text->len));
    TRY(manifest_load(path, &again));
    manifest_free(&again);
    return 0;
}

/* Renames to the final name. An existing checkpoint of this number is a damaged one and is replaced. */
static err rename_whole(struct ckpt_saver *s) {
    char whole[4096];
    TRY(ckpt_path(s->dir, s->m.number, CKPT_WHOLE, whole));
    if (file_is_remote(whole) || (unlink(whole) != 0 && errno != ENOENT)) TRY(file_remove_dir(whole));
    TRY(file_rename(s->part, whole));
    return ckpt_trim(s->dir, s->m.number, s->keep);
}

static err commit(struct ckpt_saver *s) {
    char path[4096 + 16];
    struct str text = {0};
    for (i32 k = 0; k < s->m.nshard; k++) {
        TRY(check_visible(s, k));
        if (s->m.shard[k].bytes != s->all[k].bytes) return FAIL(E804, "%s wrote a part of another checkpoint", s->all[k].who);
        s->m.shard[k].crc = s->all[k].crc;
    }
    snprintf(path, sizeof path, "%s/MANIFEST", s->part);
    err e = manifest_text(&s->m, &text);
    if (e >= 0) e = write_manifest(s, path, &text);
    str_free(&text);
    return e >= 0 ? rename_whole(s) : e;
}

/* ------------------------------------------------------------------ the caller's side --------------------------------------- */

err ckpt_saver_new(const char *dir, i32 rank, const char *who, i64 room, struct ckpt_saver **out) {
    struct ckpt_saver *s;
    NEW(s, 1);
    s->rank = rank;
    s->room = room;
    snprintf(s->dir, sizeof s->dir, "%s", dir);
    snprintf(s->who, sizeof s->who, "%s", who);
    err e = mem_new((void **)&s->buf, room, 1);
    if (e < 0) ckpt_saver_free(s);
    else *out = s;
    return e;
}

static void land(struct ckpt_saver *s) {
    join(s);
    manifest_free(&s->m);
    mem_free(s->all);
    s->all = NULL;
    s->flying = s->committing = false;
}

void ckpt_saver_free(struct ckpt_saver *s) {
    if (!s) return;
    if (s->flying) ckpt_saver_drop(s);
    land(s);
    mem_free(s->buf);
    mem_free(s);
}

i64 ckpt_saver_bytes(const struct ckpt_item *item, const struct ckpt_pieces *p, i32 rank) {
    i64 bytes = 0;
    for (i32 k = 0; k < p->n; k++)
        if (p->piece[k].shard == rank)
            bytes += (p->piece[k].hi - p->piece[k].lo) * (i64)dtype_size(item[p->piece[k].item].dtype);
    return bytes;
}

static void copy(struct ckpt_saver *s, const struct ckpt_save *w) {
    char *to = s->buf;
    for (i32 k = 0; k < w->pieces.n; k++) {
        const struct ckpt_piece *p = &w->pieces.piece[k];
        const i64 size = (i64)dtype_size(w->item[p->item].dtype), bytes = (p->hi - p->lo) * size;
        if (p->shard != s->rank || bytes == 0) continue;
        memcpy(to, (const char *)w->item[p->item].p + p->lo * size, (size_t)bytes);
        to += bytes;
    }
}

static err prepare(struct ckpt_saver *s, const struct ckpt_save *w) {
    TRY(ckpt_path(s->dir, w->number, CKPT_PART, s->part));
    TRY(manifest_new(w->number, w->item, w->nitem, &w->pieces, w->run, &s->m));
    NEW(s->all, s->m.nshard);
    s->sum = (struct ckpt_sum){.bytes = s->m.shard[s->rank].bytes};
    memcpy(s->sum.who, s->who, sizeof s->who);
    if (s->sum.bytes <= s->room) return 0;
    mem_free(s->buf);
    s->buf = NULL;
    s->room = 0;
    NEW(s->buf, s->sum.bytes);
    s->room = s->sum.bytes;
    return 0;
}

err ckpt_saver_begin(struct ckpt_saver *s, const struct ckpt_save *what) {
    if (s->flying) return FAIL(E1, "a checkpoint is in flight");
    s->keep = what->keep;
    s->step = what->step;
    err e = prepare(s, what);
    if (e < 0) {
        land(s);
        return e;
    }
    s->flying = true;
    copy(s, what);
    go(s, write_shard);
    return 0;
}

bool ckpt_saver_busy(const struct ckpt_saver *s) {
    return s->running && !atomic_load_explicit(&s->done, memory_order_acquire);
}

void ckpt_saver_sum(struct ckpt_saver *s, struct ckpt_sum *out) {
    join(s);
    *out = s->sum;
}

void ckpt_saver_commit(struct ckpt_saver *s, const struct ckpt_sum *all) {
    join(s);
    memcpy(s->all, all, (size_t)s->m.nshard * sizeof *all);
    s->committing = true;
    go(s, commit);
}

/* Each rank removes its own part, and rank 0 all it sees: hosts may have separate folders. */
void ckpt_saver_drop(struct ckpt_saver *s) {
    const struct err_record kept = *err_last();
    char path[4096];
    join(s);
    if (!s->flying) return;
    if (shard_path(s->part, s->rank, s->m.nshard, path) >= 0) unlink(path);
    if (s->committing || file_is_remote(s->part)) (void)file_remove_dir(s->part);
    else rmdir(s->part); /* the last rank removes the folder */
    err_put(&kept);
    land(s);
}

void ckpt_saver_done(struct ckpt_saver *s) { land(s); }
