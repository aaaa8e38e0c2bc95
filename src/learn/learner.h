/* learner.h - the descriptor of a kind of learner: one file, one const struct, one line in learners.def.
 *
 * Every learner is an ordered map -> merge -> update over slices; how it does that is its own business (a net runs plans). What
 * the program needs of it is here: fit on a series, forecast after the last row, score, write, read. */
#ifndef STRETTO_LEARN_LEARNER_H
#define STRETTO_LEARN_LEARNER_H

#include "base/str.h"
#include "data/series.h"

struct forecast_job;
struct forecaster;

struct learner {
    const char *name; /* --task NAME */
    const char *help;
    /* Fit; returns 0, a failure, or a stop reason. */
    err (*fit)(const struct forecast_job *job, struct forecaster **out);
};

const struct learner *learner_find(const char *name); /* NULL = none */

#endif
