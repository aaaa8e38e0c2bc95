/* devices.h - forward-backward and best paths of sentences on the devices of --device (learn/offload.h).
 *
 *     heap of a device   | attributes of all tokens, labels | weights, E, its transpose | lane 0: u, alpha, .. | lane 1: .. |
 *     row of a partition a block of CRF_TOGETHER sentences; partitions: grains of the training
 *
 * Every sum has the order of kernel.c: results have the bits of the cores, where these fuse products and sums as devices do. */
#ifndef STRETTO_LEARN_CRF_DEVICES_H
#define STRETTO_LEARN_CRF_DEVICES_H

#include "learn/crf/train.h"
#include "learn/offload.h"

/* Sentences, cut into partitions, and weights: borrowed. */
struct shared_sentences {
    struct crf_pass pass;  /* but for E, back, top, mask and scratch; gold NULL = paths alone */
    i64 nrow;              /* rows of pass.w; the transitions are the last L */
    const i64 *first;      /* [nsentence + 1] tokens */
    const i32 *cut;        /* [ncut + 1] sentences of the partitions */
    i32 ncut;
};

struct shared_crf;
/* E106 for more labels than a device takes, and for cores with other bits; errors of offload_open.  *out is closed by the caller
 * also after a failure. */
err shared_crf_open(const struct shared_sentences *q, const struct resources *use, struct shared_crf **out);
void shared_crf_close(struct shared_crf *s); /* NULL is fine */
/* d [ntoken][Lp] = P - Y, and for each partition the negative log-likelihood and the expected pairs [Lp][Lp]: part
 * [ncut][1 + Lp Lp], with the weights as they are now. */
err shared_crf_pass(struct shared_crf *s, f32 *d, f64 *part);
err shared_crf_paths(struct shared_crf *s, i32 *best); /* [ntoken] */
void shared_crf_note(const struct shared_crf *s, const struct events *to); /* which device did how much */

#endif
