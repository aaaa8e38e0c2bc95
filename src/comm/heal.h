/* heal.h - who has died, and who goes on without: inside of a struct comm whose ranks may heal (comm_heals).
 *
 *     kill -9 of rank 1 --pidfd--> ranks on its host --tell--> all others        what a rank knows only ever grows
 *     every rank left:  tell what is known, until all that are left say the same --> transport.renew: channels of their own
 *
 * A death is seen, never guessed: the kernel says that a process of this host is gone, a rank says so of one on its host, or of
 * itself when it gives up (ranks as threads).  A rank that is silent is not dead: the deadline ends the run (E801).
 * Ranks have the numbers here that they had when they met.  On the agent's thread, but for heal_new and heal_free. */
#ifndef STRETTO_COMM_HEAL_H
#define STRETTO_COMM_HEAL_H

#include <stdatomic.h>

#include "comm/transport.h"

struct heal {
    const struct transport *t;
    void *self;
    i32 me, n;
    struct comm_member *member; /* [n] */
    int *fd;                    /* [n] of the process, -1 = not on this host, or nobody's */
    struct rank_set dead, told, *heard; /* known; said to the others; [n] what each said last */
    struct rank_set healed;             /* those that the others have gone on without */
    f64 looked;
    _Atomic bool died;          /* somebody has, since */
};

err heal_new(const struct transport *t, void *self, const struct comm_member *member, i32 rank, i32 n, struct heal **out);
void heal_free(struct heal *h); /* NULL is fine */
bool heal_look(struct heal *h); /* has anybody died?  About once in a millisecond that is looked at */
err heal_fail(struct heal *h);  /* E801: who has died */
/* Until all that are left agree on who that is: left[*n], in order, this rank among them.  Then the transport is theirs alone. */
err heal_agree(struct heal *h, f64 patience, i32 *left, i32 *n);

#endif
