/* place.c - places of slices, and the inputs that hold them. */
#include "learn/slices/place.h"

#include "plan/slice.h"

struct slice_place forecast_slice(i32 T, i32 P, i32 B, i32 r) {
    i32 W = B / imax(1, P), k = r / imax(1, W);
    struct slice_place place = {.after = k ? r - W : -1,
                                .before = k < P - 1 ? r + W : -1,
                                .first = k == imax(1, P) - 1 ? r - k * W : -1};
    place.steps = slice_steps(T, imax(1, P), k, &place.from);
    return place;
}

bool slice_ids(const struct buf *buf, struct slice_place place, i32 r, i32 *ids) {
    switch (buf->role) {
    case INPUT_LENGTH: ids[r] = place.steps; return true;
    case INPUT_AFTER: ids[r] = place.after; return true;
    case INPUT_BEFORE: ids[r] = place.before; return true;
    case INPUT_FIRST_SLICE: ids[r] = place.first; return true;
    default: return false;
    }
}
