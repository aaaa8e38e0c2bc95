/* loop.h - the training loop of one network: batch -> step -> validate -> keep the best -> checkpoint.
 *
 *     fill(step) --prefetch--> exec_step --every n steps--> validate --better?--> best
 *                                  |                            |
 *                          not finite: back to the last       no better `patience` times: stop
 *                          good state, lr / 2, once; then E501
 *
 * Rounds: after `steps` steps the loop goes on to twice as many, and so on up to max_steps, while a round lowers the best loss by
 * more than ROUND_GAIN and ends near its best.  The learning rate follows the schedule over all steps up to the round's end.
 *
 * The loop knows neither series nor forecasts: the job hands it batches and a validation loss.  Everything that decides what
 * comes next is in struct train_state, so a resumed run continues bit for bit. */
#ifndef STRETTO_TRAIN_LOOP_H
#define STRETTO_TRAIN_LOOP_H

#include "base/event.h"
#include "comm/comm.h"
#include "step/step.h"

/* Why a run stopped: values > 0 of err, also in stretto.h. */
enum stop_reason { STOP_STEPS = 1, STOP_PLATEAU, STOP_SIGNAL, STOP_TIME };
const char *stop_reason_text(err reason);

/* How far a run is within a step. After an error the state is complete up to one of these places: ranks exchange messages before
 * they change the state that depends on them. */
enum train_place {
    PLACE_BEGIN,     /* a new run, or one resumed from a checkpoint */
    PLACE_STEPPED,   /* the step is done; validation and checkpoint may be due */
    PLACE_VALIDATED, /* validation is done; a new layout or checkpoint may be due */
    PLACE_BORDER     /* the next step may begin */
};

struct train_state {
    i64 step;            /* optimizer steps done */
    i64 place;           /* enum train_place; no part of a checkpoint */
    i64 best_step;
    f64 best;            /* lowest validation loss, INFINITY before the first */
    i64 bad;             /* validations since the best */
    i64 end;             /* of the present round; 0 = before the first step */
    f64 mark;            /* best at the begin of the round */
    f64 lr_factor;       /* 1, halved by a roll-back */
    i64 rollbacks;
    f64 seconds;         /* training time so far, over all resumptions */
    f64 train_loss;      /* mean between the last two validations */
    f64 loss_sum;        /* sum and number of training losses since the last validation */
    i64 loss_count;
    f64 step_seconds;    /* inside exec_step, this run, without the first (train_step_took) */
    i64 step_count;
    bool first_left_out;
    f32 *best_theta;     /* [ntheta], of which a rank keeps what it uses (step_held), as of the next one */
    f32 *good;           /* [(1 + nstate) * ntheta] theta and optimiser state of the last validation: roll-back target; of the
                          * state what this rank updates */
    i64 good_step;
    i64 due;             /* an update whose weights are not in the store yet is pending: they are in `ahead` (step_look_ahead) */
    f64 ahead_loss, ahead_norm;
    f32 *ahead;          /* [ntheta], NULL until there was one */
};

enum train_saving { SAVING_NONE, SAVING_BUSY, SAVING_READY }; /* READY: this rank has finished and waits for the others */

struct train_job {
    struct step *exec;
    struct store *store;
    /* The options of the loop by name: steps (planned, for the schedule), validate_every and accumulate (>= 1), lr (the peak),
     * clip, seed, time_limit and checkpoint_every (seconds of this run, not of those before a resume), ..
     * (base/option_structs.h). */
    union {
        struct loop_options options;
        struct {
#define OPTION_LOOP OPTION_MEMBER
#include "base/option_members.h"
        };
    };
    i64 until;            /* stop after this many steps; 0 = when validation says so */
    struct optim_hyper hyper; /* its lr is set by the loop */
    f64 steps_per_epoch, rows_per_step;
    bool warm;            /* step_args.warm of every step */
    bool prefetch;        /* fill batches on a thread of their own */
    bool parts;           /* each rank keeps the weights that it uses (step_held) up to the end, and validate needs no others */
    bool late;            /* the policy delays updates: a step returns the results of the step before */
    i32 member, members;  /* for events only, as is the next one */
    bool refit;

    /* A parameter store makes the steps: from s->step until `until`, or as far as it came before a stop.  It sets s->step and
     * adds to loss_sum, loss_count, step_seconds and step_count.  All ranks call it together.  NULL = exec makes one step after
     * another. */
    err (*leg)(void *self, struct train_state *s, i64 until);

    void *self;           /* of the calls below */
    void (*fill)(void *self, i64 batch, i32 slot);            /* pure function of batch */
    /* [nbuf] storage of a filled slot; *loss_scale = 1 / target cells of all batches that make the step */
    f32 *const *(*inputs)(void *self, i64 batch, i32 slot, f32 *loss_scale);
    err (*validate)(void *self, f64 *loss);  /* with the weights now in store; NULL, or NaN: keep the last ones */
    void (*nonfinite)(void *self, char where[240]); /* where a step became non-finite, as text; "" = unknown; may be NULL */
    /* For nets whose layout may change during training; all NULL if none does. */
    void (*stepped)(void *self, bool finite);                 /* after every batch */
    void (*annotate)(void *self, struct event *e);            /* adds its numbers to an event */
    bool (*outgrown)(void *self, i64 step);                   /* after a validation: true if another layout is better */
    err (*relay)(void *self, struct step **exec); /* changes the layout: same weights; fill and inputs then use the new one */
    /* For ranks. uneven: true if another division of the rows is faster, given the seconds per row of each rank; recut
     * applies it. NULL: fixed division. */
    bool (*uneven)(void *self, const f64 *row_seconds);
    err (*recut)(void *self, struct step **exec);
    /* Begins a checkpoint between two steps, on all ranks at once; with `last` also completes it. NULL: no checkpoints. saving()
     * returns the state of a checkpoint in flight; when no rank is busy, all ranks call saved(). */
    err (*checkpoint)(void *self, const struct train_state *s, bool last);
    enum train_saving (*saving)(void *self);
    err (*saved)(void *self);

    const struct events *events;
    const volatile int *stop; /* set by a signal handler; may be NULL */
    struct comm *comm;        /* ranks that run this loop together, each with all of the job; NULL = none */
};

/* A fresh state for P parameters; train_run fills it or continues from it. */
err train_state_new(const struct store *store, struct train_state *out);
err train_state_ahead(struct train_state *s, i64 ntheta); /* room for s->ahead */
void train_state_free(struct train_state *s);

/* Notes the seconds of a step.  The first step of a run touches its memory for the first time and takes up to 2.5 times as long
 * as the others: it counts only as long as it is the only one. */
void train_step_took(struct train_state *s, f64 seconds);
/* Mean seconds of the steps noted, 0 without any. */
f64 train_step_seconds(const struct train_state *s);

/* Learning rate of the optimizer step after `step` steps. */
f64 train_rate(const struct train_job *job, const struct train_state *s, i64 step);

/* Train until a stop reason; afterwards store->theta holds the best weights (but after STOP_SIGNAL, where it holds the last).
 * Returns a stop_reason > 0, or E501 when the loss is not finite twice, or an error of the calls. */
err train_run(const struct train_job *job, struct train_state *state);

#endif
