/* linear.c - synchronous: the bits of overlap, but messages wait until the step is computed.  For measurements. */
#include "exec/bound.h"
#include "exec/policy.h"

extern const struct policy policy_linear;
const struct policy policy_linear = {
    .name = "linear",
    .help = "synchronous; messages go after the step is computed",
    .serial = true,
    .may_send = exec_computed,
};
