/* run_context.c - opens machine, threads, kernels, ranks and wisdom of one run, from the options. */
#include <stdio.h>
#include <string.h>

#include "api/ranks.h"

void plan_wishes(const struct options *o, struct resources *use) {
    use->parallel = o->parallel;
    use->grains = opt_is_auto(o, OPT_grains) ? 0 : (i32)o->grains;
    use->microbatches = opt_is_auto(o, OPT_micro_batches) ? 0 : (i32)o->micro_batches;
    use->place = o->place && *o->place ? o->place : NULL;
    use->all_forward = strcmp(o->stage_order, "gpipe") == 0;
}

static err fill(const struct options *o, bool joins, struct run_context *w) {
    i32 threads = opt_is_auto(o, OPT_threads) ? 0 : (i32)o->threads;
    TRY(pick_kernel(o, &w->use.kern, &w->use.how));
    NEW(w->machine, 1);
    if (joins) TRY(ranks_join(o, w));
    if (joins) TRY(ranks_threads(o, w, &threads));
    TRY(machine_host(threads, w->machine));
    machine_measure(w->use.kern, w->machine);
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

err run_context_open(const struct options *o, const struct events *events, const volatile int *stop, bool joins,
                  struct run_context *out) {
    *out = (struct run_context){.use = {.events = events, .stop = stop}};
    mem_set_limit(o->memory);
    err e = fill(o, joins, out);
    if (e < 0) run_context_close(out);
    return e;
}

void run_context_close(struct run_context *w) {
    pool_free(w->use.pool);
    wisdom_close(&w->wisdom);
    comm_free(w->comm);
    mem_free(w->ranks);
    str_free(&w->shares_from);
    mem_free(w->machine);
    *w = (struct run_context){0};
}
