/* fit.h - the state of one fit: a struct for each responsibility, with the file that owns it. */
#ifndef STRETTO_LEARN_FORECAST_FIT_H
#define STRETTO_LEARN_FORECAST_FIT_H

#include "data/prefetch.h"
#include "learn/forecast/stream.h"

struct balance; /* balance.c */
struct saving;  /* save.h */
struct slicing; /* slices/slices.h */
struct ckpt;

/* windows.c: what is learnt from, and measured on. */
struct fit_windows {
    struct window_set train, valid, valid_all; /* valid: thinned, for validation while training */
};

/* prepare.c: what training and validation run with. */
struct fit_step {
    struct net *net, *cut;         /* net: what is trained: that of the forecaster, or cut, the same over slices of its windows */
    struct engine engine, whole;   /* whole: of the forecaster's net, validates in place of engine where that is cut */
    struct batcher batch, valid_batch;
    struct stream *stream;         /* all_steps: validates in place of valid_batch */
    i64 steps;                     /* of a member */
    i64 cells;                     /* targets of all parts of the present step (--accumulate) */
    bool prepared;
};

/* members.c: how far the fit has come. */
struct fit_progress {
    i64 best_steps[MEMBERS_MAX];
    f64 deadline;                  /* clock at which the time limit is over, 0 = none */
    i32 member, done;              /* being trained; first to train */
    struct train_state state;      /* of the member `done`, once it has begun */
    bool refitting, begun, over;   /* over: a rank died when others had left with all that is here */
};

/* save.c, state.c: checkpoints. */
struct fit_checkpoints {
    struct saving *saving;         /* NULL = there is no run folder */
    struct ckpt *found;            /* to continue from; NULL = nothing, or taken */
    i64 held;                      /* members whose weights are in the checkpoint */
};

struct fit {
    const struct forecast_job *job; /* &own */
    struct forecast_job own;        /* what was asked for; its ranks become fewer */
    struct machine *left;           /* of the ranks that are left, once one has died; else NULL */
    struct forecaster *f;
    struct fit_windows set;
    struct fit_step step;
    struct fit_progress at;
    struct fit_checkpoints save;
    struct balance *balance;        /* moves rows between ranks; NULL = they stay where they are */
    struct slicing *slicing;        /* how time slices go; never NULL */
};

enum { SPREAD_WINDOWS = 5 }; /* origins at least for residual quantiles */

/* The net that is trained, by spec.cut.slices, and that of f, which has the same parameters in the same places. */
err training_net(struct fit *t);
/* The plan that training will ask for, made and dropped: a wish that cannot be met is refused before a base is chosen, which may
 * take minutes. */
err forecast_try_plan(const struct fit *t);
/* All that training needs, by the ranks that there are; nothing that it has learnt is in there but engine.store. */
err training_prepare(struct fit *t);
void training_drop(struct fit *t);
/* heal.c: a rank has died.  Those that are left meet and prepare anew; then all stand where the one of them stood that
 * had come farthest.  E801 where they do not meet. */
err forecast_meet(struct fit *t, struct comm_loss *loss);
err forecast_heal(struct fit *t, const struct comm_loss *loss);

/* members.c: from the first member that is not done to the last; 0, a failure, or STOP_SIGNAL. */
err forecast_train_members(struct fit *t);

/* base.c: the base that --base asks for; the ridge row that stands beside every score. */
err forecast_choose_base(struct fit *t);
err forecast_ridge_base(const struct fit *t, bool refit, struct labour *work, struct base **out); /* refit: also on validation */
err forecast_ridge_row(struct fit *t);
i64 forecast_origins(const struct fit *t, const struct window_set *set); /* rows of a set that are learnt from */

/* windows.c: origins in [from, to) whose whole horizon ends before `to`; about VALID_ORIGINS of a set; rows between origins,
 * about so many, with which they come to every phase of the season. */
struct window_set windows_in(const struct forecast_spec *s, i64 from, i64 to);
struct window_set windows_thinned(struct window_set w, i64 season);
i64 forecast_stride(i64 about, i64 season);

/* Ranks hear of a signal at unlike times, so that there only the steps of training ask for it. */
static inline const volatile int *forecast_stop(const struct fit *t) {
    return comm_size(t->job->use.comm) > 1 ? NULL : t->job->use.stop;
}

enum { MIN_WINDOWS = 10 }; /* that a network, or a ridge, is trained on */

/* guard.c: the weight a from validation blocks; the residual quantiles for bands. */
err forecast_guard(struct fit *t);
err forecast_spread(struct fit *t);

/* state.c: all that the rest of the run depends on, read back.  forecast_resume_point says where to begin, on all ranks
 * the same; forecast_restore is called before each member and fills the state of the one that was interrupted. */
err forecast_resume_point(struct fit *t);
/* What a checkpoint holds from rank `root` to all, with the weights of `held` members that are done. */
err forecast_share_state(struct fit *t, i32 root, i64 held);
err forecast_restore(struct fit *t, i32 member, struct train_state *s);

#endif
