/* carry.c - a worker goes through its span of time, and the states of the recurrent layers run on from tile to tile (truncated
 * backpropagation through time: Williams and Peng, Neural Computation 1990).
 *
 *     step 7   tile 7 --> states --kept--> step 8   tile 8 --> ..        a row of the batch is a piece of the span; at the end of
 * its piece a row begins it again, from zero states */
#include <string.h>

#include "learn/store/inside.h"
#include "model/layer.h"

err carry_new(struct fit *t, struct store_run *r) {
    struct carry *c = &r->carry;
    const struct net *n = t->step.net;
    if (!store_carries(t)) return 0;
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        const i32 in = op->end >= 0 ? op->spec.in[1] : -1;
        if (in < 0 || n->buf[in].role != INPUT_STATE) continue;
        c->in[c->n] = in;
        c->end[c->n++] = op->end;
        c->floats += buf_floats(&n->buf[in], t->step.batch.B);
    }
    ARENA_NEW(&r->arena, c->state, c->floats);
    c->next = -1;
    return 0;
}

static void zero_row(const struct buf *b, i32 B, i32 row, f32 *state) {
    const i64 Fp = buf_fp(b);
    for (i32 k = 0; k < b->T; k++) memset(state + ((i64)k * B + row) * Fp, 0, sizeof *state * (size_t)Fp);
}

void carry_load(const struct fit *t, struct store_run *r, i64 batch, i64 step) {
    struct carry *c = &r->carry;
    const struct batcher *b = &t->step.batch;
    const i64 C = b->shape->context, n = lmax(1, (window_origins(&b->set) + C - 1) / C);
    const f32 *from = c->state;
    for (i32 k = 0; k < c->n; k++) {
        const struct buf *buf = &b->net->buf[c->in[k]];
        f32 *to = b->slot[0].input[c->in[k]];
        const i64 floats = buf_floats(buf, b->B);
        if (step == c->next)
            memcpy(to, from, sizeof *to * (size_t)floats);
        else
            memset(to, 0, sizeof *to * (size_t)floats);
        for (i32 row = 0; row < b->B; row++) {
            bool begins;
            batch_in_span(b, n, batch, row / b->s->ntarget, &begins);
            if (begins) zero_row(buf, b->B, row, to);
        }
        from += floats;
    }
}

void carry_keep(const struct fit *t, struct store_run *r, i64 step) {
    struct carry *c = &r->carry;
    const struct batcher *b = &t->step.batch;
    f32 *to = c->state;
    for (i32 k = 0; k < c->n; k++) {
        const i64 floats = buf_floats(&b->net->buf[c->in[k]], b->B);
        memcpy(to, step_buf(t->step.engine.exec, c->end[k]), sizeof *to * (size_t)floats);
        to += floats;
    }
    c->next = step + 1;
}
