/* optim.h - optimizers as pure element-wise updates of ranges of flat vectors. An optimizer is one file and one line in
 * optims.def.
 *
 * State vectors have the length of theta and start at zero. update() processes n elements from the same offset of every vector.
 */
#ifndef STRETTO_MODEL_OPTIM_OPTIM_H
#define STRETTO_MODEL_OPTIM_OPTIM_H

#include "base/option_structs.h"
#include "kern/device.h"

struct optim_hyper {
    f32 lr;
    /* The options of optimisers by name: momentum, weight_decay, .. (base/option_structs.h). */
    union {
        struct optim_options options;
        struct {
#define OPTION_OPTIM OPTION_MEMBER32
#include "base/option_members.h"
        };
    };
    f32 beta1, beta2, eps; /* adam, adamw; rmsprop uses beta2 as alpha */
    f32 grad_scale;        /* gradient clipping: factor applied to every gradient first */
    i64 step;              /* from 1: bias correction */
};

struct optim {
    const char *name, *help;
    enum optim_rule rule;      /* the same on a device */
    i32 nstate;                /* state vectors: 0 (sgd) .. 2 (adam) */
    const char *state_name[2]; /* "exp_avg", "exp_avg_sq": names in checkpoints */
    void (*update)(const struct optim_hyper *h, i64 n, f32 *theta, const f32 *grad, f32 *s0, f32 *s1);
};

/* As PyTorch has them by default; --momentum is beta1. */
static inline struct optim_hyper optim_hyper_of(const struct optim_options *o) {
    struct optim_hyper h = {.options = *o, .beta2 = 0.999f, .eps = 1e-8f, .grad_scale = 1};
    h.beta1 = h.momentum;
    return h;
}

/* PyTorch's rule of clipping: gradients are scaled by clip / (norm + 1e-6) where that is below 1.  clip 0 = none. */
static inline f64 optim_clip(f64 clip, f64 norm) { return clip > 0 ? dmin(1, clip / (norm + 1e-6)) : 1; }

const struct optim *optim_find(const char *name);
i32 optim_count(void);
const struct optim *optim_at(i32 i);

/* Learning rate of step s (from 0) of `steps`, as a factor of --lr: constant, cosine, linear, step; after `warmup` steps. */
/* In the order of the words of --schedule. */
enum schedule { SCHEDULE_CONSTANT, SCHEDULE_COSINE, SCHEDULE_LINEAR, SCHEDULE_STEP };
f64 schedule_factor(enum schedule kind, i64 step, i64 steps, i64 warmup);

#endif
