/* overlap.c - synchronous: gradients are summed while backward still runs, weights come while the next step's forward runs. */
#include "exec/bound.h"
#include "exec/policy.h"

/* Buffers whose readers have them after the step, and that the client gave: weights.  Losses and norms are read at the step's
 * end. */
static bool trails(const struct exec *x, const struct plan_message *m) {
    const struct pbuf *b = &x->plan->buf[m->buf];
    return m->when == MESSAGE_STEP && b->lent && (b->home == HOME_ALL || b->home == HOME_READERS);
}

const struct policy policy_overlap = {
    .name = "overlap",
    .help = "synchronous; messages go while workers compute",
    .trails = trails,
};
