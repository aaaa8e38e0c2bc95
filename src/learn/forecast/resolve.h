/* resolve.h - turns options and data into the spec of a forecaster: presets, and a value with a reason for every `auto`. */
#ifndef STRETTO_LEARN_FORECAST_RESOLVE_H
#define STRETTO_LEARN_FORECAST_RESOLVE_H

#include "opt/opt.h"
#include "data/series.h"
#include "learn/forecast/forecast.h"

/* Rejects combinations of options that are invalid for any data: E106, E401. */
err resolve_check(const struct options *o);
/* Resolves every `auto` that depends on the data, with a note for each decision of interest. Keeps a split that is set
 * (test > 0), otherwise derives it from the options. */
err resolve_forecast(struct options *o, const struct series *s, const struct events *events,
                     struct forecast_spec *spec, struct split *split);
/* resolve_steps.c: resolves --loss-steps as far as the options determine it, before a preset applies; then context and
 * network shape for it. E106 for options that do not combine with it. */
/* counts.c: E216 if the head is of counts and a target of the unscaled series is none; path: of the file. */
err resolve_counts(const struct options *o, const struct series *s, const char *path);
bool resolve_wants_stream(const struct options *o);
err resolve_loss_steps(struct options *o, const struct split *split);
/* Sets the time slices in spec->cut: the number in --parallel, or what `auto` chooses for the windows of an epoch, with a
 * note that gives the reason. E401 if the context is too short. */
err resolve_slices(const struct options *o, i64 windows, i32 ntarget, const struct events *ev, struct forecast_spec *spec);
/* Emits the notes of resolve_forecast: preset, split. */
void resolve_notes(const struct options *o, const struct series *s, const struct split *p, const struct events *ev);
/* Makes the spec from options that are already resolved (a loaded model, a plan without data). */
err spec_of(const struct options *o, struct forecast_spec *spec);

/* precision.c: resolves --precision auto for a spec in fp32 by the wisdom, or by measurement if the run is long enough.
 * why: the reason, as text. */
err measured_precision(const struct options *o, const struct forecast_spec *spec, const struct series *s,
                       const struct split *split, enum precision *out, char *why, size_t size);

#endif
