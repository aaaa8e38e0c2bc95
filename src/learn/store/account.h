/* account.h - what a training through a parameter store came to, for the console and the report.  The same on all ranks. */
#ifndef STRETTO_LEARN_STORE_ACCOUNT_H
#define STRETTO_LEARN_STORE_ACCOUNT_H

#include "store/store.h"

enum { STORE_DECISIONS = 32, STORE_WHY = 160 };

struct store_record {
    char name[160]; /* "ssp:3, 2 servers, codec bf16" */
    i32 servers, workers;
    i64 pushes, refused, sent, whole, messages, stale[STALE_BINS];
    f64 waited, worked; /* seconds of all workers */
    i32 ndecision;
    struct store_decision { /* of --store auto */
        i32 member;
        i64 step;
        char what[STORE_WHY];
    } decision[STORE_DECISIONS];
};

struct forecaster;
void store_record_free(struct forecaster *f);

#endif
