/* html_store.c - the report section "Parameter store": counts, a histogram of staleness, the decisions of --store auto.
 *
 *     pushes  ####            a column is a staleness: updates of the server that the worker had not seen; its height, the
 *             #### ##         share of the pushes
 *              0   1   2  */
#include <stdio.h>

#include "report/html_part.h"
#include "report/svg_part.h"
#include "report/text.h"

enum { WIDTH = 1000, HEIGHT = 170, LEFT = 60, TOP = 8, LOW = 38 };

static void fact(struct str *b, const char *name, const char *value) {
    html_text(b, "dt", "", name);
    html_text(b, "dd", "", value);
}

static void bytes_fact(struct str *b, const struct report_store *s) {
    const f64 ratio = (f64)s->whole / (f64)lmax(1, s->sent);
    char text[120], more[120] = "";
    if (s->sent <= 0) return;
    if (ratio > 1.01) /* there is a codec */
        snprintf(more, sizeof more, "; %s as f32, %s times as many", text_si((f64)s->whole).s, text_digits(ratio, 3).s);
    snprintf(text, sizeof text, "%s in %s messages", text_si((f64)s->sent).s, text_si((f64)s->messages).s);
    str_add(b, "<dt>bytes between ranks</dt>\n<dd>");
    text_xmlf(b, "%s%s</dd>\n", text, more);
}

static const char *what(const struct report_store *s) { return s->shared ? "updates" : "pushes"; }

static void servers_fact(struct str *b, const struct report_store *s) {
    char text[120];
    if (s->servers > 0)
        snprintf(text, sizeof text, "%d ranks that only serve", s->servers);
    else
        snprintf(text, sizeof text, "beside the workers, a shard of the weights on each rank");
    fact(b, "servers", text);
}

static void facts(struct str *b, const struct report_store *s) {
    char text[120];
    str_add(b, "<dl>\n");
    fact(b, "policy", s->policy);
    if (!s->shared) servers_fact(b, s);
    snprintf(text, sizeof text, "%d%s", s->workers, s->shared ? ", on one vector of weights" : "");
    fact(b, s->shared ? "threads" : "workers", text);
    snprintf(text, sizeof text, "%lld", (long long)s->pushes);
    fact(b, what(s), text);
    snprintf(text, sizeof text, "%lld not finite", (long long)s->refused);
    fact(b, s->shared ? "refused gradients" : "refused pushes", text);
    if (!s->shared) {
        bytes_fact(b, s);
        snprintf(text, sizeof text, "%s %% of their time", text_fixed(100 * s->waited, 1).s);
        fact(b, "workers waited", text);
    }
    str_add(b, "</dl>\n");
}

static void label(char text[24], const struct report_store *s, i32 bin) {
    snprintf(text, 24, bin == s->nstale - 1 && bin > 0 ? "%d+" : "%d", bin);
}

static void column(struct str *b, const struct report_store *s, i32 bin, f64 wide, f64 share) {
    const f64 x = LEFT + wide * bin, high = dmax(1, (HEIGHT - TOP - LOW) * share), bottom = HEIGHT - LOW;
    char text[24];
    label(text, s, bin);
    svg_text(b, x + wide / 2, bottom + 14, "st-t", "middle", text);
    if (s->stale[bin] == 0) return;
    str_addf(b, "<rect class=\"st-f0\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\">", x + wide / 8, bottom - high,
             wide * 3 / 4, high);
    text_xmlf(b, "<title>%lld %s, staleness %s</title></rect>\n", (long long)s->stale[bin], what(s), text);
}

static void histogram(struct str *b, const struct report_store *s) {
    const f64 wide = (f64)(WIDTH - LEFT) / s->nstale, bottom = HEIGHT - LOW;
    i64 most = 1;
    for (i32 k = 0; k < s->nstale; k++) most = lmax(most, s->stale[k]);
    html_text(b, "h3", "", s->shared ? "Staleness of the updates" : "Staleness of the pushes");
    str_add(b, "<div class=\"scroll\"><div class=\"wide\">\n");
    svg_open(b, WIDTH, HEIGHT, s->shared ? "histogram of the staleness of updates" : "histogram of the staleness of pushes",
             false);
    svg_text(b, LEFT - 8, TOP + 10, "st-t", "end", text_si((f64)most).s);
    svg_text(b, LEFT - 8, bottom, "st-t", "end", "0");
    svg_text(b, LEFT - 8, (TOP + bottom) / 2 + 8, "st-t", "end", what(s));
    for (i32 k = 0; k < s->nstale; k++) column(b, s, k, wide, (f64)s->stale[k] / (f64)most);
    svg_line(b, "st-ax", LEFT, bottom, WIDTH, bottom);
    svg_text(b, (LEFT + WIDTH) / 2., HEIGHT - 6, "st-t", "middle",
             s->shared ? "updates of other threads behind the begin of the gradient"
                       : "updates of the server that the worker had not seen");
    str_add(b, "</svg>\n</div></div>\n");
}

void html_store(struct str *b, const struct report_store *s) {
    html_section(b, "store", "Parameter store",
                 s->shared ? "threads of one process update one vector of weights, each by itself (docs/stores.md)"
                           : "workers pull weights from servers and push gradients or changes of weights (docs/stores.md)");
    facts(b, s);
    if (s->nstale > 0) histogram(b, s);
    if (s->ndecision > 0) {
        html_text(b, "h3", "", "Decisions of --store auto");
        html_facts(b, s->decision, s->ndecision);
    }
    html_end(b);
}
