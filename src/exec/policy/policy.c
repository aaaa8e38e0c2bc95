/* policy.c - the list of policies.def. */
#include "exec/policy.h"

#include <string.h>

#define POLICY(name) extern const struct policy policy_##name;
#include "exec/policy/policies.def"
#undef POLICY

static const struct policy *const list[] = {
#define POLICY(name) &policy_##name,
#include "exec/policy/policies.def"
#undef POLICY
};

err policy_fits(const struct policy *p, i32 slices, i32 ranks) { return p && p->fits ? p->fits(slices, ranks) : 0; }

i32 policy_count(void) { return (i32)COUNT(list); }
const struct policy *policy_at(i32 i) { return list[i]; }

const struct policy *policy_find(const char *name) {
    for (size_t i = 0; i < COUNT(list); i++)
        if (strcmp(list[i]->name, name) == 0) return list[i];
    return NULL;
}
