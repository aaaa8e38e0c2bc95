/* recover.h - detection of dead ranks and agreement of the survivors, for a struct comm with comm_allow_recovery.
 *
 *     kill -9 of rank 1 --pidfd--> ranks on its host --send_dead--> all others     the set of dead ranks a rank knows only grows
 *     survivors: exchange the sets until all are equal --> transport.reconnect: a fresh set of channels
 *
 * A death is observed, never guessed: the kernel reports the end of a process of this host; ranks report the deaths they saw; a
 * rank that aborts (ranks as threads) reports itself. A silent rank is not dead: there the deadline ends the run (E801). Only a
 * process of this host that a signal has stopped is killed at the deadline, and is then dead like any other. Ranks have their
 * original numbers here. All functions run on the agent's thread, except recovery_new, recovery_free, recovery_end_stopped and
 * recovery_left. */
#ifndef STRETTO_COMM_RECOVER_H
#define STRETTO_COMM_RECOVER_H

#include <stdatomic.h>

#include "comm/transport.h"

#define DYING_S 1.0 /* behind a deadline, for a rank that another one has just killed */

struct recovery {
    const struct transport *t;
    void *self;
    i32 me, n;
    struct comm_rank_info *member; /* [n] */
    int *fd;                    /* [n] pidfd of the process, -1 = on another host or in this process */
    struct rank_set dead, announced, *reported; /* known to this rank; last sent to the others; [n] last received from each */
    struct rank_set excluded;             /* dead ranks of earlier recoveries */
    i32 *kills;                 /* [n] deadlines at which recovery_end_stopped has killed the process */
    f64 checked;
    _Atomic bool died;          /* a rank has died since the last recovery */
};

err recovery_new(const struct transport *t, void *self, const struct comm_rank_info *member, i32 rank, i32 n,
                 struct recovery **out);
void recovery_free(struct recovery *h); /* NULL is allowed */
bool recovery_poll(struct recovery *h); /* true if a rank has died; checks about once per millisecond */
/* Kills the ranks of this host that a signal has stopped; true if there were any, or those of an earlier call are still dying. */
bool recovery_end_stopped(struct recovery *h);
/* When the agent has ended its last job: true if a rank of this host has ended since the last recovery. */
bool recovery_left(struct recovery *h);
err recovery_fail(struct recovery *h);  /* returns E801 with the names of the dead */
/* Waits until all survivors report the same set of dead ranks. left[*n]: the survivors in order, including this rank; the
 * transport connects only them afterwards. */
err recovery_agree(struct recovery *h, f64 patience, i32 *left, i32 *n);

#endif
