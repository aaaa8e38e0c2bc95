/* timeline.c - timeline chart: one row per lane (worker, agent, link) with its spans over time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/svg.h"
#include "report/svg_part.h"
#include "report/text.h"

enum { LANES_MOST = 64, KINDS_MOST = 8, ROW = 22, BAR = 14 };

/* The kind of a span is the first word of its name. Idle and waiting are muted; other kinds take the colors in order. */
struct kinds {
    char name[KINDS_MOST][24];
    enum role role[KINDS_MOST];
    i32 n;
};

struct row {
    const char *name;
    i32 rank;
    f64 busy;      /* seconds */
    f64 from, to;  /* the bar being extended, in pixels; to < from = none */
    i32 kind;
};

static const enum role colour_order[] = {ROLE_MODEL, ROLE_BASE, ROLE_RIDGE, ROLE_SNAIVE, ROLE_A, ROLE_B, ROLE_C, ROLE_D};

static bool is_idle(const char *word) { return strcmp(word, "wait") == 0 || strcmp(word, "idle") == 0; }

static i32 kind_of(struct kinds *k, const char *name) {
    char word[24];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, " "), name);
    for (i32 i = 0; i < k->n; i++)
        if (strcmp(k->name[i], word) == 0) return i;
    if (k->n == KINDS_MOST) return KINDS_MOST - 1;
    memcpy(k->name[k->n], word, sizeof word);
    k->role[k->n] = is_idle(word) ? ROLE_QUIET : colour_order[k->n];
    return k->n++;
}

static i32 row_of(struct row *row, i32 *n, const struct span *s) {
    for (i32 i = 0; i < *n; i++)
        if (row[i].rank == s->rank && strcmp(row[i].name, s->lane) == 0) return i;
    if (*n == LANES_MOST) return -1;
    row[*n] = (struct row){.name = s->lane, .rank = s->rank, .from = 0, .to = -1};
    return (*n)++;
}

static void flush_bar(struct str *b, struct row *r, const struct kinds *k, f64 top) {
    if (r->to < r->from) return;
    str_addf(b, "<rect class=\"st-f%d\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%d\"/>\n", k->role[r->kind],
             text_fixed(r->from, 2).s, svg_number(top).s, text_fixed(dmax(.4, r->to - r->from), 2).s, BAR);
    r->to = r->from - 1;
}

/* Plot area of the rows. */
struct field {
    const struct axis *x;
    f64 left, w, top;
};

/* Draws spans in the given order; spans of one kind that touch on the screen are merged into one bar, which limits the file
 * size. */
static void draw_bars(struct str *b, const struct span *s, i64 n, struct row *row, i32 rows, struct kinds *kinds,
                      const struct field *at) {
    for (i64 i = 0; i < n; i++) {
        i32 r = row_of(row, &rows, &s[i]);
        if (r < 0) continue;
        i32 kind = kind_of(kinds, s[i].name);
        f64 from = at->left + at->w * axis_place(at->x, s[i].t0 * 1e3), to = at->left + at->w * axis_place(at->x, s[i].t1 * 1e3);
        struct row *bar = &row[r];
        if (bar->to >= bar->from && bar->kind == kind && from - bar->to < .35 && from >= bar->from) {
            bar->to = dmax(bar->to, to);
            continue;
        }
        flush_bar(b, bar, kinds, at->top + ROW * r + (ROW - BAR) / 2.);
        bar->from = from;
        bar->to = to;
        bar->kind = kind;
    }
    for (i32 r = 0; r < rows; r++) flush_bar(b, &row[r], kinds, at->top + ROW * r + (ROW - BAR) / 2.);
}

/* Returns the y below the legend; b NULL = measure only. */
static f64 draw_legend(struct str *b, const struct kinds *k, f64 width) {
    const f64 x0 = 2;
    f64 x = x0, y = 2;
    for (i32 i = 0; i < k->n; i++) {
        f64 w = 18 + text_width(k->name[i], 12) + 16;
        if (x > x0 && x + w > x0 + width) {
            x = x0;
            y += 18;
        }
        if (b) {
            str_addf(b, "<rect class=\"st-f%d\" rx=\"2\" width=\"12\" height=\"12\" x=\"%s\" y=\"%s\"/>\n", k->role[i],
                     svg_number(x).s, svg_number(y + 2).s);
            svg_text(b, x + 18, y + 12, "st-lg", "", k->name[i]);
        }
        x += w;
    }
    return y + 26;
}

static void draw_axis(struct str *b, const struct axis *x, f64 left, f64 w, f64 top, f64 bottom) {
    for (i32 i = 0; i < x->n; i++) {
        f64 at = left + w * axis_place(x, x->tick[i].at);
        svg_line(b, "st-g", at, top, at, bottom);
        svg_text(b, at, bottom + 16, "st-t", "middle", x->tick[i].text);
    }
    svg_line(b, "st-ax", left, bottom, left + w, bottom);
    svg_text(b, left + w + 8, bottom + 16, "st-t", "", "ms");
}

void svg_timeline(struct str *b, const struct span *span, i64 n, f64 width, bool alone) {
    struct row row[LANES_MOST];
    struct kinds kinds = {0};
    i32 rows = 0;
    f64 lo = INFINITY, hi = -INFINITY, name = 0;
    for (i64 i = 0; i < n; i++) {
        i32 r = row_of(row, &rows, &span[i]), kind = kind_of(&kinds, span[i].name);
        lo = dmin(lo, span[i].t0);
        hi = dmax(hi, span[i].t1);
        if (r >= 0 && !is_idle(kinds.name[kind])) row[r].busy += dmax(0, span[i].t1 - span[i].t0);
    }
    for (i32 r = 0; r < rows; r++) name = dmax(name, text_width(row[r].name, 12));
    f64 left = name + 16, w = width - left - 56, height = draw_legend(NULL, &kinds, width - 4) + ROW * rows + 24;
    struct axis x;
    axis_make(&x, AXIS_NUMBER, lo * 1e3, hi * 1e3, w, true);
    svg_open(b, width, height, "timeline of the threads", alone);
    f64 top = draw_legend(b, &kinds, width - 4), bottom = top + ROW * rows + 2;
    draw_axis(b, &x, left, w, top, bottom);
    for (i32 r = 0; r < rows; r++) {
        char share[16];
        f64 y = top + ROW * r + ROW / 2. + 4;
        svg_text(b, left - 10, y, "st-lg", "end", row[r].name);
        snprintf(share, sizeof share, "%d%%", (i32)(100 * row[r].busy / dmax(1e-12, hi - lo) + .5));
        svg_text(b, left + w + 8, y, "st-t", "", share);
    }
    draw_bars(b, span, n, row, rows, &kinds, &(struct field){&x, left, w, top});
    str_add(b, "</svg>\n");
}
