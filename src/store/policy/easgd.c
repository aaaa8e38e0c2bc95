/* easgd.c - elastic averaging (Zhang, Choromanska, LeCun, NeurIPS 2015): each worker keeps its own weights; every N steps worker
 * and centre move towards each other by alpha = 0.9 / workers of their distance.  The centre is the model. */
#include "store/policy.h"

extern const struct store_policy store_easgd;
const struct store_policy store_easgd = {
    .name = "easgd",
    .help = "elastic averaging: every N steps workers and centre attract each other",
    .least = 1,
    .most = 1000000,
    .usual = 8,
    .number = "steps",
    .staleness = STORE_UNBOUNDED,
    .local = STORE_BY_VALUE,
    .own_weights = true,
};
