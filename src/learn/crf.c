/* crf.c - the learner `crf`: a linear-chain conditional random field over feature templates (crf/crf.h). */
#include <string.h>

#include "learn/crf/crf.h"

/* Combinations that SGD, plain or averaged, has no answer to. */
static err check_sgd(const struct options *o) {
    if (o->l1 > 0)
        return FAIL_AT(E106, "--l1", "--trainer owlqn", "--trainer %s leaves no weight at 0 (--l1 %g)", o->trainer, o->l1);
    if (!(o->c > 0))
        return FAIL_AT(E106, "--c", "--c 1   or   --trainer lbfgs", "the steps of --trainer %s become shorter by the penalty, "
                       "and --c 0 is none", o->trainer);
    if (!learner_on_cores(o))
        return FAIL_AT(E106, "--device", "--trainer lbfgs   or   no --device",
                       "--trainer %s trains on the cores: its batches are too small for a device", o->trainer);
    return 0;
}

static err check(const struct options *o) {
    if (strcmp(o->trainer, "sgd") == 0 || strcmp(o->trainer, "asgd") == 0) return check_sgd(o);
    if (opt_given(o, OPT_seed) && strcmp(o->meta[OPT_seed].text, opt_info(OPT_seed)->def) != 0) /* a config lists all */
        return FAIL_AT(E106, "--seed", "no --seed   or   --trainer sgd", "only --trainer sgd and asgd draw random numbers");
    if (o->l1 > 0 && strcmp(o->trainer, "lbfgs") == 0)
        return FAIL_AT(E106, "--l1", "--trainer owlqn", "L-BFGS cannot minimise absolute values (--l1 %g)", o->l1);
    return 0;
}

static err resolve(struct learn_job *job) {
    TRY(opt_resolve(job->o, OPT_trainer, job->o->l1 > 0 ? "owlqn" : "lbfgs", job->o->l1 > 0 ? "--l1" : "no --l1"));
    return token_set_split(job->o, token_set_of(job->data), &job->split);
}

static const struct model_ops ops = {
    .open = crf_open,
    .predict = crf_predict,
    .score = crf_score,
    .describe = crf_describe,
    .report = crf_report,
    .save = crf_save,
    .load = crf_load,
    .free = crf_free,
    .lines = true,
    .marginals = true,
};

static const enum opt_id takes[] = {OPT_template, OPT_cutoff, OPT_c,     OPT_l1,
                                    OPT_trainer,  OPT_epsilon, OPT_steps, OPT_time_limit,
                                    OPT_checkpoint_every, OPT_device, OPT_seed, OPT_COUNT};

extern const struct learner learner_crf;
const struct learner learner_crf = {
    .name = "crf",
    .help = "tags of the tokens of sentences, from feature templates (CRF++)",
    .data = &data_tokens,
    .ops = &ops,
    .takes = takes,
    .offloads = OFFLOADS_BOTH,
    .check = check,
    .resolve = resolve,
    .fit = crf_fit,
};
