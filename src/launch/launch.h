/* launch.h - hands a training to what runs it: this host, or the scheduler of a cluster.
 *
 *     stretto submit --on local --ranks 4 -- train DATA .. -o MODEL
 *         verb_submit.c: struct launch_job --launch_prepare--> render (--dry-run)   or   submit, wait
 *
 * One launcher = one file, one const struct, one line in launchers.def.  A launcher reads command lines, never models. */
#ifndef STRETTO_LAUNCH_LAUNCH_H
#define STRETTO_LAUNCH_LAUNCH_H

#include "base/str.h"

/* Words of a command line after the program; NAME=VALUE of an environment. */
struct launch_words {
    const char *const *word;
    i32 n;
};

/* Options of `submit` that only some launchers take: name of the option, its field in struct launch_job. */
#define LAUNCH_REQUESTS(X) \
    X(RANKS, "ranks") \
    X(NODES, "nodes") \
    X(RANKS_PER_NODE, "ranks-per-node") \
    X(GPUS, "gpus-per-node") \
    X(MEMORY, "mem") \
    X(QUEUE, "queue") \
    X(TIME, "time")
enum launch_request {
#define REQUEST(id, option) REQUEST_##id,
    LAUNCH_REQUESTS(REQUEST)
#undef REQUEST
    REQUEST_COUNT
};

struct launch_job {
    /* the command */
    const char *program;        /* this program, by its full path */
    const char *model, *run_dir; /* files of the run; the checkpoints in run_dir say where to resume */
    struct launch_words first;  /* the command as given: train .. or resume .. */
    struct launch_words again;  /* the same once there is a checkpoint: resume RUN .. */
    struct launch_words env;    /* variables of the program, STRETTO_*, that the ranks need too */
    bool heals;                 /* ranks survive the death of another one (--heal, or the config file) */
    /* the request */
    u32 given;                  /* 1 << enum launch_request: options that the user gave */
    i32 ranks;                  /* in all; launch_prepare computes it where the launcher takes nodes */
    i32 nodes, ranks_per_node, gpus_per_node; /* gpus 0 = none */
    i32 threads;                /* of a rank; 0 = as the host or queue gives */
    i64 memory, seconds;        /* bytes of a node; time limit; 0 = as the queue gives */
    const char *queue;          /* queue or partition; NULL = the default one */
    i32 max_restarts;
    const char *mpi;            /* "none" (ranks are threads of one process), "openmpi", "mpich"; "auto" until prepared */
    const char *plugin;         /* MPI library of this build: "openmpi", "mpich"; NULL = none */
    bool wait;                  /* stay until the job is over */
    /* messages for people */
    void (*say)(void *self, const char *line); /* NULL = quiet */
    void *self;
};

/* A job that was handed over. */
enum { LAUNCH_ID = 64, LAUNCH_PATH = 4352, LAUNCH_END = 4608 };
struct launch_ticket {
    char id[LAUNCH_ID];    /* number or name that the scheduler gave; "" = there is none */
    char log[LAUNCH_PATH]; /* file of its output; "" = none */
    bool here;             /* no one else runs the job: wait() does, whether or not the user waits */
    char end[LAUNCH_END];  /* set by wait(): how the job failed; "" = the job said so itself */
};

struct launcher {
    const char *name, *help;
    const char *example;  /* a command line, shown as the fix of a wrong one */
    const char *program;  /* on the path of hosts that can submit; NULL = nothing is needed */
    u32 takes;            /* 1 << enum launch_request */
    bool remote;          /* runs later, on other hosts: the caller checks data and plan first, ranks are processes of MPI */
    err (*render)(const struct launch_job *job, struct str *out);          /* the text that submit hands over; pure */
    err (*submit)(const struct launch_job *job, struct launch_ticket *out); /* returns once the job is handed over */
    err (*wait)(const struct launch_job *job, struct launch_ticket *t, i32 *exit_status); /* until the job is over */
};

const struct launcher *launcher_at(i32 i);              /* in the order of launchers.def; NULL = past the end */
const struct launcher *launcher_find(const char *name); /* NULL = none */

/* Refuses options that the launcher does not take (E106), then sets ranks and mpi.  E803 when the build lacks an MPI plug-in. */
err launch_prepare(const struct launcher *l, struct launch_job *job);
/* "2:00:00", "90:00" (minutes, seconds), "1-12:00:00", or with units: "2h", "90m".  E103 for anything else, and outside a minute
 * to a year. */
err launch_seconds(const char *text, i64 *seconds);

/* A process of a job ends together with the one that started it, so that no rank is left alone; for main. */
void launch_join(void);
#define MARK "STRETTO_SUPERVISED" /* environment of the processes of a supervised job: the run folder, by its full path */

/* --- for launchers --- */
void launch_say(const struct launch_job *job, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A word as a shell reads it: quoted where it must be. */
void launch_quote(struct str *out, const char *word);
void launch_line(struct str *out, char *const *word); /* words up to NULL, with blanks between */
bool launch_on_path(const char *program);

/* The command line of this host: argv ends with NULL and is freed by launch_free_words.  E803 without that MPI's launcher. */
err launch_command(const struct launch_job *job, bool again, char ***argv);
void launch_free_words(char **argv);

#endif
