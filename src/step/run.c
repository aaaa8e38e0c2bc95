/* run.c - binds the memory of a plan to the network's buffers, and runs steps. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "comm/comm.h"
#include "gpu/gpu.h"
#include "model/layer.h"
#include "step/bound.h"
#include "step/planner.h"

/* ------------------------------------------------------------------ binding ------------------------------------------------- */

static err check(const struct plan *plan, const struct net *n, const struct store *s) {
    const struct netplan *p = netplan(plan);
    if (p->ntheta != n->ntheta || p->nderived != n->nderived)
        return FAIL(E1, "the plan is for a model of %lld parameters, this one has %lld", (long long)p->ntheta,
                    (long long)n->ntheta);
    if (s->ntheta != n->ntheta || s->nderived != n->nderived)
        return FAIL(E1, "the store holds %lld parameters, the model has %lld", (long long)s->ntheta, (long long)n->ntheta);
    if (p->train && (!s->optim || s->optim->nstate != p->nstate))
        return FAIL(E1, "the plan has %d optimiser states, the store %d", p->nstate, s->optim ? s->optim->nstate : -1);
    return 0;
}

/* Rows that this process holds: where they are time slices, those of its tasks only, so that a sequence that is too long for
 * one rank has room on several.  Windows stay whole: their rows are few, and inputs need not be copied. */
static void own_rows(struct step *s, struct comm *comm) {
    const struct plan *p = s->plan;
    struct run *r = &s->run;
    i32 b0 = 0, b1 = p->B;
    if (comm_size(comm) > 1 && plan_holds_own_rows(p)) plan_rank_rows(p, comm_rank(comm), &b0, &b1);
    r->row0 = b0;
    r->B = b1 - b0;
    r->whole = p->B;
}

static i64 room(void *step, const struct pbuf *b, i32 places) {
    const struct step *s = step;
    const struct rows B = {places < 0 ? s->run.B : places, s->run.whole};
    switch (b->kind) {
        case PBUF_ACT:
        case PBUF_DACT:
        case PBUF_INPUT:
            return buf_floats(&s->net->buf[b->index], B.n) * 4;
        case PBUF_SAVED:
            return op_saved_floats(&s->net->op[b->index], s->net, B) * 4;
        case PBUF_SCRATCH:
            return op_scratch_floats(&s->net->op[b->index], s->net, B) * 4;
        default:
            return b->bytes;
    }
}

/* Allocates the rank's own rows of every input, except the one that links slices. */
static err own_inputs(struct step *s) {
    bool whole[NET_BUFS] = {0};
    if (s->run.B == s->run.whole) return 0;
    ARENA_NEW(&s->arena, s->input, s->net->nbuf);
    for (i32 l = 0; l < s->net->nop; l++)
        if (op_is_chain(&s->net->op[l])) whole[s->net->op[l].spec.in[s->net->op[l].layer->after]] = true;
    for (i32 i = 0; i < s->net->nbuf; i++)
        if (s->net->buf[i].input && !whole[i]) ARENA_NEW(&s->arena, s->input[i], buf_floats(&s->net->buf[i], s->run.B));
    return 0;
}

static void *buffer(void *const *mem, u32 at) { return at == PBUF_NONE ? NULL : mem[at]; }

static void *const *buffers(void *const *mem, u32 first) { return first == PBUF_NONE ? NULL : mem + first; }

/* Addresses of gradients, marks and losses. Their two copies alternate if the policy defers the sums. */
static void aim(const struct step *s, struct run *r, void *const *mem) {
    r->grad = buffers(mem, s->at->grad0);
    r->touched = buffers(mem, s->at->marks0);
    r->loss = buffer(mem, s->at->loss);
}

static void follow(struct step *s, void *const *mem) { aim(s, &s->run, mem); }

static err arrays_of(struct step *s, struct run *r) {
    const struct net *n = s->net;
    ARENA_NEW(&s->arena, r->buf, n->nbuf);
    ARENA_NEW(&s->arena, r->dbuf, n->nbuf);
    ARENA_NEW(&s->arena, r->saved, n->nop);
    ARENA_NEW(&s->arena, r->scratch, n->nop);
    ARENA_NEW(&s->arena, r->units, n->nop);
    ARENA_NEW(&s->arena, r->dunits, n->nop);
    return 0;
}

static err arrays(struct step *s) {
    TRY(arrays_of(s, &s->run));
    TRY(arrays_of(s, &s->device));
    s->buf = s->run.buf;
    ARENA_NEW(&s->arena, s->skip, s->net->nop);
    return 0;
}

/* Points a run to the buffers of a plan, on the host or on a device. */
static void point(const struct step *s, struct run *r, const struct kern *k, void *const *mem) {
    for (i32 i = 0; i < s->net->nbuf; i++) {
        r->buf[i] = buffer(mem, s->at->act[i]);
        r->dbuf[i] = buffer(mem, s->at->dact[i]);
    }
    for (i32 l = 0; l < s->net->nop; l++) {
        r->saved[l] = buffer(mem, s->at->saved[l]);
        r->scratch[l] = buffer(mem, s->at->scratch[l]);
        r->units[l] = buffer(mem, s->at->units[l]);
        r->dunits[l] = buffer(mem, s->at->dunits[l]);
    }
    r->net = s->net;
    r->kern = k;
    r->grain = s->plan->grain;
    r->ngrain = s->plan->ngrain;
    r->train = netplan(s->plan)->train;
    aim(s, r, mem);
}

static err bound(void *step, struct exec *x, void *const *mem) {
    struct step *s = step;
    point(s, &s->run, s->kern, mem);
    s->run.theta = s->store->theta;
    s->run.derived = s->store->derived;
    return net_sliced(s->net) ? slices_bind(s->plan, &s->run, x, &s->arena, &s->slices) : 0;
}

static void heap(void *step, void *const *mem, i32 places) {
    struct step *s = step;
    point(s, &s->device, gpu_kern(), mem);
    s->device.B = places;
    s->device.whole = s->run.whole;
    s->device.theta = buffer(mem, s->at->theta);
    s->device.derived = buffer(mem, s->at->derived);
    if (!s->device.derived) s->device.derived = s->device.theta; /* no op has copies there: an address, never read */
}

/* ------------------------------------------------------------------ callbacks of exec --------------------------------------- */

/* True for sums across ranks, the norm and the update; a sum within this rank needs no network. */
static bool deferred(void *step, const struct task *t) {
    const struct step *s = step;
    if (t->kind == TASK_NORM || t->kind == TASK_UPDATE) return true;
    if (t->kind != TASK_MERGE || !s->comm) return false;
    const i32 end = imin(2 * t->node_b - t->node_a, s->plan->ngrain);
    for (i32 g = t->node_a; g < end; g++)
        if (s->rank_of[g] != comm_rank(s->comm)) return true;
    return false;
}

/* Precomputes what deferred() needs: exec calls it many times per task while it binds. */
static err find_ranks(struct step *s) {
    const struct plan *p = s->plan;
    if (!s->defers) return 0;
    ARENA_NEW(&s->arena, s->rank_of, p->ngrain);
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if (t->kind != TASK_ZERO) continue;
        for (i32 g = t->box.b0 / p->grain; g < ceil_div(t->box.b1, p->grain); g++) s->rank_of[g] = p->place[t->device].rank;
    }
    return 0;
}

static void defer(void *step) {
    struct step *s = step;
    follow(s, exec_mem(s->exec));
    s->summed = s->now;
}

static f64 waited(void *step, const struct task *t) {
    const struct step *s = step;
    return s->slices ? slices_waited(s->slices, t) : 0;
}

/* Tasks of ops that touch memory through kernels alone, and sums and updates of vectors; neither the recurrence of time slices
 * nor ops whose units members share. */
static bool on_device(void *step, const struct task *t) {
    const struct step *s = step;
    const struct op *op = &s->net->op[t->op];
    const bool vector = t->kind == TASK_ZERO || t->kind == TASK_MERGE || t->kind == TASK_NORM || t->kind == TASK_UPDATE;
    return vector || (op->layer->on_device && op->layer->on_device(op, s->net) && s->at->units[t->op] == PBUF_NONE);
}

/* Dropout draws by seed and step; what updates take is not part of a graph. */
static u64 constants(void *step) {
    const struct step *s = step;
    u64 h = hash_bytes(HASH_SEED, &s->run.loss_scale, sizeof s->run.loss_scale);
    h = hash_bytes(h, &s->pending, sizeof s->pending);
    for (i32 l = 0; l < s->net->nop; l++) {
        if (s->run.train && s->net->op[l].layer->draws && s->net->op[l].spec.dropout > 0) return 0;
        h = hash_bytes(h, &s->skip[l], sizeof s->skip[l]);
    }
    return h ? h : 1;
}

static void task_name(void *step, u32 task, char out[64]) {
    const struct step *s = step;
    plan_task_name(s->plan, s->net, task, out);
}

static void buffer_name(void *step, u32 buf, char out[24]) {
    const struct step *s = step;
    plan_buffer_name(s->plan, s->net, buf, out, 24);
}

/* ------------------------------------------------------------------ the whole ----------------------------------------------- */

static bool is_member(const struct step *s, const struct task *t) {
    const bool ours = !s->comm || s->plan->place[t->device].rank == comm_rank(s->comm);
    return ours && t->members > 1 && !t->split && !op_is_chain(&s->net->op[t->op]);
}

/* Allocates a line of flags for each task of a team on this rank: several teams may work on the same op. */
static err bind_flags(struct step *s) {
    const struct plan *p = s->plan;
    u32 n = 0;
    for (u32 i = 0; i < p->ntask; i++) n += is_member(s, &p->task[i]);
    if (n == 0) return 0;
    ARENA_NEW(&s->arena, s->flag_line, p->ntask);
    ARENA_NEW(&s->arena, s->flags, (i64)(n + 1) * TEAM_LINE);
    s->flags += -(uintptr_t)s->flags & (TEAM_LINE - 1);
    n = 0;
    for (u32 i = 0; i < p->ntask; i++)
        if (is_member(s, &p->task[i])) s->flag_line[i] = n++;
    return 0;
}

static err bind(struct step *s, struct pool *pool, struct comm *comm, const struct policy *policy) {
    struct exec_job job = {.plan = s->plan, .pool = pool, .comm = comm, .policy = netplan(s->plan)->train ? policy : NULL};
    void **lent;
    s->comm = comm_size(comm) > 1 ? comm : NULL;
    s->defers = policy_delay(job.policy) > 0;
    own_rows(s, s->comm);
    TRY(arrays(s));
    TRY(find_ranks(s));
    TRY(own_inputs(s));
    TRY(bind_flags(s));
    ARENA_NEW(&s->arena, lent, s->plan->nbuf + 1);
    for (u32 i = 0; i < s->plan->nbuf; i++) {
        const struct pbuf *b = &s->plan->buf[i];
        if (b->kind == PBUF_THETA) lent[i] = s->store->theta;
        if (b->kind == PBUF_DERIVED) lent[i] = s->store->derived;
        if (b->kind == PBUF_STATE) lent[i] = s->store->state[b->index];
    }
    job.lent = lent;
    job.slices = netplan(s->plan)->slices;
    job.client = (struct client){.kernel = step_kernels,
                                 .nkernel = TASK_NKIND,
                                 .self = s,
                                 .room = room,
                                 .bound = bound,
                                 .result = step_result,
                                 .defer = defer,
                                 .deferred = deferred,
                                 .waited = waited,
                                 .on_device = on_device,
                                 .heap = heap,
                                 .constants = constants,
                                 .task_name = task_name,
                                 .buffer_name = buffer_name};
    TRY(exec_bind(&job, &s->exec));
    return exec_held(s->exec, s->at->theta, &s->arena, &s->held, &s->nheld);
}

err step_bind(const struct plan *p, const struct net *n, const struct kern *k, struct pool *pool, struct store *store,
              struct comm *comm, const struct policy *policy, struct step **out) {
    *out = NULL;
    TRY(check(p, n, store));
    struct step *s = mem_alloc(sizeof *s);
    if (!s) return -E601;
    s->plan = p;
    s->at = &netplan(p)->at;
    s->net = n;
    s->kern = k;
    s->store = store;
    const err e = bind(s, pool, comm, policy);
    if (e < 0) {
        step_free(s);
        return e;
    }
    *out = s;
    return 0;
}

void step_lend_weights(struct step *s, f32 *theta) {
    s->store->theta = theta;
    s->run.theta = theta;
    if (s->at->theta != PBUF_NONE) exec_lend(s->exec, s->at->theta, theta);
}

void step_free(struct step *s) {
    if (!s) return;
    exec_free(s->exec);
    arena_free(&s->arena);
    mem_free(s);
}

/* ------------------------------------------------------------------ running ------------------------------------------------- */

static bool is_bound(const struct net *n, const struct step_args *a, const struct op *op, i32 *missing) {
    for (i32 i = 0; i < op->layer->nin; i++) {
        i32 in = op->spec.in[i];
        if (in < 0 || !n->buf[in].input || a->input[in]) continue;
        *missing = in;
        return false;
    }
    return true;
}

/* Copies the rows of this rank out of an input of the whole batch. */
static f32 *own_input(struct step *s, i32 i, const f32 *whole) {
    const struct buf *b = &s->net->buf[i];
    const i64 row = b->ids ? 1 : buf_fp(b), n = s->run.B * row;
    for (i32 t = 0; t < b->T; t++)
        memcpy(s->input[i] + t * n, whole + ((i64)t * s->run.whole + s->run.row0) * row, (size_t)n * sizeof *whole);
    return s->input[i];
}

static err bind_inputs(struct step *s, const struct step_args *a) {
    const struct net *n = s->net;
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        i32 missing = -1;
        s->skip[l] = !is_bound(n, a, op, &missing);
        if (s->skip[l] && (op->out >= 0 || netplan(s->plan)->train))
            return FAIL(E1, "input \"%s\" of op \"%s\" is not bound", n->buf[missing].name, op->spec.name);
    }
    for (i32 i = 0; i < n->nbuf; i++) {
        if (!n->buf[i].input) continue;
        s->buf[i] = s->input && s->input[i] && a->input[i] ? own_input(s, i, a->input[i]) : a->input[i];
        exec_lend(s->exec, s->at->act[i], s->buf[i]);
    }
    return 0;
}

err step_run(struct step *s, const struct step_args *a, struct exec_result *out) {
    TRY(bind_inputs(s, a));
    struct run *r = &s->run;
    r->loss_scale = a->loss_scale;
    r->seed = a->seed;
    r->step = a->step;
    r->serial = exec_serial(s->exec) + 1;
    r->warm = a->warm;
    s->device.loss_scale = r->loss_scale;
    s->device.seed = r->seed;
    s->device.step = r->step;
    s->device.serial = r->serial;
    s->now = (struct summed){a->loss_scale, a->hyper, a->clip, a->accumulate, a->hold};
    if (!s->defers) s->summed = s->now;
    TRY(exec_step(s->exec, a->step, a->accumulate, out));
    if (a->hold) exec_host_wrote(s->exec);
    s->pending = !s->defers && a->accumulate && out->finite;
    return 0;
}

err step_settle(struct step *s, struct exec_result *out) { return exec_settle(s->exec, out); }
err step_quiet(struct step *s) { return exec_quiet(s->exec); }

err step_look_ahead(struct step *s, struct step_ahead *out) {
    struct exec_result r;
    bool due;
    *out = (struct step_ahead){0};
    TRY(exec_look_ahead(s->exec, &due, &r));
    if (due) *out = (struct step_ahead){exec_twin(s->exec, s->at->theta), r.loss, r.norm};
    return 0;
}

void step_set_ahead(struct step *s, const struct step_ahead *a) {
    const struct exec_result r = {.loss = a->loss, .norm = a->norm, .finite = isfinite(a->loss) && isfinite(a->norm)};
    f32 *twin = exec_twin(s->exec, s->at->theta);
    if (!twin) return;
    exec_set_ahead(s->exec, a->theta != NULL, &r);
    if (a->theta) memmove(twin, a->theta, sizeof(f32) * (size_t)s->store->ntheta);
}

/* ------------------------------------------------------------------ questions ----------------------------------------------- */

i64 step_held_floats(const struct step *s) {
    i64 held = 0;
    for (i32 i = 0; i < s->nheld; i++) held += s->held[i].hi - s->held[i].lo;
    return held;
}

/* Floats of the copies of weights that this rank makes. */
static i64 derived_floats(const struct step *s) {
    i64 made = 0;
    if (!s->comm) return s->store->nderived;
    for (u32 i = 0; i < s->plan->ntask; i++) {
        const struct task *t = &s->plan->task[i];
        if (t->kind == TASK_PREP && exec_is_ours(s->exec, t)) made += s->net->op[t->op].nderived;
    }
    return made;
}

i64 step_store_bytes(const struct step *s) {
    const struct store *t = s->store;
    const i64 states = netplan(s->plan)->train ? (t->state[0] ? 1 : 0) + (t->state[1] ? 1 : 0) : 0;
    return 4 * (t->ntheta + states * step_held_floats(s) + derived_floats(s));
}

i64 step_bytes(const struct step *s) {
    return exec_bytes(s->exec) + s->arena.used + (i64)sizeof *s + step_store_bytes(s);
}

struct exec *step_exec(const struct step *s) {
    return s->exec;
}
const f32 *step_buf(const struct step *s, i32 buf) {
    /* A failure is kept: step_failed and the next step report it. */
    if (s->at->act[buf] != PBUF_NONE && exec_look(s->exec, s->at->act[buf]) < 0) err_clear();
    return s->buf[buf];
}
const f32 *step_grad(const struct step *s) {
    if (s->at->grad0 != PBUF_NONE && exec_look(s->exec, s->at->grad0) < 0) err_clear();
    return buffer(exec_mem_summed(s->exec), s->at->grad0);
}
err step_failed(const struct step *s) { return exec_failed(s->exec); }
const struct plan_range *step_held(const struct step *s, i32 *n) {
    *n = s->nheld;
    return s->held;
}
const u8 *step_marks(const struct step *s) { return buffer(exec_mem_summed(s->exec), s->at->marks0); }
