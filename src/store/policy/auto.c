/* auto.c - asynchronous, local or synchronous steps, by what the workers' steps and messages take and the fall of the loss
 * (learn/store/choose.c). */
#include "store/policy.h"

extern const struct store_policy store_auto;
const struct store_policy store_auto = {
    .name = "auto",
    .help = "asynchronous or local steps where they are faster, then synchronous as the loss falls more slowly",
    .local = 1,
    .chooses = true,
};
