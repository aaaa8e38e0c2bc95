/* path.c - times the way of a vector from a worker to a server and back: a ticket, a pull and a push, as a training step has.
 *
 *     mpirun -n 2 path FLOATS SECONDS [CODEC]     rank 0 serves, rank 1 works; without mpirun both are threads
 *         -> copy BYTES SECONDS                   memcpy of the vector: the limit of a copy
 *            path BYTES SECONDS                   median over batches of a pull and a push together */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/store.h"

enum { BATCHES = 15, ROUNDS_MOST = 100000 };

struct end {
    struct comm *comm;
    i64 n;
    f64 budget;
    const char *codec;
    f32 *theta, *grad, *state;
    f64 seconds[BATCHES];
    err e;
};

static f64 rate(const void *self, i64 round) {
    (void)self, (void)round;
    return 1e-3;
}

static bool never(const void *self) {
    (void)self;
    return false;
}

static err work(struct end *w, struct pstore *s, i64 rounds, f64 *seconds) {
    struct pstore_ticket t;
    const f64 t0 = clock_now();
    err e;
    while ((e = pstore_take(s, &t)) > 0) TRY(pstore_give(s, &t, &(struct pstore_push){.v = w->grad}));
    *seconds = (clock_now() - t0) / (f64)rounds;
    return e;
}

static err leg(struct end *w, struct pstore *s, i64 *first, i64 rounds, f64 *seconds) {
    struct pstore_leg out;
    TRY(pstore_begin(s, *first, *first + rounds, NULL));
    *seconds = 0;
    if (pstore_worker(s) >= 0) TRY(work(w, s, rounds, seconds));
    *first += rounds;
    TRY(pstore_end(s, &out, NULL));
    return comm_broadcast_from(w->comm, 1, "seconds", seconds, sizeof *seconds);
}

static err run(struct end *w) {
    struct pstore *s;
    struct pstore_job job = {.comm = w->comm,
                             .servers = 1,
                             .n = w->n,
                             .theta = w->theta,
                             .block = 1024,
                             .gradients = true,
                             .kern = kern_best(),
                             .optim = optim_find("sgd"),
                             .state = {w->state},
                             .rate = rate,
                             .stop = never};
    i64 first = 0, rounds = 3;
    f64 seconds;
    TRY(comm_connect(w->comm));
    TRY(store_policy_parse("asp", &job.store));
    TRY(wire_parse(w->codec, &job.codec));
    TRY(pstore_new(&job, &s));
    TRY(leg(w, s, &first, rounds, &seconds));
    rounds = lmax(3, lmin(ROUNDS_MOST, (i64)(w->budget / dmax(1e-7, seconds))));
    for (i32 k = 0; k < BATCHES; k++) TRY(leg(w, s, &first, rounds, &w->seconds[k]));
    pstore_free(s);
    return 0;
}

static void *live(void *self) {
    struct end *w = self;
    w->e = mem_new((void **)&w->theta, w->n, sizeof(f32));
    if (w->e >= 0) w->e = mem_new((void **)&w->grad, w->n, sizeof(f32));
    if (w->e >= 0) w->e = mem_new((void **)&w->state, w->n, sizeof(f32));
    for (i64 i = 0; i < w->n && w->e >= 0; i++) w->grad[i] = (f32)(i % 7) * 1e-3f;
    if (w->e >= 0) w->e = run(w);
    if (w->e < 0) fprintf(stderr, "E%d %s\n", err_last()->code, err_last()->text);
    if (w->e < 0)
        comm_abort(w->comm);
    else
        comm_succeed(w->comm);
    return NULL;
}

static int before(const void *a, const void *b) {
    return (*(const f64 *)a > *(const f64 *)b) - (*(const f64 *)a < *(const f64 *)b);
}

static void print(struct end *w) {
    f64 copy[BATCHES];
    const size_t bytes = sizeof(f32) * (size_t)w->n;
    const i32 times = (i32)lmax(1, (1 << 24) / (i64)bytes);
    for (i32 k = 0; k < BATCHES; k++) {
        const f64 t0 = clock_now();
        for (i32 i = 0; i < times; i++) memcpy(i % 2 ? w->grad : w->theta, i % 2 ? w->theta : w->grad, bytes);
        copy[k] = (clock_now() - t0) / times;
    }
    qsort(copy, BATCHES, sizeof *copy, before);
    qsort(w->seconds, BATCHES, sizeof *w->seconds, before);
    printf("copy %zu %.3g\npath %zu %.3g\n", bytes, copy[BATCHES / 2], bytes, w->seconds[BATCHES / 2]);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    struct end end[2] = {{0}};
    struct comm *comm[2] = {NULL};
    i32 size = 0;
    for (i32 k = 0; k < 2; k++)
        end[k] = (struct end){.n = atoll(argv[1]), .budget = atof(argv[2]), .codec = argc > 3 ? argv[3] : "none"};
    if (comm_launched(&size)) {
        if (comm_mpi(&end[0].comm) < 0 || !end[0].comm) return 1;
        live(&end[0]);
        if (end[0].e >= 0 && comm_rank(end[0].comm) == 0) print(&end[0]);
        comm_free(end[0].comm);
        return end[0].e < 0;
    }
    pthread_t thread[2];
    if (comm_threads(2, comm) < 0) return 1;
    for (i32 k = 0; k < 2; k++) {
        end[k].comm = comm[k];
        if (pthread_create(&thread[k], NULL, live, &end[k]) != 0) return 1;
    }
    for (i32 k = 0; k < 2; k++) pthread_join(thread[k], NULL);
    if (end[0].e >= 0) print(&end[0]);
    for (i32 k = 0; k < 2; k++) comm_free(comm[k]);
    return end[0].e < 0;
}
