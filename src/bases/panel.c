/* panel.c - the base of a panel: the mix of rules and ridge, or a ridge alone, whichever forecasts the validation rows better.
 *
 * The families of a mix are weighed over rolling origins inside of the training rows.  A panel may have many series of few rows:
 * then most of these origins leave too few rows for a ridge, which the windows of all series together fit well. */
#include <math.h>

#include "base/mem.h"
#include "bases/base.h"

enum { PANEL_WINDOWS = 4000 };

/* Mean absolute error on validation windows: evenly chosen origins, all columns of each, or evenly chosen ones of many. */
static f64 error_on_validation(const struct series *s, const struct base_spec *p, const struct base *b, f32 *out) {
    const i64 n = p->valid - p->H - p->train + 1, origins = lmin(n, lmax(1, PANEL_WINDOWS / p->ncol));
    const i32 step = imax(1, p->ncol / PANEL_WINDOWS);
    f64 sum = 0, cells = 0;
    for (i64 i = 0; i < origins; i++) {
        const i64 origin = p->train + i * n / origins;
        for (i32 c = 0; c < p->ncol; c += step) {
            if (s->from[c] >= origin) continue;
            base_predict(b, s, c, origin, p->H, out);
            for (i32 h = 0; h < p->H; h++) {
                const f64 e = fabs((f64)series_target(s, c, origin + h) - (f64)out[h]);
                if (!isnan(e)) sum += e, cells++;
            }
        }
    }
    return cells > 0 ? sum / cells : INFINITY;
}

/* The better one of a mix and a ridge, which have not seen the validation rows; *ridge: NULL = the mix. */
static err compare(const struct series *s, const struct base_spec *p, const struct base *mix, struct base **ridge) {
    f32 *out;
    NEW(out, p->H);
    if (!(error_on_validation(s, p, *ridge, out) < error_on_validation(s, p, mix, out))) {
        base_free(*ridge);
        *ridge = NULL;
    }
    mem_free(out);
    return 0;
}

err base_panel(const struct series *s, const struct base_spec *p, struct mix *table, bool *mixed, struct base **out) {
    struct base_spec all = *p;
    struct base *mix = NULL, *ridge = NULL;
    all.train = p->valid;
    *mixed = true;
    if (p->valid - p->train < p->H) return base_mix(s, &all, table, out);
    err e = base_ridge(s, p, &ridge);
    if (e == -E301) { /* too few rows: the mix has rules that need less */
        err_clear();
        return base_mix(s, &all, table, out);
    }
    if (e >= 0) e = base_mix(s, p, table, &mix);
    if (e >= 0) e = compare(s, p, mix, &ridge);
    base_free(mix);
    if (e < 0) {
        base_free(ridge);
        return e;
    }
    *mixed = !ridge;
    *out = ridge;
    return ridge ? 0 : base_mix(s, &all, table, out); /* weighed on all rows before the test part, as every mix */
}
