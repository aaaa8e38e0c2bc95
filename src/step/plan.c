/* plan.c - from an expression ("auto", "data:4", "data:2*unit:2") to a plan. */
#include "step/netplan.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "step/planner.h"
#include "step/strategy/strategy.h"

enum { AUTO_TRIES = 64 };

void plan_update_everywhere(struct plan *p) {
    netplan(p)->whole = true;
    for (u32 i = 0; i < p->ntask; i++)
        if (p->task[i].kind == TASK_UPDATE) p->task[i].everywhere = RUN_EVERYWHERE;
}

err plan_slices(const char *parallel, i32 *slices) {
    struct product p;
    TRY(product_parse(parallel, &p));
    const i32 k = product_slices(&p);
    *slices = k < 0 ? 0 : p.cut[k].wanted > 0 ? p.cut[k].wanted : -1;
    return 0;
}

err plan_with_slices(const char *parallel, i32 slices, char *out, size_t size) {
    struct product p;
    char name[PRODUCT_TEXT];
    TRY(product_parse(parallel, &p));
    const i32 k = product_slices(&p);
    if (k >= 0 && slices == 0) product_drop(&p, k);
    product_name(&p, slices, name);
    snprintf(out, size, "%s", name);
    return 0;
}

/* ------------------------------------------------------------------ one product --------------------------------------------- */

/* Adds all tasks to a planner whose cuts are applied. */
static err build(struct planner *p, struct plan **out) {
    err e;
    u32 task;
    TRY_OUT(planner_build(p));
    TRY_OUT(planner_finish(p, out));
    err_clear();
    const char *bad = plan_check(*out, p->net, &task);
    if (bad) {
        e = -E601; /* plan_check ran out of memory */
        if (err_last()->code == E601) goto out;
        char name[64] = "";
        if (task < (*out)->ntask) plan_task_name(*out, p->net, task, name);
        e = FAIL(E1, "the plan of %s is wrong: %s%s%s", (*out)->strategy, bad, name[0] ? ": " : "", name);
        goto out;
    }
    return 0;
out:
    planner_drop(p);
    *out = NULL;
    return e;
}

err planner_try(struct planner *p, const struct plan_request *q, const struct product *cuts, bool chosen, const char **why,
                i32 *cut) {
    TRY(planner_init(p, q));
    p->chosen = chosen;
    *why = planner_apply(p, cuts, cut);
    return 0;
}

/* The nearest product that applies: lowers the parts of the cut that does not fit, or drops it; no cut is left if none
 * applies. */
static err nearest(struct planner *p, const struct plan_request *q, struct product *cuts, i32 cut) {
    const char *why = "";
    while (why && cuts->n > 0) {
        struct plan_cut *c = &cuts->cut[cut];
        const bool fewer = !c->s->slices && c->s->cut && c->wanted > 2;
        const i32 last = cut;
        if (fewer) c->wanted--;
        else product_drop(cuts, cut);
        if (cuts->n > 0) TRY(planner_try(p, q, cuts, true, &why, &cut));
        if (why && fewer && cut > last && c->wanted > 2) cut = last; /* the inner cuts need the devices that it gives up */
    }
    return 0;
}

static err misfit(struct planner *p, const struct plan_request *q, const struct product *cuts, const char *why, i32 cut) {
    struct product fit = *cuts;
    char all[PRODUCT_TEXT], part[PRODUCT_TEXT], by[PRODUCT_TEXT], fix[96], what[sizeof p->why];
    snprintf(what, sizeof what, "%s", why);
    product_name(cuts, 0, all);
    cut_name(&cuts->cut[cut], 0, part);
    TRY(nearest(p, q, &fit, cut));
    product_name(&fit, 0, by);
    snprintf(fix, sizeof fix, "--parallel %s", by);
    if (cuts->n == 1) return FAIL_AT(E401, "--parallel", fix, "%s does not fit: %s", all, what);
    return FAIL_AT(E401, "--parallel", fix, "%s does not fit: %s: %s", all, part, what);
}

/* A device whose part of the plan exceeds its memory; -1 = none. */
static i32 overfull(const struct plan *g, const struct machine *m) {
    for (i32 d = 0; d < g->ndevice; d++)
        if (m->device[d].memory > 0 && plan_device_bytes(g, (u32)d) > m->device[d].memory) return d;
    return -1;
}

/* Raises the parts of one cut, so that each part needs less memory; *found = the result fits. */
static err roomier(struct planner *p, const struct plan_request *q, struct product *cuts, bool *found) {
    const struct product from = *cuts;
    *found = false;
    for (i32 i = 0; i < from.n && !*found; i++)
        for (i32 n = 2; n <= 8 && !*found && from.cut[i].s->counted && !from.cut[i].s->slices; n *= 2) {
            const char *why;
            struct plan *g;
            i32 cut;
            *cuts = from;
            cuts->cut[i].wanted = n * from.cut[i].n;
            TRY(planner_try(p, q, cuts, true, &why, &cut));
            if (why) break;
            *cuts = p->product;
            TRY(build(p, &g));
            *found = overfull(g, q->machine) < 0;
            plan_free(g);
        }
    return 0;
}

/* E601 if the part of a device does not fit into its memory; checks expressions of the caller only. */
static err holds(struct planner *p, const struct plan_request *q, const struct plan *g) {
    struct product fit = p->product;
    const struct plan_cut last = fit.cut[fit.n - 1];
    const bool several = fit.n > 1;
    const i32 d = overfull(g, q->machine);
    char part[PRODUCT_TEXT], fix[96], by[PRODUCT_TEXT];
    bool found;
    if (d < 0 || !last.s->counted) return 0; /* the engine rejects serial runs that are too large */
    TRY(roomier(p, q, &fit, &found));
    cut_name(&last, netplan(g)->slices, part);
    product_name(&fit, netplan(g)->slices, by);
    snprintf(fix, sizeof fix, found ? "--parallel %s" : "a smaller --batch, --context or --hidden", by);
    return FAIL_AT(E601, "--parallel", fix, "%s does not fit: %s%sdevice %s would hold %.1f MiB, it has %.1f MiB", g->strategy,
                   several ? part : "", several ? ": " : "", g->place[d].name, (f64)plan_device_bytes(g, (u32)d) / 0x1p20,
                   (f64)q->machine->device[d].memory / 0x1p20);
}

/* Makes the plan of one product, or E401 with the reason of the cut. */
static err make(const struct plan_request *q, const struct product *cuts, bool chosen, struct plan **out) {
    struct planner *p = mem_alloc(sizeof *p);
    const char *why;
    i32 cut;
    if (!p) return -E601;
    err e = planner_try(p, q, cuts, chosen, &why, &cut);
    if (e >= 0 && why) e = chosen ? misfit(p, q, cuts, why, cut) : -E401;
    if (e >= 0) e = build(p, out);
    if (e >= 0 && chosen) e = holds(p, q, *out);
    if (e < 0) {
        plan_free(*out);
        *out = NULL;
    }
    mem_free(p);
    return e;
}

/* ------------------------------------------------------------------ auto ---------------------------------------------------- */

static err try_one(const struct plan_request *q, const struct product *cuts, struct plan **best) {
    struct plan *p = NULL;
    const err e = make(q, cuts, false, &p);
    if (e == -E401) return 0;
    TRY(e);
    if (!*best || p->predicted < (*best)->predicted) {
        plan_free(*best);
        *best = p;
    } else {
        plan_free(p);
    }
    return 0;
}

static bool may_multiply(const struct strategy *s) { return s->exact && s->counted && s->cut && !s->slices; }

/* Tries two cuts if there are more devices than micro-batches: the inner one takes all parts that have work and devices. */
static err try_pairs(const struct plan_request *q, struct plan **best) {
    const i32 most = imin(q->machine->ndevice, AUTO_TRIES), grain = plan_grain(q->B, q->grains);
    if (most <= ceil_div(q->B, grain)) return 0;
    for (i32 i = 0; i < strategy_count(); i++)
        for (i32 k = i + 1; k < strategy_count(); k++)
            for (i32 n = 2; may_multiply(strategy_at(i)) && may_multiply(strategy_at(k)) && 2 * n <= most; n++) {
                const struct product pair = {.n = 2, .cut = {{strategy_at(i), n, 0}, {strategy_at(k), 0, 0}}};
                TRY(try_one(q, &pair, best));
            }
    return 0;
}

/* The cheapest exact strategy by predicted cost; serial is tried first and so wins ties. A net with time slices always runs
 * them. */
static err automatic(const struct plan_request *q, struct plan **out) {
    err e = 0;
    *out = NULL;
    for (i32 i = 0; i < strategy_count() && e == 0; i++) {
        const struct strategy *s = strategy_at(i);
        struct product one = {.n = 1, .cut = {{.s = s}}};
        if (q->slices > 1 ? !s->slices : !s->exact) continue;
        if (!s->counted || s->slices) e = try_one(q, &one, out);
        for (i32 n = 2; s->counted && !s->slices && n <= imin(q->machine->ndevice, AUTO_TRIES) && e == 0; n++) {
            one.cut[0].wanted = n;
            e = try_one(q, &one, out);
        }
    }
    if (e == 0 && q->slices <= 1) e = try_pairs(q, out);
    if (e == 0 && !*out) e = FAIL(E401, "no strategy fits this model and machine");
    if (e < 0) {
        plan_free(*out);
        *out = NULL;
    }
    return e;
}

/* Sets the number of slices of the net in the product, whatever was requested; drops the cut `time` if the net has none. */
static void any_slices(const struct plan_request *q, struct product *cuts) {
    const i32 k = product_slices(cuts);
    if (k < 0 || !q->any_slices) return;
    if (q->slices > 1) cuts->cut[k].wanted = 0;
    else product_drop(cuts, k);
}

static err make_placed(const struct plan_request *q, const struct product *cuts, struct plan **out) {
    struct plan_request one = *q, with = *q;
    struct product serial;
    struct plan *costs;
    one.place = NULL;
    TRY(product_parse("serial", &serial));
    TRY(make(&one, &serial, true, &costs));
    with.serial = costs;
    const err e = make(&with, cuts, true, out);
    plan_free(costs);
    return e;
}

/* A method of placement places a pipeline: `auto` means one. */
static err for_place(const struct plan_request *q, struct product *cuts) {
    char name[PRODUCT_TEXT], fix[128];
    if (!q->place || !q->train) return 0;
    if (cuts->n == 0) return product_parse("pipeline", cuts);
    for (i32 i = 0; i < cuts->n; i++)
        if (cuts->cut[i].s == strategy_find("pipeline")) return 0;
    product_name(cuts, 0, name);
    snprintf(fix, sizeof fix, "--parallel pipeline --place %.64s", q->place);
    return FAIL_AT(E401, "--place", fix, "%s has no pipeline, whose layers --place puts on devices", name);
}

err plan_make(const struct plan_request *q, struct plan **out) {
    struct product cuts;
    *out = NULL;
    TRY(product_parse(q->parallel, &cuts));
    TRY(for_place(q, &cuts));
    any_slices(q, &cuts);
    if (q->place && q->train) return make_placed(q, &cuts, out);
    return cuts.n > 0 ? make(q, &cuts, true, out) : automatic(q, out);
}
