/* chain.h - one recurrence along t, cut into slices that run side by side; a model describes it, exec/chain.c alone runs it.
 *
 *     begin --slice 0--> end .. begin --slice 1--> end .. begin --slice 2--> end        a slice begins from a guess, runs, and
 *                          `----take----^            `----take----^                     hands on what it left at its end
 *
 *     all slices run at once;  repeat:  what the slice before left is not what this one began from?  take it and run again
 *
 * After j rounds the first j slices are those of the serial run, so it ends after at most as many rounds as there are slices; a
 * recurrence that forgets is done far earlier, and a slice that runs again may stop where it comes back to what it had left there
 * (merge).  What a state is, and where it lies, nobody outside of the model knows.  Backward is another chain over the same
 * slices: it begins from what the slice after left. */
#ifndef STRETTO_MODEL_CHAIN_H
#define STRETTO_MODEL_CHAIN_H

#include "base/bits.h"

/* Callbacks are told slices by number.  Those that write do so for slices of their caller alone, and different slices may be
 * written at the same time; nobody runs while others compare and take. */
struct chain {
    const void *self, *with; /* the callbacks' own */
    i32 nslice;
    bool kept; /* guesses look at what the step before left: nobody may run before all have guessed */
    i32 forgets; /* for backward: steps after which forward had forgotten where it began; 0 = not known, -1 = more than a slice */
    i32 (*prev)(const struct chain *c, i32 k);   /* the slice whose end k begins from; -1 = its begin is given */
    void (*warm)(const struct chain *c, i32 k0, i32 k1); /* before any guess: what guesses of others look at; NULL = nothing */
    void (*guess)(const struct chain *c, i32 k);         /* make the first begin of slice k */
    /* Run the slices k0 <= k < k1 with todo[k] set from their begins to their ends, and write to steps[k] how many that took.
     * again: they have been run before, and may stop as soon as no value is further than tol from what is there. */
    void (*run)(const struct chain *c, i32 k0, i32 k1, const u8 *todo, bool again, f32 tol, i32 *steps);
    f32 (*scale)(const struct chain *c, i32 k); /* size of the values of slice k that tolerances are a share of; >= 0 */
    f32 (*gap)(const struct chain *c, i32 k);   /* largest difference of what prev left and what k began from; NaN = not close */
    void (*take)(const struct chain *c, i32 k); /* begin of k = what prev left */
    /* With a rank: after a run, how the ends of slices with todo answer to their begins; and, slice after slice in the order of
     * the chain (from the last number to the first where `down`), take what follows from that: returns the gap and takes where it
     * is beyond tol.  One caller for all slices. */
    i32 rank;
    bool down, back; /* back: the way of gradients */
    void (*answers)(const struct chain *c, i32 k0, i32 k1, const u8 *todo); /* NULL = they are known */
    f32 (*carry)(const struct chain *c, i32 k, f32 tol);
    /* What slice k left at its end, for a visit of the same sequence later on: state floats, out of and into the chain. */
    i32 state;
    void (*save)(const struct chain *c, i32 k, f32 *to);
    void (*load)(const struct chain *c, i32 k, const f32 *from);
    /* Where ranks share a chain: the slice that begins from what k leaves (-1 = none), and what that one looks at, `hand` floats
     * of which the first `state` are the end: out of slice k; and on another rank, what slice k is to begin from. */
    i32 (*heir)(const struct chain *c, i32 k);
    i32 hand;
    void (*give)(const struct chain *c, i32 k, f32 *to);
    void (*get)(const struct chain *c, i32 k, const f32 *from);
    void (*finish)(const struct chain *c, i32 k0, i32 k1); /* after the last round; NULL = nothing to do */
};

enum { CHAIN_ROUNDS = 64 }; /* rounds of which a trace keeps every slice */

/* How a chain is to be run.  Zero: tolerance 0 and the round limit by the number of slices. */
struct chain_course {
    f32 tol;    /* a gap up to this share of the chain's scale is none; results differ from the serial run by about as much */
    f32 fine;   /* the same forward, where that is less; 0 = it is the same */
    i32 rounds; /* after so many, one slice after another; 0 = three quarters of a chain, or when gaps no longer fall */
    /* Not 0: so many rounds and no more, whatever gaps are left (stale boundaries, time_parallel.md 3.1).  Results are then those
     * of the serial run only as far as the rounds reach, or as the begins of the step before are still right. */
    i32 stale, stale_back;
};

#endif
