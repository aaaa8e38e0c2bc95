/* html_forecasts.c - forecasts as pictures: windows of the test part, after the last record, the worst and the best series. */
#include "report/html_part.h"

enum { FORECASTS_MOST = 12 };

/* A chart with its title above it, in the page's font. */
static void one(struct str *b, const char *id, const struct report_forecast *f, enum chart_use use) {
    str_addf(b, *id ? "<figure id=\"%s\">\n" : "<figure>\n", id);
    if (f->title) html_text(b, "figcaption", "", f->title);
    if (f->note) html_text(b, "p", "soft", f->note);
    chart_forecast(b, f, CHART_WIDTH, use == CHART_SMALL ? CHART_HEIGHT - 45 : CHART_HEIGHT, use);
    str_add(b, "</figure>\n");
}

static void key(struct str *b, const struct report_forecast *f) {
    str_add(b, "<p class=\"soft keys\"><span class=\"key k0\"></span>model");
    if (f->nlevel > 1) {
        str_addf(b, ", bands of its quantiles %.3g", 100 * f->level[0]);
        for (i32 i = 1; i < f->nlevel; i++) str_addf(b, ", %.3g", 100 * f->level[i]);
        str_add(b, " %");
    }
    if (f->actual) str_add(b, " <span class=\"key k5\"></span>actual");
    if (f->base) str_add(b, " <span class=\"key k1\"></span>base");
    str_add(b, " <span class=\"key k6\"></span>history</p>\n");
}

static const char *lead_of(const struct report *r) {
    if (r->nahead == 0) return "windows of the test part, beside the actual values";
    return r->nforecast == 0 ? NULL : "windows of the test part, beside the actual values, and the time after the last record";
}

void html_forecast_part(struct str *b, const struct report *r) {
    if (r->nforecast + r->nahead > 0) {
        html_section(b, "forecast", "Forecasts", lead_of(r));
        str_add(b, "<div class=\"small\">\n");
        for (i32 i = 0; i < imin(r->nforecast, FORECASTS_MOST); i++) one(b, "", &r->forecast[i], CHART_PAGE);
        for (i32 i = 0; i < r->nahead; i++) one(b, i ? "" : "ahead", &r->ahead[i], CHART_PAGE);
        str_add(b, "</div>\n");
        html_end(b);
    }
    if (r->nseries == 0) return;
    html_section(b, "series", "Worst, median and best", r->series_lead);
    key(b, &r->series[0]);
    str_add(b, "<div class=\"small\">\n");
    for (i32 i = 0; i < r->nseries; i++) one(b, "", &r->series[i], CHART_SMALL);
    str_add(b, "</div>\n");
    html_end(b);
}
