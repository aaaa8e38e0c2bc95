/* split.h - splits a series into training, validation and test part. */
#ifndef STRETTO_DATA_SPLIT_H
#define STRETTO_DATA_SPLIT_H

#include "data/series.h"

/* Each text is a number of rows ("168"), a fraction of all rows ("0.2", "20%"), the date on which the part starts
 * ("2016-07-01"), or "0". The test part ends at the last target, the validation part precedes it. E103, E301. */
err split_make(const struct series *s, const char *validation, const char *test, struct split *out);
/* The same of rows [0, end). */
err split_before(const struct series *s, i64 end, const char *validation, const char *test, struct split *out);

#endif
