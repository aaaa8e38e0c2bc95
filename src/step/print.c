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
 * Where rows are slices of time, those who run a chain together have " chain k/n", each after rows of its own, and the head says
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
 * Modes: r read, w write, rw, sum (adds to).  A gradient buffer is d.NAME, what an op keeps saved.OP. */
#include <stdio.h>

#include "model/layer.h"
#include "step/planner.h"
#include "step/text.h"

static const char *const kind_names[TASK_NKIND] = {"fwd", "bwd", "merge", "norm", "update", "prep", "zero", "dw"};
static const char *const mode_names[] = {"r", "w", "rw", "sum"};

const char *const text_hows[TEXT_HOWS] = {"", "fold", "ahead", "newton", "scan"}; /* enum cell_how */

const char *plan_walked(const struct plan *p) {
    for (u32 i = 0; i < p->ntask; i++)
        if (p->task[i].how) return text_hows[p->task[i].how];
    return "-";
}

const char *text_member(const struct op *op) { return op_is_chain(op) ? "chain" : "unit"; }

const char *task_kind_name(enum task_kind kind) { return kind_names[kind]; }

void plan_buffer_name(const struct plan *p, const struct net *n, u32 buf, char *out, size_t size) {
    const struct pbuf *b = &p->buf[buf];
    switch (b->kind) {
        case PBUF_ACT:
        case PBUF_INPUT:
            snprintf(out, size, "%s", n->buf[b->index].name);
            break;
        case PBUF_DACT:
            snprintf(out, size, "d.%s", n->buf[b->index].name);
            break;
        case PBUF_SAVED:
            snprintf(out, size, "saved.%s", n->op[b->index].spec.name);
            break;
        case PBUF_SCRATCH:
            snprintf(out, size, "scratch.%s", n->op[b->index].spec.name);
            break;
        case PBUF_GRAD:
            snprintf(out, size, "grad.%d", b->index);
            break;
        case PBUF_STATE:
            snprintf(out, size, "state.%d", b->index);
            break;
        case PBUF_THETA:
            snprintf(out, size, "theta");
            break;
        case PBUF_DERIVED:
            snprintf(out, size, "derived");
            break;
        case PBUF_NORM:
            snprintf(out, size, "norm");
            break;
        default:
            snprintf(out, size, "loss");
            break;
    }
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

void plan_task_name(const struct plan *p, const struct net *n, u32 task, char out[64]) {
    const struct task *t = &p->task[task];
    const char *kind = kind_names[t->kind];
    switch (t->kind) {
        case TASK_FWD:
        case TASK_BWD:
            if (t->members > 1)
                snprintf(out, 64, "%s %s b[%d,%d) %s %d/%d", kind, n->op[t->op].spec.name, t->box.b0, t->box.b1,
                         text_member(&n->op[t->op]), t->member, t->members);
            else if (task_is_chunk(t, n))
                snprintf(out, 64, "%s %s b[%d,%d) t[%d,%d)", kind, n->op[t->op].spec.name, t->box.b0, t->box.b1, t->box.t0,
                         t->box.t1);
            else
                snprintf(out, 64, "%s %s b[%d,%d)", kind, n->op[t->op].spec.name, t->box.b0, t->box.b1);
            break;
        case TASK_DW:
            snprintf(out, 64, "%s %s b[%d,%d) part %d/%d", kind, n->op[t->op].spec.name, t->box.b0, t->box.b1, t->node_a,
                     t->node_b);
            break;
        case TASK_ZERO:
            snprintf(out, 64, "%s b[%d,%d)", kind, t->box.b0, t->box.b1);
            break;
        case TASK_PREP:
            snprintf(out, 64, "%s %s", kind, n->op[t->op].spec.name);
            break;
        case TASK_MERGE:
            snprintf(out, 64, "%s %d %d theta[%lld,%lld)", kind, t->node_a, t->node_b, (long long)t->lo, (long long)t->hi);
            break;
        default:
            snprintf(out, 64, "%s theta[%lld,%lld)", kind, (long long)t->lo, (long long)t->hi);
            break;
    }
}

void text_bytes(i64 bytes, struct str *out) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    f64 v = (f64)bytes;
    i32 k = 0;
    while (v >= 1024 && k < 4) v /= 1024, k++;
    str_addf(out, k ? "%.1f%s" : "%.0f%s", v, unit[k]);
}

void plan_print(const struct plan *p, const struct net *n, struct str *out) {
    char name[64];
    str_addf(out, "(plan %s %s B %d grain %d grains %d devices %d exact %s", p->strategy, netplan(p)->train ? "train" : "forward",
             p->B, p->grain, p->ngrain, p->ndevice, p->exact ? "yes" : "no");
    if (netplan(p)->slices > 0) str_addf(out, " slices %d tol %.9g", netplan(p)->slices, (f64)netplan(p)->course.tol);
    if (netplan(p)->slices > 0 && netplan(p)->course.fine > 0) str_addf(out, " fine %.9g", (f64)netplan(p)->course.fine);
    if (netplan(p)->slices > 0)
        str_addf(out, " rounds %d rank %d stale %d %d", netplan(p)->course.rounds, net_rank(n), netplan(p)->course.stale,
                 netplan(p)->course.stale_back);
    str_add(out, " peak ");
    text_bytes(p->peak_bytes, out);
    str_add(out, " exchange ");
    text_bytes(p->exchange_bytes, out);
    str_addf(out, " predicted %.3fms", p->predicted * 1e3);
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        plan_task_name(p, n, i, name);
        str_addf(out, "\n  (%s", name);
        const bool rows = t->kind == TASK_FWD || t->kind == TASK_BWD;
        if (rows && (t->members > 1 || !task_is_chunk(t, n))) /* else the name has the steps */
            str_addf(out, " t[%d,%d)", t->box.t0, t->box.t1);
        if (t->how) str_addf(out, " how %s", text_hows[t->how]);
        str_addf(out, " @%s", p->place[t->device].name);
        text_uses(p, n, i, out);
        str_add(out, ")");
    }
    for (i32 i = 0; i < netplan(p)->turns.n; i++) {
        const struct plan_turn *t = &netplan(p)->turns.at[i];
        str_addf(out, "\n  (turn %s member %d step %lld slices %d rank %d)", t->refit ? "refit" : "train", t->member,
                 (long long)t->step, t->slices, t->rank);
    }
    str_add(out, ")\n");
}
