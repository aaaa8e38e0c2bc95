/* comm.h - the ranks of a run and the messages between them: point-to-point, small collectives, waiting with a deadline,
 * elastic recovery.
 *
 *     worker threads                    agent (one thread per rank)                   transport
 *     comm_begin(job) ---------------->  runs the job: sends, receives, waits  ---->  mpi
 *     comm_end -> err  <----------------  first failure of the job
 *
 *     comm_begin(job) .. comm_end, which runs the job itself  --------------------->  threads | shared memory (shm.c)
 *
 * Only the agent calls a network transport: MPI requires one thread, and workers never wait for it. If all ranks share memory,
 * messages arrive without being driven, so there is no agent that would take a core from a worker.
 *
 * Messages of a pair of ranks and a channel arrive in the order in which they were sent. Sender and receiver know beforehand
 * what each message is. Each message carries a header that says so; the first header that differs fails the run with E804,
 * whose text quotes both. Every wait has a deadline.
 *
 * One struct comm per rank. Ranks are threads of one process (tests, --ranks) or processes under MPI. */
#ifndef STRETTO_COMM_COMM_H
#define STRETTO_COMM_COMM_H

#include "base/err.h"

struct comm;
struct transport;
struct sink;

enum { COMM_RANKS = 1024, COMM_NAME = 24, COMM_HOST = 64, COMM_PATH = 512, COMM_FOLDER = 4097 };
#define COMM_HASH ((u64)0xcbf29ce484222325)

/* The header of a message: equal on both sides. */
struct comm_head {
    u64 serial;           /* number of the exchange (a training step), counted by both sides */
    u32 number;           /* position in the exchange */
    u32 bytes;
    char name[COMM_NAME]; /* name for error messages: "grad.0", "theta" */
};

/* The channels are independent queues. STEP: messages that follow from the plan; ROUND: messages inside a task (time slices),
 * and those of a parameter store. */
enum comm_channel { CHANNEL_STEP, CHANNEL_ROUND, COMM_CHANNELS };

/* A message in flight. The caller owns it and must not touch it until comm_test reports that it is done. */
struct comm_message {
    struct comm_head head;
    void *data; /* head.bytes */
    i32 peer;
    u8 channel; /* enum comm_channel */
    bool sends, started, done;
    bool fewer; /* receive only: head.bytes is a maximum; when done, the actual size */
    bool moved; /* progress was made since the last comm_poll */
    bool noted; /* its start is in the flight record */
    u64 inside[8]; /* private to the transport */
};

/* Identity of a rank. */
struct comm_rank_info {
    i32 rank, pid;
    bool unwatched; /* STRETTO_WATCH=off was set for it */
    char host[COMM_HOST];
};

/* Ranks as threads of this process: out[size], one handle each; the caller frees all. */
err comm_threads(i32 size, struct comm **out);
/* This process as a rank of the MPI job that started it (comm_launched); *out = NULL if there is none. E803 with the reason if
 * it cannot join. */
err comm_mpi(struct comm **out);
/* The launcher of this process: "mpirun of Open MPI", "Slurm (pmix)", .. with the number of ranks it announced; NULL = none. */
const char *comm_launched(i32 *size);
i32 comm_launched_rank(void);    /* 0 without a launcher */
/* MPI library of the launcher: "openmpi", "mpich" or NULL; STRETTO_MPI overrides it */
const char *comm_mpi_library(void);
/* comm_plugin: path of the plug-in for an MPI library. comm_plugin_loads: tries to load it in a child process; `why` receives
 * the loader's message. */
bool comm_plugin(const char *flavour, char path[COMM_PATH]);
bool comm_plugin_loads(const char *path, char why[COMM_PATH]);
/* Any other transport (mpi.c); on failure the transport is closed. */
err comm_new(const struct transport *t, void *self, i32 rank, i32 size, struct comm **out);
err comm_connect(struct comm *c); /* exchanges host and pid; all ranks call it once, before anything else */
/* Elastic recovery.  All ranks call comm_allow_recovery once.  From then on the death of a rank fails the waits of the others
 * (E801, comm_died), and comm_recover forms a new group of the surviving ranks: renumbered in the old order, with no message of
 * before in flight.  E803 if the transport does not support it. */
struct comm_loss {
    i32 n, was;              /* ranks that died since the last recovery; number of ranks before */
    i32 rank[COMM_RANKS];    /* their numbers at that time, increasing */
    struct comm_rank_info who;  /* the first of them, as known at comm_connect */
    f64 seconds;             /* from detection on this rank until all survivors have agreed */
};
err comm_allow_recovery(struct comm *c);
bool comm_died(const struct comm *c); /* a rank has died and recovery is possible; false for NULL */
err comm_recover(struct comm *c, struct comm_loss *out);
/* All is done: kills ranks of this host that are stopped (SIGSTOP), for which the launcher would wait. Only with recovery. */
void comm_end_stopped(struct comm *c);
void comm_succeed(struct comm *c); /* marks success: a rank that is freed without it counts as failed and does not wait for the
                                    * others */
void comm_free(struct comm *c); /* stops the agent and waits for it; NULL is allowed */

i32 comm_rank(const struct comm *c); /* 0 for NULL */
i32 comm_size(const struct comm *c); /* 1 for NULL */
const char *comm_transport(const struct comm *c);
/* True if there is no agent: comm_end runs the job. Before that, any idle worker may call comm_post, comm_test, comm_poll and
 * comm_idle instead, one thread at a time. */
bool comm_direct(const struct comm *c);
/* Zeroed memory for data that is sent often: ranks of this host can read it in place. NULL after E601. c may be NULL. */
void *comm_alloc(struct comm *c, size_t bytes);
void comm_release(struct comm *c, void *p);
void comm_zero(struct comm *c, void *p); /* zeroes the memory; its pages go back to the system until they are touched again */
const struct comm_rank_info *comm_rank_info(const struct comm *c, i32 rank);
/* Sets the longest wait for a message; 0 = clock_deadline(). Returns the previous value; NULL has none. */
f64 comm_set_deadline(struct comm *c, f64 seconds);
/* Minimum sleep of comm_idle if no message is awaited (at most two milliseconds): polling disturbs a worker. */
void comm_set_idle_sleep(struct comm *c, f64 seconds);
/* From any thread: wakes the agent, because something it may not have seen is ready. No effect without an agent. */
void comm_wake(struct comm *c);
/* Callback: what is known of a rank that does not answer ("in phase train at step 812, 41 s ago"), for the text of E801; empty
 * if nothing. Returns the time of its last sign of life, on any clock; 0 = unknown. Runs on any thread of the rank:
 * the agent, the watchdog, the one that aborts; so it is set before the first message. */
typedef f64 comm_hint(void *self, i32 rank, char *text, size_t size);
i32 comm_local_size(const struct comm *c); /* number of ranks on this host, including this one */
void comm_set_hint(struct comm *c, comm_hint *hint, void *self);

/* STRETTO_WATCH=off disables the flight recorder, the watchdog, status records and the weight hash, so that their cost can be
 * measured. requested: the setting of this process; watched: false only if all connected ranks disabled it. */
bool comm_watch_requested(void);
bool comm_watched(const struct comm *c);
/* Folder of the flight records (flight.h): a rank that fails, or makes no progress for three quarters of the deadline
 * (watch.h), writes its last events and the stacks of its threads to FOLDER/flight/rank-N.txt. NULL = nowhere. */
void comm_set_record_folder(struct comm *c, const char *folder);
void comm_delete_records(const char *folder); /* deletes the records of a previous run */
struct sink comm_sink(struct comm *c); /* event sink that records the phases of the run */
/* Start of a training step (describe != NULL) or its end. Until the end any thread may call `describe`, which writes lines on
 * what the workers are doing; it may read only values that workers publish. */
typedef void comm_describe(void *self, char *text, size_t size);
void comm_set_step(struct comm *c, u64 exchange, i64 step, comm_describe *describe, void *self);

/* Hands a job to the agent (comm_begin) and waits for it (comm_end). The job may use comm_post, comm_test and comm_idle. One
 * job at a time. */
typedef err comm_job(struct comm *c, void *arg);
void comm_begin(struct comm *c, comm_job *job, void *arg);
err comm_end(struct comm *c);

/* For jobs, on the agent's thread (or on the caller's without an agent). */
err comm_post(struct comm *c, struct comm_message *m);             /* starts to send or receive */
err comm_test(struct comm *c, struct comm_message *m, bool *done); /* E804 if the headers differ */
/* Polls n messages once and starts those not yet started. *moved: some progress was made; *waiting: a message that is not done,
 * unchanged if all are. */
err comm_poll(struct comm *c, struct comm_message *m, i32 n, bool *moved, const struct comm_message **waiting);
/* Restarts the waiting time: for callers that poll between two tasks. */
void comm_reset_wait(struct comm *c);
/* Call in every iteration of a waiting loop, with the awaited message (NULL: none from other ranks). Spins, yields or sleeps
 * without progress. Fails with E801 after the deadline, or when another rank has aborted or died. */
err comm_idle(struct comm *c, bool moved, const struct comm_message *waiting);
/* Fails where another rank has aborted or died: for jobs that have nothing to wait for. */
err comm_check(struct comm *c);
err comm_wait(struct comm *c, struct comm_message *m, i32 n); /* comm_poll and comm_idle in a loop until all n are done */

void comm_cancel(struct comm *c); /* cancels the messages of a failed job; comm_end does it too */

/* Small collectives, from any thread while no job runs. All ranks call them in the same order.
 *   allgather        `bytes` of every rank, in order of rank, into all [size][bytes]
 *   check_equal      E804 unless all ranks pass the same number; what: "options", "data file"; fix may be NULL
 *   broadcast        data of rank 0 to all, in messages of at most 64 MiB; broadcast_from: data of `root`
 *   broadcast_slow   the same after work of unknown length on rank 0. The wait ends if rank 0 shows no sign of life (the hint)
 *                    for ten times the deadline (60 s at least); without a hint, after sixty times as long */
err comm_allgather(struct comm *c, const char *name, const void *mine, u32 bytes, void *all);
err comm_check_equal(struct comm *c, const char *what, u64 number, const char *fix);
err comm_broadcast(struct comm *c, const char *name, void *data, i64 bytes);
err comm_broadcast_from(struct comm *c, i32 root, const char *name, void *data, i64 bytes);
err comm_broadcast_slow(struct comm *c, const char *name, void *data, u32 bytes);
err comm_allgather_slow(struct comm *c, const char *name, const void *mine, u32 bytes, void *all); /* after work on any rank */
/* The error of the first rank that has one in e (the one last set there), on all ranks; 0 if none has.  All ranks wait for
 * all, as in comm_broadcast_slow. */
err comm_agree(struct comm *c, const char *name, err e);
/* The error that rank 0 has in e (the one last set), on all ranks, as after broadcast_slow; 0 if it has none. */
err comm_share_failure(struct comm *c, const char *name, err e);
/* Seconds of a small message from rank 0 to the last rank, and of a byte of a large one: the same numbers on all ranks. */
struct comm_link {
    f64 latency, per_byte;
};
err comm_measure_link(struct comm *c, struct comm_link *out);
/* Hash of data that must be equal on all ranks; before: COMM_HASH, or a hash to continue. */
u64 comm_hash(u64 before, const void *data, size_t bytes);

/* This rank has failed: ranks that wait for it fail at once with the error of this thread. Not sent if this rank fails because
 * another one aborted. Transports without abort leave it to the deadline. */
void comm_abort(struct comm *c);

#endif
