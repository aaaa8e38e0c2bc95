/* slurm.h - the programs of Slurm: sbatch takes a batch script, scontrol says how a job stands and sets weights of nodes.
 *
 *     slurm.c: struct launch_job --render--> script --slurm_submit--> job number --slurm_wait--> how it ended */
#ifndef STRETTO_LAUNCH_SLURM_H
#define STRETTO_LAUNCH_SLURM_H

#include "launch/launch.h"

/* How a job stands. */
struct slurm_state {
    char name[24];     /* "RUNNING", "COMPLETED", .. */
    char why[64];      /* why it waits, as Slurm says it */
    i32 exit_code, signal, restarts;
    bool over;
};
/* Reads the output of `scontrol show job -o`; false when there is no job in it. */
bool slurm_state_read(const char *text, struct slurm_state *out);

/* E805 with the message of sbatch when it refused. */
err slurm_submit(const char *script, char id[LAUNCH_ID]);
/* Polls until the job is over; reports each change of state to job->say.  E805 when Slurm does not know the job any more. */
err slurm_wait(const struct launch_job *job, const char *id, struct slurm_state *end);

/* Nodes of low weight get jobs first.  The command line, up to NULL; and running it: E805 with the message of scontrol, also when
 * it gives no answer within `patience` seconds. */
enum { SLURM_PATIENCE = 20, SLURM_WEIGHT_WORDS = 5 };
struct slurm_weight {
    char node[80], weight[24];
    char *argv[SLURM_WEIGHT_WORDS];
};
err slurm_weight_command(const char *node, i32 weight, struct slurm_weight *out); /* E103 for what cannot be a node's name */
err slurm_set_weight(const struct slurm_weight *w, u32 patience);

#endif
