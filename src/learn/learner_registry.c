/* registry.c - the learners of learners.def. */
#include <string.h>

#include "learn/learner.h"

#define LEARNER(name) extern const struct learner learner_##name;
#include "learn/learners.def"
#undef LEARNER

static const struct learner *const all[] = {
#define LEARNER(name) &learner_##name,
#include "learn/learners.def"
#undef LEARNER
};

const struct learner *learner_find(const char *name) {
    for (size_t i = 0; i < COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}
