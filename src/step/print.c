/* print.c - a plan as text: one line per task; parse.c reads it back.
 *
 *     (plan data:2 train B 64 grain 8 grains 8 devices 2 exact yes peak 1.3MiB exchange 12.0KiB predicted 0.291ms
 *       (fwd lstm.0 b[0,32) t[0,128) @r0.cpu0 uses theta[0,9216):r x[0,32):r h0[0,32):w)
 *       (merge 0 4 theta[0,512) @r0.cpu0 uses grad.0[0,512):rw grad.4[0,512):r)
 *       ...)
 *
 * Member k of n of a team (it does its share of the units of the same box) has " unit k/n" after its rows:
 *
 *       (fwd lstm.0 b[0,1) unit 0/2 t[0,512) @r0.cpu0 uses ...)
 *       (fwd lstm.0 b[0,1) unit 1/2 t[0,512) @r0.cpu1 uses ...)
 *
 * Where rows are time slices, members of a chain have " chain k/n", each after rows of its own, and the head has
 * " slices 16 tol 1e-06 rounds 10 rank 0 stale 0 0" after exact (rounds 0: by the number of slices; stale 2 2: so many rounds
 * forward and backward, and no more), with " fine 3e-07" behind tol where forward has a tolerance of its own.
 *
 * A chunk, some of the steps of all rows, has "t[64,128)" of its own, and so have the ranges that it uses:
 *
 *       (fwd lstm.1 b[0,8) t[64,128) @r0.cpu1 uses .. lstm.0[0,8)t[64,128):r ..)
 *
 * Slices of a training that became fewer or more are those of its begin, and each change stands after the tasks:
 *
 *       (turn train member 0 step 40 slices 8 rank 0)
 *
 * A forward task of a layer that can be walked in more than one way may end with " how fold" or " how ahead" before its place.
 *
 * Where the weight gradient of an op is made in parts, each of them is a task:
 *
 *       (dw lstm.0 b[0,32) part 0/4 @r0.cpu0 uses ...)
 *
 * Members of an op whose units ranks share have " split k/n", and the head " split" after exact; their forward and backward tasks
 * are of one step each:
 *
 *       (fwd lstm.0 b[0,32) split 0/2 t[3,4) @r0.cpu0 uses ...)
 *       (fwd lstm.0 b[0,32) split 1/2 t[3,4) @r1.cpu0 uses ...)
 *       (gather lstm.0 b[0,32) t[3,4) @r0.cpu0 uses ...)
 *
 * Modes: r read, w write, rw, sum (adds to).  A gradient buffer is d.NAME, what an op keeps saved.OP. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "model/layer.h"
#include "step/planner.h"

const struct task_form task_forms[TASK_NKIND] = {
    [TASK_PREP] = {"prep", .op = true},
    [TASK_FWD] = {"fwd", .op = true, .rows = true, .steps = true},
    [TASK_ZERO] = {"zero", .rows = true, .some = true},
    [TASK_BWD] = {"bwd", .op = true, .rows = true, .steps = true},
    [TASK_DW] = {"dw", .op = true, .rows = true, .part = true},
    [TASK_GATHER] = {"gather", .op = true, .rows = true, .steps = true},
    [TASK_DGATHER] = {"dgather", .op = true, .rows = true, .steps = true},
    [TASK_DX] = {"dx", .op = true, .rows = true, .steps = true},
    [TASK_MERGE] = {"merge", .pair = true, .range = true},
    [TASK_NORM] = {"norm", .range = true},
    [TASK_UPDATE] = {"update", .range = true},
};

static const char *const mode_names[] = {"r", "w", "rw", "sum"};

const char *const text_hows[TEXT_HOWS] = {"", "fold", "ahead", "newton", "scan"}; /* enum cell_how */

const char *plan_walked(const struct plan *p) {
    for (u32 i = 0; i < p->ntask; i++)
        if (p->task[i].how) return text_hows[p->task[i].how];
    return "-";
}

void plan_buffer_name(const struct plan *p, const struct net *n, u32 buf, char *out, size_t size) {
    static const char *const names[] = {[PBUF_DACT] = "d.",         [PBUF_SAVED] = "saved.",   [PBUF_GRAD] = "grad.",
                                        [PBUF_THETA] = "theta",     [PBUF_STATE] = "state.",   [PBUF_DERIVED] = "derived",
                                        [PBUF_NORM] = "norm",       [PBUF_SCRATCH] = "scratch.", [PBUF_LOSS] = "loss",
                                        [PBUF_MARKS] = "marks.",   [PBUF_UNITS] = "units.", [PBUF_DUNITS] = "dunits."};
    const struct pbuf *b = &p->buf[buf];
    const char *name = names[b->kind] ? names[b->kind] : "";
    if (b->kind == PBUF_ACT || b->kind == PBUF_INPUT || b->kind == PBUF_DACT)
        snprintf(out, size, "%s%s", name, n->buf[b->index].name);
    else if (b->kind == PBUF_SAVED || b->kind == PBUF_SCRATCH || b->kind == PBUF_UNITS || b->kind == PBUF_DUNITS)
        snprintf(out, size, "%s%s", name, n->op[b->index].spec.name);
    else if (b->kind == PBUF_GRAD || b->kind == PBUF_STATE || b->kind == PBUF_MARKS)
        snprintf(out, size, "%s%d", name, b->index);
    else
        snprintf(out, size, "%s", name);
}

void text_uses(const struct plan *p, const struct net *n, u32 task, struct str *out) {
    const struct task *t = &p->task[task];
    char name[48];
    str_add(out, " uses");
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        const struct use *u = &p->use[k];
        plan_buffer_name(p, n, u->buf, name, sizeof name);
        str_addf(out, " %s[%lld,%lld)", name, (long long)u->lo, (long long)u->hi);
        if (u->t1 > 0) str_addf(out, "t[%d,%d)", u->t0, u->t1);
        str_addf(out, ":%s", mode_names[u->mode]);
    }
}

static void append(char out[64], const char *fmt, ...) {
    const size_t used = strlen(out);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out + used, 64 - used, fmt, ap);
    va_end(ap);
}

/* True if a task's name says which steps it has. */
static bool name_has_steps(const struct task *t, const struct net *n) {
    return task_forms[t->kind].steps && (t->split || t->members == 1) && task_is_chunk(t, n);
}

void plan_task_name(const struct plan *p, const struct net *n, u32 task, char out[64]) {
    const struct task *t = &p->task[task];
    const struct task_form *f = &task_forms[t->kind];
    const struct op *op = &n->op[t->op];
    snprintf(out, 64, "%s", f->name);
    if (f->op) append(out, " %s", op->spec.name);
    if (f->pair) append(out, " %d %d", t->node_a, t->node_b);
    if (f->rows) append(out, " b[%d,%d)", t->box.b0, t->box.b1);
    if (t->split) append(out, " split %d/%d", t->member, t->members);
    else if (f->part) append(out, " part %d/%d", t->node_a, t->node_b);
    else if (f->steps && t->members > 1)
        append(out, " %s %d/%d", op_is_chain(op) ? "chain" : "unit", t->member, t->members);
    if (name_has_steps(t, n)) append(out, " t[%d,%d)", t->box.t0, t->box.t1);
    if (f->range || task_zeroes_part(p, t)) append(out, " theta[%lld,%lld)", (long long)t->lo, (long long)t->hi);
}

const char *byte_unit(i64 bytes, f64 *v) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    i32 k = 0;
    for (*v = (f64)bytes; *v >= 1024 && k < 4; k++) *v /= 1024;
    return unit[k];
}

void text_bytes(i64 bytes, struct str *out) {
    f64 v;
    const char *unit = byte_unit(bytes, &v);
    str_addf(out, "%.*f%s", bytes < 1024 ? 0 : 1, v, unit);
}

/* "fwd lstm.0 b[0,32) .. uses .."; hows: with the execution mode. */
static void task_line(const struct plan *p, const struct net *n, u32 task, bool hows, struct str *out) {
    const struct task *t = &p->task[task];
    char name[64];
    plan_task_name(p, n, task, name);
    str_add(out, name);
    if (task_forms[t->kind].steps && !name_has_steps(t, n))
        str_addf(out, " t[%d,%d)", t->box.t0, t->box.t1);
    if (hows && t->how) str_addf(out, " how %s", text_hows[t->how]);
    str_addf(out, " @%s", p->place[t->device].name);
    text_uses(p, n, task, out);
}

void plan_print(const struct plan *p, const struct net *n, struct str *out) {
    str_addf(out, "(plan %s %s B %d grain %d grains %d devices %d exact %s", p->strategy, netplan(p)->train ? "train" : "forward",
             p->B, p->grain, p->ngrain, p->ndevice, p->exact ? "yes" : "no");
    if (netplan(p)->slices > 0) {
        const struct chain_course *c = &netplan(p)->course;
        str_addf(out, " slices %d tol %.9g", netplan(p)->slices, (f64)c->slice_tol);
        if (c->fine > 0) str_addf(out, " fine %.9g", (f64)c->fine);
        str_addf(out, " rounds %d rank %d stale %d %d", c->rounds, net_rank(n), c->slice_rounds,
                 c->exact_back ? 0 : c->slice_rounds);
    }
    if (plan_is_split(p)) str_add(out, " split");
    str_add(out, " peak ");
    text_bytes(p->peak_bytes, out);
    str_add(out, " exchange ");
    text_bytes(p->exchange_bytes, out);
    str_addf(out, " predicted %.3fms", p->predicted * 1e3);
    for (u32 i = 0; i < p->ntask; i++) {
        str_add(out, "\n  (");
        task_line(p, n, i, true, out);
        str_add(out, ")");
    }
    for (i32 i = 0; i < netplan(p)->turns.n; i++) {
        const struct plan_turn *t = &netplan(p)->turns.at[i];
        str_addf(out, "\n  (turn %s member %d step %lld slices %d rank %d)", t->refit ? "refit" : "train", t->member,
                 (long long)t->step, t->slices, t->rank);
    }
    str_add(out, ")\n");
}

err plan_hash(const struct plan *p, const struct net *n, u64 *out) {
    struct str line = {0};
    err e = 0;
    *out = comm_hash(COMM_HASH, p->strategy, strlen(p->strategy));
    for (u32 i = 0; i < p->ntask && e >= 0; i++) {
        line.len = 0;
        task_line(p, n, i, false, &line);
        e = str_ok(&line);
        if (e >= 0) *out = comm_hash(*out, line.s, line.len);
    }
    str_free(&line);
    return e;
}

void plan_choices(const struct plan *p, struct str *out) {
    const struct netplan *of = netplan(p);
    if (of->tried < 2) return;
    str_addf(out, "auto compared %d plans by predicted time:", of->tried);
    for (i32 k = 0; k < of->nchoice; k++) {
        const struct plan_choice *c = &of->choice[k];
        f64 v;
        const char *unit = byte_unit(c->bytes, &v);
        str_addf(out, "%s %s %.3f ms (%.1f %s a device)", k ? "," : "", c->name, 1e3 * c->seconds, v, unit);
    }
    if (of->overfull) str_add(out, "; every plan needs more memory than a device has");
}
