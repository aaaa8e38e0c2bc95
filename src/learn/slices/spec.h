/* spec.h - what a fit is asked for in time slices. */
#ifndef STRETTO_LEARN_SLICES_SPEC_H
#define STRETTO_LEARN_SLICES_SPEC_H

#include "model/chain.h"

struct slice_spec {
    i32 slices;                 /* of the context in training alone, side by side (P); 0 or 1 = whole */
    i32 least;                  /* training may lower slices to this; = slices: it may not */
    i32 rank_most;              /* training may raise the option slice_rank to this; = slice_rank: it may not */
    struct chain_course course; /* of the rounds over them */
};

#endif
