/* apply.c - applies a product of cuts: pieces of the work, each with a group of devices.
 *
 *     data:2*unit:3 on cpu*6     piece 0  rows 0..32   devices 0 1 2      number of a device: of a clock whose last
 *                                piece 1  rows 32..64  devices 3 4 5      wheel is the innermost cut
 *
 * Cuts are applied from the outermost to the innermost.  A cut that takes no number takes as many parts as have work and devices.
 * Devices from the first cut with shared memory on lie on one rank, if one has as many; a rank's devices that are too few for
 * such a group stay idle.  Otherwise the group is of several ranks, if a layer of the net can be split among them (split.c).
 * A forward plan takes what it can use: the wish is about training, and a single window to predict is no reason to refuse it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "step/planner.h"
#include "plan/slice.h"
#include "step/strategy/strategy.h"

const char *planner_why(struct planner *p, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->why, sizeof p->why, fmt, ap);
    va_end(ap);
    return p->why;
}

/* ------------------------------------------------------------------ groups -------------------------------------------------- */

i32 planner_group(const struct planner *p) { return p->team.n * p->layers.n; }

u32 planner_device(const struct planner *p, const struct piece *c, i32 k, i32 j) {
    return p->device[c->at + k * p->team.stride + j * p->layers.stride];
}

/* Device i of a group, in the order of the machine: the axis with the larger stride is the outer one. */
static bool team_outside(const struct planner *p) { return p->team.stride > p->layers.stride; }
i32 planner_member_stage(const struct planner *p, i32 i) { return team_outside(p) ? i % p->layers.n : i / p->team.n; }
static i32 member_unit(const struct planner *p, i32 i) { return team_outside(p) ? i / p->layers.n : i % p->team.n; }
u32 planner_member(const struct planner *p, const struct piece *c, i32 i) {
    return planner_device(p, c, member_unit(p, i), planner_member_stage(p, i));
}

err planner_cut_rows(struct planner *p, i32 n) {
    if (p->npiece * n > MACHINE_DEVICES) return FAIL(E1, "more than %d pieces", MACHINE_DEVICES);
    for (i32 i = p->npiece - 1; i >= 0; i--)
        for (i32 k = n - 1; k >= 0; k--) {
            struct piece part = p->piece[i];
            part.at += k;
            part.row = part.row * n + k;
            p->piece[i * n + k] = part;
        }
    p->npiece *= n;
    p->nrow *= n;
    return 0;
}

err planner_share_units(struct planner *p, i32 n) {
    p->team = (struct axis_of){n, 1};
    return 0;
}

err planner_share_layers(struct planner *p, i32 n) {
    p->layers = (struct axis_of){n, 1};
    return 0;
}

err planner_share_stages(struct planner *p, i32 n) {
    p->staged = true;
    TRY(planner_share_layers(p, n));
    return pipeline_stages(p);
}

/* ------------------------------------------------------------------ numbers of parts ---------------------------------------- */

/* Devices that cuts take: all of them, and those of a group that shares memory (0 = no cut needs one). */
struct taken {
    i64 all, group;
};

static struct taken more(struct taken t, const struct plan_cut *c, i32 n) {
    t.all *= n;
    if (t.group > 0) t.group *= n;
    else if (c->s->together && n > 1) t.group = n;
    return t;
}

/* Devices of the largest rank. */
static i32 together(const struct machine *m) {
    i32 most = 0, n = 0;
    for (i32 d = 0; d < m->ndevice; d++) {
        n = d > 0 && m->device[d].rank == m->device[d - 1].rank ? n + 1 : 1;
        most = imax(most, n);
    }
    return most;
}

/* Devices in complete groups of `group` devices, each group within one rank. */
static i64 in_groups(const struct machine *m, i64 group) {
    i64 sum = 0, n = 0;
    for (i32 d = 0; d < m->ndevice; d++) {
        n++;
        if (d + 1 < m->ndevice && m->device[d + 1].rank == m->device[d].rank) continue;
        sum += n / group * group;
        n = 0;
    }
    return sum;
}

/* Devices that must lie on one rank. */
static i64 group_of(const struct planner *p, struct taken t) {
    return t.group > together(p->machine) && net_splits(p->net) ? 1 : lmax(1, t.group);
}

static bool has_room(const struct planner *p, struct taken t) { return t.all <= in_groups(p->machine, group_of(p, t)); }

/* The most parts of cut i, up to `most`, that leave devices for the inner cuts; 1 if none do. */
static i32 parts_with_room(const struct planner *p, const struct product *cuts, i32 i, struct taken before, i32 most) {
    for (i32 n = imin(most, p->machine->ndevice); n > 1; n--) {
        struct taken t = more(before, &cuts->cut[i], n);
        for (i32 k = i + 1; k < cuts->n; k++)
            if (!cuts->cut[k].s->slices) t = more(t, &cuts->cut[k], imax(1, cuts->cut[k].wanted));
        if (has_room(p, t)) return n;
    }
    return 1;
}

/* Why there are too few devices for the parts of a cut (for two, if the number is open); NULL = enough. */
static const char *no_devices(struct planner *p, const struct plan_cut *c, struct taken t) {
    const i32 have = p->machine->ndevice, most = together(p->machine);
    const struct taken all = more(t, c, c->wanted);
    const bool apart = net_splits(p->net);
    if (c->wanted == 1) return NULL;
    if (c->wanted && all.all > have)
        return planner_why(p, "%lld devices are needed, the machine has %d", (long long)all.all, have);
    if (have < 2) return planner_why(p, "the machine has one device");
    if (c->s->together && most < 2 && !apart)
        return planner_why(p, "no two devices share memory, and ranks divide only lstm, gru and rnn layers of more than %d units",
                           (int)LANES);
    if (c->wanted && all.group > most && !apart)
        return planner_why(p, "%lld devices with shared memory are needed, a rank has at most %d", (long long)all.group, most);
    if (c->wanted && !has_room(p, all))
        return planner_why(p, "%lld groups of %lld devices with shared memory are needed, the machine has %lld",
                           (long long)(all.all / all.group), (long long)all.group,
                           (long long)(in_groups(p->machine, all.group) / all.group));
    return NULL;
}

/* Determines the parts of cut i: *n, or the reason why it does not apply. */
static const char *parts(struct planner *p, const struct product *cuts, i32 i, struct taken t, i32 *n) {
    const struct plan_cut *c = &cuts->cut[i];
    const bool slices = c->s->slices;
    const i32 most = c->s->most(p, c->wanted), useful = c->wanted && !slices ? imin(c->wanted, most) : most;
    char why[sizeof p->why];
    snprintf(why, sizeof why, "%s", p->why);
    if (most == 0 && (slices || (p->q->train && c->wanted != 1))) return p->why;
    *n = parts_with_room(p, cuts, i, t, imax(1, useful));
    if (!p->q->train || slices) return NULL;
    if (no_devices(p, c, t)) {
        p->fix[0] = 0; /* that of a reason why the cut has less work */
        return p->why;
    }
    if (c->wanted != 1 && most < imax(2, c->wanted)) return planner_why(p, "%s", why);
    if (c->wanted) *n = c->wanted;
    if (c->wanted || *n > 1) return NULL;
    return planner_why(p, "the other cuts use all %d devices", p->machine->ndevice);
}

/* ------------------------------------------------------------------ devices and rows ---------------------------------------- */

/* Chooses `all` devices in whole groups, rank after rank. Time slices take the same number from each rank: every rank must
 * know how its chains went. */
static void take_devices(struct planner *p, struct taken t) {
    const struct machine *m = p->machine;
    const i64 group = group_of(p, t);
    i64 seen = 0, of_rank = 0, share;
    p->ndevice = 0;
    for (i32 d = 0; d < m->ndevice; d++) {
        const bool first = d == 0 || m->device[d].rank != m->device[d - 1].rank;
        if (first)
            for (of_rank = 0; d + of_rank < m->ndevice && m->device[d + of_rank].rank == m->device[d].rank;) of_rank++;
        seen = first ? 0 : seen + 1;
        share = p->sliced && t.all < m->ndevice ? t.all / m->nrank + (m->device[d].rank < t.all % m->nrank) : of_rank;
        if (seen < share / group * group && p->ndevice < t.all) p->device[p->ndevice++] = (u32)d;
    }
}

/* Raises shares that would leave a rank without a micro-batch, at the expense of the others. */
static void one_each(const struct planner *p, i32 n, const i32 *rank, f64 *weight) {
    const i32 ranks = p->machine->nrank;
    bool small[MACHINE_DEVICES] = {0};
    for (i32 turn = 0; turn < ranks; turn++) { /* the shares that were lowered may become too small, too */
        f64 sum[MACHINE_DEVICES] = {0}, large = 0;
        i32 grains = p->ngrain;
        for (i32 i = 0; i < n; i++) sum[rank[i]] += weight[i];
        for (i32 r = 0; r < ranks; r++) large += small[r] ? 0 : sum[r];
        for (i32 r = 0; r < ranks; r++) grains -= small[r];
        for (i32 i = 0; i < n; i++) weight[i] *= small[rank[i]] ? 1 / sum[rank[i]] : grains / large;
        bool any = false;
        for (i32 r = 0; r < ranks; r++) {
            if (small[r] || sum[r] * grains / large >= 1) continue;
            small[r] = any = true;
        }
        if (!any) return;
    }
}

/* Divides the rows into nrow parts by the weights of their devices; drops pieces without rows. */
static void cut_boxes(struct planner *p) {
    struct slice box[MACHINE_DEVICES];
    f64 weight[MACHINE_DEVICES] = {0};
    i32 owner[MACHINE_DEVICES], rank[MACHINE_DEVICES], part[MACHINE_DEVICES], kept = 0;
    bool even = !p->sliced;
    for (i32 i = 0; i < p->npiece; i++) {
        const struct piece *c = &p->piece[i];
        for (i32 k = 0; k < planner_group(p); k++) weight[c->row] += p->machine->device[planner_member(p, c, k)].weight;
        rank[c->row] = piece_rank(p, c);
    }
    for (i32 r = 0; r < p->nrow; r++) {
        even = even && weight[r] == weight[0];
        owner[r] = r;
        part[r] = -1;
    }
    if (p->sliced && p->machine->nrank > 1) one_each(p, p->nrow, rank, weight);
    const struct slice whole = p->piece[0].box;
    const i32 n = even ? slice_cut_count(whole, p->grain, p->nrow, box) :
                         slice_cut_weight(whole, p->grain, p->nrow, weight, box, owner);
    for (i32 r = 0; r < n; r++) part[owner[r]] = r;
    for (i32 i = 0; i < p->npiece; i++) {
        struct piece c = p->piece[i];
        if (part[c.row] < 0) continue;
        c.row = part[c.row];
        c.box.b0 = box[c.row].b0;
        c.box.b1 = box[c.row].b1;
        p->piece[kept++] = c;
    }
    p->npiece = kept;
    p->nrow = n;
}

/* Do devices that divide the units of a layer belong to several ranks? */
static bool splits(const struct planner *p) {
    for (i32 i = 0; i < p->npiece; i++)
        for (i32 m = 0; m < planner_group(p); m++) {
            const i32 j = planner_member_stage(p, m);
            const u32 first = planner_device(p, &p->piece[i], 0, j), own = planner_member(p, &p->piece[i], m);
            if (p->machine->device[first].rank != p->machine->device[own].rank) return true;
        }
    return false;
}

/* Do devices that divide the layers of a piece belong to several ranks? */
static bool crosses_ranks(const struct planner *p) {
    bool any = false;
    for (i32 i = 0; i < p->npiece; i++)
        for (i32 j = 1; j < p->layers.n; j++) {
            const i32 rank = p->machine->device[planner_device(p, &p->piece[i], 0, j)].rank;
            any = any || rank != piece_rank(p, &p->piece[i]);
        }
    return any;
}

static void share_theta(struct planner *p) {
    u16 seen[MACHINE_DEVICES] = {0}; /* of each stage */
    p->nsharer = 0;
    for (i32 i = 0; i < p->npiece; i++)
        for (i32 k = 0; k < planner_group(p); k++) {
            const i32 stage = planner_member_stage(p, k);
            p->sharer_unit[p->nsharer] = (u16)member_unit(p, k);
            p->sharer_rest[p->nsharer] = (u16)(p->staged ? i : i * p->layers.n + stage);
            p->sharer_stage[p->nsharer] = (u16)stage;
            p->sharer_nth[p->nsharer] = seen[stage]++;
            p->sharer[p->nsharer++] = planner_member(p, &p->piece[i], k);
        }
}

/* Why a rank has no rows although rows are time slices; NULL = every rank has some. */
static const char *ranks_have_rows(struct planner *p) {
    i32 n = 0;
    for (i32 i = 0; i < p->npiece; i++) n += i == 0 || piece_rank(p, &p->piece[i]) != piece_rank(p, &p->piece[i - 1]);
    if (!p->sliced || p->product.n == 0 || product_slices(&p->product) < 0 || n == p->machine->nrank) return NULL;
    return planner_why(p, "every rank needs time slices, and %d device%s for %d ranks", p->ndevice,
                       p->ndevice > 1 ? "s are" : " is", p->machine->nrank);
}

/* Applies a cut with n parts. It numbers its devices fastest, so the strides of the cuts outside of it grow by n. */
static err apply(struct planner *p, struct plan_cut *c, i32 n) {
    for (i32 i = 0; i < p->npiece; i++) p->piece[i].at *= n;
    p->team.stride *= n;
    p->layers.stride *= n;
    c->n = n;
    return c->s->cut && n > 1 ? c->s->cut(p, n) : 0;
}

const char *planner_apply(struct planner *p, const struct product *cuts, i32 *cut) {
    struct taken t = {.all = 1};
    const char *why = NULL;
    i32 n;
    p->product = *cuts;
    p->npiece = p->nrow = 1;
    p->team = p->layers = (struct axis_of){1, 0};
    p->staged = p->split = false;
    p->piece[0] = (struct piece){.box = {.b1 = p->q->B}};
    *cut = 0;
    if (p->sliced && cuts->cut[0].s->cut && product_slices(cuts) < 0)
        return planner_why(p, "the network has time slices, so the expression must contain the cut time");
    for (i32 i = 0; i < cuts->n; i++) {
        *cut = i;
        if (cuts->cut[i].s->cut) why = parts(p, cuts, i, t, &n);
        else n = 1;
        if (why) return why;
        t = more(t, &cuts->cut[i], n);
        if (apply(p, &p->product.cut[i], n) < 0) return planner_why(p, "%s", err_last()->text);
    }
    *cut = 0;
    n = p->nrow;
    take_devices(p, t);
    if (p->ndevice < t.all) return planner_why(p, "%d of %lld devices are in complete groups", p->ndevice, (long long)t.all);
    cut_boxes(p);
    p->split = splits(p);
    if (p->split && p->q->place) {
        snprintf(p->fix, sizeof p->fix, "--parallel pipeline   or   --place ''");
        return planner_why(p, "--place puts layers on devices, and in this product ranks share the units of a layer");
    }
    for (i32 i = 0; i < cuts->n && crosses_ranks(p); i++)
        if (cuts->cut[i].s->stages && p->product.cut[i].n > 1) cuts->cut[i].s->stages(p);
    share_theta(p);
    if (cuts->n == 1 && n > 1) p->product.cut[0].n = p->nrow; /* devices of weight 0 have no part */
    return ranks_have_rows(p);
}
