/* html_input.c - what the forecast rests on: columns, parts of the forecaster, quality of the data, their split. */
#include <math.h>
#include <stdio.h>

#include "report/html_part.h"
#include "report/text.h"

enum { COLUMNS_MOST = 40 };

/* ------------------------------------------------------------------ columns ------------------------------------------------- */

static void column(struct str *b, const struct report_column *c, f64 most) {
    const f64 wide = most > 0 ? 100 * dmax(0, c->value) / most : 0;
    text_xmlf(b, "<tr><th scope=\"row\">%s</th>", c->name);
    str_addf(b, "<td class=\"bar\"><i class=\"k0\" style=\"width:%s%%\"></i></td>", text_fixed(wide, 1).s);
    str_addf(b, "<td class=\"n\">%s</td><td class=\"n soft\">%s to %s</td></tr>\n", text_skill(c->value).s, text_skill(c->low).s,
             text_skill(c->high).s);
}

static void columns(struct str *b, const struct report_columns *c) {
    if (c->n == 0) return;
    html_section(b, "columns", "What the columns add", c->how);
    str_add(b,
            "<div class=\"scroll\"><table>\n<thead><tr><th>column</th><th class=\"bar\"></th>"
            "<th class=\"n\">growth of the error</th><th class=\"n\">least to most</th></tr></thead>\n<tbody>\n");
    for (i32 i = 0; i < imin(c->n, COLUMNS_MOST); i++) column(b, &c->of[i], c->of[0].value);
    str_add(b, "</tbody></table></div>\n");
    if (c->n > COLUMNS_MOST) str_addf(b, "<p class=\"soft\">and %d more</p>\n", c->n - COLUMNS_MOST);
    html_end(b);
}

/* ------------------------------------------------------------------ parts --------------------------------------------------- */

static void part(struct str *b, const char *name, const char *big, const char *text) {
    str_add(b, "<div class=\"part\">\n");
    html_text(b, "span", "soft", name);
    html_text(b, "b", "big", big);
    html_text(b, "p", "soft", text);
    str_add(b, "</div>\n");
}

static void guard_part(struct str *b, const struct report_parts *p) {
    char weight[48], text[200], blocks[96] = "";
    if (!p->guarded) {
        part(b, "guard", "off", "the correction counts in full");
        return;
    }
    snprintf(weight, sizeof weight, "a = %s", text_fixed(p->a, 2).s);
    if (p->blocks > 0) snprintf(blocks, sizeof blocks, "; t = %.39s over %d validation blocks", text_fixed(p->t, 2).s, p->blocks);
    snprintf(text, sizeof text, "weight of the correction%s%s", blocks,
             p->a < .005 ? ": no gain that can be relied on, so the forecast is the base" : "");
    part(b, "guard", weight, text);
}

static void added(struct str *b, const struct report_parts *p) {
    if (!isfinite(p->base_error) || !isfinite(p->full_error)) return;
    f64 gain = p->base_error != 0 ? 1 - p->full_error / p->base_error : 0;
    text_xmlf(b, "<h3>Contribution of the network</h3>\n<p>%s of the base alone %s, with the correction %s: ",
              p->metric ? p->metric : "error", text_digits(p->base_error, 4).s, text_digits(p->full_error, 4).s);
    str_addf(b, "<b class=\"%s\">%s</b></p>\n", gain < 0 ? "down" : "up", text_skill(gain).s);
}

static void parts(struct str *b, const struct report_parts *p) {
    if (!p->base) return;
    html_section(b, "parts", "Parts of the forecaster", "forecast = base + a × correction; each part can be switched off");
    str_add(b, "<div class=\"parts\">\n");
    part(b, "base", p->base, p->base_detail);
    part(b, "correction", p->correction ? p->correction : "none", p->correction_detail);
    guard_part(b, p);
    str_add(b, "</div>\n");
    added(b, p);
    if (p->note) html_text(b, "p", "soft", p->note);
    if (p->fold) {
        html_text(b, "h3", "", p->fold->title);
        html_scores(b, p->fold);
    }
    html_end(b);
}

/* ------------------------------------------------------------------ quality ------------------------------------------------- */

static void finding(struct str *b, const struct report_finding *f) {
    str_addf(b, "<li class=\"%s\">", f->warning ? "warn" : "error");
    text_xmlf(b, "<b>%s</b> %s%s%s", f->code, f->where, *f->where ? ": " : "", f->text);
    if (*f->fix) text_xmlf(b, "<br/><span class=\"soft\">remedy: %s</span>", f->fix);
    str_add(b, "</li>\n");
}

static void quality(struct str *b, const struct report_quality *q) {
    if (!q->how) return;
    html_section(b, "quality", "Data quality", q->how);
    if (q->nfinding > 0) {
        str_add(b, "<ul class=\"list findings\">\n");
        for (i32 i = 0; i < q->nfinding; i++) finding(b, &q->finding[i]);
        str_add(b, "</ul>\n");
    }
    if (q->nfact > 0) html_facts(b, q->fact, q->nfact);
    html_end(b);
}

/* ------------------------------------------------------------------ data ---------------------------------------------------- */

/* A bar with the split in proportion, then its boundaries as a table. */
static void splits(struct str *b, const struct report *r) {
    static const i32 colour[] = {6, 7, 0, 9, 10}; /* train, validation, test */
    str_add(b, "<div class=\"strip\">");
    for (i32 i = 0; i < r->nsplit; i++)
        str_addf(b, "<i class=\"k%d\" style=\"flex:%lld\"></i>", colour[i % 5],
                 (long long)lmax(1, r->split[i].row1 - r->split[i].row0));
    str_add(b,
            "</div>\n<div class=\"scroll\"><table>\n<thead><tr><th>part</th><th class=\"n\">rows</th>"
            "<th class=\"d\">first</th><th class=\"d\">last</th><th class=\"n x\">windows</th></tr></thead>\n<tbody>\n");
    for (i32 i = 0; i < r->nsplit; i++) {
        const struct report_split *s = &r->split[i];
        str_addf(b, "<tr><th scope=\"row\"><span class=\"key k%d\"></span>", colour[i % 5]);
        text_xmlf(b, "%s</th><td class=\"n\">%lld</td><td class=\"d\">%s</td><td class=\"d\">%s</td>", s->name,
                  (long long)(s->row1 - s->row0), s->first, s->last);
        const f64 windows = s->windows > 0 ? (f64)s->windows : (f64)NAN; /* a model from a file does not know them */
        str_addf(b, "<td class=\"n x\">%s</td></tr>\n", text_fixed(windows, 0).s);
    }
    str_add(b, "</tbody></table></div>\n");
}

static void data(struct str *b, const struct report *r) {
    if (r->nsplit + r->ndata == 0) return;
    html_section(b, "data", "Data", "scales and vocabularies come from the training split only");
    if (r->nsplit > 0) splits(b, r);
    if (r->ndata > 0) {
        if (r->nsplit > 0) str_add(b, "<h3>Facts</h3>\n");
        html_facts(b, r->data, r->ndata);
    }
    html_end(b);
}

void html_input_part(struct str *b, const struct report *r) {
    columns(b, &r->columns);
    parts(b, &r->parts);
    quality(b, &r->quality);
    data(b, r);
}
