/* html_scores.c - the verdict in a sentence, the figures below it, and the table of scores. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/html_part.h"
#include "report/text.h"

/* The model's row of the score table, or NULL. */
static const struct score_row *model_row(const struct score_table *t) {
    for (i32 r = 0; t && r < t->nrow; r++)
        if (t->row[r].role == ROLE_MODEL) return &t->row[r];
    return NULL;
}

/* True if the metric is an error; else it is a share of right answers, and the skill compares the errors. */
static bool measures_error(const struct score_row *model, const struct score_row *naive, i32 m) {
    return (model->skill > 0) == (model->value[m] < naive->value[m]);
}

static void compare(struct str *b, const struct score_table *t, const struct score_row *model) {
    const struct score_row *naive = &t->row[t->best_naive];
    const i32 m = t->skill_metric;
    const f64 s = model->skill;
    const bool errors = !measures_error(model, naive, m);
    if (fabs(s) <= .005) {
        str_add(b, "The model is level with");
    } else {
        str_addf(b, errors ? "The model makes %s %% %s errors than" : "The model is %s %% %s than",
                 text_fixed(fabs(100 * s), fabs(s) < .0995 ? 1 : 0).s,
                 errors  ? s > 0 ? "fewer" : "more"
                 : s > 0 ? "better"
                         : "worse");
    }
    text_xmlf(b, " the best naive forecast, %s: %s ", naive->name, t->metric[m]);
    str_addf(b, "%s against %s", table_value(t, (i32)(model - t->row), m).s, table_value(t, t->best_naive, m).s);
}

void html_verdict(struct str *b, const struct report *r) {
    const struct score_table *t = r->scores;
    const struct score_row *model = model_row(t);
    if (!model || t->best_naive < 0 || t->best_naive >= t->nrow || isnan(model->skill)) return;
    const f64 s = model->skill;
    const char *class = s > .005 ? "good" : s < -.005 ? "bad" : "even", *mark = s > .005 ? "▲" : s < -.005 ? "▼" : "●";
    str_addf(b, "<p id=\"verdict\" class=\"verdict %s\">%s ", class, mark);
    compare(b, t, model);
    text_xmlf(b, " on %s.</p>\n", t->title);
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

void html_score_part(struct str *b, const struct report *r) {
    tiles(b, r);
    if (!r->scores) {
        html_text(b, "p", "soft",
                  "No scores: no records were held out (train with --test 20%, or write the report on records that are new to "
                  "the model).");
        return;
    }
    struct str lead = {0};
    str_addf(&lead, "%s", r->scores->title);
    if (r->scores->windows > 0)
        str_addf(&lead, ", %lld window%s, every one counted", (long long)r->scores->windows, r->scores->windows == 1 ? "" : "s");
    if (r->scores->best_naive >= 0)
        str_add(&lead, "; naive forecasts first. Skill: what the error is less than that of the best of them");
    html_section(b, "scores", "Scores", str_text(&lead));
    html_scores(b, r->scores);
    if (r->scores->lines) by_series(b, r->scores->lines);
    html_end(b);
    str_free(&lead);
}
