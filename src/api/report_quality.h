/* report_quality.h - the findings of `stretto check` for the data-quality section of the report. */
#ifndef STRETTO_API_REPORT_QUALITY_H
#define STRETTO_API_REPORT_QUALITY_H

#include "api/api.h"
#include "report/report.h"

/* Adds findings to what the learner has filled; all texts lie in the arena.  A file of series is read again, unless that would
 * cost much beside the training.  What cannot be examined is said in out->how.  E601. */
err report_quality(const struct stretto_trainer *t, struct arena *a, struct report_quality *out);

#endif
