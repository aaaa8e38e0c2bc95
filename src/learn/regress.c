/* regress.c - the learner `regress`: a number of each sequence, or of each of its steps (sequence/sequence.h). */
#include "learn/sequence/sequence.h"

static const enum opt_id takes[] = {SEQUENCE_TAKES, OPT_loss, OPT_COUNT};

extern const struct learner learner_regress;
const struct learner learner_regress = {
    .name = "regress",
    .help = "a number of each sequence of numbers, or of each step, by recurrent layers",
    .data = &data_sequences,
    .ops = &sequence_ops,
    .takes = takes,
    .check = sequence_check,
    .resolve = sequence_resolve,
    .prepare = sequence_prepare,
    .fit = sequence_fit,
};
