/* fingerprint_blocks.h - blocks of a fingerprint, for its comparison. */
#ifndef STRETTO_DATA_FINGERPRINT_BLOCKS_H
#define STRETTO_DATA_FINGERPRINT_BLOCKS_H

#include "data/fingerprint.h"

struct print_range {
    i64 lo, hi; /* rows [lo, hi) */
    i32 part;   /* 0 training, 1 validation, 2 test, 3 beyond */
};
struct print_range fingerprint_range(const struct fingerprint *f, i64 block);
const char *fingerprint_part(i32 part); /* its name */

/* Names, roles and blocks of the columns of s; rows, split, step and nblock of f are set. Blocks beyond the series stay zero. */
err fingerprint_columns(const struct series *s, struct fingerprint *f);

#endif
