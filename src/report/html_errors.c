/* html_errors.c - where the errors are: by step of the horizon, by calendar; calibration; figures of the learner. */
#include <math.h>
#include <stdio.h>

#include "report/html_part.h"
#include "report/text.h"

static void steps(struct str *b, const struct report *r) {
    if (r->nline == 0) return;
    html_section(b, "steps", "Error by step", "error at each step of the horizon");
    chart_steps(b, r, CHART_WIDTH, CHART_HEIGHT);
    html_end(b);
}

static void one_calendar(struct str *b, const struct report *r, const struct report_calendar *c) {
    char alt[128];
    snprintf(alt, sizeof alt, "%.20s by %.60s, model and naive forecast", r->step_metric ? r->step_metric : "error", c->name);
    str_add(b, "<figure>\n");
    html_text(b, "figcaption", "", c->name);
    svg_columns(b, &(struct svg_columns){.alt = alt,
                                         .ylabel = r->step_metric ? r->step_metric : "error",
                                         .other_name = r->calendar_naive ? r->calendar_naive : "naive",
                                         .n = c->n,
                                         .label = c->label,
                                         .value = c->model,
                                         .other = c->naive,
                                         .width = CHART_WIDTH,
                                         .height = CHART_HEIGHT - 20});
    str_add(b, "</figure>\n");
}

static void calendar(struct str *b, const struct report *r) {
    if (r->ncalendar == 0) return;
    html_section(b, "calendar", "Error by calendar", "error of the forecasts of the records of that time");
    str_add(b, "<div class=\"small\">\n");
    for (i32 i = 0; i < r->ncalendar; i++) one_calendar(b, r, &r->calendar[i]);
    str_add(b, "</div>\n");
    html_end(b);
}

/* The quantile that is farthest from what it promises, in a sentence. */
static void say_calibration(struct str *b, const struct report_calibration *c) {
    i32 most = 0;
    for (i32 i = 1; i < c->n; i++)
        if (fabs(c->below[i] - c->level[i]) > fabs(c->below[most] - c->level[most])) most = i;
    str_addf(b, "<p class=\"soft\">%lld targets. ", (long long)c->cells);
    str_addf(b, "Farthest off: %s %% of them lie below the quantile of %s %%.</p>\n", text_fixed(100 * c->below[most], 1).s,
             text_digits(100 * c->level[most], 3).s);
}

static void calibration(struct str *b, const struct report_calibration *c) {
    if (c->n == 0) return;
    html_section(b, "calibration", "Calibration", "share of the targets below each quantile: on the line, it keeps its promise");
    str_add(b, "<div class=\"small\">\n<figure>\n");
    chart_calibration(b, c, CHART_WIDTH, CHART_HEIGHT);
    str_add(b, "</figure>\n");
    if (c->nstep > 1) {
        str_add(b, "<figure>\n");
        chart_coverage(b, c, CHART_WIDTH, CHART_HEIGHT);
        str_add(b, "</figure>\n");
    }
    str_add(b, "</div>\n");
    say_calibration(b, c);
    html_end(b);
}

static void figures(struct str *b, const struct report *r) {
    for (i32 i = 0; i < r->nfigure; i++) {
        html_section(b, r->figure[i].id, r->figure[i].heading, r->figure[i].lead);
        str_add(b, "<div class=\"scroll\">\n");
        str_add(b, r->figure[i].svg);
        str_add(b, "</div>\n");
        html_end(b);
    }
}

void html_error_part(struct str *b, const struct report *r) {
    if (r->nline + r->nfigure > 0) {
        str_add(b, "<div class=\"grid\">\n");
        steps(b, r);
        figures(b, r);
        str_add(b, "</div>\n");
    }
    calendar(b, r);
    calibration(b, &r->calibration);
}
