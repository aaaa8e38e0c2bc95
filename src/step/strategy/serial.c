/* serial.c - everything on the first device.  This is the specification: every other strategy is compared with it. */
#include "step/strategy/strategy.h"

static const char *applicable(struct planner *p) {
    (void)p;
    return NULL;
}

static err place(struct planner *p) {
    p->piece[0].device = 0;
    return 0;
}

const struct strategy strategy_serial = {
    .name = "serial",
    .help = "everything on one device",
    .exact = true,
    .applicable = applicable,
    .cut = strategy_whole,
    .place = place,
    .exchange = planner_merge,
};
