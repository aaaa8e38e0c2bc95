/* engine.h - a network ready to run: plans, bound buffers, weights; for every learner that uses a network.
 *
 *     net + machine --plan_make--> training and forward plan --wisdom--> execution modes of layers --step_bind--> two steps,
 *                                                                                                       one store */
#ifndef STRETTO_LEARN_ENGINE_H
#define STRETTO_LEARN_ENGINE_H

#include "base/event.h"
#include "comm/comm.h"
#include "learn/store/spec.h"
#include "step/step.h"
#include "tune/tune.h"

/* The resources and requests of a run, which the caller owns. */
struct resources {
    const struct kern *kern;
    struct pool *pool;
    const struct machine *machine;
    const char *parallel;          /* strategy expression */
    const char *plan_text, *plan_path; /* a saved plan for training, and its name in messages; NULL = none */
    struct chain_course course;    /* how rounds over time slices run */
    i32 grains;                    /* micro-batches of a batch; 0 = the planner chooses */
    i32 microbatches;              /* of a pipeline; 0 = one per grain */
    const char *place;             /* method that places a pipeline's layers; NULL = stages of consecutive ones */
    bool all_forward;              /* a pipeline works as GPipe does (plan_request) */
    bool balance;                  /* move micro-batches between ranks of different speed */
    i32 slices;                    /* time slices of each sequence of the trained net; 0 or 1 = none */
    bool any_slices;               /* accept any number of time slices that `parallel` names */
    u32 how;                       /* execution mode (enum cell_how) of every recurrent layer, from --kernel; 0 = by wisdom
                                    * or the kernels' guess */
    struct wisdom *wisdom;         /* measured choices of this machine; NULL = neither read nor measure any */
    i64 steps;                     /* training steps to come; 0 = unknown: do not autotune */
    const struct events *events;
    const volatile int *stop;      /* set by a signal handler */
    struct comm *comm;             /* ranks that train together; NULL = none */
    const struct machine *const *forward; /* [nforward] a machine for each device that shares forecasts of many windows */
    i32 nforward;
    const struct machine *ranks;   /* machine of all ranks; NULL = machine */
    const struct costs *costs;     /* measured ones, for plans; NULL = the cost model */
    bool heal;                     /* elastic recovery: each rank keeps the whole state (comm_allow_recovery) */
    const struct policy *policy;         /* store policy: when ranks send what, and whether batches are prefetched */
    struct store_spec store;             /* of ranks that train together */
    bool trace, deterministic;     /* deterministic: refuse strategies that do not give the bits of the serial run */
};

/* The same resources for a net over whole windows: no time slices and no autotuning, which belong to training. */
struct resources resources_whole(const struct resources *r);
/* The same resources for windows in P time slices, without autotuning. parallel: replaces the requested strategy and a
 * saved plan; NULL keeps them. */
struct resources resources_sliced(const struct resources *r, const char *parallel, i32 P, struct chain_course course);

struct engine {
    const struct net *net;
    struct plan *plan, *forward_plan;
    struct step *exec, *forward;
    struct store store;
    i32 B, forward_B;
    i32 passes;  /* over the rows of a device in a step (plan_request); 0 = one */
    bool joint;  /* the ranks run `forward` together: each with its layers.  Else each runs it alone */
    bool shares; /* weights and optimiser state are another engine's */
};

/* optim NULL = forward only; forward_B 0 = training only. */
err engine_new(const struct net *net, const struct resources *r, i32 B, i32 forward_B, const struct optim *optim,
               struct engine *out);
/* Training alone, on the weights and the optimiser state of an engine that stays longer; derived copies are its own. */
err engine_share(const struct engine *of, const struct resources *r, struct engine *out);
/* Rows of a forward batch: at most `most`, fewer where their activations would take much memory on one device.  A function of the
 * net alone, so that sums over batches have the same bits however the net is run. */
i32 engine_forward_rows(const struct net *n, i32 most);
/* The request for a training plan of these resources. */
struct plan_request engine_request(const struct net *net, const struct resources *r, i32 B, const struct optim *optim);
/* Makes the training plan without binding it. */
err engine_plan(const struct net *net, const struct resources *r, i32 B, const struct optim *optim, struct plan **out);
/* Does this rank forecast, in a joint forward plan, with weights that it trains?  Then a validation needs none of other ranks. */
bool engine_keeps_to_itself(const struct engine *e);
/* Where ranks keep their own layers' weights, the memory of the others goes back to the system; rank 0, which saves the model,
 * keeps all.  Before the first step, when every rank has them all. */
void engine_release_others(struct engine *e, const struct comm *c);
/* Plans and binds training again for a net with the same parameters. Weights and optimizer state stay; the forward plan is
 * freed. */
err engine_replan(struct engine *e, const struct net *net, const struct resources *r, i32 B);
/* Plans and binds training again with the rows per rank of r->ranks. Which rank updates which parameters must not change;
 * the forward plan stays. */
err engine_recut(struct engine *e, const struct resources *r);
/* Binds training to another plan, which the engine owns from then on, also after a failure.  Where ranks would update other
 * parameters than before, each must have the whole optimizer state; the forward plan stays. */
err engine_rebind(struct engine *e, const struct resources *r, struct plan *plan);
void engine_free(struct engine *e);

/* Sets the execution mode of each recurrent layer of a plan: r->how, else the choice in the wisdom. If r->steps is large
 * enough, measures it now, reports it and stores it. */
err engine_choose_how(struct plan *p, const struct net *n, const struct resources *r);

/* Shape of recurrent op l of a plan on the worker with the most rows. */
struct tune_shape engine_tune_shape(const struct plan *p, const struct net *n, i32 l);

/* Bytes that the bound plans hold: buffers, weights, optimiser state, trace. */
i64 engine_planned_bytes(const struct engine *e);

#endif
