/* heal.c - see heal.h. */
#define _GNU_SOURCE
#include "comm/heal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define LOOK_S 1e-3
enum { NAP_NS = 20000 };

static bool same(const struct rank_set *a, const struct rank_set *b) { return memcmp(a, b, sizeof *a) == 0; }

static void add_all(struct rank_set *s, const struct rank_set *more) {
    for (size_t i = 0; i < COUNT(s->word); i++) s->word[i] |= more->word[i];
}

/* A number alone might be another process by now: ranks that have just met are alive. */
static int open_process(const struct heal *h, i32 k) {
    const struct comm_member *m = &h->member[k], *me = &h->member[h->me];
    if (strcmp(m->host, me->host) != 0 || m->pid == me->pid) return -1;
    return (int)syscall(SYS_pidfd_open, m->pid, 0);
}

err heal_new(const struct transport *t, void *self, const struct comm_member *member, i32 rank, i32 n, struct heal **out) {
    struct heal *h;
    NEW(h, 1);
    *h = (struct heal){.t = t, .self = self, .me = rank, .n = n};
    err e = mem_new((void **)&h->member, n, sizeof *h->member);
    if (e >= 0) e = mem_new((void **)&h->fd, n, sizeof *h->fd);
    if (e >= 0) e = mem_new((void **)&h->heard, n, sizeof *h->heard);
    if (e < 0) {
        h->n = 0;
        heal_free(h);
        return e;
    }
    memcpy(h->member, member, (size_t)n * sizeof *member);
    for (i32 k = 0; k < n; k++) h->fd[k] = open_process(h, k);
    *out = h;
    return 0;
}

void heal_free(struct heal *h) {
    if (!h) return;
    for (i32 k = 0; k < h->n; k++)
        if (h->fd[k] >= 0) close(h->fd[k]);
    mem_free(h->heard);
    mem_free(h->fd);
    mem_free(h->member);
    mem_free(h);
}

static void look_at_processes(struct heal *h) {
    struct pollfd p[COMM_RANKS];
    i32 who[COMM_RANKS], n = 0;
    for (i32 k = 0; k < h->n; k++)
        if (h->fd[k] >= 0 && !rank_set_has(&h->dead, k)) who[n] = k, p[n++] = (struct pollfd){.fd = h->fd[k], .events = POLLIN};
    if (n == 0 || poll(p, (nfds_t)n, 0) <= 0) return;
    for (i32 i = 0; i < n; i++)
        if (p[i].revents) rank_set_add(&h->dead, who[i]);
}

static err listen(struct heal *h) {
    for (i32 k = 0; k < h->n; k++) {
        if (k == h->me || rank_set_has(&h->dead, k)) continue;
        TRY(h->t->heard(h->self, k, &h->heard[k]));
        add_all(&h->dead, &h->heard[k]);
    }
    return 0;
}

static err look(struct heal *h) {
    look_at_processes(h);
    TRY(listen(h));
    if (!same(&h->dead, &h->healed)) atomic_store(&h->died, true);
    return 0;
}

bool heal_look(struct heal *h) {
    const f64 now = clock_now();
    if (now - h->looked < LOOK_S) return atomic_load(&h->died);
    h->looked = now;
    if (look(h) < 0) err_clear(); /* what cannot be heard is no death */
    return atomic_load(&h->died);
}

err heal_fail(struct heal *h) {
    char who[400] = "";
    i32 n = 0;
    for (i32 k = 0; k < h->n; k++) {
        if (!rank_set_has(&h->dead, k) || rank_set_has(&h->healed, k)) continue;
        const size_t len = strlen(who);
        snprintf(who + len, sizeof who - len, "%srank %d (host %s, pid %d)", n++ ? ", " : "", k, h->member[k].host,
                 h->member[k].pid);
    }
    return FAIL_AT(E801, NULL, "stretto resume RUN", "%s %s died", who, n > 1 ? "have" : "has");
}

/* The first that is left and has not said the same; -1 = all have. */
static i32 missing(const struct heal *h) {
    for (i32 k = 0; k < h->n; k++)
        if (k != h->me && !rank_set_has(&h->dead, k) && !same(&h->heard[k], &h->dead)) return k;
    return -1;
}

static err meet(struct heal *h, f64 patience) {
    const f64 begin = clock_now();
    for (;;) {
        TRY(look(h));
        if (rank_set_has(&h->dead, h->me)) return FAIL(E801, "the other ranks have gone on without this one, rank %d", h->me);
        if (!same(&h->dead, &h->told)) TRY(h->t->tell(h->self, &h->dead));
        h->told = h->dead;
        const i32 k = missing(h);
        if (k < 0) return 0;
        if (clock_now() - begin > patience)
            return FAIL_AT(E801, NULL, "stretto resume RUN, once that host is well",
                           "rank %d has waited %.3g s for rank %d (host %s, pid %d) to go on without the ranks that died", h->me,
                           patience, k, h->member[k].host, h->member[k].pid);
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

err heal_agree(struct heal *h, f64 patience, i32 *left, i32 *n) {
    TRY(meet(h, patience));
    *n = 0;
    for (i32 k = 0; k < h->n; k++)
        if (!rank_set_has(&h->dead, k)) left[(*n)++] = k;
    TRY(h->t->renew(h->self, left, *n));
    h->healed = h->dead;
    atomic_store(&h->died, false);
    return 0;
}
