/* policy.c - the policies by name. */
#include "deal/inside.h"

#include <string.h>

#include "base/str.h"

#define DEAL(name) extern const struct deal_policy deal_by_##name;
#include "deal/policies.def"
#undef DEAL

static const struct deal_policy *const POLICIES[] = {
#define DEAL(name) &deal_by_##name,
#include "deal/policies.def"
#undef DEAL
};

static const struct deal_policy *entry_at(i32 index) {
    return index >= 0 && index < (i32)COUNT(POLICIES) ? POLICIES[index] : NULL;
}

const char *deal_policy_name(i32 index) {
    const struct deal_policy *p = entry_at(index);
    return p ? p->name : NULL;
}

const char *deal_policy_help(i32 index) {
    const struct deal_policy *p = entry_at(index);
    return p ? p->help : NULL;
}

err deal_policy_find(const char *name, const struct deal_policy **out) {
    const char *names[COUNT(POLICIES)];
    for (i32 i = 0; i < (i32)COUNT(POLICIES); i++) {
        names[i] = POLICIES[i]->name;
        *out = POLICIES[i];
        if (strcmp(names[i], name) == 0) return 0;
    }
    const i32 near = str_nearest(name, names, COUNT(POLICIES));
    return FAIL_AT(E103, NULL, near >= 0 ? names[near] : "auto", "there is no policy \"%s\" for dealing work to devices", name);
}
