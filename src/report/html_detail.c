/* html_detail.c - how the run went, folded away: training, time slices, parameter store, timeline, plan, machine, options,
 * notes, and the command that repeats it. */
#include <string.h>

#include "report/html_part.h"
#include "report/text.h"

static void timeline(struct str *b, const struct report *r) {
    if (r->nspan == 0) return;
    html_section(b, "timeline", "Timeline of the threads", "tasks of each thread over time; right: share of busy time");
    str_add(b, "<div class=\"scroll\">\n");
    svg_timeline(b, r->span, r->nspan, 1200, false);
    str_add(b, "</div>\n");
    html_end(b);
}

static void run_sections(struct str *b, const struct report *r) {
    html_slices(b, r);
    if (r->store) html_store(b, r->store);
    timeline(b, r);
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

bool html_has_details(const struct report *r) {
    return html_has_figures(r, true) || r->ncurve > 0 || r->nslices > 0 || r->store || r->nspan > 0 || r->plan ||
           r->nmachine > 0 || r->noption > 0 || r->nnote > 0 || r->command;
}

void html_details(struct str *b, const struct report *r) {
    if (!html_has_details(r)) return;
    str_add(
        b, "<details id=\"details\">\n<summary>For those who ask: training, plan, timeline, machine, options, notes</summary>\n");
    if (r->ncurve > 0) {
        html_section(b, "curves", "Training", r->ncurve > 1 ? "one line per ensemble member" : NULL);
        str_add(b, "<div class=\"small\">\n");
        chart_curves(b, r, CHART_WIDTH, CHART_HEIGHT);
        str_add(b, "</div>\n");
        html_end(b);
    }
    html_figures(b, r, true);
    run_sections(b, r);
    options(b, r);
    if (r->nnote > 0) {
        html_section(b, "notes", "Notes of the run", NULL);
        html_list(b, r->note, r->nnote);
        html_end(b);
    }
    if (r->command) {
        html_section(b, "command", "Command that repeats it", NULL);
        html_text(b, "pre", "cmd", r->command);
        html_end(b);
    }
    str_add(b, "</details>\n");
}
