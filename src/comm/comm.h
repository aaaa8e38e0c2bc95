/* comm.h - the ranks of a run, and messages between them.
 *
 *     worker threads                    agent (one thread a rank)                     transport
 *     comm_begin(job) ---------------->  runs the job: sends, receives, waits  ---->  mpi
 *     comm_end -> err  <----------------  first failure of the job
 *
 *     comm_begin(job) .. comm_end, which runs the job itself  --------------------->  threads | memory of one host (near.c)
 *
 * Only the agent touches a network's transport (MPI wants that, and workers never wait for it).  Where all ranks share memory
 * there is nothing to be driven while others compute, and no agent, which would take a core from a worker at every look.
 * Messages of a pair of ranks and a channel arrive in the order in which they were sent; sender and receiver agree beforehand on
 * what each of them is, and every message carries a head that says so: the first one that differs ends the run with a sentence
 * that shows both sides (distributed.md 2.3).  No wait is without a deadline.
 *
 * One struct comm a rank; ranks are threads of one process (tests, --ranks) or processes under MPI. */
#ifndef STRETTO_COMM_COMM_H
#define STRETTO_COMM_COMM_H

#include "base/err.h"

struct comm;
struct transport;
struct sink;

enum { COMM_RANKS = 1024, COMM_NAME = 24, COMM_HOST = 64, COMM_PATH = 512, COMM_FOLDER = 4097 };
#define COMM_HASH ((u64)0xcbf29ce484222325)
#define COMM_DEADLINE 60.0 /* seconds without a message, where STRETTO_DEADLINE says nothing */

/* What a message is: equal on both sides. */
struct comm_head {
    u64 serial;           /* of the exchange it belongs to (a step), counted by both sides */
    u32 number;           /* its place there */
    u32 bytes;
    char name[COMM_NAME]; /* for people: "grad.0", "theta" */
};

/* Messages of one channel never wait for those of the other: STEP for what follows from a plan, ROUND for what ranks tell each
 * other while they are inside a task (slices of time). */
enum comm_channel { CHANNEL_STEP, CHANNEL_ROUND, COMM_CHANNELS };

/* A message on its way.  Owned by whoever sent or awaits it, and left alone until comm_test says that it is done. */
struct comm_message {
    struct comm_head head;
    void *data; /* head.bytes */
    i32 peer;
    u8 channel; /* enum comm_channel */
    bool sends, started, done;
    bool fewer; /* awaited: head.bytes is the most that may come; when done it is what came */
    bool moved; /* a part of it went through, and nobody has asked as yet */
    bool noted; /* that it began is in the flight record */
    u64 inside[8]; /* the transport's own */
};

/* Who is who. */
struct comm_rank_info {
    i32 rank, pid;
    bool unwatched; /* it was told to be (comm_watched) */
    char host[COMM_HOST];
};

/* Ranks as threads of this process: out[size], one each, all to be freed. */
err comm_threads(i32 size, struct comm **out);
/* This process as a rank of the MPI job that started it (comm_launched); *out = NULL when it is no such job.  E803 with the
 * reason when it is one and cannot be joined. */
err comm_mpi(struct comm **out);
/* Says who started us: "mpirun of Open MPI", "Slurm (pmix)", .. with the number of ranks that were promised; NULL = nobody. */
const char *comm_launched(i32 *size);
i32 comm_launched_rank(void);    /* 0 where nobody did */
const char *comm_mpi_library(
    void); /* the MPI library that goes with who started us: "openmpi", "mpich", or NULL; STRETTO_MPI is a demand */
/* The plug-in for a library: where its file is; whether the loader takes it, tried in a process of its own, and why not. */
bool comm_plugin(const char *flavour, char path[COMM_PATH]);
bool comm_plugin_loads(const char *path, char why[COMM_PATH]);
/* Any other transport (mpi.c); on failure the transport is closed. */
err comm_new(const struct transport *t, void *self, i32 rank, i32 size, struct comm **out);
err comm_connect(struct comm *c); /* learn everybody's name; all ranks call it once, before anything else */
/* Elastic recovery.  All ranks call comm_allow_recovery once.  From then on the death of a rank fails the waits of the others
 * (E801, comm_died), and comm_recover forms a new group of the surviving ranks: renumbered in the old order, with no message of
 * before in flight.  E803 if the transport does not support it. */
struct comm_loss {
    i32 n, was;              /* ranks that died since the last time; how many there were */
    i32 rank[COMM_RANKS];    /* the numbers they had, rising */
    struct comm_rank_info who;  /* the first of them, as it was when ranks met */
    f64 seconds;             /* from when this rank noticed until all that are left had met */
};
err comm_allow_recovery(struct comm *c);
bool comm_died(const struct comm *c); /* a rank has died, and the others can go on without it; false for NULL */
err comm_recover(struct comm *c, struct comm_loss *out);
void comm_succeed(struct comm *c); /* all is done: until then a rank that ends has failed, and does not wait for the others */
void comm_free(struct comm *c); /* waits for the agent; NULL is fine */

i32 comm_rank(const struct comm *c); /* 0 for NULL */
i32 comm_size(const struct comm *c); /* 1 for NULL */
const char *comm_transport(const struct comm *c);
/* There is no agent: a job is run by comm_end, and between the two whoever has nothing to do may call comm_post, comm_test,
 * comm_poll and comm_idle in its stead, one at a time. */
bool comm_direct(const struct comm *c);
/* Zeroed memory for what is sent often: ranks of this host can read it where it is.  NULL after E601.  c may be NULL. */
void *comm_alloc(struct comm *c, size_t bytes);
void comm_release(struct comm *c, void *p);
const struct comm_rank_info *comm_rank_info(const struct comm *c, i32 rank);
/* Longest wait for a message; 0 = comm_default_deadline(). */
f64 comm_set_deadline(struct comm *c, f64 seconds); /* gives the one before; NULL has none */
/* A turn of comm_idle in which nobody waits sleeps at least so long (at most two milliseconds): a look costs a worker time. */
void comm_set_idle_sleep(struct comm *c, f64 seconds);
/* From any thread: something is ready that the agent may not have seen, who then looks at once.  Nothing where there is none. */
void comm_wake(struct comm *c);
f64 comm_default_deadline(void); /* 60 s, or what the environment variable STRETTO_DEADLINE says */
/* What else is known of a rank that does not answer ("in phase train at step 812, 41 s ago"), for the message of E801; leaves
 * text empty where nothing is.  Returns when it last showed life, by any clock of its own; 0 = that is not known.  Called on the
 * agent's thread. */
typedef f64 comm_hint(void *self, i32 rank, char *text, size_t size);
i32 comm_local_size(const struct comm *c); /* ranks on the host of this one, itself among them */
void comm_set_hint(struct comm *c, comm_hint *hint, void *self);

/* STRETTO_WATCH=off leaves out the recorder, the watchdog, status records and the hash of the weights, so that what they cost can
 * be measured.  wished: what this process was told; watched: whether ranks that have met are: unless all were told so. */
bool comm_watch_requested(void);
bool comm_watched(const struct comm *c);
/* Flight recorder and watchdog (flight.h, watch.h): where a rank that fails, or in which nothing moves for three quarters of the
 * deadline, writes down what it did last and what its threads are doing: FOLDER/flight/rank-N.txt.  NULL = nowhere. */
void comm_set_record_folder(struct comm *c, const char *folder);
void comm_delete_records(const char *folder); /* a new run: what the one before wrote goes */
struct sink comm_sink(struct comm *c); /* phases of the run, for the record */
/* A step begins: what workers are at can be asked until it ends (scene NULL), on any thread, and only from numbers that workers
 * publish.  One line each, with its end. */
typedef void comm_describe(void *self, char *text, size_t size);
void comm_set_step(struct comm *c, u64 exchange, i64 step, comm_describe *describe, void *self); /* c may be NULL */

/* Hand a job to the agent, and wait for its end.  The job may use comm_post, comm_test and comm_idle.  One at a time. */
typedef err comm_job(struct comm *c, void *arg);
void comm_begin(struct comm *c, comm_job *job, void *arg);
err comm_end(struct comm *c);

/* For jobs, on the agent's thread. */
err comm_post(struct comm *c, struct comm_message *m);             /* starts to send or to await it */
err comm_test(struct comm *c, struct comm_message *m, bool *done); /* E804 where heads differ */
/* One look at n messages, of which those that are not under way are started: *moved when one is done now; *waiting = one that is
 * not done, left alone where all are. */
err comm_poll(struct comm *c, struct comm_message *m, i32 n, bool *moved, const struct comm_message **waiting);
/* What was done since the last look was no waiting: for those who look now and then, between two tasks. */
void comm_reset_wait(struct comm *c);
/* To be called in every turn of a loop that waits, with what for (NULL: for nobody else): sleeps a little when turns bring
 * nothing, and fails with E801 when that lasts longer than the deadline, or another rank has given up. */
err comm_idle(struct comm *c, bool moved, const struct comm_message *waiting);
err comm_wait(struct comm *c, struct comm_message *m, i32 n); /* the two in turns, until all n are done */

void comm_cancel(struct comm *c); /* a job has failed: nobody looks at what it sent any more; done at its end in any case */

/* Small things, from any thread while no job runs; all ranks call them in the same order.
 *   gather   bytes of every rank, in order of rank, into all [size][bytes]
 *   agree    E804 unless all ranks have the same number; what: "options", "data file"; fix may be NULL
 *   share    what rank 0 has, to all; share_of: what `root` has
 *   wait_share   the same, after work of rank 0 that may take as long as it takes: the wait ends when it has shown no life (the
 *                hint) for ten times the deadline (60 s at least, whatever STRETTO_DEADLINE says), or, where nothing is known of
 *                it, after sixty times as long */
err comm_allgather(struct comm *c, const char *name, const void *mine, u32 bytes, void *all);
err comm_check_equal(struct comm *c, const char *what, u64 number, const char *fix);
err comm_broadcast(struct comm *c, const char *name, void *data, u32 bytes);
err comm_broadcast_from(struct comm *c, i32 root, const char *name, void *data, u32 bytes);
err comm_broadcast_slow(struct comm *c, const char *name, void *data, u32 bytes);
/* Of what is to be equal; before: COMM_HASH, or a hash to go on from. */
u64 comm_hash(u64 before, const void *data, size_t bytes);

/* This rank has failed: whoever waits for it learns so at once, with the record of this thread; unless it ends for a rank that
 * gave up before, which all hear from that rank itself.  Transports that cannot tell others leave it to the deadline. */
void comm_abort(struct comm *c);

#endif
