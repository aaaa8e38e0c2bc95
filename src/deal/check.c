/* check.c - whether devices and work make sense. */
#include <math.h>

#include "deal/inside.h"

static bool positive(f64 v) { return v >= 0 && isfinite(v); }

static err check_device(const struct deal_device *v, i32 i) {
    if (!positive(v->rate) || !positive(v->weight) || !positive(v->overhead_s) || !positive(v->bytes_per_s))
        return FAIL(E401, "device %d: rates, weight and overhead are numbers from 0 on", i);
    if (v->free_bytes < 0 || v->lanes_most < 0 || v->lanes_most > DEAL_LANES)
        return FAIL(E401, "device %d: free bytes are 0 or more, lanes 0 to %d", i, DEAL_LANES);
    return 0;
}

err deal_check(const struct deal_device *device, i32 n, const struct deal_work *w) {
    if (n < 1) return FAIL(E401, "work needs at least one device");
    if (w->nparts < 0 || w->grain < 1 || w->row_bytes < 0)
        return FAIL(E401, "work needs partitions, a grain of at least one row and bytes from 0 on");
    for (i32 i = 0; i < n; i++) TRY(check_device(&device[i], i));
    i64 rows = 0;
    for (i32 i = 0; i < w->nparts; i++) {
        const struct deal_part *p = &w->part[i];
        if (p->rows < 0 || !(p->cost > 0) || !isfinite(p->cost))
            return FAIL(E401, "partition %d: rows are 0 or more, the cost of a row is above 0", i);
        if (__builtin_add_overflow(rows, p->rows, &rows)) return FAIL(E401, "partitions have more rows than can be counted");
        if (w->home && (w->home[i] < -1 || w->home[i] >= n))
            return FAIL(E401, "partition %d lies on device %d of %d", i, w->home[i], n);
    }
    return 0;
}
