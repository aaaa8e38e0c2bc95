/* engine.h - a network made ready to run: plans, bound buffers, weights; for every learner that is a network.
 *
 *     net + machine --plan_make--> train plan, forward plan --wisdom: how each layer is walked--> --exec_bind--> two execs over
 *                                                                                                one store */
#ifndef STRETTO_LEARN_ENGINE_H
#define STRETTO_LEARN_ENGINE_H

#include "base/event.h"
#include "comm/comm.h"
#include "learn/store/spec.h"
#include "step/step.h"
#include "tune/tune.h"

/* What a learner may use; owned by the caller. */
struct resources {
    const struct kern *kern;
    struct pool *pool;
    const struct machine *machine;
    const char *parallel;          /* strategy expression */
    const char *plan_text, *plan_path; /* a saved plan for training, and its name in messages; NULL = none */
    struct chain_course course;    /* of rounds over slices of time */
    i32 grains;                    /* that a batch is cut into; 0 = as many as are cheap */
    bool balance;                  /* grains move between ranks of unlike speed */
    i32 slices;                    /* of time in each sequence of the net that is trained; 0 or 1 = none */
    bool any_slices;               /* .. whatever number of them `parallel` says */
    u32 how;                       /* enum cell_how that --kernel demands for every layer, 0 = by wisdom or the kernels' guess */
    struct wisdom *wisdom;         /* what was measured on this machine; NULL = ask nobody */
    i64 steps;                     /* training steps that are coming, 0 = unknown: nothing is worth measuring */
    const struct events *events;
    const volatile int *stop;      /* set by a signal handler */
    struct comm *comm;             /* ranks that train together; NULL = none */
    const struct machine *ranks;   /* the machine of all of them; NULL = machine */
    bool heal;                     /* each rank keeps all that a run needs, so that others can die (comm_allow_recovery) */
    const struct policy *policy;         /* when ranks send each other what, and whether batches are read ahead */
    struct store_spec store;             /* of ranks that train together */
    bool trace, deterministic;     /* deterministic: refuse strategies that do not give the bits of the serial run */
};

/* The same for a net whose windows are whole: wishes for slices, and for time that is worth measuring, are those of training. */
struct resources resources_whole(const struct resources *r);
/* The same for windows in P slices, with no time to measure kernels.  parallel: a strategy in place of the requested one and of a
 * saved plan; NULL = as requested. */
struct resources resources_sliced(const struct resources *r, const char *parallel, i32 P, struct chain_course course);

struct engine {
    const struct net *net;
    struct plan *plan, *forward_plan;
    struct step *exec, *forward;
    struct store store;
    i32 B, forward_B;
    bool shares; /* weights and optimiser state are another engine's */
};

/* optim NULL = forward only; forward_B 0 = training only. */
err engine_new(const struct net *net, const struct resources *r, i32 B, i32 forward_B, const struct optim *optim,
               struct engine *out);
/* Training alone, on the weights and the optimiser state of an engine that stays longer; derived copies are its own. */
err engine_share(const struct engine *of, const struct resources *r, struct engine *out);
/* The training plan alone. */
err engine_plan(const struct net *net, const struct resources *r, i32 B, const struct optim *optim, struct plan **out);
/* Plans and binds training anew for a net with the same parameters; weights and optimiser state stay.  Forward plans go. */
err engine_replan(struct engine *e, const struct net *net, const struct resources *r, i32 B);
/* Training alone, by another machine: the rows of r->ranks' weights.  Who updates what must stay as it is; forward plans do. */
err engine_recut(struct engine *e, const struct resources *r);
void engine_free(struct engine *e);

/* Write down how each recurrent layer of a plan is walked: what r->how demands, else what the wisdom says; with r->steps to come
 * it may be measured now (and noted, and kept). */
err engine_choose_how(struct plan *p, const struct net *n, const struct resources *r);

/* Recurrent op l of a plan as the worker with the most rows sees it. */
struct tune_shape engine_tune_shape(const struct plan *p, const struct net *n, i32 l);

/* Bytes that the bound plans hold: buffers, weights, optimiser state, trace. */
i64 engine_planned_bytes(const struct engine *e);

#endif
