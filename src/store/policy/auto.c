/* auto.c - chooses among the other policies while training runs (learn/forecast/store_auto.c). */
#include "store/policy.h"

extern const struct store_policy store_auto;
const struct store_policy store_auto = {
    .name = "auto",
    .help = "fewest waits first, synchronous once the loss falls more slowly",
    .local = 1,
    .chooses = true,
};
