/* html_write.c - building blocks of every section of the page: headings, text, lists of facts, score tables. */
#include <math.h>

#include "report/html_part.h"
#include "report/text.h"

void html_section(struct str *b, const char *id, const char *heading, const char *lead) {
    text_xmlf(b, "<section id=\"%s\">\n<h2>%s</h2>\n", id, heading);
    if (lead) html_text(b, "p", "lead", lead);
}

void html_end(struct str *b) { str_add(b, "</section>\n"); }

void html_text(struct str *b, const char *tag, const char *class, const char *text) {
    str_addf(b, *class ? "<%s class=\"%s\">" : "<%s>", tag, class);
    text_xml(b, text);
    str_addf(b, "</%s>\n", tag);
}

void html_list(struct str *b, const char *const *line, i32 n) {
    str_add(b, "<ul class=\"list\">\n");
    for (i32 i = 0; i < n; i++) html_text(b, "li", "", line[i]);
    str_add(b, "</ul>\n");
}

void html_facts(struct str *b, const struct report_fact *f, i32 n) {
    str_add(b, "<dl>\n");
    for (i32 i = 0; i < n; i++) {
        html_text(b, "dt", "", f[i].name);
        html_text(b, "dd", "", f[i].value);
    }
    str_add(b, "</dl>\n");
}

static f64 largest(const struct score_table *t, i32 m) {
    f64 most = 0;
    for (i32 r = 0; r < t->nrow; r++)
        if (isfinite(t->row[r].value[m])) most = dmax(most, t->row[r].value[m]);
    return most;
}

static bool has_skill(const struct score_table *t) {
    for (i32 r = 0; r < t->nrow; r++)
        if (!isnan(t->row[r].skill)) return true;
    return false;
}

static bool has_bar(const struct score_table *t) { return t->nmetric <= 4; } /* more columns leave no room */

/* Class of a column that a phone has no room for: the tiles above the table have its value for the model. */
static const char *more(const struct score_table *t, i32 m) { return m > 2 && m != t->skill_metric && has_skill(t) ? " x" : ""; }

/* One table line: values, a bar of the skill metric, and the skill. */
static void score_line(struct str *b, const struct score_table *t, i32 r, f64 most, bool skill) {
    const struct score_row *row = &t->row[r];
    f64 v = row->value[t->skill_metric];
    str_addf(b, "<tr%s>", row->role == ROLE_MODEL ? " class=\"model\"" : "");
    text_xmlf(b, "<th scope=\"row\"><span class=\"key k%d\"></span>%s</th>", row->role, row->name);
    for (i32 m = 0; m < t->nmetric; m++) str_addf(b, "<td class=\"n%s\">%s</td>", more(t, m), table_value(t, r, m).s);
    if (has_bar(t))
        str_addf(b, "<td class=\"bar\"><i class=\"k%d\" style=\"width:%s%%\"></i></td>", row->role,
                 text_fixed(isfinite(v) && most > 0 ? 100 * dmax(0, v) / most : 0, 1).s);
    if (skill) str_addf(b, "<td class=\"n %s\">", row->skill < -5e-4 ? "down" : row->skill > 5e-4 ? "up" : "");
    if (!isnan(row->skill)) str_add(b, text_skill(row->skill).s);
    str_add(b, skill ? "</td></tr>\n" : "</tr>\n");
}

static bool is_naive(const struct score_table *t, i32 r) {
    const enum role role = t->row[r].role;
    return t->best_naive >= 0 && (role == ROLE_RIDGE || role == ROLE_SNAIVE || role == ROLE_NAIVE);
}

void html_scores(struct str *b, const struct score_table *t) {
    str_add(b, "<div class=\"scroll\"><table>\n<thead><tr><th></th>");
    for (i32 m = 0; m < t->nmetric; m++) {
        str_addf(b, "<th class=\"n%s\">", more(t, m));
        text_xmlf(b, "%s</th>", t->metric[m]);
    }
    bool skill = has_skill(t);
    if (has_bar(t)) str_add(b, "<th class=\"bar\"></th>");
    str_add(b, skill ? "<th class=\"n\">skill</th></tr></thead>\n<tbody>\n" : "</tr></thead>\n<tbody>\n");
    f64 most = largest(t, t->skill_metric);
    for (i32 pass = 0; pass < 2; pass++) /* naive forecasts first: they are what the model has to beat */
        for (i32 r = 0; r < t->nrow; r++)
            if (is_naive(t, r) == (pass == 0)) score_line(b, t, r, most, skill);
    str_add(b, "</tbody></table></div>\n");
}
