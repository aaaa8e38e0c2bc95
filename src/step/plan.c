/* plan.c - from a product of cuts ("data:4", "data:2*unit:2") to a plan, or to the reason why it does not fit. */
#include "step/netplan.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "step/planner.h"
#include "step/strategy/strategy.h"

void plan_update_everywhere(struct plan *p) {
    netplan(p)->whole = true;
    for (u32 i = 0; i < p->ntask; i++)
        if (p->task[i].kind == TASK_UPDATE) p->task[i].everywhere = RUN_EVERYWHERE;
}

bool plan_splits_weights(const struct plan *p) {
    const u32 theta = netplan(p)->at.theta;
    return theta != PBUF_NONE && p->buf[theta].home == HOME_READERS;
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
    char remedy[sizeof p->fix];
    snprintf(what, sizeof what, "%s", why);
    snprintf(remedy, sizeof remedy, "%s", p->fix);
    product_name(cuts, 0, all);
    cut_name(&cuts->cut[cut], 0, part);
    TRY(nearest(p, q, &fit, cut));
    product_name(&fit, 0, by);
    const bool unplaced = q->place && q->train && !product_has(&fit, strategy_find("pipeline"));
    if (remedy[0]) snprintf(fix, sizeof fix, "%s", remedy);
    else snprintf(fix, sizeof fix, "--parallel %s%s", by, unplaced ? " --place ''" : "");
    if (cuts->n == 1) return FAIL_AT(E401, "--parallel", fix, "%s does not fit: %s", all, what);
    return FAIL_AT(E401, "--parallel", fix, "%s does not fit: %s: %s", all, part, what);
}

err plan_memory(const struct plan *g, const struct machine *m, struct plan_memory *out) {
    i64 *bytes;
    *out = (struct plan_memory){.over = -1};
    NEW(bytes, g->ndevice + 1);
    const err e = plan_device_bytes(g, bytes);
    for (i32 d = 0; d < g->ndevice && e >= 0; d++) {
        const i64 room = m->device[d].memory;
        out->most = lmax(out->most, bytes[d]);
        if (out->over < 0 && room > 0 && bytes[d] > room) out->over = d, out->bytes = bytes[d];
    }
    mem_free(bytes);
    return e;
}

/* Raises the parts of one cut, so that each part needs less memory; *found = the result fits. */
static err roomier(struct planner *p, const struct plan_request *q, struct product *cuts, bool *found) {
    const struct product from = *cuts;
    *found = false;
    for (i32 i = 0; i < from.n && !*found; i++)
        for (i32 n = 2; n <= 8 && !*found && from.cut[i].s->counted && !from.cut[i].s->slices; n *= 2) {
            struct plan_memory memory;
            const char *why;
            struct plan *g;
            i32 cut;
            *cuts = from;
            cuts->cut[i].wanted = n * from.cut[i].n;
            TRY(planner_try(p, q, cuts, true, &why, &cut));
            if (why) break;
            *cuts = p->product;
            TRY(build(p, &g));
            const err e = plan_memory(g, q->machine, &memory);
            *found = memory.over < 0;
            plan_free(g);
            TRY(e);
        }
    return 0;
}

enum { STAGE_TEXT = 128 };

/* " (lstm.0 .. lstm.1)": the layers that a device runs; "" = all of the net. */
static void stage_of(const struct plan *g, const struct net *n, i32 device, char out[STAGE_TEXT]) {
    i32 lo = n->nop, hi = -1;
    for (u32 i = 0; i < g->ntask; i++)
        if (g->task[i].kind == TASK_FWD && (i32)g->task[i].device == device) {
            lo = imin(lo, g->task[i].op);
            hi = imax(hi, g->task[i].op);
        }
    out[0] = 0;
    if (hi < 0 || (lo == 0 && hi == n->nop - 1)) return;
    snprintf(out, STAGE_TEXT, " (%s .. %s)", n->op[lo].spec.name, n->op[hi].spec.name);
}

/* E601 if the part of a device does not fit into its memory; checks expressions of the caller only. */
static err holds(struct planner *p, const struct plan_request *q, const struct plan *g) {
    struct product fit = p->product;
    const struct plan_cut last = fit.cut[fit.n - 1];
    const bool several = fit.n > 1;
    struct plan_memory m;
    char part[PRODUCT_TEXT], fix[96], by[PRODUCT_TEXT], stage[STAGE_TEXT];
    bool found;
    TRY(plan_memory(g, q->machine, &m));
    const i32 d = m.over;
    if (d < 0 || !last.s->counted) return 0; /* the engine rejects serial runs that are too large */
    if (machine_is_apart(q->machine)) return 0; /* and asks devices themselves, which may take the rows in passes */
    TRY(roomier(p, q, &fit, &found));
    cut_name(&last, netplan(g)->slices, part);
    product_name(&fit, netplan(g)->slices, by);
    snprintf(fix, sizeof fix, found ? "--parallel %s" : "a smaller --batch, --context or --hidden", by);
    const i64 memory = q->machine->device[d].memory;
    stage_of(g, q->net, d, stage);
    return FAIL_AT(E601, "--parallel", fix,
                   "%s does not fit: %s%sdevice %s%s would hold %.1f MiB, it has %.1f MiB, %.1f MiB too little", g->strategy,
                   several ? part : "", several ? ": " : "", g->place[d].name, stage, (f64)m.bytes / 0x1p20,
                   (f64)memory / 0x1p20, (f64)(m.bytes - memory) / 0x1p20);
}

err planner_plan(const struct plan_request *q, const struct product *cuts, bool chosen, struct plan **out) {
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
