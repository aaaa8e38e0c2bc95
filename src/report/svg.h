/* svg.h - a small SVG chart library: lines, bands, points and rules over numeric, logarithmic or calendar axes; timelines. */
#ifndef STRETTO_REPORT_SVG_H
#define STRETTO_REPORT_SVG_H

#include "base/str.h"
#include "report/axis.h"
#include "report/role.h"
#include "report/trace.h"

enum mark {
    MARK_LINE,
    MARK_BAND,   /* between y and y2 */
    MARK_POINTS,
    MARK_RULE    /* a vertical rule at x0, with its name written beside it */
};

struct chart_layer {
    enum mark mark;
    enum role role;
    const char *name; /* legend entry; NULL = not in the legend */
    i32 n;
    const f64 *x;     /* [n]; NULL = x0, x0 + 1, ... */
    f64 x0;
    const f64 *y, *y2;
    bool thin;        /* one of many of its kind */
    bool hover;       /* shows values under the pointer (limited to 200 points) */
};

struct chart {
    const char *title, *xlabel, *ylabel; /* each may be NULL */
    const char *alt;  /* what the picture shows, for those who cannot see it; NULL = title or ylabel */
    bool unnamed;     /* no legend: another chart beside it has the same */
    enum axis_kind xkind, ykind;
    f64 xstep;        /* AXIS_TIME: seconds between points, for the labels under the pointer */
    bool zero;        /* the y axis starts at 0 if all values are positive */
    f64 width, height; /* 0 = 330 x 215 */
    const struct chart_layer *layer; /* the first layer is first in the legend and drawn on top */
    i32 n;
};

/* The <svg> element.  alone: with its own style sheet and background, a complete file.  A picture wider than a phone is not
 * scaled down to it: it needs a box that scrolls. */
void svg_chart(struct str *b, const struct chart *c, bool alone);

/* Timeline: one row per lane of the spans, colored by the first word of the name, with the busy fraction at the right. */
void svg_timeline(struct str *b, const struct span *span, i64 n, f64 width, bool alone);

/* Horizontal bars from the top, in the given order, with name and value (>= 0): importance of columns.  At most 30 are drawn. */
struct svg_bar {
    const char *name;
    f64 value;
};
void svg_bars(struct str *b, const struct svg_bar *bar, i32 n, bool alone);

/* A column for each name, and a line across it for a value to compare with (other may be NULL); values >= 0, NaN = none. */
struct svg_columns {
    const char *alt, *ylabel, *other_name;
    i32 n;
    const char *const *label; /* [n] */
    const f64 *value, *other; /* [n] */
    f64 width, height;
};
void svg_columns(struct str *b, const struct svg_columns *c);

/* Confusion matrix: counts [n][n] by true class (rows) and predicted class (columns), each shaded by its share of the row.
 * Numbers up to 40 classes; of more than 100 classes the first 100 are drawn. */
void svg_matrix(struct str *b, const char *const *label, i32 n, const i64 *count, bool alone);

/* A complete file of n charts that were made with alone = false, below each other. */
void svg_stack(struct str *b, const char *label, const char *const *svg, i32 n);

/* The style sheet for SVG elements embedded in a page. */
const char *svg_style(void);

#endif
