/* sequence.h - a class or a number of a whole sequence, or of each of its steps, by recurrent layers.
 *
 *     sequences --scale.c--> z [step][channel] --batch.c--> [T][B][S C] --net.c--> scores --output.c--> probabilities, numbers
 *
 * The learners `classify` and `regress` differ in the last layer and the loss alone.  S: --segment, the steps that the cell reads
 * at once.  An ensemble of --members nets averages their probabilities or numbers. */
#ifndef STRETTO_LEARN_SEQUENCE_SEQUENCE_H
#define STRETTO_LEARN_SEQUENCE_SEQUENCE_H

#include "data/prefetch.h"
#include "data/vocab.h"
#include "learn/engine.h"
#include "learn/learner.h"
#include "learn/length_order.h"
#include "learn/sequence_set.h"

/* What an input of the net holds (buf.role). */
enum sequence_input { SEQUENCE_X = 1, SEQUENCE_LENGTH, SEQUENCE_CLASS, SEQUENCE_NUMBER };

enum sequence_scale { SCALE_TRAINING, SCALE_EACH, SCALE_NONE }; /* --scale series, window, none */

/* A linear rule beside the model: ridge regression of the classes as 0 and 1, or of the number, on inputs u of a sequence: mean,
 * deviation and slope of each channel; of a step: its values. */
struct sequence_rule {
    i32 n;       /* inputs; 0 = there are too many channels for it */
    i32 per;     /* of a channel: 3 or 1 */
    f64 *weight; /* [n + 1][outputs] the last row is the constant */
};

struct sequence_model {
    struct model model; /* first */
    bool regress, per_step;
    i32 layers, segment, members;
    bool bidirectional;
    char loss[OPTION_WORD]; /* of numbers: "mse", "mae" */
    enum sequence_scale scale;
    struct net_options options; /* of every op */
    i32 nchannel;
    const char **channel;  /* [nchannel] */
    f64 *mean, *deviation; /* [nchannel] of the training steps */
    struct vocab classes;
    f64 *share;              /* [classes] of the training */
    f64 y_mean, y_deviation; /* of training numbers */
    f64 y_median;
    struct sequence_rule rule;
    struct net net; /* of T steps, for training */
    f32 *theta;     /* [members][net.ntheta] */
    f64 valid_loss; /* mean over the members; NaN = no validation part */
    i64 best_step;  /* of the last member */
    struct arena arena;
};

static inline struct sequence_model *sequence_of(const struct model *m) { return (struct sequence_model *)(uintptr_t)m; }
static inline i32 sequence_outputs(const struct sequence_model *m) { return m->regress ? 1 : m->classes.n; }

err sequence_net(const struct sequence_model *m, i32 T, struct net *n);
static inline i32 sequence_segments(const struct sequence_model *m, i32 steps) { return ceil_div(steps, m->segment); }

/* scale.c: what the net reads of a data set, by place of a step (sequence_set.first[sequence] + step); on the heap. */
struct sequence_data {
    const struct sequence_set *s;
    f32 *z;     /* [rows][nchannel] scaled, 0 = missing */
    i32 *class; /* [rows] number of m->classes, -1 = missing or unknown; NULL: numbers.  Of a whole sequence: at its first step */
    f32 *y;     /* [rows] scaled number, NaN = missing; NULL: classes */
};
err sequence_scale_fit(struct sequence_model *m, const struct sequence_set *s, i64 records); /* of the first records */
err sequence_data_new(const struct sequence_model *m, const struct sequence_set *s, struct sequence_data *out);
void sequence_data_free(struct sequence_data *d);
static inline i32 sequence_labels(const struct sequence_model *m, const struct sequence_set *s, i64 sequence) {
    return m->per_step ? s->length[sequence] : 1;
}

/* batch.c: sequences as rows of the net's inputs. */
struct sequence_batcher {
    const struct sequence_model *m;
    const struct sequence_data *d;
    const struct net *net;
    i64 from, to; /* records of the training */
    i32 B, T;     /* T: segments */
    u64 seed;
    struct length_ranked *order[PREFETCH_SLOTS];
    struct sequence_slot {
        f32 *input[NET_BUFS];
        i64 *record; /* [B] of each row, -1 = none */
        i64 labels;  /* that are known */
    } slot[PREFETCH_SLOTS];
    struct arena arena;
};
err sequence_batcher_new(const struct sequence_model *m, const struct sequence_data *d, const struct net *net, i32 B, i32 nslot,
                         struct sequence_batcher *out);
void sequence_batcher_free(struct sequence_batcher *b);
i32 sequence_batch_steps(const struct sequence_batcher *b, i64 record); /* steps that the net reads; -1 = no record: 0 */
void sequence_batch_train(void *batcher, i64 k, i32 slot);              /* batch k of the training (length_order.h) */
void sequence_batch_rows(struct sequence_batcher *b, i32 slot, const i64 *record, i32 n); /* longest first; others are empty */

/* output.c: outputs of records [from, to): K probabilities, or a number in original units, for each label. */
struct sequence_out {
    i64 from, to;
    i64 *first; /* [to - from + 1] place of the outputs of a record */
    i32 K;
    f64 *p; /* [first[to - from]][K] */
};
err sequence_out_new(const struct sequence_model *m, const struct sequence_set *s, i64 from, i64 to, struct sequence_out *out);
void sequence_out_free(struct sequence_out *o);
/* Adds those of a bound net with its present weights, times `by`. */
err sequence_out_add(struct sequence_batcher *b, struct engine *e, f64 by, struct sequence_out *o);
/* Of a trained model, in its batches; o is new. */
err sequence_predict(const struct sequence_model *m, const struct sequence_set *s, const struct resources *use,
                     struct sequence_out *o);

/* rule.c */
err sequence_rule_fit(struct sequence_model *m, const struct sequence_data *d, i64 records);
void sequence_rule_apply(const struct sequence_model *m, const struct sequence_data *d, struct sequence_out *o); /* sets o->p */

/* score.c, page.c, file.c, fit.c */
err sequence_score(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
                   struct scores *out);
err sequence_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a,
                    struct report *r);
err sequence_fit(const struct learn_job *job, struct model **out);
err sequence_save(const struct model *m, struct tens_list *tensors, struct str *json);
err sequence_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json,
                  struct model **out);
void sequence_free(struct model *m);
void sequence_take_options(struct sequence_model *m, const struct options *o); /* those that shape the net */

/* learner.c: the entries of learners `classify` and `regress`. */
err sequence_check(const struct options *o);
err sequence_resolve(struct learn_job *job);
/* Finds what the data lack before the first step: labels, two classes, values that f32 holds.  Nothing is kept. */
err sequence_prepare(struct learn_job *job);
i64 sequence_steps(const struct options *o, i64 train); /* planned training steps on so many sequences, without --steps */
extern const struct model_ops sequence_ops;

/* Options of both learners of sequences; regress has --loss as well. */
#define SEQUENCE_TAKES \
    OPT_preset, OPT_cell, OPT_layers, OPT_hidden, OPT_bidirectional, OPT_segment, OPT_scale, OPT_precision, OPT_members, \
    OPT_steps, OPT_max_steps, OPT_epochs, OPT_time_limit, OPT_batch, OPT_optim, OPT_lr, OPT_schedule, OPT_warmup, \
    OPT_momentum, OPT_weight_decay, OPT_clip, OPT_dropout, OPT_validate_every, OPT_patience, OPT_seed, OPT_refit_all, \
    OPT_parallel, OPT_device, OPT_grains, OPT_deterministic, OPT_checkpoint_every, OPT_require_skill

#endif
