/* place.h - where a row of a batch stands among the slices of its window.
 *
 *     row = slice * windows + window; slices of a window follow each other in rows that are `windows` apart */
#ifndef STRETTO_LEARN_SLICES_PLACE_H
#define STRETTO_LEARN_SLICES_PLACE_H

#include "learn/forecast/input.h"

/* Row r of a batch of B, windows of T steps in P slices.  -1 = there is no such row. */
struct slice_place {
    i32 after;       /* the row that it continues */
    i32 before;      /* the row that it continues when the window is read backward */
    i32 first;       /* of a last slice: the row with the first steps of the window */
    i32 from, steps; /* its first step in the window, and its number of steps */
};
struct slice_place forecast_slice(i32 T, i32 P, i32 B, i32 r);
/* Is this an input that places slices (length, after, before, first_slice)? */
static inline bool slice_has_ids(const struct buf *buf) { return buf->role >= INPUT_LENGTH && buf->role <= INPUT_FIRST_SLICE; }
/* Writes row r of such an input; false for any other. */
bool slice_ids(const struct buf *buf, struct slice_place place, i32 r, i32 *ids);

#endif
