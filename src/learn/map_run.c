/* map_run.c - plan, memory and workers of a learner's steps; see map_run.h. */
#include "learn/map_run.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"

enum { SPANS_KEPT = 2000 };

const struct machine *map_run_machine(const struct resources *use) { return use->ranks ? use->ranks : use->machine; }

i32 map_run_microbatch(i64 rows, i32 parts) { return (i32)lmax(1, (rows + parts - 1) / parts); }

err plan_run_open(struct plan *plan, const struct client *client, const struct resources *use, void *const *lent,
                  struct map_run *out) {
    *out = (struct map_run){.plan = plan, .use = use};
    const struct exec_job job = {.plan = plan,
                                 .client = *client,
                                 .pool = use->pool,
                                 .comm = comm_size(use->comm) > 1 ? use->comm : NULL,
                                 .policy = use->policy,
                                 .lent = lent};
    TRY(exec_bind(&job, &out->exec));
    exec_trace(out->exec, use->trace);
    return 0;
}

err map_run_open(const struct map_job *job, struct map_run *out) {
    struct map_request q = job->request;
    struct plan *plan;
    void **lent;
    *out = (struct map_run){0};
    q.machine = map_run_machine(job->use);
    TRY(plan_map(&q, &plan));
    err e = mem_new((void **)&lent, plan->nbuf, sizeof *lent);
    if (e < 0) {
        plan_free(plan);
        return e;
    }
    lent[MAP_ROWS] = job->rows;
    lent[MAP_MODEL] = job->model;
    lent[MAP_STATE] = job->state;
    const struct client client = {
        .kernel = job->kernel, .nkernel = MAP_NKERNEL, .self = job->self, .result = job->result};
    e = plan_run_open(plan, &client, job->use, lent, out);
    mem_free(lent);
    return e;
}

void map_run_close(struct map_run *r) {
    exec_free(r->exec);
    plan_free(r->plan);
    *r = (struct map_run){0};
}

err map_run_step(struct map_run *r, struct exec_result *out) {
    struct exec_result result;
    TRY(exec_step(r->exec, r->steps++, false, &result));
    if (out) *out = result;
    return exec_settle(r->exec, &result);
}

err map_run_look(const struct resources *use, f64 deadline, u32 mine, u32 *seen) {
    u32 all[COMM_RANKS];
    if (use->stop && *use->stop) mine |= MAP_SEES_SIGNAL;
    if (deadline > 0 && clock_now() > deadline) mine |= MAP_SEES_LATE;
    TRY(comm_allgather(use->comm, "stop", &mine, sizeof mine, all));
    *seen = 0;
    for (i32 k = 0; k < comm_size(use->comm); k++) *seen |= all[k];
    return 0;
}

err map_run_stopped(const struct resources *use, f64 deadline, bool *signal, bool *late) {
    u32 seen;
    TRY(map_run_look(use, deadline, 0, &seen));
    *signal = seen & MAP_SEES_SIGNAL;
    *late = seen & MAP_SEES_LATE;
    return 0;
}

err map_run_keep(const struct map_run *r, struct model *m) {
    const struct plan *p = r->plan;
    str_free(&m->plan_text);
    mem_free(m->span);
    m->span = NULL;
    m->nspan = 0;
    str_addf(&m->plan_text, "%s: %u tasks on %d device%s, %d parts of %d rows\n", p->strategy, p->ntask, p->ndevice,
             p->ndevice == 1 ? "" : "s", p->ngrain, p->grain);
    m->planned_bytes = exec_bytes(r->exec);
    if (!r->use->trace) return str_ok(&m->plan_text);
    NEW(m->span, SPANS_KEPT);
    m->nspan = exec_spans(r->exec, m->span, SPANS_KEPT);
    return str_ok(&m->plan_text);
}
