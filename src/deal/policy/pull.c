/* pull.c - whole partitions, which idle devices take in order. */
#include "deal/inside.h"

extern const struct deal_policy deal_by_pull;
const struct deal_policy deal_by_pull = {
    .name = "pull",
    .help = "whole partitions; an idle device takes the next one",
};
