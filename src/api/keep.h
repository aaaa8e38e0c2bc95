/* keep.h - what was learnt is not lost where an output fails.
 *
 *     before training   is there room for what will be written?  E703; RUN/reserve holds the place of the model
 *     after training    an output fails -> the model goes to the first place that takes it; the message says where
 *     resume            finds it there, trains nothing, and writes the outputs
 *
 *     RUN/trained.model -> RUN.trained (beside) -> $XDG_STATE_HOME/stretto -> $TMPDIR
 *
 * In the last two folders the file is NAME-HASH.model, a hash of the path of RUN. */
#ifndef STRETTO_API_KEEP_H
#define STRETTO_API_KEEP_H

#include "api/api.h"

/* Before the first step, on rank 0 (learn_job.foresee): bytes of the model, and of a checkpoint on this rank. */
err keep_foresee(void *trainer, i64 model, i64 checkpoint);
/* Gives the reserved place back, for what is written now (learn_job.make_room). */
void keep_make_room(void *trainer);

/* After an output of a trained run: returns e.  The first failure is remembered, with a remedy that names the option. */
err keep_output(struct stretto_trainer *t, err e, const char *option);
/* The error of outputs that failed, completed by where the model is (`saved`: -o has it); 0 = all outputs are written. */
err keep_report(struct stretto_trainer *t, bool saved);

/* The model of a resumed run that was trained to its end and waits for its outputs; *out NULL = there is none. */
void keep_find(const struct stretto_trainer *t, stretto_model **out);
/* Removes the models that were kept, and the reserve: of a run that begins, or is finished. */
void keep_forget(const struct stretto_trainer *t);

#endif
