/* charts_bands.c - charts of the quantiles: calibration, and the coverage of the outermost band by step. */
#include "report/html_part.h"

#include <math.h>
#include <stdio.h>

enum { QUANTILES = 32 };

/* Share of the targets below each quantile against the share that it promises: on the line of equal shares where they agree. */
void chart_calibration(struct str *b, const struct report_calibration *c, f64 width, f64 height) {
    static const f64 ends[2] = {0, 100};
    f64 level[QUANTILES], below[QUANTILES];
    const i32 n = imin(c->n, QUANTILES);
    for (i32 i = 0; i < n; i++) {
        level[i] = 100 * c->level[i];
        below[i] = 100 * c->below[i];
    }
    const struct chart_layer l[] = {{.mark = MARK_POINTS, .role = ROLE_MODEL, .name = "observed", .n = n, .x = level, .y = below},
                                    {.role = ROLE_MODEL, .n = n, .x = level, .y = below},
                                    {.role = ROLE_QUIET, .name = "equal shares", .n = 2, .x = ends, .y = ends}};
    svg_chart(b,
              &(struct chart){.alt = "observed share of targets below each quantile against its nominal level",
                              .xlabel = "level of the quantile, %",
                              .ylabel = "targets below it, %",
                              .width = width,
                              .height = height,
                              .layer = l,
                              .n = (i32)COUNT(l)},
              false);
}

void chart_coverage(struct str *b, const struct report_calibration *c, f64 width, f64 height) {
    const f64 want = 100 * (c->to - c->from), at[2] = {1, c->nstep}, level[2] = {want, want};
    char name[48];
    snprintf(name, sizeof name, "should: %.3g %%", want);
    const struct chart_layer l[] = {
        {.role = ROLE_MODEL, .name = "inside the band", .n = c->nstep, .x0 = 1, .y = c->step, .hover = true},
        {.role = ROLE_QUIET, .name = name, .n = 2, .x = at, .y = level}};
    svg_chart(b,
              &(struct chart){.alt = "share of targets inside the outermost band at each step of the horizon",
                              .xlabel = "steps ahead",
                              .ylabel = "targets inside, %",
                              .xkind = AXIS_WHOLE,
                              .width = width,
                              .height = height,
                              .layer = l,
                              .n = (i32)COUNT(l)},
              false);
}
