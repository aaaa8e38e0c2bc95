/* early.c - what can be refused before any data are read: reading a large file, and choosing a base, may take minutes. */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/file.h"

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

/* A file that is there and begins as plans do; the rest is looked at when there is a model. */
static err check_plan(const struct options *o) {
    char *text;
    i64 n;
    if (!o->plan || !*o->plan) return 0;
    TRY(file_load(o->plan, PLAN_BYTES, &text, &n));
    const err e = plan_glance(text, o->plan);
    mem_free(text);
    return e;
}

stretto_err stretto_config_check(stretto_config *self) {
    const struct options *o = &self->o;
    const struct kern *k;
    u32 how;
    TRY(opt_check(o));
    TRY(pick_kernel(o, &k, &how));
    TRY(resolve_check(o));
    return check_plan(o);
}
