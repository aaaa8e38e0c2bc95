/* waves.c - a forest in waves of trees: which rank grows which, when to stop, and how each rank gets the trees of the others. */
#include <string.h>

#include "base/clock.h"
#include "learn/forest/stages.h"
#include "learn/snapshots.h"

#define WAVE_SECONDS 0.5
enum { WAVE_BYTES = 256 << 20, WAVE_TREES = 4096 };

struct waves {
    const struct learn_job *job;
    const struct tree_data *d;
    struct forest *f;
    struct stages stages;
    struct snapshots shots;
    struct forest_stage total[FOREST_STAGES]; /* of all ranks, of the waves that are done */
    f64 *importance; /* [trees of a wave][ninput] */
    i32 most;        /* trees of a wave */
    f64 rate;        /* trees per second of the last wave, 0 = not known */
};

static i32 share(i32 from, i32 to, i32 rank, i32 size) { return from + (i32)((i64)(to - from) * rank / size); }

/* The trees of a wave: enough for all workers, and for about half a second.  Rank 0 decides. */
static err wave_end(const struct waves *w, i32 from, i32 *to) {
    const struct comm *c = w->job->use.comm;
    const i32 workers = w->job->use.machine->ndevice * comm_size(c);
    i32 n = imax(2 * workers, (i32)dmin(WAVE_TREES, w->rate * WAVE_SECONDS));
    n = imin(imin(n, w->most), w->f->spec.trees - from);
    if (w->f->spec.trees - from - n < workers && w->f->spec.trees - from <= w->most) n = w->f->spec.trees - from;
    *to = from + n;
    return comm_broadcast(w->job->use.comm, "wave", to, sizeof *to);
}

static err share_tree(struct comm *c, i32 root, struct tree *t, const struct tree_data *d, f64 *importance) {
    i32 size[2] = {t->n, t->nleaf};
    TRY(comm_broadcast_from(c, root, "tree", size, sizeof size));
    if (comm_rank(c) != root) {
        t->n = size[0];
        t->nleaf = size[1];
        NEW(t->node, t->n);
        if (t->nleaf > 0) NEW(t->leaf, (i64)t->nleaf * d->nclass);
    }
    TRY(comm_broadcast_from(c, root, "nodes", t->node, t->n * (i64)sizeof *t->node));
    if (t->nleaf > 0) TRY(comm_broadcast_from(c, root, "leaves", t->leaf, t->nleaf * (i64)d->nclass * (i64)sizeof *t->leaf));
    return comm_broadcast_from(c, root, "importance", importance, d->ninput * (i64)sizeof *importance);
}

static err share_wave(struct waves *w, i32 from, i32 to) {
    struct comm *c = w->job->use.comm;
    const i32 size = comm_size(c);
    for (i32 k = 0; k < size && size > 1; k++)
        for (i32 t = share(from, to, k, size); t < share(from, to, k + 1, size); t++)
            TRY(share_tree(c, k, &w->f->tree[t], w->d, w->importance + (i64)(t - from) * w->d->ninput));
    return 0;
}

/* Adds the counts of tasks of all ranks in this wave to the total. */
static err sum_stages(struct waves *w) {
    struct comm *c = w->job->use.comm;
    struct forest_stage *all;
    const i32 size = comm_size(c);
    NEW(all, (i64)size * FOREST_STAGES);
    const err e = comm_allgather(c, "stages", w->f->stage, sizeof w->f->stage, all);
    for (i32 k = 0; k < size * FOREST_STAGES; k++) {
        struct forest_stage *to = &w->total[k % FOREST_STAGES];
        to->gain += all[k].gain;
        to->split += all[k].split;
        to->subtree += all[k].subtree;
    }
    mem_free(all);
    memset(w->f->stage, 0, sizeof w->f->stage);
    return e;
}

static err grow_wave(struct waves *w, i32 from, i32 to) {
    const i32 rank = comm_rank(w->job->use.comm), size = comm_size(w->job->use.comm);
    const i32 mine = share(from, to, rank, size);
    const f64 begin = clock_now();
    memset(w->importance, 0, sizeof *w->importance * (size_t)w->most * (size_t)w->d->ninput);
    TRY(stages_grow(&w->stages, mine, share(from, to, rank + 1, size), w->importance + (i64)(mine - from) * w->d->ninput));
    TRY(share_wave(w, from, to));
    for (i32 t = from; t < to; t++)
        for (i32 i = 0; i < w->d->ninput; i++) w->f->importance[i] += w->importance[(i64)(t - from) * w->d->ninput + i];
    w->rate = (to - from) / dmax(1e-6, clock_now() - begin);
    w->f->ntree = to;
    return sum_stages(w);
}

static err list_state(void *self, struct snapshot *to) {
    const struct waves *w = self;
    return forest_list_state(w->f, w->total, to);
}

static err grow_waves(struct waves *w) {
    struct workload work = workload_start("growing trees", w->job->use.events, NULL);
    bool late = false;
    err e = forest_take_state(&w->shots, w->f, w->total);
    work.all = w->f->spec.trees - w->f->ntree;
    while (e == 0 && w->f->ntree < w->f->spec.trees && !late) {
        const i32 from = w->f->ntree;
        i32 to = 0;
        TRY_OUT(wave_end(w, from, &to));
        TRY_OUT(grow_wave(w, from, to));
        TRY_OUT(workload_advance(&work, to - from));
        e = snapshots_turn(&w->shots, to, list_state, w, &late);
    }
    memcpy(w->f->stage, w->total, sizeof w->total);
    w->f->model.stopped = w->f->ntree == w->f->spec.trees ? STOP_STEPS : STOP_TIME;
out:
    workload_end(&work);
    return e;
}

static err grow(struct waves *w) {
    const i64 bytes = w->d->rows > w->f->spec.fused ? 2 * w->d->rows * (i64)sizeof(struct entry) : 1;
    w->most = (i32)lmin(WAVE_TREES, lmax(1, WAVE_BYTES / bytes)) * comm_size(w->job->use.comm);
    w->most = (i32)lmax(1, lmin(w->most, (i64)WAVE_BYTES / 8 / w->d->ninput));
    w->most = imin(w->most, w->f->spec.trees);
    NEW(w->importance, (i64)w->most * w->d->ninput);
    TRY(stages_open(w->d, w->f, &w->job->use, &w->stages));
    TRY(snapshots_open(w->job, &w->shots));
    const err e = grow_waves(w);
    if (w->stages.shared) {
        char shares[256];
        offload_shares(shared_counts_offload(w->stages.shared), shares, sizeof shares);
        event_note(w->job->use.events, EVENT_DETAIL, "counts of large nodes by device: %s", shares);
    }
    return e != 0 ? e : map_run_keep(&w->stages.run, &w->f->model);
}

err forest_grow(const struct learn_job *job, const struct tree_data *d, struct forest *f) {
    struct waves w = {.job = job, .d = d, .f = f};
    f64 sum = 0;
    const err e = grow(&w);
    snapshots_close(&w.shots);
    stages_close(&w.stages);
    mem_free(w.importance);
    for (i32 i = 0; i < d->ninput; i++) sum += f->importance[i];
    for (i32 i = 0; i < d->ninput && sum > 0; i++) f->importance[i] /= sum;
    return e;
}
