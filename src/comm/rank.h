/* rank.h - struct comm, private to the files that implement a rank: comm.c (agent, messages, waiting), record.c (flight
 * record), group.c (connection and recovery). */
#ifndef STRETTO_COMM_RANK_H
#define STRETTO_COMM_RANK_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/wakeup.h"
#include "comm/flight.h"
#include "comm/recover.h"
#include "comm/transport.h"
#include "comm/watch.h"

enum state { IDLE, WORK, DONE, QUIT };

struct comm {
    const struct transport *t;
    void *self;
    i32 rank, size;
    f64 deadline, waited, since; /* deadline: seconds without a message; since: last look at the clock, 0 = none in this job */
    f64 idle;            /* seconds since the last message */
    f64 patience;        /* comm_broadcast_slow: seconds without a sign of life, 0 = normal wait */
    bool spared; /* this wait was longer than the deadline, and got DYING_S more */
    f64 life_check, life_sign;      /* waited seconds at which to check for life; last sign of life */
    i32 spins;           /* iterations since the last look at the clock */
    f64 idle_sleep;            /* minimum sleep while no message is awaited, seconds */
    _Atomic bool woken;      /* comm_wake was called since the agent's last sleep */
    struct wakeup wake;      /* of the agent's sleep in comm_idle */
    comm_hint *hint;
    void *hint_self; /* first argument of hint */
    u64 serial;          /* number of the next small collective */
    struct comm_rank_info *member; /* [size] */
    i32 *first;                 /* [size] the original numbers of the ranks */
    pthread_t thread;
    bool running;
    _Atomic bool failed;
    _Atomic bool relayed;      /* this rank fails because another one aborted */
    pthread_mutex_t lock;
    pthread_cond_t turn;
    enum state state;
    comm_job *job;
    void *arg;
    err result;
    struct err_record why;
    struct watch watch;
    struct flight *flight;     /* NULL if this is the only rank */
    pthread_mutex_t writes;    /* protects what a record reads: folder, hint, describe; held while one is written */
    char folder[COMM_FOLDER];  /* of records, "" = nowhere */
    char record[FLIGHT_PATH];  /* path of the record of this failure, "" = none yet */
    comm_describe *describe;
    void *describe_self; /* first argument of describe */
    struct recovery *recovery;       /* NULL = the death of a rank ends the run */
    f64 noticed;               /* time at which a death was noticed, 0 = none */
};

err rank_job(struct comm *c, comm_job *job, void *arg); /* comm_begin and comm_end */

/* record.c */
void rank_note(struct comm *c, const struct comm_message *m, bool ends); /* adds to the flight record */
void rank_failure(struct comm *c, const char *why, bool stacks);         /* writes the record, unless one exists */
void rank_alarm(void *comm, f64 quiet);                                  /* called by the watchdog's thread */

#endif
