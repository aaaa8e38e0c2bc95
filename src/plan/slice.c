/* slice.c - cut by count, size or weight; the tile check. */
#include "plan/slice.h"

static void range_of(struct slice s, enum cut_axis axis, i32 *lo, i32 *hi) {
    *lo = axis == AXIS_B ? s.b0 : axis == AXIS_T ? s.t0 : s.l0;
    *hi = axis == AXIS_B ? s.b1 : axis == AXIS_T ? s.t1 : s.l1;
}

static struct slice with_range(struct slice s, enum cut_axis axis, i32 lo, i32 hi) {
    if (axis == AXIS_B) s.b0 = lo, s.b1 = hi;
    if (axis == AXIS_T) s.t0 = lo, s.t1 = hi;
    if (axis == AXIS_L) s.l0 = lo, s.l1 = hi;
    return s;
}

i64 slice_volume(struct slice s) {
    if (s.b1 <= s.b0 || s.t1 <= s.t0 || s.l1 <= s.l0) return 0;
    return (i64)(s.b1 - s.b0) * (s.t1 - s.t0) * (s.l1 - s.l0);
}

i32 slice_cut_count(struct slice whole, enum cut_axis axis, i32 grain, i32 n, struct slice *out) {
    i32 lo, hi;
    range_of(whole, axis, &lo, &hi);
    i32 grains = ceil_div(hi - lo, grain), pieces = imin(n, grains), at = lo;
    for (i32 i = 0; i < pieces; i++) {
        i32 next = at + (grains / pieces + (i < grains % pieces)) * grain;
        out[i] = with_range(whole, axis, at, imin(next, hi));
        at = next;
    }
    return pieces;
}

i32 slice_cut_size(struct slice whole, enum cut_axis axis, i32 grain, i32 size, i32 n, struct slice *out) {
    i32 lo, hi, i = 0;
    range_of(whole, axis, &lo, &hi);
    i32 step = round_up(imax(size, 1), grain);
    for (i32 at = lo; at < hi && i < n; i++) {
        i32 next = i == n - 1 || hi - at <= step ? hi : at + step;
        out[i] = with_range(whole, axis, at, next);
        at = next;
    }
    return i;
}

/* Borders at the rounded cumulative weight, so that no piece is off by more than one grain. */
i32 slice_cut_weight(struct slice whole, enum cut_axis axis, i32 grain, i32 n, const f64 *weight, struct slice *out, i32 *who) {
    i32 lo, hi, pieces = 0, at = 0;
    range_of(whole, axis, &lo, &hi);
    i32 grains = ceil_div(hi - lo, grain);
    f64 total = 0, sum = 0;
    for (i32 i = 0; i < n; i++) total += weight[i];
    for (i32 i = 0; i < n && at < grains; i++) {
        sum += weight[i];
        i32 next = total > 0 ? (i32)((f64)grains * sum / total + 0.5) : grains;
        if (i == n - 1) next = grains;
        if (next <= at || weight[i] <= 0) continue;
        out[pieces] = with_range(whole, axis, lo + at * grain, imin(lo + next * grain, hi));
        who[pieces++] = i;
        at = next;
    }
    if (pieces > 0 && at < grains) { /* the last devices have weight 0: the piece before them takes the rest */
        i32 first, end;
        range_of(out[pieces - 1], axis, &first, &end);
        out[pieces - 1] = with_range(out[pieces - 1], axis, first, hi);
    }
    return pieces;
}

static bool inside(struct slice s, struct slice whole) {
    return s.b0 >= whole.b0 && s.b1 <= whole.b1 && s.t0 >= whole.t0 && s.t1 <= whole.t1 && s.l0 >= whole.l0 && s.l1 <= whole.l1;
}

static bool overlap(struct slice a, struct slice b) {
    return a.b0 < b.b1 && b.b0 < a.b1 && a.t0 < b.t1 && b.t0 < a.t1 && a.l0 < b.l1 && b.l0 < a.l1;
}

/* Disjoint pieces inside the box whose volumes add up to the box's cover it exactly once. */
bool slice_tile(struct slice whole, const struct slice *piece, i32 n) {
    i64 volume = 0;
    for (i32 i = 0; i < n; i++) {
        if (slice_volume(piece[i]) == 0 || !inside(piece[i], whole)) return false;
        for (i32 k = 0; k < i; k++)
            if (overlap(piece[i], piece[k])) return false;
        volume += slice_volume(piece[i]);
    }
    return volume == slice_volume(whole);
}
