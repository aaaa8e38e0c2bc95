/* control.h - chooses the number of time slices, and the rank of the correction of their initial states, from the counts of
 * rounds since the last validation, the interval (docs/adr/019).
 *
 *     w of each layer --share of the steps that run again--> cost of P slices: half or twice as many where it is 4 % less
 *     rounds > 4, and no other P is better --next rank of 0 1 2 4--> cost of the next interval: keep | revert
 *     rounds <= 2 --previous rank
 *
 * Plain numbers in and out, the same on all ranks: no clock, no machine, no number of threads.  All that is remembered is part of
 * a checkpoint (struct slice_history), so a run repeats its decisions.  Costs are in steps of one slice alone. */
#ifndef STRETTO_LEARN_SLICES_CONTROL_H
#define STRETTO_LEARN_SLICES_CONTROL_H

#include "base/bits.h"

enum { WATCH_LAYERS = 8 };

/* The decision. */
struct slice_choice {
    i32 slices, rank;
};

/* The current state, and the counts of an interval. */
struct slice_view {
    i32 T, W;                   /* steps of a sequence; number of sequences in the batch */
    struct slice_choice now;    /* current choice; slices 1: whole sequences, without counts */
    i32 most, least, rank_most, rank_least; /* limits of the choice */
    bool rough;                 /* in bf16 */
    i32 nlayer;
    f64 w[WATCH_LAYERS];        /* steps after which each layer has forgotten its initial state; 0 = not known */
    f64 again[2];               /* forward, backward: steps of later rounds relative to those of round 1 */
    f64 rounds;                 /* mean rounds of the forward pass of the slowest layer */
    bool serial;                /* rounds did not suffice: slices ran one after another */
};

/* Earlier decisions.  Starts as zeros. */
struct slice_history {
    i32 looks;   /* intervals in a row that must favour more slices; doubled after each rise that was undone */
    i32 agreed;  /* intervals in a row that have favoured more slices */
    bool rose;   /* the last change of their number was a rise */
    i32 whole;   /* intervals with whole sequences */
    i32 tried;   /* a new rank is being tried: the rank before it, + 1; 0 = none */
    i32 wait;    /* intervals until the rank may change again; length of the next wait */
    i32 waits;
    f64 cost;    /* before the trial */
};

/* Expected share of the T steps that run again in P slices: slice k repeats min(w, k T / P) steps until a change of its
 * initial state is forgotten. */
f64 slices_again(f64 w, i32 T, i32 P);
/* Predicted cost of a sequence in P slices relative to one worker without slices; again: slices_again. */
f64 slices_cost(const struct slice_view *v, i32 P, f64 again);

/* Called after an interval; true if *out differs from the current choice. */
bool slices_decide(const struct slice_view *v, struct slice_history *m, struct slice_choice *out);

#endif
