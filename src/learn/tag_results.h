/* tag_results.h - what learners of tags share: the naive rule beside them, tagged lines, scores over chunks, their report.
 *
 * Labels are numbers of the model's vocabulary `label`; best [ntoken] holds one for each token of a file. */
#ifndef STRETTO_LEARN_TAG_RESULTS_H
#define STRETTO_LEARN_TAG_RESULTS_H

#include "learn/token_set.h"

/* The most frequent label of each word of the last input column, in the training. */
struct tag_rule {
    struct vocab word;
    i32 *label; /* [word.n + 1] the last entry: the most frequent label of all, for other words */
};
/* Of the first ntoken tokens; gold [ntoken] in 0..L-1. */
err tag_rule_learn(const struct token_set *s, i64 ntoken, const i32 *gold, i32 L, struct tag_rule *out);
void tag_rule_free(struct tag_rule *r);

/* The lines of the file, each with the label that the model gives it; of a file in CRFsuite's format the labels alone. */
struct tag_marginals {
    const f32 *p; /* [ntoken][ld] probabilities of the labels of each token */
    i32 ld;
};
err tags_write(const struct token_set *s, const struct vocab *label, const i32 *best, const struct tag_marginals *m,
               const struct prediction_sink *to);

/* model_ops.score of sentences [from, to), which `what` names: accuracy, precision, recall and F1 over chunks (chunks.h), the
 * rule beside the model, a row for each type of chunk. */
struct tags_scored {
    const struct vocab *label;
    const struct tag_rule *rule;
    const i32 *best;
    const char *what;
    i32 from, to;
};
err tags_score(const struct token_set *s, const struct tags_scored *q, struct scores *out);

/* The sentences that a scoring asks for; E903 where the file has no tags. */
err tags_range(const struct token_set *s, const struct scoring *q, struct tags_scored *out);

/* model_ops.report: the confusion matrix of scores that tags_score has made; nothing where there are none. */
err tags_report(const struct vocab *label, const struct scores *s, struct arena *a, struct report *r);

#endif
