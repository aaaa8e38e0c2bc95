/* step.h - one training or forward step of a network: its kernels, bound to a plan and run by exec.
 *
 *     netplan.h  what a step does          step.h  the step, bound          exec/exec.h  order and place of its tasks
 *
 * One caller at a time.  After step_bind a step makes no heap allocation (a test counts). */
#ifndef STRETTO_STEP_STEP_H
#define STRETTO_STEP_STEP_H

#include "exec/exec.h"
#include "exec/policy.h"
#include "model/optim/optim.h"
#include "step/netplan.h"

struct step;
struct chain_trace;
struct comm;

/* Weights and optimiser state, shared by the training and the forward step of one model.  Owned by the caller. */
struct store {
    i64 ntheta, nderived;
    f32 *theta, *derived, *state[2];
    const struct optim *optim;
};
err store_new(const struct net *n, const struct optim *optim, struct store *out); /* zeroed; optim NULL = forward only */
void store_free(struct store *s);

/* Binds the plan to memory and workers.  With several ranks in comm this process is one of them: it does what the plan places on
 * its rank, and the ranks step together.  Weights, losses and norms are the same on all ranks after a step; optimiser state is
 * where its range is updated (exec_gather).  comm NULL = all devices of the plan are here; policy NULL = overlap.
 * E1 where plan, net and store disagree; E401 where the policy does not fit; E601 without memory. */
err step_bind(const struct plan *p, const struct net *n, const struct kern *k, struct pool *pool, struct store *store,
              struct comm *comm, const struct policy *policy, struct step **out);
void step_free(struct step *s);               /* NULL is fine */
struct exec *step_exec(const struct step *s); /* for traces, messages and load; owned by the step */

struct step_args {
    f32 *const *input; /* [nbuf of the net]: storage for the input buffers, NULL for the others; borrowed for the step */
    f32 loss_scale;    /* 1 / present target cells */
    u64 seed;
    bool warm; /* time slices begin from what the slices before them left in the step before (or step_chain_load) */
    u32 step;
    struct optim_hyper hyper; /* grad_scale is set by the step (clip) */
    f64 clip;                 /* 0 = none; else the global gradient norm is limited to this */
    bool hold;       /* leave the gradient in step_grad, neither clip nor update: a parameter store applies it (store/store.h) */
    bool accumulate; /* keep the gradient for the next step, which adds to it, and do not update (gradient accumulation) */
};
err step_run(struct step *s, const struct step_args *a, struct exec_result *out);

/* Ends what is under way; with delay1 makes the update that is due: the weights are those after all steps. */
err step_settle(struct step *s, struct exec_result *out);
/* The same, but the coming step still computes with the weights as they are: the state is after the update, theta the weights
 * that go with it (borrowed until the next call); NULL = no update is due. */
struct step_ahead {
    const f32 *theta;
    f64 loss, norm;
};
err step_look_ahead(struct step *s, struct step_ahead *out);
void step_set_ahead(struct step *s, const struct step_ahead *a); /* forgets what was due and goes on from this */

const f32 *step_buf(const struct step *s, i32 buf); /* a buffer of the net after the step: [T][B][Fp] */
const f32 *step_grad(const struct step *s);         /* [ntheta] merged gradient of the last training step */
/* [ntheta / LINE_FLOATS] lines of the plan's tables that the gradient touches, a byte each (exec/sparse_rows.h); NULL = no tables. */
const u8 *step_marks(const struct step *s);
i64 step_bytes(const struct step *s);               /* that it and its store hold (compare with plan->peak_bytes) */
/* After a step that was not finite: the first place, in order of the ops, where a number is not, e.g. `input "x": row 7, step 1,
 * feature 3` or `gradient of "lstm.0"`.  false when everything is finite.  Slow: for messages. */
bool step_nonfinite(const struct step *s, char where[160]);

/* The chain of an op whose rows are time slices, as it went in the last step; NULL where there is none. */
const struct chain_trace *step_chain(const struct step *s, i32 op, bool backward);
/* What each slice of the op left at its end: floats of one row (0 = the op is no chain), out of and into row `row`. */
i32 step_chain_state(const struct step *s, i32 op);
void step_chain_save(const struct step *s, i32 op, i32 row, f32 *to);
void step_chain_load(struct step *s, i32 op, i32 row, const f32 *from);
/* Where fewer workers than devices run chains: the rows of each member by themselves, as they would be on a worker of their own,
 * so that spans say what a plan for more cores would take (simulate.h).  Slower; the bits are the same. */
void step_apart(struct step *s, bool on);

#endif
