/* chunks.h - precision, recall and F1 over chunks, by the rules of the CoNLL-2000 shared task (conlleval).
 *
 *     B-NP I-NP O B-VP      prefix and type at the first '-'; a chunk counts as found if its first and last token and its type
 *                           are those of the gold chunk.  I- after O, or after another type, opens a chunk.
 *
 * Source: Tjong Kim Sang and Buchholz, Introduction to the CoNLL-2000 shared task, 2000. */
#ifndef STRETTO_LEARN_CHUNKS_H
#define STRETTO_LEARN_CHUNKS_H

#include "data/vocab.h"

struct chunk_count {
    i64 gold, found, right; /* chunks */
};

struct chunk_scores {
    i64 tokens, right;        /* tokens whose tag is right */
    struct chunk_count all;
    struct vocab type;        /* types of chunks in order of first appearance; the type "" of tags without '-' is no chunk */
    struct chunk_count *each; /* [type.n] */
};

/* Tags of one column: words and a code per token. */
struct chunk_tags {
    const struct vocab *word;
    const i32 *code;
};
/* Tokens of sentence k: [first[k], first[k + 1]).  E601. */
err chunks_score(const struct chunk_tags *gold, const struct chunk_tags *guess, const i64 *first, i32 nsentence,
                 struct chunk_scores *out);
void chunks_free(struct chunk_scores *s);

/* Percent; NaN where there is nothing to count. */
f64 chunk_precision(const struct chunk_count *c);
f64 chunk_recall(const struct chunk_count *c);
f64 chunk_f1(const struct chunk_count *c);

#endif
