/* solver.h - runs chains (model/chain.h): guess, run side by side, compare, take over, run again what changed.
 *
 *     round 1    every slice, from a guess                                     run | gate | compare, take | gate | run ...
 *     round 2..  the slices whose begin changed, until none does
 *     too many rounds, or gaps that do not fall: the rest one after another, each once and from its final begin
 *
 * The slices are shared by members: workers that all call chain_solve at the same time, each with its own range of slices.  The
 * assignment of slices to members does not change the result: every decision is made per slice, or from numbers that all members
 * see.  A slice is settled once it ran from the final state of a settled slice, for any numbers (also NaN), so the rounds end.
 * Ranks share a chain in the same way: they send each other what members read from memory (peers.h). */
#ifndef STRETTO_STEP_SLICES_SOLVER_H
#define STRETTO_STEP_SLICES_SOLVER_H

#include <stdatomic.h>

#include "base/arena.h"
#include "step/slices/peers.h"
#include "model/chain.h"
#include "plan/plan.h"

/* What happened, for people and for the controller.  Sums over calls are the caller's. */
struct chain_trace {
    i32 nslice, rounds;
    i32 serial;       /* rounds of these in which slices ran one after another */
    i64 first, again; /* slice steps of round 1; of all further rounds */
    f32 gap, scale;   /* the last gap that was not close; what tolerances were a share of */
    i32 *ran;         /* [min(rounds, CHAIN_ROUNDS)][nslice] steps that each slice ran in each round, 0 = it did not */
};

struct chain_member;

struct chain_solver {
    i32 nslice, nmember;
    u8 *todo, *now;           /* [nslice] its begin changed since it ran; it runs in this round */
    _Atomic i32 *settled;     /* [nslice] the round from which on it is final, 0 = not known yet */
    i32 *steps;               /* [nslice] of this round */
    i32 *sorted;              /* [nslice] */
    i32 forgets;              /* chain_forgets of the last call; 0 = nothing ran again */
    const struct task *apart; /* not NULL: one member runs the rows of each of `napart` tasks by themselves (step_apart) */
    i32 napart;
    struct chain_peers *peers; /* NULL = all slices are this rank's */
    struct chain_facts fact;   /* of all ranks */
    bool lost;                 /* a rank is: written by member 0, before a gate */
    struct chain_member *member;
    struct chain_trace trace; /* of the last call; written by member 0, whole when all members are back */
    _Alignas(64) _Atomic u32 here;
    _Alignas(64) _Atomic u32 turn;
};

err chain_solver_new(struct arena *a, i32 nslice, i32 nmember, struct chain_solver **out);

/* Member `me` of n (at most nmember; all n call at once) runs the slices k0..k1; ranges of members follow each other and cover
 * all slices of this rank.  Returns when every slice is done and c->finish has run for k0..k1. */
void chain_solve(struct chain_solver *s, const struct chain *c, const struct chain_course *how, i32 me, i32 n, i32 k0, i32 k1);

/* Seconds of its last call in which member `me` waited for others; counted where ranks share the chain. */
f64 chain_waited(const struct chain_solver *s, i32 me);

/* Steps after which re-runs had come back to what was there, of the slices that did so before their end: the 90th percentile over
 * the second round.  -1 = none did; the chain remembers longer than a slice.  sorted: room for [nslice]. */
i32 chain_forgets(const struct chain_trace *t, i32 *sorted);

#endif
