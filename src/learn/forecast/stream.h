/* stream.h - forecasts of a model with decoder.every_step: one pass over the rows, serial in time, that carries the state.
 *
 *     row  first - context ............ first ......... last      chunks of rows; the final states of a chunk
 *           [ chunk ][ chunk ][ chunk ]...                        are the initial states of the next one
 *                       states -->          ^ forecasts of the origins of the set
 *
 * The net has the parameters of the trained one, and forecasts do not depend on the chunk borders.  Validation during training
 * uses such a pass, too: it measures what a forecast will do, whether or not training uses time slices. */
#ifndef STRETTO_LEARN_FORECAST_STREAM_H
#define STRETTO_LEARN_FORECAST_STREAM_H

#include "learn/forecast/batch.h"

struct stream;

/* chunk = rows at a time, 0 = automatic. members may exceed the trained ones, which have no weights here. */
err stream_new(const struct forecaster *f, const struct series *s, const struct resources *use, i32 chunk, i32 members,
               struct stream **out);
void stream_free(struct stream *st); /* NULL is fine */
i64 stream_bytes(const struct stream *st);

/* Mean training loss of one member's weights over the origins of a set; 0 if no origin has a target. */
err stream_loss(struct stream *st, const f32 *theta, const struct window_set *set, f64 *loss);

/* forecast_windows() for models with decoder.every_step. */
err forecast_stream(const struct forecaster *f, const struct series *s, const struct window_set *set, const struct resources *use,
                    i32 chunk, forecast_row_fn *fn, void *self);

#endif
