/* shared.c - see shared.h: updates of a range at a time, through a block that the thread has for itself.
 *
 *     theta, state  --copy_lines-->  block of BLOCK lines  --optim.update-->  --copy_lines-->  theta, state
 *
 * What another thread writes to the same block in between is lost, unless a stripe's lock keeps it out.  Threads begin at
 * different stripes, so they rarely meet. */
#include "store/shared.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/float_mode.h"

enum { LINE = SHARED_LINE, BLOCK = 64, WORD = sizeof(u64) };

struct stripe {
    _Alignas(64) pthread_mutex_t lock;
};

struct shared {
    struct shared_job job;
    struct shared_table *table;
    struct stripe *stripe; /* [stripes] */
    i32 npart, locks;      /* parts in which a thread walks the vector; stripes whose lock is made */
    _Alignas(64) _Atomic i64 count;
    _Alignas(64) struct arena arena;
};

/* ------------------------------------------------------------------ life ---------------------------------------------------- */

static err fill(struct shared *s) {
    const struct shared_job *j = &s->job;
    if (j->n % LINE) return FAIL(E1, "a shared vector of %lld floats is no multiple of %d", (long long)j->n, LINE);
    ARENA_NEW(&s->arena, s->table, j->ntable);
    for (i32 k = 0; k < j->ntable; k++) s->table[k] = j->table[k];
    s->job.table = s->table;
    s->npart = j->stripes > 0 ? j->stripes : imax(1, j->workers);
    ARENA_NEW(&s->arena, s->stripe, j->stripes);
    for (; s->locks < j->stripes; s->locks++)
        if (pthread_mutex_init(&s->stripe[s->locks].lock, NULL) != 0) return FAIL(E601, "no lock for stripe %d", s->locks);
    return 0;
}

err shared_new(const struct shared_job *job, struct shared **out) {
    struct shared *s;
    *out = NULL;
    NEW(s, 1);
    s->job = *job;
    const err e = fill(s);
    if (e < 0)
        shared_free(s);
    else
        *out = s;
    return e;
}

void shared_free(struct shared *s) {
    if (!s) return;
    for (i32 k = 0; k < s->locks; k++) pthread_mutex_destroy(&s->stripe[k].lock);
    arena_free(&s->arena);
    mem_free(s);
}

void shared_restart(struct shared *s, i64 count) { atomic_store(&s->count, count); }
i64 shared_count(const struct shared *s) { return atomic_load_explicit(&s->count, memory_order_relaxed); }

/* ------------------------------------------------------------------ blocks -------------------------------------------------- */

typedef f32 quad __attribute__((vector_size(16), may_alias));

/* Plain loads and stores.  volatile: no compiler may make a memcpy of it, which ThreadSanitizer would watch. */
__attribute__((no_sanitize("thread"), noinline)) static void copy_lines(i64 n, f32 *to, const f32 *from) {
    volatile quad *y = (volatile quad *)to;
    const volatile quad *x = (const volatile quad *)from;
    for (i64 i = 0; i < n * (LINE / 4); i++) y[i] = x[i];
}

/* The vectors of the optimiser, by number: theta, then its states. */
static f32 *vector(const struct shared *s, i32 k) { return k == 0 ? s->job.theta : s->job.state[k - 1]; }
static i32 vectors(const struct shared *s) { return 1 + s->job.optim->nstate; }

struct block {
    _Alignas(64) f32 v[3][BLOCK * LINE], grad[BLOCK * LINE];
    i64 line[BLOCK]; /* of the vector */
    i64 n;           /* lines in use */
};

static void compute(const struct shared *s, const struct shared_push *p, struct block *b, i64 n, const f32 *grad) {
    const i32 nstate = s->job.optim->nstate;
    s->job.optim->update(&p->hyper, n * LINE, b->v[0], grad, nstate > 0 ? b->v[1] : NULL, nstate > 1 ? b->v[2] : NULL);
}

static void update_dense(const struct shared *s, const struct shared_push *p, struct block *b, i64 lo, i64 hi) {
    for (i64 at = lo; at < hi; at += BLOCK * LINE) {
        const i64 n = lmin(BLOCK, (hi - at) / LINE);
        for (i32 k = 0; k < vectors(s); k++) copy_lines(n, b->v[k], vector(s, k) + at);
        compute(s, p, b, n, p->grad + at);
        for (i32 k = 0; k < vectors(s); k++) copy_lines(n, vector(s, k) + at, b->v[k]);
    }
}

/* Marked lines are gathered until the block is full: an update of a line by itself would cost more than the arithmetic. */
static void flush(const struct shared *s, const struct shared_push *p, struct block *b) {
    if (b->n == 0) return;
    for (i64 i = 0; i < b->n; i++) {
        const i64 at = b->line[i] * LINE;
        for (i32 k = 0; k < vectors(s); k++) copy_lines(1, b->v[k] + i * LINE, vector(s, k) + at);
        memcpy(b->grad + i * LINE, p->grad + at, sizeof(f32) * LINE);
    }
    compute(s, p, b, b->n, b->grad);
    for (i64 i = 0; i < b->n; i++)
        for (i32 k = 0; k < vectors(s); k++) copy_lines(1, vector(s, k) + b->line[i] * LINE, b->v[k] + i * LINE);
    b->n = 0;
}

static bool none_marked(const u8 *mark) {
    u64 w;
    memcpy(&w, mark, WORD);
    return w == 0;
}

static void update_marked(const struct shared *s, const struct shared_push *p, struct block *b, i64 lo, i64 hi) {
    for (i64 i = lo / LINE; i < hi / LINE;) {
        if (i + WORD <= hi / LINE && none_marked(p->mark + i)) {
            i += WORD;
            continue;
        }
        if (p->mark[i]) b->line[b->n++] = i;
        if (b->n == BLOCK) flush(s, p, b);
        i++;
    }
    flush(s, p, b);
}

/* ------------------------------------------------------------------ the vector ---------------------------------------------- */

/* The table of element `at`; *end = where it, or what lies before the next one, ends. */
static bool table_at(const struct shared *s, i64 at, i64 *end) {
    *end = s->job.n;
    for (i32 k = 0; k < s->job.ntable; k++) {
        if (at >= s->table[k].hi) continue;
        *end = at < s->table[k].lo ? s->table[k].lo : s->table[k].hi;
        return at >= s->table[k].lo;
    }
    return false;
}

static void update_part(const struct shared *s, const struct shared_push *p, struct block *b, i64 lo, i64 hi) {
    for (i64 at = lo, end; at < hi; at = end) {
        const bool marked = table_at(s, at, &end) && p->mark;
        end = lmin(end, hi);
        if (marked)
            update_marked(s, p, b, at, end);
        else
            update_dense(s, p, b, at, end);
    }
}

i64 shared_update(struct shared *s, i32 worker, const struct shared_push *p) {
    struct block b;
    struct shared_push own = *p;
    const i64 before = atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed), lines = s->job.n / LINE;
    const u64 mode = float_mode_fast();
    own.hyper.step = before + 1;
    b.n = 0;
    for (i32 i = 0; i < s->npart; i++) {
        const i32 k = (i32)(((i64)worker * s->npart / imax(1, s->job.workers) + i) % s->npart);
        const bool locks = k < s->job.stripes;
        if (locks) pthread_mutex_lock(&s->stripe[k].lock);
        update_part(s, &own, &b, lines * k / s->npart * LINE, lines * (k + 1) / s->npart * LINE);
        if (locks) pthread_mutex_unlock(&s->stripe[k].lock);
    }
    float_mode_back(mode);
    return before;
}
