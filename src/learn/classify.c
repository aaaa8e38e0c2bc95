/* classify.c - the learner `classify`: a class of each sequence, or of each of its steps (sequence/sequence.h). */
#include "learn/sequence/sequence.h"

/* Options of both learners of sequences, without --loss. */
static const enum opt_id takes[] = {OPT_preset,
                                    OPT_cell,
                                    OPT_layers,
                                    OPT_hidden,
                                    OPT_bidirectional,
                                    OPT_segment,
                                    OPT_scale,
                                    OPT_precision,
                                    OPT_members,
                                    OPT_steps,
                                    OPT_max_steps,
                                    OPT_epochs,
                                    OPT_time_limit,
                                    OPT_batch,
                                    OPT_optim,
                                    OPT_lr,
                                    OPT_schedule,
                                    OPT_warmup,
                                    OPT_momentum,
                                    OPT_weight_decay,
                                    OPT_clip,
                                    OPT_dropout,
                                    OPT_validate_every,
                                    OPT_patience,
                                    OPT_seed,
                                    OPT_refit_all,
                                    OPT_parallel,
                                    OPT_device,
                                    OPT_grains,
                                    OPT_deterministic,
                                    OPT_checkpoint_every,
                                    OPT_require_skill,
                                    OPT_COUNT};

extern const struct learner learner_classify;
const struct learner learner_classify = {
    .name = "classify",
    .help = "a class of each sequence of numbers, or of each step, by recurrent layers",
    .data = &data_sequences,
    .ops = &sequence_ops,
    .takes = takes,
    .check = sequence_check,
    .resolve = sequence_resolve,
    .fit = sequence_fit,
};
