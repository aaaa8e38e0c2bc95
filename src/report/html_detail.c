/* html_detail.c - the report sections below the first screen: parts, forecasts, data, time slices, parameter store, timeline,
 * plan, machine, options, notes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/html_part.h"
#include "report/text.h"

enum { FORECASTS_MOST = 12 };

static void part(struct str *b, const char *name, const char *big, const char *text) {
    str_add(b, "<div class=\"part\">\n");
    html_text(b, "span", "soft", name);
    html_text(b, "b", "big", big);
    html_text(b, "p", "soft", text);
    str_add(b, "</div>\n");
}

static void guard_part(struct str *b, const struct report_parts *p) {
    char weight[48], text[200], blocks[48] = "";
    if (!p->guarded) {
        part(b, "guard", "off", "the correction counts in full");
        return;
    }
    snprintf(weight, sizeof weight, "a = %s", text_fixed(p->a, 2).s);
    if (p->blocks > 0) snprintf(blocks, sizeof blocks, " over %d validation blocks", p->blocks);
    snprintf(text, sizeof text, "weight of the correction; t = %.39s%s%s", text_fixed(p->t, 2).s, blocks,
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

static void forecasts(struct str *b, const struct report *r) {
    if (r->nforecast < 2) return;
    html_section(b, "forecasts", "More forecasts", NULL);
    str_add(b, "<div class=\"small\">\n");
    for (i32 i = 1; i < imin(r->nforecast, FORECASTS_MOST + 1); i++) {
        str_add(b, "<figure>\n");
        chart_forecast(b, &r->forecast[i], 560, 250, false);
        str_add(b, "</figure>\n");
    }
    str_add(b, "</div>\n");
    html_end(b);
}

/* A bar with the split in proportion, then its boundaries as a table. */
static void splits(struct str *b, const struct report *r) {
    static const i32 colour[] = {6, 7, 0, 9, 10}; /* train, validation, test */
    str_add(b, "<div class=\"strip\">");
    for (i32 i = 0; i < r->nsplit; i++)
        str_addf(b, "<i class=\"k%d\" style=\"flex:%lld\"></i>", colour[i % 5],
                 (long long)lmax(1, r->split[i].row1 - r->split[i].row0));
    str_add(b, "</div>\n<div class=\"scroll\"><table>\n<thead><tr><th>part</th><th class=\"n\">rows</th>"
               "<th class=\"n\">from row</th><th class=\"n\">to row</th><th class=\"d\">first</th><th class=\"d\">last</th>"
               "<th class=\"n\">windows</th></tr></thead>\n<tbody>\n");
    for (i32 i = 0; i < r->nsplit; i++) {
        const struct report_split *s = &r->split[i];
        text_xmlf(b, "<tr><th scope=\"row\"><span class=\"key k%d\"></span>%s</th><td class=\"n\">%lld</td>"
                     "<td class=\"n\">%lld</td><td class=\"n\">%lld</td><td class=\"d\">%s</td><td class=\"d\">%s</td>"
                     "<td class=\"n\">%lld</td></tr>\n", colour[i % 5], s->name, (long long)(s->row1 - s->row0),
                  (long long)s->row0, (long long)s->row1 - 1, s->first, s->last, (long long)s->windows);
    }
    str_add(b, "</tbody></table></div>\n");
}

static void data(struct str *b, const struct report *r) {
    if (r->nsplit + r->ndata == 0) return;
    html_section(b, "data", "Data", "record numbers from 0; scales and vocabularies come from the training split only");
    if (r->nsplit > 0) splits(b, r);
    if (r->ndata > 0) {
        if (r->nsplit > 0) str_add(b, "<h3>Facts</h3>\n");
        html_facts(b, r->data, r->ndata);
    }
    html_end(b);
}

static void run_sections(struct str *b, const struct report *r) {
    html_slices(b, r);
    if (r->store) html_store(b, r->store);
    if (r->nspan > 0) {
        html_section(b, "timeline", "Timeline of the threads", "tasks of each thread over time; right: share of busy time");
        str_add(b, "<div class=\"scroll\"><div class=\"wide\">\n");
        svg_timeline(b, r->span, r->nspan, 1200, false);
        str_add(b, "</div></div>\n");
        html_end(b);
    }
    if (r->plan) {
        html_section(b, "plan", "Plan", NULL);
        html_text(b, "pre", "plan", r->plan);
        html_end(b);
    }
    if (r->nmachine > 0) {
        html_section(b, "machine", "Machine", NULL);
        html_facts(b, r->machine, r->nmachine);
        html_end(b);
    }
}

static void options(struct str *b, const struct report *r) {
    if (r->noption == 0) return;
    html_section(b, "options", "Options", "all options with value and origin");
    str_add(b, "<div class=\"options\">\n");
    for (i32 i = 0; i < r->noption; i++) {
        const struct report_option *o = &r->option[i];
        bool is_default = !o->origin || strncmp(o->origin, "def", 3) == 0;
        str_add(b, is_default ? "<div class=\"opt\">" : "<div class=\"opt set\">");
        html_text(b, "code", "name", o->name);
        html_text(b, "code", "val", o->value);
        html_text(b, "span", "from", o->origin ? o->origin : "default");
        str_add(b, "</div>\n");
    }
    str_add(b, "</div>\n");
    html_end(b);
}

void html_details(struct str *b, const struct report *r) {
    parts(b, &r->parts);
    forecasts(b, r);
    data(b, r);
    run_sections(b, r);
    options(b, r);
    if (r->nnote == 0) return;
    html_section(b, "notes", "Notes of the run", NULL);
    html_list(b, r->note, r->nnote);
    html_end(b);
}
