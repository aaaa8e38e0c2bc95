/* exec.h - runs a plan for any client: binds every buffer once, then steps without allocating.
 *
 *     worker 0   task task task ...      one queue per worker, in plan order
 *     worker 1   task task ...           a task waits until other workers and messages have done what it depends on
 *
 * exec knows tasks, buffers, messages and devices; kernels are the client's (client.h).  What moves when, between ranks, is the
 * store policy's choice (policy.h); in which form a message goes, the codec's (codec.h); what a device is, its type's
 * (dev/dev.h).
 *
 * One caller at a time; worker threads belong to the pool.  After exec_bind a step makes no heap allocation (a test counts). */
#ifndef STRETTO_EXEC_EXEC_H
#define STRETTO_EXEC_EXEC_H

#include "base/pool.h"
#include "exec/client.h"

struct exec;
struct comm;
struct comm_message;
struct policy;

struct exec_job {
    const struct plan *plan; /* borrowed until exec_free */
    struct client client;    /* copied; what it points to is borrowed */
    struct pool *pool;
    struct comm *comm;           /* NULL or one rank = every device of the plan is in this process */
    const struct policy *policy; /* NULL = overlap */
    i32 slices;                  /* time slices that ranks share; then kernels may call exec_round, which some policies refuse */
    void *const *lent;           /* [nbuf] memory of the lent buffers; entries may change between steps (exec_lend) */
};
/* E401 where the policy does not fit, E601 without memory; else the client's own error. */
err exec_bind(const struct exec_job *job, struct exec **out);
void exec_free(struct exec *x);                    /* NULL is fine */
void exec_lend(struct exec *x, u32 buf, void *at); /* where a lent buffer is from the next step on */

/* One step.  number: of the step, for fault injection and the record of ranks.  keep: a gradient is kept for the next step to add
 * to (messages with MESSAGE_KEEP go). */
err exec_step(struct exec *x, u32 number, bool keep, struct exec_result *out);
/* Ends what the policy still has under way: all messages, and with delay1 the update that is due; out as of exec_step. */
err exec_settle(struct exec *x, struct exec_result *out);
/* With ranks, and policy overlap, buffers that others wrote may still be on their way when a step returns; the next step waits
 * for each before it reads it.  Call this before reading such a buffer, or sending something, between two steps. */
err exec_quiet(struct exec *x);
/* delay1: makes the update that is due, but the coming step still computes with the weights as they are.  True through *due where
 * there is one; its weights are then in exec_twin. */
err exec_look_ahead(struct exec *x, bool *due, struct exec_result *out);
/* Forgets what was due.  due: goes on as if an update with this result were in exec_twin. */
void exec_set_ahead(struct exec *x, bool due, const struct exec_result *r);
void *exec_twin(const struct exec *x, u32 buf); /* the second copy of a buffer with `twin`; NULL = the policy keeps none */

void *const *exec_mem(const struct exec *x);        /* [nbuf] of the step that is computed */
void *const *exec_mem_summed(const struct exec *x); /* [nbuf] of the step that was summed last */
u64 exec_serial(const struct exec *x);              /* steps since exec_bind */
bool exec_alone(const struct exec *x);              /* member 0 of each team does the work of all */
/* Rows of the batch that tasks of this rank work on, [*b0, *b1). */
void exec_rows(const struct exec *x, i32 *b0, i32 *b1);
bool exec_is_ours(const struct exec *x, const struct task *t); /* this rank runs it */
/* The first task of t's team that this process runs, and how many it runs. */
const struct task *exec_team(const struct exec *x, const struct task *t, i32 *n);
struct comm *exec_comm(const struct exec *x); /* NULL = one rank */

/* For kernels that talk to other ranks within a task: hands n messages to the agent and waits until all have gone or come.
 * False = a rank is lost.  Only where exec_job.slices is set. */
bool exec_round(void *exec, struct comm_message *m, i32 n);

/* Seconds that a row costs a device of this rank, median of the last steps, without waiting; 0 = not known yet, or one rank. */
f64 exec_row_seconds(const struct exec *x);
err exec_gather(struct exec *x);      /* buffers with MESSAGE_GATHER go home; all ranks call it */
i64 exec_bytes(const struct exec *x); /* that it holds; lent buffers not */

/* What this rank has sent in its steps since it was bound, and what it would have been without codecs; `coded` is the part of
 * both that a codec packed. */
struct exec_sent {
    i64 steps, bytes, whole, coded, coded_whole;
};
struct exec_sent exec_sent(const struct exec *x);

/* What codecs have dropped so far (codec.h), as one vector of all ranks: each rank has the part of the messages that it sends. */
struct exec_residuals {
    i64 *first; /* [ranks + 1]: rank k has elements [first[k], first[k+1]); NULL = one rank */
    i64 floats; /* of all ranks */
    i64 key;    /* hash of the messages and their sizes: vectors with equal keys have the same layout */
};
struct exec_residuals exec_residuals(const struct exec *x);
/* Copy this rank's part to its place in the vector `to`, and back; from NULL = zeros.  Between two steps, after exec_quiet. */
void exec_save_residuals(const struct exec *x, f32 *to);
void exec_load_residuals(struct exec *x, const f32 *from);

/* Spans of the last steps, for the report's timeline and Chrome traces. */
struct task_span {
    i32 worker;
    u32 task; /* of the plan; tasks of `blocks` kernels that ran together are the first of them */
    char name[32];
    f64 t0, t1; /* seconds since exec_bind; on virtual devices: of their clock */
};
void exec_trace(struct exec *x, bool on); /* keeps the last ring of spans; off by default */
i32 exec_spans(const struct exec *x, struct task_span *out, i32 max);
/* Virtual devices: seconds of the last step on their clock; 0 where devices run in real time. */
f64 exec_virtual_seconds(const struct exec *x);

#endif
