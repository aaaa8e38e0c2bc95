/* sync.c - synchronous: gradients of all ranks are summed in the order of the micro-batches, then every rank has the update
 * (bulk-synchronous parallel).  Without a codec and servers of their own the plan's messages do it (src/exec); else the store. */
#include "store/policy.h"

extern const struct store_policy store_sync;
const struct store_policy store_sync = {
    .name = "sync",
    .help = "synchronous sum of gradients over all ranks",
    .local = 1,
    .plain = true,
};
