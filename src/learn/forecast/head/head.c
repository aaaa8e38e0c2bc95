/* head.c - the table of heads (heads.def), helpers to build them, and their outputs. */
#include "learn/forecast/forecast.h"

#include <math.h>
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

/* ------------------------------------------------------------------ outputs ------------------------------------------------- */

static const f32 *final_forecast(const struct forecast_row *row) { return row->mean; }
static const f32 *base_forecast(const struct forecast_row *row) { return row->base; }

static f32 around_mean(const struct forecast_spec *spec, const struct forecast_row *row, f32 a, f32 residual, i32 q, i32 k) {
    (void)spec, (void)a, (void)q;
    return row->mean[k] + residual;
}

/* The network's quantile weighted by a; residual quantiles of the base for the rest. */
static f32 own_quantile(const struct forecast_spec *spec, const struct forecast_row *row, f32 a, f32 residual, i32 q, i32 k) {
    const f32 rest = a < 1 ? (1.f - a) * residual : 0.f;
    return row->base[k] + a * row->div * row->raw[(i64)q * spec->horizon + k] + rest;
}

const struct head_output *head_output_find(const char *name) {
    static const struct head_output list[] = {
        {.name = "point", .loss = "mse", .centre = final_forecast, .band = around_mean},
        {.name = "quantile", .quantiles = true, .loss = "quantile", .centre = base_forecast, .band = own_quantile},
        {.name = "normal", .loss = "normal", .centre = final_forecast, .band = head_quantile},
        {.name = "student-t", .loss = "student_t", .centre = final_forecast, .band = head_quantile},
        {.name = "negative-binomial", .loss = "negative_binomial", .centre = final_forecast, .band = head_quantile},
        {.name = "poisson", .loss = "poisson", .centre = final_forecast, .band = head_quantile},
    };
    for (size_t i = 0; i < COUNT(list); i++)
        if (strcmp(list[i].name, name) == 0) return &list[i];
    return NULL;
}

const struct head_output *head_output_of(const struct forecast_spec *spec, bool network) {
    return spec->family && !network ? head_output_find("point") : spec->output;
}

bool head_counts(const char *name) {
    const struct family *f = family_find(head_output_find(name)->loss);
    return f && f->counts;
}

bool head_owns_loss(const struct head_output *output) { return output->quantiles || family_find(output->loss); }

i32 head_outputs(const struct forecast_spec *spec) { return spec->family ? spec->family->nparam : imax(1, spec->nquantile); }

i32 head_point(const struct forecast_spec *spec) {
    i32 best = 0;
    for (i32 q = 1; q < spec->nquantile; q++)
        if (fabs(spec->quantiles.v[q] - 0.5) < fabs(spec->quantiles.v[best] - 0.5)) best = q;
    return best;
}

void head_quantiles(const struct forecast_spec *spec, struct op_spec *op) {
    op->nquantile = spec->family ? spec->family->nparam : spec->nquantile;
    if (spec->family) op->quantile[0] = 0.5F;
    for (i32 q = 0; q < spec->nquantile; q++) op->quantile[q] = (f32)spec->quantiles.v[q];
}
