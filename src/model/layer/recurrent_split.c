/* recurrent_split.c - a recurrent layer whose hidden units members in different processes share (layer_split in layer.h).
 *
 *     member 0   h[t] panels 0..2  --units[t]-->  gather: h[t], all panels  | h[t+1] panels 0..2 ..
 *     member 1   h[t] panels 2..4  --units[t]-->  gather: h[t], all panels  | h[t+1] panels 2..4 ..
 *
 * Backward the same with dz, from the last step to the first; dx and dW are products over all steps after that.  Every process
 * has all weights and the same sums in the same order, so the bits are those of one process. */
#include "model/layer/recurrent.h"

#include <string.h>

#include "kern/team.h"
#include "model/cell/cell.h"

static const struct cell *cell_in(const struct op *op) { return cell_of(op->spec.cell); }

static const struct cell_kern *kernels(const struct op *op, const struct run *r) {
    return cell_kernels(cell_in(op), r->kern, PREC_F32);
}

/* A gradient of the initial state would have to be gathered as well: such a layer is computed by one process. So no initial state
 * is the end of another split layer, which a rank gathers only where it uses it (plan/exchange.c). */
static bool can(const struct op *op, const struct net *n) {
    const i32 start = op->spec.in[1];
    return op->spec.precision == PREC_F32 && op->spec.cell < CELL_NKIND && op->spec.share < 0 && !recurrent_sliced(op) &&
           (start < 0 || !buf_sends(&n->buf[start])) && op->F > LANES;
}

static i32 entries(const struct op *op) { return op->T + cell_in(op)->states - 1; }

static i32 floats(const struct op *op) { return cell_slots(cell_in(op)) * LANES; }

static i32 panels(const struct op *op) { return ceil_div(op->F, LANES); }

/* Row b of a panel in an exchange buffer with n floats a row. */
static f32 *unit_row(const struct op *op, const struct run *r, f32 *base, i32 entry, i32 p, i32 b, i32 n) {
    return base + (((i64)entry * panels(op) + p) * r->B + b) * n;
}

static struct cell_args args_of(const struct op *op, const struct run *r, struct part p, struct cell_team *team) {
    struct cell_args x = recurrence_plain.args(op, r, p);
    *team = (struct cell_team){.me = p.me, .n = p.n};
    x.team = p.n > 1 ? team : NULL;
    return x;
}

/* Copies panels p0..p1 of rows of a state [B][Hp] to an entry of `units`, or back. */
static void copy_units(const struct op *op, const struct run *r, struct part q, f32 *state, i32 entry, i32 p0, i32 p1,
                       bool back) {
    const i32 Hp = panels(op) * LANES;
    for (i32 p = p0; p < p1; p++)
        for (i32 b = q.b0; b < q.b1; b++) {
            f32 *own = state + (i64)b * Hp + (i64)p * LANES, *sent = unit_row(op, r, r->units[op->l], entry, p, b, LANES);
            memcpy(back ? own : sent, back ? sent : own, LANES * sizeof *own);
        }
}

static f32 *step_of(const struct op *op, const struct run *r, i32 t) {
    return r->buf[op->out] + (i64)t * r->B * panels(op) * LANES;
}

static void fwd(const struct op *op, const struct run *r, struct part p) {
    struct cell_team team;
    struct cell_args x = args_of(op, r, p, &team);
    i32 p0, p1;
    team_part(x.team, panels(op), &p0, &p1);
    if (p.t1 < op->T) x.hT = x.cT = NULL; /* the end state is of the last step */
    kernels(op, r)->fwd(&x, p.b0, p.b1, p.t0, p.t1);
    copy_units(op, r, p, step_of(op, r, p.t0), p.t0, p0, p1, false);
    if (p.t1 == op->T && x.cT) copy_units(op, r, p, x.cT, op->T, p0, p1, false);
}

/* The state after each row's last step, which may be before the last step of all. */
static void gather_end(const struct op *op, const struct run *r, struct part p, const struct cell_args *x) {
    const i32 Hp = panels(op) * LANES;
    for (i32 b = p.b0; b < p.b1; b++) {
        const i32 t = cell_end(x, b, 0, op->T);
        const f32 *h = t > 0 ? step_of(op, r, t - 1) : x->h0;
        copy_or_zero(x->hT + (i64)b * Hp, h ? h + (i64)b * Hp : NULL, Hp);
    }
    if (x->cT) copy_units(op, r, p, x->cT, op->T, 0, panels(op), true);
}

static void gather(const struct op *op, const struct run *r, struct part p) {
    struct cell_team team;
    for (i32 t = p.t0; t < p.t1; t++) copy_units(op, r, p, step_of(op, r, t), t, 0, panels(op), true);
    if (p.t1 < op->T) return;
    const struct cell_args x = args_of(op, r, p, &team);
    if (x.hT) gather_end(op, r, p, &x);
}

/* Copies panels p0..p1 of dz of a step to its place in `dunits`, or back; rows without the step have none. */
static void copy_dz(const struct op *op, const struct run *r, struct part q, const struct cell_args *x, i32 p0, i32 p1,
                    bool back) {
    const i32 n = floats(op);
    for (i32 p = p0; p < p1; p++)
        for (i32 b = q.b0; b < imin(q.b1, cell_live(x, q.t0)); b++) {
            f32 *own = kernels(op, r)->dz(x, b, q.t0, p), *sent = unit_row(op, r, r->dunits[op->l], q.t0 & 1, p, b, n);
            memcpy(back ? own : sent, back ? sent : own, (size_t)n * sizeof *own);
        }
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    struct cell_team team;
    struct cell_args x = args_of(op, r, p, &team);
    i32 p0, p1;
    team_part(x.team, panels(op), &p0, &p1);
    x.dx = x.dh0 = x.dc0 = NULL;
    kernels(op, r)->bwd(&x, p.b0, p.b1, p.t0, p.t1);
    copy_dz(op, r, p, &x, p0, p1, false);
}

static void dgather(const struct op *op, const struct run *r, struct part p) {
    struct cell_team team;
    const struct cell_args x = args_of(op, r, p, &team);
    copy_dz(op, r, p, &x, 0, panels(op), true);
}

static void dx(const struct op *op, const struct run *r, struct part p) {
    struct cell_team team;
    const struct cell_args x = args_of(op, r, p, &team);
    p.me = 0;
    kernels(op, r)->dx(&x, p.b0, p.b1, p.t0, p.t1);
    recurrent_pad_dx(r, &x, p);
}

const struct layer_split recurrent_split = {.can = can,
                                            .entries = entries,
                                            .floats = floats,
                                            .fwd = fwd,
                                            .gather = gather,
                                            .bwd = bwd,
                                            .dgather = dgather,
                                            .dx = dx};
