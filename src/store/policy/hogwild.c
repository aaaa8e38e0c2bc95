/* hogwild.c - Hogwild! (Recht et al., NeurIPS 2011): the threads of one process update one vector (store/shared.h).  N stripes of
 * it have locks of their own, so that no update is lost; 0 = no locks. */
#include "store/policy.h"

extern const struct store_policy store_hogwild;
const struct store_policy store_hogwild = {
    .name = "hogwild",
    .help = "threads of one process update shared weights, N stripes with locks",
    .most = 4096,
    .number = "stripes",
    .staleness = STORE_UNBOUNDED,
    .local = 1,
    .shared = true,
};
