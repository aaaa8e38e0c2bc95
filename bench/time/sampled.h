/* sampled.h - task times of a case on one thread, and what they say of its step on other machines (plan/simulate.h).
 *
 *     serial            the series whole: a step of one row
 *     over 16, 8, 4, 2  the case's plan over so many devices, done by one worker,
 *                       the rows of every member by themselves (exec_apart)        --sampled_step--> seconds, task by task
 *     itself            on one device
 *     medians of the samples --costs_learn--> costs --plan_simulate--> seconds on 1, 2, 4 .. devices */
#ifndef STRETTO_BENCH_SAMPLED_H
#define STRETTO_BENCH_SAMPLED_H

#include "cut.h"

enum { SAMPLED_RUNS = 8, SAMPLED_MOST = 16, SAMPLED_DEVICES = 16 };

struct sampled {
    struct cut *whole;
    struct sampled_run {
        struct cut as;     /* the case, but its plan and what that is bound to */
        f64 *seconds;      /* [SAMPLED_MOST][ntask] */
    } run[SAMPLED_RUNS];   /* fewer rows a member first */
    i32 nrun, samples;
};

/* whole, serial: cases of one thread, loaded; borrowed.  What it holds lasts as long as the process. */
err sampled_new(struct cut *whole, struct cut *serial, struct sampled **out);
err sampled_step(struct sampled *s); /* one more step of each; the first one is for warming and does not count */
/* The plan over so many devices with its simulated costs, to be freed; also where it fails.  guessed: tasks whose
 * times are the cost model's. */
err sampled_plan(const struct sampled *s, i32 devices, struct plan **out, u32 *guessed);

#endif
