/* policy.h - a message policy: when messages between ranks are sent, and after which update a step reads the weights.
 *
 * One file and one const struct each, one line in policies.def.  The weights live with the client; a policy decides at which
 * point of a step the messages of the plan go, and which tasks wait for the next step.  Every pointer may be NULL. */
#ifndef STRETTO_EXEC_POLICY_H
#define STRETTO_EXEC_POLICY_H

#include "exec/exec.h"
#include "plan/exchange.h"

struct policy {
    const char *name; /* the word of --pipeline */
    const char *help;
    err (*fits)(i32 slices, i32 ranks); /* E401 where time slices, or ranks, cannot be combined with it */
    /* Steps after which the weights follow from a gradient, 0 or 1.  1: buffers with `twin` have two copies, and gradients cannot
     * be accumulated. */
    i32 delay;
    bool serial; /* input, computation and messages run one after another */
    err (*bind)(struct exec *x);
    /* The task leaves its worker's queue for the deferred queue, which the agent runs (delay1). */
    bool (*defers)(const struct exec *x, const struct task *t);
    /* The message goes while the next step is computed; its readers wait for it (async_gather.c). */
    bool (*trails)(const struct exec *x, const struct plan_message *m);
    /* Messages may go now, as far as the policy is concerned. */
    bool (*may_send)(const struct exec *x);
    /* Around the workers' part of a step; NULL: messages begin with it and end with it. */
    void (*begin)(struct exec *x);
    err (*end)(struct exec *x, struct exec_result *out);
    /* Called between two polls of the messages: runs the deferred tasks that are ready, returns how many are left. */
    u32 (*progress)(struct exec *x, bool *moved);
    /* Implement exec_settle, exec_look_ahead and exec_set_ahead (exec.h). */
    err (*settle)(struct exec *x, struct exec_result *out);
    err (*look_ahead)(struct exec *x, bool *due, struct exec_result *out);
    void (*set_ahead)(struct exec *x, bool due, const struct exec_result *r);
};

i32 policy_count(void);
const struct policy *policy_at(i32 i);
const struct policy *policy_find(const char *name); /* NULL = none */
extern const struct policy policy_overlap;          /* the default */
static inline i32 policy_delay(const struct policy *p) { return p ? p->delay : 0; }
static inline bool policy_serial(const struct policy *p) { return p && p->serial; }
err policy_fits(const struct policy *p, i32 slices, i32 ranks); /* of time slices and ranks: 0, or E401 */

#endif
