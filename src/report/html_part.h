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

void chart_forecast(struct str *b, const struct report_forecast *f, f64 width, f64 height, bool alone);
void chart_curves(struct str *b, const struct report *r, f64 width, f64 height);
void chart_steps(struct str *b, const struct report *r, f64 width, f64 height);

void html_first_screen(struct str *b, const struct report *r);
void html_slices(struct str *b, const struct report *r);
void html_store(struct str *b, const struct report_store *s);
void html_details(struct str *b, const struct report *r);

#endif
