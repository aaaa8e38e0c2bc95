/* keep.h - keeps the trained model if an output fails.
 *
 *     before training   checks the free disk space for the outputs (E703); RUN/reserve reserves the space of the model
 *     after training    an output fails -> the model is written to the first folder that has room; the message names it
 *     resume            finds it there, does not train, and writes the outputs
 *
 *     RUN/trained.model -> RUN.trained (beside) -> $XDG_STATE_HOME/stretto -> $TMPDIR
 *
 * In the last two folders the file is NAME-HASH.model, a hash of the path of RUN. */
#ifndef STRETTO_API_KEEP_H
#define STRETTO_API_KEEP_H

#include "api/api.h"

/* learn_job.foresee, on rank 0 before the first step: checks the room for a model and a checkpoint of these sizes. */
err keep_foresee(void *trainer, i64 model, i64 checkpoint);
/* learn_job.make_room: releases the reserved disk space for the files that are written now. */
void keep_make_room(void *trainer);

/* Called after each output of a trained run; returns e. Remembers the first failure, with a remedy that names the option. */
err keep_output(struct stretto_trainer *t, err e, const char *option);
/* The error of failed outputs, with the path of the kept model (`saved`: -o has it); 0 = all outputs are written. */
err keep_report(struct stretto_trainer *t, bool saved);

/* Loads the model of a resumed run whose training is complete and whose outputs are missing; *out NULL = there is none. */
void keep_find(const struct stretto_trainer *t, stretto_model **out);
/* Deletes kept models and the reserved space, when a run is finished. */
void keep_forget(const struct stretto_trainer *t);
/* When a new run begins: the kept models of an earlier one get another name, which resume does not look for. */
void keep_set_aside(const struct stretto_trainer *t);
/* That run was refused: they get their names back. */
void keep_put_back(const struct stretto_trainer *t);

#endif
