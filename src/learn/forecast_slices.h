/* forecast_slices.h - whoever watches the slices of time: how their rounds go, whether they still pay, fewer of them where not.
 *
 *     step --exec_chain--> counts of the layer, w --validation--> pays: go on | does not: half as many slices, or a warning
 *
 * What is decided depends on counts of steps alone, never on a clock, and all of it is part of a checkpoint: a run repeats. */
#ifndef STRETTO_LEARN_FORECAST_SLICES_H
#define STRETTO_LEARN_FORECAST_SLICES_H

#include "learn/forecast_fit.h"

/* Ready for the net that was bound; counts of a resumed run stay. */
err slices_watch(struct fit *t);
/* After every step. */
void slices_stepped(void *fit, bool finite);
/* Numbers for the watchers of the run. */
void slices_annotate(void *fit, struct event *e);
/* After a validation: begins a new interval; true where another number of slices is wanted (slices_relay). */
bool slices_outgrown(void *fit);
/* The same weights over that number of slices: net, plan, batches. */
err slices_relay(void *fit, struct exec **exec);
/* Where the last step went wrong; of a row of slices: of which window, which slice, which step. */
void slices_nonfinite(void *fit, char where[240]);
void slices_place(const struct forecast_spec *spec, i32 B, const char *found, char where[240]);
/* forecast_stale.c: room for the ends of slices where the course is stale; what comes before and after a step; whether the last
 * one was stale. */
err stale_new(struct fit *t);
void stale_free(struct fit *t);
void stale_before(struct fit *t, i32 slot);
void stale_after(struct fit *t, bool finite);
bool stale_step(const struct fit *t);
/* After training: the picture of the last step, and how far the loss of slices is from that of the whole (serial in time). */
err slices_end(struct fit *t);

#endif
