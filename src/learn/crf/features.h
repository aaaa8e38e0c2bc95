/* features.h - attributes of tokens from templates: extracted in parallel, one template per worker, and kept as index arrays.
 *
 *     template + words around a token --> key of word codes --> number of the key --> text "U05:the/dog" --> attribute
 *
 * Keys are integers, so the text of each different one is made once.  Two templates that make the same text share the attribute,
 * as in CRF++. */
#ifndef STRETTO_LEARN_CRF_FEATURES_H
#define STRETTO_LEARN_CRF_FEATURES_H

#include "base/pool.h"
#include "learn/crf/template.h"
#include "learn/token_set.h"

struct features {
    i64 ntoken;
    i64 *at;        /* [ntoken + 1] */
    i32 *attribute; /* [at[ntoken] + CRF_AHEAD] attributes of each token; the padding is 0 */
};
void features_free(struct features *f);

/* Counts the attributes of tokens [0, ntoken), keeps those with a count of at least `cutoff`, most frequent first, in `words`
 * (which is empty), and gives the attributes of each token.  *seen: attributes before the cut. */
err features_collect(const struct templates *t, const struct token_set *s, i64 ntoken, i32 cutoff, struct pool *pool,
                     struct vocab *words, i64 *seen, struct features *out);
/* The same with the attributes of a model; others are left out. */
err features_map(const struct templates *t, const struct token_set *s, struct pool *pool, const struct vocab *words,
                 struct features *out);

#endif
