/* fit.h - the state of one fit: a struct for each responsibility, with the file that owns it. */
#ifndef STRETTO_LEARN_FORECAST_FIT_H
#define STRETTO_LEARN_FORECAST_FIT_H

#include "data/prefetch.h"
#include "learn/forecast/stream.h"

struct balance; /* balance.c */
struct replan;  /* replan.c */
struct saving;  /* save.h */
struct slicing; /* slices/slices.h */
struct store_run; /* learn/store/run.h */
struct hogwild; /* learn/store/hogwild.h */
struct ckpt;

/* windows.c: training and validation windows. */
struct fit_windows {
    struct window_set train, valid, valid_all; /* valid: thinned, for validation while training */
};

/* prepare.c: nets, engines and batches of training and validation. */
struct fit_step {
    struct net *net, *cut;         /* net: the net to train: the forecaster's, or `cut`, the same net over slices of windows */
    struct engine engine, whole;   /* whole: engine of the forecaster's net, validates if `engine` has the cut net */
    struct batcher batch, valid_batch;
    struct costs *costs;           /* measured, for the plans of the training */
    struct stream *stream;         /* decoder.every_step: validates instead of valid_batch */
    i64 steps;                     /* of a member */
    i64 cells;                     /* targets in all parts of the current step (--accumulate) */
    bool prepared;
};

/* members.c: progress of the fit. */
struct fit_progress {
    i64 best_steps[MEMBERS_MAX];
    f64 deadline;                  /* clock at which the time limit expires, 0 = none */
    i32 member, done;              /* member: the one in training; done: the first to train */
    struct train_state state;      /* of member `done`, valid if begun */
    f64 loss;                      /* of validation, with the mean of the first `weighed` members; rank 0 has it */
    i32 weighed;
    bool parts;                    /* each rank keeps the weights of its own layers (train_job.parts) */
    bool refitting, begun, over;   /* over: a rank died after another had left the fit: leave, too */
};

/* save.c, state.c: checkpoints. */
struct fit_checkpoints {
    struct saving *saving;         /* NULL = no run directory */
    struct ckpt *found;            /* checkpoint to resume from; NULL = none, or already read */
    i64 held;                      /* members whose weights are in the checkpoint */
};

struct fit {
    const struct learn_job *job;    /* &own */
    struct learn_job own;           /* the job as requested; loses the ranks that die */
    const struct series *series;    /* of the job, scaled */
    const struct forecast_spec *requested; /* spec of the job; f->spec has the current number of slices */
    struct machine *left;           /* machine of the surviving ranks; NULL until a rank dies */
    struct forecaster *f;
    struct fit_windows set;
    struct fit_step step;
    struct fit_progress at;
    struct fit_checkpoints save;
    struct replan *replan;          /* corrects the costs of the plan; NULL = the plan stays */
    struct balance *balance;        /* moves micro-batches between ranks; NULL = fixed shares */
    struct store_run *store;        /* ranks train through a parameter store; NULL = by the messages of the plan */
    struct hogwild *hogwild;        /* threads train on shared weights; NULL = together */
    struct slicing *slicing;        /* convergence of time slices; never NULL */
};

enum { SPREAD_WINDOWS = 5 }; /* least number of origins for residual quantiles */

/* Makes the net to train, cut into spec.cut.slices, and the net of f; both have the same parameter layout. */
err training_net(struct fit *t);
/* Makes the plan of the training and frees it: an impossible request fails here, before the base is chosen, which may take
 * minutes. */
err forecast_try_plan(const struct fit *t);
/* Builds t->step and everything else that depends on the current ranks. Of t->step only engine.store is trained. */
err training_prepare(struct fit *t);
void training_drop(struct fit *t);
void training_rest(const struct fit *t); /* activations and gradients take no memory until the next step */
/* heal.c, after the death of a rank. forecast_regroup forms a new group of the surviving ranks: *loss = the ranks that died;
 * E801 if no group forms. forecast_heal then plans again for this group and sends all ranks the state of the one with most
 * progress. */
err forecast_regroup(struct fit *t, struct comm_loss *loss);
err forecast_heal(struct fit *t, const struct comm_loss *loss);

/* members.c: trains the remaining members in order. Returns 0, an error, or STOP_SIGNAL. */
err forecast_train_members(struct fit *t);

/* base.c: chooses the base by --base; fits the ridge forecast that is printed beside every score. */
err forecast_choose_base(struct fit *t);
/* Whether the model is fitted once more on all rows before the test split: by --refit-all, or because its base has trees, which
 * know the seasons and levels that they have seen. */
bool forecast_refits(const struct fit *t);
/* Fits a base with trees again on all these rows; once. */
err forecast_refit_base(struct fit *t);
struct base_spec forecast_base_spec(const struct fit *t, struct workload *work);
err forecast_ridge_row(struct fit *t);
i64 forecast_origins(const struct fit *t, const struct window_set *set); /* with decoder.every_step also the steps of a tile */

/* windows.c: origins in [from, to) whose whole horizon ends before `to`; a subset of about VALID_ORIGINS of them. */
struct window_set windows_in(const struct forecast_spec *s, i64 from, i64 to);
struct window_set windows_thinned(struct window_set w, const struct series *s);

/* The stop flag, or NULL with several ranks: they see a signal at different times, so only training steps may act on it. */
static inline const volatile int *forecast_stop(const struct fit *t) {
    return comm_size(t->job->use.comm) > 1 ? NULL : t->job->use.stop;
}

enum { MIN_WINDOWS = 10 }; /* least number of windows to train a network or a ridge */

/* guard.c: sets the weight a from blocks of validation. */
err forecast_guard(struct fit *t);
/* After the first n members: *enough = the last one lowers the validation loss of the mean forecast by less than --member-gain
 * percent. The first is compared with the base alone. If the loss falls as a + b / n, four further members bring less than the
 * last one did. The decision follows from the weights: it is the same on every rank, and in a run that is resumed. */
err forecast_enough(struct fit *t, i32 n, bool *enough);
/* bands.c: computes the residual quantiles of the bands. */
err forecast_spread(struct fit *t);

/* state.c: reads the state that the rest of the run needs. forecast_resume_point sets where to continue, equal on all
 * ranks; forecast_restore, called before each member, restores the interrupted one. */
err forecast_resume_point(struct fit *t);
/* Broadcasts the contents of a checkpoint from rank `root`, with the weights of the `held` finished members. */
err forecast_share_state(struct fit *t, i32 root, i64 held);
err forecast_restore(struct fit *t, i32 member, struct train_state *s);

#endif
