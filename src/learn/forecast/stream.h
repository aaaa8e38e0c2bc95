/* stream.h - forecasts of a model whose state runs on (decoder.every_step): one walk over the rows, serial in time.
 *
 *     row  first - context ............ first ......... last      chunks of rows; what the layers leave behind one chunk
 *           [ chunk ][ chunk ][ chunk ]...                        is where they go on from in the next
 *                       states -->          ^ forecasts of the origins of the set
 *
 * The same parameters as the net that is trained, and the same forecasts wherever chunks begin.  Validation while training walks
 * too, so that what is measured is what will be used, whatever training does with slices. */
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
