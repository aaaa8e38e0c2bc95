/* group.c - the group of ranks: exchanges hosts and pids, sets up shared memory for ranks of one host; after a death the
 * surviving ranks get new numbers (recover.h decides which ranks survive). */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/rank.h"

err comm_connect(struct comm *c) {
    if (comm_size(c) == 1) return 0;
    struct comm_rank_info me = {.rank = c->rank, .pid = (i32)getpid(), .unwatched = !comm_watch_requested()};
    struct utsname u;
    if (uname(&u) == 0) snprintf(me.host, sizeof me.host, "%.*s", COMM_HOST - 1, u.nodename);
    TRY(comm_allgather(c, "who", &me, sizeof me, c->member));
    if (c->t->by_host) TRY(shm_join(c, &c->t, &c->self));
    if (comm_watched(c)) return watch_begin(&c->watch);
    mem_free(c->flight);
    c->flight = NULL;
    return 0;
}

const char *comm_transport(const struct comm *c) {
    if (!c) return "self";
    const struct transport *t = c->t;
    void *self = c->self;
    shm_inner(&t, &self);
    return t->name;
}

static err allow_job(struct comm *c, void *arg) {
    (void)arg;
    return c->t->allow_recovery(c->self);
}

/* The agent asks the network transport; shared memory only needs to know. */
err comm_allow_recovery(struct comm *c) {
    if (comm_size(c) == 1 || c->recovery) return 0;
    const struct transport *outer = c->t;
    void *self = c->self;
    const bool shared = shm_inner(&c->t, &c->self);
    const err e = c->t->allow_recovery ? rank_job(c, allow_job, NULL) :
                                FAIL(E803, "ranks over %s cannot continue without one that died", c->t->name);
    c->t = outer;
    c->self = self;
    TRY(e);
    if (shared) TRY(c->t->allow_recovery(c->self));
    return recovery_new(c->t, c->self, c->member, c->rank, c->size, &c->recovery);
}

struct meeting {
    i32 left[COMM_RANKS], n;
};

static err recover_job(struct comm *c, void *arg) {
    struct meeting *m = arg;
    return recovery_agree(c->recovery, dmax(clock_deadline(), c->deadline), m->left, &m->n);
}

/* Survivors keep their order; the lock is held because watchdog and records read the names. */
static void renumber(struct comm *c, const struct meeting *m, struct comm_loss *out) {
    i32 k = 0;
    out->was = c->size;
    out->n = 0;
    pthread_mutex_lock(&c->writes);
    for (i32 at = 0; at < c->size; at++) {
        const i32 first = c->first[at];
        if (k < m->n && m->left[k] == first) {
            if (first == c->recovery->me) c->rank = k;
            c->first[k] = first;
            c->member[k] = c->member[at];
            c->member[k].rank = k;
            k++;
            continue;
        }
        if (out->n == 0) out->who = c->recovery->member[first];
        out->rank[out->n++] = at;
    }
    c->size = k;
    c->record[0] = 0;
    pthread_mutex_unlock(&c->writes);
    c->serial = 0;
}

err comm_recover(struct comm *c, struct comm_loss *out) {
    struct meeting *m;
    NEW(m, 1);
    err e = rank_job(c, recover_job, m);
    if (e >= 0) renumber(c, m, out);
    mem_free(m);
    TRY(e);
    out->seconds = c->noticed > 0 ? clock_now() - c->noticed : 0;
    c->noticed = 0;
    return 0;
}
