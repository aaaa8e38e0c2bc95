/* asp.c - asynchronous (Downpour SGD, Dean et al., NeurIPS 2012): a server applies each push when it arrives, no worker waits for
 * another. */
#include "store/policy.h"

extern const struct store_policy store_asp;
const struct store_policy store_asp = {
    .name = "asp",
    .help = "asynchronous: each push is applied when it arrives",
    .staleness = STORE_UNBOUNDED,
    .local = 1,
};
