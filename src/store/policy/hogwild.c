/* hogwild.c - Hogwild! (Recht et al., NeurIPS 2011): the threads of one process update one vector without locks (hogwild.h). */
#include "store/policy.h"

extern const struct store_policy store_hogwild;
const struct store_policy store_hogwild = {
    .name = "hogwild",
    .help = "threads of one process update shared weights without locks",
    .staleness = STORE_UNBOUNDED,
    .local = 1,
    .shared = true,
};
