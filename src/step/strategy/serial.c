/* serial.c - everything on the first device. This is the reference: tests compare every other strategy with it. */
#include "step/strategy/strategy.h"

static i32 most(struct planner *p, i32 n) {
    (void)p, (void)n;
    return 1;
}

const struct strategy strategy_serial = {
    .name = "serial",
    .help = "everything on one device",
    .exact = true,
    .most = most,
};
