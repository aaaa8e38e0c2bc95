/* tune.h - which way of doing the same work is faster here: asked of the wisdom, else measured when the run is long enough.
 *
 *     question --wisdom--> known: the answer
 *                     |--> not known, and the run far longer than the measuring: measure, keep, answer
 *                     |--> else: no answer (the kernels guess by shape; products stay in fp32)
 *
 * How a layer is walked changes speed only, never bits.  A precision changes bits: whoever asks keeps the answer with the model.
 */
#ifndef STRETTO_TUNE_TUNE_H
#define STRETTO_TUNE_TUNE_H

#include "tune/wisdom.h"

/* A recurrent layer as one worker sees it. */
struct tune_shape {
    enum cell_kind cell;
    enum precision precision; /* of TUNE_HOW */
    i32 T, B, I, H, threads;
    i32 rows;    /* of the batch that one worker computes */
    i32 members; /* workers that share the units of a step in fp32: bf16 leaves them to one; 0 = none */
};

enum { TUNE_WORTH = 50, TUNE_LONG = 3 }; /* a run must take so many times the measuring; and that at most so many seconds */

/* seconds: what the run is predicted to take (0: only look).  *how is an enum cell_how or 0; *e, where not NULL, the entry behind
 * it (NULL = none).  E601 when memory is refused; a wisdom file that cannot be written is told by wisdom_save, not here. */
err tune_how(struct wisdom *w, const struct kern *k, const struct tune_shape *s, f64 seconds, u32 *how,
             const struct tune_entry **e);
/* The same for fp32 against bf16: PREC_F32 where the table has no bf16 cells.  fp32 counts as shared evenly by its members. */
err tune_precision(struct wisdom *w, const struct kern *k, const struct tune_shape *s, f64 seconds, enum precision *out,
                   const struct tune_entry **e);

/* measure.c: seconds of each way of a shape, from a few interleaved runs on buffers of its own: lower quartiles.  Forward alone
 * for TUNE_HOW, forward, backward and weight gradient for TUNE_PRECISION.  The steps of the sequence may be fewer than T. */
err tune_measure(const struct kern *k, enum tune_kind kind, const struct tune_shape *s, f64 seconds[TUNE_WAYS]);
f64 tune_cost(enum tune_kind kind, const struct tune_shape *s); /* about what that takes, in seconds */

#endif
