/* slurm.h - a training as a job of Slurm: the batch script as text, handing it over, waiting for its end.
 *
 *     struct slurm_job --slurm_render--> script --slurm_submit (sbatch)--> job number --slurm_wait (scontrol)--> how it ended
 *
 * The script can be started again at any point: it goes on from a checkpoint where RUN has one.  So it also is what Slurm starts
 * after a lost node, a pre-emption or the end of the time allowed. */
#ifndef STRETTO_LAUNCH_SLURM_H
#define STRETTO_LAUNCH_SLURM_H

#include "base/str.h"

struct slurm_job {
    const char *name, *log;      /* of the job; file of its output */
    const char *queue;           /* partition; NULL = the default one */
    const char *program;         /* this program, as the nodes find it */
    const char *run;             /* folder of the run */
    const char *mpi;             /* srun --mpi=: "pmix", "pmi2", "none" */
    const char *const *arg;      /* what to start: "train", "data.csv", .. */
    i32 narg;
    i32 nodes, ranks_per_node, gpus_per_node; /* gpus 0 = none asked for */
    i32 threads;                 /* cores of a rank; 0 = as the queue gives */
    i64 seconds, memory;         /* longest run; bytes of a node; 0 = as the queue gives */
    i32 max_restarts;
};

/* "2:00:00", "90:00" (minutes, seconds), "1-12:00:00", or with units: "2h", "90m".  E103 for anything else, and below a minute.
 */
err slurm_seconds(const char *text, i64 *seconds);
/* E103 for values that would not survive a batch script. */
err slurm_render(const struct slurm_job *job, struct str *out);

/* How a job stands. */
struct slurm_state {
    char name[24];     /* "RUNNING", "COMPLETED", .. */
    char why[64];      /* reason of waiting, as Slurm says it */
    i32 exit_code, signal, restarts;
    bool over;
};
/* From the words of `scontrol show job -o`; false when they are none. */
bool slurm_state_read(const char *text, struct slurm_state *out);

/* E805 with what sbatch said when it refused. */
err slurm_submit(const char *script, char job[32]);
/* tell: called when the state changes; may be NULL.  E805 when Slurm does not know the job any more. */
err slurm_wait(const char *job, void (*tell)(const struct slurm_state *s, void *to), void *to, struct slurm_state *end);

/* Nodes of low weight get jobs first.  The command line, up to NULL; and running it: E805 with what scontrol said, also when it
 * gave no answer within so many seconds. */
enum { SLURM_PATIENCE = 20, SLURM_WEIGHT_WORDS = 5 };
struct slurm_weight {
    char node[80], weight[24];
    char *argv[SLURM_WEIGHT_WORDS];
};
err slurm_weight_command(const char *node, i32 weight, struct slurm_weight *out); /* E103 for what cannot be a node's name */
err slurm_set_weight(const struct slurm_weight *w, u32 patience);

#endif
