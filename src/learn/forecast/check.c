/* check.c - options of a forecaster that do not go together, whatever the data are. */
#include <stdio.h>
#include <string.h>

#include "learn/forecast/resolve.h"
#include "step/netplan.h"

/* A gradient that is a step late, beside what else may be. */
static err check_late(const struct options *o) {
    if (strcmp(o->pipeline, "delay1") != 0) return 0;
    if (o->accumulate > 1)
        return FAIL_AT(E106, NULL, "--accumulate 1   or   --pipeline overlap",
                       "--pipeline delay1 sends the sum of a step during the next one, but --accumulate %lld still "
                       "adds to it", (long long)o->accumulate);
    if (o->slice_rounds > 0)
        return FAIL_AT(E106, NULL, "--slice-rounds 0   or   --pipeline overlap",
                       "--slice-rounds %lld starts slices from states of earlier steps, and --pipeline delay1 updates weights "
                       "a step late: the combination is not supported", (long long)o->slice_rounds);
    return 0;
}

/* Ranks that go on without one that died, with the bits of the run that lost nobody. */
static err check_heal(const struct options *o) {
    if (!o->heal) return 0;
    if (strcmp(o->pipeline, "delay1") == 0)
        return FAIL_AT(E106, NULL, "--pipeline overlap   or   no --heal",
                       "--pipeline delay1 splits a step in two halves, and a rank that dies loses one of them");
    if (o->slice_rounds > 0)
        return FAIL_AT(E106, NULL, "--slice-rounds 0   or   no --heal",
                       "--slice-rounds %lld starts slices from states that other ranks hold, and a rank that dies loses them"
                       ": the bits would change", (long long)o->slice_rounds);
    if (o->plan && *o->plan)
        return FAIL_AT(E106, NULL, "no --plan   or   no --heal",
                       "a plan file is for a fixed number of ranks, and --heal continues with fewer");
    return 0;
}

/* Slices meet within a tolerance; other ways that are not exact are known when the plan is made. */
static err check_exact(const struct options *o) {
    char count[16] = "";
    i32 n;
    TRY(plan_slices(o->parallel, &n));
    if (!o->deterministic || n == 0) return 0;
    if (n > 0) snprintf(count, sizeof count, ":%d", n);
    return FAIL_AT(E401, NULL, "--parallel data",
                   "--deterministic: the strategy time%s does not give the bits of the serial run", count);
}

err resolve_check(const struct options *o) {
    TRY(check_late(o));
    TRY(check_heal(o));
    return check_exact(o);
}
