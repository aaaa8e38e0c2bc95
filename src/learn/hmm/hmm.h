/* hmm.h - a hidden Markov model with discrete emissions: its parameters, its fit, its Viterbi path.
 *
 *     start[l], trans[k][l], emit[w][l] = P(first label), P(next label | label), P(word | label)
 *
 * Labels are the tags of a file (supervised counts) or hidden states (Baum-Welch; Rabiner, Proc. IEEE 77(2), 1989).  Row W - 1 of
 * the emissions stands for words that the training has not seen; smoothing gives it its probability. */
#ifndef STRETTO_LEARN_HMM_HMM_H
#define STRETTO_LEARN_HMM_HMM_H

#include "kern/viterbi.h"
#include "learn/token_set.h"

/* Viterbi in fixed point: round(scale * log p), limited to what the kernels take. */
struct hmm_fixed {
    struct viterbi kern;
    f64 scale;
    i32 *packed; /* [L][Lp] */
    i32 *start;  /* [L] */
    i32 *trans;  /* [L][L] */
    i32 *emit;   /* [W][Lp], shifted as kern/viterbi.h says */
};

struct hmm {
    struct model model; /* first */
    i32 L, W;           /* labels; words of the training + 1 */
    i32 ncolumn, tag;   /* columns of the training; the column of the tag, -1 = hidden states */
    struct vocab word, label;
    f64 *theta;         /* [hmm_floats] the following parts, one after the other */
    f64 *start, *trans, *emit;   /* [L], [L][L], [W][L] */
    f64 *left, *emitted;         /* [L] (expected) transitions from, and words of, each label in the training */
    f64 *sums;                   /* [2] sequences of the training, their log-likelihood */
    f64 *rate;          /* [W] share of each word in the training, smoothed */
    i32 *usual;         /* [W] most frequent label of each word in the training */
    struct hmm_fixed fixed;
    i32 ncurve;
    f64 *curve;         /* [ncurve] log-likelihood per token of each iteration, NULL = supervised */
};

static inline struct hmm *hmm_of(const struct model *m) { return (struct hmm *)(uintptr_t)m; }
static inline i64 hmm_floats(const struct hmm *h) { return (i64)h->L * (h->L + 3) + (i64)h->W * h->L + 2; }

/* hmm.c: memory of theta for L and W. */
err hmm_alloc(struct hmm *h);

/* Sequences as words and labels of the model. */
struct hmm_rows {
    i32 n;
    const i64 *first; /* [n + 1] first token of each */
    const i32 *word;  /* row of emit of each token */
    const i32 *label; /* label of each token, -1 = not one of the model; NULL = hidden */
};

/* fit.c: learner.fit */
err hmm_fit(const struct learn_job *job, struct model **out);

/* rows.c: tokens of a data set as words and labels of the model.  unknown: tokens that the training has not seen. */
struct hmm_tokens {
    i32 *word, *label; /* [ntoken]; label NULL = the file has no tags */
    i64 unknown;
};
err hmm_tokens_of(const struct hmm *h, const struct token_set *s, struct hmm_tokens *out);
void hmm_tokens_free(struct hmm_tokens *t);
/* The words and tags of the first n sentences become the model's. */
err hmm_learn_words(struct hmm *h, const struct token_set *s, i32 n);

/* forward.c: scaled forward and backward pass over n words.  Adds expected counts to `count`, in the layout of theta, and returns
 * the log-likelihood; count NULL: the log-likelihood alone.  room [hmm_room(h, n)]. */
f64 hmm_expect(const struct hmm *h, const i32 *word, i64 n, f64 *count, f64 *room);
static inline i64 hmm_room(const struct hmm *h, i64 n) { return (n + 4) * h->L + n; }

/* fixed.c */
err hmm_fix(struct hmm *h); /* makes h->fixed from the probabilities */
void hmm_fixed_free(struct hmm_fixed *f);
/* Labels of all tokens of the sequences, in path [first[n]]; logp [n] = log P(words, path) of each, may be NULL.  Threads of the
 * pool take several sequences each at a time. */
err hmm_decode(const struct hmm *h, const struct hmm_rows *r, const struct resources *use, u8 *path, f64 *logp);

/* results.c, decode.c, file.c: model_ops */
err hmm_predict(const struct model *m, const struct dataset *d, const struct resources *use, const struct prediction_sink *to);
err hmm_score(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
              struct scores *out);
err hmm_decode_file(const struct model *m, const struct options *o, const char *path, const char *out,
                    const struct resources *use, struct str *text);
err hmm_describe(const struct model *m, struct description *out);
err hmm_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a, struct report *r);
err hmm_save(const struct model *m, struct tens_list *list, struct str *json);
err hmm_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json, struct model **out);

#endif
