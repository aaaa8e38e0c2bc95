/* transport.h - interface of the message transports: one const struct of functions. One thread calls at a time: the agent, or
 * any worker if the transport is direct.
 *
 * Messages between two ranks are delivered in order. send and recv return at once. test reports that the data may be reused
 * (send) or have arrived (recv), and fails if the received header differs from the expected one. */
#ifndef STRETTO_COMM_TRANSPORT_H
#define STRETTO_COMM_TRANSPORT_H

#include "comm/comm.h"

struct rank_set {
    u64 word[COMM_RANKS / 64];
};
static inline bool rank_set_has(const struct rank_set *s, i32 k) { return s->word[k / 64] >> (k % 64) & 1; }
static inline void rank_set_add(struct rank_set *s, i32 k) { s->word[k / 64] |= (u64)1 << (k % 64); }

struct transport {
    const char *name;
    bool direct;  /* any thread may call, one at a time; messages arrive without polling by the sender, so there is no agent */
    bool by_host; /* ranks of one host may use shared memory instead (shm.c) */
    err (*open)(void *self); /* on the agent's thread, first call; NULL = nothing to do */
    err (*send)(void *self, struct comm_message *m);
    err (*recv)(void *self, struct comm_message *m);
    err (*test)(void *self, struct comm_message *m, bool *done);
    void (*cancel)(void *self); /* a job failed: its unreceived messages must not be read any more; NULL = they never are */
    /* find_abort: the error record of a rank that aborted, or NULL. abort: tell the others that this rank failed. Both may be
     * NULL. */
    const struct err_record *(*find_abort)(void *self, i32 *rank);
    void (*abort)(void *self, const struct err_record *why);
    void (*close)(void *self, bool well); /* on the agent's thread; frees self; well: nothing failed */
    /* Elastic recovery (recover.h), by original rank numbers; allow_recovery NULL = not supported.
     *   allow_recovery  enables it: called once by all ranks, before much is sent
     *   send_dead       sends this rank's set of dead ranks to all ranks not in it
     *   recv_dead       stores the last set received from rank `from`; unchanged if nothing new arrived
     *   reconnect       left[n] are the ranks from now on, in this order; older messages are never delivered */
    err (*allow_recovery)(void *self);
    err (*send_dead)(void *self, const struct rank_set *dead);
    err (*recv_dead)(void *self, i32 from, struct rank_set *dead);
    err (*reconnect)(void *self, const i32 *left, i32 n);
    /* Zeroed memory from which messages are sent without a copy; NULL = none. release, and zero, which gives its pages back to
     * the system: false = not from alloc. All may be NULL. */
    void *(*alloc)(void *self, size_t bytes);
    bool (*release)(void *self, void *p);
    bool (*zero)(void *self, void *p);
};

/* shm_join.c: wraps *t, *self so that ranks of one host use shared memory where possible. All ranks call it together and get
 * the same decision. */
err shm_join(struct comm *c, const struct transport **t, void **self);
bool shm_inner(const struct transport **t, void **self); /* unwraps the transport below, if wrapped */

/* Ranks as threads: `join` creates each rank from its end of the hub and owns that end. */
typedef err rank_join(const struct transport *t, void *end, i32 rank, i32 size, const void *arg, struct comm **out);
err comm_threads_by(i32 size, rank_join *join, const void *arg, struct comm **out);

/* E804 unless the received header matches the expected message, whose size is then set. */
err head_check(struct comm_message *want, const struct comm_head *got);

#endif
