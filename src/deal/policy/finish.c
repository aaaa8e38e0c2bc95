/* finish.c - whole partitions in order, each on the device that ends it first. */
#include "deal/inside.h"

extern const struct deal_policy deal_by_finish;
const struct deal_policy deal_by_finish = {
    .name = "finish",
    .help = "whole partitions, each where it ends first",
    .home = home_earliest,
};
