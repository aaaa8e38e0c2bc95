/* role.h - who a number belongs to.  A role has one colour and one dash in every chart and table of a report. */
#ifndef STRETTO_REPORT_ROLE_H
#define STRETTO_REPORT_ROLE_H

enum role {
    ROLE_MODEL,  /* the forecaster that was trained: the one that stands out */
    ROLE_BASE,   /* its linear base alone */
    ROLE_RIDGE,  /* ridge regression */
    ROLE_SNAIVE, /* one season back */
    ROLE_NAIVE,  /* repeat last */
    ROLE_TRUTH,  /* what was observed */
    ROLE_QUIET,  /* context that must not stand out: training loss, rules */
    ROLE_A, ROLE_B, ROLE_C, ROLE_D, /* anything else, in order */
    ROLE_COUNT
};

#endif
