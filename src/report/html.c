/* html.c - the HTML report: page frame, links to the sections, and writing the file. */
#include <math.h>

#include "base/file.h"
#include "report/html_part.h"
#include "report/text.h"

static void link_if(struct str *b, bool there, const char *id, const char *name) {
    if (there) text_xmlf(b, "<a href=\"#%s\">%s</a>\n", id, name);
}

static void links(struct str *b, const struct report *r) {
    str_add(b, "<nav aria-label=\"sections\">\n");
    link_if(b, r->scores, "scores", "scores");
    link_if(b, r->nforecast + r->nahead > 0, "forecast", "forecasts");
    link_if(b, r->nseries > 0, "series", "worst and best");
    link_if(b, r->nline > 0, "steps", "error by step");
    link_if(b, r->ncalendar > 0, "calendar", "by calendar");
    link_if(b, r->calibration.n > 0, "calibration", "calibration");
    for (i32 i = 0; i < r->nfigure; i++) link_if(b, !r->figure[i].folded, r->figure[i].id, r->figure[i].id);
    link_if(b, r->columns.n > 0, "columns", "columns");
    link_if(b, r->parts.base, "parts", "parts");
    link_if(b, r->quality.how, "quality", "data quality");
    link_if(b, r->nsplit + r->ndata > 0, "data", "data");
    link_if(b, html_has_details(r), "details", "for those who ask");
    str_add(b, "</nav>\n");
}

static void head(struct str *b, const struct report *r) {
    text_xmlf(b,
              "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>%s</title>\n",
              r->title);
    str_addf(b, "<style>\n%s%s</style>\n</head>\n<body>\n<main>\n", html_style(), svg_style());
    text_xmlf(b, "<header id=\"top\">\n<p class=\"eyebrow\">Stretto report%s%s</p>\n", r->created ? " · " : "", r->created);
    html_text(b, "h1", "", r->title);
    html_verdict(b, r);
    links(b, r);
    str_add(b, "</header>\n");
}

err report_html(const struct report *r, struct str *out) {
    head(out, r);
    if (r->nwarning > 0) {
        html_section(out, "warnings", r->nwarning == 1 ? "1 warning" : "Warnings", NULL);
        html_list(out, r->warning, r->nwarning);
        html_end(out);
    }
    html_score_part(out, r);
    html_forecast_part(out, r);
    html_error_part(out, r);
    html_input_part(out, r);
    html_details(out, r);
    text_xmlf(out,
              "<footer>written by Stretto%s%s; this page needs no network and runs no script</footer>\n</main>\n</body>\n"
              "</html>\n",
              r->version ? " " : "", r->version);
    return str_ok(out);
}

err report_write(const struct report *r, const char *path) {
    struct str page = {0};
    err e = report_html(r, &page);
    if (e >= 0) e = file_write_phase(path, page.s, (i64)page.len, "report");
    str_free(&page);
    return e;
}
