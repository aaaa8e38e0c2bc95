/* tune.h - autotuning: which variant of the same work is faster on this machine, from the wisdom file or by measurement.
 *
 *     question --wisdom--> known: the answer
 *                     |--> unknown, and the run far longer than a measurement: measure, store, answer
 *                     |--> else: no answer (the kernels choose by shape; products stay fp32)
 *
 * The execution mode of a layer changes only speed, never bits. The precision changes bits, so the caller stores the answer in
 * the model. */
#ifndef STRETTO_TUNE_TUNE_H
#define STRETTO_TUNE_TUNE_H

#include "tune/wisdom.h"

/* The shape of a recurrent layer for one worker. */
struct tune_shape {
    enum cell_kind cell;
    enum precision precision; /* used by TUNE_HOW */
    i32 T, B, I, H, threads;
    i32 rows;    /* batch rows that one worker computes */
    i32 members; /* team size in fp32 (bf16 runs on one member); 0 = no team */
};

enum { TUNE_WORTH = 50, TUNE_LONG = 3 }; /* measure only if the run takes at least 50 times as long, and the measurement at most
                                          * 3 s */

/* seconds: predicted duration of the run (0: look up only). *how: an enum cell_how or 0; *e (e may be NULL): the entry used
 * (NULL = none). E601 if memory is refused; wisdom_save reports an unwritable file, not this function. */
err tune_how(struct wisdom *w, const struct kern *k, const struct tune_shape *s, f64 seconds, u32 *how,
             const struct tune_entry **e);
/* The same for fp32 versus bf16; PREC_F32 if the table has no bf16 cells. fp32 is assumed to scale with the team. */
err tune_precision(struct wisdom *w, const struct kern *k, const struct tune_shape *s, f64 seconds, enum precision *out,
                   const struct tune_entry **e);

/* measure.c: seconds of each variant of a shape (lower quartiles of interleaved runs). Forward only for TUNE_HOW; forward,
 * backward and weight gradient for TUNE_PRECISION. May run fewer steps than T. */
err tune_measure(const struct kern *k, enum tune_kind kind, const struct tune_shape *s, f64 seconds[TUNE_VARIANTS]);
f64 tune_cost(enum tune_kind kind, const struct tune_shape *s); /* estimated duration of the measurement in seconds */

#endif
