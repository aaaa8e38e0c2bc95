/* learner_registry.c - the learners of learners.def. */
#include <string.h>

#include "data/split.h"
#include "learn/learner.h"

#define LEARNER(name) extern const struct learner learner_##name;
#include "learn/learners.def"
#undef LEARNER

static const struct learner *const all[] = {
#define LEARNER(name) &learner_##name,
#include "learn/learners.def"
#undef LEARNER
};

const struct learner *learner_at(i32 i) { return i < (i32)COUNT(all) ? all[i] : NULL; }

const struct learner *learner_find(const char *name) {
    for (size_t i = 0; i < COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}

err learner_of(const struct options *o, const struct learner **out) {
    *out = learner_find(o->task);
    return *out ? 0 : FAIL_AT(E103, "--task", "--task forecast", "there is no learner \"%s\"", o->task);
}

err split_rows(const struct options *o, i64 rows, struct split *out) {
    static const char fifth[] = "20%";
    const struct series bare = {.nrow = rows};
    return split_before(&bare, rows, opt_is_auto(o, OPT_validation) ? fifth : o->validation,
                        opt_is_auto(o, OPT_test) ? fifth : o->test, out);
}
