/* viterbi_slices.h - the Viterbi path of one long sequence, cut into slices that are decoded in parallel; exact.
 *
 *     slice 0          slice 1          slice 2
 *     |v0 ------> v1|  |g ------> v2'|  |g ------> v3'|   first round: every slice starts from a guess of its boundary scores
 *                      |v1 --=|         |v2' --=|         then each gets its left neighbour's, and repeats blocks until its
 *                                                         scores equal the old ones plus a constant
 *
 * Rank convergence (Maleki, Musuvathi, Mytkowicz, PPoPP 2014): adding a constant to all scores changes no backpointer, and scores
 * of any two starts soon differ by a constant only.  Backpointers of a block are kept until its last label is known, which is as
 * soon as all paths through the next block begin with one label (Sramek, Brejova, Vinar, arXiv:0704.0062).  A block whose last
 * label stays unknown is computed again from the scores before it.  So memory holds the path, the scores at the borders of
 * blocks, and two blocks of backpointers for each slice.
 *
 * The slices are tasks of a plan (plan/build.h): threads, ranks and any number of slices give the same path, to the byte.  When
 * the rounds exceed half of the slices, the rest runs one slice after the other. */
#ifndef STRETTO_LEARN_VITERBI_SLICES_H
#define STRETTO_LEARN_VITERBI_SLICES_H

#include "kern/viterbi.h"
#include "learn/engine.h"

struct viterbi_long {
    const struct viterbi *kern;
    const i32 *start;    /* [L] */
    const i32 *unary;    /* rows of unary scores << shift, of Lp elements: one for each symbol */
    const void *symbol;  /* [T] row of each step */
    i32 symbol_bytes;    /* 1, 2 or 4: u8, u16, i32 */
    i64 T;               /* at least 1 */
    i32 slices;          /* 0 = chosen for the threads */
    i32 block;           /* steps of a block; 0 = chosen */
    u8 *path;            /* [T] out */
};

struct viterbi_long_result {
    i64 score;           /* in units of the fixed point */
    i32 slices, rounds;  /* rounds in which boundaries were passed until none changed */
    bool serial;         /* the rounds exceeded half of the slices */
    i64 again, traced;   /* blocks repeated for a better boundary; computed again for their path */
    i64 blocks;
    f64 seconds;
};

/* E601, E806.  All ranks call it with the same sequence; each gets the whole path. */
err viterbi_long(const struct viterbi_long *q, const struct resources *use, struct viterbi_long_result *out);

#endif
