/* whole.c - whole partitions in turn, the baseline of task = partition. */
#include "deal/inside.h"

static i32 home(struct dealer *d, const struct span *s) {
    (void)s;
    i32 device;
    do device = d->turn++ % d->n;
    while (d->dev[device].status != DEAL_IN);
    if (d->turn >= d->n) d->turn %= d->n;
    return device;
}

extern const struct deal_policy deal_by_whole;
const struct deal_policy deal_by_whole = {
    .name = "whole",
    .help = "whole partitions, round robin",
    .home = home,
};
