/* rank.h - the inside of a rank, for the files that make it: comm.c (agent, messages, waiting), record.c (what is written down),
 * regroup.c (going on without ranks that died). */
#ifndef STRETTO_COMM_RANK_H
#define STRETTO_COMM_RANK_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/flight.h"
#include "comm/recover.h"
#include "comm/transport.h"
#include "comm/watch.h"

enum state { IDLE, WORK, DONE, QUIT };

struct comm {
    const struct transport *t;
    void *self;
    i32 rank, size;
    f64 deadline, waited, since; /* seconds without a message; since: when that was looked at last, 0 = not in this job */
    f64 idle;            /* since the last message */
    f64 patience;        /* of a wait for long work: seconds without a sign of life, 0 = it is no such wait */
    f64 life_check, life_sign;      /* it looks for one after so many seconds of waiting; the last one */
    i32 spins;           /* turns without a look at the clock */
    f64 idle_sleep;            /* least nap where nobody waits, seconds */
    _Atomic bool sleeping;   /* the agent does */
    _Atomic bool woken; /* since its last nap */
    pthread_mutex_t sleep_lock; /* of the nap */
    pthread_cond_t wake;
    comm_hint *hint;
    void *hint_self; /* its self */
    u64 serial;          /* of small collectives */
    struct comm_rank_info *member; /* [size] */
    i32 *first;                 /* [size] the numbers that ranks had at first */
    pthread_t thread;
    bool running;
    _Atomic bool failed;
    _Atomic bool relayed;      /* another one gave up, and this one ends for that */
    pthread_mutex_t lock;
    pthread_cond_t turn;
    enum state state;
    comm_job *job;
    void *arg;
    err result;
    struct err_record why;
    struct watch watch;
    struct flight *flight;     /* NULL where this is the only rank */
    pthread_mutex_t writes;    /* of what a record needs: folder, hint, scene; held while one is written */
    char folder[COMM_FOLDER];  /* for records, "" = nowhere */
    char record[FLIGHT_PATH];  /* the one of this failure, "" = none yet */
    comm_describe *describe;
    void *describe_self;               /* its self */
    struct recovery *recovery;       /* NULL = a rank that dies ends the run */
    f64 noticed;               /* when a death was, 0 = there is none */
};

err rank_job(struct comm *c, comm_job *job, void *arg); /* begun and ended */

/* record.c */
void rank_note(struct comm *c, const struct comm_message *m, bool ends); /* into the flight record */
void rank_failure(struct comm *c, const char *why, bool stacks);         /* a record of it: the first one counts */
void rank_alarm(void *comm, f64 quiet);                                  /* on the watchdog's thread */

#endif
