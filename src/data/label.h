/* label.h - labels of series rows in messages and tables: their date, or "row N". */
#ifndef STRETTO_DATA_LABEL_H
#define STRETTO_DATA_LABEL_H

#include "data/series.h"

f64 row_seconds(const struct series *s, i64 row); /* its time; rows past the end are extrapolated by the step */
void row_label(const struct series *s, i64 row, char out[32]);           /* its date, or "row 17" */
void span_label(const struct series *s, i64 from, i64 to, char out[72]); /* "1960-01..1960-12" */

#endif
