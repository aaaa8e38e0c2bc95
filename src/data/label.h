/* label.h - what the rows of a series are called in messages and tables: their dates, or their numbers. */
#ifndef STRETTO_DATA_LABEL_H
#define STRETTO_DATA_LABEL_H

#include "data/series.h"

f64 row_seconds(const struct series *s, i64 row);                        /* its time; rows past the end continue in steps */
void row_label(const struct series *s, i64 row, char out[32]);           /* its date, or "row 17" */
void span_label(const struct series *s, i64 from, i64 to, char out[72]); /* "1960-01..1960-12" */

#endif
