/* projected.h - dimensions and offsets of an LSTM with projection, shared by projected.c (the layer) and projected_walk.c. */
#ifndef STRETTO_MODEL_LAYER_PROJECTED_H
#define STRETTO_MODEL_LAYER_PROJECTED_H

#include "model/layer/recurrent.h"

struct projected_dims {
    i32 I, Ip, H, Hp, P, Pp;
    i64 W;
    i64 wh, bias, whr; /* offsets in theta */
    i64 whrt, wxt;     /* in derived */
};

static inline struct projected_dims projected_dims(const struct op *op) {
    struct projected_dims d = {.I = op->I, .H = op->spec.hidden, .P = op->F};
    d.Ip = round_up(d.I, LANES), d.Hp = round_up(d.H, LANES), d.Pp = round_up(d.P, LANES);
    d.W = 4 * (i64)d.Hp;
    d.wh = d.I * d.W;
    d.bias = d.wh + d.P * d.W;
    d.whr = d.bias + d.W;
    d.whrt = d.W * d.Pp;
    d.wxt = d.whrt + (i64)d.P * d.Hp;
    return d;
}

#endif
