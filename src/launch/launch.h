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
    X(NODE_LABEL, "node-label") \
    X(STAGE, "stage") \
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
    struct launch_words env;    /* environment variables STRETTO_* that the ranks need */
    struct launch_words front;  /* words that start the ranks, in place of the launcher of an MPI on this host; usually none */
    bool heals;                 /* ranks survive the death of another one (--heal, or the config file) */
    /* the request */
    u32 given;                  /* 1 << enum launch_request: options set by the user */
    i32 ranks;                  /* total; launch_prepare computes it if the launcher takes nodes */
    i32 nodes, ranks_per_node, gpus_per_node; /* gpus_per_node 0 = none */
    i32 threads;                /* per rank; 0 = as the host or queue assigns */
    i64 memory, seconds;        /* bytes per node; time limit; 0 = as the queue assigns */
    const char *queue;          /* queue or partition; NULL = the default one */
    const char *label;          /* of nodes: partition of YARN, feature of Slurm; NULL = any */
    i64 rank_bytes, data_bytes; /* what a rank holds by the plan; size of the data file; 0 = not known */
    const char *yarn;           /* addresses of ResourceManagers; "" = from the environment */
    const char *stage;          /* folder of HDFS for what the other hosts need; "" = they see this host's files */
    const char *archive;        /* the program there; "" = none */
    const char *plugin_path;    /* its MPI plug-in on this host; NULL = none */
    const char *meeting;        /* where members meet: run_dir, or MODEL.run in HDFS where the hosts share no folder */
    bool apart;                 /* the hosts share no folder: checkpoints are in HDFS, below `meeting` */
    i64 since;                  /* then checkpoints count from this time on, in seconds since 1970; 0 = not known yet */
    const char *occupancy;      /* auto, off, idle, light: GPU load of the nodes */
    f64 patience;               /* seconds in which all containers must have come */
    i32 max_restarts;
    const char *mpi;            /* "none" (ranks are threads of one process), "openmpi", "mpich"; "auto" until prepared */
    const char *plugin;         /* MPI library of this build: "openmpi", "mpich"; NULL = none */
    bool wait;                  /* return after the job has ended */
    /* prints messages for the user */
    void (*say)(void *self, const char *line); /* NULL = quiet */
    void *self;
};

/* A submitted job. */
enum { LAUNCH_ID = 64, LAUNCH_PATH = 4352, LAUNCH_END = 4608 };
struct launch_ticket {
    char id[LAUNCH_ID];    /* job number or name from the scheduler; "" = none */
    char session[LAUNCH_ID]; /* name of this submission; "" = none */
    char log[LAUNCH_PATH]; /* file with the job's output; "" = none */
    i64 since;             /* of the first submission, where the hosts share no folder */
    bool here;             /* this process runs the job itself: wait() must be called in any case */
    char end[LAUNCH_END];  /* set by wait(): how the job failed; "" = the job has reported it */
};

struct launcher {
    const char *name, *help;
    const char *example;  /* a command line, the proposed fix of a wrong one */
    const char *program;  /* program in PATH on hosts that can submit; NULL = none needed */
    u32 takes;            /* 1 << enum launch_request */
    const char *mpi;      /* the MPI whose ranks it starts; NULL = any */
    bool remote;          /* the job runs later, on other hosts, with ranks as MPI processes: the caller checks data and
                           * plan first */
    err (*render)(const struct launch_job *job, struct str *out);          /* the text that submit passes on; pure */
    err (*submit)(const struct launch_job *job, struct launch_ticket *out); /* returns after submission */
    err (*wait)(const struct launch_job *job, struct launch_ticket *t, i32 *exit_status); /* returns after the job has ended */
};

const struct launcher *launcher_at(i32 i);              /* in the order of launchers.def; NULL = past the end */
const struct launcher *launcher_find(const char *name); /* NULL = none */

/* Rejects options that the launcher does not take (E106), then sets ranks and mpi. E803 if the build lacks the MPI plug-in. */
err launch_prepare(const struct launcher *l, struct launch_job *job);
/* "2:00:00", "90:00" (minutes, seconds), "1-12:00:00", or with units: "2h", "90m". E103 for other formats and for times
 * outside one minute to one year. */
err launch_seconds(const char *text, i64 *seconds);

/* Ties a process of a job to the process that started it, so that no rank survives alone; called by main. */
void launch_join(void);
#define MARK "STRETTO_SUPERVISED" /* environment variable of all processes of a supervised job; its value is the full path
                                   * of the run folder; for ranks in containers with #MEMBER behind it */

/* --- for launchers --- */
void launch_say(const struct launch_job *job, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Quotes a word for the shell if necessary. */
void launch_quote(struct str *out, const char *word);
void launch_line(struct str *out, char *const *word); /* words up to NULL, separated by spaces */
bool launch_on_path(const char *program);

/* Builds the command line that starts the job on this host; free argv, which ends with NULL, with launch_free_words. E803
 * if that MPI has no launcher here. */
err launch_command(const struct launch_job *job, bool again, char ***argv);
void launch_free_words(char **argv);

#endif
