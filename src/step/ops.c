/* ops.c - properties of a net and its ops that the planner needs: micro-batches, panels, losses, gradients. */
#include "model/layer.h"
#include "step/planner.h"

enum { GRAINS = 8, GRAIN_ROWS = 8, SMALL = 8, MANY = 16 };

static bool sends(const struct net *n, i32 buf) { return buf >= 0 && buf_sends(&n->buf[buf]); }

/* About 8 micro-batches: enough for 8 workers, few enough that zeroing and merging stays cheap. Sizes are multiples of 8
 * rows from 32 rows on (kernel tiles), of 2 below, single rows below 8 rows. 16 micro-batches if they are of equal size and
 * still have 16 rows, which costs a step at most 2 % (docs/adr/016). */
i32 plan_grain(i32 B, i32 wanted) {
    const i32 rows = wanted > 0 ? ceil_div(B, wanted) : 0;
    if (rows > 0) return rows > 4 ? round_up(rows, GRAIN_ROWS) : rows == 3 ? 4 : rows;
    if (B < SMALL) return 1;
    if (B >= MANY * MANY && B % (MANY * GRAIN_ROWS) == 0) return B / MANY;
    return round_up(ceil_div(B, GRAINS), B >= 4 * GRAIN_ROWS ? GRAIN_ROWS : 2);
}

/* Kernels of bf16 multiply tiles of 16 rows and leave a team's work to its first member. */
i32 op_panels(const struct op *op) {
    return op->layer->team && op->spec.precision == PREC_F32 ? imax(1, ceil_div(op->F, LANES)) : 1;
}

bool net_sliced(const struct net *n) {
    for (i32 l = 0; l < n->nop; l++)
        if (op_is_chain(&n->op[l])) return true;
    return false;
}

i32 net_rank(const struct net *n) {
    i32 rank = 0;
    for (i32 l = 0; l < n->nop; l++) rank = imax(rank, op_is_chain(&n->op[l]) ? n->op[l].spec.slice_rank : 0);
    return rank;
}

/* A loss writes no buffer of the net. */
bool op_is_loss(const struct op *op) { return op->out < 0; }

bool op_has_backward(const struct net *n, const struct op *op) {
    bool in = op_is_loss(op) || sends(n, op->out) || sends(n, op->end);
    bool wants = op->ntheta > 0 || op->spec.share >= 0;
    for (i32 i = 0; i < op->layer->nin; i++)
        wants = wants || (sends(n, op->spec.in[i]) && n->buf[op->spec.in[i]].consumer == op->l);
    return in && wants && op->layer->bwd;
}

i32 net_layers(const struct net *n, i32 layer[NET_OPS]) {
    i32 layers = 0;
    for (i32 l = 0; l < n->nop; l++) {
        layers += n->op[l].ntheta > 0;
        layer[l] = imax(0, layers - 1);
    }
    return imax(1, layers);
}

bool op_splits(const struct net *n, const struct op *op) { return op->layer->split && op->layer->split->can(op, n); }

bool net_splits(const struct net *n) {
    for (i32 l = 0; l < n->nop; l++)
        if (op_splits(n, &n->op[l])) return true;
    return false;
}

bool planner_splits(const struct planner *p, i32 l) { return p->split && op_splits(p->net, &p->net->op[l]); }

i32 split_members(const struct planner *p, i32 l) { return imin(p->team.n, op_panels(&p->net->op[l])); }

bool op_sends_dx(const struct net *n, const struct op *op) {
    const i32 in = op->spec.in[0];
    return in >= 0 && buf_sends(&n->buf[in]) && n->buf[in].consumer == op->l;
}

void split_weights(const struct op *op, i32 k, i32 n, struct plan_range out[2]) {
    const i64 panels = op_panels(op), w = op->layer->adds(op, n, n), bias = (op->ntheta - w) / panels;
    out[0] = (struct plan_range){op->theta0 + op->layer->adds(op, k, n), op->theta0 + op->layer->adds(op, k + 1, n)};
    out[1] = (struct plan_range){op->theta0 + w + panels * k / n * bias, op->theta0 + w + panels * (k + 1) / n * bias};
}
