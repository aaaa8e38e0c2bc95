/* cut.c - see cut.h. */
#include "base/cut.h"

#include <math.h>

#include "base/mem.h"

/* best of the row's first i items in one part more, from those in `old`; from: where that part begins. */
static void one_more(const struct cut *c, i32 part, const f64 *old, f64 *best, i32 *from) {
    for (i32 i = 0; i <= c->items; i++) {
        best[i] = (f64)INFINITY;
        from[i] = 0;
        for (i32 n = 0; n <= i; n++) {
            const i32 j = c->late ? n : i - n;
            const f64 longest = dmax(old[j], c->cost(c->self, j, i, part));
            if (!(longest < best[i])) continue;
            best[i] = longest;
            from[i] = j;
        }
    }
}

err cut_row(const struct cut *c, i32 *border, f64 *longest) {
    const i64 width = (i64)c->items + 1;
    f64 *best;
    i32 *from;
    NEW(best, 2 * width);
    const err e = mem_new((void **)&from, c->parts * width, sizeof *from);
    for (i64 i = 1; i < width; i++) best[i] = (f64)INFINITY;
    for (i32 k = 0; k < c->parts && e >= 0; k++)
        one_more(c, k, best + (k & 1) * width, best + (~k & 1) * width, from + k * width);
    if (e >= 0) {
        *longest = best[(c->parts & 1) * width + c->items];
        border[c->parts] = c->items;
        for (i32 k = c->parts - 1; k >= 0; k--) border[k] = from[k * width + border[k + 1]];
    }
    mem_free(best);
    mem_free(from);
    return e;
}
