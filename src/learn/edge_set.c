/* edge_set.c - reads edge lists with several threads; see edge_set.h.
 *
 *     file --load--> text --cut at line ends--> chunks --count--> places of edges --parse--> from, to, weight --number--> nodes
 *
 * Files whose nodes are integers below 2^32 are read first without any table; those with words once more. */
#include "learn/edge_set.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/zfile.h"
#include "comm/comm.h"
#include "data/first_bytes.h"
#include "data/mend.h"
#include "learn/edge_lines.h"

enum { CHUNK = 2 << 20, BEHIND = 64, THREADS_MOST = 64 };

/* ------------------------------------------------------------------ threads ------------------------------------------------- */

struct reading {
    struct edge_text text;
    struct edge_chunk *chunk;
    i32 nchunk;
    err *failed;              /* [nchunk] */
    struct err_record *why;   /* [nchunk] */
    struct pool *pool;        /* NULL = one thread */
    _Atomic i32 next;
    err (*work)(struct reading *r, i32 chunk);
    struct edge_set *out;
    struct file_in *file;     /* to load from, to `bytes` */
    char *bytes;
    i64 size;
    u32 **code;               /* [nchunk] numbers of the chunk's words in all */
};

static void on_worker(void *self, i32 worker) {
    struct reading *r = self;
    (void)worker;
    for (i32 k; (k = atomic_fetch_add(&r->next, 1)) < r->nchunk;) {
        r->failed[k] = r->work(r, k);
        if (r->failed[k] < 0) r->why[k] = *err_last();
    }
}

/* Runs `work` for every chunk; the first chunk in the file that failed gives the error. */
static err each(struct reading *r, err (*work)(struct reading *r, i32 chunk)) {
    atomic_store(&r->next, 0);
    r->work = work;
    if (r->pool) pool_run(r->pool, on_worker, r);
    else on_worker(r, 0);
    for (i32 k = 0; k < r->nchunk; k++) {
        if (r->failed[k] >= 0) continue;
        err_put(&r->why[k]);
        return r->failed[k];
    }
    return 0;
}

static err make_chunks(struct reading *r, i64 bytes) {
    r->nchunk = (i32)lmin((bytes + CHUNK - 1) / CHUNK, INT32_MAX);
    NEW(r->chunk, r->nchunk);
    NEW(r->failed, r->nchunk);
    NEW(r->why, r->nchunk);
    NEW(r->code, r->nchunk);
    return 0;
}

static void drop_words(struct reading *r) {
    for (i32 k = 0; r->chunk && k < r->nchunk; k++) vocab_free(&r->chunk[k].words);
    for (i32 k = 0; r->code && k < r->nchunk; k++) {
        mem_free(r->code[k]);
        r->code[k] = NULL;
    }
}

static void drop_chunks(struct reading *r) {
    drop_words(r);
    mem_free(r->chunk);
    mem_free(r->failed);
    mem_free(r->why);
    mem_free(r->code);
    r->chunk = NULL;
    r->failed = NULL;
    r->why = NULL;
    r->code = NULL;
}

/* ------------------------------------------------------------------ the text ------------------------------------------------ */

static err load_chunk(struct reading *r, i32 k) {
    const i64 from = (i64)k * CHUNK;
    return file_read_at(r->file, from, r->bytes + from, lmin(CHUNK, r->size - from));
}

/* The whole file, with a line feed and zeros behind it. */
static err load_plain(struct reading *r, struct file_in *f) {
    NEW(r->bytes, f->size + BEHIND);
    r->size = f->size;
    r->file = f;
    TRY(make_chunks(r, f->size));
    const err e = each(r, load_chunk);
    drop_chunks(r);
    return e;
}

static err load(struct reading *r, const char *path) {
    struct file_in f;
    u8 head[4] = {0};
    TRY(file_open(path, &f));
    const i64 seen = lmax(0, lmin(f.size, 4));
    err e = file_read_at(&f, 0, head, seen);
    const bool plain = f.size >= 0 && zfile_kind(head, seen) == Z_PLAIN;
    if (e >= 0 && plain) e = load_plain(r, &f);
    file_close(&f);
    if (e < 0 || plain) return e;
    TRY(zfile_load(path, &r->bytes, &r->size)); /* compressed, or a pipe */
    char *more = mem_realloc(r->bytes, (size_t)(r->size + BEHIND));
    if (!more) return -E601;
    r->bytes = more;
    memset(more + r->size, 0, BEHIND);
    return 0;
}

/* Chunks of whole lines from `first` on. */
static err cut(struct reading *r, const char *first, i64 lines) {
    const char *const end = r->bytes + r->size + (r->size > 0 && r->bytes[r->size - 1] != '\n');
    r->bytes[r->size] = '\n';
    TRY(make_chunks(r, end - first));
    for (i32 k = 0; k < r->nchunk; k++) {
        struct edge_chunk *c = &r->chunk[k];
        c->p = k ? r->chunk[k - 1].end : first;
        const char *to = first + (i64)(k + 1) * CHUNK;
        if (to < c->p) to = c->p;
        const char *lf = k + 1 < r->nchunk && to < end ? memchr(to, '\n', (size_t)(end - to)) : NULL;
        c->end = lf ? lf + 1 : end;
    }
    if (r->nchunk) r->chunk[0].line0 = lines;
    return 0;
}

static err count(struct reading *r, i32 k) {
    edge_chunk_count(&r->chunk[k]);
    return 0;
}

static err parse(struct reading *r, i32 k) { return edge_chunk_parse(&r->text, &r->chunk[k]); }

/* Where the lines and edges of each chunk begin. */
static err make_room(struct reading *r) {
    struct edge_set *s = r->out;
    TRY(each(r, count));
    for (i32 k = 0; k < r->nchunk; k++) {
        struct edge_chunk *c = &r->chunk[k];
        if (k) c->line0 = c[-1].line0 + c[-1].lines;
        if (k) c->edge0 = c[-1].edge0 + c[-1].edges;
        s->set.nrow = c->edge0 + c->edges;
    }
    if (s->set.nrow == 0) return FAIL_AT(E201, r->text.name, "a list of edges, one a line: FROM TO", "the file holds no edges");
    NEW(s->from, s->set.nrow);
    NEW(s->to, s->set.nrow);
    if (r->text.columns == 3) NEW(s->weight, s->set.nrow);
    s->set.ncol = r->text.columns;
    r->text.from = s->from;
    r->text.to = s->to;
    r->text.weight = s->weight;
    return 0;
}

/* ------------------------------------------------------------------ numbers of nodes ---------------------------------------- */

static err too_many(const struct reading *r) {
    return FAIL_AT(E601, r->text.name, NULL, "more than %d nodes are not supported", INT32_MAX - 1);
}

/* In the order of first appearance: table [most + 1] of integers. */
static err number_integers(struct edge_set *s, u32 most) {
    u32 *number, n = 0;
    NEW(number, (i64)most + 1);
    NEW(s->id, lmin((i64)most + 1, 2 * s->set.nrow));
    for (i64 e = 0; e < s->set.nrow; e++) {
        u32 *const a = &number[s->from[e]], *const b = &number[s->to[e]];
        if (*a == 0) s->id[n] = s->from[e], *a = ++n;
        if (*b == 0) s->id[n] = s->to[e], *b = ++n;
        s->from[e] = *a - 1;
        s->to[e] = *b - 1;
    }
    mem_free(number);
    s->nnode = (i32)n;
    return 0;
}

static err renumber(struct reading *r, i32 k) {
    const struct edge_chunk *c = &r->chunk[k];
    for (i64 e = c->edge0; e < c->edge0 + c->edges; e++) {
        r->out->from[e] = r->code[k][r->out->from[e]];
        r->out->to[e] = r->code[k][r->out->to[e]];
    }
    return 0;
}

/* The words of all chunks in their order, which is that of first appearance in the file. */
static err merge_words(struct reading *r) {
    struct vocab *all = &r->out->name;
    for (i32 k = 0; k < r->nchunk; k++) {
        struct vocab *w = &r->chunk[k].words;
        NEW(r->code[k], w->n + 1);
        for (i32 i = 0; i < w->n; i++) {
            const i64 next = i + 1 < w->n ? w->at[i + 1] : w->fill;
            i32 code;
            if (all->n > INT32_MAX / 2 - 2) return too_many(r);
            TRY(vocab_code(all, vocab_word(w, i), next - w->at[i] - 1, &code));
            r->code[k][i] = (u32)code;
        }
        vocab_free(w);
    }
    r->out->nnode = all->n;
    return each(r, renumber);
}

static err read_integers(struct reading *r, bool *done) {
    u32 most = 0;
    *done = true;
    r->text.names = EDGES_NUMBERS;
    TRY(each(r, parse));
    for (i32 k = 0; k < r->nchunk; k++) {
        *done = *done && !r->chunk[k].other;
        most = r->chunk[k].most > most ? r->chunk[k].most : most;
    }
    *done = *done && most < INT32_MAX - 1 && most < 16 * r->out->set.nrow + (1 << 20); /* else the table would be mostly empty */
    return *done ? number_integers(r->out, most) : 0;
}

static err read_nodes(struct reading *r) {
    bool done = false;
    if (r->text.list) {
        r->text.names = EDGES_LISTED;
        r->out->nnode = r->text.list->n;
        r->out->listed = true;
        return each(r, parse);
    }
    TRY(read_integers(r, &done));
    if (done) return 0;
    r->text.names = EDGES_WORDS;
    TRY(each(r, parse));
    return merge_words(r);
}

/* ------------------------------------------------------------------ the file ------------------------------------------------ */

static void summarise(struct edge_set *s) {
    const char *slash = strrchr(s->set.path, '/');
    snprintf(s->set.summary, sizeof s->set.summary, "read %.200s: %lld edge%s between %d node%s%s",
             slash ? slash + 1 : s->set.path, (long long)s->set.nrow, s->set.nrow == 1 ? "" : "s", s->nnode,
             s->nnode == 1 ? "" : "s", s->weight ? ", with weights" : "");
}

static err read_text(struct reading *r) {
    const char *first = r->bytes;
    i64 lines;
    TRY(first_bytes_check(r->text.name, r->bytes, r->size, "a list of edges", "write the data as text"));
    r->bytes[r->size] = '\n';
    r->text.columns = edge_columns(&first, r->bytes + r->size, &lines);
    if (r->text.columns != 3) r->text.columns = 2; /* the parser refuses lines with more, or with one word */
    TRY(cut(r, first, lines));
    TRY(make_room(r));
    TRY(read_nodes(r));
    summarise(r->out);
    return 0;
}

/* The first word of each line of a node list, in s->name. */
static err read_list(const char *path, struct edge_set *s) {
    struct reading r = {.text.name = path};
    err e = load(&r, path);
    if (e >= 0) e = first_bytes_check(path, r.bytes, r.size, "a list of nodes", "write the data as text");
    const char *p = r.bytes, *const end = e < 0 ? p : p + r.size;
    if (e >= 0) r.bytes[r.size] = '\n';
    for (i64 n, line = 1; e >= 0 && p < end; line++) {
        i32 code, before = s->name.n;
        const char *word = edge_word(&p, &n);
        if (word && *word != '#' && *word != '%') e = vocab_code(&s->name, word, n, &code);
        if (e >= 0 && word && *word != '#' && *word != '%' && s->name.n == before) {
            char where[256], fix[2 * MEND_PATH + 64], from[MEND_PATH], to[MEND_PATH];
            snprintf(where, sizeof where, "%.200s:%lld", path, (long long)line);
            snprintf(fix, sizeof fix, "awk '!seen[$1]++' %s > %s   (each node once)", mend_from(path, from),
                     mend_to(path, "once", to));
            e = FAIL_AT(E103, where, fix, "the node \"%.*s\" stands twice in the node list", (int)lmin(n, 80), word);
        }
        const char *lf = memchr(p, '\n', (size_t)(end + 1 - p));
        p = lf ? lf + 1 : end;
    }
    if (e >= 0 && s->name.n == 0) e = FAIL_AT(E201, path, "no --node-list", "the node list holds no node");
    mem_free(r.bytes);
    return e;
}

static err finish(struct reading *r, err e, struct dataset **out) {
    drop_chunks(r);
    pool_free(r->pool);
    mem_free(r->bytes);
    if (e < 0) dataset_free(&r->out->set);
    else *out = &r->out->set;
    return e;
}

static err begin(struct reading *r, const char *name, i32 threads) {
    const char *slash = strrchr(name, '/');
    *r = (struct reading){.text.name = strlen(name) > 120 && slash ? slash + 1 : name};
    TRY(dataset_new(&data_edges, name, sizeof *r->out, &r->out));
    threads = imin(imax(1, threads), THREADS_MOST);
    const err e = threads > 1 ? pool_new(threads, &r->pool) : 0;
    if (e < 0) dataset_free(&r->out->set);
    return e;
}

err edge_set_read(const char *path, const char *node_list, i32 threads, struct dataset **out) {
    struct reading r;
    *out = NULL;
    TRY(begin(&r, path, threads));
    err e = node_list && *node_list ? read_list(node_list, r.out) : 0;
    if (e >= 0 && node_list && *node_list) {
        r.text.list = &r.out->name;
        r.text.list_name = node_list;
    }
    if (e >= 0) e = load(&r, path);
    if (e >= 0) e = read_text(&r);
    return finish(&r, e, out);
}

/* ------------------------------------------------------------------ data kind ----------------------------------------------- */

const char *edge_set_name(const struct edge_set *s, u32 node, char room[16]) {
    if (!s->id) return vocab_word(&s->name, (i32)node);
    snprintf(room, 16, "%u", s->id[node]);
    return room;
}

static void free_set(struct dataset *d) {
    struct edge_set *s = edge_set_of(d);
    mem_free(s->from);
    mem_free(s->to);
    mem_free(s->weight);
    mem_free(s->id);
    vocab_free(&s->name);
    mem_free(s);
}

static u64 mix(u64 h, const void *data, i64 bytes) {
    const u8 *p = data;
    u64 w = 0;
    for (; bytes > 0; bytes -= 8, p += 8) {
        memcpy(&w, p, (size_t)lmin(bytes, 8));
        h = (h ^ w) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

static u64 hash(const struct dataset *d) {
    const struct edge_set *s = edge_set_of(d);
    u64 h = mix(COMM_HASH ^ (u64)s->nnode, s->from, d->nrow * (i64)sizeof *s->from);
    h = mix(h, s->to, d->nrow * (i64)sizeof *s->to);
    if (s->weight) h = mix(h, s->weight, d->nrow * (i64)sizeof *s->weight);
    if (s->id) h = mix(h, s->id, s->nnode * (i64)sizeof *s->id);
    return mix(h, s->name.bytes, s->name.fill);
}

const struct data_kind data_edges = {.name = "edges", .free = free_set, .hash = hash};
