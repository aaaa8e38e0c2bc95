/* hdfs_read.c - reads a file of HDFS in blocks, ahead of its readers.
 *
 *     reader    ...|###|###|   block 6 is here     wants 7, 8, 9, 10          (a place for each, the least recently used)
 *     threads                  OPEN 7 | OPEN 8 | OPEN 9 | OPEN 10             each block one request to a data node
 *
 * After each block the status of the file is compared with that at the opening, so that all blocks are of one file (E213). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hdfs.h"
#include "base/hdfs_ask.h"
#include "base/json.h"
#include "base/mem.h"

enum { BLOCK = 8 << 20, PLACES = 8, THREADS = 4, AHEAD = 4, SMALL = 4096, SMALL_READS = 8 };

enum state { PLACE_FREE, PLACE_WANTED, PLACE_COMING, PLACE_HERE, PLACE_FAILED };

struct place {
    enum state state;
    i64 block, used; /* used: time of the last use, counted in uses */
    i32 readers;     /* copy from it just now */
    char *p;
    struct err_record why;
};

struct hdfs_in {
    char *path;
    struct hdfs_status was; /* at the opening */
    i64 position;           /* of hdfs_read_some */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct place place[PLACES];
    i64 uses, last;         /* last: block that was read last */
    i32 small;              /* short reads left that fetch no block */
    pthread_t thread[THREADS];
    i32 nthread;
    bool over;
    _Atomic bool stop;
};

/* ------------------------------------------------------------------ one range ----------------------------------------------- */

struct range {
    char *to;
    i64 n, got;
};

static err receive(void *self, const void *bytes, size_t n) {
    struct range *r = self;
    if ((i64)n > r->n - r->got) return FAIL(E706, "HDFS sends more bytes than were asked for");
    memcpy(r->to + r->got, bytes, n);
    r->got += (i64)n;
    return 0;
}

static err has_changed(const struct hdfs_in *f, const struct hdfs_status *now) {
    return FAIL_AT(E213, f->path, "wait until it is written, then run again",
                   "the file had %lld bytes when it was opened and has %lld now, or was written anew in between",
                   (long long)f->was.bytes, (long long)now->bytes);
}

static err check_same(const struct hdfs_in *f, struct hdfs *h) {
    struct hdfs_status now;
    bool absent;
    TRY(hdfs_status_of(h, &absent, &now));
    if (absent) return FAIL_AT(E213, f->path, "put it back, then run again", "the file is gone since it was opened");
    return now.bytes == f->was.bytes && now.time == f->was.time && now.id == f->was.id ? 0 : has_changed(f, &now);
}

/* What a failed attempt means: a file that has changed since the opening, or an answer that ended early. */
static err explain(const struct hdfs_in *f, struct hdfs *h, err e, const struct range *r) {
    const struct err_record why = *err_last();
    if (e < 0 && (h->passes || e != -E701)) return e;
    TRY(check_same(f, h));
    h->passes = e >= 0;
    if (e >= 0)
        return FAIL_AT(E706, f->path, "is the data node well? run again", "HDFS sends only %lld of %lld bytes", (long long)r->got,
                       (long long)r->n);
    err_put(&why);
    return e;
}

/* Reads a range; an answer that ends early is continued where it ended. */
static err fetch(const struct hdfs_in *f, struct hdfs *h, i64 offset, struct range *r) {
    char query[96];
    struct hdfs_tries tries = {0};
    while (r->got < r->n) {
        const i64 before = r->got;
        str_print(query, sizeof query, "op=OPEN&offset=%lld&length=%lld", (long long)(offset + before),
                  (long long)(r->n - before));
        err e = hdfs_once(h, &(struct hdfs_ask){.query = query, .data = true, .take = receive, .self = r}, NULL);
        if (r->got == r->n) break;
        if (r->got > before) tries = (struct hdfs_tries){0};
        e = explain(f, h, e, r);
        if (!hdfs_again(h, &tries)) return e;
    }
    return check_same(f, h);
}

/* ------------------------------------------------------------------ the threads --------------------------------------------- */

static struct place *find_wanted(struct hdfs_in *f) {
    struct place *first = NULL;
    for (i32 i = 0; i < PLACES; i++) {
        struct place *p = &f->place[i];
        if (p->state == PLACE_WANTED && (!first || p->block < first->block)) first = p;
    }
    return first;
}

static err fill(struct hdfs_in *f, struct hdfs *h, struct place *p) {
    const i64 offset = p->block * BLOCK;
    struct range r = {.n = lmin(BLOCK, f->was.bytes - offset)};
    if (!p->p && !(p->p = mem_alloc(BLOCK))) return -E601;
    r.to = p->p;
    return fetch(f, h, offset, &r);
}

static void *work(void *self) {
    struct hdfs_in *f = self;
    struct hdfs h;
    const err opened = hdfs_begin(f->path, &h);
    h.stop = &f->stop;
    pthread_mutex_lock(&f->lock);
    while (!f->over) {
        struct place *p = find_wanted(f);
        if (!p) {
            pthread_cond_wait(&f->changed, &f->lock);
            continue;
        }
        p->state = PLACE_COMING;
        pthread_mutex_unlock(&f->lock);
        const err e = opened < 0 ? opened : fill(f, &h, p);
        pthread_mutex_lock(&f->lock);
        if (e < 0) p->why = *err_last();
        p->state = e < 0 ? PLACE_FAILED : PLACE_HERE;
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    hdfs_end(&h);
    return NULL;
}

/* ------------------------------------------------------------------ the readers --------------------------------------------- */

static struct place *find_block(struct hdfs_in *f, i64 block) {
    for (i32 i = 0; i < PLACES; i++)
        if (f->place[i].state != PLACE_FREE && f->place[i].block == block) return &f->place[i];
    return NULL;
}

/* The place used longest ago that nobody needs; NULL = all are needed. */
static struct place *find_place(struct hdfs_in *f) {
    struct place *oldest = NULL;
    for (i32 i = 0; i < PLACES; i++) {
        struct place *p = &f->place[i];
        const bool idle = p->readers == 0 && p->state != PLACE_WANTED && p->state != PLACE_COMING;
        if (idle && (!oldest || p->used < oldest->used)) oldest = p;
    }
    return oldest;
}

static struct place *want(struct hdfs_in *f, i64 block) {
    struct place *p = find_place(f);
    if (!p) return NULL;
    p->state = PLACE_WANTED;
    p->block = block;
    p->used = ++f->uses;
    p->why.code = 0;
    return p;
}

static void start_thread(struct hdfs_in *f) {
    if (f->nthread < THREADS && pthread_create(&f->thread[f->nthread], NULL, work, f) == 0) f->nthread++;
}

/* Asks for the blocks after `block` where the file is read in order. */
static void read_ahead(struct hdfs_in *f, i64 block) {
    const i64 blocks = (f->was.bytes + BLOCK - 1) / BLOCK;
    const bool in_order = block == f->last || block == f->last + 1;
    bool any = false;
    f->last = block;
    for (i64 b = block + 1; in_order && b < lmin(blocks, block + 1 + AHEAD); b++)
        if (!find_block(f, b) && want(f, b)) {
            any = true;
            start_thread(f);
        }
    if (any) pthread_cond_broadcast(&f->changed);
}

/* Waits until the block is here, and holds it. */
static err hold(struct hdfs_in *f, i64 block, struct place **out) {
    for (;;) {
        struct place *p = find_block(f, block);
        if (!p && (p = want(f, block)) != NULL) {
            start_thread(f);
            if (f->nthread == 0) {
                p->state = PLACE_FREE;
                return FAIL(E601, "no thread can be started to read from HDFS");
            }
            pthread_cond_broadcast(&f->changed);
        }
        if (p && p->state == PLACE_FAILED) {
            const struct err_record why = p->why;
            p->state = PLACE_FREE; /* the next reader tries again */
            err_put(&why);
            return -why.code;
        }
        if (p && p->state == PLACE_HERE) {
            p->readers++;
            p->used = ++f->uses;
            *out = p;
            return 0;
        }
        if (p) read_ahead(f, block);
        pthread_cond_wait(&f->changed, &f->lock);
    }
}

static err read_block(struct hdfs_in *f, i64 block, i64 from, void *to, i64 n) {
    struct place *p = NULL;
    pthread_mutex_lock(&f->lock);
    const err e = hold(f, block, &p);
    if (e >= 0) read_ahead(f, block);
    pthread_mutex_unlock(&f->lock);
    TRY(e);
    memcpy(to, p->p + from, (size_t)n);
    pthread_mutex_lock(&f->lock);
    if (--p->readers == 0) pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return 0;
}

/* The first bytes of a file tell its format: they do not need a block. */
static bool is_small(struct hdfs_in *f, i64 block, i64 n) {
    pthread_mutex_lock(&f->lock);
    const bool small = n <= SMALL && f->small > 0 && !find_block(f, block);
    if (small) f->small--;
    pthread_mutex_unlock(&f->lock);
    return small;
}

static err read_small(const struct hdfs_in *f, i64 offset, void *to, i64 n) {
    struct hdfs h;
    struct range r = {.to = to, .n = n};
    TRY(hdfs_begin(f->path, &h));
    const err e = fetch(f, &h, offset, &r);
    hdfs_end(&h);
    return e;
}

err hdfs_read_at(struct hdfs_in *f, i64 offset, void *to, i64 n) {
    if (n <= 0) return 0;
    if (offset + n > f->was.bytes) return has_changed(f, &f->was);
    if (is_small(f, offset / BLOCK, n)) return read_small(f, offset, to, n);
    for (char *p = to; n > 0;) {
        const i64 block = offset / BLOCK, from = offset - block * BLOCK, part = lmin(n, BLOCK - from);
        TRY(read_block(f, block, from, p, part));
        p += part;
        offset += part;
        n -= part;
    }
    return 0;
}

err hdfs_read_some(struct hdfs_in *f, void *to, i64 n, i64 *got) {
    *got = lmin(n, f->was.bytes - f->position);
    TRY(hdfs_read_at(f, f->position, to, *got));
    f->position += *got;
    return 0;
}

/* ------------------------------------------------------------------ opening ------------------------------------------------- */

/* E213 for a file that a process still writes: its length is not known. Not every server can tell. */
static err check_closed(const char *path) {
    struct hdfs h;
    struct str text = {0};
    struct js *root = NULL;
    bool being_written = false;
    TRY(hdfs_begin(path, &h));
    const struct err_record before = *err_last();
    if (hdfs_once(&h, &(struct hdfs_ask){.query = "op=GET_BLOCK_LOCATIONS&offset=0&length=1"}, &text) >= 0 &&
        js_parse(str_text(&text), text.len, "the answer", &root) >= 0)
        being_written = js_bool(js_get(js_get(root, "LocatedBlocks"), "isUnderConstruction"), false);
    hdfs_end(&h);
    js_free(root);
    str_free(&text);
    err_put(&before);
    return being_written ? FAIL_AT(E213, path, "wait until it is written, or: hdfs debug recoverLease -path PATH",
                                   "the file is being written, or its writer died") : 0;
}

static err look(struct hdfs_in *f) {
    TRY(hdfs_stat(f->path, &f->was));
    if (f->was.folder) return FAIL_AT(E202, f->path, "name a file in it", "this is a directory, not a file");
    return check_closed(f->path);
}

err hdfs_open(const char *path, struct hdfs_in **out, i64 *bytes) {
    struct hdfs_in *f;
    *out = NULL;
    NEW(f, 1);
    f->last = -1;
    f->small = SMALL_READS;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    err e = (f->path = mem_strdup(path)) ? look(f) : -E601;
    if (e < 0) {
        hdfs_close(f);
        return e;
    }
    *out = f;
    *bytes = f->was.bytes;
    return 0;
}

void hdfs_close(struct hdfs_in *f) {
    if (!f) return;
    atomic_store(&f->stop, true);
    pthread_mutex_lock(&f->lock);
    f->over = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    for (i32 i = 0; i < f->nthread; i++) pthread_join(f->thread[i], NULL);
    for (i32 i = 0; i < PLACES; i++) mem_free(f->place[i].p);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    mem_free(f->path);
    mem_free(f);
}
