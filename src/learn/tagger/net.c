/* net.c - the network of a tagger: embeddings of each feature of a token, LSTM layers in both directions, scores, CRF.
 *
 *     ids [T][B] -embed-\
 *     ids [T][B] -embed--concat -dropout-> lstm.0 + lstm.0.reverse -> .. -dropout-> scores [T][B][L] -> crf (tags, lengths)
 *
 * Huang, Xu, Yu, arXiv 1508.01991 (2015).  The weights do not depend on T: a net of any length forecasts with them. */
#include <stdio.h>

#include "learn/forecast/head/head.h"
#include "learn/stack.h"
#include "learn/tagger/tagger.h"

static err input(struct net *n, enum tagger_input role, i32 item, const char *name, i32 T, i32 *out) {
    TRY(net_input(n, name, T, 1, true, out));
    n->buf[*out].role = (i32)role;
    n->buf[*out].item = item;
    return 0;
}

static err embedding(struct net *n, const struct tag_feature *f, i32 k, i32 T, i32 *out) {
    char name[24];
    struct op_spec s = head_op(n, "embed");
    s.vocab = f->words.n + 1;
    s.units = f->width;
    snprintf(name, sizeof name, "ids.%d", k);
    TRY(input(n, TAGGER_IDS, k, name, T, out));
    snprintf(name, sizeof name, "embed.%d", k);
    return head_chain(n, s, name, out);
}

/* All embeddings side by side: pairs first, then pairs of pairs, since each concatenation copies what it joins. */
static err embeddings(const struct tagger *t, struct net *n, i32 T, i32 *x) {
    i32 part[TAGGER_FEATURES], left = t->nfeature, joined = 0;
    char name[24];
    for (i32 k = 0; k < left; k++) TRY(embedding(n, &t->feature[k], k, T, &part[k]));
    while (left > 1) {
        for (i32 k = 0; 2 * k < left; k++) {
            part[k] = part[2 * k];
            snprintf(name, sizeof name, "join.%d", joined);
            if (2 * k + 1 == left) continue;
            TRY(head_beside(n, name, part[2 * k + 1], &part[k]));
            joined++;
        }
        left = (left + 1) / 2;
    }
    *x = part[0];
    return 0;
}

static err drop(struct net *n, const char *name, i32 *x) {
    return n->options.dropout > 0 ? head_chain(n, head_op(n, "dropout"), name, x) : 0;
}

err tagger_net(const struct tagger *t, i32 T, struct net *n) {
    i32 x, length, tags;
    char name[24];
    net_init(n);
    n->options = t->options;
    TRY(embeddings(t, n, T, &x));
    TRY(input(n, TAGGER_LENGTH, 0, "length", 1, &length));
    TRY(input(n, TAGGER_TAGS, 0, "tags", T, &tags));
    TRY(drop(n, "dropout.in", &x));
    for (i32 k = 0; k < t->layers; k++) {
        const struct stack_layer layer = {.name = "lstm", .k = k, .both = true, .length = length};
        TRY(stack_add(n, &layer, &x, NULL));
        snprintf(name, sizeof name, "dropout.%d", k);
        TRY(drop(n, name, &x));
    }
    struct op_spec scores = head_op(n, "dense"), crf = head_op(n, "crf");
    scores.units = t->tags.n;
    TRY(head_chain(n, scores, "scores", &x));
    snprintf(crf.name, sizeof crf.name, "crf");
    crf.in[0] = x;
    crf.in[1] = tags;
    crf.in[2] = length;
    TRY(net_op(n, &crf, NULL));
    return net_check(n);
}
