/* strategy.c - the list of strategies.def. */
#include "step/strategy/strategy.h"

#include <string.h>

#define STRATEGY(name) extern const struct strategy strategy_##name;
#include "step/strategy/strategies.def"
#undef STRATEGY

static const struct strategy *const list[] = {
#define STRATEGY(name) &strategy_##name,
#include "step/strategy/strategies.def"
#undef STRATEGY
};

i32 strategy_count(void) { return (i32)COUNT(list); }
const struct strategy *strategy_at(i32 i) { return list[i]; }

const struct strategy *strategy_find(const char *name) {
    for (size_t i = 0; i < COUNT(list); i++)
        if (strcmp(list[i]->name, name) == 0 || (list[i]->alias && strcmp(list[i]->alias, name) == 0)) return list[i];
    return NULL;
}
