/* auto.c - local SGD whose number of local steps follows from waits and the fall of the loss (learn/store/choose.c). */
#include "store/policy.h"

extern const struct store_policy store_auto;
const struct store_policy store_auto = {
    .name = "auto",
    .help = "local steps, more while workers wait, fewer as the loss falls more slowly",
    .local = 1,
    .chooses = true,
};
