/* policy.c - the list of policies.def, and the text of --store. */
#include "store/policy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define STORE(name) extern const struct store_policy store_##name;
#include "store/policies.def"
#undef STORE

static const struct store_policy *const list[] = {
#define STORE(name) &store_##name,
#include "store/policies.def"
#undef STORE
};

const struct store_policy *store_policy_find(const char *name) {
    for (size_t i = 0; i < COUNT(list); i++)
        if (strcmp(list[i]->name, name) == 0) return list[i];
    return NULL;
}

static err unknown(const char *text) {
    const char *names[COUNT(list)];
    char all[200] = "", fix[60] = "--store sync";
    for (size_t i = 0, n = 0; i < COUNT(list); i++) {
        names[i] = list[i]->name;
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", names[i]);
    }
    const i32 near = str_nearest(text, names, (i32)COUNT(list));
    if (near >= 0) snprintf(fix, sizeof fix, "--store %s", names[near]);
    return FAIL_AT(E103, "--store", fix, "there is no store policy \"%.60s\" (known: %s)", text, all);
}

static err bad_number(const struct store_policy *p, const char *text) {
    char fix[60], least[32], most[32];
    snprintf(fix, sizeof fix, "--store %s:%g", p->name, p->usual);
    str_from_f64(least, p->least);
    str_from_f64(most, p->most);
    return FAIL_AT(E103, "--store", fix, "\"%.60s\": the %s behind the colon must be from %s to %s", text, p->number, least,
                   most);
}

err store_policy_parse(const char *text, struct store_choice *out) {
    char name[40];
    const char *colon = strchr(text, ':');
    const size_t n = colon ? (size_t)(colon - text) : strlen(text);
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), text);
    const struct store_policy *p = store_policy_find(name);
    if (!p) return unknown(name);
    *out = (struct store_choice){p, p->usual};
    if (!colon) return 0;
    if (p->most <= 0) {
        snprintf(name, sizeof name, "--store %s", p->name);
        return FAIL_AT(E103, "--store", name, "\"%.60s\": %s takes no number", text, p->name);
    }
    f64 v = 0;
    const bool whole = p->staleness == STORE_BY_VALUE || p->local == STORE_BY_VALUE || p->shared;
    if (!str_to_f64(colon + 1, strlen(colon + 1), '.', &v) || !(v >= p->least && v <= p->most) || (whole && v != floor(v)))
        return bad_number(p, text);
    out->value = v;
    return 0;
}
