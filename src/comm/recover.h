/* heal.h - who has died, and who goes on without: inside of a struct comm whose ranks may heal (comm_allow_recovery).
 *
 *     kill -9 of rank 1 --pidfd--> ranks on its host --tell--> all others        what a rank knows only ever grows
 *     every rank left:  tell what is known, until all that are left say the same --> transport.renew: channels of their own
 *
 * A death is seen, never guessed: the kernel says that a process of this host is gone, a rank says so of one on its host, or of
 * itself when it gives up (ranks as threads).  A rank that is silent is not dead: the deadline ends the run (E801).
 * Ranks have the numbers here that they had when they met.  On the agent's thread, but for heal_new and heal_free. */
#ifndef STRETTO_COMM_RECOVER_H
#define STRETTO_COMM_RECOVER_H

#include <stdatomic.h>

#include "comm/transport.h"

struct recovery {
    const struct transport *t;
    void *self;
    i32 me, n;
    struct comm_rank_info *member; /* [n] */
    int *fd;                    /* [n] of the process, -1 = not on this host, or nobody's */
    struct rank_set dead, announced, *reported; /* known; said to the others; [n] what each said last */
    struct rank_set excluded;             /* those that the others have gone on without */
    f64 checked;
    _Atomic bool died;          /* somebody has, since */
};

err recovery_new(const struct transport *t, void *self, const struct comm_rank_info *member, i32 rank, i32 n,
                 struct recovery **out);
void recovery_free(struct recovery *h); /* NULL is fine */
bool recovery_poll(struct recovery *h); /* has anybody died?  About once in a millisecond that is looked at */
err recovery_fail(struct recovery *h);  /* E801: who has died */
/* Until all that are left agree on who that is: left[*n], in order, this rank among them.  Then the transport is theirs alone. */
err recovery_agree(struct recovery *h, f64 patience, i32 *left, i32 *n);

#endif
