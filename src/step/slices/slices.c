/* slices.c - one chain solver per op and direction (forward, backward).  The tasks of the op on this rank share it; the solvers
 * of several ranks exchange the states at their borders (peers.h). */
#include "comm/comm.h"
#include "model/layer.h"
#include "step/bound.h"

struct step_slices {
    const struct plan *plan;
    const struct run *run;
    struct exec *exec;
    bool apart;                              /* if alone, run the rows of each member separately */
    struct chain_solver *solver[NET_OPS][2]; /* forward and backward; NULL = the op is no chain */
};

static struct chain chain_of(const struct step_slices *s, i32 op, bool backward) {
    const struct op *o = &s->run->net->op[op];
    struct chain c;
    o->layer->chain(o, s->run, backward, &c);
    return c;
}

/* The slices of each rank, from the tasks of the chain, whose rows follow each other (plan_check). */
static err bind_peers(struct step_slices *s, struct arena *a, i32 op, bool backward) {
    const struct plan *p = s->plan;
    const i32 here = comm_rank(exec_comm(s->exec));
    i32 n = 0, me = 0, rank[MACHINE_DEVICES], first[MACHINE_DEVICES + 1];
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if (t->op != op || t->kind != (backward ? TASK_BWD : TASK_FWD)) continue;
        const i32 at = p->place[t->device].rank;
        if (n == 0 || rank[n - 1] != at) first[n] = t->box.b0, rank[n++] = at;
        first[n] = t->box.b1;
    }
    for (i32 i = 0; i < n; i++)
        if (rank[i] == here) me = i;
    const struct chain c = chain_of(s, op, backward);
    struct chain_solver *v = s->solver[op][backward];
    TRY(chain_peers_new(a, &c, n, rank, first, me, &v->peers));
    v->peers->pass = exec_round;
    v->peers->self = s->exec;
    return 0;
}

err slices_bind(const struct plan *p, const struct run *r, struct exec *x, struct arena *a, struct step_slices **out) {
    struct step_slices *s;
    ARENA_NEW(a, s, 1);
    s->plan = p;
    s->run = r;
    s->exec = x;
    for (i32 l = 0; l < r->net->nop; l++)
        for (i32 way = 0; way < (netplan(p)->train ? 2 : 1) && op_is_chain(&r->net->op[l]); way++) {
            TRY(chain_solver_new(a, p->B, imax(1, p->ndevice), &s->solver[l][way]));
            if (exec_comm(x)) TRY(bind_peers(s, a, l, way == 1));
        }
    *out = s;
    return 0;
}

/* If rounds are limited, the forward pass tells little about backward: stored initial states are forgotten sooner than
 * guessed ones. */
void slices_solve(struct step_slices *s, const struct task *t, bool alone) {
    const bool backward = t->kind == TASK_BWD;
    struct chain c = chain_of(s, t->op, backward);
    const struct chain_course *how = &netplan(s->plan)->course;
    if (backward) c.forgets = how->slice_rounds ? -(how->slice_rounds > 1 && !how->exact_back) : s->solver[t->op][0]->forgets;
    struct chain_solver *v = s->solver[t->op][backward];
    i32 n;
    const struct task *first = exec_team(s->exec, t, &n);
    const bool all = alone || n == 1;
    if (s->apart && all) {
        v->apart = first;
        v->napart = n;
    }
    if (v->peers && t == first) peers_begin(v->peers, exec_serial(s->exec));
    if (all)
        chain_solve(v, &c, how, 0, 1, first->box.b0, first[n - 1].box.b1);
    else
        chain_solve(v, &c, how, (i32)(t - first), n, t->box.b0, t->box.b1);
}

f64 slices_waited(const struct step_slices *s, const struct task *t) {
    i32 n;
    if (t->kind != TASK_FWD && t->kind != TASK_BWD) return 0;
    const struct chain_solver *v = s->solver[t->op][t->kind == TASK_BWD];
    if (!v) return 0;
    const i32 me = (i32)(t - exec_team(s->exec, t, &n));
    return exec_alone(s->exec) && me > 0 ? 0 : chain_waited(v, me);
}

void step_apart(struct step *s, bool on) {
    if (!s->slices) return;
    s->slices->apart = on;
    for (i32 l = 0; l < NET_OPS && !on; l++)
        for (i32 way = 0; way < 2; way++)
            if (s->slices->solver[l][way]) s->slices->solver[l][way]->apart = NULL;
}

static struct chain_solver *solver_of(const struct step *s, i32 op, bool backward) {
    return s->slices ? s->slices->solver[op][backward] : NULL;
}

const struct chain_trace *step_chain(const struct step *s, i32 op, bool backward) {
    const struct chain_solver *v = solver_of(s, op, backward);
    return v ? &v->trace : NULL;
}

i32 step_chain_state(const struct step *s, i32 op) { return solver_of(s, op, false) ? chain_of(s->slices, op, false).state : 0; }

void step_chain_save(const struct step *s, i32 op, i32 row, f32 *to) {
    const struct chain c = chain_of(s->slices, op, false);
    const struct chain_peers *peers = solver_of(s, op, false)->peers;
    if (peers)
        peers_save(peers, &c, row, to);
    else
        c.save(&c, row, to);
}

void step_chain_load(struct step *s, i32 op, i32 row, const f32 *from) {
    const struct chain c = chain_of(s->slices, op, false);
    struct chain_peers *peers = solver_of(s, op, false)->peers;
    if (peers)
        peers_load(peers, &c, row, from);
    else
        c.load(&c, row, from);
}
