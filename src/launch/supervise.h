/* supervise.h - a job that is started again when it dies.
 *
 *     supervise.c   start -> wait -> verdict -> clean up -> pause -> start ..
 *     ledger.c      RUN/supervisor.log: what happened, a JSON line an event, synced: one that was killed goes on from it
 *     marked.c      which processes belong to the run: all have the mark in their environment, wherever a launcher put them
 *     scratch.c     a folder in /dev/shm for what an MPI leaves when it is killed
 *     verdict.c     how an attempt ended: done, to be started again, or failed for good */
#ifndef STRETTO_LAUNCH_SUPERVISE_H
#define STRETTO_LAUNCH_SUPERVISE_H

#include "launch/launch.h"

/* Until the job is over.  E704 when another supervisor has the run.  *exit_status: as the command line is to end. */
err supervise(const struct launch_job *job, i32 *exit_status);

/* --- ledger.c --- */
struct ledger {
    int fd, lock;
    char path[4200];
};

/* What happened; -1 = does not apply. */
struct ledger_event {
    const char *what;    /* of the submission: begin, pause, stop, end; of a job in it: start, ended */
    const char *command; /* of begin and start */
    i64 checkpoint;
    i32 pid, exit, signal, left;
    f64 down;            /* seconds without a job */
};

/* The last submission in the log. */
struct ledger_past {
    bool open;        /* it has not ended (or ended with status 75), and its command is the current one */
    i64 checkpoint;   /* newest checkpoint when the log was written; -1 = none */
    i32 left;         /* restarts left; -1 = unknown */
    f64 since;        /* its begin, seconds since 1970 */
};

/* Locks RUN/supervisor.lock (E704) and reads what RUN/supervisor.log ends with; command: of this submission. */
err ledger_open(struct ledger *l, const char *run_dir, const char *command, struct ledger_past *past);
err ledger_write(struct ledger *l, i32 world, const struct ledger_event *e); /* on the disk when it returns */
void ledger_close(struct ledger *l);

/* Newest checkpoint of the run that is not older than `since`; -1 = none. */
i64 run_checkpoint(const char *run_dir, f64 since);
/* True if run.json says that the run is finished, and was written after `since`. */
bool run_finished(const char *run_dir, f64 since);
/* Removes the checkpoints of a finished run that was killed before it had removed them itself. */
void run_clear(const char *run_dir);

/* --- marked.c --- */
enum { MARKED_MOST = 2048 };
/* Processes with this mark, without this one; program: only those that run it (NULL = any).  Returns how many there are. */
i32 marked_find(const char *mark, const char *program, i32 pid[MARKED_MOST]);
void marked_signal(const char *mark, const char *program, int number);
/* Kills them all, and waits until they are gone; false when some are not within the time. */
bool marked_end(const char *mark, f64 seconds);

/* --- scratch.c --- */
enum { SCRATCH_PATH = 64 };
void scratch_path(const char *mark, char out[SCRATCH_PATH]);
void scratch_use(const char *mark);    /* makes the folder and points Open MPI there, by the environment: in the child */
void scratch_remove(const char *mark); /* with all that is in it */

/* --- verdict.c --- */
enum verdict { VERDICT_DONE, VERDICT_AGAIN, VERDICT_FINAL };
/* From the status that waitpid gave, and the records that ranks left after `since`; *code = exit status that stands for it. */
enum verdict verdict_of(const struct launch_job *job, int wait_status, f64 since, i32 *code);
/* Seconds before the n-th start in a row without progress (n from 1): .2, .4, .8 .. 10. */
f64 backoff(i32 n);

#endif
