/* early.c - what can be refused before any data are read: reading a large file, and choosing a base, may take minutes. */
#include "api/api.h"
#include "base/file.h"

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
    const struct learner *learner;
    const struct kern *k;
    u32 how;
    TRY(opt_check(o));
    TRY(pick_kernel(o, &k, &how));
    TRY(learner_of(o, &learner));
    if (learner->check) TRY(learner->check(o));
    return check_plan(o);
}
