/* local.c - local SGD: N steps of each worker by itself, then the mean of all weights (Stich, ICLR 2019; FedAvg: McMahan et al.,
 * AISTATS 2017).  Bytes fall by the factor N. */
#include "store/policy.h"

extern const struct store_policy store_local;
const struct store_policy store_local = {
    .name = "local",
    .help = "N local steps of each worker, then the mean of their weights",
    .least = 1,
    .most = 1000000,
    .usual = 64,
    .number = "steps",
    .local = STORE_BY_VALUE,
};
