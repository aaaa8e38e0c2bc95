/* engine.c - plans and binds a network. */
#include "learn/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gpu/gpu.h"
#include "model/cell/cell.h"
#include "step/balance.h"

struct resources resources_whole(const struct resources *r) {
    struct resources whole = *r;
    whole.steps = whole.slices = 0;
    whole.any_slices = true;
    whole.plan_text = NULL;
    return whole;
}

struct resources resources_sliced(const struct resources *r, const char *parallel, i32 P, struct chain_course course) {
    struct resources use = *r;
    if (parallel) use.parallel = parallel, use.any_slices = true, use.plan_text = NULL;
    use.slices = P;
    use.course = course;
    use.steps = 0;
    return use;
}

/* Bytes of what a forward pass over B rows writes. */
static i64 forward_bytes(const struct net *n, i32 B) {
    i64 floats = 0;
    for (i32 i = 0; i < n->nbuf; i++) floats += n->buf[i].input ? 0 : buf_floats(&n->buf[i], B);
    for (i32 l = 0; l < n->nop; l++)
        floats += op_saved_floats(&n->op[l], n, rows_all(B)) + op_scratch_floats(&n->op[l], n, rows_all(B));
    return 4 * floats;
}

i32 engine_forward_rows(const struct net *n, i32 most) {
    enum { LEAST = 16, ROOM = 64 << 20 };
    while (most / 2 >= LEAST && forward_bytes(n, most) > ROOM) most /= 2;
    return most;
}

struct tune_shape engine_tune_shape(const struct plan *p, const struct net *n, i32 l) {
    const struct op *op = &n->op[l];
    struct tune_shape s = {.cell = op->spec.cell,
                           .precision = op->spec.precision,
                           .T = op->T,
                           .B = p->B,
                           .I = op->I,
                           .H = op->F,
                           .threads = p->ndevice};
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if (t->kind != TASK_FWD || t->op != l) continue;
        s.rows = imax(s.rows, t->box.b1 - t->box.b0);
        s.members = imax(s.members, t->members);
    }
    return s;
}

static void tell(const struct resources *r, const struct op *op, const struct tune_entry *e) {
    const char *best = tune_variant_name(TUNE_HOW, e->best), *other = tune_variant_name(TUNE_HOW, !e->best);
    event_note(r->events, EVENT_DETAIL,
               "%s: execution mode %s, %.0f us forward against %.0f us in mode %s (measured now%s%s)", op->spec.name, best,
               1e6 * e->seconds[e->best], 1e6 * e->seconds[!e->best], other, r->wisdom->path ? ", kept in " : "",
               r->wisdom->path ? r->wisdom->path : "");
}

err engine_choose_how(struct plan *p, const struct net *n, const struct resources *r) {
    struct wisdom *w = machine_is_apart(r->machine) ? NULL : r->wisdom; /* which is about kernels of the host */
    if (w && w->damage[0])
        event_note(r->events, EVENT_NOTE, "wisdom %s: %s", w->path ? w->path : "", w->damage), w->damage[0] = 0;
    f64 seconds = netplan(p)->train ? p->predicted * (f64)r->steps : 0;
    bool measured = false;
    for (i32 l = 0; l < n->nop; l++) {
        const struct tune_entry *e = NULL;
        if (!op_has_how(&n->op[l])) continue;
        struct tune_shape s = engine_tune_shape(p, n, l);
        u32 how = r->how;
        i32 known = w ? w->n : 0;
        if (!cell_walks(cell_of(n->op[l].spec.cell), how))
            return FAIL_AT(E103, "--kernel", "--kernel auto", "the layers of cell %s have no execution mode %s",
                           cell_of(n->op[l].spec.cell)->name, how == CELL_NEWTON ? "newton" : "scan");
        if (how == 0) TRY(tune_how(w, r->kern, &s, seconds, &how, &e));
        plan_set_how(p, n, l, how);
        if (!e || w->n == known) continue;
        tell(r, &n->op[l], e);
        measured = true;
    }
    if (!measured || wisdom_save(w) == 0) return 0;
    event_note(r->events, EVENT_NOTE, "measurements could not be saved: %s: %s", err_last()->where, err_last()->text);
    err_clear();
    return 0;
}

/* True if STRETTO_EMBEDDINGS=whole: ranks send whole embedding gradients instead of sparse rows. For measurements; set it
 * on every rank. */
static bool dense_tables(void) {
    const char *wish = getenv("STRETTO_EMBEDDINGS");
    return wish && strcmp(wish, "whole") == 0;
}

struct plan_request engine_request(const struct net *net, const struct resources *r, i32 B, const struct optim *optim) {
    return (struct plan_request){.net = net,
                                 .machine = r->ranks ? r->ranks : r->machine,
                                 .B = B,
                                 .train = true,
                                 .nstate = optim ? optim->nstate : 0,
                                 .grains = r->grains,
                                 .microbatches = r->microbatches,
                                 .place = r->place,
                                 .all_forward = r->all_forward,
                                 .slices = r->slices > 1 ? r->slices : 0,
                                 .any_slices = r->any_slices,
                                 .course = r->course,
                                 .dense = dense_tables(),
                                 .costs = r->costs,
                                 .parallel = r->parallel};
}

/* Parses the saved plan or makes a new one. The caller frees *out, also after a failure. */
static err training_plan(const struct plan_request *q, const struct resources *r, struct plan **out) {
    TRY(r->plan_text ? plan_parse(r->plan_text, r->plan_path, q, out) : plan_make(q, out));
    if (!r->deterministic || (*out)->exact) return 0;
    return FAIL_AT(E401, NULL, "--parallel data",
                   "--deterministic: the strategy %s does not give the bits of the serial run", (*out)->strategy);
}

err engine_plan(const struct net *net, const struct resources *r, i32 B, const struct optim *optim, struct plan **out) {
    const struct plan_request q = engine_request(net, r, B, optim);
    *out = NULL;
    err e = training_plan(&q, r, out);
    if (e >= 0 && !r->plan_text) e = engine_choose_how(*out, net, r);
    if (e >= 0) return e;
    plan_free(*out);
    *out = NULL;
    return e;
}

/* Where ranks train layers of their own, they forecast together, so that none needs the activations of all layers. */
static err joint_plan(struct engine *e, struct plan_request q) {
    q.joint = true;
    q.parallel = e->plan->strategy;
    TRY(plan_make(&q, &e->forward_plan));
    e->joint = plan_splits_weights(e->forward_plan);
    if (e->joint) return 0;
    plan_free(e->forward_plan); /* too few rows for stages */
    e->forward_plan = NULL;
    return 0;
}

static err plan_training(const struct engine *e, const struct resources *r, const struct optim *optim, struct plan **out) {
    struct plan_request q = engine_request(e->net, r, e->B, optim);
    q.passes = e->passes;
    TRY(training_plan(&q, r, out));
    if (r->heal) plan_update_everywhere(*out);
    return 0;
}

static err plan_forward(struct engine *e, const struct resources *r, const struct optim *optim) {
    struct plan_request q = engine_request(e->net, r, e->B, optim);
    q.passes = e->passes;
    q.train = false;
    q.grains = 0;
    q.place = NULL;
    q.B = e->forward_B;
    if (q.B == 0) return 0;
    if (optim && !r->plan_text && plan_splits_weights(e->plan)) TRY(joint_plan(e, q));
    if (e->forward_plan) return 0;
    q.machine = r->machine; /* each rank forecasts alone; requests for several devices apply to training */
    if (r->machine->ndevice == 1) q.parallel = "auto";
    return plan_make(&q, &e->forward_plan);
}

static i64 kept_bytes(const struct plan *p) {
    i64 kept = 0;
    for (u32 b = 0; b < p->nbuf; b++) kept += p->buf[b].kind == PBUF_SAVED ? p->buf[b].bytes : 0;
    return kept;
}

/* Extends the message of a refused allocation: what the plan needs the memory for, and --recompute for time slices. */
static err too_little(const struct engine *e, err got) {
    char text[sizeof err_last()->text];
    if (got != -E601 || !e->plan || netplan(e->plan)->slices < 2 || net_recomputes(e->net)) return got;
    snprintf(text, sizeof text, "%s", err_last()->text);
    return FAIL_AT(E601, NULL, "--recompute   or   a larger --memory, a smaller --batch or a shorter --context",
                   "%s; the plan keeps %.1f MiB of gates and states for backward", text, (f64)kept_bytes(e->plan) / 0x1p20);
}

/* E601 if the plans need more memory than the machine has. Checked before any allocation: a system that overcommits memory
 * would kill the process in the middle of the run. */
static err room(const struct engine *e, const struct resources *r) {
    const struct machine *m = r->machine;
    const struct plan *p = e->plan, *f = e->forward_plan;
    i64 bytes = (p ? p->peak_bytes - netplan(p)->store_bytes : 0) + (f ? f->peak_bytes - netplan(f)->store_bytes : 0) +
                lmax(p ? netplan(p)->store_bytes : 0, f ? netplan(f)->store_bytes : 0);
    bytes *= comm_local_size(r->comm);
    if (bytes <= m->memory || m->memory <= 0) return 0;
    i64 kept = p ? kept_bytes(p) : 0;
    f64 share = (f64)m->memory / (f64)bytes;
    if (kept > bytes / 4)
        return FAIL_AT(E601, NULL,
                       kept > bytes - m->memory && netplan(p)->slices > 1
                           ? "--recompute   or   a smaller --context, --batch or --hidden"
                           : "a smaller --context, --batch or --hidden",
                       "the plans of this run hold %.1f GiB, of which %.1f GiB are gates kept for backward; the machine has "
                       "%.1f GiB, enough for %.0f%% of the rows and steps",
                       (f64)bytes / 0x1p30, (f64)kept / 0x1p30, (f64)m->memory / 0x1p30, dmax(1, floor(100 * share)));
    return FAIL_AT(E601, NULL, "a smaller --hidden, --batch or --context",
                   "the plans of this run hold %.1f GiB, the machine has %.1f GiB", (f64)bytes / 0x1p30, (f64)m->memory / 0x1p30);
}

/* E804 if the ranks have made different plans: they would wait for messages that no rank sends. */
static err same_plan(const struct engine *e, const struct resources *r) {
    u64 hash;
    if (comm_size(r->comm) <= 1) return 0;
    TRY(plan_hash(e->plan, e->net, &hash));
    return comm_check_equal(r->comm, "plan of the step", hash,
                            "the same --parallel on every rank, as a product: --parallel data");
}

static err bind_training(struct engine *e, const struct resources *r) {
    TRY(same_plan(e, r));
    if (!r->plan_text || r->how) TRY(engine_choose_how(e->plan, e->net, r));
    TRY(too_little(e, step_bind(e->plan, e->net, r->kern, r->pool, &e->store, r->comm, r->policy, &e->exec)));
    exec_trace(step_exec(e->exec), r->trace);
    return 0;
}

static err bind_forward(struct engine *e, const struct resources *r) {
    if (!e->forward_plan) return 0;
    TRY(engine_choose_how(e->forward_plan, e->net, r));
    return step_bind(e->forward_plan, e->net, r->kern, r->pool, &e->store, e->joint ? r->comm : NULL, NULL, &e->forward);
}

/* ------------------------------------------------------------------ passes -------------------------------------------------- */

/* A device that has no memory for all rows of a step takes them in 2, 4, .. passes, up to one for each micro-batch. */

/* What the device of this rank has given so far, if it has memory of its own; false = it has not, or was not opened. */
static bool device_use(const struct machine *m, struct gpu_use *use) {
    const struct gpu_driver *driver = gpu_driver_find(m->device[0].kind);
    return driver && gpu_used(driver, m->device[0].card, use);
}

static bool device_refused(const struct machine *m) {
    const struct gpu_driver *driver = gpu_driver_find(m->device[0].kind);
    return driver && gpu_has_refused(driver, m->device[0].card);
}

/* Binds both steps.  *crowded: the device has no memory left for forecasts beside them, which take as much as `forward`. */
static err bind_all(struct engine *e, const struct resources *r, bool both, bool *crowded) {
    struct gpu_use before, after;
    *crowded = false;
    TRY(bind_training(e, r));
    if (!both) return 0;
    const bool known = device_use(r->machine, &before);
    TRY(bind_forward(e, r));
    if (known && device_use(r->machine, &after))
        *crowded = after.capacity - after.heap < after.heap - before.heap;
    return 0;
}

enum { BOUND, REFUSED, FAILED };

static i32 fate_of(const struct resources *r, err got, bool crowded) {
    if (got < 0) return got == -E601 && device_refused(r->machine) ? REFUSED : FAILED;
    return crowded ? REFUSED : BOUND;
}

/* The worst that became of a rank.  Keeps the error of this one. */
static err worst_of_ranks(const struct resources *r, err got, i32 mine, i32 *worst) {
    const struct err_record why = *err_last();
    i32 *all;
    *worst = mine;
    if (comm_size(r->comm) <= 1) return 0;
    NEW(all, comm_size(r->comm));
    const err e = comm_allgather_slow(r->comm, "memory of devices", &mine, sizeof mine, all);
    for (i32 k = 0; k < comm_size(r->comm) && e >= 0; k++) *worst = imax(*worst, all[k]);
    mem_free(all);
    if (e >= 0 && got < 0) err_put(&why);
    return e;
}

static err more_passes(struct engine *e, const struct resources *r, bool both) {
    struct plan *plan = NULL;
    step_free(e->exec);
    e->exec = NULL;
    e->passes = 2 * imax(1, e->passes);
    TRY(plan_training(e, r, e->store.optim, &plan));
    const bool same = plan_same_updates(plan, e->plan);
    plan_free(e->plan);
    e->plan = plan;
    if (!same) return FAIL(E1, "a plan of %d passes would update other weights on some ranks", e->passes);
    if (!both) return 0;
    step_free(e->forward);
    plan_free(e->forward_plan);
    e->forward = NULL;
    e->forward_plan = NULL;
    return plan_forward(e, r, e->store.optim);
}

static void tell_passes(const struct engine *e, const struct resources *r) {
    i32 most = 0;
    for (u32 i = 0; i < e->plan->ntask; i++) {
        const struct task *t = &e->plan->task[i];
        if (task_walks(t)) most = imax(most, t->box.b1 - t->box.b0);
    }
    if (netplan(e->plan)->passes > 1 && comm_rank(r->comm) == 0)
        event_note(r->events, EVENT_NOTE,
                   "a device has no memory for its samples of a step of %d: it takes them in %d passes of at most %d; the "
                   "weights have the same bits",
                   e->B, netplan(e->plan)->passes, most);
}

/* both: the forward plan too, else it is bound. */
static err bind_in_passes(struct engine *e, const struct resources *r, bool both) {
    for (;;) {
        bool crowded;
        i32 worst;
        const err got = bind_all(e, r, both, &crowded);
        if (!machine_is_apart(r->ranks ? r->ranks : r->machine)) return got;
        TRY(worst_of_ranks(r, got, fate_of(r, got, crowded), &worst));
        const bool fewer = e->passes > 1 && netplan(e->plan)->passes < e->passes; /* more are not possible */
        const bool last = worst != REFUSED || r->plan_text || fewer || imax(1, e->passes) >= e->plan->ngrain;
        if (last && got >= 0) tell_passes(e, r);
        if (last) return got;
        TRY(more_passes(e, r, both));
    }
}

/* ------------------------------------------------------------------ the whole ----------------------------------------------- */

/* Plans and binds; keeps a store that exists. */
static err prepare(struct engine *e, const struct resources *r, const struct optim *optim) {
    TRY(net_check(e->net));
    TRY(net_runs(e->net, r->kern));
    if (optim) TRY(plan_training(e, r, optim, &e->plan));
    TRY(plan_forward(e, r, optim));
    TRY(room(e, r));
    if (!e->store.theta) TRY(store_new(e->net, optim, &e->store));
    return optim ? bind_in_passes(e, r, true) : bind_forward(e, r);
}

err engine_new(const struct net *net, const struct resources *r, i32 B, i32 forward_B, const struct optim *optim,
               struct engine *out) {
    *out = (struct engine){.net = net, .B = B, .forward_B = forward_B};
    const err e = prepare(out, r, optim);
    if (e < 0) engine_free(out);
    return e;
}

static err share(const struct engine *of, const struct resources *r, struct engine *out) {
    out->store.derived = NULL;
    NEW(out->store.derived, out->store.nderived);
    return prepare(out, r, of->store.optim);
}

err engine_share(const struct engine *of, const struct resources *r, struct engine *out) {
    *out = (struct engine){.net = of->net, .B = of->B, .store = of->store, .shares = true};
    const err e = share(of, r, out);
    if (e < 0) engine_free(out);
    return e;
}

bool engine_keeps_to_itself(const struct engine *e) {
    i32 n, m;
    const struct plan_range *own = step_held(e->exec, &n), *used = e->joint ? step_held(e->forward, &m) : NULL;
    bool inside = used != NULL;
    for (i32 i = 0; inside && i < m; i++) {
        i32 k = 0;
        while (k < n && own[k].hi < used[i].hi) k++;
        inside = k < n && own[k].lo <= used[i].lo;
    }
    return inside;
}

void engine_release_others(struct engine *e, const struct comm *c) {
    i32 n;
    i64 at = 0;
    const struct plan_range *own = step_held(e->exec, &n);
    for (i32 i = 0; comm_rank(c) > 0 && i <= n; i++) {
        const i64 end = i < n ? own[i].lo : e->store.ntheta;
        if (end > at) mem_release(e->store.theta, sizeof(f32) * (size_t)at, sizeof(f32) * (size_t)end);
        if (i < n) at = own[i].hi;
    }
}

static void drop_plans(struct engine *e) {
    step_free(e->exec);
    step_free(e->forward);
    plan_free(e->plan);
    plan_free(e->forward_plan);
}

err engine_replan(struct engine *e, const struct net *net, const struct resources *r, i32 B) {
    if (net->ntheta != e->store.ntheta || net->nderived != e->store.nderived)
        return FAIL(E1, "another net: %lld parameters in place of %lld", (long long)net->ntheta, (long long)e->store.ntheta);
    drop_plans(e);
    *e = (struct engine){.net = net, .B = B, .store = e->store};
    return prepare(e, r, e->store.optim);
}

err engine_rebind(struct engine *e, const struct resources *r, struct plan *plan) {
    const err quiet = exec_quiet(step_exec(e->exec));
    if (quiet < 0) plan_free(plan);
    TRY(quiet);
    step_free(e->exec);
    plan_free(e->plan);
    e->exec = NULL;
    e->plan = plan;
    return bind_in_passes(e, r, false);
}

err engine_recut(struct engine *e, const struct resources *r) {
    struct plan_request q = engine_request(e->net, r, e->B, e->store.optim);
    struct plan *plan;
    q.passes = e->passes;
    TRY(plan_make(&q, &plan));
    if (r->heal) plan_update_everywhere(plan);
    if (plan_same_updates(plan, e->plan)) return engine_rebind(e, r, plan);
    plan_free(plan);
    return FAIL(E1, "the plan %s would update other weights on some ranks, and their state is not there", e->plan->strategy);
}

void engine_free(struct engine *e) {
    drop_plans(e);
    if (e->shares) mem_free(e->store.derived);
    else store_free(&e->store);
    *e = (struct engine){0};
}

i64 engine_planned_bytes(const struct engine *e) {
    const i64 both = e->exec && e->forward ? step_store_bytes(e->forward) : 0; /* both steps share the store */
    return (e->exec ? step_bytes(e->exec) : 0) + (e->forward ? step_bytes(e->forward) : 0) - both;
}
