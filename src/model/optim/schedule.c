/* schedule.c - the learning rate over a run, as a factor of --lr.
 *
 *     1 |   ____ constant        warm-up: (s + 1) / warmup, a straight line up to 1
 *       |  /\__  cosine          then p = share of the remaining steps that is done:
 *       | /    \                     cosine (1 + cos(pi p)) / 2,  linear 1 - p,  step 1, 0.1 from p = 1/2, 0.01 from p = 3/4
 *     0 |/______\__ step                                                                                                       */
#include <math.h>

#include "model/optim/optim.h"

f64 schedule_factor(enum schedule kind, i64 step, i64 steps, i64 warmup) {
    if (step < warmup) return (f64)(step + 1) / (f64)warmup;
    f64 p = steps > warmup ? dmin(1, (f64)(step - warmup) / (f64)(steps - warmup)) : 1;
    switch (kind) {
        case SCHEDULE_COSINE:
            return (1 + cos(3.141592653589793 * p)) / 2;
        case SCHEDULE_LINEAR:
            return 1 - p;
        case SCHEDULE_STEP:
            return p < 0.5 ? 1 : p < 0.75 ? 0.1 : 0.01;
        default:
            return 1;
    }
}
