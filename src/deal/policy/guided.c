/* guided.c - guided self-scheduling: the next piece of an idle device is a share of the remaining work, proportional to the
 * rate of the device. */
#include "deal/inside.h"

static f64 size(const struct dealer *d, i32 device) { return size_guided(d, &d->dev[device]); }

extern const struct deal_policy deal_by_guided;
const struct deal_policy deal_by_guided = {
    .name = "guided",
    .help = "an idle device takes a part of the rest in proportion to its rate",
    .largest = true,
    .size = size,
};
