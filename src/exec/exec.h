/* exec.h - runs a plan for any client: binds every buffer once, then steps without allocating.
 *
 *     worker 0   task task task ...      one queue per worker, in plan order
 *     worker 1   task task ...           a task waits until other workers and messages have done what it depends on
 *
 * exec knows tasks, buffers, messages and devices; kernels are the client's (client.h).  What moves when, between ranks, is the
 * message policy's choice (policy.h); in which form a message goes, the codec's (codec.h); what a device is, its type's
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
    struct comm *comm;           /* NULL or one rank = this process has every device of the plan */
    const struct policy *policy; /* NULL = overlap */
    i32 slices;                  /* time slices shared by ranks; then kernels may call exec_round, which some policies reject */
    void *const *lent;           /* [nbuf] memory of the lent buffers; entries may change between steps (exec_lend) */
};
/* E401 if the policy does not fit, E601 without memory, or the client's own error. */
err exec_bind(const struct exec_job *job, struct exec **out);
void exec_free(struct exec *x);                    /* NULL is fine */
/* Address of a lent buffer from the next step on, for kernels.  Messages keep the one of exec_bind: a buffer that ranks send each
 * other stays where it was lent. */
void exec_lend(struct exec *x, u32 buf, void *at);

/* Runs a step. number: of the step, for fault injection and the flight record. keep: the gradient is kept for the next step
 * to add to (messages with MESSAGE_KEEP are sent). */
err exec_step(struct exec *x, u32 number, bool keep, struct exec_result *out);
/* Completes what the policy has pending: all messages, and with delay1 the update; out as of exec_step.  Every rank then has all
 * of a buffer with the home HOME_READERS: weights. */
err exec_settle(struct exec *x, struct exec_result *out);
/* With ranks and policy overlap, buffers that other ranks wrote may still be in transit when a step returns; the next step
 * waits for each before it reads it. Call this before reading such a buffer, or sending messages, between two steps. */
err exec_quiet(struct exec *x);
/* delay1: computes the pending update, but the next step still uses the current weights. *due: there was one; its weights
 * are then in exec_twin. */
err exec_look_ahead(struct exec *x, bool *due, struct exec_result *out);
/* Drops the pending update. due: continues as if an update with this result were in exec_twin. */
void exec_set_ahead(struct exec *x, bool due, const struct exec_result *r);
void *exec_twin(const struct exec *x, u32 buf); /* the second copy of a buffer with `twin`; NULL = the policy keeps none */

/* Brings what a step left in the memory of a device to the host: one buffer, to be read.  Nothing to do where memory is the
 * host's.  Lent buffers: exec_quiet. */
err exec_look(struct exec *x, u32 buf);
/* Copies lent buffers that a step has written back from the memory of a device.  The host may then change them: the next step
 * takes the host's copy.  exec_quiet, exec_settle and exec_gather do it too; this one sends no messages. */
err exec_bring(struct exec *x);
/* After a step that changed no lent buffer, or where its changes are not wanted: the host's copies are the current ones. */
void exec_host_wrote(struct exec *x);
err exec_failed(const struct exec *x); /* the first failure of its device, or 0 */
void *const *exec_mem(const struct exec *x);        /* [nbuf] of the step that is computed */
void *const *exec_mem_summed(const struct exec *x); /* [nbuf] of the step that was summed last */
u64 exec_serial(const struct exec *x);              /* steps since exec_bind */
bool exec_alone(const struct exec *x);              /* member 0 of each team does the work of all */
/* Rows of the batch that tasks of this rank work on, [*b0, *b1). */
void exec_rows(const struct exec *x, i32 *b0, i32 *b1);
bool exec_is_ours(const struct exec *x, const struct task *t); /* true if this rank runs the task */
/* The first task of t's team that this process runs, and how many it runs. */
const struct task *exec_team(const struct exec *x, const struct task *t, i32 *n);
struct comm *exec_comm(const struct exec *x); /* NULL = one rank */

/* For kernels that exchange messages within a task: passes n messages to the agent and waits until all are complete. False
 * = a rank is lost. Only if exec_job.slices is set. */
bool exec_round(void *exec, struct comm_message *m, i32 n);

/* Seconds per row of a device of this rank without waiting, median of the last steps; 0 = not yet known, or one rank. */
f64 exec_row_seconds(const struct exec *x);
err exec_gather(struct exec *x);      /* sends buffers with MESSAGE_GATHER to their home rank; collective */
/* The ranges of a buffer that tasks of this rank use, in order, none next to another; all of it where a step leaves it on every
 * rank.  In the arena; E601. */
err exec_held(const struct exec *x, u32 buf, struct arena *a, struct plan_range **out, i32 *n);
/* Gives the memory of this rank's buffers back to the system until the next step.  After exec_quiet; not while a gradient is
 * kept for the next step. */
void exec_rest(struct exec *x);
i64 exec_bytes(const struct exec *x); /* memory of the exec without lent buffers */

/* Bytes that this rank has sent since the bind, and that it would have sent without codecs; `coded` is the part of both
 * that a codec packed. */
struct exec_sent {
    i64 steps, bytes, whole, coded, coded_whole;
};
struct exec_sent exec_sent(const struct exec *x);

/* What codecs have dropped so far (codec.h), as one vector over all ranks: each rank holds the part for the messages that
 * it sends. */
struct exec_residuals {
    i64 *first; /* [ranks + 1]: rank k has elements [first[k], first[k+1]); NULL = one rank */
    i64 floats; /* of all ranks */
    i64 key;    /* hash of the messages and their sizes: vectors with equal keys have the same layout */
};
struct exec_residuals exec_residuals(const struct exec *x);
/* Copy this rank's part to its place in the vector `to`, and back; from NULL = zeros. Call between two steps, after
 * exec_quiet. */
void exec_save_residuals(const struct exec *x, f32 *to);
void exec_load_residuals(struct exec *x, const f32 *from);

/* Spans of the last steps, for the report's timeline and Chrome traces. */
struct task_span {
    i32 worker;
    u32 task; /* of the plan; for `blocks` tasks that ran together, the first one */
    char name[32];
    f64 t0, t1; /* seconds since exec_bind; on virtual devices: of their clock */
    bool copy;  /* between host and device; no task then, and `worker` is the lane, the last one for messages */
};
void exec_trace(struct exec *x, bool on); /* records spans in a ring; off by default */
i32 exec_spans(const struct exec *x, struct task_span *out, i32 max);
/* The newest span of each task of this rank, last [ntask]; t1 0: of another rank, or ran with another task (`blocks`).  False: a
 * worker has more tasks than the trace keeps. */
bool exec_step_spans(const struct exec *x, struct plan_span *last);
/* The copies to and from a device in those steps, from `since` on; 0 where memory is the host's. */
i32 exec_copies(const struct exec *x, f64 since, struct task_span *out, i32 max);
/* Duration of the last step on virtual devices, by their clock; 0 for real devices. */
f64 exec_virtual_seconds(const struct exec *x);

#endif
