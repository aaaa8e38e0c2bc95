/* account.h - what a training through a parameter store came to, for the console and the report.  The same on all ranks. */
#ifndef STRETTO_LEARN_STORE_ACCOUNT_H
#define STRETTO_LEARN_STORE_ACCOUNT_H

#include "store/store.h"

enum { STORE_DECISIONS = 32, STORE_WHY = 160 };

/* Decisions that depended on measured time: a resumed run, and one that lost a rank, continues with them (reached.c). */
enum {
    REACHED_SET,   /* 1 */
    REACHED_BASE,  /* first step of round 0 */
    REACHED_LOCAL, /* steps of a ticket */
    REACHED_LEGS,  /* that were seen */
    REACHED_CODEC,
    REACHED_CHOICE, /* hash of the options */
    REACHED_STALE,  /* the chooser's (choose.c) from here on */
    REACHED_VOTES,
    REACHED_TRIES,
    REACHED_BACK_STALE,
    REACHED_BACK_LOCAL,
    REACHED_SETTLED,
    REACHED_DECISIONS, /* of the record */
    REACHED_COUNTS
};
enum { CODEC_NOT_JUDGED, CODEC_KEPT, CODEC_OFF };
struct store_reached {
    i64 count[REACHED_COUNTS];
    f64 gain[3]; /* of the chooser: best, before, that to go back to */
};

struct store_record {
    char name[160]; /* "ssp:3, 2 servers, codec bf16" */
    bool shared;    /* hogwild: workers are threads, a push is an update of the common weights */
    i32 servers, workers;
    i64 pushes, refused, sent, whole, messages, stale[STALE_BINS];
    f64 waited, worked; /* seconds of all workers */
    struct store_reached reached;
    f32 *kept; /* [states][ntheta] of a server optimiser that the engine does not hold, over the death of a rank; NULL = none */
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
