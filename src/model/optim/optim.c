/* optim.c - the list of optimizers (optims.def). */
#include "model/optim/optim.h"

#include <string.h>

#define OPTIM(name) extern const struct optim optim_##name;
#include "model/optim/optims.def"
#undef OPTIM

static const struct optim *const all[] = {
#define OPTIM(name) &optim_##name,
#include "model/optim/optims.def"
#undef OPTIM
};

i32 optim_count(void) { return (i32)COUNT(all); }
const struct optim *optim_at(i32 i) { return all[i]; }

const struct optim *optim_find(const char *name) {
    for (i32 i = 0; i < optim_count(); i++)
        if (!strcmp(all[i]->name, name)) return all[i];
    return NULL;
}
