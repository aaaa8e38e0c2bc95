/* table.c - what skew and unlike devices do to each policy: table 4.5 of shared/design/learners_and_devices.md. */
#include <math.h>

#include "base/arena.h"
#include "base/rng.h"
#include "deal/simulate.h"

enum { PARTS = 64, SHUFFLES = 50 };
#define ROWS 4e6        /* of all partitions: fine enough that rounding does not show */
#define OVERHEAD 2e-4   /* of W / devices */

static err recipe_case(const f64 *rate, i32 n, struct arena *a, struct deal_case *c) {
    struct deal_device *belief;
    struct deal_truth *truth;
    ARENA_NEW(a, belief, n);
    ARENA_NEW(a, truth, n);
    for (i32 i = 0; i < n; i++) {
        belief[i] = (struct deal_device){.rate = rate[i], .overhead_s = OVERHEAD * ROWS / n};
        truth[i] = (struct deal_truth){.rate = rate[i], .overhead_s = OVERHEAD * ROWS / n};
    }
    *c = (struct deal_case){.n = n, .belief = belief, .truth = truth};
    return 0;
}

static void sizes(f64 a, u32 shuffle, struct deal_part part[PARTS]) {
    f64 sum = 0;
    for (i32 i = 1; i <= PARTS; i++) sum += pow(i, -a);
    for (i32 i = 1; i <= PARTS; i++) {
        const i64 at = rng_shuffle(11, shuffle, PARTS, i - 1);
        part[at] = (struct deal_part){(i64)(ROWS * pow(i, -a) / sum + 0.5), 1};
    }
}

static err recipe(const f64 *rate, i32 n, f64 a, i32 shuffles, const char *policy, struct arena *arena, struct deal_cell *out) {
    struct deal_case c;
    struct deal_part part[PARTS];
    TRY(recipe_case(rate, n, arena, &c));
    c.work = (struct deal_work){.nparts = PARTS, .part = part, .grain = 1};
    f64 squares = 0;
    *out = (struct deal_cell){0};
    for (i32 k = 0; k < shuffles; k++) {
        struct deal_result r;
        sizes(a, (u32)k, part);
        TRY(deal_simulate(&c, policy, &r));
        out->makespan += r.makespan / r.ideal / shuffles;
        out->balance += r.balance / shuffles;
        squares += r.makespan / r.ideal * (r.makespan / r.ideal) / shuffles;
    }
    out->spread = sqrt(dmax(0, squares - out->makespan * out->makespan));
    return 0;
}

err deal_recipe(const f64 *rate, i32 n, f64 a, i32 shuffles, const char *policy, struct deal_cell *out) {
    struct arena arena = {0};
    const err e = recipe(rate, n, a, shuffles, policy, &arena, out);
    arena_free(&arena);
    return e;
}

static err row(const f64 *rate, i32 n, f64 a, struct str *out) {
    str_addf(out, "%-10.1f", a);
    for (i32 i = 0; deal_policy_name(i); i++) {
        struct deal_cell cell;
        char text[32];
        TRY(deal_recipe(rate, n, a, imax(1, imin(SHUFFLES, SHUFFLES * 32 / n)), deal_policy_name(i), &cell));
        str_print(text, sizeof text, "%.2f (%.2f)", cell.makespan, cell.balance);
        str_addf(out, " %14s", text);
    }
    str_add(out, "\n");
    return 0;
}

static err rates(const struct machine *m, struct arena *a, f64 **rate) {
    f64 least = INFINITY;
    ARENA_NEW(a, *rate, m->ndevice);
    for (i32 i = 0; i < m->ndevice; i++) {
        const struct device *v = &m->device[i];
        (*rate)[i] = v->gflops * v->share;
        if ((*rate)[i] > 0) least = dmin(least, (*rate)[i]);
    }
    for (i32 i = 0; i < m->ndevice; i++) (*rate)[i] = dmax((*rate)[i] / least, 1e-3); /* a share of 0 still ends */
    return 0;
}

err deal_table(const struct machine *m, struct str *out) {
    static const f64 skews[] = {0, 1.0, 1.5};
    struct arena a = {0};
    f64 *rate, sum = 0;
    if (m->ndevice > DEAL_TABLE)
        return FAIL_AT(E401, "--machine", NULL, "the table of policies is for up to %d devices, the machine has %d", DEAL_TABLE,
                       m->ndevice);
    err e = rates(m, &a, &rate);
    for (i32 i = 0; e == 0 && i < m->ndevice; i++) sum += rate[i];
    if (e == 0) {
        str_addf(out, "%d devices, together %.4g times the slowest; 64 partitions of size i^-skew, simulated\n", m->ndevice, sum);
        str_addf(out, "makespan / ideal (busiest / mean busy)\n%-10s", "skew");
        for (i32 i = 0; deal_policy_name(i); i++) str_addf(out, " %14s", deal_policy_name(i));
        str_add(out, "\n");
    }
    for (size_t i = 0; e == 0 && i < COUNT(skews); i++) e = row(rate, m->ndevice, skews[i], out);
    for (i32 i = 0; e == 0 && deal_policy_name(i); i++) str_addf(out, "  %-8s %s\n", deal_policy_name(i), deal_policy_help(i));
    arena_free(&a);
    return e < 0 ? e : str_ok(out);
}
