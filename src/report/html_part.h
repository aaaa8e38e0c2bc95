/* html_part.h - pieces of the page and its charts; private to this folder. */
#ifndef STRETTO_REPORT_HTML_PART_H
#define STRETTO_REPORT_HTML_PART_H

#include "report/report.h"

const char *html_style(void);

/* <section id=..><h2>..</h2>; an optional sentence below the heading. */
void html_section(struct str *b, const char *id, const char *heading, const char *lead);
void html_end(struct str *b);
/* <tag class="class">escaped text</tag> */
void html_text(struct str *b, const char *tag, const char *class, const char *text);
void html_list(struct str *b, const char *const *line, i32 n);
void html_facts(struct str *b, const struct report_fact *f, i32 n);
void html_scores(struct str *b, const struct score_table *t);

/* Charts are drawn for the width of a phone and scaled up to their column. */
enum { CHART_WIDTH = 330, CHART_HEIGHT = 215 };

/* A page of its own (title, legend, background); a chart of the page; one of many that share a legend. */
enum chart_use { CHART_ALONE, CHART_PAGE, CHART_SMALL };
void chart_forecast(struct str *b, const struct report_forecast *f, f64 width, f64 height, enum chart_use use);
void chart_curves(struct str *b, const struct report *r, f64 width, f64 height);
void chart_steps(struct str *b, const struct report *r, f64 width, f64 height);
void chart_calibration(struct str *b, const struct report_calibration *c, f64 width, f64 height);
void chart_coverage(struct str *b, const struct report_calibration *c, f64 width, f64 height);

/* Groups of sections in the order of the page: each writes what the report has of it. */
void html_verdict(struct str *b, const struct report *r);
void html_score_part(struct str *b, const struct report *r);
void html_forecast_part(struct str *b, const struct report *r);
void html_error_part(struct str *b, const struct report *r);
void html_input_part(struct str *b, const struct report *r);
bool html_has_figures(const struct report *r, bool folded);
void html_figures(struct str *b, const struct report *r, bool folded);
bool html_has_details(const struct report *r);
void html_details(struct str *b, const struct report *r);
void html_slices(struct str *b, const struct report *r);
void html_store(struct str *b, const struct report_store *s);

#endif
