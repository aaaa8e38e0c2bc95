/* connect.c - comm_connect: exchanges hosts and pids of all ranks, and sets up shared memory for ranks of one host. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

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
