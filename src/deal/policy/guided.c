/* guided.c - an idle device takes a piece of what is left, in proportion to its rate. */
#include "deal/inside.h"

static f64 size(const struct dealer *d, i32 device) { return size_guided(d, &d->dev[device]); }

extern const struct deal_policy deal_by_guided;
const struct deal_policy deal_by_guided = {
    .name = "guided",
    .help = "an idle device takes a part of the rest in proportion to its rate",
    .largest = true,
    .size = size,
};
