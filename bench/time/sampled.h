/* sampled.h - task times of a case measured on one thread, and the step time on other machines that follows (step/simulate.h).
 *
 *     serial            the whole series: a step of one row
 *     over 16, 8, 4, 2  the case's plan for so many devices, run by one worker,
 *                       each member's rows separately (step_apart)               --sampled_step--> seconds per task
 *     itself            on one device
 *     medians of the samples --costs_learn_walks--> costs --plan_simulate--> seconds on 1, 2, 4 .. devices */
#ifndef STRETTO_BENCH_TIME_SAMPLED_H
#define STRETTO_BENCH_TIME_SAMPLED_H

#include "cut.h"

enum { SAMPLED_RUNS = 8, SAMPLED_MOST = 16, SAMPLED_DEVICES = 16 };

struct sampled {
    struct cut *whole;
    struct sampled_run {
        struct cut as;     /* the case with its own plan and buffers */
        f64 *seconds;      /* [SAMPLED_MOST][ntask] */
    } run[SAMPLED_RUNS];   /* fewer rows per member first */
    i32 nrun, samples;
};

/* whole, serial: loaded cases of one thread; borrowed. Lives until the process ends. */
err sampled_new(struct cut *whole, struct cut *serial, struct sampled **out);
err sampled_step(struct sampled *s); /* one more step of each; the first is a warm-up and does not count */
/* The plan for `devices` devices with simulated costs, to be freed by the caller, also on failure. guessed: tasks with times
 * from the cost model. */
err sampled_plan(const struct sampled *s, i32 devices, struct plan **out, u32 *guessed);

#endif
