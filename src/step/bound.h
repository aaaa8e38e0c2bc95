/* bound.h - inside of struct step, for the files of this folder only. */
#ifndef STRETTO_STEP_BOUND_H
#define STRETTO_STEP_BOUND_H

#include "exec/sparse_rows.h"
#include "plan/build.h"
#include "step/slices/slices.h"
#include "step/step.h"

/* What sums, norm and update work with: of this step, or of the one before where the policy defers them. */
struct summed {
    f32 loss_scale;
    struct optim_hyper hyper;
    f64 clip;
    bool accumulate, hold;
};

struct step {
    const struct plan *plan;
    const struct step_buffers *at; /* buffer numbers of the plan */
    const struct net *net;
    const struct kern *kern;
    struct store *store;
    struct exec *exec;
    struct comm *comm; /* NULL = one rank */
    i32 *rank_of;      /* [micro-batches] whose rank zeroes its gradient; NULL where nothing is deferred */
    bool defers;       /* the policy sums a step while the next one is computed */
    struct arena arena;
    struct run run;
    struct run device; /* the same in the memory of a device, for tasks that run there */
    f32 **buf; /* [nbuf] buffers of the net, on the host: those of `run` */
    f32 **input;   /* [nbuf] if this process holds only its own rows: its copies of the inputs; NULL = read the batch in
                    * place */
    struct plan_range *held; /* [nheld] of the weights (step_held) */
    i32 nheld;
    bool *skip;    /* [nop] loss ops whose target is not bound (forward plans) */
    bool pending;                         /* the gradient of the previous step is kept: this step adds to it */
    struct summed now, summed;
    struct step_slices *slices; /* NULL = the rows are whole sequences */
    u32 *flag_line;             /* [ntask] index of the first line in `flags`, for members of a team; NULL = no teams */
    char *flags;                /* [lines][TEAM_LINE], initially zero */
};

struct exec_result step_result(void *step, void *const *mem);
extern const struct kernel step_kernels[TASK_NKIND];

#endif
