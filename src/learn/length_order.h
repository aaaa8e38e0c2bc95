/* length_order.h - batches of sequences of unlike length: which sequences batch k of a training holds.
 *
 *     epoch:   all sequences in a new order --groups of GROUP batches--> each sorted by length --> batches in a new order
 *
 * Batches of similar length leave little of [T][B] empty; which batch comes when follows from the seed and its number. */
#ifndef STRETTO_LEARN_LENGTH_ORDER_H
#define STRETTO_LEARN_LENGTH_ORDER_H

#include "base/bits.h"

enum { LENGTH_GROUP = 16 }; /* batches whose sequences are sorted together */

struct length_ranked {
    i32 length;
    i64 sequence;
};
int length_longest_first(const void *a, const void *b); /* of struct length_ranked, for qsort; equal ones in order */

struct length_order {
    u64 seed;
    i64 from, to; /* sequences */
    i32 B;        /* of a batch */
    i32 (*length)(const void *self, i64 sequence);
    const void *self;
};
/* Batch k: out [B], longest first, -1 behind the last of an epoch.  room [B * LENGTH_GROUP]: scratch. */
void length_batch(const struct length_order *o, i64 k, struct length_ranked *room, i64 *out);
static inline i64 length_batches(const struct length_order *o) { return (o->to - o->from + o->B - 1) / o->B; } /* of an epoch */

#endif
