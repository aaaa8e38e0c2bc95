/* launch.h - handing a training to whatever runs it: this machine, or an engine.
 *
 *     stretto submit --on local --ranks 4 -- train DATA .. -o MODEL
 *            verb_submit.c: struct launch_job  -->  launcher->render (--dry-run)  or  launcher->submit
 *
 * One launcher = one file, one const struct, one line in launchers.def.  A launcher knows command lines, never models: it sees
 * words to run, the run folder, and what ranks leave there. */
#ifndef STRETTO_LAUNCH_LAUNCH_H
#define STRETTO_LAUNCH_LAUNCH_H

#include "base/str.h"

/* Words of a command line after the program. */
struct launch_words {
    const char *const *word;
    i32 n;
};

struct launch_job {
    const char *program;        /* this program, by its full path */
    const char *run_dir;        /* folder of the run: its checkpoints say where to go on */
    struct launch_words first;  /* what was asked for: train .. or resume .. */
    struct launch_words again;  /* the same once there is a checkpoint: resume RUN .. */
    i32 ranks, max_restarts;
    bool heals;                 /* it was asked to go on without ranks that die (--heal, or its config file) */
    const char *mpi;            /* "none": ranks are threads of one process; "openmpi", "mpich" */
    bool wait;                  /* stay until the job is over */
    void (*say)(void *self, const char *line); /* to people; NULL = nobody listens */
    void *self;
};

struct launcher {
    const char *name, *help;
    err (*render)(const struct launch_job *job, struct str *out);   /* what submit would do, as text; pure */
    err (*submit)(const struct launch_job *job, i32 *exit_status);  /* with job->wait: the status of the job, 6.5 */
};

const struct launcher *launcher_find(const char *name); /* NULL = none */

/* A process of a job asks for its end together with that of whoever started it, so that no rank is left alone; for main. */
void launch_join(void);

/* --- for launchers --- */
void launch_say(const struct launch_job *job, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A word as a shell reads it: quoted where it must be. */
void launch_quote(struct str *out, const char *word);
void launch_line(struct str *out, char *const *word); /* words up to NULL, with blanks between */

/* The command line of this machine: argv ends with NULL and is freed by launch_free_words.  E803 without that MPI's launcher. */
err local_command(const struct launch_job *job, bool again, char ***argv);
void launch_free_words(char **argv);

#endif
