/* lists.c - the values of options that name parts of higher floors: cells, losses, optimizers, learners, presets. */
#include "api/lists.h"

const struct opt_list *api_lists(void) {
    static const struct opt_list lists[] = {
        {"cells",
#define CELL(name) #name " "
#include "model/cell/cells.def"
#undef CELL
        },
        {"heads",
#define HEAD(name) #name " "
#include "learn/forecast/head/heads.def"
#undef HEAD
        },
        {"losses",
#define LOSS(name) #name " "
#include "model/loss/losses.def"
#undef LOSS
        },
        {"optims",
#define OPTIM(name) #name " "
#include "model/optim/optims.def"
#undef OPTIM
        },
        {"learners",
#define LEARNER(name) #name " "
#include "learn/learners.def"
#undef LEARNER
        },
        {"launchers",
#define LAUNCHER(name) #name " "
#include "launch/launchers.def"
#undef LAUNCHER
        },
        {"policies",
#define POLICY(name) #name " "
#include "exec/policy/policies.def"
#undef POLICY
        },
        {"presets",
#define PRESET(name, when) #name " "
#include "opt/presets.def"
#undef PRESET
        },
        {0}};
    return lists;
}
