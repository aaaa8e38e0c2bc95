/* svg_stack.c - several charts below each other in one SVG file. */
#include <stdlib.h>
#include <string.h>

#include "report/svg.h"
#include "report/svg_part.h"

/* Width and height that svg_open wrote. */
static bool size_of(const char *svg, f64 *w, f64 *h) {
    static const char begin[] = "viewBox=\"0 0 ";
    const char *at = strstr(svg, begin), *blank = at ? strchr(at + sizeof begin - 1, ' ') : NULL;
    if (!blank) return false;
    at += sizeof begin - 1;
    return str_to_f64(at, (size_t)(blank - at), '.', w) && str_to_f64(blank + 1, strcspn(blank + 1, "\""), '.', h);
}

void svg_stack(struct str *b, const char *label, const char *const *svg, i32 n) {
    f64 w, h, wide = 0, high = 0, y = 0;
    for (i32 i = 0; i < n; i++)
        if (size_of(svg[i], &w, &h)) wide = dmax(wide, w), high += h;
    svg_open(b, wide, high, label, true);
    for (i32 i = 0; i < n; i++) {
        if (!size_of(svg[i], &w, &h)) continue;
        str_addf(b, "<svg y=\"%s\" width=\"%s\" height=\"%s\"", svg_number(y).s, svg_number(w).s, svg_number(h).s);
        str_add(b, svg[i] + strlen("<svg"));
        y += h;
    }
    str_add(b, "</svg>\n");
}
