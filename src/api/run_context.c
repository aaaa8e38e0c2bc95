/* run_context.c - opens machine, threads, kernels, ranks and wisdom of one run, from the options. */
#include <stdio.h>
#include <string.h>

#include "api/ranks.h"
#include "base/mem.h"
#include "base/pager.h"

void plan_wishes(const struct options *o, struct resources *use) {
    use->parallel = o->parallel;
    use->grains = opt_is_auto(o, OPT_grains) ? 0 : (i32)o->grains;
    use->microbatches = opt_is_auto(o, OPT_micro_batches) ? 0 : (i32)o->micro_batches;
    use->place = o->place && *o->place ? o->place : NULL;
    use->all_forward = strcmp(o->stage_order, "gpipe") == 0;
}

/* A machine for each device of --device, which share independent work. */
static err machines_of_each(const struct device_wishes *d, const struct machine *host, struct run_context *w) {
    for (i32 i = 0; i < d->n; i++) TRY(devices_machine(d, i, host, &w->forward[i]));
    w->use.forward = (const struct machine *const *)w->forward;
    w->use.nforward = d->n;
    return 0;
}

static err machines_of_devices(struct run_context *w) {
    TRY(devices_machine(&w->devices, comm_rank(w->comm), w->host, &w->machine));
    return machines_of_each(&w->devices, w->host, w);
}

/* A learner that deals the rows of its kernel to devices (learn/offload.h): machine, plan and ranks are those of the cores. */
static err take_shared(const struct options *o, struct run_context *w) {
    struct device_wishes d;
    TRY(devices_read(o, w->machine, &d));
    return machines_of_each(&d, w->machine, w);
}

/* The devices of this process: those of --device, in turn for the ranks of a launcher, in place of the cores.  Together all of
 * them share forecasts of many windows. */
static err take_devices(const struct options *o, struct run_context *w) {
    const struct learner *l = learner_find(o->task);
    if (l && l->offloads) return take_shared(o, w);
    TRY(devices_read(o, w->machine, &w->devices));
    if (w->devices.n == 0) return 0;
    if (o->deterministic && devices_differ(&w->devices))
        return FAIL_AT(E106, "--deterministic", "--device with devices of one kind   or   no --deterministic",
                       "devices of several kinds round differently, and how many rows each computes follows from their speed");
    TRY(machine_trim(&w->machine));
    w->host = w->machine;
    w->machine = NULL;
    return machines_of_devices(w);
}

static err fill(const struct options *o, bool joins, struct run_context *w) {
    i32 threads = opt_is_auto(o, OPT_threads) ? 0 : (i32)o->threads;
    TRY(pick_kernel(o, &w->use.kern, &w->use.how));
    NEW(w->machine, 1);
    if (joins && !w->comm) TRY(ranks_join(o, &w->comm));
    if (joins) TRY(ranks_recover(o, w));
    if (joins) TRY(ranks_threads(o, w, &threads));
    TRY(machine_host(threads, w->machine));
    machine_measure(w->use.kern, w->machine);
    TRY(take_devices(o, w));
    TRY(machine_trim(&w->machine));
    w->use.machine = w->machine;
    if (joins) TRY(ranks_machine(o, w));
    TRY(wisdom_open(w->machine->cpu, &w->wisdom));
    w->use.wisdom = &w->wisdom;
    TRY(store_spec_read(o, &w->use.store));
    w->use.policy = policy_find(w->use.store.choice.policy->pipeline ? w->use.store.choice.policy->pipeline : o->pipeline);
    w->use.deterministic = o->deterministic;
    plan_wishes(o, &w->use);
    w->use.balance = strcmp(o->balance, "off") != 0;
    return pool_new(w->machine->ndevice, &w->use.pool);
}

static err open_context(const struct options *o, bool joins, struct run_context *out) {
    mem_set_limit(o->memory);
    pager_restart();
    err e = fill(o, joins, out);
    pager_restart();
    if (e < 0) run_context_close(out);
    return e;
}

err run_context_open(const struct options *o, const struct events *events, const volatile int *stop, bool joins,
                  struct run_context *out) {
    *out = (struct run_context){.use = {.events = events, .stop = stop}};
    return open_context(o, joins, out);
}

err run_context_joined(const struct options *o, const struct events *events, const volatile int *stop, struct comm **comm,
                       struct run_context *out) {
    *out = (struct run_context){.use = {.events = events, .stop = stop}, .comm = *comm};
    *comm = NULL;
    return open_context(o, true, out);
}

/* What follows from the devices, and the threads. */
static void drop_machines(struct run_context *w) {
    pool_free(w->use.pool);
    mem_free(w->ranks);
    mem_free(w->machine);
    for (i32 i = 0; i < DEVICE_WISHES; i++) {
        mem_free(w->forward[i]);
        w->forward[i] = NULL;
    }
    w->use.pool = NULL;
    w->use.forward = NULL;
    w->use.nforward = 0;
    w->ranks = w->machine = NULL;
}

err run_context_without(u64 lost, struct run_context *w) {
    struct device_wishes *d = &w->devices;
    i32 left = 0;
    drop_machines(w);
    for (i32 i = 0; i < d->n; i++)
        if (!(lost >> i & 1)) d->at[left++] = d->at[i];
    d->n = left;
    if (left > 0) {
        TRY(machines_of_devices(w));
    } else {
        w->machine = w->host;
        w->host = NULL;
    }
    w->use.machine = w->machine;
    TRY(ranks_machine_left(w));
    return pool_new(w->machine->ndevice, &w->use.pool);
}

void run_context_close(struct run_context *w) {
    drop_machines(w);
    wisdom_close(&w->wisdom);
    comm_free(w->comm);
    mem_free(w->host);
    str_free(&w->shares_from);
    *w = (struct run_context){0};
}
