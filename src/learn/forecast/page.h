/* page.h - the forecaster's part of the report, while it is filled. */
#ifndef STRETTO_LEARN_FORECAST_PAGE_H
#define STRETTO_LEARN_FORECAST_PAGE_H

#include "learn/forecast/forecast.h"
#include "report/report.h"

struct page {
    const struct forecaster *f;
    const struct series *s;
    const struct options *o;
    const struct forecast_scores *scores; /* NULL = no scores */
    struct arena *a;
    struct report *r;
    const struct resources *use; /* for further forecasts; without events */
    const struct split *split;
    f64 seconds; /* that a measurement for the report may take */
};

static inline bool page_original(const struct page *p) { return p->o->score_scale[0] != 'z'; }

/* page_window.c: a chart of window w of series s.  Actual values are those of a scored window, without interpolated cells and
 * cells that the network did not see. */
err page_forecast(const struct forecaster *f, const struct series *s, const struct forecast_sample *w, bool scored,
                  struct arena *a, struct report_forecast *out);

/* page_test.c: worst, median and best; the forecast after the last record; calendar, calibration, columns, quality of the
 * data. */
err page_test(struct page *p);

#endif
