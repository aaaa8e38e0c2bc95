/* shared.h - weights and optimiser state that threads of one process update together (Hogwild!: Recht et al., NeurIPS 2011).
 *
 *     thread 0   gradient --update--> | stripe 0 | stripe 1 | stripe 2 | stripe 3 |
 *     thread 1   gradient --update----------------> (begins elsewhere)
 *
 * 0 stripes: no locks at all, an update may be lost where two threads meet.  Else each stripe has a lock, and none is lost.
 * Threads read the weights without a lock in both modes: a gradient may be made at weights of which some are newer than others.
 * Those reads and the unlocked writes are races by design; copy_lines in shared.c is the one function that writes, and
 * ThreadSanitizer does not see it.
 *
 * Ranges without a table are updated whole.  Of a table (a large embedding) only the lines are updated that the gradient has
 * marked.  This is the dense update for sgd without momentum and for adagrad, both without weight decay.  For the others it is
 * lazy: moments of a line stand still until it is touched again (torch.optim.SparseAdam), and its weights do not decay. */
#ifndef STRETTO_STORE_SHARED_H
#define STRETTO_STORE_SHARED_H

#include "model/optim/optim.h"

enum { SHARED_LINE = 16 }; /* floats of a line; a mark stands for one */

struct shared_table {
    i64 lo, hi; /* multiples of SHARED_LINE */
};

struct shared_job {
    i64 n;                 /* floats, a multiple of SHARED_LINE */
    f32 *theta, *state[2]; /* [n] borrowed; state NULL = the optimiser has none */
    const struct optim *optim;
    i32 workers;
    i32 stripes;                      /* 0 = no locks */
    const struct shared_table *table; /* [ntable] ascending; copied */
    i32 ntable;
};

struct shared;

err shared_new(const struct shared_job *job, struct shared **out);
void shared_free(struct shared *s); /* NULL is fine */

/* While no thread updates: updates so far, of which the next one is number count + 1. */
void shared_restart(struct shared *s, i64 count);
i64 shared_count(const struct shared *s); /* any thread */

struct shared_push {
    const f32 *grad;          /* [n] of this thread */
    const u8 *mark;           /* [n / SHARED_LINE] lines of tables that are not zero; NULL = the tables are updated whole */
    struct optim_hyper hyper; /* its step is set by the update: its number */
};
/* Any thread, each with its own number of worker.  Returns the updates that came before. */
i64 shared_update(struct shared *s, i32 worker, const struct shared_push *p);

#endif
