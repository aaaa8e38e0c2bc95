/* job.h - the training behind "--" of submit and join, as a launcher takes it.
 *
 *     submit .. -- train DATA .. -o MODEL
 *                  '--- struct inner ---'   parsed here as the ranks will; again = `resume MODEL.run` and its options */
#ifndef STRETTO_CLI_JOB_H
#define STRETTO_CLI_JOB_H

#include <limits.h>

#include "api/lists.h"
#include "cli.h"
#include "launch/launch.h"
#include "launch/stage.h"

enum { JOB_AGAIN_MOST = OPT_COUNT + 2, JOB_ENV_MOST = 64, JOB_STAGED_MOST = 32 };

struct inner {
    struct cli c;
    const char **argv;          /* "stretto", then the command */
    const char *again[JOB_AGAIN_MOST], *env[JOB_ENV_MOST];
    char *text[JOB_AGAIN_MOST]; /* words of `again` that are allocated */
    char *staged[JOB_STAGED_MOST]; /* words of argv and again that name a file in HDFS, allocated */
    i32 nagain, ntext, nenv, nstaged;
    char model[CLI_PATH], run[CLI_PATH], program[PATH_MAX];
    char meeting[CLI_PATH], stage[STAGE_PATH], plugin[API_PLUGIN];
};

/* Reads the command line behind "--" of outer (train or resume) and its config file.  Free `in` in any case. */
stretto_err job_parse(const struct args *outer, const struct launcher *l, struct inner *in);
/* Fills the job from c->o and from `in`, which must outlive it.  c: for messages, and options of the request. */
stretto_err job_fill(struct cli *c, const struct launcher *l, struct inner *in, struct launch_job *job);
/* With --stage: the files that the job reads are sent (send) or only named, and its words name them in HDFS.  E106 for a
 * folder, and for an output that a container would keep to itself. */
stretto_err job_stage(struct inner *in, const struct launch_job *job, bool send);
void job_free(struct inner *in);

#endif
