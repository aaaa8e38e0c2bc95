/* engine.c - plans and binds a network. */
#include "learn/engine.h"

static err bind(struct engine *e, const struct resources *r, const struct optim *optim, const char *plan_text,
                const char *plan_path) {
    struct plan_request q = {.net = e->net, .machine = r->machine, .B = e->B, .train = true, .nstate = optim ? optim->nstate : 0,
                             .parallel = r->parallel};
    if (optim) {
        if (plan_text) TRY(plan_parse(plan_text, plan_path, &q, &e->plan));
        else TRY(plan_make(&q, &e->plan));
        if (r->deterministic && !e->plan->exact)
            return FAIL_AT(E401, NULL, "--parallel data_sync",
                           "--deterministic: the strategy %s does not give the bits of the serial run", e->plan->strategy);
        TRY(exec_bind(e->plan, e->net, r->kern, r->pool, &e->store, &e->exec));
        exec_trace(e->exec, r->trace);
    }
    q.train = false;
    q.B = e->forward_B;
    TRY(plan_make(&q, &e->forward_plan));
    return exec_bind(e->forward_plan, e->net, r->kern, r->pool, &e->store, &e->forward);
}

err engine_new(const struct net *net, const struct resources *r, i32 B, i32 forward_B, const struct optim *optim,
               const char *plan_text, const char *plan_path, struct engine *out) {
    *out = (struct engine){.net = net, .B = B, .forward_B = forward_B};
    TRY(net_check(net));
    TRY(net_runs(net, r->kern));
    TRY(store_new(net, optim, &out->store));
    err e = bind(out, r, optim, plan_text, plan_path);
    if (e < 0) engine_free(out);
    return e;
}

void engine_free(struct engine *e) {
    exec_free(e->exec);
    exec_free(e->forward);
    plan_free(e->plan);
    plan_free(e->forward_plan);
    store_free(&e->store);
    *e = (struct engine){0};
}

i64 engine_planned_bytes(const struct engine *e) {
    i64 both = e->exec && e->forward ? e->forward_plan->store_bytes : 0; /* the store is shared */
    return (e->exec ? exec_bytes(e->exec) : 0) + (e->forward ? exec_bytes(e->forward) : 0) - both;
}
