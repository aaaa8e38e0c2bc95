/* state.c - what a checkpoint of a CRF holds: weights, gradient, the history of L-BFGS and its products.
 *
 * Between two iterations the direction and the pseudo-gradient are of no use any more, so that they are no part of it.  On ranks
 * each brings the rows that it updates. */
#include "learn/crf/train.h"

static const char *const pair_name[2][CRF_HISTORY] = {
    {"s.0", "s.1", "s.2", "s.3", "s.4", "s.5", "s.6", "s.7"},
    {"y.0", "y.1", "y.2", "y.3", "y.4", "y.5", "y.6", "y.7"},
};
enum { VECTORS = 4 + 2 * CRF_HISTORY };

/* The vectors [nrow][Lp] in a fixed order. */
static i32 vectors(const struct crf_run *r, f32 *out[VECTORS]) {
    i32 n = 0;
    out[n++] = r->w;
    out[n++] = r->w0;
    out[n++] = r->g;
    out[n++] = r->g0;
    for (i32 i = 0; i < r->s->history; i++) {
        out[n++] = r->S[i];
        out[n++] = r->Y[i];
    }
    return n;
}

/* The rows of a device, and the products of its grains, from its rank to all. */
static err share_rows(const struct crf_run *r, i32 device) {
    struct comm *c = r->run.use->comm;
    const i32 root = r->run.plan->place[device].rank;
    const struct slice rows = crf_rows_of(r, device);
    const i64 at = (i64)rows.b0 * r->p->Lp, bytes = (i64)(rows.b1 - rows.b0) * r->p->Lp * (i64)sizeof(f32);
    f32 *v[VECTORS];
    const i32 n = vectors(r, v);
    for (i32 i = 0; i < n && bytes > 0; i++) TRY(comm_broadcast_from(c, root, "rows", v[i] + at, bytes));
    for (i32 k = 0; k < r->p->ngrain; k++)
        if (r->p->row[k] >= rows.b0 && r->p->row[k + 1] <= rows.b1)
            TRY(comm_broadcast_from(c, root, "products", r->table + (i64)k * CRF_NDOT, CRF_NDOT * (i64)sizeof *r->table));
    return 0;
}

err crf_gather(void *course) {
    const struct crf_run *r = ((struct crf_course *)course)->r;
    if (comm_size(r->run.use->comm) == 1) return 0;
    for (i32 d = 0; d < r->ndevice; d++) TRY(share_rows(r, d));
    return 0;
}

err crf_list_state(void *course, struct snapshot *to) {
    struct crf_course *c = course;
    struct crf_run *r = c->r;
    const i64 n = r->p->nrow * r->p->Lp;
    snapshot_add(to, "iterations", DTYPE_I64, &c->iterations, 1);
    snapshot_add(to, "evaluations", DTYPE_I64, &c->evaluations, 1);
    snapshot_add(to, "calm", DTYPE_I64, &c->calm, 1);
    snapshot_add(to, "objective", DTYPE_F64, &c->objective, 1);
    snapshot_add(to, "norm", DTYPE_F64, &c->norm, 1);
    snapshot_add(to, "pairs", DTYPE_I32, &r->n, 1);
    snapshot_add(to, "slot", DTYPE_I32, &r->slot, 1);
    snapshot_add(to, "learn", DTYPE_U8, &r->learn, 1);
    snapshot_add(to, "length", DTYPE_F32, &r->t, 1);
    snapshot_add(to, "w", DTYPE_F32, r->w, n);
    snapshot_add(to, "w0", DTYPE_F32, r->w0, n);
    snapshot_add(to, "g", DTYPE_F32, r->g, n);
    snapshot_add(to, "g0", DTYPE_F32, r->g0, n);
    for (i32 i = 0; i < r->s->history; i++) {
        snapshot_add(to, pair_name[0][i], DTYPE_F32, r->S[i], n);
        snapshot_add(to, pair_name[1][i], DTYPE_F32, r->Y[i], n);
    }
    snapshot_add(to, "products", DTYPE_F64, r->table, (i64)r->p->ngrain * CRF_NDOT);
    return 0;
}

err crf_take_state(struct crf_course *c) {
    const struct crf_run *r = c->r;
    struct snapshot state = {0};
    TRY(crf_list_state(c, &state));
    TRY(snapshots_take(c->shots, &state));
    const bool counts = c->iterations >= 0 && c->iterations <= c->evaluations && c->calm >= 0;
    if (counts && r->n >= 0 && r->n <= r->s->history && r->slot >= 0 && r->slot < r->s->history) return 0;
    return snapshots_unsound(c->shots);
}
