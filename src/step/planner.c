/* planner.c - from a strategy's pieces to all tasks of a step; the buffers that exec will bind. */
#include "step/planner.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "dev/dev.h"
#include "model/layer.h"
#include "plan/slice.h"
#include "step/strategy/strategy.h"

#define TOL_F32 1e-6f
#define FINE_F32 3e-7f
#define TOL_BF16 2e-3f

enum {
    PART_BLOCKS = 4, /* least number of norm blocks in a device's part of theta */
    NORM_BLOCK = 1024,
    NORM_PARTS = 512,
    TASK_BYTES = 28,    /* memory that exec needs besides the buffers: of a task */
    FIXED_BYTES = 5632, /* .. of a plan */
    CHAIN_BYTES = 14    /* .. of a slice of a chain */
};

/* Sizes are i64 and rows of a buffer are counted in i32: what could wrap is refused here, before anything is multiplied.  Steps
 * and features are at most 2^20 each (net.c), so with rows x steps below 2^31 and a buffer below 2^42 floats nothing comes near
 * 2^63, the layers' own buffers (a few times as wide) and all sums included. */
static err fits(const struct net *n, i32 B) {
    static const char way_out[] = "a smaller --batch, --context or --hidden";
    if (B > 1 << 30) return FAIL_AT(E601, NULL, way_out, "a batch of %d rows: at most %d are possible", B, 1 << 30);
    for (i32 i = 0; i < n->nbuf; i++) {
        const struct buf *b = &n->buf[i];
        i64 rows = (i64)b->T * B;
        if (rows > INT32_MAX)
            return FAIL_AT(E601, NULL, way_out, "\"%s\" would have %d rows of %d steps: at most 2147483647 together are possible",
                           b->name, B, b->T);
        if (rows > ((i64)1 << 42) / buf_fp(b))
            return FAIL_AT(E601, NULL, way_out, "\"%s\" would hold %.0f TiB: %d rows of %d steps of %d features", b->name,
                           (f64)rows * buf_fp(b) * 4 / 0x1p40, B, b->T, b->F);
    }
    if (n->ntheta > (i64)1 << 42 || n->nderived > (i64)1 << 42)
        return FAIL_AT(E601, NULL, "a smaller --hidden", "the model would have %lld parameters", (long long)n->ntheta);
    return 0;
}

static bool rough(const struct net *n) {
    for (i32 l = 0; l < n->nop; l++)
        if (n->op[l].spec.precision == PREC_BF16) return true;
    return false;
}

err planner_init(struct planner *p, const struct plan_request *q) {
    memset(p, 0, sizeof *p);
    if (q->B < 1) return FAIL(E401, "a batch of %d rows cannot be planned", q->B);
    if (q->machine->ndevice < 1) return FAIL(E401, "the machine has no device");
    if (q->nstate < 0 || q->nstate > 2) return FAIL(E1, "%d optimiser states (0..2)", q->nstate);
    TRY(fits(q->net, q->B));
    p->q = q;
    p->net = q->net;
    p->machine = q->machine;
    p->sliced = net_sliced(q->net);
    if (p->sliced && q->slices < 2) return FAIL(E1, "the network has time slices, the plan request has none");
    p->grain = p->sliced ? slice_grain(q->B) : plan_grain(q->B, q->grains);
    p->ngrain = ceil_div(q->B, p->grain);
    return 0;
}

static struct pbuf rows_of(const struct buf *f, i32 index, i32 B) {
    struct pbuf rows = {.index = index, .home = HOME_WRITER, .repeat = f->T, .extent = B, .by_row = true};
    rows.bytes = buf_floats(f, B) * 4;
    return rows;
}

/* May the host read a buffer of the net between two steps?  A final state, and of a forward step what a loss reads, or no op. */
static bool is_read_after(const struct planner *p, i32 buf) {
    const struct net *n = p->net;
    bool read = false;
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        if (op->end == buf) return true;
        for (i32 i = 0; i < op->layer->nin; i++) {
            if (op->spec.in[i] == buf && op_is_loss(op)) return !p->q->train;
            read = read || op->spec.in[i] == buf;
        }
    }
    return !p->q->train && !read;
}

/* What members of a split op exchange: a panel of a step is a repeat of its own.  Each rank gathers the outputs for itself. */
static err split_buffers(struct planner *p, i32 l) {
    const struct op *op = &p->net->op[l];
    p->at->units[l] = p->at->dunits[l] = PBUF_NONE;
    if (!planner_splits(p, l)) return 0;
    p->plan->buf[p->at->act[op->out]].local = p->plan->buf[p->at->act[op->end]].local = true;
    const struct layer_split *s = op->layer->split;
    struct pbuf units = {.kind = PBUF_UNITS, .index = l, .home = HOME_WRITER, .extent = p->plan->B, .sent = true};
    units.repeat = s->entries(op) * op_panels(op);
    units.bytes = (i64)units.repeat * units.extent * LANES * 4;
    TRY(build_buffer(&p->build, units, &p->at->units[l]));
    units.kind = PBUF_DUNITS;
    units.repeat = 2 * op_panels(op);
    units.bytes = p->q->train ? (i64)units.repeat * units.extent * s->floats(op) * 4 : 0;
    return build_buffer(&p->build, units, &p->at->dunits[l]);
}

/* The buffers of the net, and the rank's own copies of its rows. */
static err net_buffers(struct planner *p) {
    const struct net *n = p->net;
    const i32 B = p->plan->B;
    struct builder *b = &p->build;
    for (i32 i = 0; i < n->nbuf; i++) {
        struct pbuf act = rows_of(&n->buf[i], i, B);
        act.kind = n->buf[i].input ? PBUF_INPUT : PBUF_ACT;
        act.lent = n->buf[i].input;
        act.read_after = !act.lent && is_read_after(p, i);
        TRY(build_buffer(b, act, &p->at->act[i]));
    }
    for (i32 i = 0; i < n->nbuf; i++) {
        struct pbuf dact = rows_of(&n->buf[i], i, B);
        dact.kind = PBUF_DACT;
        if (!p->q->train || !buf_sends(&n->buf[i])) dact.bytes = 0;
        TRY(build_buffer(b, dact, &p->at->dact[i]));
    }
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        struct pbuf own = {.kind = PBUF_SAVED, .index = l, .home = HOME_WRITER, .extent = B, .by_row = true};
        own.local = planner_splits(p, l);
        own.bytes = op_saved_floats(op, n, rows_all(B)) * 4;
        TRY(build_buffer(b, own, &p->at->saved[l]));
        own.kind = PBUF_SCRATCH;
        own.bytes = op_scratch_floats(op, n, rows_all(B)) * 4;
        TRY(build_buffer(b, own, &p->at->scratch[l]));
        TRY(split_buffers(p, l));
    }
    return 0;
}

/* Adds n buffers of one kind, numbered by index; *first: the first, PBUF_NONE if n is 0. */
static err add_buffers(struct planner *p, struct pbuf buf, i32 n, u32 *first) {
    *first = PBUF_NONE;
    for (i32 k = 0; k < n; k++) {
        u32 at;
        buf.index = k;
        TRY(build_buffer(&p->build, buf, &at));
        if (k == 0) *first = at;
    }
    return 0;
}

/* Weights, optimizer state, gradients, partial sums of norm and loss. */
static err weight_buffers(struct planner *p) {
    const struct netplan *of = netplan(p->plan);
    const i64 P = of->ntheta, blocks = (P + of->norm_block - 1) / of->norm_block;
    const struct pbuf vector = {.bytes = P * 4, .extent = P, .home = HOME_WRITER};
    struct pbuf theta = vector, derived = vector, state = vector, grad = vector;
    theta.kind = PBUF_THETA;
    theta.home = HOME_ALL;
    theta.twin = TWIN_COPY;
    theta.lent = derived.lent = state.lent = true;
    derived.kind = PBUF_DERIVED;
    derived.bytes = of->nderived * 4;
    derived.extent = of->nderived;
    TRY(build_buffer(&p->build, theta, &p->at->theta));
    TRY(build_buffer(&p->build, derived, &p->at->derived));
    state.kind = PBUF_STATE;
    state.home = 0;
    state.when = MESSAGE_GATHER;
    TRY(add_buffers(p, state, of->nstate, &p->at->state0));
    grad.kind = PBUF_GRAD;
    grad.sparse = grad.sent = grad.in_part = true;
    grad.twin = TWIN_SWAP;
    grad.marks = PLAN_NO_MARKS;
    TRY(add_buffers(p, grad, of->train ? p->ngrain : 0, &p->at->grad0));
    struct pbuf norm = {.kind = PBUF_NORM, .element = ELEMENT_F64, .home = HOME_ALL, .bytes = blocks * 8, .extent = blocks};
    norm.seen = true;
    struct pbuf loss = norm;
    loss.kind = PBUF_LOSS;
    loss.bytes = (i64)p->ngrain * 8;
    loss.extent = p->ngrain;
    loss.twin = TWIN_SWAP;
    TRY(add_buffers(p, norm, of->train ? 1 : 0, &p->at->norm));
    return build_buffer(&p->build, loss, &p->at->loss);
}

/* Two chains an op, each with a record of the steps of each slice in each round. */
static i64 chain_bytes(const struct plan *g, const struct net *n) {
    i64 sum = 0;
    for (i32 l = 0; l < n->nop; l++)
        if (op_is_chain(&n->op[l])) sum += (netplan(g)->train ? 2 : 1) * (i64)g->B * (CHAIN_BYTES + 4 * imin(g->B, CHAIN_ROUNDS));
    return sum;
}

void plan_rank_rows(const struct plan *p, i32 rank, i32 *b0, i32 *b1) {
    *b0 = p->B;
    *b1 = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if (!task_walks(t) || p->place[t->device].rank != rank) continue;
        *b0 = imin(*b0, t->box.b0);
        *b1 = imax(*b1, t->box.b1);
    }
    *b0 = imin(*b0, *b1);
}

static bool is_store(u8 kind) { return kind == PBUF_THETA || kind == PBUF_DERIVED || kind == PBUF_STATE; }

/* Bytes of the buffers that tasks of a rank use, but for inputs and the store.  used: [nbuf] */
static i64 held_by(const struct plan *g, i32 rank, const struct plan_range *used) {
    i32 b0 = 0, b1 = g->B;
    i64 held = 0;
    if (plan_holds_own_rows(g)) plan_rank_rows(g, rank, &b0, &b1);
    for (u32 i = 0; i < g->nbuf; i++) {
        const struct pbuf *b = &g->buf[i];
        const bool rows = b->kind == PBUF_ACT || b->kind == PBUF_DACT || b->kind == PBUF_SAVED || b->kind == PBUF_SCRATCH;
        const i64 bytes = rows ? b->bytes / g->B * (b1 - b0) : b->in_part ? (i64)pbuf_bytes(b, used[i].lo, used[i].hi) : b->bytes;
        if (used[i].hi == 0 || b->kind == PBUF_INPUT || is_store(b->kind)) continue;
        held += round_up64(bytes, 64);
        if (b->sparse && b->marks != PLAN_NO_MARKS) held += g->buf[b->marks].bytes;
    }
    return held;
}

/* What the rank that holds most holds. */
static err most_held(const struct plan *g, struct arena *a, i64 *most) {
    struct plan_range *used, *of_all; /* of_all: by tasks that every rank runs */
    struct plan_groups by;
    i32 busy = 0; /* ranks behind the last one with a device hold the same: one of them counts */
    TRY(plan_group(g, true, a, &by));
    ARENA_NEW(a, used, g->nbuf + 1);
    ARENA_NEW(a, of_all, g->nbuf + 1);
    for (u32 i = 0; i < g->ntask; i++)
        if (g->task[i].everywhere) plan_add_uses(g, &g->task[i], of_all);
    for (i32 d = 0; d < g->ndevice; d++) busy = imax(busy, g->place[d].rank + 1);
    for (i32 rank = 0; rank < imin(g->nrank, busy + 1); rank++) {
        memcpy(used, of_all, g->nbuf * sizeof *used);
        for (u32 i = by.first[rank]; i < by.first[rank + 1]; i++) plan_add_uses(g, &g->task[by.task[i]], used);
        *most = lmax(*most, held_by(g, rank, used));
    }
    return 0;
}

static err sizes(struct plan *g, const struct net *n) {
    i64 most = 0, rest = FIXED_BYTES + (i64)g->ntask * TASK_BYTES + chain_bytes(g, n);
    struct arena scratch = {0};
    for (u32 i = 0; i < g->ntask; i++) rest += g->task[i].members > 1 ? TEAM_LINE : 0;
    const err e = most_held(g, &scratch, &most);
    arena_free(&scratch);
    TRY(e);
    netplan(g)->store_bytes = 0;
    for (u32 i = 0; i < g->nbuf; i++)
        if (is_store(g->buf[i].kind)) netplan(g)->store_bytes += round_up64(g->buf[i].bytes, 64);
    g->peak_bytes = rest + most + netplan(g)->store_bytes;
    return 0;
}

/* In bf16 h is rounded at every step, to 8 bits: two runs of a slice come no closer to each other than that.  In fp32 states are
 * compared with a finer tolerance than adjoints: the gap that remains is relative to the states, but gradients follow from
 * forecast errors, which are far smaller near an optimum. */
static struct chain_course course_of(const struct planner *p) {
    struct chain_course c = p->q->course;
    if (c.slice_tol > 0) return c;
    c.slice_tol = rough(p->net) ? TOL_BF16 : TOL_F32;
    c.fine = rough(p->net) ? 0 : FINE_F32;
    return c;
}

/* True if every cut of the product allows the last weight gradient in parts, and there is a cut. */
static bool parts_fit(const struct product *p) {
    bool all = p->n > 0;
    for (i32 i = 0; i < p->n; i++) all = all && p->cut[i].s->parts;
    return all;
}

/* The op that backward reaches last. Its weight gradient is computed in parts, since no other work would hide the time to
 * send it. */
static void part(struct planner *p) {
    struct plan *g = p->plan;
    i32 l = 0;
    if (!parts_fit(&p->product) || p->machine->nrank < 2 || p->sliced || !netplan(g)->train) return;
    if (machine_is_apart(p->machine)) return; /* the bounds of updates must not follow from the number of passes */
    while (l < p->net->nop && !op_has_backward(p->net, &p->net->op[l])) l++;
    const struct op *op = &p->net->op[l];
    if (l == p->net->nop || !op->layer->dw || op->spec.cell >= CELL_NKIND || op->spec.share >= 0) return;
    const i64 most = op->ntheta / (PART_BLOCKS * netplan(g)->norm_block * g->ndevice);
    const i32 n = imin(imin(PLAN_PARTS, op_panels(op)), (i32)lmin(most, PLAN_PARTS));
    if (n < 2) return;
    netplan(g)->parted.op = l;
    netplan(g)->parted.n = n;
}

/* Marks for tables: one byte per row of each gradient vector. */
static err mark_buffers(struct planner *p) {
    const i64 bytes = netplan(p->plan)->ntheta / LANES;
    const struct pbuf marks = {.kind = PBUF_MARKS,
                               .element = ELEMENT_U8,
                               .home = HOME_WRITER,
                               .twin = TWIN_SWAP,
                               .bytes = bytes,
                               .extent = bytes};
    const bool any = p->plan->ntable > 0 && p->at->grad0 != PBUF_NONE;
    TRY(add_buffers(p, marks, any ? p->ngrain : 0, &p->at->marks0));
    for (i32 k = 0; any && k < p->ngrain; k++) p->plan->buf[p->at->grad0 + (u32)k].marks = p->at->marks0 + (u32)k;
    return 0;
}

bool machine_is_apart(const struct machine *m) {
    for (i32 d = 0; d < m->ndevice; d++) {
        const struct dev_type *type = dev_find(m->device[d].kind);
        if (type && type->driver) return true;
    }
    return false;
}

err planner_begin(struct planner *p, i32 ndevice) {
    const struct net *n = p->net;
    char name[PRODUCT_TEXT];
    product_name(&p->product, p->sliced ? p->q->slices : 0, name);
    TRY(build_begin(&p->build, name, p->machine, ndevice));
    struct plan *g = p->plan = p->build.plan;
    struct netplan *of;
    ARENA_NEW(&g->arena, of, 1);
    g->client = of;
    p->at = &of->at;
    p->at->marks0 = PBUF_NONE;
    g->exact = product_exact(&p->product) && !p->sliced; /* slices agree within a tolerance on any device */
    g->B = p->q->B;
    g->grain = p->grain;
    g->ngrain = p->ngrain;
    of->train = p->q->train;
    of->slices = p->sliced ? p->q->slices : 0;
    if (p->sliced) of->course = course_of(p);
    of->forgets = p->q->forgets;
    of->ntheta = n->ntheta;
    of->nderived = n->nderived;
    of->nstate = of->train ? p->q->nstate : 0;
    of->norm_block = lmax(NORM_BLOCK, round_up64((n->ntheta + NORM_PARTS - 1) / NORM_PARTS, LANES));
    part(p);
    TRY(net_buffers(p));
    TRY(weight_buffers(p));
    if (!of->train || p->q->dense || machine_is_apart(p->q->machine)) return 0; /* only the host knows sparse rows */
    TRY(plan_tables(n, g));
    return mark_buffers(p);
}

void planner_drop(struct planner *p) {
    build_drop(&p->build);
    p->plan = NULL;
}

/* Adds updates in the order in which the next step reads the weights. */
static err update(struct planner *p) {
    i64 lo, hi;
    for (i32 pass = 0; pass < 2; pass++)
        for (i32 b = 0; b < p->nbucket; b++)
            for (i32 i = 0; i < p->nsharer; i++) {
                planner_share(p, pass ? b : planner_bucket(p, b), i, &lo, &hi);
                const u8 kind = pass ? TASK_UPDATE : TASK_NORM;
                if (hi > lo) TRY(planner_task(p, (struct task){.kind = kind, .device = p->sharer[i], .lo = lo, .hi = hi}));
            }
    return 0;
}

/* The cut that orders tasks itself; NULL = none. */
static const struct strategy *order_of(const struct planner *p) {
    for (i32 i = 0; i < p->product.n; i++)
        if (p->product.cut[i].s->tasks && p->product.cut[i].n > 1) return p->product.cut[i].s;
    return NULL;
}

/* One piece that devices of a rank share needs nothing early, and an order of its own merges at the end. */
static bool merges_early(const struct planner *p) {
    return p->machine->nrank > 1 && !p->sliced && !p->split && !order_of(p) && (p->npiece > 1 || planner_group(p) == 1);
}

err planner_build(struct planner *p) {
    const struct strategy *order = order_of(p);
    i32 ndevice = 0;
    for (i32 i = 0; i < p->nsharer; i++) ndevice = imax(ndevice, (i32)p->sharer[i] + 1);
    p->early = merges_early(p);
    TRY(planner_begin(p, ndevice));
    if (p->staged && p->q->place && p->q->train) TRY(placed_find(p));
    planner_buckets(p);
    if (!p->early) TRY(planner_prepare(p, -1));
    TRY(order ? order->tasks(p) : p->sliced || p->early ? passes_op_by_op(p) : passes_piece_by_piece(p));
    if (!p->q->train || p->net->ntheta == 0) return 0;
    TRY(planner_merge(p));
    return update(p);
}

/* A gradient that is kept for the next step goes to the ranks that run the backward pass of the first rows, which adds to it. */
static void keep_at_first(struct plan *g, u32 grad0) {
    if (grad0 == PBUF_NONE) return;
    g->buf[grad0].home = HOME_STARTERS;
    g->buf[grad0].when = MESSAGE_KEEP;
}

/* Weights stay with the ranks that use them where ranks have ops of their own.  Where ranks share units, those of them that run
 * some ops alone have all weights, and so have the others. */
static void home_of_weights(struct plan *g, i32 nop, u32 theta, bool split) {
    u64 ranks[NET_OPS][MACHINE_DEVICES / 64] = {0}; /* that run an op */
    u64 all[MACHINE_DEVICES / 64], any = 0;
    if (theta == PBUF_NONE) return;
    for (u32 i = 0; i < g->ntask; i++) {
        const i32 rank = g->place[g->task[i].device].rank;
        if (g->task[i].kind == TASK_FWD) ranks[g->task[i].op][rank / 64] |= (u64)1 << (rank % 64);
    }
    memcpy(all, ranks[0], sizeof all);
    for (i32 l = 1; l < nop; l++)
        for (size_t w = 0; w < COUNT(all); w++) all[w] &= ranks[l][w];
    for (size_t w = 0; w < COUNT(all); w++) any |= all[w];
    if (split && any) return;
    for (i32 l = 1; l < nop; l++)
        if (memcmp(ranks[l], ranks[0], sizeof ranks[0]) != 0) g->buf[theta].home = HOME_READERS;
}

err planner_finish(struct planner *p, struct plan **out) {
    TRY(build_end(&p->build));
    struct plan *g = p->plan;
    home_of_weights(g, p->net->nop, p->at->theta, p->split);
    keep_at_first(g, p->at->grad0);
    TRY(sizes(g, p->net));
    plan_cost(g, p->net, p->machine, p->q->costs);
    *out = g;
    return 0;
}
