/* exchange.c - derives messages: follows the tasks in order and records the last writer and the holders of every range, of rows
 * or elements and of steps.
 *
 *     grad.0   [ rank 0, has: 0 1 |      rank 1, has: 1      |  rank 0, has: 0 ]      a task of rank 2 that reads it all
 *                                                                                    makes three messages, and then has it
 */
#include "plan/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { EVERYONE = -1 };

struct piece_of {
    i64 lo, hi;
    i32 t0, t1;
    i32 writer; /* task, EVERYONE = all ranks had it before the step */
};

/* The uses of each buffer, in order. */
struct uses_of {
    u32 *first; /* [nbuf + 1] in `use` */
    u32 *use;   /* [nuse] */
    u32 *task;  /* [nuse] of a use */
};

static err sort_uses(const struct plan *p, struct arena *a, struct uses_of *out) {
    u32 *at;
    ARENA_NEW(a, out->first, p->nbuf + 2);
    ARENA_NEW(a, out->use, p->nuse + 1);
    ARENA_NEW(a, out->task, p->nuse + 1);
    ARENA_NEW(a, at, p->nbuf + 1);
    for (u32 k = 0; k < p->nuse; k++) out->first[p->use[k].buf + 1]++;
    for (u32 b = 0; b < p->nbuf; b++) out->first[b + 1] += out->first[b];
    for (u32 b = 0; b < p->nbuf; b++) at[b] = out->first[b];
    for (u32 i = 0; i < p->ntask; i++)
        for (u32 k = p->task[i].use0; k < p->task[i].use0 + p->task[i].nuse; k++) {
            out->task[k] = i;
            out->use[at[p->use[k].buf]++] = k;
        }
    return 0;
}

struct ledger {
    const struct plan *p;
    struct arena own;
    struct uses_of of; /* in `own` */
    struct piece_of *piece; /* pieces of the current buffer, without gaps; in order where it has no steps */
    u64 *has;               /* [n][words] ranks that have a piece */
    i32 n, words;           /* words: of a set of ranks */
    struct plan_message *out;
    u32 nout;
    i64 cap, caphas, capout; /* of piece, in words of has, of out */
    u32 buf;
    bool by_device; /* tasks that run everywhere count as those of their device */
    u64 *runs;      /* [ntask][words] ranks that run a task; NULL with by_device */
};

static i32 rank_of(const struct plan *p, i32 task) { return p->place[p->task[task].device].rank; }

static u64 *has_of(const struct ledger *l, i32 piece) { return l->has + (size_t)piece * (size_t)l->words; }

/* Inserts piece `at`, which the ranks have that have the one before it: it was a part of that. */
static err insert(struct ledger *l, i32 at, struct piece_of v) {
    const size_t set = (size_t)l->words * sizeof *l->has, rest = (size_t)(l->n - at);
    GROW(l->piece, l->n, l->cap);
    GROW(l->has, (i64)(l->n + 1) * l->words, l->caphas);
    memmove(l->piece + at + 1, l->piece + at, rest * sizeof *l->piece);
    memmove(has_of(l, at + 1), has_of(l, at), rest * set);
    if (at > 0) memcpy(has_of(l, at), has_of(l, at - 1), set);
    else memset(has_of(l, at), 0, set);
    l->piece[at] = v;
    l->n++;
    return 0;
}

/* No piece goes on beyond element `at`, or step `at`. */
static err split(struct ledger *l, i64 at) {
    for (i32 i = 0; i < l->n; i++) {
        if (l->piece[i].lo >= at || l->piece[i].hi <= at) continue;
        struct piece_of right = l->piece[i];
        right.lo = at;
        l->piece[i].hi = at;
        TRY(insert(l, i + 1, right));
    }
    return 0;
}

static err split_steps(struct ledger *l, i32 at) {
    for (i32 i = 0; i < l->n; i++) {
        if (l->piece[i].t0 >= at || l->piece[i].t1 <= at) continue;
        struct piece_of later = l->piece[i];
        later.t0 = at;
        l->piece[i].t1 = at;
        TRY(insert(l, i + 1, later));
    }
    return 0;
}

/* A part of the current buffer; pieces lie inside of it or outside once it is cut out. */
struct area {
    i64 lo, hi;
    i32 t0, t1;
};

static struct area area_of(const struct ledger *l, const struct use *u) {
    const bool all = u->t1 == 0;
    return (struct area){u->lo, u->hi, all ? 0 : u->t0, all ? l->p->buf[l->buf].repeat : u->t1};
}

static err cut_out(struct ledger *l, const struct area *a) {
    TRY(split(l, a->lo));
    TRY(split(l, a->hi));
    TRY(split_steps(l, a->t0));
    return split_steps(l, a->t1);
}

static bool is_inside(const struct piece_of *v, const struct area *a) {
    return v->hi > a->lo && v->lo < a->hi && v->t1 > a->t0 && v->t0 < a->t1;
}

static bool in_set(const u64 *set, i32 rank) { return set[rank / 64] >> (rank % 64) & 1; }
static void put_in(u64 *set, i32 rank) { set[rank / 64] |= (u64)1 << (rank % 64); }
static i32 words_of(const struct plan *p) { return p->nrank / 64 + 1; }

/* Ranks with a RUN_ONCE task that uses what task t writes. */
static void find_users(const struct plan *p, const struct uses_of *of, const struct task *t, u64 *set) {
    for (u32 w = t->use0; w < t->use0 + t->nuse; w++) {
        const struct use *u = &p->use[w];
        for (u32 i = of->first[u->buf]; use_writes(u) && i < of->first[u->buf + 1]; i++) {
            const struct task *v = &p->task[of->task[of->use[i]]];
            if (!v->everywhere && use_meets(&p->use[of->use[i]], u)) put_in(set, p->place[v->device].rank);
        }
    }
}

/* The set of ranks of each task. */
static err find_runs(const struct plan *p, const struct uses_of *of, u64 **out) {
    NEW(*out, (i64)words_of(p) * (p->ntask + 1));
    for (u32 i = 0; i < p->ntask; i++) {
        u64 *set = *out + (size_t)i * (size_t)words_of(p);
        for (i32 r = 0; r < p->nrank && p->task[i].everywhere == RUN_EVERYWHERE; r++) put_in(set, r);
        if (p->task[i].everywhere == RUN_ONCE) put_in(set, rank_of(p, (i32)i));
        if (p->task[i].everywhere == RUN_AT_USERS) find_users(p, of, &p->task[i], set);
    }
    return 0;
}

err plan_runs(const struct plan *p, i32 rank, struct arena *a, bool **out) {
    struct arena own = {0};
    struct uses_of of;
    u64 *runs = NULL;
    ARENA_NEW(a, *out, p->ntask + 1);
    err e = sort_uses(p, &own, &of);
    if (e >= 0) e = find_runs(p, &of, &runs);
    for (u32 i = 0; i < p->ntask && e >= 0; i++) (*out)[i] = in_set(runs + (size_t)i * (size_t)words_of(p), rank);
    mem_free(runs);
    arena_free(&own);
    return e;
}

static err send(struct ledger *l, i32 piece, i32 rank, enum message_when when) {
    const struct piece_of *v = &l->piece[piece];
    i64 end;
    GROW(l->out, l->nout, l->capout);
    l->out[l->nout++] = (struct plan_message){.buf = l->buf,
                                              .after = (u32)v->writer,
                                              .from = rank_of(l->p, v->writer),
                                              .to = rank,
                                              .when = (u8)when,
                                              .sparse = l->p->buf[l->buf].sparse && plan_table_at(l->p, v->lo, &end),
                                              .t0 = v->t0,
                                              .t1 = v->t1,
                                              .lo = v->lo,
                                              .hi = v->hi};
    if (when == MESSAGE_STEP) put_in(has_of(l, piece), rank);
    return 0;
}

static err reads(struct ledger *l, const struct area *a, i32 rank, enum message_when when) {
    TRY(cut_out(l, a));
    for (i32 i = 0; i < l->n; i++) {
        const struct piece_of *v = &l->piece[i];
        if (!is_inside(v, a) || v->writer == EVERYONE || in_set(has_of(l, i), rank)) continue;
        TRY(send(l, i, rank, when));
    }
    return 0;
}

static bool everyone(const struct ledger *l, i32 task) { return l->p->task[task].everywhere && !l->by_device; }

static err task_reads(struct ledger *l, const struct use *u, i32 task) {
    const struct area a = area_of(l, u);
    if (!everyone(l, task)) return reads(l, &a, rank_of(l->p, task), MESSAGE_STEP);
    for (i32 r = 0; r < l->p->nrank; r++)
        if (in_set(l->runs + (size_t)task * (size_t)l->words, r)) TRY(reads(l, &a, r, MESSAGE_STEP));
    return 0;
}

static err writes(struct ledger *l, const struct use *u, i32 task) {
    const struct area a = area_of(l, u);
    TRY(cut_out(l, &a));
    for (i32 i = 0; i < l->n; i++) {
        struct piece_of *v = &l->piece[i];
        if (!is_inside(v, &a)) continue;
        memset(has_of(l, i), 0, (size_t)l->words * sizeof *l->has);
        v->writer = everyone(l, task) ? EVERYONE : task;
        put_in(has_of(l, i), rank_of(l->p, task));
    }
    return 0;
}

/* After the last task: to the ranks that read it in a step; to the others when the exec settles. */
static err go_to_readers(struct ledger *l, const struct pbuf *b) {
    for (u32 i = l->of.first[l->buf]; i < l->of.first[l->buf + 1]; i++) {
        const struct use *u = &l->p->use[l->of.use[i]];
        if (u->mode == USE_R) TRY(task_reads(l, u, (i32)l->of.task[l->of.use[i]]));
    }
    const struct area all = {0, b->extent, 0, b->repeat};
    for (i32 r = 0; r < l->p->nrank; r++) TRY(reads(l, &all, r, MESSAGE_SETTLE));
    return 0;
}

static err go_to_starters(struct ledger *l, const struct pbuf *b) {
    for (u32 i = l->of.first[l->buf]; i < l->of.first[l->buf + 1]; i++) {
        const struct use *u = &l->p->use[l->of.use[i]];
        const struct area a = area_of(l, u);
        if (u->mode == USE_W) TRY(reads(l, &a, rank_of(l->p, (i32)l->of.task[l->of.use[i]]), b->when));
    }
    return 0;
}

/* After the last task, sends the buffer to the rank that keeps it (home), or to all ranks. */
static err go_home(struct ledger *l, const struct pbuf *b) {
    if (b->home == HOME_READERS && !l->by_device) return go_to_readers(l, b);
    if (b->home == HOME_STARTERS && !l->by_device) return go_to_starters(l, b);
    const struct area all = {0, b->extent, 0, b->repeat};
    if (b->home >= 0) return reads(l, &all, b->home, b->when);
    for (i32 r = 0; r < l->p->nrank && b->home == HOME_ALL; r++) TRY(reads(l, &all, r, b->when));
    return 0;
}

static err one_buffer(struct ledger *l, u32 buf) {
    const struct plan *p = l->p;
    l->n = 0;
    l->buf = buf;
    if (p->buf[buf].local) return 0;
    TRY(insert(l, 0, (struct piece_of){.hi = p->buf[buf].extent, .t1 = p->buf[buf].repeat, .writer = EVERYONE}));
    for (i32 k = 0; k < p->ntable && p->buf[buf].sparse; k++) {
        TRY(split(l, p->table[k].lo));
        TRY(split(l, p->table[k].hi));
    }
    for (u32 i = l->of.first[buf]; i < l->of.first[buf + 1]; i++) {
        const struct use *u = &p->use[l->of.use[i]];
        const i32 task = (i32)l->of.task[l->of.use[i]];
        if (u->mode != USE_W) TRY(task_reads(l, u, task));
        if (use_writes(u)) TRY(writes(l, u, task));
    }
    return go_home(l, &p->buf[buf]);
}

static int by_writer(const void *a, const void *b) {
    const struct plan_message *x = a, *y = b;
    if (x->after != y->after) return x->after < y->after ? -1 : 1;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    if (x->buf != y->buf) return x->buf < y->buf ? -1 : 1;
    if (x->when != y->when) return x->when < y->when ? -1 : 1;
    if (x->lo != y->lo) return x->lo < y->lo ? -1 : 1;
    return x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

static err derive(struct ledger *l) {
    TRY(sort_uses(l->p, &l->own, &l->of));
    TRY(find_runs(l->p, &l->of, &l->runs));
    for (u32 b = 0; b < l->p->nbuf; b++) TRY(one_buffer(l, b));
    if (l->nout) qsort(l->out, l->nout, sizeof *l->out, by_writer);
    return 0;
}

err plan_exchange(const struct plan *p, struct arena *a, struct plan_message **out, u32 *n) {
    struct ledger l = {.p = p, .words = words_of(p)};
    err e = derive(&l);
    *n = l.nout;
    if (e >= 0) {
        *out = arena_new(a, (l.nout + 1) * sizeof **out);
        if (!*out)
            e = -E601;
        else if (l.nout)
            memcpy(*out, l.out, l.nout * sizeof **out);
    }
    mem_free(l.piece);
    mem_free(l.has);
    mem_free(l.out);
    mem_free(l.runs);
    arena_free(&l.own);
    return e;
}

i64 plan_message_bytes(const struct plan *p, const struct plan_message *m) {
    const struct pbuf *b = &p->buf[m->buf];
    return b->bytes / b->extent / b->repeat * (m->hi - m->lo) * (m->t1 - m->t0);
}

/* The piece after the last of `out` when it is the same rank's, else a new one. */
static void add_share(struct plan_share *out, i32 *n, struct plan_share s) {
    if (*n > 0 && out[*n - 1].rank == s.rank)
        out[*n - 1].hi = s.hi;
    else
        out[(*n)++] = s;
}

err plan_writers(const struct plan *p, u32 buf, struct arena *a, struct plan_share **out, i32 *n) {
    struct ledger l = {.p = p, .words = words_of(p), .by_device = true};
    *n = 0;
    err e = sort_uses(p, &l.own, &l.of);
    if (e >= 0) e = one_buffer(&l, buf);
    if (e >= 0) *out = arena_new(a, (size_t)(l.n + 1) * sizeof **out);
    if (e >= 0 && !*out) e = -E601;
    for (i32 i = 0; i < l.n && e >= 0; i++)
        add_share(
            *out, n,
            (struct plan_share){l.piece[i].lo, l.piece[i].hi, l.piece[i].writer == EVERYONE ? 0 : rank_of(p, l.piece[i].writer)});
    mem_free(l.piece);
    mem_free(l.has);
    mem_free(l.out);
    arena_free(&l.own);
    return e;
}
