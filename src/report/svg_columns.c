/* svg_columns.c - a column for each name along the axis, and a line across it for a value to compare with.
 *
 *     error
 *       |  __        __           column: the model
 *       | |  |  --  |  |          line: the naive forecast
 *       +-Mon---Tue--Wed-- */
#include <math.h>

#include "report/svg.h"
#include "report/svg_part.h"

enum { RIGHT = 6, BELOW = 20 };

static f64 largest(const f64 *v, i32 n) {
    f64 most = 0;
    for (i32 i = 0; v && i < n; i++)
        if (isfinite(v[i])) most = dmax(most, v[i]);
    return most;
}

/* Distance between names that are written: all of them, or every second, third .. so that they do not meet. */
static i32 spacing(const struct svg_columns *c, f64 each) {
    f64 widest = 0;
    for (i32 i = 0; i < c->n; i++) widest = dmax(widest, text_width(c->label[i], 11));
    return imax(1, (i32)ceil((widest + 6) / each));
}

static void legend(struct str *b, const struct svg_columns *c, f64 y) {
    str_addf(b, "<rect class=\"st-f0\" rx=\"2\" width=\"12\" height=\"10\" x=\"2\" y=\"%s\"/>\n", svg_number(y + 3).s);
    svg_text(b, 20, y + 12, "st-lg", "", "model");
    if (!c->other) return;
    const f64 x = 20 + text_width("model", 12) + 18;
    svg_line(b, "st-mark", x, y + 8, x + 16, y + 8);
    svg_text(b, x + 22, y + 12, "st-lg", "", c->other_name);
}

static void column(struct str *b, const struct svg_columns *c, i32 i, f64 x, f64 wide, f64 top, f64 high, f64 most) {
    const f64 h = isfinite(c->value[i]) && most > 0 ? high * c->value[i] / most : 0;
    if (h > 0) {
        str_addf(b, "<rect class=\"st-f0\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\">", svg_number(x + .12 * wide).s,
                 svg_number(top + high - h).s, svg_number(.76 * wide).s, svg_number(dmax(1, h)).s);
        text_xmlf(b, "<title>%s: %s</title></rect>\n", c->label[i], text_digits(c->value[i], 3).s);
    }
    if (!c->other || !isfinite(c->other[i]) || most <= 0) return;
    const f64 y = top + high * (1 - c->other[i] / most);
    svg_line(b, "st-mark", x + .04 * wide, y, x + .96 * wide, y);
}

void svg_columns(struct str *b, const struct svg_columns *c) {
    const f64 most = dmax(largest(c->value, c->n), largest(c->other, c->n)), top = 46, high = c->height - top - BELOW;
    struct axis y;
    f64 left = 0;
    axis_make(&y, AXIS_NUMBER, 0, most, high, false);
    for (i32 i = 0; i < y.n; i++) left = dmax(left, text_width(y.tick[i].text, 11));
    left += 12;
    const f64 each = (c->width - left - RIGHT) / imax(1, c->n), full = dmax(most, y.hi);
    const i32 every = spacing(c, each);
    svg_open(b, c->width, c->height, c->alt, false);
    legend(b, c, 2);
    svg_text(b, 2, 36, "st-t", "", c->ylabel);
    for (i32 i = 0; i < y.n; i++) {
        if (y.tick[i].at < 0) continue;
        const f64 at = top + high * (1 - y.tick[i].at / full);
        svg_line(b, y.tick[i].at == 0 ? "st-ax" : "st-g", left, at, c->width - RIGHT, at);
        svg_text(b, left - 6, at + 4, "st-t", "end", y.tick[i].text);
    }
    for (i32 i = 0; i < c->n; i++) {
        column(b, c, i, left + each * i, each, top, high, full);
        if (i % every == 0) svg_text(b, left + each * (i + .5), c->height - 5, "st-t", "middle", c->label[i]);
    }
    str_add(b, "</svg>\n");
}
