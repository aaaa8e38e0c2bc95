/* lpt.c - longest processing time first (Graham, 1969). */
#include "deal/inside.h"

extern const struct deal_policy deal_by_lpt;
const struct deal_policy deal_by_lpt = {
    .name = "lpt",
    .help = "whole partitions, the largest first, each where it ends first",
    .largest = true,
    .home = home_earliest,
};
