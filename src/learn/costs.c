/* costs.c (learn) - see costs.h: lines of the wisdom to costs and back; which plans are measured. */
#include "learn/costs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "learn/probe.h"

enum { BUSY = 4, RUNS = 20 }; /* plans that all workers run; steps of a plan, about */
#define MOST_S 0.025          /* that the steps of a plan take in a round, unless three take longer */

/* Rounds over all plans, and plans that one worker runs.  What disturbs a plan for a while is over when its turn comes again;
 * where there is no time for that, one round, and of fewer plans, still tells more than the cost model. */
static const struct effort {
    i32 rounds, plans;
} efforts[] = {{2, 5}, {1, 5}, {1, 2}};

/* ------------------------------------------------------------------ lines --------------------------------------------------- */

/* "fwd:6f1b9d2c40aa7e31:busy:2:6:16": kind, shape, whether all workers were busy, members of a team, steps of a chunk, size. */
static void work_name(const struct cost *c, char out[WISDOM_WORK]) {
    snprintf(out, WISDOM_WORK, "%s:%016llx:%s:%d:%d:%lld", cost_names[c->kind], (unsigned long long)c->shape,
             c->busy ? "busy" : "alone", c->members, c->steps, (long long)c->size);
}

static bool read_work(const char *text, struct cost *c) {
    char kind[16], busy[8];
    unsigned long long shape;
    int members, steps;
    long long size;
    *c = (struct cost){.kind = COST_NKIND};
    if (sscanf(text, "%15[a-z]:%16llx:%7[a-z]:%d:%d:%lld", kind, &shape, busy, &members, &steps, &size) != 6) return false;
    for (u8 k = 0; k < COST_NKIND; k++)
        if (strcmp(kind, cost_names[k]) == 0) c->kind = k;
    if (c->kind == COST_NKIND || members < 0 || members > UINT16_MAX || size < 1) return false;
    if (steps < 0 && c->kind != TASK_BWD) return false; /* costs.h: the chunk that backward reaches last */
    c->shape = shape;
    c->busy = strcmp(busy, "busy") == 0;
    c->members = (u16)members;
    c->steps = steps;
    c->size = size;
    return c->busy || strcmp(busy, "alone") == 0;
}

static void line_key(const struct resources *r, struct tune_seconds *line) {
    static const char *const mode[] = {"", ":F", ":A", ":N", ":S"}; /* enum cell_how, where --kernel names one */
    *line = (struct tune_seconds){.threads = r->machine->ndevice, .fresh = true};
    snprintf(line->cpu, sizeof line->cpu, "%s", r->wisdom->cpu);
    const i32 ranks = comm_local_size(r->comm);
    snprintf(line->table, sizeof line->table, "%.12s%s", r->kern->name, mode[r->how]);
    if (ranks > 1) /* and the first letter of what carries their messages */
        snprintf(line->table + strlen(line->table), sizeof line->table - strlen(line->table), "*%d%c", ranks,
                 comm_transport(r->comm)[0]);
}

/* Is it the work of an op of the net, or of ranges of its weights and gradients (costs_key)? */
static bool concerns(const struct net *n, i32 B, i32 grain, const struct cost *c) {
    if (c->kind != TASK_FWD && c->kind != TASK_BWD && c->kind != TASK_PREP && c->kind != TASK_DW &&
        c->kind != TASK_DX)
        return c->size <= lmax(1, n->ntheta) * (1 + ceil_div(B, grain));
    for (i32 l = 0; l < n->nop; l++)
        if (costs_shape(n, l, grain) == c->shape) return true;
    return false;
}

static bool on_one_host(const struct resources *r) { return comm_local_size(r->comm) == comm_size(r->comm); }

/* Of links between hosts, nothing is kept: the next job may run on others. */
static bool holds_here(const struct resources *r, const struct cost *c) {
    return (c->kind != COST_LATENCY && c->kind != COST_BYTE) || on_one_host(r);
}

/* The newest lines; half of the table stays free for what is measured now. */
static void from_wisdom(const struct net *n, const struct resources *r, i32 B, struct costs *out) {
    const i32 grain = plan_grain(B, r->grains);
    const struct wisdom *w = r->wisdom;
    struct tune_seconds like;
    line_key(r, &like);
    for (i32 i = w->ncost - 1; i >= 0 && out->n < COSTS_MAX / 2; i--) {
        const struct tune_seconds *line = &w->cost[i];
        struct cost c;
        if (line->threads != like.threads || strcmp(line->cpu, like.cpu) != 0 || strcmp(line->table, like.table) != 0) continue;
        if (!read_work(line->work, &c) || !concerns(n, B, grain, &c) || !holds_here(r, &c)) continue;
        c.seconds = line->seconds;
        costs_put(out, c);
    }
}

static void line_of(const struct resources *r, const struct cost *c, struct tune_seconds *line) {
    line_key(r, line);
    work_name(c, line->work);
    line->seconds = dmax(c->seconds, 1e-12);
}

/* Does this process read the wisdom and keep there what it measures? */
static bool keeps(const struct resources *r) { return comm_rank(r->comm) == 0 && r->wisdom && !r->wisdom->off; }

/* Takes the cost unless a shorter one is known: what makes a wait longer is another program. */
static err put_least(const struct resources *r, struct costs *to, struct cost c) {
    struct tune_seconds line;
    for (i32 i = 0; i < to->n; i++) {
        struct cost *was = &to->at[i];
        if (was->kind != c.kind || was->members != c.members || was->seconds <= c.seconds) continue;
        was->seconds = c.seconds;
        if (!keeps(r)) return 0;
        line_of(r, was, &line);
        return wisdom_put_cost(r->wisdom, &line);
    }
    costs_put(to, c);
    return 0;
}

/* Stores the costs from number `from` on. */
static err to_wisdom(const struct resources *r, const struct costs *c, i32 from) {
    struct tune_seconds line;
    for (i32 i = from; i < c->n; i++) {
        if (!holds_here(r, &c->at[i])) continue;
        line_of(r, &c->at[i], &line);
        TRY(wisdom_put_cost(r->wisdom, &line));
    }
    if (wisdom_save(r->wisdom) == 0) return 0;
    event_note(r->events, EVENT_NOTE, "measurements could not be saved: %s: %s", err_last()->where, err_last()->text);
    err_clear();
    return 0;
}

err costs_keep(const struct resources *r, const struct costs *c) {
    return keeps(r) ? to_wisdom(r, c, 0) : 0;
}

/* ------------------------------------------------------------------ plans --------------------------------------------------- */

struct measure {
    const struct resources *r;
    struct probe probe;
    struct costs *to;
    struct machine *machine; /* this host with another number of devices */
    struct pool *one;        /* one worker */
    const struct effort *effort; /* NULL: nothing is measured */
};

/* The plan of one cut for so many devices of this host; NULL = it does not apply. */
static err plan_for(struct measure *m, const char *cut, i32 devices, struct plan **out) {
    char parallel[32] = "serial";
    const struct machine *host = m->r->machine;
    machine_copy(m->machine, host);
    m->machine->nrank = 1;
    m->machine->ndevice = devices;
    for (i32 d = 0; d < devices; d++) m->machine->device[d] = host->device[imin(d, host->ndevice - 1)];
    if (devices > 1) snprintf(parallel, sizeof parallel, "%s:%d", cut, devices);
    struct resources use = *m->r;
    use.machine = m->machine;
    use.ranks = NULL;
    use.parallel = parallel;
    use.place = NULL;
    use.costs = NULL;
    use.microbatches = 0;
    if (devices > 1 && devices != host->ndevice) use.steps = 0; /* no training runs it: its modes need no measurement */
    const struct plan_request q = engine_request(m->probe.net, &use, m->probe.B, m->probe.optim);
    const err e = plan_make(&q, out);
    if (e == -E401) err_clear();
    TRY(e == -E401 ? 0 : e);
    return *out ? engine_choose_how(*out, m->probe.net, &use) : 0;
}

static bool knows(const struct costs *c, u8 kind, i32 workers) {
    const struct cost like = {.kind = kind, .size = 1, .members = (u16)workers};
    return costs_find(c, &like) != NULL;
}

/* Is there a task whose cost is not known? */
static bool lacks(const struct measure *m, const struct plan *p, bool busy) {
    for (u32 i = 0; i < p->ntask; i++) {
        struct cost key = costs_key(p, m->probe.net, &p->task[i]);
        key.busy = busy;
        if (!costs_find(m->to, &key)) return true;
    }
    return false;
}

static err put_wait(struct measure *m, u8 kind, i32 workers, f64 seconds) {
    const struct cost c = {.kind = kind, .size = 1, .members = (u16)workers, .seconds = dmax(seconds, 1e-9)};
    return put_least(m->r, m->to, c);
}

/* The waits of a plan that the workers of training run. */
static err learn_waits(struct measure *m, const struct plan *p, const struct probe_result *got) {
    const i32 workers = m->r->machine->ndevice;
    TRY(put_wait(m, COST_AROUND, workers, got->waits.around));
    if (p->ndevice == 1) return put_wait(m, COST_TASK, workers, got->gap);
    TRY(put_wait(m, COST_WAKE, workers, got->waits.wake));
    return got->waits.seen > 0 ? put_wait(m, COST_SEEN, workers, got->waits.seen) : 0;
}

static err learn_plan(struct measure *m, struct plan *p, struct pool *pool, bool busy) {
    struct probe_result got = {0};
    const bool whole = pool == m->r->pool; /* as training will run it */
    NEW(got.seconds, p->ntask + 1);
    err e = probe_plan(&m->probe, p, pool, &got);
    const bool learns = e >= 0 && got.step > 0 && !(busy && got.disturbed); /* without busy costs, those of a worker alone hold */
    if (learns) e = costs_learn(m->to, p, m->probe.net, got.seconds, busy);
    if (learns && e >= 0 && whole && comm_rank(m->r->comm) == 0) e = learn_waits(m, p, &got);
    mem_free(got.seconds);
    return e;
}

static err measure_plan(struct measure *m, const char *cut, i32 devices, bool busy) {
    struct plan *p = NULL;
    struct pool *pool = busy || devices == 1 ? m->r->pool : m->one;
    TRY(plan_for(m, cut, devices, &p));
    if (!p) return 0;
    const bool waits = pool == m->r->pool && !knows(m->to, COST_TASK, pool_size(pool));
    err e = 0;
    if ((waits || lacks(m, p, busy)) && pool_size(pool) <= m->r->machine->ndevice) e = learn_plan(m, p, pool, busy);
    plan_free(p);
    if (e != -E601) return e;
    err_clear(); /* there is no memory for a second set of buffers: the cost model will do */
    return 0;
}

static err alone(struct measure *m, const char *cut, i32 devices) { return measure_plan(m, cut, devices, false); }
static err busy(struct measure *m, const char *cut, i32 devices) { return measure_plan(m, cut, devices, true); }

typedef err measure_fn(struct measure *m, const char *cut, i32 devices);

static i32 grains_of(const struct measure *m) { return ceil_div(m->probe.B, plan_grain(m->probe.B, m->r->grains)); }

/* The plans that one worker runs: all rows, half, a quarter .., a micro-batch. */
static err by_one_worker(struct measure *m, measure_fn *run) {
    const i32 grains = grains_of(m);
    TRY(run(m, "data", 1));
    for (i32 k = 2, plans = 1; k < 2 * grains && plans < m->effort->plans; k *= 2, plans++)
        TRY(run(m, "data", imin(plans == m->effort->plans - 1 ? grains : k, grains)));
    return 0;
}

/* The plans of all workers: their share of the rows, of the units, of the layers.  Stages tell what micro-batches cost where no
 * other worker has the weights. */
static err by_all_workers(struct measure *m, measure_fn *run) {
    const i32 n = m->r->machine->ndevice;
    TRY(run(m, "data", imin(n, grains_of(m))));
    TRY(run(m, "unit", n));
    TRY(run(m, "wave", n));
    return run(m, "pipeline", n);
}

static err measure_all(struct measure *m) {
    TRY(by_one_worker(m, alone));
    if (m->r->machine->ndevice < 2 || comm_local_size(m->r->comm) > 1) return 0; /* then all ranks are busy together */
    return by_all_workers(m, busy);
}

/* ------------------------------------------------------------------ all ranks together -------------------------------------- */

/* Rank 0 learns from a plan that every rank runs for itself at the same time, if it lacks the costs; collective. */
static err crowd_plan(struct measure *m, const char *cut, i32 devices) {
    struct plan *p = NULL;
    const bool first = comm_rank(m->r->comm) == 0;
    err e = plan_for(m, cut, devices, &p);
    u8 go = first && e >= 0 && p && lacks(m, p, true); /* a rank that fails still takes part in the broadcast */
    const err told = comm_broadcast_slow(m->r->comm, "whether costs are measured", &go, sizeof go);
    if (e >= 0 && told >= 0 && go && p) e = learn_plan(m, p, m->r->pool, true);
    plan_free(p);
    TRY(told);
    if (e == -E601) err_clear();
    return comm_agree(m->r->comm, "costs of busy workers", e == -E601 ? 0 : e);
}

/* Costs of busy workers: all ranks run the same plans together, since ranks of a host share memory bandwidth and power. */
static err crowd(struct measure *m) {
    return m->r->machine->ndevice > 1 ? by_all_workers(m, crowd_plan) : by_one_worker(m, crowd_plan);
}

/* ------------------------------------------------------------------ the whole ----------------------------------------------- */

/* Seconds that measuring takes, for steps of so many seconds. */
static f64 effort_seconds(const struct effort *of, f64 step) {
    return of->rounds * (of->plans + BUSY) * dmin(dmax(MOST_S, 5 * step), RUNS * step);
}

/* The greatest effort that takes at most so long, and the run far longer. */
static err choose_effort(struct measure *m, f64 most) {
    struct plan *p = NULL;
    TRY(plan_for(m, "data", 1, &p));
    for (u32 k = 0; p && k < COUNT(efforts) && !m->effort; k++) {
        const f64 cost = effort_seconds(&efforts[k], p->predicted);
        if (cost <= most && p->predicted * (f64)m->r->steps >= TUNE_WORTH * cost) m->effort = &efforts[k];
    }
    plan_free(p);
    return 0;
}

/* The lower of two measurements of each kind of work. */
static void take_lower(struct costs *c, const struct costs *other) {
    for (i32 i = 0; i < c->n; i++) {
        const struct cost *found = costs_find(other, &c->at[i]);
        if (found) c->at[i].seconds = dmin(c->at[i].seconds, found->seconds);
    }
    for (i32 i = 0; i < other->n; i++) costs_put(c, other->at[i]);
}

/* The second round starts from what was known before the first. */
static err two_rounds(struct measure *m) {
    struct costs *first, *known = m->to;
    NEW(first, 1);
    memcpy(first, known, sizeof *first);
    m->to = first;
    err e = measure_all(m);
    m->to = known;
    if (e >= 0) e = measure_all(m);
    if (e >= 0) take_lower(known, first);
    mem_free(first);
    return e;
}

/* By rank 0 alone. */
static err measure(struct measure *m, f64 most) {
    TRY(choose_effort(m, most));
    if (!m->effort) return 0;
    TRY(pool_new(1, &m->one));
    return m->effort->rounds > 1 ? two_rounds(m) : measure_all(m);
}

static err put_link(const struct resources *r, struct costs *to) {
    const i32 from = to->n;
    struct comm_link link;
    TRY(comm_measure_link(r->comm, &link));
    TRY(put_least(r, to, (struct cost){.kind = COST_LATENCY, .size = 1, .seconds = link.latency}));
    TRY(put_least(r, to, (struct cost){.kind = COST_BYTE, .size = 1, .seconds = dmax(link.per_byte, 1e-15)}));
    return keeps(r) ? to_wisdom(r, to, from) : 0;
}

/* All ranks take the costs of rank 0. If it has none, the link is not measured. */
static err share(const struct resources *r, struct costs *c) {
    TRY(comm_broadcast_slow(r->comm, "costs", c, sizeof *c));
    return c->n > 0 ? put_link(r, c) : 0;
}

/* Measures what rank 0 lacks if it is worth it: rank 0 alone; then, if its host has several ranks, all ranks at the same time. */
static err measure_here(struct measure *m, f64 most) {
    const struct resources *r = m->r;
    const bool first = comm_rank(r->comm) == 0;
    const i32 from = m->to->n;
    m->machine = mem_alloc(sizeof *m->machine);
    err e = m->machine ? 0 : -E601;
    if (e >= 0 && most > 0 && keeps(r)) e = measure(m, most);
    u8 all = e >= 0 && m->effort && comm_local_size(r->comm) > 1 ? (u8)(1 + (m->effort - efforts)) : 0;
    TRY(comm_agree(r->comm, "costs of a worker alone", e));
    TRY(comm_broadcast_slow(r->comm, "whether ranks measure costs", &all, sizeof all));
    if (all) {
        m->effort = &efforts[all - 1];
        TRY(crowd(m));
    }
    return comm_agree(r->comm, "costs", first && m->to->n > from ? to_wisdom(r, m->to, from) : 0);
}

err costs_open(const struct net *net, const struct resources *r, i32 B, const struct optim *optim, f64 most, struct costs *out) {
    struct measure m = {.r = r, .to = out, .probe = {.net = net, .kern = r->kern, .optim = optim, .B = B, .most = MOST_S}};
    out->n = 0;
    if (net_sliced(net) || machine_is_apart(r->ranks ? r->ranks : r->machine)) return 0;
    if (keeps(r)) from_wisdom(net, r, B, out);
    out->ranks = comm_local_size(r->comm);
    err e = measure_here(&m, most);
    pool_free(m.one);
    mem_free(m.machine);
    TRY(e);
    return comm_size(r->comm) > 1 ? share(r, out) : 0;
}
