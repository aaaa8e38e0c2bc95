/* tagger.h - a tagger: a tag for each token of a sentence, by embeddings, LSTM layers in both directions and a CRF.
 *
 *     tokens --features.c--> ids of each token --batch.c--> [T][B] --net.c--> scores [T][B][L] --decode.c--> tags */
#ifndef STRETTO_LEARN_TAGGER_TAGGER_H
#define STRETTO_LEARN_TAGGER_TAGGER_H

#include "data/prefetch.h"
#include "data/vocab.h"
#include "learn/engine.h"
#include "learn/learner.h"
#include "learn/length_order.h"
#include "learn/tag_results.h"

/* What an input of the net holds (buf.role). */
enum tagger_input { TAGGER_IDS = 1, TAGGER_TAGS, TAGGER_LENGTH };

/* The word itself; its first or last n characters; the character n from its begin or end; its pattern of letter cases, digits and
 * marks; the text of another column. */
enum feature_kind { FEATURE_WORD, FEATURE_PREFIX, FEATURE_SUFFIX, FEATURE_FIRST, FEATURE_LAST, FEATURE_PATTERN, FEATURE_COLUMN,
                    FEATURE_KINDS };

enum { TAGGER_FEATURES = 24, FEATURE_TEXT = 64, TAGGER_EPOCHS = 20 };
enum { TAGGER_STEPS = 200 }; /* longer sentences train on their first tokens */

struct tag_feature {
    enum feature_kind kind;
    i32 column, n;      /* column of the file, from 0; characters */
    i32 width;          /* of its embedding */
    struct vocab words; /* number k of a word is id k + 1; id 0 = not known */
};

struct tagger {
    struct model model; /* first */
    i32 nfeature, ncol; /* ncol: columns of the file without the tag */
    i32 tag_column;     /* of the file */
    struct tag_feature feature[TAGGER_FEATURES];
    struct vocab tags;
    struct tag_rule rule;       /* the naive row */
    i32 layers;
    struct net_options options; /* of every op: hidden, dropout, .. */
    struct net net;             /* of T steps, for training */
    f32 *theta;                 /* [net.ntheta] */
    f64 valid_error;            /* of the kept weights: share of wrong tags in the validation sentences; NaN = none */
    i64 best_step;
};

static inline struct tagger *tagger_of(const struct model *m) { return (struct tagger *)(uintptr_t)m; }

err tagger_net(const struct tagger *t, i32 T, struct net *n);

/* features.c.  Chooses features for files of `ncol` columns, and their words from sentences [from, to). */
err features_choose(struct tagger *t, const struct token_set *s, i64 from, i64 to);
/* Ids of all tokens of a file: *out [nfeature][ntoken], on the heap. */
err features_ids(const struct tagger *t, const struct token_set *s, i32 **out);
const char *feature_kind_name(enum feature_kind kind);

/* batch.c: sentences as rows of the net's inputs. */
struct tag_batcher {
    const struct tagger *t;
    const struct token_set *s;
    const struct net *net;
    const i32 *ids;          /* [nfeature][ntoken] */
    const i32 *tag;          /* [ntoken] numbers of t->tags, -1 = not known; NULL = none */
    const u8 *rare;          /* [nfeature 0's vocabulary + 1] words seen once; NULL = keep all words */
    i64 from, to;            /* training sentences */
    i32 B, T;
    u64 seed;
    struct length_ranked *order[PREFETCH_SLOTS]; /* room to sort a group of batches */
    struct tag_slot {
        f32 *input[NET_BUFS];
        i64 *sentence;       /* [B] of each row; -1 = none */
        i64 tokens;          /* with a tag */
    } slot[PREFETCH_SLOTS];
    struct arena arena;
};
err tag_batcher_new(const struct tagger *t, const struct token_set *s, const struct net *net, i32 B, i32 nslot,
                    struct tag_batcher *out);
void tag_batcher_free(struct tag_batcher *b);
i32 tag_batch_steps(const struct tag_batcher *b, i64 sentence); /* tokens of a sentence that the net reads; -1 = no sentence */
/* Batch k of the training sentences: each epoch has every sentence once, in a new order, those of similar length together. */
void tag_batch_train(void *batcher, i64 k, i32 slot);
/* Rows: the given sentences [n <= B], longest first; others are empty. */
void tag_batch_rows(struct tag_batcher *b, i32 slot, const i64 *sentence, i32 n);

/* decode.c: tags of the sentences [from, to) of a file: *out [ntoken] numbers of t->tags, on the heap; tokens outside are -1. */
err tagger_decode(const struct tagger *t, const struct token_set *s, i64 from, i64 to, const struct resources *use, i32 **out);
/* With the engine of a training: its weights, the ids of the file, the forward step of batch b.B rows.  Of longer sentences the
 * first tag_batch_steps tokens. */
err tagger_decode_with(struct tag_batcher *b, struct engine *e, enum kern_arch arch, i64 from, i64 to, i32 *out);

err tagger_fit(const struct learn_job *job, struct model **out);
err tagger_save(const struct model *m, struct tens_list *tensors, struct str *json);
err tagger_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json, struct model **out);
void tagger_free(struct model *m);

#endif
