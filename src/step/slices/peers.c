/* peers.c - messages of a round: made of small records, in an order that both sides know. */
#include "step/slices/peers.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

void chain_facts_add(struct chain_facts *sum, const struct chain_facts *f) {
    sum->scale = fmaxf(sum->scale, f->scale);
    sum->gap = isnan(f->gap) || isnan(sum->gap) ? (f32)NAN : fmaxf(sum->gap, f->gap);
    sum->open += f->open;
    sum->given += f->given;
}

static i32 count_of(const struct chain_peers *p, i32 i) { return p->first[i + 1] - p->first[i]; }
static size_t record_bytes(const struct chain_peers *p, i32 i) {
    return sizeof(struct chain_facts) + (size_t)count_of(p, i) * sizeof(i32);
}
/* Floats of a slice in a message: its state, and the round from which it is settled. */
static i64 hand_floats(const struct chain *c) { return c->hand + 1; }

err chain_peers_new(struct arena *a, const struct chain *c, i32 n, const i32 *rank, const i32 *first, i32 me,
                    struct chain_peers **out) {
    struct chain_peers *p;
    ARENA_NEW(a, p, 1);
    p->n = n;
    p->me = me;
    ARENA_NEW(a, p->rank, n);
    ARENA_NEW(a, p->first, n + 1);
    memcpy(p->rank, rank, (size_t)n * sizeof *rank);
    memcpy(p->first, first, ((size_t)n + 1) * sizeof *first);
    const i32 own = count_of(p, me), nslice = first[n];
    ARENA_NEW(a, p->m, 2 * n);
    ARENA_NEW(a, p->in, n);
    for (i32 i = 0; i < n; i++) ARENA_NEW(a, p->in[i], (i64)record_bytes(p, i));
    ARENA_NEW(a, p->out, (i64)record_bytes(p, me));
    ARENA_NEW(a, p->give, own * hand_floats(c));
    ARENA_NEW(a, p->take, own * hand_floats(c));
    if (!c->back) ARENA_NEW(a, p->kept, (i64)nslice * c->state);
    ARENA_NEW(a, p->list, own);
    *out = p;
    return 0;
}

void peers_begin(struct chain_peers *p, u64 serial) {
    p->serial = serial;
    p->turn = 0;
    p->waited = 0;
}

static bool pass(struct chain_peers *p, i32 n) {
    const f64 t0 = clock_now();
    const bool passed = p->pass(p->self, p->m, n);
    p->waited += clock_now() - t0;
    return passed;
}

/* Adds a message to this turn; n = messages so far. */
static void add(struct chain_peers *p, i32 *n, i32 peer, bool sends, void *data, i64 bytes, const char *name) {
    struct comm_message *m = &p->m[(*n)++];
    *m = (struct comm_message){.data = data, .peer = p->rank[peer], .channel = CHANNEL_ROUND, .sends = sends};
    m->head = (struct comm_head){.serial = p->serial, .number = p->turn, .bytes = (u32)bytes};
    snprintf(m->head.name, sizeof m->head.name, "%s", name);
}

bool peers_facts(struct chain_peers *p, struct chain_facts *f, i32 *steps) {
    i32 n = 0;
    p->turn++;
    memcpy(p->out, f, sizeof *f);
    if (steps) memcpy(p->out + sizeof *f, steps + p->first[p->me], (size_t)count_of(p, p->me) * sizeof *steps);
    for (i32 i = 0; i < p->n; i++) {
        if (i == p->me) continue;
        add(p, &n, i, true, p->out, (i64)(steps ? record_bytes(p, p->me) : sizeof *f), "slices.facts");
        add(p, &n, i, false, p->in[i], (i64)(steps ? record_bytes(p, i) : sizeof *f), "slices.facts");
    }
    if (!pass(p, n)) return false;
    struct chain_facts sum = {0}, other;
    for (i32 i = 0; i < p->n; i++) {
        const char *from = i == p->me ? p->out : p->in[i];
        memcpy(&other, from, sizeof other);
        chain_facts_add(&sum, &other);
        if (steps) memcpy(steps + p->first[i], from + sizeof *f, (size_t)count_of(p, i) * sizeof *steps);
    }
    *f = sum;
    return true;
}

/* ------------------------------------------------------------------ ends ---------------------------------------------------- */

static int by_heir(const void *a, const void *b) {
    const struct heir *x = a, *y = b;
    return (x->to > y->to) - (x->to < y->to);
}

static i32 owner_of(const struct chain_peers *p, i32 slice) {
    i32 i = 0;
    while (slice >= p->first[i + 1]) i++;
    return i;
}

/* The pairs of a slice and its heir between this rank and rank i, in order of heirs; giving: this rank has the slices. */
static i32 pairs(const struct chain_peers *p, const struct chain *c, i32 i, bool giving) {
    i32 n = 0;
    for (i32 k = p->first[p->me]; k < p->first[p->me + 1]; k++) {
        const i32 other = giving ? c->heir(c, k) : c->prev(c, k);
        if (other >= 0 && owner_of(p, other) == i) p->list[n++] = giving ? (struct heir){k, other} : (struct heir){other, k};
    }
    if (n > 1) qsort(p->list, (size_t)n, sizeof *p->list, by_heir);
    return n;
}

static void pack(struct chain_peers *p, const struct chain *c, _Atomic i32 *settled, i32 n, f32 *to) {
    for (i32 k = 0; k < n; k++, to += hand_floats(c)) {
        const i32 at = atomic_load_explicit(&settled[p->list[k].from], memory_order_relaxed);
        c->give(c, p->list[k].from, to);
        memcpy(to + c->hand, &at, sizeof at);
    }
}

static void unpack(struct chain_peers *p, const struct chain *c, _Atomic i32 *settled, i32 n, const f32 *from) {
    for (i32 k = 0; k < n; k++, from += hand_floats(c)) {
        i32 at;
        c->get(c, p->list[k].to, from);
        memcpy(&at, from + c->hand, sizeof at);
        atomic_store_explicit(&settled[p->list[k].from], at, memory_order_relaxed);
    }
}

bool peers_ends(struct chain_peers *p, const struct chain *c, _Atomic i32 *settled, i32 what) {
    f32 *give = p->give, *take = p->take;
    i32 n = 0;
    if (what & PEERS_TAKE) p->turn++; /* given in the same turn, maybe later */
    for (i32 i = 0; i < p->n; i++) {
        if (i == p->me) continue;
        const i32 out = what & PEERS_GIVE ? pairs(p, c, i, true) : 0;
        pack(p, c, settled, out, give);
        if (out > 0) add(p, &n, i, true, give, out * hand_floats(c) * 4, "slices.ends");
        give += out * hand_floats(c);
        const i32 in = what & PEERS_TAKE ? pairs(p, c, i, false) : 0;
        if (in > 0) add(p, &n, i, false, take, in * hand_floats(c) * 4, "slices.ends");
        take += in * hand_floats(c);
    }
    if (n > 0 && !pass(p, n)) return false;
    take = p->take;
    for (i32 i = 0; i < p->n && what & PEERS_TAKE; i++) {
        if (i == p->me) continue;
        const i32 in = pairs(p, c, i, false);
        unpack(p, c, settled, in, take);
        take += in * hand_floats(c);
    }
    return true;
}

bool peers_keep(struct chain_peers *p, const struct chain *c) {
    const i32 f = c->state, k0 = p->first[p->me], k1 = p->first[p->me + 1];
    i32 n = 0;
    p->turn++;
    for (i32 k = k0; k < k1; k++) c->save(c, k, p->kept + (i64)k * f);
    for (i32 i = 0; i < p->n; i++) {
        if (i == p->me) continue;
        add(p, &n, i, true, p->kept + (i64)k0 * f, (i64)(k1 - k0) * f * 4, "slices.kept");
        add(p, &n, i, false, p->kept + (i64)p->first[i] * f, (i64)count_of(p, i) * f * 4, "slices.kept");
    }
    return pass(p, n);
}

void peers_recall(struct chain_peers *p, const struct chain *c) {
    for (i32 k = p->first[p->me]; k < p->first[p->me + 1]; k++) {
        const i32 prev = c->prev(c, k);
        if (prev < 0 || owner_of(p, prev) == p->me) continue;
        memset(p->take, 0, (size_t)c->hand * sizeof *p->take);
        memcpy(p->take, p->kept + (i64)prev * c->state, (size_t)c->state * sizeof *p->take);
        c->get(c, k, p->take);
    }
}

void peers_save(const struct chain_peers *p, const struct chain *c, i32 slice, f32 *to) {
    memcpy(to, p->kept + (i64)slice * c->state, (size_t)c->state * sizeof *to);
}

void peers_load(struct chain_peers *p, const struct chain *c, i32 slice, const f32 *from) {
    memcpy(p->kept + (i64)slice * c->state, from, (size_t)c->state * sizeof *from);
    if (owner_of(p, slice) == p->me) c->load(c, slice, from);
}
