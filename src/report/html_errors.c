/* html_errors.c - where the errors are: by step of the horizon, by calendar, outside of the quantiles; figures of the learner. */
#include <math.h>
#include <stdio.h>

#include "report/html_part.h"
#include "report/text.h"

static void open_figure(struct str *b, const char *id, const char *caption, const char *below) {
    str_addf(b, *id ? "<figure id=\"%s\">\n" : "<figure>\n", id);
    html_text(b, "figcaption", "", caption);
    if (below) html_text(b, "p", "soft", below);
}

static void close_figure(struct str *b) { str_add(b, "</figure>\n"); }

static void one_calendar(struct str *b, const struct report *r, const struct report_calendar *c) {
    char alt[128];
    snprintf(alt, sizeof alt, "%.20s %.60s, model and naive forecast", r->step_metric ? r->step_metric : "error", c->name);
    svg_columns(b, &(struct svg_columns){.alt = alt,
                                         .ylabel = r->step_metric ? r->step_metric : "error",
                                         .other_name = r->calendar_naive ? r->calendar_naive : "naive",
                                         .n = c->n,
                                         .label = c->label,
                                         .value = c->model,
                                         .other = c->naive,
                                         .width = CHART_WIDTH,
                                         .height = CHART_HEIGHT});
}

static void by_time(struct str *b, const struct report *r) {
    if (r->nline > 0) {
        open_figure(b, "steps", "Error by step", "at each step of the horizon");
        chart_steps(b, r, CHART_WIDTH, CHART_HEIGHT);
        close_figure(b);
    }
    for (i32 i = 0; i < r->ncalendar; i++) {
        open_figure(b, i ? "" : "calendar", r->calendar[i].name, "of the forecasts of records of that time");
        one_calendar(b, r, &r->calendar[i]);
        close_figure(b);
    }
}

/* The quantile that is farthest from what it promises, in a sentence. */
static void say_calibration(struct str *b, const struct report_calibration *c) {
    i32 most = 0;
    for (i32 i = 1; i < c->n; i++)
        if (fabs(c->below[i] - c->level[i]) > fabs(c->below[most] - c->level[most])) most = i;
    str_addf(b, "<p class=\"soft\">on the line, a quantile keeps its promise; farthest off: %s %% of %lld targets lie ",
             text_fixed(100 * c->below[most], 1).s, (long long)c->cells);
    str_addf(b, "below that of %.3g %%</p>\n", 100 * c->level[most]);
}

static void calibration(struct str *b, const struct report_calibration *c) {
    if (c->n == 0) return;
    open_figure(b, "calibration", "Calibration of the quantiles", NULL);
    say_calibration(b, c);
    chart_calibration(b, c, CHART_WIDTH, CHART_HEIGHT);
    close_figure(b);
    if (c->nstep < 2) return;
    char band[96];
    snprintf(band, sizeof band, "share of the targets between the quantiles of %.3g %% and %.3g %%", 100 * c->from, 100 * c->to);
    open_figure(b, "", "Coverage by step", band);
    chart_coverage(b, c, CHART_WIDTH, CHART_HEIGHT);
    close_figure(b);
}

bool html_has_figures(const struct report *r, bool folded) {
    for (i32 i = 0; i < r->nfigure; i++)
        if (r->figure[i].folded == folded) return true;
    return false;
}

void html_figures(struct str *b, const struct report *r, bool folded) {
    for (i32 i = 0; i < r->nfigure; i++) {
        const struct report_figure *f = &r->figure[i];
        if (f->folded != folded) continue;
        html_section(b, f->id, f->heading, f->lead);
        str_add(b, "<div class=\"scroll\">\n");
        str_add(b, f->svg);
        str_add(b, "</div>\n");
        html_end(b);
    }
}

void html_error_part(struct str *b, const struct report *r) {
    if (r->nline + r->ncalendar + r->calibration.n > 0) {
        html_section(b, "errors", "Where the errors are", NULL);
        str_add(b, "<div class=\"small\">\n");
        by_time(b, r);
        calibration(b, &r->calibration);
        str_add(b, "</div>\n");
        html_end(b);
    }
    if (!html_has_figures(r, false)) return;
    str_add(b, "<div class=\"grid\">\n");
    html_figures(b, r, false);
    str_add(b, "</div>\n");
}
