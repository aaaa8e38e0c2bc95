/* nonfinite.c - where the first NaN or infinity is: inputs first, then ops forward, then gradients. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exec/bound.h"
#include "model/layer.h"

static i64 first_bad(const f32 *v, i64 n) {
    for (i64 i = 0; i < n; i++)
        if (!isfinite(v[i])) return i;
    return -1;
}

static bool in_buffer(const struct exec *x, i32 index, const char *what, char where[160]) {
    const struct buf *b = &x->net->buf[index];
    const f32 *v = x->buf[index];
    i64 at = v && !b->ids ? first_bad(v, buf_floats(b, x->run.B)) : -1;
    if (at < 0) return false;
    i64 Fp = buf_fp(b), row = at / Fp;
    snprintf(where, 160, "%s \"%s\": row %lld, step %lld, feature %lld", what, b->name, (long long)(x->run.row0 + row % x->run.B),
             (long long)(row / x->run.B), (long long)(at % Fp));
    return true;
}

static bool in_block(const struct exec *x, const f32 *v, const char *what, char where[160]) {
    for (i32 l = 0; v && l < x->net->nop; l++) {
        const struct op *op = &x->net->op[l];
        if (first_bad(v + op->theta0, op->ntheta) < 0) continue;
        snprintf(where, 160, "%s of \"%s\"", what, op->spec.name);
        return true;
    }
    return false;
}

/* Targets may be NaN: nothing is known there. */
static bool is_target(const struct net *n, i32 buf) {
    for (i32 l = 0; l < n->nop; l++)
        if (strncmp(n->op[l].layer->name, "loss", 4) == 0 && n->op[l].spec.in[1] == buf) return true;
    return false;
}

bool exec_nonfinite(const struct exec *x, char where[160]) {
    where[0] = 0;
    for (i32 i = 0; i < x->net->nbuf; i++)
        if (x->net->buf[i].input && !is_target(x->net, i) && in_buffer(x, i, "input", where)) return true;
    if (in_block(x, x->store->theta, "weights", where)) return true;
    for (i32 l = 0; l < x->net->nop; l++) {
        const struct op *op = &x->net->op[l];
        if (op->out >= 0 && in_buffer(x, op->out, "output", where)) return true;
        if (op->end >= 0 && in_buffer(x, op->end, "output", where)) return true;
    }
    if (!isfinite(exec_totals(x).loss)) {
        snprintf(where, 160, "the loss");
        return true;
    }
    return in_block(x, x->sums.of.grad, "gradient", where);
}
