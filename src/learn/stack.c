/* stack.c - see stack.h. */
#include "learn/stack.h"

#include <stdio.h>

#include "learn/forecast/head/head.h"

static err direction(struct net *n, const struct stack_layer *l, const char *suffix, i32 x, i32 *op) {
    struct op_spec s = head_op(n, "recurrent");
    snprintf(s.name, sizeof s.name, "%s.%d%s", l->name, l->k, suffix);
    s.in[0] = x;
    s.in[2] = l->length;
    return net_op(n, &s, op);
}

static err reversed(struct net *n, const char *what, const struct stack_layer *l, i32 x, i32 *op) {
    struct op_spec s = head_op(n, "reverse");
    s.in[0] = x;
    s.in[1] = l->length;
    snprintf(s.name, sizeof s.name, "%s.%d", what, l->k);
    return net_op(n, &s, op);
}

static err both_ways(struct net *n, const struct stack_layer *l, i32 *x, i32 top[2]) {
    i32 turn, back;
    char name[24];
    TRY(reversed(n, "turn", l, *x, &turn));
    TRY(direction(n, l, "", n->op[turn].end >= 0 ? n->op[turn].end : *x, &top[0]));
    TRY(direction(n, l, ".reverse", n->op[turn].out, &top[1]));
    *x = n->op[top[0]].out;
    TRY(reversed(n, "back", l, n->op[top[1]].out, &back));
    snprintf(name, sizeof name, "both.%d", l->k);
    return head_beside(n, name, n->op[back].out, x);
}

err stack_add(struct net *n, const struct stack_layer *layer, i32 *x, i32 top[2]) {
    i32 op[2] = {-1, -1};
    if (layer->both) {
        TRY(both_ways(n, layer, x, op));
    } else {
        TRY(direction(n, layer, "", *x, &op[0]));
        *x = n->op[op[0]].out;
    }
    for (i32 i = 0; top && i < 2; i++) top[i] = op[i];
    return 0;
}
