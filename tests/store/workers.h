/* workers.h - a small problem that workers solve through a parameter store: each rank is a thread.
 *
 *     loss(w) = mean over parts of 1/2 sum (w - target_part)^2        gradient of part p of round q: (w - target_p) / parts
 *
 * so the minimum is the mean of the targets. */
#ifndef STRETTO_TESTS_STORE_WORKERS_H
#define STRETTO_TESTS_STORE_WORKERS_H

#include "t.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "store/store.h"

enum { WORKERS_MOST = 6, VECTOR = 5000, VECTOR_MOST = 150000, BLOCK = 512 };

struct setting {
    i32 ranks, servers;
    i64 n;     /* floats of the vector; 0 = VECTOR */
    i64 block; /* floats; 0 = BLOCK */
    const char *store, *codec, *optim;
    i32 legs, rounds; /* of a leg */
    f64 lr, clip;
    const i64 *border;
    i32 nborder;
    bool sticky, heals;
    i32 nap_ms;                         /* of the slow one; 0 = 2 */
    i32 slow;                           /* this rank sleeps 2 ms in a ticket; -1 = none */
    i64 nan_ticket;                     /* 0 = none */
    i64 stop_round;                     /* the stop flag is set from then on; 0 = never */
    i32 drop_leg;                       /* the codec is switched off before this leg; 0 = never */
    bool goes_on;                       /* behind a leg that the stop has ended, which happens once */
    const struct pstore_record *replay; /* [legs] */
};

struct worker {
    const struct setting *set;
    struct comm *comm;
    pthread_t thread;
    err e;
    struct err_record why;
    f32 theta[VECTOR_MOST], state[2][VECTOR_MOST], grad[VECTOR_MOST];
    struct pstore_leg leg;          /* the last one */
    struct pstore_record record[8]; /* of each leg */
    i64 done;                       /* tickets that this worker had */
    _Atomic i64 now;                /* round it is at */
    _Atomic bool stopped;           /* the last leg was */
    i32 stops;
};

static inline i64 floats_of(const struct setting *s) { return s->n ? s->n : VECTOR; }
static inline f32 target_of(i32 part, i64 i) { return (f32)(((i * 7 + part * 13) % 41) - 20) / 10; }

static f64 rate(const void *self, i64 round) {
    const struct worker *w = self;
    (void)round;
    return w->set->lr;
}

static bool stops(const void *self) {
    const struct worker *w = self;
    return w->set->stop_round > 0 && w->now >= w->set->stop_round && !w->stopped;
}

/* summed: a round is one update, by the sum of its parts. */
static err tickets(struct worker *w, struct pstore *s, i32 local, bool summed) {
    struct pstore_ticket t;
    const i32 parts = w->set->ranks - w->set->servers;
    err e;
    while ((e = pstore_take(s, &t)) > 0) {
        const bool bad = w->set->nan_ticket > 0 && t.number == w->set->nan_ticket;
        f64 loss = 0;
        w->now = t.round;
        w->done++;
        if (w->set->slow == comm_rank(w->comm))
            nanosleep(&(struct timespec){.tv_nsec = 1000000 * (w->set->nap_ms ? w->set->nap_ms : 2)}, NULL);
        for (i64 i = 0; i < floats_of(w->set); i++) {
            const f32 d = w->theta[i] - target_of(t.part, i);
            loss += 0.5 * (f64)d * (f64)d;
            w->grad[i] = local > 1 ? 0 : d / (summed ? (f32)parts : 1);
        }
        for (i32 k = 0; k < local && local > 1; k++)
            for (i64 i = 0; i < floats_of(w->set); i++)
                w->theta[i] -= 0.05f * (w->theta[i] - target_of(t.part, i));
        TRY(pstore_give(s, &t, &(struct pstore_push){.v = local > 1 ? NULL : w->grad, .loss = loss, .refused = bad}));
    }
    return e;
}

static err live(struct worker *w) {
    struct pstore *s;
    struct pstore_job job = {.comm = w->comm,
                             .servers = w->set->servers,
                             .n = floats_of(w->set),
                             .theta = w->theta,
                             .block = w->set->block ? w->set->block : BLOCK,
                             .border = w->set->border,
                             .nborder = w->set->nborder,
                             .kern = kern_get(KERN_REF),
                             .clip = w->set->clip,
                             .optim = optim_find(w->set->optim ? w->set->optim : "sgd"),
                             .state = {w->state[0], w->state[1]},
                             .rate = rate,
                             .stop = stops,
                             .self = w,
                             .sticky = w->set->sticky,
                             .heals = w->set->heals};
    TRY(comm_connect(w->comm));
    TRY(store_policy_parse(w->set->store, &job.store));
    TRY(wire_parse(w->set->codec ? w->set->codec : "none", &job.codec));
    const i32 local = (i32)store_local_steps(&job.store);
    job.gradients = local == 1;
    job.hyper = (struct optim_hyper){.beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f};
    TRY(pstore_new(&job, &s));
    err e = 0;
    for (i32 k = 0; k < w->set->legs && e >= 0; k++) {
        const i64 last = (i64)(k + 1) * w->set->rounds;
        if (k > 0 && w->set->drop_leg == k) pstore_drop_codec(s);
        for (i64 at = (i64)k * w->set->rounds; at < last && e >= 0; at = w->leg.end) {
            pstore_record_free(&w->record[k]);
            e = pstore_begin(s, at, last, w->set->replay ? &w->set->replay[k] : NULL);
            if (e >= 0 && pstore_worker(s) >= 0) e = tickets(w, s, local, store_staleness(&job.store) == 0);
            if (e >= 0) e = pstore_end(s, &w->leg, &w->record[k]);
            w->stopped = e >= 0 && w->leg.end < last;
            w->stops += w->stopped;
            if (!w->set->goes_on) break;
        }
    }
    pstore_free(s);
    return e;
}

static void *main_of(void *self) {
    struct worker *w = self;
    w->e = live(w);
    if (w->e < 0) w->why = *err_last();
    if (w->e < 0) comm_abort(w->comm);
    return NULL;
}

/* Runs all ranks; the caller frees with workers_free. */
static inline struct worker *workers_run(const struct setting *set) {
    struct comm *comm[WORKERS_MOST];
    struct worker *w = calloc((size_t)set->ranks, sizeof *w);
    assert_non_null(w);
    T_OK(comm_threads(set->ranks, comm));
    for (i32 k = 0; k < set->ranks; k++) {
        w[k].set = set;
        w[k].comm = comm[k];
        assert_int_equal(pthread_create(&w[k].thread, NULL, main_of, &w[k]), 0);
    }
    for (i32 k = 0; k < set->ranks; k++) pthread_join(w[k].thread, NULL);
    for (i32 k = 0; k < set->ranks; k++) comm_free(w[k].comm);
    return w;
}

static inline void workers_free(const struct setting *set, struct worker *w) {
    for (i32 k = 0; k < set->ranks; k++)
        for (i32 l = 0; l < set->legs; l++) pstore_record_free(&w[k].record[l]);
    free(w);
}

/* Root mean square distance to the minimum. */
static inline f64 distance(const struct worker *w, i32 parts) {
    f64 sum = 0;
    for (i64 i = 0; i < VECTOR; i++) {
        f64 mean = 0;
        for (i32 p = 0; p < parts; p++) mean += (f64)target_of(p, i) / parts;
        sum += ((f64)w->theta[i] - mean) * ((f64)w->theta[i] - mean);
    }
    return sqrt(sum / VECTOR);
}

#endif
