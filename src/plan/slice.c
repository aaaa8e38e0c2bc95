/* slice.c - cut rows by count or by weight. */
#include "plan/slice.h"

/* Micro-batches [from,to) of a box. */
static struct slice rows(struct slice whole, i32 grain, i32 from, i32 to) {
    struct slice s = whole;
    s.b0 = whole.b0 + from * grain;
    s.b1 = imin(whole.b0 + to * grain, whole.b1);
    return s;
}

i32 slice_cut_count(struct slice whole, i32 grain, i32 n, struct slice *out) {
    const i32 grains = ceil_div(whole.b1 - whole.b0, grain), pieces = imin(n, grains);
    for (i32 i = 0, at = 0, next; i < pieces; i++, at = next) {
        next = at + grains / pieces + (i < grains % pieces);
        out[i] = rows(whole, grain, at, next);
    }
    return pieces;
}

/* Borders at the rounded cumulative weight, so that no piece is off by more than one micro-batch. */
i32 slice_cut_weight(struct slice whole, i32 grain, i32 n, const f64 *weight, struct slice *out, i32 *owner) {
    const i32 grains = ceil_div(whole.b1 - whole.b0, grain);
    i32 pieces = 0, at = 0;
    f64 total = 0, sum = 0;
    for (i32 i = 0; i < n; i++) total += weight[i];
    for (i32 i = 0; i < n && at < grains; i++) {
        sum += weight[i];
        i32 next = total > 0 ? (i32)((f64)grains * sum / total + 0.5) : grains;
        if (i == n - 1) next = grains;
        if (next <= at || weight[i] <= 0) continue;
        out[pieces] = rows(whole, grain, at, next);
        owner[pieces++] = i;
        at = next;
    }
    if (pieces > 0) out[pieces - 1].b1 = whole.b1; /* the last devices may have weight 0 */
    return pieces;
}
