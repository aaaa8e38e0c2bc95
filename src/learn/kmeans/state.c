/* state.c - what a checkpoint of k-means holds: the best restart, and the centers before the last iteration.  A resumed run
 * does that iteration again, so that the labels, which tell when to end, come back with it. */
#include "learn/kmeans/search.h"

static void list_best(struct kmeans *f, struct snapshot *to) {
    snapshot_add(to, "restart", DTYPE_I64, &f->restarts, 1);
    snapshot_add(to, "best.center", DTYPE_F64, f->center, (i64)f->k * f->d);
    snapshot_add(to, "best.count", DTYPE_I64, f->count, f->k);
    snapshot_add(to, "best.inertia", DTYPE_F64, &f->inertia, 1);
    snapshot_add(to, "best.kept", DTYPE_F64, &f->kept, 1);
    snapshot_add(to, "best.left_out", DTYPE_I64, &f->left_out, 1);
    snapshot_add(to, "best.iterations", DTYPE_I64, &f->iterations, 1);
    snapshot_add(to, "best.settled", DTYPE_U8, &f->settled, 1);
}

static void list_centers(i64 *from, f64 *center, const struct kmeans *f, struct snapshot *to) {
    snapshot_add(to, "iterations", DTYPE_I64, from, 1);
    snapshot_add(to, "center", DTYPE_F64, center, (i64)f->k * f->d);
}

static void list_batches(struct batches *b, i32 k, struct snapshot *to) {
    if (b->rows == 0) return;
    snapshot_add(to, "smooth", DTYPE_F64, &b->smooth, 1);
    snapshot_add(to, "least", DTYPE_F64, &b->best, 1);
    snapshot_add(to, "calm", DTYPE_I64, &b->calm, 1);
    snapshot_add(to, "seen", DTYPE_F64, b->seen, k);
}

err kmeans_list_state(void *search, struct snapshot *to) {
    struct search *s = search;
    const bool again = s->batches.rows == 0 && s->done > 0;
    s->from = s->done - again;
    list_best(s->f, to);
    list_centers(&s->from, again ? s->l.before : s->l.model, s->f, to);
    list_batches(&s->batches, s->f->k, to);
    return 0;
}

err kmeans_take_state(struct search *s) {
    const struct options *o = s->shots.job->o;
    struct snapshot state = {0};
    if (!s->shots.resumes) return 0;
    list_best(s->f, &state);
    list_centers(&s->from, s->l.model, s->f, &state);
    list_batches(&s->batches, s->f->k, &state);
    TRY(snapshots_take(&s->shots, &state));
    s->seeded = true;
    if (s->f->restarts >= 0 && s->f->restarts < o->restarts && s->from >= 0) return 0;
    return snapshots_unsound(&s->shots);
}
