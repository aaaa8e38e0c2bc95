/* svg.c - see svg.h. */
#include "report/svg.h"

#include <math.h>
#include <string.h>

#include "report/svg_part.h"
#include "report/text.h"

enum { HOVER_MOST = 200, PHONE = 400, FINE = 150 }; /* FINE: points of a line that a thick pen would blot */

/* The plot area in pixels and its axes. */
struct plot {
    const struct chart *c;
    struct axis x, y;
    f64 left, top, w, h;
};
enum { RIGHT = 18 }; /* margin to the right of a plot */

static f64 px(const struct plot *p, f64 x) { return p->left + p->w * axis_place(&p->x, x); }
static f64 py(const struct plot *p, f64 y) { return p->top + p->h * (1 - axis_place(&p->y, y)); }
static f64 x_of(const struct chart_layer *l, i32 i) { return l->x ? l->x[i] : l->x0 + i; }

static bool drawable(const struct chart *c, const struct chart_layer *l, i32 i) {
    f64 x = x_of(l, i), y = l->y[i];
    if (!isfinite(x) || !isfinite(y) || (l->y2 && !isfinite(l->y2[i]))) return false;
    if (c->xkind == AXIS_LOG && x <= 0) return false;
    return c->ykind != AXIS_LOG || (y > 0 && (!l->y2 || l->y2[i] > 0));
}

struct figure svg_number(f64 v) {
    v = floor(v * 10 + .5) / 10;
    return text_fixed(v, v == floor(v) ? 0 : 1);
}

void svg_text(struct str *b, f64 x, f64 y, const char *class, const char *anchor, const char *s) {
    str_addf(b, "<text class=\"%s\" x=\"%s\" y=\"%s\"", class, svg_number(x).s, svg_number(y).s);
    if (*anchor) str_addf(b, " text-anchor=\"%s\"", anchor);
    text_xmlf(b, ">%s</text>\n", s);
}

void svg_line(struct str *b, const char *class, f64 x1, f64 y1, f64 x2, f64 y2) {
    str_addf(b, "<line class=\"%s\" x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"/>\n", class, svg_number(x1).s, svg_number(y1).s,
             svg_number(x2).s, svg_number(y2).s);
}

void svg_open(struct str *b, f64 w, f64 h, const char *label, bool alone) {
    const struct figure wide = svg_number(w), high = svg_number(h);
    str_addf(b, "<svg class=\"st\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 %s %s\"", wide.s, high.s);
    if (alone) str_addf(b, " width=\"%s\" height=\"%s\"", wide.s, high.s);
    else if (w > PHONE)
        str_addf(b, " style=\"min-width:%dpx;max-width:%dpx\"", (i32)(.8 * w), (i32)(1.3 * w)); /* scrolls within its section */
    text_xmlf(b, " aria-label=\"%s\">\n", label);
    if (!alone) return;
    str_addf(b, "<style>%s</style>\n<rect class=\"st-bg\" width=\"100%%\" height=\"100%%\"/>\n", svg_style());
}

/* Smallest and largest drawable value over all layers, on x (axis 0) or y (axis 1). */
static void range(const struct chart *c, i32 axis, f64 *lo, f64 *hi) {
    *lo = INFINITY;
    *hi = -INFINITY;
    for (i32 k = 0; k < c->n; k++) {
        const struct chart_layer *l = &c->layer[k];
        if (l->mark == MARK_RULE) continue;
        for (i32 i = 0; i < l->n; i++) {
            if (!drawable(c, l, i)) continue;
            f64 a = axis ? l->y[i] : x_of(l, i), z = axis && l->y2 ? l->y2[i] : a;
            *lo = dmin(*lo, dmin(a, z));
            *hi = dmax(*hi, dmax(a, z));
        }
    }
}

/* Draws a legend entry: a sample of the mark, then the name; returns the width used. */
static f64 legend_entry(struct str *b, const struct chart_layer *l, f64 x, f64 y) {
    if (l->mark == MARK_LINE) {
        str_addf(b, "<path class=\"st-l st-l%d\" d=\"M%s %sh22\"/>\n", l->role, svg_number(x).s, svg_number(y - 4).s);
    } else {
        bool band = l->mark == MARK_BAND;
        str_addf(b, "<rect class=\"%s st-f%d\" rx=\"%d\" x=\"%s\" y=\"%s\" width=\"%d\" height=\"10\"/>\n",
                 band ? "st-b" : "st-p", l->role, band ? 2 : 5, svg_number(x + (band ? 0 : 6)).s, svg_number(y - 9).s,
                 band ? 22 : 10);
    }
    svg_text(b, x + 28, y, "st-lg", "", l->name);
    return 28 + text_width(l->name, 12) + 18;
}

/* Draws the legend, wrapped; returns the y below it. */
static f64 legend(struct str *b, const struct chart *c, f64 x0, f64 y, f64 width) {
    f64 x = x0;
    i32 shown = 0;
    for (i32 k = 0; k < c->n; k++) {
        const struct chart_layer *l = &c->layer[k];
        if (!l->name || l->mark == MARK_RULE) continue;
        f64 w = 28 + text_width(l->name, 12);
        if (x > x0 && x + w > x0 + width) {
            x = x0;
            y += 18;
        }
        x += legend_entry(b, l, x, y + 12);
        shown++;
    }
    return shown ? y + 22 : y;
}

/* Draws a label centered below x, shifted to stay inside the picture. */
static void label_below(struct str *b, f64 x, f64 y, f64 width, const char *text) {
    const f64 half = .5 * text_width(text, 11) + 1;
    if (text[0]) svg_text(b, dmax(half, dmin(x, width - half)), y, "st-t", "middle", text);
}

static void grid(struct str *b, const struct plot *p) {
    for (i32 i = 0; i < p->y.n; i++) {
        const struct tick *t = &p->y.tick[i];
        f64 y = py(p, t->at);
        svg_line(b, "st-g", p->left, y, p->left + p->w, y);
        svg_text(b, p->left - 8, y + 4, "st-t", "end", t->text);
    }
    f64 bottom = p->top + p->h;
    svg_line(b, "st-ax", p->left, bottom, p->left + p->w, bottom);
    for (i32 i = 0; i < p->x.n; i++) {
        const struct tick *t = &p->x.tick[i];
        f64 x = px(p, t->at);
        svg_line(b, "st-ax", x, bottom, x, bottom + 4);
        label_below(b, x, bottom + 17, p->left + p->w + RIGHT, t->text);
        label_below(b, x, bottom + 31, p->left + p->w + RIGHT, t->under);
    }
}

static void point_to(struct str *b, char op, f64 x, f64 y) {
    str_addf(b, "%c%s %s", op, svg_number(x).s, svg_number(y).s);
}

/* Draws a line; if several points share a pixel column, only its ends and extremes. */
static void draw_line(struct str *b, const struct plot *p, const struct chart_layer *l) {
    str_addf(b, "<path class=\"st-l st-l%d%s\" d=\"", l->role, l->thin ? " st-thin" : l->n > FINE ? " st-fine" : "");
    bool pen = false, dense = l->n > 3 * (i32)p->w;
    f64 column = -1, lo = 0, hi = 0, last = 0;
    for (i32 i = 0; i < l->n; i++) {
        if (!drawable(p->c, l, i)) {
            pen = false;
            continue;
        }
        f64 x = px(p, x_of(l, i)), y = py(p, l->y[i]);
        if (!dense || !pen || floor(x) != column) {
            if (dense && pen && lo < hi) {
                point_to(b, 'L', column + .5, lo);
                point_to(b, 'L', column + .5, hi);
                point_to(b, 'L', column + .5, last);
            }
            point_to(b, pen ? 'L' : 'M', x, y);
            column = floor(x);
            lo = hi = y;
        }
        pen = true;
        lo = dmin(lo, y);
        hi = dmax(hi, y);
        last = y;
    }
    str_add(b, "\"/>\n");
}

/* Draws one polygon per contiguous range: along y, back along y2. */
static void draw_band(struct str *b, const struct plot *p, const struct chart_layer *l) {
    for (i32 from = 0; from < l->n; from++) {
        i32 to = from;
        while (to < l->n && drawable(p->c, l, to)) to++;
        if (to - from >= 2) {
            str_addf(b, "<path class=\"st-b st-f%d\" d=\"", l->role);
            for (i32 i = from; i < to; i++) point_to(b, i == from ? 'M' : 'L', px(p, x_of(l, i)), py(p, l->y[i]));
            for (i32 i = to - 1; i >= from; i--) point_to(b, 'L', px(p, x_of(l, i)), py(p, l->y2[i]));
            str_add(b, "Z\"/>\n");
        }
        from = to;
    }
}

static void draw_points(struct str *b, const struct plot *p, const struct chart_layer *l, const char *class, i32 radius) {
    for (i32 i = 0; i < l->n; i++) {
        if (!drawable(p->c, l, i)) continue;
        const f64 x = x_of(l, i);
        const struct figure at = p->c->xkind == AXIS_TIME ? text_time(x, p->c->xstep) : text_digits(x, 6);
        str_addf(b, "<circle class=\"%s st-f%d\" r=\"%d\" cx=\"%s\" cy=\"%s\">", class, l->role, radius, svg_number(px(p, x)).s,
                 svg_number(py(p, l->y[i])).s);
        text_xmlf(b, "<title>%s%s%s: %s</title></circle>\n", l->name, l->name ? ", " : "", at.s, text_digits(l->y[i], 4).s);
    }
}

static void draw_rule(struct str *b, const struct plot *p, const struct chart_layer *l) {
    f64 at = axis_place(&p->x, l->x0), x = px(p, l->x0);
    if (!(at >= 0 && at <= 1)) return;
    svg_line(b, "st-ax", x, p->top, x, p->top + p->h);
    bool left = l->name && x + 6 + text_width(l->name, 11) > p->left + p->w;
    if (l->name) svg_text(b, left ? x - 6 : x + 6, p->top + 11, "st-t", left ? "end" : "", l->name);
}

/* Draws bands, rules, lines, then points; within a kind the first layer is drawn last, on top. */
static void draw_layers(struct str *b, const struct plot *p) {
    const struct chart *c = p->c;
    for (i32 k = c->n - 1; k >= 0; k--)
        if (c->layer[k].mark == MARK_BAND) draw_band(b, p, &c->layer[k]);
    for (i32 k = c->n - 1; k >= 0; k--)
        if (c->layer[k].mark == MARK_RULE) draw_rule(b, p, &c->layer[k]);
    for (i32 k = c->n - 1; k >= 0; k--)
        if (c->layer[k].mark == MARK_LINE) draw_line(b, p, &c->layer[k]);
    for (i32 k = c->n - 1; k >= 0; k--) {
        const struct chart_layer *l = &c->layer[k];
        if (l->mark == MARK_POINTS) draw_points(b, p, l, "st-p", 5);
        if (l->mark == MARK_LINE && l->hover && l->n <= HOVER_MOST) draw_points(b, p, l, "st-h", 4);
    }
}

/* Reserves room for the widest y label and makes the axes for the rest. */
static void lay_out(struct plot *p, f64 width, f64 height) {
    const struct chart *c = p->c;
    f64 lo, hi;
    range(c, 1, &lo, &hi);
    if (c->zero && c->ykind == AXIS_NUMBER && lo > 0) lo = 0;
    p->h = height - p->top - (c->xkind == AXIS_TIME ? 38 : 24) - (c->xlabel ? 16 : 0);
    axis_make(&p->y, c->ykind, lo, hi, p->h, false);
    f64 widest = 0;
    for (i32 i = 0; i < p->y.n; i++) widest = dmax(widest, text_width(p->y.tick[i].text, 11));
    p->left = widest + 14;
    p->w = width - p->left - RIGHT;
    range(c, 0, &lo, &hi);
    axis_make(&p->x, c->xkind, lo, hi, p->w, true);
}

void svg_chart(struct str *b, const struct chart *c, bool alone) {
    f64 width = c->width > 0 ? c->width : 330, height = c->height > 0 ? c->height : 215, y = alone ? 12 : 2;
    struct plot p = {.c = c};
    svg_open(b, width, height, c->alt ? c->alt : c->title ? c->title : c->ylabel ? c->ylabel : "chart", alone);
    f64 inset = alone ? 14 : 2;
    if (c->title) {
        svg_text(b, inset, y + 13, "st-tt", "", c->title);
        y += 26;
    }
    if (!c->unnamed) y = legend(b, c, inset, y, width - 2 * inset);
    if (c->ylabel) {
        svg_text(b, inset, y + 10, "st-t", "", c->ylabel);
        y += 16;
    }
    p.top = y + 8;
    lay_out(&p, width, height - (alone ? 8 : 0));
    grid(b, &p);
    if (c->xlabel) svg_text(b, p.left + p.w, height - (alone ? 12 : 4), "st-t", "end", c->xlabel);
    draw_layers(b, &p);
    str_add(b, "</svg>\n");
}
