/* autoregressive.c - forecasts segment after segment: a cell with an output layer continues from its own last output. */
#include "learn/forecast/forecast.h"

static err decode(const struct head_net *b, i32 *h) {
    struct op_spec s = head_op(b->n, "unroll");
    s.steps = b->shape->nout;
    s.zero_head = forecast_corrects(b->spec);
    head_quantiles(b->spec, &s);
    s.in[1] = b->own;
    s.in[2] = b->future;
    s.in[3] = b->base;
    s.in[4] = b->y;
    *h = b->n->op[b->top[0]].end;
    return head_chain(b->n, s, "decoder", h);
}

extern const struct head head_autoregressive;
const struct head head_autoregressive = {
    .name = "autoregressive",
    .help = "segment after segment, each from the one before",
    .report = " that continues from its own output",
    .segments = true,
    .plain_state = true,
    .own_output = true,
    .own = INPUT_FIRST,
    .own_is_segment = true,
    .decode = decode,
};
