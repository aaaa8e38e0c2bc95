/* recover.c - see recover.h. */
#define _GNU_SOURCE
#include "comm/recover.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#define CHECK_S 1e-3
enum { SLEEP_NS = 20000, KILLS = 5 };

static bool equal(const struct rank_set *a, const struct rank_set *b) { return memcmp(a, b, sizeof *a) == 0; }

static void add_all(struct rank_set *s, const struct rank_set *more) {
    for (size_t i = 0; i < COUNT(s->word); i++) s->word[i] |= more->word[i];
}

/* Opens the pidfd early: a pid may be reused later, but ranks that have just connected are alive. */
static int open_process(const struct recovery *h, i32 k) {
    const struct comm_rank_info *m = &h->member[k], *me = &h->member[h->me];
    if (strcmp(m->host, me->host) != 0 || m->pid == me->pid) return -1;
    return (int)syscall(SYS_pidfd_open, m->pid, 0);
}

err recovery_new(const struct transport *t, void *self, const struct comm_rank_info *member, i32 rank, i32 n,
                 struct recovery **out) {
    struct recovery *h;
    NEW(h, 1);
    *h = (struct recovery){.t = t, .self = self, .me = rank, .n = n};
    err e = mem_new((void **)&h->member, n, sizeof *h->member);
    if (e >= 0) e = mem_new((void **)&h->fd, n, sizeof *h->fd);
    if (e >= 0) e = mem_new((void **)&h->reported, n, sizeof *h->reported);
    if (e >= 0) e = mem_new((void **)&h->kills, n, sizeof *h->kills);
    if (e < 0) {
        h->n = 0;
        recovery_free(h);
        return e;
    }
    memcpy(h->member, member, (size_t)n * sizeof *member);
    for (i32 k = 0; k < n; k++) h->fd[k] = open_process(h, k);
    *out = h;
    return 0;
}

void recovery_free(struct recovery *h) {
    if (!h) return;
    for (i32 k = 0; k < h->n; k++)
        if (h->fd[k] >= 0) close(h->fd[k]);
    mem_free(h->reported);
    mem_free(h->kills);
    mem_free(h->fd);
    mem_free(h->member);
    mem_free(h);
}

static void poll_processes(struct recovery *h) {
    struct pollfd p[COMM_RANKS];
    i32 who[COMM_RANKS], n = 0;
    for (i32 k = 0; k < h->n; k++)
        if (h->fd[k] >= 0 && !rank_set_has(&h->dead, k)) who[n] = k, p[n++] = (struct pollfd){.fd = h->fd[k], .events = POLLIN};
    if (n == 0 || poll(p, (nfds_t)n, 0) <= 0) return;
    for (i32 i = 0; i < n; i++)
        if (p[i].revents) rank_set_add(&h->dead, who[i]);
}

/* State T: a process that a signal has stopped. The state stands behind the name, which may hold anything. */
static bool is_stopped(i32 pid) {
    char path[32], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!file_first_line(path, line, sizeof line)) return false;
    const char *end = strrchr(line, ')');
    return end && end[1] == ' ' && end[2] == 'T';
}

/* Ends the stopped process of a rank, which then may take a while to die: as many deadlines as KILLS. */
static bool end_stopped(struct recovery *h, i32 k) {
    if (!is_stopped(h->member[k].pid) && !h->kills[k]) return false;
    const bool sent = syscall(SYS_pidfd_send_signal, h->fd[k], SIGKILL, NULL, 0) == 0 || errno == ESRCH;
    return sent && h->kills[k]++ < KILLS;
}

bool recovery_end_stopped(struct recovery *h) {
    bool any = false;
    for (i32 k = 0; k < h->n; k++)
        if (h->fd[k] >= 0 && !rank_set_has(&h->dead, k)) any |= end_stopped(h, k);
    return any;
}

static err receive_reports(struct recovery *h) {
    for (i32 k = 0; k < h->n; k++) {
        if (k == h->me || rank_set_has(&h->dead, k)) continue;
        TRY(h->t->recv_dead(h->self, k, &h->reported[k]));
        add_all(&h->dead, &h->reported[k]);
    }
    return 0;
}

static err check(struct recovery *h) {
    poll_processes(h);
    TRY(receive_reports(h));
    if (!equal(&h->dead, &h->excluded)) atomic_store(&h->died, true);
    return 0;
}

bool recovery_poll(struct recovery *h) {
    const f64 now = clock_now();
    if (now - h->checked < CHECK_S) return atomic_load(&h->died);
    h->checked = now;
    if (check(h) < 0) err_clear(); /* failing to receive a report is not a death */
    return atomic_load(&h->died);
}

bool recovery_left(struct recovery *h) {
    poll_processes(h);
    return !equal(&h->dead, &h->excluded);
}

err recovery_fail(struct recovery *h) {
    char who[400] = "";
    i32 n = 0;
    for (i32 k = 0; k < h->n; k++) {
        if (!rank_set_has(&h->dead, k) || rank_set_has(&h->excluded, k)) continue;
        const size_t len = strlen(who);
        snprintf(who + len, sizeof who - len, "%srank %d (host %s, pid %d)", n++ ? ", " : "", k, h->member[k].host,
                 h->member[k].pid);
    }
    return FAIL_AT(E801, NULL, "stretto resume RUN", "%s %s died", who, n > 1 ? "have" : "has");
}

/* The first survivor whose report differs from this rank's set; -1 = all agree. */
static i32 first_disagreeing(const struct recovery *h) {
    for (i32 k = 0; k < h->n; k++)
        if (k != h->me && !rank_set_has(&h->dead, k) && !equal(&h->reported[k], &h->dead)) return k;
    return -1;
}

static err agree(struct recovery *h, f64 patience) {
    f64 begin = clock_now();
    for (;;) {
        TRY(check(h));
        if (rank_set_has(&h->dead, h->me)) return FAIL(E801, "the other ranks have gone on without this one, rank %d", h->me);
        if (!equal(&h->dead, &h->announced)) TRY(h->t->send_dead(h->self, &h->dead));
        h->announced = h->dead;
        const i32 k = first_disagreeing(h);
        if (k < 0) return 0;
        if (clock_now() - begin > patience && recovery_end_stopped(h)) begin = clock_now();
        if (clock_now() - begin > patience + DYING_S)
            return FAIL_AT(E801, NULL, "stretto resume RUN, once that host is well",
                           "rank %d has waited %.3g s for rank %d (host %s, pid %d) to go on without the ranks that died", h->me,
                           patience, k, h->member[k].host, h->member[k].pid);
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    }
}

err recovery_agree(struct recovery *h, f64 patience, i32 *left, i32 *n) {
    TRY(agree(h, patience));
    *n = 0;
    for (i32 k = 0; k < h->n; k++)
        if (!rank_set_has(&h->dead, k)) left[(*n)++] = k;
    TRY(h->t->reconnect(h->self, left, *n));
    h->excluded = h->dead;
    atomic_store(&h->died, false);
    return 0;
}
