/* transport.h - what carries messages between ranks: one const struct, used by one thread at a time: the agent, or, where it is
 * direct, whoever has a job or nothing better to do.
 *
 * Messages between two ranks are delivered in order.  send and recv return at once; test says whether the data may be used again
 * (send) or are there (recv), and fails where the head that came is not the one that was awaited. */
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
    bool direct;  /* any thread may call, one at a time, and messages arrive without the sender's help: there is no agent */
    bool by_host; /* those of one host may talk through memory instead (near.c) */
    err (*open)(void *self); /* on the agent's thread, before anything else; NULL = nothing to do */
    err (*send)(void *self, struct comm_message *m);
    err (*recv)(void *self, struct comm_message *m);
    err (*test)(void *self, struct comm_message *m, bool *done);
    void (*cancel)(void *self); /* a job failed: what it sent and nobody took is not looked at any more.  NULL = it never is */
    /* The record of a rank that gave up, if any; and to say that this one did.  Both may be NULL. */
    const struct err_record *(*find_abort)(void *self, i32 *rank);
    void (*abort)(void *self, const struct err_record *why);
    void (*close)(void *self, bool well); /* on the agent's thread; well: nothing failed; frees self */
    /* Going on without ranks that died (heal.h), all by the numbers that ranks had at first; `heals` NULL = it cannot.
     *   heals   from now on that may happen: called once, by all ranks, before much is sent
     *   tell    what this rank knows, to all who are not in it
     *   heard   into *dead what rank `from` said last; unchanged where it has said nothing new
     *   renew   left[n] are the ranks from now on, by their places there; nothing of before is looked at, or comes, any more */
    err (*allow_recovery)(void *self);
    err (*send_dead)(void *self, const struct rank_set *dead);
    err (*recv_dead)(void *self, i32 from, struct rank_set *dead);
    err (*reconnect)(void *self, const i32 *left, i32 n);
    /* Memory out of which messages are sent without a copy, zeroed; NULL = there is none.  release: false = it was not of that
     * kind.  Both may be NULL. */
    void *(*alloc)(void *self, size_t bytes);
    bool (*release)(void *self, void *p);
};

/* near_join.c: those of the ranks that share a host, and can, talk through its memory from here on: *t and *self are replaced by
 * a transport over them.  All ranks call it together, with the same answer. */
err shm_join(struct comm *c, const struct transport **t, void **self);
bool shm_inner(const struct transport **t, void **self); /* what is under it, if it is there */

/* Ranks as threads, each of them made by `join` out of its end of the hub, which is then join's. */
typedef err rank_join(const struct transport *t, void *end, i32 rank, i32 size, const void *arg, struct comm **out);
err comm_threads_by(i32 size, rank_join *join, const void *arg, struct comm **out);

u64 comm_serial(struct comm *c); /* of the next small collective: all ranks count alike */

/* E804 unless the head that came is of the message that is awaited, which then has its bytes. */
err head_check(struct comm_message *want, const struct comm_head *got);

#endif
