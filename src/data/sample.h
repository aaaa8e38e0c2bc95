/* sample.h - example data sets, generated from formulas (and twelve years of real airline passenger counts). */
#ifndef STRETTO_DATA_SAMPLE_H
#define STRETTO_DATA_SAMPLE_H

#include "base/str.h"

/* Appends sample `name` as CSV text with a header; rows 0 = default length. The same seed gives the same text. E103 with the
 * nearest name if unknown. */
err sample_write(const char *name, i64 rows, u64 seed, struct str *out);
const char *sample_list(void); /* one line per sample */

#endif
