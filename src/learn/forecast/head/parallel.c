/* parallel.c - forecasts all segments of the horizon in parallel: each is one cell step from the final state, with the
 * segment number as input. */
#include "learn/forecast/forecast.h"

static err front(const struct head_net *b, i32 *x) {
    struct op_spec seg = head_op(b->n, "dense");
    seg.units = b->spec->hidden;
    seg.act = ACT_RELU;
    return head_chain(b->n, seg, "segment", x);
}

static err decode(const struct head_net *b, i32 *h) {
    struct op_spec decode = head_op(b->n, "decode");
    decode.steps = b->shape->nout;
    decode.vocab = b->s->ntarget;
    decode.share = b->top[0];
    decode.in[1] = b->own;
    decode.in[2] = b->future;
    *h = b->n->op[b->top[0]].end;
    return head_chain(b->n, decode, "decode", h);
}

extern const struct head head_parallel;
const struct head head_parallel = {
    .name = "parallel",
    .help = "all segments of the horizon in parallel",
    .report = "",
    .segments = true,
    .long_segment = true,
    .plain_state = true,
    .own = INPUT_COLUMN,
    .front = front,
    .decode = decode,
};
