/* chain.h - interface of time slicing: one recurrence along t, cut into slices that run in parallel. A model implements the
 * callbacks; only the chain solver runs them.
 *
 *     initial --slice 0--> final .. initial --slice 1--> final .. initial --slice 2--> final      each slice starts from a guess
 *                            `-----take-----^              `-----take-----^                       and passes on its final state
 *
 *     run all slices in parallel;  repeat:  where the previous final state differs from the initial state, take it and rerun
 *
 * After j rounds the first j slices equal the serial run, so there are at most as many rounds as slices. A recurrence that
 * forgets converges far earlier, and a rerun may stop where it returns to the state it left there before (merge). Only the
 * model knows what a state is and where it is stored. Backward is another chain over the same slices, which starts from what
 * the next slice left. */
#ifndef STRETTO_MODEL_CHAIN_H
#define STRETTO_MODEL_CHAIN_H

#include "base/bits.h"
#include "base/option_structs.h"

/* Callbacks get slices by number. A writing callback writes only to its caller's slices, and different slices may be written in
 * parallel. No slice runs while others are compared and taken. */
struct chain {
    const void *self, *with; /* private to the callbacks */
    i32 nslice;
    bool kept; /* guesses read what the previous training step left: no slice may run before all have guessed */
    i32 forgets; /* backward: number of steps after which forward forgot its initial state; 0 = unknown, -1 = more than a slice */
    i32 (*prev)(const struct chain *c, i32 k);   /* the slice whose final state is the initial state of k; -1 = it is given */
    void (*warm)(const struct chain *c, i32 k0, i32 k1); /* before any guess: prepares what the guesses of other slices read;
                                                          * NULL = nothing */
    void (*guess)(const struct chain *c, i32 k);         /* make the first guess of the initial state of slice k */
    /* Runs the slices k0 <= k < k1 with todo[k] set; steps[k] receives the number of steps run. again: these are reruns, which
     * may stop as soon as no value differs from the stored one by more than tol. */
    void (*run)(const struct chain *c, i32 k0, i32 k1, const u8 *todo, bool again, f32 tol, i32 *steps);
    f32 (*scale)(const struct chain *c, i32 k); /* magnitude of the values of slice k, the unit of tolerances; >= 0 */
    f32 (*gap)(const struct chain *c, i32 k);   /* largest difference between prev's final state and k's initial state; NaN =
                                                 * not close */
    void (*take)(const struct chain *c, i32 k); /* initial state of k = final state of prev */
    /* Low-rank correction. answers: after a run, computes the response of final states to initial states, for slices with todo.
     * carry: one sweep over the slices in chain order (from last to first if `down`) that updates the initial states; returns
     * the gap, and takes if it exceeds tol. One caller for all slices. */
    i32 rank;
    bool down, back; /* back: chain of gradients */
    void (*answers)(const struct chain *c, i32 k0, i32 k1, const u8 *todo); /* NULL = known already */
    f32 (*carry)(const struct chain *c, i32 k, f32 tol);
    /* Copies the final state of slice k (`state` floats) out of and into the chain, for a later step on the same sequence. */
    i32 state;
    void (*save)(const struct chain *c, i32 k, f32 *to);
    void (*load)(const struct chain *c, i32 k, const f32 *from);
    /* For a chain split over ranks. heir: the slice that continues slice k (-1 = none). give, get: copy what that slice reads,
     * `hand` floats of which the first `state` are the final state, out of slice k and into the chain of another rank. */
    i32 (*heir)(const struct chain *c, i32 k);
    i32 hand;
    void (*give)(const struct chain *c, i32 k, f32 *to);
    void (*get)(const struct chain *c, i32 k, const f32 *from);
    void (*finish)(const struct chain *c, i32 k0, i32 k1); /* after the last round; NULL = nothing */
};

enum { CHAIN_ROUNDS = 64 }; /* rounds for which a trace records every slice */

/* Parameters of the chain solver. All zero: tolerance 0, round limit by the number of slices. */
struct chain_course {
    /* slice_tol: relative; smaller gaps count as zero, results differ from the serial run by about this much.  slice_rounds, if
     * not 0: exactly this many rounds regardless of the gaps (stale boundary states, docs/time-parallel.md). Results equal the
     * serial run only as far as the rounds reach, or as the previous step's states still hold. */
    union {
        struct chain_options for_chain;
        struct {
#define OPTION_CHAIN OPTION_MEMBER32
#include "base/option_members.h"
        };
    };
    bool exact_back; /* slice_rounds are of forward alone */
    f32 fine;   /* tighter tolerance of forward; 0 = slice_tol */
    i32 rounds; /* maximum rounds, then run slices serially; 0 = three quarters of the number of slices, or until gaps stop
                 * falling */
};

#endif
