/* regroup.c - going on without ranks that died: those that are left get new numbers (heal.h says who they are). */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/rank.h"

static err heals_job(struct comm *c, void *arg) {
    (void)arg;
    return c->t->heals(c->self);
}

/* Ranks that cannot heal talk as they did before they were asked. */
static err near_again(struct comm *c, err e) {
    const struct err_record why = *err_last();
    if (c->t->by_host) TRY(near_join(c, &c->t, &c->self));
    err_put(&why);
    return e;
}

err comm_heals(struct comm *c) {
    if (comm_size(c) == 1 || c->heal) return 0;
    near_leave(&c->t, &c->self); /* its boxes are for ranks that all live */
    const err e = c->t->heals ? rank_job(c, heals_job, NULL) :
                                FAIL(E803, "ranks over %s cannot go on without one that died", c->t->name);
    if (e == -E803) return near_again(c, e);
    TRY(e);
    return heal_new(c->t, c->self, c->member, c->rank, c->size, &c->heal);
}

bool comm_died(const struct comm *c) { return c && c->heal && atomic_load(&c->heal->died); }

struct meeting {
    i32 left[COMM_RANKS], n;
};

static err heal_job(struct comm *c, void *arg) {
    struct meeting *m = arg;
    return heal_agree(c->heal, dmax(comm_patience(), c->deadline), m->left, &m->n);
}

/* Ranks that were left before keep their order; watchdog and records look at names. */
static void renumber(struct comm *c, const struct meeting *m, struct comm_loss *out) {
    i32 k = 0;
    out->was = c->size;
    out->n = 0;
    pthread_mutex_lock(&c->writes);
    for (i32 at = 0; at < c->size; at++) {
        const i32 first = c->first[at];
        if (k < m->n && m->left[k] == first) {
            if (first == c->heal->me) c->rank = k;
            c->first[k] = first;
            c->member[k] = c->member[at];
            c->member[k].rank = k;
            k++;
            continue;
        }
        if (out->n == 0) out->who = c->heal->member[first];
        out->rank[out->n++] = at;
    }
    c->size = k;
    c->record[0] = 0;
    pthread_mutex_unlock(&c->writes);
    c->serial = 0;
}

err comm_heal(struct comm *c, struct comm_loss *out) {
    struct meeting *m;
    NEW(m, 1);
    err e = rank_job(c, heal_job, m);
    if (e >= 0) renumber(c, m, out);
    mem_free(m);
    TRY(e);
    out->seconds = c->noticed > 0 ? clock_now() - c->noticed : 0;
    c->noticed = 0;
    return 0;
}
