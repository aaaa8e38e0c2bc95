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
    f32 loss_scale;    /* 1 / number of target cells that are present */
    u64 seed;
    bool warm; /* time slices start from the final states of the previous step (or step_chain_load) */
    u32 step;
    struct optim_hyper hyper; /* grad_scale is set by the step (clip) */
    f64 clip;                 /* 0 = none; else the global gradient norm is limited to this */
    bool hold;       /* leave the gradient in step_grad, neither clip nor update: a parameter store applies it (store/store.h);
                      * the weights are then the host's to change */
    bool accumulate; /* keep the gradient for the next step, which adds to it, and do not update (gradient accumulation) */
};
err step_run(struct step *s, const struct step_args *a, struct exec_result *out);

/* Completes pending messages; with delay1 also the pending update: the weights then include all steps. */
err step_settle(struct step *s, struct exec_result *out);
err step_quiet(struct step *s); /* completes messages of the last step alone: the weights of step_held are those after it */
/* The same, but the next step still computes with the current weights: the state is after the update, theta holds the
 * weights that belong to it (borrowed until the next call); NULL = no update is pending. */
struct step_ahead {
    const f32 *theta;
    f64 loss, norm;
};
err step_look_ahead(struct step *s, struct step_ahead *out);
void step_set_ahead(struct step *s, const struct step_ahead *a); /* replaces the pending update by this one */

/* Weights that a forward step uses from now on in place of those in its store, which holds this pointer then; borrowed. */
void step_lend_weights(struct step *s, f32 *theta);

/* A device may fail to give these: step_failed then says so, and what they hold is void. */
const f32 *step_buf(const struct step *s, i32 buf); /* a buffer of the net after the step: [T][B][Fp] */
const f32 *step_grad(const struct step *s);         /* [ntheta] merged gradient of the last training step */
err step_failed(const struct step *s);              /* the first failure of the device, or 0 */
/* The ranges of the weights that tasks of this rank use, in order: all of them, unless ranks run different layers.  Outside of
 * these the weights are those of the last step_settle.  Owned by the step. */
const struct plan_range *step_held(const struct step *s, i32 *n);
/* [ntheta / LINE_FLOATS] lines of the plan's tables that the gradient touches, a byte each (exec/sparse_rows.h); NULL = no
 * tables. */
const u8 *step_marks(const struct step *s);
/* That the step and its store hold (compare with plan->peak_bytes); of the store: weights, and the state and copies of weights of
 * this rank's ops. */
i64 step_bytes(const struct step *s);
i64 step_store_bytes(const struct step *s);
i64 step_held_floats(const struct step *s); /* of step_held */
/* After a non-finite step: the first position, in order of the ops, with a non-finite number, e.g. `input "x": row 7, step
 * 1, feature 3` or `gradient of "lstm.0"`. false if all are finite. Slow: for messages. */
bool step_nonfinite(const struct step *s, char where[160]);

/* The trace of an op whose rows are time slices, for the last step; NULL if it is no chain. */
const struct chain_trace *step_chain(const struct step *s, i32 op, bool backward);
/* The final state of each slice of the op: number of floats per row (0 = the op is no chain); copy out of and into row
 * `row`. */
i32 step_chain_state(const struct step *s, i32 op);
void step_chain_save(const struct step *s, i32 op, i32 row, f32 *to);
void step_chain_load(struct step *s, i32 op, i32 row, const f32 *from);
/* With fewer workers than devices: runs the rows of each member of a chain separately, as on a worker of its own, so that
 * spans show the time of a plan for more cores (simulate.h). Slower; the bits are the same. */
void step_apart(struct step *s, bool on);

#endif
