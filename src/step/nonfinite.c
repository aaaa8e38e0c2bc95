/* nonfinite.c - where the first NaN or infinity is: inputs first, then ops forward, then gradients. */
#include <math.h>
#include <stdio.h>

#include "step/bound.h"
#include "model/layer.h"
#include "step/planner.h"

static i64 first_bad(const f32 *v, i64 n) {
    for (i64 i = 0; i < n; i++)
        if (!isfinite(v[i])) return i;
    return -1;
}

static bool in_buffer(const struct step *s, i32 index, const char *what, char where[160]) {
    const struct buf *b = &s->net->buf[index];
    const f32 *v = step_buf(s, index);
    i64 at = v && !b->ids ? first_bad(v, buf_floats(b, s->run.B)) : -1;
    if (at < 0) return false;
    i64 Fp = buf_fp(b), row = at / Fp;
    snprintf(where, 160, "%s \"%s\": row %lld, step %lld, feature %lld", what, b->name, (long long)(s->run.row0 + row % s->run.B),
             (long long)(row / s->run.B), (long long)(at % Fp));
    return true;
}

static bool in_block(const struct step *s, const f32 *v, const char *what, char where[160]) {
    for (i32 l = 0; v && l < s->net->nop; l++) {
        const struct op *op = &s->net->op[l];
        if (first_bad(v + op->theta0, op->ntheta) < 0) continue;
        snprintf(where, 160, "%s of \"%s\"", what, op->spec.name);
        return true;
    }
    return false;
}

/* Targets may be NaN: nothing is known there. */
static bool is_target(const struct net *n, i32 buf) {
    for (i32 l = 0; l < n->nop; l++)
        if (op_is_loss(&n->op[l]) && n->op[l].spec.in[1] == buf) return true;
    return false;
}

bool step_nonfinite(const struct step *s, char where[160]) {
    where[0] = 0;
    for (i32 i = 0; i < s->net->nbuf; i++)
        if (s->net->buf[i].input && !is_target(s->net, i) && in_buffer(s, i, "input", where)) return true;
    if (in_block(s, s->store->theta, "weights", where)) return true;
    for (i32 l = 0; l < s->net->nop; l++) {
        const struct op *op = &s->net->op[l];
        if (op->out >= 0 && in_buffer(s, op->out, "output", where)) return true;
        if (op->end >= 0 && in_buffer(s, op->end, "output", where)) return true;
    }
    if (!isfinite(step_result((void *)(uintptr_t)s, exec_mem_summed(s->exec)).loss)) {
        snprintf(where, 160, "the loss");
        return true;
    }
    return in_block(s, step_grad(s), "gradient", where);
}
