/* async_gather.c - the asynchronous all-gather: what other ranks wrote in a step arrives while the next step is computed, and
 * each task waits for what it reads.
 *
 *     step 7   ... | norm | update of own ranges |
 *     step 8                                     | prep 0  fwd 0 | prep 1  fwd 1 | ...
 *     agent                      theta of 7: own out, others' in:   0    1    2   in the order in which layers read them
 *
 * The bits are those of a step that had waited.  Code that reads such a buffer between two steps calls exec_quiet first. Messages
 * of a step are posted before any of the next one: messages of a pair of ranks keep their order. */
#include "exec/bound.h"
#include "exec/space.h"

bool gather_holds(const struct exec *x, const struct link *l, u32 task) {
    return l->trails && task <= l->plan.after && link_touches(x, task, &l->plan, l->m.sends);
}

static err post_job(struct comm *c, void *exec) {
    const struct comm_message *waiting = NULL;
    bool moved = false;
    u32 left = 0;
    (void)c;
    return gather_some(exec, &moved, &left, &waiting);
}

/* Called when a step is done: posts what it wrote. Without an agent at once, since other ranks may read it before this
 * rank's next step begins. */
err gather_begin(struct exec *x) {
    x->trail_serial = x->serial;
    for (u32 k = 0; k < x->nlink; k++) {
        struct link *l = &x->link[k];
        if (!l->trails) continue;
        l->m.started = l->m.done = false;
        x->trailing = true;
    }
    if (!x->trailing || !comm_direct(x->comm)) return 0;
    comm_begin(x->comm, post_job, x);
    return comm_end(x->comm);
}

err gather_some(struct exec *x, bool *moved, u32 *left, const struct comm_message **waiting) {
    bool all = true;
    for (u32 k = 0; x->trailing && k < x->nlink; k++) {
        struct link *l = &x->link[k];
        if (!l->trails || l->m.done) continue;
        TRY(link_move(x, l, x->trail_serial, moved));
        if (l->m.done) continue;
        all = false;
        ++*left;
        if (!*waiting) *waiting = &l->m;
    }
    if (all) x->trailing = false;
    return 0;
}

static err quiet_job(struct comm *c, void *exec) {
    struct exec *x = exec;
    while (x->trailing) {
        const struct comm_message *waiting = NULL;
        bool moved = false;
        u32 left = 0;
        TRY(gather_some(x, &moved, &left, &waiting));
        if (left) TRY(comm_idle(c, moved, waiting));
    }
    return 0;
}

err exec_quiet(struct exec *x) {
    if (x->trailing) {
        comm_begin(x->comm, quiet_job, x);
        TRY(comm_end(x->comm));
    }
    return exec_bring(x);
}
