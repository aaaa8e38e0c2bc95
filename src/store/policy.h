/* policy.h - a store policy: how stale the weights of a worker may be, and how a server applies what workers push.
 *
 *     worker i, round t:  w <- pull;  k local steps with the worker optimiser;  push d = w(pulled) - w      (k = 1: the gradient)
 *     server:             theta <- ServerOpt(theta, d)
 *
 * One file and one const struct each, one line in policies.def.  One rule covers all of them (Zhang et al., NeurIPS 2015; Chen &
 * Huo, ICASSP 2016; Douillard et al., arXiv:2311.08105); a policy sets its numbers. */
#ifndef STRETTO_STORE_POLICY_H
#define STRETTO_STORE_POLICY_H

#include "base/err.h"
#include "model/optim/optim.h"

#define STORE_UNBOUNDED INT64_MAX /* staleness without a limit */
#define STORE_BY_VALUE (-1)       /* the number behind the colon: "ssp:3", "local:64" */

/* What a server applies to the range [0, n) of its shard. */
struct store_update {
    const struct optim *optim;
    struct optim_hyper hyper; /* lr, grad_scale and step are set */
    i64 n;
    f32 *theta, *state[2];
    f32 *delta;      /* gradient or pseudo-gradient; the update may overwrite it */
    const f32 *base; /* the weights that the worker had pulled; NULL unless the policy keeps them */
    f64 value;       /* of the policy */
};

struct store_policy {
    const char *name; /* the word of --store */
    const char *help;
    f64 least, most, usual; /* range of the number behind the colon; most 0 = it takes none */
    const char *number;     /* what that number is: "rounds", "steps", .. */
    i64 staleness;          /* rounds that a worker may be ahead of the slowest one; 0 = synchronous; STORE_BY_VALUE */
    i64 local;              /* local steps between two pushes; STORE_BY_VALUE */
    const char *worker;     /* worker optimiser; NULL = the one of --optim where local steps are made, else none */
    const char *server;     /* server optimiser; NULL = --optim for gradients, sgd (averaging) for differences of weights */
    f32 server_lr;          /* 0 = --lr for gradients, 1 for differences of weights */
    f32 server_momentum;    /* of sgd as the server optimiser */
    bool keeps_base;        /* servers keep what each worker pulled */
    bool own_weights;       /* a worker goes on from its own weights; `elastic` of their distance to the centre is pushed */
    bool shared;            /* threads of one process update one vector (store/shared.h); no servers */
    const char *pipeline; /* the plan's messages do it, by this policy of --pipeline; NULL = --pipeline says (sync), or a store */
    bool plain;           /* no servers are needed: the plan's messages do it */
    bool chooses;         /* sets staleness and local steps of each leg (learn/store/choose.c) */
    void (*update)(const struct store_update *u); /* NULL = the server optimiser on delta */
};

/* A policy with its number: "ssp:3". */
struct store_choice {
    const struct store_policy *policy;
    f64 value;
};

const struct store_policy *store_policy_find(const char *name);
/* "sync", "ssp:3", "local:64"; E103 with the range, or with the nearest name. */
err store_policy_parse(const char *text, struct store_choice *out);

static inline i64 store_staleness(const struct store_choice *c) {
    return c->policy->staleness == STORE_BY_VALUE ? (i64)c->value : c->policy->staleness;
}
static inline i64 store_local_steps(const struct store_choice *c) {
    return c->policy->local == STORE_BY_VALUE ? (i64)c->value : c->policy->local;
}

#endif
