/* ssp.c - stale synchronous parallel (Ho et al., NeurIPS 2013): a worker may begin round q once all pushes of round q - s - 1 are
 * applied.  s = 0 is bulk-synchronous, s without bound is asynchronous. */
#include "store/policy.h"

extern const struct store_policy store_ssp;
const struct store_policy store_ssp = {
    .name = "ssp",
    .help = "bounded staleness: a worker may be N rounds ahead of the slowest one",
    .most = 1000,
    .usual = 3,
    .number = "rounds",
    .staleness = STORE_BY_VALUE,
    .local = 1,
};
