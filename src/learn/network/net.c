/* net.c - a network as a net of ops, and its forward pass on the calling thread. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "learn/forecast/head/head.h"
#include "learn/network/network.h"
#include "learn/stack.h"
#include "model/cell/cell.h"

static err dense(struct net *n, const struct network_layer *l, i32 k, i32 *x) {
    struct op_spec s = head_op(n, "dense");
    char name[24];
    s.units = l->units;
    s.act = l->act;
    snprintf(name, sizeof name, "dense.%d", k);
    return head_chain(n, s, name, x);
}

static err last(struct net *n, const char *name, i32 end, i32 *x) {
    *x = end;
    return head_chain(n, head_op(n, "last"), name, x);
}

/* The final states, side by side. */
static err ends(struct net *n, const i32 top[2], i32 *x) {
    i32 back;
    TRY(last(n, "last", n->op[top[0]].end, x));
    if (top[1] < 0) return 0;
    TRY(last(n, "last.reverse", n->op[top[1]].end, &back));
    return head_beside(n, "ends", back, x);
}

err network_net(const struct network *w, i32 T, struct net *n, i32 *out) {
    i32 x, top[2] = {-1, -1};
    bool read = w->reads != READS_ENDS;
    net_init(n);
    TRY(net_input(n, "x", T, w->I, false, &x));
    for (i32 k = 0; k < w->nlayer; k++) {
        const struct network_layer *l = &w->layer[k];
        if (l->cell < 0 && !read) TRY(ends(n, top, &x));
        read |= l->cell < 0;
        if (l->cell < 0) TRY(dense(n, l, k, &x));
        if (l->cell < 0) continue;
        n->options.hidden = l->units;
        n->options.cell = (enum cell_kind)l->cell;
        const struct stack_layer s = {.name = cell_of((enum cell_kind)l->cell)->name, .k = k, .both = l->both, .length = -1};
        TRY(stack_add(n, &s, &x, top));
    }
    if (!read) TRY(ends(n, top, &x));
    *out = x;
    return 0;
}

/* The layer of an op: "lstm.1.reverse" is of layer 1. */
static i32 layer_of(const struct op *op) {
    i32 k = 0;
    for (const char *p = strchr(op->spec.name, '.') + 1; *p >= '0' && *p <= '9'; p++) k = 10 * k + *p - '0';
    return k;
}

void network_weights(struct network *w) {
    for (i32 i = 0; i < w->net.nop; i++) {
        const struct op *op = &w->net.op[i];
        struct tensor_info info[8];
        const i32 from = strstr(op->spec.name, ".reverse") ? 4 : 0;
        for (i32 t = 0; op->ntheta > 0 && t < op->layer->tensors(op, info); t++)
            layer_load(op, t, w->layer[layer_of(op)].w[from + t], w->theta + op->theta0);
    }
}

/* ------------------------------------------------------------------ forward ------------------------------------------------- */

struct forward {
    struct net net;
    f32 *buf[NET_BUFS], *dbuf[NET_BUFS], *saved[NET_OPS], *scratch[NET_OPS], *derived;
    struct arena arena;
};

static err prepare(struct forward *f, const struct network *w, const struct kern *k, i32 B) {
    const struct net *n = &f->net;
    const struct rows rows = rows_all(B);
    for (i32 i = 0; i < n->nbuf; i++) ARENA_NEW(&f->arena, f->buf[i], buf_floats(&n->buf[i], B));
    ARENA_NEW(&f->arena, f->derived, n->nderived);
    for (i32 l = 0; l < n->nop; l++) {
        ARENA_NEW(&f->arena, f->saved[l], op_saved_floats(&n->op[l], n, rows));
        ARENA_NEW(&f->arena, f->scratch[l], op_scratch_floats(&n->op[l], n, rows));
        if (n->op[l].layer->prep) n->op[l].layer->prep(&n->op[l], n, k, w->theta, f->derived);
    }
    return 0;
}

static void pass(struct forward *f, const struct network *w, const struct kern *k, i32 B) {
    const struct run r = {.net = &f->net,
                          .kern = k,
                          .B = B,
                          .whole = B,
                          .grain = B,
                          .ngrain = 1,
                          .buf = f->buf,
                          .dbuf = f->dbuf,
                          .saved = f->saved,
                          .scratch = f->scratch,
                          .theta = w->theta,
                          .derived = f->derived};
    for (i32 l = 0; l < f->net.nop; l++)
        f->net.op[l].layer->fwd(&f->net.op[l], &r, (struct part){.b1 = B, .t1 = f->net.op[l].T, .n = 1});
}

static void copy(i64 rows, i32 F, i64 ld, const f32 *from, f32 *to, bool in) {
    for (i64 i = 0; i < rows; i++) memcpy(to + i * (in ? ld : F), from + i * (in ? F : ld), sizeof *to * (size_t)F);
}

err network_run(const struct network *w, const struct kern *k, i32 T, i32 B, const f32 *x, f32 *y) {
    struct forward *f;
    i32 out = 0;
    NEW(f, 1);
    err e = network_net(w, T, &f->net, &out);
    if (e >= 0) e = prepare(f, w, k, B);
    if (e >= 0) {
        const struct buf *b = &f->net.buf[out];
        const i64 skip = w->reads == READS_LAST ? (i64)(b->T - 1) * B : 0, rows = (i64)b->T * B - skip;
        copy((i64)T * B, w->I, buf_fp(&f->net.buf[0]), x, f->buf[0], true);
        pass(f, w, k, B);
        copy(rows, w->O, buf_fp(b), f->buf[out] + skip * buf_fp(b), y, false);
    }
    arena_free(&f->arena);
    mem_free(f);
    return e;
}
