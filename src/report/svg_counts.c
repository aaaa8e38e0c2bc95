/* svg_counts.c - bars and matrices of counts: importance of columns, confusion of classes. */
#include <math.h>

#include "report/svg.h"
#include "report/svg_part.h"

enum { WIDTH = 330, MATRIX = 560, BARS_MOST = 30, BAR = 20, CLASSES_MOST = 100, NUMBERS_MOST = 40 };

static void line_more(struct str *b, f64 x, f64 y, i32 left, const char *what) {
    struct str text = {0};
    str_addf(&text, "and %d more %s", left, what);
    svg_text(b, x, y, "st-t", "", str_text(&text));
    str_free(&text);
}

static f64 widest(const char *const *name, i32 n, f64 most) {
    f64 w = 0;
    for (i32 i = 0; i < n; i++) w = dmax(w, text_width(name[i], 11));
    return dmin(w, most);
}

static void rectangle(struct str *b, const char *class, f64 x, f64 y, f64 w, f64 h, f64 opacity) {
    str_addf(b, "<rect class=\"%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill-opacity=\"%s\"/>\n", class, svg_number(x).s,
             svg_number(y).s, svg_number(w).s, svg_number(h).s, text_fixed(opacity, 2).s);
}

void svg_bars(struct str *b, const struct svg_bar *bar, i32 n, bool alone) {
    const i32 shown = n > BARS_MOST ? BARS_MOST : n;
    const f64 high = 8 + BAR * (shown + (shown < n)) + 4;
    f64 most = 0, left = 0;
    for (i32 i = 0; i < shown; i++) {
        most = dmax(most, bar[i].value);
        left = dmax(left, text_width(bar[i].name, 11));
    }
    left = dmin(left, 0.4 * WIDTH) + 14;
    svg_open(b, WIDTH, high, "bars", alone);
    for (i32 i = 0; i < shown; i++) {
        const f64 y = 8 + BAR * i, w = most > 0 ? (WIDTH - left - 54) * bar[i].value / most : 0;
        svg_text(b, left - 8, y + 12, "st-t", "end", bar[i].name);
        rectangle(b, "st-f0", left, y + 2, dmax(1, w), BAR - 7, 1);
        svg_text(b, left + w + 8, y + 12, "st-t", "", text_digits(bar[i].value, 3).s);
    }
    if (shown < n) line_more(b, left, 8 + BAR * shown + 12, n - shown, "columns");
    str_add(b, "</svg>\n");
}

struct matrix {
    const char *const *label;
    const i64 *count; /* [n][n] */
    i32 n, shown;
    f64 left, top, cell;
};

/* One row: the shade of a cell is its share of the row. */
static void matrix_row(struct str *b, const struct matrix *m, i32 truth) {
    const i64 *count = m->count + (i64)truth * m->n;
    const bool numbers = m->shown <= NUMBERS_MOST && m->cell >= 12;
    i64 all = 0;
    for (i32 k = 0; k < m->shown; k++) all += count[k];
    for (i32 k = 0; k < m->shown; k++) {
        const f64 x = m->left + m->cell * k, y = m->top + m->cell * truth, share = (f64)count[k] / (f64)lmax(1, all);
        const struct figure text = text_si((f64)count[k]);
        if (count[k] == 0) continue;
        rectangle(b, k == truth ? "st-f2" : "st-f1", x, y, m->cell - 1, m->cell - 1, 0.12 + 0.78 * share);
        if (numbers && text_width(text.s, 9.5) < m->cell + 2)
            svg_text(b, x + 0.5 * (m->cell - 1), y + 0.5 * m->cell + 3, share > 0.68 ? "st-on" : "st-n", "middle", text.s);
    }
}

/* Classes up to the last one that occurs: a class for what is unknown may be empty. */
static i32 used(i32 n, const i64 *count) {
    for (i32 last = n; last > 1; last--)
        for (i32 i = 0; i < n; i++)
            if (count[(i64)(last - 1) * n + i] || count[(i64)i * n + last - 1]) return last;
    return imin(n, 1);
}

void svg_matrix(struct str *b, const char *const *label, i32 n, const i64 *count, bool alone) {
    const i32 all = used(n, count), shown = imin(all, CLASSES_MOST);
    const f64 left = widest(label, shown, 0.3 * MATRIX) + 14, cell = dmin(36, (MATRIX - left) / imax(1, shown)), top = 22;
    const f64 high = top + cell * shown + 26, wide = dmax(WIDTH, left + cell * shown + 4);
    svg_open(b, wide, high, "matrix of counts: shares of each row by column", alone);
    for (i32 k = 0; k < shown && (cell >= 9 || shown == all); k++) {
        if (cell < 9 && k % 5) continue;
        svg_text(b, left - 8, top + cell * (k + 0.5) + 4, "st-t", "end", label[k]);
        if (text_width(label[k], 11) < cell + 2) svg_text(b, left + cell * (k + 0.5), top - 7, "st-t", "middle", label[k]);
    }
    const struct matrix m = {label, count, n, shown, left, top, cell};
    for (i32 i = 0; i < shown; i++) matrix_row(b, &m, i);
    if (alone) svg_text(b, 4, high - 8, "st-t", "", "rows: true class; columns: predicted class");
    if (shown < all) line_more(b, alone ? 270 : left, high - 8, all - shown, "classes");
    str_add(b, "</svg>\n");
}
