/* pace.h - shall the next step be run by teams, or by the first member of each alone?  A choice of speed: the bits are the same.
 *
 *     team team team  | alone alone alone |  the faster one, for `period` steps  | team ... (again, later and later)
 *       PROBE steps          PROBE steps
 *
 * Members wait for each other at every step of a sequence, so a core that other programs use costs a team a whole time slice
 * again and again; no plan can predict that, so it is measured.  Pure: seconds in, decision out.  One caller. */
#ifndef STRETTO_EXEC_PACE_H
#define STRETTO_EXEC_PACE_H

#include "base/bits.h"

enum { PACE_WARM = 4, PACE_PROBE = 6, PACE_FIRST = 64, PACE_LAST = 4096 };

struct pace {
    u32 left, period; /* steps left in this phase; length of the last period */
    u8 phase;         /* 0 keep, 1 probe teams, 2 probe alone */
    bool alone;       /* how the next step is run */
    bool choice;      /* alone was faster at the last probe */
    f64 sum[2];       /* seconds of the probes: teams, alone */
};

static inline void pace_begin(struct pace *p) { *p = (struct pace){.left = PACE_WARM}; }

/* Reports the duration of a step that ran as p->alone said; p->alone then holds for the next step. */
static inline void pace_took(struct pace *p, f64 seconds) {
    if (p->phase > 0) p->sum[p->phase - 1] += seconds;
    if (--p->left > 0) return;
    p->left = PACE_PROBE;
    if (p->phase == 0) p->sum[0] = p->sum[1] = 0;
    p->phase = (u8)((p->phase + 1) % 3);
    p->alone = p->phase == 2;
    if (p->phase > 0) return;
    bool faster = p->sum[1] < p->sum[0];
    u32 longer = p->period * 2 < PACE_LAST ? p->period * 2 : PACE_LAST;
    p->period = p->period > 0 && faster == p->choice ? longer : PACE_FIRST;
    p->alone = p->choice = faster;
    p->left = p->period;
}

#endif
