/* state.c - what a checkpoint of a tagger holds: the state of its net, and in the second fit the figures of the first. */
#include "learn/net_state.h"
#include "learn/tagger/fit.h"

#define FIRST_MOST 100000000000 /* steps of the first fit, in the numbers of checkpoints */

static void list_first(struct tag_first *f, struct snapshot *to) {
    snapshot_add(to, "refit", DTYPE_I64, &f->ended, 1);
    snapshot_add(to, "first.best_step", DTYPE_I64, &f->best_step, 1);
    snapshot_add(to, "first.valid_error", DTYPE_F64, &f->valid_error, 1);
    snapshot_add(to, "first.seconds", DTYPE_F64, &f->seconds, 1);
}

static err list(void *self, struct snapshot *to) {
    struct tag_fit *f = self;
    list_first(f->first, to);
    net_state_list(&f->state, &f->engine.store, to);
    return 0;
}

err tag_fit_checkpoint(void *self, const struct train_state *s, bool last) {
    struct tag_fit *f = self;
    TRY(net_state_gather(f->job->use.comm, &f->engine, &f->state));
    return snapshots_save(f->shots, f->first->ended * FIRST_MOST + s->step, list, f, last);
}

err tag_fit_begin(struct snapshots *shots, struct tag_first *first) {
    struct snapshot head = {0};
    if (!shots->resumes) return 0;
    list_first(first, &head);
    TRY(snapshots_take(shots, &head));
    if (first->ended >= 0 && first->ended <= 1 && first->best_step >= 0 && first->best_step <= NET_STATE_MOST) return 0;
    return snapshots_unsound(shots);
}

err tag_fit_restore(struct tag_fit *f) {
    struct snapshot all = {0};
    if (!f->shots->resumes) return 0;
    TRY(list(f, &all));
    TRY(snapshots_take(f->shots, &all));
    f->shots->resumes = false; /* a second fit begins anew */
    return net_state_sound(&f->state) ? 0 : snapshots_unsound(f->shots);
}
