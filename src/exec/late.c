/* late.c - delay1: the gradient of a step is summed over ranks, and the weights are moved by it, while the next step is computed.
 *
 *     lanes    | step 7: fwd bwd, own merges  | step 8: fwd bwd, own merges  | step 9 ..
 *     agent    | of 6: grads, update, theta   | of 7: grads, update, theta   |
 *     weights  | after the updates 0 .. 5     | after 0 .. 6                 |
 *
 * What needs other ranks (sums across them, norm, update) leaves the lanes for a list of its own, which the agent walks between
 * two looks at its messages.  Gradient vectors and losses are there twice, and change places after a step; the update writes the
 * weights to come beside those that the step is computed with.  A rank alone has the same list and walks it before the step, so
 * that the bits are the same for any number of ranks. */
#include <math.h>
#include <string.h>

#include "base/float_mode.h"
#include "base/mem.h"
#include "exec/bound.h"

struct late {
    i32 rank;        /* this one */
    i32 *rank_of;    /* [ngrain] */
    f32 *block;      /* all below */
    i64 bytes;
    struct grads other; /* the other set */
    f32 *theta;         /* weights to come */
    f64 *loss;
    u32 at;          /* items of the list that are done */
    bool due, made;  /* an update is due; it was made, and only the weights are not in place */
    struct totals totals; /* where made */
};

/* ------------------------------------------------------------------ binding ------------------------------------------------- */

static void find_ranks(const struct exec *x, i32 *rank_of) {
    const struct plan *p = x->plan;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if (t->kind != TASK_ZERO) continue;
        for (i32 g = t->box.b0 / p->grain; g < ceil_div(t->box.b1, p->grain); g++) rank_of[g] = p->place[t->device].rank;
    }
}

static err make_room(const struct exec *x, struct late *l) {
    const i64 P = netplan(x->plan)->ntheta, G = x->plan->ngrain;
    l->bytes = G * 8 + (G + 1) * P * 4;
    l->loss = mem_alloc((size_t)l->bytes);
    if (!l->loss) return -E601;
    l->block = (f32 *)(void *)l->loss;
    l->theta = (f32 *)(void *)(l->loss + G);
    l->other.grad = l->theta + P;
    return touched_new(x->plan, &l->other.touched);
}

/* Rounds want the agent while it is on the step before. */
err exec_pipe_fits(enum exec_pipe pipe, i32 slices, i32 ranks) {
    if (pipe != PIPE_DELAY1 || slices < 2 || ranks < 2) return 0;
    return FAIL_AT(E401, "--pipeline", "--pipeline overlap   or   --parallel data_sync",
                   "delay1 delays gradients by a step, but time slices on several ranks exchange states within a step");
}

err late_bind(struct exec *x) {
    struct late *l;
    if (x->pipe != PIPE_DELAY1) return 0;
    TRY(exec_pipe_fits(x->pipe, netplan(x->plan)->slices, x->comm ? comm_size(x->comm) : 1));
    ARENA_NEW(&x->arena, l, 1);
    ARENA_NEW(&x->arena, l->rank_of, x->plan->ngrain);
    l->rank = comm_rank(x->comm);
    find_ranks(x, l->rank_of);
    x->late = l;
    return make_room(x, l);
}

void late_free(struct exec *x) {
    if (!x->late) return;
    mem_free(x->late->block);
    mem_free(x->late->other.touched);
}

i64 late_bytes(const struct exec *x) {
    return x->late ? x->late->bytes + (x->late->other.touched ? touched_bytes(x->plan) : 0) : 0;
}

/* A sum whose parts are all of this rank is no matter of the network. */
bool late_has(const struct exec *x, const struct task *t) {
    const struct late *l = x->late;
    if (!l || (t->kind != TASK_MERGE && t->kind != TASK_NORM && t->kind != TASK_UPDATE)) return false;
    if (t->kind != TASK_MERGE) return true;
    for (i32 g = t->node_a; x->comm && g < imin(2 * t->node_b - t->node_a, x->plan->ngrain); g++)
        if (l->rank_of[g] != l->rank) return true;
    return false;
}

f32 *late_theta(const struct exec *x) { return x->late ? x->late->theta : NULL; }

/* ------------------------------------------------------------------ running ------------------------------------------------- */

static bool has_come(const struct exec *x, const struct item *it) {
    for (u32 k = 0; k < it->nlink; k++)
        if (atomic_load_explicit(&x->link[it->link[k]].arrived, memory_order_acquire) < x->sums.serial) return false;
    return true;
}

u32 late_some(struct exec *x, bool *moved) {
    struct late *l = x->late;
    if (!l) return 0;
    struct lane *list = &x->lane[x->nlane];
    const u64 mode = float_mode_fast();
    while (l->at < list->n && has_come(x, &list->item[l->at])) {
        const struct item *it = &list->item[l->at];
        const struct task *t = &x->plan->task[it->task];
        if (t->kind == TASK_MERGE) exec_merges(x, x->sums.of, it, it->run);
        else exec_task(x, t);
        l->at += it->run;
        atomic_store_explicit(&list->done, x->sums.serial << 32 | l->at, memory_order_release);
        wakeup_signal(&x->bell);
        *moved = true;
    }
    float_mode_back(mode);
    return list->n - l->at;
}

void late_begin(struct exec *x) {
    struct late *l = x->late;
    bool moved;
    if (!l->due || l->made) return;
    l->at = 0;
    exchange_aim(x);
    if (x->comm) exchange_begin(x);
    else late_some(x, &moved);
}

/* The update is made; what it found. */
static err made(struct exec *x) {
    struct late *l = x->late;
    if (!l->due || l->made) return 0;
    TRY(exchange_end(x));
    l->totals = exec_totals(x);
    l->made = true;
    return 0;
}

/* The weights to come are those of now. */
static struct exec_result arrive(struct exec *x) {
    struct late *l = x->late;
    if (!l->due) return (struct exec_result){.finite = true, .none = true};
    if (l->totals.finite) memcpy(x->store->theta, l->theta, sizeof(f32) * (size_t)netplan(x->plan)->ntheta);
    l->due = l->made = false;
    return exec_result_of(&l->totals);
}

static void change_places(struct exec *x) {
    struct late *l = x->late;
    const struct grads now = exec_grads(x);
    f64 *loss = x->run.loss;
    x->run.grad = l->other.grad;
    x->run.touched = l->other.touched;
    x->run.loss = l->loss;
    l->other = x->sums.of = now;
    l->loss = x->sums.loss = loss;
}

/* A step whose update failed takes the one after it along: both are void. */
err late_end(struct exec *x, struct exec_result *out) {
    TRY(made(x));
    *out = arrive(x);
    if (out->finite) {
        change_places(x);
        exec_sums(x, x->step);
        x->late->due = true;
    }
    x->step = NULL;
    return 0;
}

err exec_settle(struct exec *x, struct exec_result *out) {
    *out = (struct exec_result){.finite = true, .none = true};
    if (!x->late) return exec_quiet(x);
    late_begin(x);
    TRY(made(x));
    *out = arrive(x);
    return 0;
}

err exec_look_ahead(struct exec *x, struct exec_ahead *out) {
    struct late *l = x->late;
    *out = (struct exec_ahead){0};
    if (!l) return exec_quiet(x);
    if (!l->due) return 0;
    late_begin(x);
    TRY(made(x));
    *out = (struct exec_ahead){l->theta, l->totals.loss, l->totals.norm};
    return 0;
}

void exec_set_ahead(struct exec *x, const struct exec_ahead *a) {
    struct late *l = x->late;
    if (!l) return;
    l->due = l->made = a->theta != NULL;
    if (!a->theta) return;
    memmove(l->theta, a->theta, sizeof(f32) * (size_t)netplan(x->plan)->ntheta);
    l->totals = (struct totals){a->loss, a->norm, isfinite(a->loss) && isfinite(a->norm)};
}
