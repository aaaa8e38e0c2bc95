/* html_forecasts.c - forecasts as pictures: windows of the test part, after the last record, the worst and the best series. */
#include "report/html_part.h"
#include "report/text.h"

enum { MORE_MOST = 11 };

/* A chart with its title above it, in the page's font. */
static void one(struct str *b, const struct report_forecast *f, enum chart_use use) {
    str_add(b, "<figure>\n");
    if (f->title) html_text(b, "figcaption", "", f->title);
    if (f->note) html_text(b, "p", "soft", f->note);
    chart_forecast(b, f, CHART_WIDTH, use == CHART_SMALL ? CHART_HEIGHT - 45 : CHART_HEIGHT, use);
    str_add(b, "</figure>\n");
}

static void many(struct str *b, const struct report_forecast *f, i32 n, i32 first_page) {
    str_add(b, "<div class=\"small\">\n");
    for (i32 i = 0; i < n; i++) one(b, &f[i], i < first_page ? CHART_PAGE : CHART_SMALL);
    str_add(b, "</div>\n");
}

static void key(struct str *b, const struct report_forecast *f) {
    str_add(b, "<p class=\"soft keys\"><span class=\"key k0\"></span>model");
    if (f->nlevel > 1) {
        str_addf(b, ", bands of its quantiles %s", text_digits(f->level[0], 3).s);
        for (i32 i = 1; i < f->nlevel; i++) str_addf(b, ", %s", text_digits(f->level[i], 3).s);
    }
    if (f->actual) str_add(b, " <span class=\"key k5\"></span>actual");
    if (f->base) str_add(b, " <span class=\"key k1\"></span>base");
    str_add(b, " <span class=\"key k6\"></span>history</p>\n");
}

void html_forecast_part(struct str *b, const struct report *r) {
    if (r->nforecast > 0) {
        html_section(b, "forecast", "Forecasts of the test part", "what the model would have said, beside what came");
        many(b, r->forecast, imin(r->nforecast, MORE_MOST + 1), imin(r->nforecast, MORE_MOST + 1));
        html_end(b);
    }
    if (r->nahead > 0) {
        html_section(b, "ahead", "After the last record", NULL);
        many(b, r->ahead, r->nahead, r->nahead);
        html_end(b);
    }
    if (r->nseries > 0) {
        html_section(b, "series", "Worst, median and best", r->series_lead);
        key(b, &r->series[0]);
        many(b, r->series, r->nseries, 0);
        html_end(b);
    }
}
