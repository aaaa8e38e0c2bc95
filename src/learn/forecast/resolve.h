/* resolve.h - from options and data to the spec of a forecaster: presets, and an answer with a reason for every `auto`. */
#ifndef STRETTO_LEARN_FORECAST_RESOLVE_H
#define STRETTO_LEARN_FORECAST_RESOLVE_H

#include "opt/opt.h"
#include "data/series.h"
#include "learn/forecast/forecast.h"

/* Options that do not go together, whatever the data are: E106, E401. */
err resolve_check(const struct options *o);
/* Answer every `auto` that depends on the data; emits one note per decision worth reading. A split that is set (test > 0) stays,
 * else the options give it. */
err resolve_forecast(struct options *o, const struct series *s, const struct events *events,
                     struct forecast_spec *spec, struct split *split);
/* --loss-steps, resolve_steps.c: whether a loss stands at every row as far as is known before a preset is taken; then what
 * follows for the context and the shape of the network.  E106 for what does not go with it. */
bool resolve_wants_stream(const struct options *o);
err resolve_loss_steps(struct options *o, const struct split *split);
/* Time slices, into spec->cut: as many as --parallel asks for, or as `auto` finds good for the windows of an epoch, with a
 * note that says why.  E401 where they have nothing to cut. */
err resolve_slices(const struct options *o, i64 windows, i32 ntarget, const struct events *ev, struct forecast_spec *spec);
/* The notes of resolve_forecast: preset and borders. */
void resolve_notes(const struct options *o, const struct series *s, const struct split *p, const struct events *ev);
/* The spec of options that are already resolved (a loaded model, a plan from shapes alone). */
err spec_of(const struct options *o, struct forecast_spec *spec);

/* Chooses --precision auto for a spec in fp32: by the wisdom, or measured now if the run is long enough.  why: the reason, as
 * text.  precision.c */
err measured_precision(const struct options *o, const struct forecast_spec *spec, const struct series *s,
                       const struct split *split, enum precision *out, char *why, size_t size);

#endif
