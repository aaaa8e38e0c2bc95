/* choose.c - the plan of a request: of the product that it names, of a placement, or the best that a search over products finds.
 *
 *     auto   serial, data:2, data:3, ..  | data:2*unit:2, unit:2*data:2, ..  | data:2*pipeline:2*unit:2, ..
 *            one cut                       two                                 three: each extends what applied before
 *
 * The search costs every product of exact cuts whose parts fit the number of devices.  Numbers of parts are all up to 64 for one
 * cut and up to 8 in a product, then powers of two.  The EXTENDED fastest products of each level are extended, until the plans
 * have SEARCH_TASKS tasks together.  A plan that exceeds the memory of a device loses to any that does not. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "step/planner.h"
#include "step/strategy/strategy.h"

enum { SINGLE_PARTS = 64, PRODUCT_PARTS = 8, PRODUCT_CUTS = 3, EXTENDED = 24, SEARCH_TASKS = 1500000 };

/* ------------------------------------------------------------------ auto ---------------------------------------------------- */

struct search {
    const struct plan_request *q;
    struct plan *best;
    bool fits; /* .. the memory of its devices */
    struct plan_choice top[PLAN_CHOICES];
    i32 ntop, tried;
    i64 tasks; /* of all plans so far */
};

/* Keeps the name and the costs of a plan if it is among the best. */
static void rank(struct search *s, const struct plan *p, i64 bytes) {
    i32 at = s->ntop;
    while (at > 0 && p->predicted < s->top[at - 1].seconds) at--;
    if (at == PLAN_CHOICES) return;
    if (s->ntop < PLAN_CHOICES) s->ntop++;
    for (i32 k = s->ntop - 1; k > at; k--) s->top[k] = s->top[k - 1];
    snprintf(s->top[at].name, sizeof s->top[at].name, "%s", p->strategy);
    s->top[at].seconds = p->predicted;
    s->top[at].bytes = bytes;
}

/* Costs a product.  *seconds: of its step; < 0 = it does not apply. */
static err consider(struct search *s, const struct product *cuts, f64 *seconds) {
    struct plan *p = NULL;
    *seconds = -1;
    struct plan_memory memory;
    err e = planner_plan(s->q, cuts, false, &p);
    if (e == -E401) return 0;
    TRY(e);
    e = plan_memory(p, s->q->machine, &memory);
    const bool fits = memory.over < 0, first = !s->best || (fits && !s->fits);
    if (e < 0) {
        plan_free(p);
        return e;
    }
    *seconds = p->predicted;
    s->tried++;
    s->tasks += p->ntask;
    if (first) s->ntop = 0;
    if (first || fits == s->fits) rank(s, p, memory.most);
    if (first || (fits == s->fits && p->predicted < s->best->predicted)) {
        plan_free(s->best);
        s->best = p;
        s->fits = fits;
        return 0;
    }
    plan_free(p);
    return 0;
}

static bool may_multiply(const struct strategy *s) { return s->exact && s->counted && s->cut && !s->slices; }

/* The number of parts after n; `all`: up to which none is left out. */
static i32 next_parts(i32 n, i32 all) { return n < all ? n + 1 : 2 * n; }

/* Products of one number of cuts, the fastest first. */
struct level {
    struct product at[EXTENDED];
    f64 seconds[EXTENDED];
    i32 n;
};

static void keep(struct level *l, const struct product *cuts, f64 seconds) {
    i32 at = l->n;
    while (at > 0 && seconds < l->seconds[at - 1]) at--;
    if (at == EXTENDED) return;
    if (l->n < EXTENDED) l->n++;
    for (i32 k = l->n - 1; k > at; k--) {
        l->at[k] = l->at[k - 1];
        l->seconds[k] = l->seconds[k - 1];
    }
    l->at[at] = *cuts;
    l->seconds[at] = seconds;
}

static i32 devices_of(const struct product *cuts) {
    i32 n = 1;
    for (i32 i = 0; i < cuts->n; i++) n *= cuts->cut[i].wanted;
    return n;
}

/* Costs a product with every further cut inside of it. */
static err extend(struct search *s, const struct product *cuts, struct level *next) {
    const i32 room = s->q->machine->ndevice / devices_of(cuts), all = cuts->n ? PRODUCT_PARTS : SINGLE_PARTS;
    for (i32 i = 0; i < strategy_count(); i++) {
        const struct strategy *inner = strategy_at(i);
        if (!may_multiply(inner) || product_has(cuts, inner)) continue;
        for (i32 n = 2; n <= room && s->tasks < SEARCH_TASKS; n = next_parts(n, all)) {
            struct product more = *cuts;
            f64 seconds;
            more.cut[more.n++] = (struct plan_cut){.s = inner, .wanted = n};
            TRY(consider(s, &more, &seconds));
            if (seconds >= 0) keep(next, &more, seconds);
        }
    }
    return 0;
}

static err all_products(struct search *s) {
    struct level *level;
    NEW(level, PRODUCT_CUTS + 1);
    level[0].n = 1; /* the product of no cut */
    err e = 0;
    for (i32 k = 0; k < PRODUCT_CUTS && e >= 0; k++)
        for (i32 i = 0; i < level[k].n && e >= 0; i++) e = extend(s, &level[k].at[i], &level[k + 1]);
    mem_free(level);
    return e;
}

/* Strategies that stand alone; with time slices, those that cut them. */
static err alone(struct search *s) {
    for (i32 i = 0; i < strategy_count(); i++) {
        const struct product one = {.n = 1, .cut = {{.s = strategy_at(i)}}};
        const bool sliced = s->q->slices > 1;
        f64 seconds;
        if (sliced ? one.cut[0].s->slices : one.cut[0].s->exact && !one.cut[0].s->counted) TRY(consider(s, &one, &seconds));
    }
    return 0;
}

static void keep_choices(struct search *s) {
    struct netplan *of = netplan(s->best);
    memcpy(of->choice, s->top, sizeof of->choice);
    of->nchoice = s->ntop;
    of->tried = s->tried;
    of->overfull = !s->fits;
}

/* The cheapest exact plan by predicted cost; serial is tried first and so wins ties. A net with time slices always runs them. */
static err automatic(const struct plan_request *q, struct plan **out) {
    struct search s = {.q = q};
    err e = alone(&s);
    if (e >= 0 && q->slices <= 1) e = all_products(&s);
    if (e >= 0 && !s.best) e = FAIL_AT(E401, "--parallel", "--parallel serial", "no strategy fits this model and machine");
    if (e >= 0) keep_choices(&s);
    else plan_free(s.best);
    *out = e >= 0 ? s.best : NULL;
    return e < 0 ? e : 0;
}

/* ------------------------------------------------------------------ the whole ----------------------------------------------- */

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
    TRY(planner_plan(&one, &serial, true, &costs));
    with.serial = costs;
    const err e = planner_plan(&with, cuts, true, out);
    plan_free(costs);
    return e;
}

/* A method of placement places a pipeline: `auto` means one. */
static err for_place(const struct plan_request *q, struct product *cuts) {
    char name[PRODUCT_TEXT], fix[128];
    if (!q->place || !q->train) return 0;
    if (cuts->n == 0) return product_parse("pipeline", cuts);
    if (product_has(cuts, strategy_find("pipeline"))) return 0;
    product_name(cuts, 0, name);
    snprintf(fix, sizeof fix, "--parallel pipeline --place %.64s   or   --place ''", q->place);
    return FAIL_AT(E401, "--place", fix, "%s has no pipeline, whose layers --place puts on devices", name);
}

err plan_make(const struct plan_request *q, struct plan **out) {
    struct product cuts;
    *out = NULL;
    TRY(product_parse(q->parallel, &cuts));
    TRY(for_place(q, &cuts));
    any_slices(q, &cuts);
    if (q->place && q->train && !net_sliced(q->net)) return make_placed(q, &cuts, out); /* slices: no pipeline applies */
    return cuts.n > 0 ? planner_plan(q, &cuts, true, out) : automatic(q, out);
}
