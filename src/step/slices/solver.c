/* solver.c - rounds over the slices of a chain, by any number of workers. */
#include "step/slices/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/backoff.h"

/* The measurements of a member, on its own cache lines. */
struct chain_member {
    _Alignas(64) struct chain_facts size, left; /* of round 1; of the round that is compared */
    f64 waited;                                 /* seconds at gates, in this call */
};

err chain_solver_new(struct arena *a, i32 nslice, i32 nmember, struct chain_solver **out) {
    struct chain_solver *s;
    ARENA_NEW(a, s, 1);
    s->nslice = nslice;
    s->nmember = nmember;
    ARENA_NEW(a, s->todo, nslice);
    ARENA_NEW(a, s->now, nslice);
    ARENA_NEW(a, s->settled, nslice);
    ARENA_NEW(a, s->steps, nslice);
    ARENA_NEW(a, s->sorted, nslice);
    ARENA_NEW(a, s->member, nmember);
    ARENA_NEW(a, s->trace.ran, (i64)nslice * imin(nslice, CHAIN_ROUNDS));
    *out = s;
    return 0;
}

/* A call from the view of one member. */
struct solve {
    struct chain_solver *s;
    const struct chain *c;
    i32 me, n, k0, k1;
    i32 first, end;            /* slices of this rank */
    i32 round, limit, longest; /* longest: slices of a chain */
    bool serial, own_limit;    /* own_limit: the options set no limit */
    i32 slice_rounds;          /* rounds after which it ends in any case; 0 = none */
    f32 tol;                   /* absolute */
    f32 gap[CHAIN_ROUNDS];     /* of the rounds so far, modulo */
};

static void wait_for_all(struct chain_solver *s, i32 n) {
    const u32 turn = atomic_load_explicit(&s->turn, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&s->here, 1, memory_order_acq_rel) + 1 == (u32)n) {
        atomic_store_explicit(&s->here, 0, memory_order_relaxed);
        atomic_store_explicit(&s->turn, turn + 1, memory_order_release);
        return;
    }
    for (struct backoff r = {0}; atomic_load_explicit(&s->turn, memory_order_acquire) == turn;) backoff_pause(&r);
}

/* A barrier: all members see what any of them wrote before it. */
static void gate(const struct solve *v) {
    if (v->n == 1) return;
    const f64 t0 = v->s->peers ? clock_now() : 0;
    wait_for_all(v->s, v->n);
    if (v->s->peers) v->s->member[v->me].waited += clock_now() - t0;
}

f64 chain_waited(const struct chain_solver *s, i32 me) {
    return s->peers ? s->member[me].waited + (me == 0 ? s->peers->waited : 0) : 0;
}

static i32 settled_at(const struct solve *v, i32 k) { return atomic_load_explicit(&v->s->settled[k], memory_order_relaxed); }

/* Row range i of a member: all its rows, or one range per member if they run separately. */
static bool part_of(const struct solve *v, i32 i, i32 *k0, i32 *k1) {
    const struct task *t = v->s->apart;
    *k0 = t && i < v->s->napart ? t[i].box.b0 : v->k0;
    *k1 = t && i < v->s->napart ? t[i].box.b1 : v->k1;
    return i < (t ? v->s->napart : 1);
}

/* Reduces the measurements of all members and ranks, equal for every member. steps: of the round, sent to all ranks; NULL:
 * the sums count what is left to run. */
static struct chain_facts together(const struct solve *v, i32 *steps) {
    struct chain_solver *s = v->s;
    struct chain_facts sum = {0};
    if (v->me > 0 && s->peers) {
        gate(v);
        return s->fact;
    }
    for (i32 i = 0; i < v->n; i++) chain_facts_add(&sum, steps ? &s->member[i].size : &s->member[i].left);
    if (!s->peers) return sum;
    if (!s->lost) s->lost = !peers_facts(s->peers, &sum, steps);
    s->fact = sum;
    gate(v);
    return sum;
}

/* Exchanges final states with other ranks; one member does it for all. */
static void hand_over(const struct solve *v) {
    struct chain_solver *s = v->s;
    if (!s->peers) return;
    if (v->me == 0 && !s->lost) s->lost = !peers_ends(s->peers, v->c, s->settled, PEERS_GIVE | PEERS_TAKE);
    gate(v);
}

static void start(struct solve *v) {
    struct chain_member *m = &v->s->member[v->me];
    if (v->c->warm) {
        for (i32 i = 0, k0, k1; part_of(v, i, &k0, &k1); i++) v->c->warm(v->c, k0, k1);
        gate(v);
        hand_over(v);
    }
    if (v->c->kept && v->s->peers) {
        if (v->me == 0) peers_recall(v->s->peers, v->c);
        gate(v);
    }
    for (i32 k = v->k0; k < v->k1; k++) {
        const bool given = v->c->prev(v->c, k) < 0;
        m->size.given += given;
        v->s->todo[k] = 1;
        atomic_store_explicit(&v->s->settled[k], given ? 1 : 0, memory_order_relaxed);
        if (!given) v->c->guess(v->c, k);
    }
    if (v->c->warm || v->c->kept) gate(v); /* the values that guesses read may now be overwritten */
}

/* Initial states are estimated in a sweep over all slices (--slice-rank), except where slices run one after another. */
static bool carries(const struct solve *v) { return v->c->rank > 0 && !v->serial; }

static void run(struct solve *v) {
    struct chain_solver *s = v->s;
    struct chain_member *m = &s->member[v->me];
    bool any = false;
    for (i32 k = v->k0; k < v->k1; k++) {
        s->now[k] = s->todo[k] && (!v->serial || settled_at(v, k));
        s->steps[k] = 0;
        any = any || s->now[k];
    }
    for (i32 i = 0, k0, k1; (any || carries(v)) && part_of(v, i, &k0, &k1); i++)
        v->c->run(v->c, k0, k1, s->now, v->round > 1, v->tol, s->steps);
    if (any && carries(v) && v->c->answers) v->c->answers(v->c, v->k0, v->k1, s->now);
    for (i32 k = v->k0; k < v->k1; k++) {
        s->todo[k] = s->todo[k] && !s->now[k];
        if (v->round == 1) m->size.scale = fmaxf(m->size.scale, v->c->scale(v->c, k));
    }
}

/* Records the steps of the round in the trace. */
static void record(const struct solve *v) {
    const struct chain_solver *s = v->s;
    struct chain_trace *t = &v->s->trace;
    for (i32 k = 0; k < s->nslice; k++) {
        *(v->round > 1 ? &t->again : &t->first) += s->steps[k];
        if (v->round <= imin(s->nslice, CHAIN_ROUNDS)) t->ran[(i64)(v->round - 1) * s->nslice + k] = s->steps[k];
    }
}

/* A NaN stays NaN, so that decisions do not depend on the assignment of slices to members. */
static void widest(struct chain_member *m, f32 gap) { chain_facts_add(&m->left, &(struct chain_facts){.gap = gap}); }

/* Takes the final state of prev if it differs. Only facts of earlier rounds count for `settled`: results of other slices in
 * this phase may or may not be visible yet. */
static void compare(struct solve *v, i32 k) {
    struct chain_solver *s = v->s;
    struct chain_member *m = &s->member[v->me];
    const i32 prev = v->c->prev(v->c, k);
    if (prev < 0 || settled_at(v, k)) {
        m->left.open += s->todo[k];
        return;
    }
    const i32 at = settled_at(v, prev);
    const bool sure = at > 0 && at <= v->round;
    const f32 gap = carries(v) ? v->c->carry(v->c, k, v->tol) : v->c->gap(v->c, k);
    if (!(gap <= v->tol)) widest(m, gap);
    if (!(gap <= v->tol) || s->todo[k]) {
        if (!carries(v)) v->c->take(v->c, k);
        s->todo[k] = 1;
        m->left.open++;
    }
    if (sure) atomic_store_explicit(&s->settled[k], v->round + 1, memory_order_relaxed);
}

/* After the last of a fixed number of rounds: measures the remaining gap, and changes no state. */
static void look(struct solve *v) {
    struct chain_member *m = &v->s->member[v->me];
    for (i32 k = v->k0; k < v->k1; k++) {
        if (v->c->prev(v->c, k) < 0) continue;
        const f32 gap = v->c->gap(v->c, k);
        if (!(gap <= v->tol)) widest(m, gap);
    }
}

/* For a sweep, in which each initial state follows from the one before: compares slice after slice, rank after rank. */
static void carry(struct solve *v) {
    struct chain_solver *s = v->s;
    if (s->peers && !s->lost) s->lost = !peers_ends(s->peers, v->c, s->settled, PEERS_TAKE);
    for (i32 i = v->first; i < v->end; i++) compare(v, v->c->down ? v->end - 1 - (i - v->first) : i);
    if (s->peers && !s->lost) s->lost = !peers_ends(s->peers, v->c, s->settled, PEERS_GIVE);
}

/* After a round: each member compares its slices; in a sweep the first member compares all of this rank. */
static void sweep(struct solve *v) {
    const bool last = v->slice_rounds && v->round >= v->slice_rounds;
    if (!carries(v) || last) hand_over(v);
    if (last)
        look(v);
    else if (!carries(v))
        for (i32 k = v->k0; k < v->k1; k++) compare(v, k);
    else if (v->me == 0)
        carry(v);
}

/* Do gaps fall?  Over a quarter of the slices they have to lose a fiftieth at least: the largest gap of all borders stays where
 * it is for as many rounds as the memory of the chain is slices long, and falls then. */
static bool stands_still(const struct solve *v, f32 gap) {
    const i32 back = imin(imax(3, v->longest / 4), CHAIN_ROUNDS - 1);
    if (isnan(gap)) return true;
    return v->round > back && !(gap < 0.98f * v->gap[(v->round - back - 1) % CHAIN_ROUNDS]);
}

/* Scale, tolerance and limit, after round 1 of all members.  Slices of a sequence, where they are cut alike: as many as there
 * are for each that has a given begin. */
static void measure(struct solve *v, const struct chain_course *how, const struct chain_facts *f) {
    const bool fine = !v->c->back && how->fine > 0 && how->fine < how->slice_tol;
    v->tol = (fine ? how->fine : how->slice_tol) * f->scale;
    v->longest = ceil_div(v->s->nslice, imax(1, f->given));
    v->limit = v->own_limit ? v->longest * 3 / 4 + 2 : how->rounds;
    if (v->me == 0) v->s->trace.scale = f->scale;
}

/* True if another round is needed. Every member decides the same. */
static bool more(struct solve *v) {
    const struct chain_facts f = together(v, NULL);
    const f32 gap = f.gap;
    struct chain_trace *t = &v->s->trace;
    if (v->me == 0) {
        t->rounds = v->round;
        t->serial += v->serial;
        if (gap > 0 || isnan(gap)) t->gap = gap;
    }
    if (f.open == 0 || v->s->lost) return false;
    v->serial = v->serial || v->round >= v->limit || (v->own_limit && stands_still(v, gap));
    v->gap[(v->round - 1) % CHAIN_ROUNDS] = gap;
    return true;
}

/* Clears all but `ran`, which other members may be writing. */
static void forget(struct chain_trace *t, i32 nslice) {
    t->nslice = nslice;
    t->rounds = t->serial = 0;
    t->first = t->again = 0;
    t->gap = t->scale = 0;
}

void chain_solve(struct chain_solver *s, const struct chain *c, const struct chain_course *how, i32 me, i32 n, i32 k0, i32 k1) {
    struct solve v = {.s = s, .c = c, .me = me, .n = n, .k0 = k0, .k1 = k1, .round = 1};
    s->member[me] = (struct chain_member){0};
    v.first = s->peers ? s->peers->first[s->peers->me] : 0;
    v.end = s->peers ? s->peers->first[s->peers->me + 1] : s->nslice;
    v.own_limit = how->rounds <= 0;
    v.slice_rounds = c->back && how->exact_back ? 0 : how->slice_rounds;
    if (me == 0) forget(&s->trace, s->nslice);
    if (me == 0) s->lost = false;
    start(&v);
    for (;; v.round++) {
        run(&v);
        gate(&v);
        const struct chain_facts all = together(&v, s->steps);
        if (v.round == 1) measure(&v, how, &all);
        if (me == 0) record(&v);
        s->member[me].left = (struct chain_facts){0};
        sweep(&v);
        gate(&v);
        if (!more(&v)) break;
    }
    for (i32 i = 0, from, to; c->finish && part_of(&v, i, &from, &to); i++) c->finish(c, from, to);
    if (me == 0 && s->peers && c->kept && !s->lost) s->lost = !peers_keep(s->peers, c);
    if (me == 0) s->forgets = s->trace.rounds > 1 ? chain_forgets(&s->trace, s->sorted) : 0;
    gate(&v); /* finish of a slice may read values of another slice: no member goes on to overwrite them */
}

static int ascending(const void *a, const void *b) {
    const i32 x = *(const i32 *)a, y = *(const i32 *)b;
    return (x > y) - (x < y);
}

i32 chain_forgets(const struct chain_trace *t, i32 *sorted) {
    i32 n = 0;
    if (t->rounds < 2) return -1;
    for (i32 k = 0; k < t->nslice; k++) {
        const i32 ran = t->ran[t->nslice + k];
        if (ran > 0 && ran < t->ran[k]) sorted[n++] = ran;
    }
    if (n == 0) return -1;
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    return sorted[(n - 1) * 9 / 10];
}
