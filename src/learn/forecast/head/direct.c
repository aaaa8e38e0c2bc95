/* direct.c - forecasts the whole horizon at once: from the final states of the last layer or its state at every step, and
 * known-future features. */
#include "learn/forecast/forecast.h"

static err decode(const struct head_net *b, i32 *h) {
    *h = b->n->op[b->top[0]].end;
    TRY(head_chain(b->n, head_op(b->n, "last"), "last", h));
    if (b->top[1] >= 0) {
        i32 back = b->n->op[b->top[1]].end;
        struct op_spec last = head_op(b->n, "last");
        last.in[1] = b->first_slice;
        TRY(head_chain(b->n, last, "last.reverse", &back));
        TRY(head_beside(b->n, "ends.0", back, h));
    }
    return b->future < 0 ? 0 : head_beside(b->n, "ahead", b->future, h);
}

static err decode_steps(const struct head_net *b, i32 *h) {
    *h = b->n->op[b->top[0]].out;
    return b->future < 0 ? 0 : head_beside(b->n, "ahead", b->future, h);
}

static const struct head every_step = {
    .name = "direct",
    .help = "all steps of the horizon at once, from the state at every step",
    .report = "",
    .every_step = true,
    .plain_state = true,
    .decode = decode_steps,
};

extern const struct head head_direct;
const struct head head_direct = {
    .all_steps = &every_step,
    .name = "direct",
    .help = "all steps of the horizon at once, from the final state",
    .report = "",
    .decode = decode,
};
