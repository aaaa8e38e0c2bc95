/* net.c - the network of sequences: recurrent layers over the steps, one vector for the sequence or one for each step, scores.
 *
 *     x [T][B][S C] -> lstm.0 (+ .reverse) -dropout-> .. -> last state beside the mean over the steps -> head -> loss
 *                                                        \- of each step: its state ----------------/
 *
 * The output layer reads the last state, which depends most on the last steps, and the mean of the states over all steps: both
 * together had the best validation accuracy (docs/adr/038).
 * The weights do not depend on T. */
#include <stdio.h>
#include <string.h>

#include "learn/forecast/head/head.h"
#include "learn/sequence/sequence.h"
#include "learn/stack.h"
#include "model/cell/cell.h"

static err input(struct net *n, enum sequence_input role, const char *name, i32 T, i32 F, i32 *out) {
    TRY(net_input(n, name, T, F, role != SEQUENCE_X && role != SEQUENCE_NUMBER, out));
    n->buf[*out].role = (i32)role;
    return 0;
}

static err drop(struct net *n, const char *name, i32 *x) {
    return n->options.dropout > 0 ? head_chain(n, head_op(n, "dropout"), name, x) : 0;
}

/* States over the steps, and the ops of the last layer. */
static err layers(const struct sequence_model *m, struct net *n, i32 length, i32 *x, i32 top[2]) {
    char name[24];
    for (i32 k = 0; k < m->layers; k++) {
        const struct stack_layer layer = {
            .name = cell_of((enum cell_kind)m->options.cell)->name, .k = k, .both = m->bidirectional, .length = length};
        TRY(stack_add(n, &layer, x, top));
        snprintf(name, sizeof name, "dropout.%d", k);
        if (k + 1 < m->layers) TRY(drop(n, name, x));
    }
    return 0;
}

static err pool(struct net *n, i32 length, const i32 top[2], i32 *x) {
    static const char *const names[] = {"last", "last.reverse"}, *const joins[] = {"pool", "pool.reverse"};
    struct op_spec mean = head_op(n, "mean");
    mean.in[1] = length;
    TRY(head_chain(n, mean, "mean", x));
    for (i32 i = 0; i < 2 && top[i] >= 0; i++) {
        i32 last = n->op[top[i]].end;
        TRY(head_chain(n, head_op(n, "last"), names[i], &last));
        TRY(head_beside(n, joins[i], last, x));
    }
    return 0;
}

static err add_loss(const struct sequence_model *m, struct net *n, i32 T, i32 x) {
    const char *of_numbers = strcmp(m->loss, "mae") == 0 ? "loss_mae" : "loss_mse";
    struct op_spec loss = head_op(n, m->regress ? of_numbers : "cross_entropy");
    snprintf(loss.name, sizeof loss.name, "loss");
    loss.in[0] = x;
    TRY(input(n, m->regress ? SEQUENCE_NUMBER : SEQUENCE_CLASS, "label", m->per_step ? T : 1, 1, &loss.in[1]));
    return net_op(n, &loss, NULL);
}

err sequence_net(const struct sequence_model *m, i32 T, struct net *n) {
    i32 x, length, top[2];
    net_init(n);
    n->options = m->options;
    TRY(input(n, SEQUENCE_X, "x", T, m->segment * m->nchannel, &x));
    TRY(input(n, SEQUENCE_LENGTH, "length", 1, 1, &length));
    TRY(layers(m, n, length, &x, top));
    if (!m->per_step) TRY(pool(n, length, top, &x));
    TRY(drop(n, "dropout", &x));
    struct op_spec head = head_op(n, "dense");
    head.units = sequence_outputs(m);
    TRY(head_chain(n, head, "head", &x));
    TRY(add_loss(m, n, T, x));
    return net_check(n);
}
