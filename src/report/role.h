/* role.h - the role of a data series in a report; it determines color and dash in every chart and table. */
#ifndef STRETTO_REPORT_ROLE_H
#define STRETTO_REPORT_ROLE_H

enum role {
    ROLE_MODEL,  /* the trained forecaster: highlighted */
    ROLE_BASE,   /* its base forecast alone */
    ROLE_RIDGE,  /* ridge regression */
    ROLE_SNAIVE, /* one season back */
    ROLE_NAIVE,  /* repeat last */
    ROLE_TRUTH,  /* observed values */
    ROLE_QUIET,  /* context, muted: training loss, rules */
    ROLE_A, ROLE_B, ROLE_C, ROLE_D, /* others, in order */
    ROLE_COUNT
};

#endif
