/* charts.h - the charts of a report; private to this folder. */
#ifndef STRETTO_REPORT_CHARTS_H
#define STRETTO_REPORT_CHARTS_H

#include "report/report.h"

void chart_forecast(struct str *b, const struct report_forecast *f, f64 width, f64 height, bool alone);
void chart_curves(struct str *b, const struct report *r, f64 width, f64 height);
void chart_steps(struct str *b, const struct report *r, f64 width, f64 height);

#endif
