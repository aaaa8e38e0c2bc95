/* supervise.h - runs a job and restarts it when it fails.
 *
 *     supervise.c   start -> wait -> verdict -> clean up -> pause -> start ..
 *     ledger.c      RUN/supervisor.log: one JSON line per event, synced; a restarted supervisor continues from it
 *     marked.c      finds the processes of the run by a variable in their environment, the mark
 *     scratch.c     a folder in /dev/shm for files that a killed MPI leaves behind
 *     verdict.c     decides how an attempt ended: done, restart, or failed */
#ifndef STRETTO_LAUNCH_SUPERVISE_H
#define STRETTO_LAUNCH_SUPERVISE_H

#include <signal.h>
#include <sys/types.h>

#include "launch/launch.h"

/* Runs the job until it ends. E704 if another supervisor has the run. *exit_status: for the command line. */
err supervise(const struct launch_job *job, i32 *exit_status);

/* Exit statuses with a meaning of their own: run it again; a rank was lost; no program, and + a signal, as a shell has them. */
enum { EXIT_STOPPED = 75, EXIT_LOST = 8, EXIT_NO_PROGRAM = 127, EXIT_BY_SIGNAL = 128 };
/* The exit status in a status of waitpid. */
i32 exit_of(int wait_status);
/* In a child after fork: it ends with its parent, and has the parent's former signal mask.  Without effect on its output. */
void child_tie(pid_t parent, const sigset_t *mask);
/* In a child: no standard input. */
void child_without_input(void);

/* --- ledger.c --- */
struct ledger {
    int fd, lock;
    char path[4200];
};

/* An event; -1 = does not apply. */
struct ledger_event {
    const char *what;    /* of a submission: begin, pause, stop, end; of its job: start, ended */
    const char *command; /* set in begin and start */
    i64 checkpoint;
    i32 pid, exit, signal, left;
    f64 down;            /* seconds without a running job */
};

/* The last submission in the log. */
struct ledger_past {
    bool open;        /* it has not ended (or ended with status 75), and its command is the current one */
    i64 checkpoint;   /* newest checkpoint when the log was written; -1 = none */
    i32 left;         /* restarts left; -1 = unknown */
    f64 since;        /* its start, seconds since 1970 */
};

/* Locks RUN/supervisor.lock (E704) and reads the last submission in RUN/supervisor.log; command: that of this submission. */
err ledger_open(struct ledger *l, const char *run_dir, const char *command, struct ledger_past *past);
err ledger_write(struct ledger *l, i32 world, const struct ledger_event *e); /* synced to disk on return */
void ledger_close(struct ledger *l);

/* Newest checkpoint of the run that is not older than `since`; -1 = none. */
i64 run_checkpoint(const char *run_dir, f64 since);
/* The same in a folder of checkpoints in HDFS. */
i64 run_checkpoint_apart(const char *folder, f64 since);
/* True if run.json says that the run is finished, and was written after `since`. */
bool run_finished(const char *run_dir, f64 since);
/* Deletes the checkpoints of a finished run that was killed before it could do so. */
void run_clear(const char *run_dir);

/* --- marked.c --- */
enum { MARKED_MOST = 2048 };
/* Finds processes with this mark, except this one; program: only those that run it (NULL = any). Returns their number. */
i32 marked_find(const char *mark, const char *program, i32 pid[MARKED_MOST]);
void marked_signal(const char *mark, const char *program, int number);
/* Kills them all and waits until they have ended; false if some have not within the time. */
bool marked_end(const char *mark, f64 seconds);

/* --- scratch.c --- */
enum { SCRATCH_PATH = 64 };
void scratch_path(const char *mark, char out[SCRATCH_PATH]);
void scratch_use(const char *mark);    /* in the child: creates the folder and sets the environment so that Open MPI uses it */
void scratch_remove(const char *mark); /* with its contents */

/* --- verdict.c --- */
enum verdict { VERDICT_DONE, VERDICT_AGAIN, VERDICT_FINAL };
/* Decides from the status of waitpid and the records that ranks left after `since`; *code = exit status of the attempt. */
enum verdict verdict_of(const struct launch_job *job, int wait_status, f64 since, i32 *code);
/* Pause before the n-th consecutive start without progress (n from 1): .2, .4, .8 .. 10 s. */
f64 backoff(i32 n);

#endif
