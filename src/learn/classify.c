/* classify.c - the learner `classify`: a class of each sequence, or of each of its steps (sequence/sequence.h). */
#include "learn/sequence/sequence.h"

static const enum opt_id takes[] = {SEQUENCE_TAKES, OPT_COUNT};

extern const struct learner learner_classify;
const struct learner learner_classify = {
    .name = "classify",
    .help = "a class of each sequence of numbers, or of each step, by recurrent layers",
    .data = &data_sequences,
    .ops = &sequence_ops,
    .takes = takes,
    .check = sequence_check,
    .resolve = sequence_resolve,
    .prepare = sequence_prepare,
    .fit = sequence_fit,
};
