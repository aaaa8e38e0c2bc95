/* head.c - the heads of heads.def, and what they build with. */
#include "learn/forecast/head/head.h"

#include <stdio.h>
#include <string.h>

#define HEAD(name) extern const struct head head_##name;
#include "learn/forecast/head/heads.def"
#undef HEAD

static const struct head *const all[] = {
#define HEAD(name) &head_##name,
#include "learn/forecast/head/heads.def"
#undef HEAD
};

const struct head *head_at(i32 i) { return i < (i32)COUNT(all) ? all[i] : NULL; }

const struct head *head_find(const char *name) {
    for (size_t i = 0; i < COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}

const struct head *head_of(const struct forecast_spec *spec) { return spec->head ? spec->head : all[0]; }

struct op_spec head_op(const struct net *n, const char *layer) {
    struct op_spec s = net_spec(layer, "", -1);
    s.options = n->options;
    return s;
}

err head_chain(struct net *n, struct op_spec spec, const char *name, i32 *buf) {
    i32 op;
    snprintf(spec.name, sizeof spec.name, "%s", name);
    spec.in[0] = *buf;
    TRY(net_op(n, &spec, &op));
    *buf = n->op[op].out;
    return 0;
}

err head_beside(struct net *n, const char *name, i32 other, i32 *buf) {
    struct op_spec join = head_op(n, "concat");
    join.in[1] = other;
    return head_chain(n, join, name, buf);
}

void head_quantiles(const struct forecast_spec *spec, struct op_spec *op) {
    op->nquantile = spec->nquantile;
    for (i32 q = 0; q < spec->nquantile; q++) op->quantile[q] = (f32)spec->band[q];
}
