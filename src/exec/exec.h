/* exec.h - runs a plan: binds every buffer once, then steps without allocating.
 *
 * One caller at a time; worker threads belong to the pool.  After exec_bind a step makes no heap allocation (a test counts). */
#ifndef STRETTO_EXEC_EXEC_H
#define STRETTO_EXEC_EXEC_H

#include "base/pool.h"
#include "model/optim/optim.h"
#include "step/netplan.h"

struct exec;
struct comm;
struct chain_trace;

/* Weights and optimiser state, shared by the training and the forward exec of one model.  Owned by the caller. */
struct store {
    i64 ntheta, nderived;
    f32 *theta, *derived, *state[2];
    const struct optim *optim;
};
err store_new(const struct net *n, const struct optim *optim, struct store *out); /* zeroed; optim NULL = forward only */
void store_free(struct store *s);

err exec_bind(const struct plan *p, const struct net *n, const struct kern *k, struct pool *pool, struct store *store,
              struct exec **out);
/* The same for one rank of the plan: comm's rank does what the plan places there, and the ranks step together.  Weights, losses
 * and norms are the same on all of them after a step; optimiser state is where its range is updated (exec_gather). */
err exec_bind_rank(const struct plan *p, const struct net *n, const struct kern *k, struct pool *pool, struct store *store,
                   struct comm *comm, struct exec **out);
/* Rows of the batch that this process's tasks look at, [*b0, *b1): all of them where there is one rank. */
void exec_rows(const struct exec *x, i32 *b0, i32 *b1);
/* When ranks send each other what: while they compute, after it, or (delay1) while they compute the next step, which then has the
 * weights that the update of the step before has not reached yet.  OVERLAP and LINEAR have the same bits, DELAY1 has others: any
 * number of ranks and threads the same ones, one included. */
enum exec_pipe { PIPE_OVERLAP, PIPE_LINEAR, PIPE_DELAY1 };
err exec_pipe_fits(enum exec_pipe pipe, i32 slices, i32 ranks); /* E401: not for these slices of time */
err exec_bind_pipe(const struct plan *p, const struct net *n, const struct kern *k, struct pool *pool, struct store *store,
                   struct comm *comm, enum exec_pipe pipe, struct exec **out);
/* With ranks, and PIPE_OVERLAP, weights that others moved may still be on their way when a step returns: the next one waits for
 * those of a layer when it comes to it.  Whoever else looks at the store, or sends something himself, asks for quiet before. */
err exec_quiet(struct exec *x);
/* Seconds that a row costs a device of this rank, median of the last steps, without waiting; 0 = not known yet, or alone. */
f64 exec_row_seconds(const struct exec *x);
err exec_gather(struct exec *x); /* the whole optimiser state to rank 0; all ranks call it */
void exec_free(struct exec *x);

/* What this rank has sent in its steps since it was bound, and what it would have been if gradients of tables went whole; `lines`
 * is the part of both that is theirs. */
struct exec_sent {
    i64 steps, bytes, whole, lines, lines_whole;
};
struct exec_sent exec_sent(const struct exec *x);

struct exec_step {
    f32 *const *input; /* [nbuf of the net]: storage for the input buffers, NULL for the others; borrowed for the step */
    f32 loss_scale;    /* 1 / present target cells */
    u64 seed;
    bool warm; /* slices of time begin from what the slices before them left in the step before (or exec_chain_load) */
    u32 step;
    struct optim_hyper hyper; /* grad_scale is set by the step (clip) */
    f64 clip;                 /* 0 = none; else the global gradient norm is limited to this */
    bool accumulate; /* keep the gradient for the next step, which adds to it, and do not update (gradient accumulation) */
};

struct exec_result {
    f64 loss;      /* sum of losses * loss_scale */
    f64 grad_norm; /* before clipping; 0 for a forward plan */
    bool finite;   /* loss and norm are finite; when false the update was not made */
    bool none;     /* delay1: there was no step before, nothing is known of this one yet; else all is of the step before */
};

err exec_step(struct exec *x, const struct exec_step *s, struct exec_result *out);
/* Quiet, and with delay1 the update that is due: the weights are those after all steps; out as of exec_step. */
err exec_settle(struct exec *x, struct exec_result *out);
/* The same, but the step to come still has the weights as they are, for whoever wants to go on as if nobody had looked: state is
 * after the update, theta the weights that go with it (lent until the next call of exec); NULL = no update is due. */
struct exec_ahead {
    const f32 *theta;
    f64 loss, norm;
};
err exec_look_ahead(struct exec *x, struct exec_ahead *out);
void exec_set_ahead(struct exec *x, const struct exec_ahead *a); /* what was due is forgotten; go on from this */
const f32 *exec_buf(const struct exec *x, i32 buf); /* a buffer of the net after the step: [T][B][Fp] */
const f32 *exec_grad(const struct exec *x);         /* [ntheta] merged gradient of the last training step */
/* After a step that was not finite: the first place, in order of the ops, where a number is not, e.g. `input "x": row 7, step 1,
 * feature 3` or `gradient of "lstm.0"`.  false when everything is finite.  Slow: for messages. */
/* The chain of an op whose rows are slices of time, as it went in the last step; NULL where there is none. */
const struct chain_trace *exec_chain(const struct exec *x, i32 op, bool backward);
/* What each slice of the op left at its end: floats of one row (0 = the op is no chain), out of and into row `row`. */
i32 exec_chain_state(const struct exec *x, i32 op);
void exec_chain_save(const struct exec *x, i32 op, i32 row, f32 *to);
void exec_chain_load(struct exec *x, i32 op, i32 row, const f32 *from);
bool exec_nonfinite(const struct exec *x, char where[160]);
i64 exec_bytes(const struct exec *x); /* bytes it holds (compare with plan->peak_bytes) */

/* Spans of the last steps: lane = worker, for the report's timeline and Chrome traces. */
struct task_span {
    i32 lane;
    u32 task; /* of the plan; merges of one range that are done together are the first of them */
    char name[32];
    f64 t0, t1; /* seconds since exec_bind */
};
/* Where fewer workers than devices run chains: the rows of each member by themselves, as they would be on a worker of their own,
 * so that spans say what a plan for more cores would take (plan/simulate.h).  Slower; the bits are the same. */
void exec_apart(struct exec *x, bool on);
void exec_trace(struct exec *x, bool on); /* keeps the last ring of spans; off by default */
i32 exec_spans(const struct exec *x, struct task_span *out, i32 max);

#endif
