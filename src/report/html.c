/* html.c - the HTML report: page frame, first screen, and writing the file. */
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "report/html_part.h"
#include "report/text.h"

/* The model's row of the score table, or NULL. */
static const struct score_row *model_row(const struct score_table *t) {
    for (i32 r = 0; t && r < t->nrow; r++)
        if (t->row[r].role == ROLE_MODEL) return &t->row[r];
    return NULL;
}

/* One sentence: better or worse than the best naive forecast, and by how much. */
static void verdict(struct str *b, const struct score_table *t) {
    const struct score_row *model = model_row(t);
    if (!model || t->best_naive < 0 || t->best_naive >= t->nrow || isnan(model->skill)) return;
    f64 s = model->skill;
    const char *class = s > .005 ? "good" : s < -.005 ? "bad" : "even", *mark = s > .005 ? "▲" : s < -.005 ? "▼" : "●";
    str_addf(b, "<p id=\"verdict\" class=\"verdict %s\">%s ", class, mark);
    if (*class == 'e') str_add(b, "Level with");
    else str_addf(b, "%s %% %s than", text_fixed(fabs(100 * s), fabs(s) < .0995 ? 1 : 0).s, s > 0 ? "better" : "worse");
    text_xmlf(b, " the best naive forecast, %s, in %s on %s</p>\n", t->row[t->best_naive].name, t->metric[t->skill_metric],
              t->title);
}

static void tile(struct str *b, const char *name, const char *value, const char *below) {
    str_add(b, "<div class=\"tile\">");
    html_text(b, "span", "", name);
    str_add(b, "<div>");
    html_text(b, "b", "", value);
    html_text(b, "span", "", below);
    str_add(b, "</div></div>\n");
}

static void metric_tiles(struct str *b, const struct score_table *t) {
    i32 model = (i32)(model_row(t) - t->row);
    for (i32 m = 0; m < imin(t->nmetric, 4); m++) {
        struct str below = {0}; /* the row that is best by the skill metric; another row may win this metric */
        if (t->best_naive >= 0 && isfinite(t->row[t->best_naive].value[m]))
            str_addf(&below, "%s %s", t->row[t->best_naive].name, table_value(t, t->best_naive, m).s);
        tile(b, t->metric[m], table_value(t, model, m).s, str_text(&below));
        str_free(&below);
    }
}

static void tiles(struct str *b, const struct report *r) {
    char members[32] = "";
    str_add(b, "<div class=\"tiles\">\n");
    if (model_row(r->scores)) metric_tiles(b, r->scores);
    if (r->ncurve > 1) snprintf(members, sizeof members, "%d members", r->ncurve);
    if (isfinite(r->seconds) && r->seconds > 0) tile(b, "training", text_seconds(r->seconds).s, members);
    if (r->parameters > 0) tile(b, "parameters", text_si((f64)r->parameters).s, "");
    str_add(b, "</div>\n");
}

/* Summary of the model and its data below the scores. */
static void summary(struct str *b, const struct report *r) {
    const struct report_parts *p = &r->parts;
    str_add(b, "<dl class=\"sum\">\n");
    if (p->base) {
        text_xmlf(b, "<dt>parts</dt><dd>%s", p->base);
        if (p->correction && p->guarded) text_xmlf(b, " + %s × %s", text_fixed(p->a, 2).s, p->correction);
        else if (p->correction) text_xmlf(b, " + %s", p->correction);
        if (p->guarded) str_addf(b, " (guard t = %s)", text_fixed(p->t, 2).s);
        str_add(b, "</dd>\n");
    }
    for (i32 i = 0; i < r->nsplit; i++) {
        const struct report_split *s = &r->split[i];
        html_text(b, "dt", "", s->name);
        str_addf(b, "<dd>%lld row%s", (long long)(s->row1 - s->row0), s->row1 - s->row0 == 1 ? "" : "s");
        if (s->first && s->last) text_xmlf(b, ", %s to %s", s->first, s->last);
        str_add(b, "</dd>\n");
    }
    str_add(b, "</dl>\n");
}

/* The worst, the median and the best series, or the groups of --by. */
static void by_series(struct str *b, const struct score_lines *l) {
    struct arena a = {0};
    struct score_table t;
    if (lines_table(l, &a, &t) < 0) {
        b->failed = true;
    } else if (t.nrow > 0) {
        html_text(b, "h3", "", t.title);
        html_scores(b, &t);
    }
    arena_free(&a);
}

void html_first_screen(struct str *b, const struct report *r) {
    str_add(b, "<div class=\"grid\">\n");
    if (r->scores) {
        struct str lead = {0};
        str_addf(&lead, "%s", r->scores->title);
        if (r->scores->windows > 0) str_addf(&lead, ", %lld window%s, every one counted", (long long)r->scores->windows,
                                               r->scores->windows == 1 ? "" : "s");
        html_section(b, "scores", "Scores", str_text(&lead));
        html_scores(b, r->scores);
        if (r->scores->lines) by_series(b, r->scores->lines);
        summary(b, r);
        html_end(b);
        str_free(&lead);
    }
    if (r->nforecast > 0) {
        struct report_forecast f = r->forecast[0];
        html_section(b, "forecast", "Forecast against actual values", f.title);
        f.title = NULL;
        chart_forecast(b, &f, 600, 250, false);
        html_end(b);
    }
    if (r->ncurve > 0) {
        html_section(b, "curves", "Training", r->ncurve > 1 ? "one line per ensemble member" : NULL);
        chart_curves(b, r, 600, 250);
        html_end(b);
    }
    if (r->nline > 0) {
        html_section(b, "steps", "Error by step", "error at each step of the horizon");
        chart_steps(b, r, 600, 250);
        html_end(b);
    }
    for (i32 i = 0; i < r->nfigure; i++) {
        html_section(b, r->figure[i].id, r->figure[i].heading, r->figure[i].lead);
        str_add(b, r->figure[i].svg);
        html_end(b);
    }
    str_add(b, "</div>\n");
}

static void link_if(struct str *b, bool there, const char *id, const char *name) {
    if (there) str_addf(b, "<a href=\"#%s\">%s</a>\n", id, name);
}

static void head(struct str *b, const struct report *r) {
    text_xmlf(b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>%s</title>\n", r->title);
    str_addf(b, "<style>\n%s%s</style>\n</head>\n<body>\n<main>\n", html_style(), svg_style());
    text_xmlf(b, "<header id=\"top\">\n<p class=\"eyebrow\">Stretto report%s%s</p>\n", r->created ? " · " : "", r->created);
    html_text(b, "h1", "", r->title);
    if (r->scores) verdict(b, r->scores);
    if (r->command) html_text(b, "pre", "cmd", r->command);
    str_add(b, "<nav aria-label=\"sections\">\n");
    link_if(b, r->scores, "scores", "scores");
    link_if(b, r->nforecast > 0, "forecast", "forecast");
    link_if(b, r->ncurve > 0, "curves", "training");
    link_if(b, r->nline > 0, "steps", "error by step");
    for (i32 i = 0; i < r->nfigure; i++) link_if(b, true, r->figure[i].id, r->figure[i].id);
    link_if(b, r->parts.base, "parts", "parts");
    link_if(b, r->nforecast > 1, "forecasts", "more forecasts");
    link_if(b, r->nsplit + r->ndata > 0, "data", "data");
    link_if(b, r->nslices > 0, "slices", "time slices");
    link_if(b, r->store, "store", "parameter store");
    link_if(b, r->nspan > 0, "timeline", "timeline");
    link_if(b, r->plan, "plan", "plan");
    link_if(b, r->nmachine > 0, "machine", "machine");
    link_if(b, r->noption > 0, "options", "options");
    link_if(b, r->nnote > 0, "notes", "notes");
    str_add(b, "</nav>\n</header>\n");
}

err report_html(const struct report *r, struct str *out) {
    head(out, r);
    if (r->nwarning > 0) {
        html_section(out, "warnings", r->nwarning == 1 ? "1 warning" : "Warnings", NULL);
        html_list(out, r->warning, r->nwarning);
        html_end(out);
    }
    tiles(out, r);
    html_first_screen(out, r);
    html_details(out, r);
    text_xmlf(out, "<footer>written by Stretto%s%s; this page needs no network and runs no script</footer>\n</main>\n</body>\n"
                   "</html>\n", r->version ? " " : "", r->version);
    return str_ok(out);
}

err report_write(const struct report *r, const char *path) {
    struct str page = {0};
    err e = report_html(r, &page);
    if (e >= 0) e = file_write_phase(path, page.s, (i64)page.len, "report");
    str_free(&page);
    return e;
}
