/* delay1.c - synchronous, each update a step late: sums and update run while the next step is computed
 * (src/exec/policy/delay1.c). */
#include "store/policy.h"

extern const struct store_policy store_delay1;
const struct store_policy store_delay1 = {
    .name = "delay1",
    .help = "synchronous, each update a step late (as --pipeline delay1)",
    .local = 1,
    .pipeline = "delay1",
    .plain = true,
};
