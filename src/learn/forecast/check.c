/* check.c - options of a forecaster that do not go together, whatever the data are. */
#include <stdio.h>
#include <string.h>

#include "learn/forecast/resolve.h"
#include "plan/plan.h"

/* A gradient that is a step late, beside what else may be. */
static err check_late(const struct options *o) {
    if (strcmp(o->pipeline, "delay1") != 0) return 0;
    if (o->accumulate > 1)
        return FAIL_AT(E106, NULL, "--accumulate 1   or   --pipeline overlap",
                       "--pipeline delay1 sends the sum of a step while the next one is computed, --accumulate %lld keeps it to "
                       "add to it", (long long)o->accumulate);
    if (o->slice_rounds > 0)
        return FAIL_AT(E106, NULL, "--slice-rounds 0   or   --pipeline overlap",
                       "--slice-rounds %lld begins slices where weights of steps ago left them, --pipeline delay1 moves weights "
                       "a step late: nobody knows what both together do", (long long)o->slice_rounds);
    return 0;
}

/* Ranks that go on without one that died, with the bits of the run that lost nobody. */
static err check_heal(const struct options *o) {
    if (!o->heal) return 0;
    if (strcmp(o->pipeline, "delay1") == 0)
        return FAIL_AT(E106, NULL, "--pipeline overlap   or   no --heal",
                       "--pipeline delay1 has a step in two halves, of which a rank that dies takes one along");
    if (o->slice_rounds > 0)
        return FAIL_AT(E106, NULL, "--slice-rounds 0   or   no --heal",
                       "--slice-rounds %lld begins slices where others left them steps ago, and a rank that dies takes those "
                       "along: the bits would be others", (long long)o->slice_rounds);
    if (o->plan && *o->plan)
        return FAIL_AT(E106, NULL, "no --plan   or   no --heal",
                       "the plan of a file is for so many ranks, and --heal goes on with fewer");
    return 0;
}

/* Slices meet within a tolerance; other ways that are not exact are known when the plan is made. */
static err check_exact(const struct options *o) {
    char count[16] = "";
    i32 n;
    TRY(plan_slices(o->parallel, &n));
    if (!o->deterministic || n == 0) return 0;
    if (n > 0) snprintf(count, sizeof count, ":%d", n);
    return FAIL_AT(E401, NULL, "--parallel data_sync",
                   "--deterministic: the strategy time_slice%s does not give the bits of the serial run", count);
}

err resolve_check(const struct options *o) {
    TRY(check_late(o));
    TRY(check_heal(o));
    return check_exact(o);
}
