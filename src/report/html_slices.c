/* html_slices.c - the report section "Time slices": rounds of each recurrent layer, and the last step as a picture.
 *
 *     round 1  ######## ######## ########     a column is a slice (or several), its height the fraction that ran
 *     round 2           ###      # */
#include <math.h>
#include <stdio.h>

#include "report/html_part.h"
#include "report/svg_part.h"
#include "report/text.h"

enum { COLUMNS = 160, WIDTH = 1000, LEFT = 74, ROW = 26, BAR = 20 };

static void cell(struct str *b, f64 v, i32 decimals, const char *unit) {
    if (isfinite(v)) str_addf(b, "<td class=\"n\">%s%s</td>", text_fixed(v, decimals).s, unit);
    else str_add(b, "<td class=\"n\"></td>");
}

static void line(struct str *b, const struct report_slices *s) {
    text_xmlf(b, "<tr><th scope=\"row\">%s</th><td class=\"n\">%d × %d</td>", s->layer, s->nslice, s->steps);
    cell(b, s->rounds[0], 2, "");
    cell(b, s->rounds[1], 2, "");
    cell(b, s->forgets > 0 ? s->forgets : (f64)NAN, 0, "");
    cell(b, 100 * s->again[0], 1, " %");
    cell(b, 100 * s->again[1], 1, " %");
    cell(b, 100 * s->useful, 1, " %");
    str_addf(b, "<td class=\"n\">%lld of %lld</td><td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n", (long long)s->serial,
             (long long)s->trained, text_digits(s->gap[0], 2).s, text_digits(s->gap[1], 2).s);
}

static void table(struct str *b, const struct report *r) {
    static const char *const head[] = {"slices × steps", "rounds forward", "backward", "w",
                                       "run again forward", "backward", "efficiency", "one after another",
                                       "last gap forward", "backward"};
    str_add(b, "<div class=\"scroll\"><table>\n<thead><tr><th>layer</th>");
    for (size_t i = 0; i < COUNT(head); i++) str_addf(b, "<th class=\"n\">%s</th>", head[i]);
    str_add(b, "</tr></thead>\n<tbody>\n");
    for (i32 i = 0; i < r->nslices; i++) line(b, &r->slices[i]);
    str_add(b, "</tbody></table></div>\n");
}

/* Mean fraction that the slices of column c ran in a round. */
static f64 share(const struct report_slices *s, const i32 *ran, i32 c, i32 columns) {
    i32 k0 = (i32)((i64)c * s->nslice / columns), k1 = imax(k0 + 1, (i32)((i64)(c + 1) * s->nslice / columns));
    f64 sum = 0;
    for (i32 k = k0; k < k1; k++) sum += ran[k];
    return sum / ((f64)(k1 - k0) * imax(1, s->steps));
}

static void picture(struct str *b, const struct report_slices *s, i32 way) {
    char text[96];
    i32 columns = imin(s->nslice, COLUMNS);
    f64 wide = (f64)(WIDTH - LEFT) / columns;
    snprintf(text, sizeof text, "%s of %s: slices that ran in each round", way ? "backward" : "forward", s->layer);
    svg_open(b, WIDTH, ROW * s->nround[way] + 22, text, false);
    for (i32 i = 0; i < s->nround[way]; i++) {
        f64 bottom = ROW * (i + 1);
        snprintf(text, sizeof text, "round %d", i + 1);
        svg_text(b, LEFT - 8, bottom - 6, "st-t", "end", text);
        for (i32 c = 0; c < columns; c++) {
            f64 ran = dmin(1, share(s, s->ran[way] + (i64)i * s->nslice, c, columns));
            if (ran <= 0) continue;
            str_addf(b, "<rect class=\"st-f%d\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n", i ? 1 : 0,
                     LEFT + c * wide, bottom - dmax(1, BAR * ran), dmax(.4, wide - (wide > 4 ? 1 : 0)), dmax(1, BAR * ran));
        }
        svg_line(b, "st-g", LEFT, bottom, WIDTH, bottom);
    }
    svg_text(b, LEFT, ROW * s->nround[way] + 16, "st-t", "", "first slice");
    svg_text(b, WIDTH, ROW * s->nround[way] + 16, "st-t", "end", "last slice");
    str_add(b, "</svg>\n");
}

void html_slices(struct str *b, const struct report *r) {
    struct str text = {0};
    if (r->nslices == 0) return;
    html_section(b, "slices", "Time slices",
                 "windows were cut into time slices; a slice whose initial state differed from the final state before it "
                 "ran again until its states merged");
    table(b, r);
    str_add(&text, "w: steps after which the model forgets its initial state. Efficiency: share of the steps of slices that were "
                   "not repeated. One after another: training steps whose slices did not converge in rounds.");
    if (isfinite(r->slice_gap))
        str_addf(&text, " Relative difference of the loss to that of whole windows: %s.", text_digits(r->slice_gap, 2).s);
    html_text(b, "p", "soft", str_text(&text));
    for (i32 i = 0; i < r->nslices; i++)
        for (i32 way = 0; way < 2; way++) {
            if (r->slices[i].nround[way] == 0) continue;
            text.len = 0;
            str_addf(&text, "%s, %s, last step", r->slices[i].layer, way ? "backward" : "forward");
            html_text(b, "h3", "", str_text(&text));
            str_add(b, "<div class=\"scroll\">\n");
            picture(b, &r->slices[i], way);
            str_add(b, "</div>\n");
        }
    str_free(&text);
    html_end(b);
}
