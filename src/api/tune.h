/* tune.h - the parts of stretto_tune: what is hidden, what a trial is, who fits it, what comes out.
 *
 *     rows    |---------- train ----------|- validation -|-- test --|       the user's split; test rows are cut off (tune_data.c)
 *     fits    |---- train ----|- valid ---|part|part|part|part|             each fit chooses, stops and guards by rows before the
 *                                                                           parts that score it, as `train` does by those before
 *     groups  |-- train --|- valid --|part|part|                            the test.  Short data: groups of parts, each with a
 *             |-------- train --------|- valid --|part|part|                fit of its own
 *
 * tune_data.c    split and parts         tune_trial.c   one fit and its scores
 * tune_round.c   jobs on threads, ranks  tune_out.c     table, config, JSON, picture */
#ifndef STRETTO_API_TUNE_H
#define STRETTO_API_TUNE_H

#include <stdatomic.h>

#include "api/api.h"
#include "search/record.h"

/* A thread that fits trials, one at a time, with a thread pool of one. */
struct tune_worker {
    struct run_context ctx;
    _Atomic int end;   /* its fit is to end: the search was stopped, its time is over, or the fit is slow */
    volatile int stop; /* the same for the fit, on its own thread: `events` copy `end` */
    struct events events;
    _Atomic bool slow; /* the fit takes too large a share of --time-limit */
    _Atomic f64 since; /* clock_now() at the beginning of its fit; 0 = none that may be ended */
    struct tune *t;
};

/* A fit of the present round. */
struct tune_task {
    i32 trial, fit;
    bool done, known;  /* line has the result; it came from the record, on every rank */
    struct record_line line;
};

struct tune {
    struct options o, usual;     /* as given; with every `auto` resolved */
    struct options alone;        /* as given, for a worker: its context borrows texts of them */
    const struct learner *learner;
    const struct dataset *given; /* borrowed */
    struct dataset *data;        /* without the records of the test part */
    struct split split;          /* of the given data */
    i64 from[LADDER_PARTS], to[LADDER_PARTS]; /* part p is scored on records from[p] .. to[p] - 1; parts may overlap */
    i32 nparts, ngroup;
    i64 held;                    /* validation records of a fit; 0 = a fifth of its records, a horizon at least; -1 = none */
    char metric[24];             /* of the score table; "" = that of the skill */

    struct search search;
    struct record record;
    struct search_choice choice;
    i32 width;                   /* jobs of a round */

    struct run_context ctx;      /* ranks, and the number of threads */
    struct tune_worker *worker;
    i32 nworker;
    struct tune_task *task;      /* of the round */
    i32 ntask;
    i64 cap_task;

    f64 began, limit;            /* clock_now() at the start; seconds of the search, 0 = no limit */
    bool stopped, timed_out;
    struct events events;
    stretto_event_fn *fn;
    void *user;
    char run_dir[4096];
    int lock;
};

static inline f64 tune_elapsed(const struct tune *t, f64 now) { return now - t->began; }
static inline bool tune_silent(const struct tune *t) { return comm_rank(t->ctx.comm) > 0; }
extern volatile int tune_stop; /* set by a signal handler */

/* tune_data.c: usual, split, parts, the data without the test part, the space and the ladder. E106, E301. */
err tune_open_data(struct tune *t);
struct split tune_split(const struct tune *t, i32 group); /* of the fit before the parts of this group */

/* tune_trial.c: one fit and its scores. 0 with a result or a failure in *out; > 0: stopped before its end. */
err tune_fit(struct tune *t, struct tune_worker *w, const struct point *at, i32 fit, struct record_line *out);

/* tune_round.c: one thread for each core, or for the device. */
err tune_open_workers(struct tune *t);
void tune_close_workers(struct tune *t);
/* Rounds until the search is over, its time has passed, or it was stopped. */
err tune_run(struct tune *t);

/* tune_out.c */
err tune_table(const struct tune *t, struct str *out);
err tune_json(const struct tune *t, struct str *out);
err tune_yaml(const struct tune *t, struct str *out);
err tune_page(const struct tune *t, const char *path); /* .svg: the picture alone; else an HTML page */

#endif
