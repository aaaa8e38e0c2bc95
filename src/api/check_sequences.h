/* check_sequences.h - sequences that are worth a look, for `stretto check --task classify`. */
#ifndef STRETTO_API_CHECK_SEQUENCES_H
#define STRETTO_API_CHECK_SEQUENCES_H

#include "learn/sequence_set.h"

/* One finding: place, remedy, text. */
struct sequence_looks {
    void (*add)(void *self, const char *where, const char *fix, const char *text);
    void *self;
};
/* Constant channels, classes of a single sequence, sequences that repeat an earlier one. */
err check_sequences(const struct sequence_set *s, const struct sequence_looks *to);

#endif
