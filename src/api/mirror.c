/* mirror.c - see mirror.h: copies to HDFS. */
#include "api/mirror.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/checkpoints.h"
#include "base/file.h"
#include "base/hdfs.h"
#include "ckpt/checkpoint.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 256, KEEP = 2 };

struct mirror {
    char *from, *to;       /* run folder here and in HDFS */
    struct events *events;
    i64 number;            /* checkpoint copied last; -1 = none */
    bool fresh;            /* a new run: what an earlier one has left in HDFS is removed first */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool wanted, ended, over;
    struct err_record why; /* of the last copy; code 0 = done */
};

/* ------------------------------------------------------------------ one copy ------------------------------------------------ */

static err path_in(const char *folder, const char *name, char out[PATH_BYTES]) {
    const i32 n = snprintf(out, PATH_BYTES, "%s/%s", folder, name);
    return n < PATH_BYTES ? 0 : FAIL(E702, "the path of the run folder is too long: %s", folder);
}

static err send(const char *from, const char *to) {
    struct file_map m;
    TRY(file_map(from, &m));
    const err e = hdfs_put(to, m.p, m.size);
    file_unmap(&m);
    return e;
}

static err send_file(const struct mirror *m, const char *name) {
    char from[PATH_BYTES], to[PATH_BYTES];
    TRY(path_in(m->from, name, from));
    TRY(path_in(m->to, name, to));
    return file_exists(from) ? send(from, to) : 0;
}

static err send_files(const struct mirror *m, bool ended) {
    static const char *const name[] = {"config.json", "data.json", "run.json", "metrics.jsonl", "plan.txt", "report.html"};
    enum { AT_END = 4 };
    for (size_t i = 0; i < (ended ? COUNT(name) : AT_END); i++) TRY(send_file(m, name[i]));
    return 0;
}

/* The files of a checkpoint, mapped: training may remove it while it is sent. */
struct members {
    const char *folder;
    struct member {
        char name[NAME_BYTES];
        struct file_map map;
    } *p;
    i64 n, cap;
};

static err hold(void *self, const char *name) {
    struct members *h = self;
    char path[PATH_BYTES];
    TRY(path_in(h->folder, name, path));
    GROW(h->p, h->n + 1, h->cap);
    struct member *m = &h->p[h->n];
    snprintf(m->name, sizeof m->name, "%s", name);
    TRY(file_map(path, &m->map));
    h->n++;
    return 0;
}

static void release(struct members *h) {
    for (i64 i = 0; i < h->n; i++) file_unmap(&h->p[i].map);
    mem_free(h->p);
}

static err send_members(const struct members *h, const char *to) {
    char path[PATH_BYTES];
    for (i64 i = 0; i < h->n; i++) {
        TRY(path_in(to, h->p[i].name, path));
        TRY(hdfs_put(path, h->p[i].map.p, h->p[i].map.size));
    }
    return 0;
}

static err send_checkpoint(const struct mirror *m, const struct members *h, i64 number) {
    char dir[PATH_BYTES], part[PATH_BYTES], whole[PATH_BYTES];
    TRY(path_in(m->to, "checkpoints", dir));
    TRY(ckpt_path(dir, number, CKPT_PART, part));
    TRY(ckpt_path(dir, number, CKPT_WHOLE, whole));
    TRY(hdfs_remove(part));
    TRY(hdfs_make_dir(part));
    TRY(send_members(h, part));
    TRY(hdfs_remove(whole));
    return hdfs_rename(part, whole);
}

/* Removes a member of the remote folder of checkpoints that is none of the newest two up to `number`. */
struct trim {
    const char *dir;
    i64 keep[KEEP]; /* largest first; -1 = none */
};

static err note_newest(void *self, const char *name, const struct hdfs_status *s) {
    struct trim *t = self;
    i64 n = s->folder ? ckpt_number_of(name) : -1;
    for (i32 i = 0; i < KEEP; i++) {
        const i64 other = t->keep[i];
        if (n <= other) continue;
        t->keep[i] = n;
        n = other;
    }
    return 0;
}

static err remove_old(void *self, const char *name, const struct hdfs_status *s) {
    const struct trim *t = self;
    char path[PATH_BYTES];
    const i64 n = s->folder ? ckpt_number_of(name) : -1;
    for (i32 i = 0; i < KEEP; i++)
        if (n >= 0 && n == t->keep[i]) return 0;
    TRY(path_in(t->dir, name, path));
    return hdfs_remove(path);
}

static err trim(const struct mirror *m) {
    char dir[PATH_BYTES];
    struct trim t = {.dir = dir, .keep = {-1, -1}};
    TRY(path_in(m->to, "checkpoints", dir));
    TRY(hdfs_list(dir, note_newest, &t));
    return hdfs_list(dir, remove_old, &t);
}

static err remove_checkpoints(const struct mirror *m) {
    char dir[PATH_BYTES];
    TRY(path_in(m->to, "checkpoints", dir));
    return hdfs_remove(dir);
}

/* Holds the newest checkpoint. One that training removes at this moment has a successor. */
static err hold_newest(const struct mirror *m, struct members *h, i64 *number) {
    enum { TRIES = 10 };
    char dir[PATH_BYTES], path[PATH_BYTES];
    err e = 0;
    TRY(path_in(m->from, "checkpoints", dir));
    for (i32 k = 0; k < TRIES; k++) {
        *h = (struct members){.folder = path};
        *number = -1;
        if (ckpt_find(dir, 0, path, number) < 0 || *number == m->number) {
            err_clear();
            return 0;
        }
        e = ckpt_files(path, hold, h);
        h->folder = NULL;
        if (e >= 0) return 0;
        release(h);
        *h = (struct members){0};
    }
    return e;
}

static err copy_newest(struct mirror *m) {
    struct members h = {0};
    i64 number;
    TRY(hold_newest(m, &h, &number));
    err e = h.n > 0 ? send_checkpoint(m, &h, number) : 0;
    if (h.n > 0 && e >= 0) {
        m->number = number;
        e = trim(m);
    }
    release(&h);
    return e;
}

static err copy(struct mirror *m, bool ended) {
    if (m->fresh && !checkpoints_apart()) TRY(remove_checkpoints(m));
    m->fresh = false;
    TRY(send_files(m, ended));
    if (checkpoints_apart()) return 0; /* ranks write them there */
    return ended ? remove_checkpoints(m) : copy_newest(m);
}

/* ------------------------------------------------------------------ the thread ---------------------------------------------- */

static void *work(void *self) {
    struct mirror *m = self;
    pthread_mutex_lock(&m->lock);
    for (;;) {
        while (!m->wanted && !m->over) pthread_cond_wait(&m->changed, &m->lock);
        if (!m->wanted) break;
        const bool ended = m->ended;
        m->wanted = false;
        pthread_mutex_unlock(&m->lock);
        const err e = copy(m, ended);
        pthread_mutex_lock(&m->lock);
        m->why.code = 0;
        if (e < 0) m->why = *err_last();
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

static void want(struct mirror *m, bool ended, bool over, struct err_record *why) {
    pthread_mutex_lock(&m->lock);
    *why = m->why;
    m->why.code = 0;
    m->ended = m->ended || ended;
    m->wanted = m->wanted || !over;
    m->over = over;
    pthread_cond_signal(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

static void warn(const struct mirror *m, const struct err_record *why) {
    if (why->code)
        event_note(m->events, EVENT_WARNING, "the run folder is not copied to %s: E%d, %s%s%.500s", m->to, why->code, why->where,
                   why->where[0] ? ": " : "", why->text);
}

/* A checkpoint was saved: the saver names the folder of checkpoints. */
static void on_event(void *self, const struct event *e) {
    static const char folder[] = "/checkpoints";
    struct mirror *m = self;
    struct err_record why;
    const size_t n = e->kind == EVENT_SAVED && e->text ? strlen(e->text) : 0;
    if (n < sizeof folder || strcmp(e->text + n + 1 - sizeof folder, folder) != 0) return;
    want(m, false, false, &why);
    warn(m, &why);
}

void mirror_folder(const char *remote, const char *ending, char *out, size_t size) {
    const char *runs = getenv("STRETTO_RUNS"), *slash = strrchr(remote, '/');
    const bool named = runs && *runs;
    snprintf(out, size, "%.2000s%s%.255s%s", named ? runs : "", named ? "/" : "", slash ? slash + 1 : remote, ending);
}

static void free_mirror(struct mirror *m) {
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    mem_free(m->from);
    mem_free(m->to);
    mem_free(m);
}

static err start(struct mirror *m, const struct stretto_trainer *t) {
    char to[PATH_BYTES];
    struct err_record why;
    if (snprintf(to, sizeof to, "%s.run", t->model_path) >= PATH_BYTES) return FAIL(E702, "the name of the model is too long");
    m->from = mem_strdup(t->run_dir);
    m->to = mem_strdup(to);
    if (!m->from || !m->to) return -E601;
    if (pthread_create(&m->thread, NULL, work, m) != 0) return FAIL(E601, "no thread can be started for the copies to HDFS");
    want(m, false, false, &why);
    return 0;
}

err mirror_open(struct stretto_trainer *t) {
    struct mirror *m;
    if (t->mirror || !file_is_remote(t->model_path)) return 0;
    NEW(m, 1);
    m->events = &t->events;
    m->number = -1;
    m->fresh = !t->resume;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    const err e = start(m, t);
    if (e < 0) {
        free_mirror(m);
        return e;
    }
    t->mirror = m;
    events_add(&t->events, (struct sink){on_event, m});
    return 0;
}

void mirror_end(struct stretto_trainer *t) {
    struct err_record why;
    if (t->mirror) want(t->mirror, true, false, &why);
}

void mirror_close(struct stretto_trainer *t) {
    struct err_record why;
    struct mirror *m = t->mirror;
    if (!m) return;
    want(m, false, true, &why);
    pthread_join(m->thread, NULL);
    warn(m, &m->why);
    for (i32 i = 0; i < t->events.n; i++)
        if (t->events.sink[i].self == m) t->events.sink[i] = t->events.sink[--t->events.n];
    free_mirror(m);
    t->mirror = NULL;
}
