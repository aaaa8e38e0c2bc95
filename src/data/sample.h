/* sample.h - example series, written from formulas (and twelve years of airline passengers, which are facts). */
#ifndef STRETTO_DATA_SAMPLE_H
#define STRETTO_DATA_SAMPLE_H

#include "base/str.h"

/* Append sample `name` as CSV text with a header; rows 0 = its usual length.  The same seed gives the same text.  E103 with the
 * nearest name when there is none of that name. */
err sample_write(const char *name, i64 rows, u64 seed, struct str *out);
const char *sample_list(void); /* one line a sample: name, two spaces or more, what it is */

#endif
