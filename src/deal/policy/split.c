/* split.c - partitions cut below a bound: Graham's W/m + (1 - 1/m) p_max is then W/m (1 + delta) for any skew. */
#include "deal/inside.h"

extern const struct deal_policy deal_by_split;
const struct deal_policy deal_by_split = {
    .name = "split",
    .help = "partitions cut below 5 % of a device's share, each piece where it ends first",
    .delta = DEAL_DELTA,
    .home = home_earliest,
};
