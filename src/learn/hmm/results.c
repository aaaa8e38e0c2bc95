/* results.c - labels and scores of a hidden Markov model: the predictions, the score table, the figures of the report. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/hmm/hmm.h"
#include "report/report.h"

/* ------------------------------------------------------------------ predictions --------------------------------------------- */

static err write_rows(const struct hmm *h, const struct token_set *s, const u8 *path, const struct prediction_sink *to) {
    const struct prediction_column column[] = {{.name = "sentence", .key = KEY_COUNT}, {.name = "word"},
                                               {.name = h->tag >= 0 ? "tag" : "state", .value = true}};
    if (to->head) TRY(to->head(to->self, COUNT(column), column));
    for (i32 r = 0; r < s->nsentence; r++) {
        for (i64 i = s->first[r]; i < s->first[r + 1]; i++) {
            const struct prediction_cell cell[] = {{.number = r + 1, .count = r + 1},
                                                   {.text = token_word(token_input(s, 0), i)},
                                                   {.text = vocab_word(&h->label, path[i])}};
            TRY(to->row(to->self, COUNT(cell), cell));
        }
    }
    return 0;
}

err hmm_predict(const struct model *m, const struct dataset *d, const struct resources *use, const struct prediction_sink *to) {
    const struct hmm *h = hmm_of(m);
    const struct token_set *s = token_set_of(d);
    struct hmm_tokens t;
    u8 *path = NULL;
    TRY(hmm_tokens_of(h, s, &t));
    err e = mem_new((void **)&path, s->ntoken, sizeof *path);
    if (e >= 0) e = hmm_decode(h, &(struct hmm_rows){s->nsentence, s->first, t.word, NULL}, use, path, NULL);
    if (e >= 0) e = write_rows(h, s, path, to);
    mem_free(path);
    hmm_tokens_free(&t);
    return e;
}

/* ------------------------------------------------------------------ scores -------------------------------------------------- */

/* The table of one metric: the model's row and that of its baseline. */
static err fill(struct scores *out, const char *title, const char *metric, const f64 value[2], const char *baseline) {
    struct score_table *t;
    struct score_row *row;
    ARENA_NEW(&out->arena, t, 1);
    ARENA_NEW(&out->arena, row, 2);
    row[0] = (struct score_row){.name = "model", .role = ROLE_MODEL, .value = {value[0]}, .skill = out->skill};
    row[1] = (struct score_row){.name = baseline, .role = ROLE_NAIVE, .value = {value[1]}, .skill = (f64)NAN};
    *t = (struct score_table){.title = title, .nmetric = 1, .metric = {metric}, .nrow = 2, .row = row, .best_naive = 1};
    out->table = t;
    out->best = baseline;
    return 0;
}

static void set_skill(struct scores *out, f64 error, f64 baseline) {
    out->error = error;
    out->baseline = baseline;
    out->skill = baseline > 0 ? 1 - error / baseline : (f64)NAN;
}

struct range {
    const char *title;
    i32 from, to; /* sentences */
};

static struct range range_of(const struct scoring *q, const struct token_set *s) {
    if (!q->what) return (struct range){"eval", 0, s->nsentence};
    return (struct range){q->what, (i32)q->from, (i32)q->to};
}

/* Tokens with the right tag, beside the most frequent tag of each word in the training. */
static err score_tags(const struct hmm *h, const struct token_set *s, const struct hmm_tokens *t, const u8 *path,
                      const struct range *r, struct scores *out) {
    const i64 from = s->first[r->from], to = s->first[r->to], n = lmax(1, to - from);
    i64 right = 0, usual = 0;
    for (i64 i = from; i < to; i++) {
        right += t->label[i] == path[i];
        usual += t->label[i] == h->usual[t->word[i]];
    }
    set_skill(out, 1 - (f64)right / (f64)n, 1 - (f64)usual / (f64)n);
    const f64 value[2] = {100 * (f64)right / (f64)n, 100 * (f64)usual / (f64)n};
    return fill(out, r->title, "accuracy %", value, "most frequent tag per word");
}

/* Log-likelihood per token, beside that of words that are independent of each other. */
static err score_words(const struct hmm *h, const struct token_set *s, const struct hmm_tokens *t, const struct range *r,
                       struct scores *out) {
    const i64 n = lmax(1, s->first[r->to] - s->first[r->from]);
    i64 longest = 0;
    f64 *room, sum = 0, alone = 0;
    for (i32 k = r->from; k < r->to; k++) longest = lmax(longest, token_count(s, k));
    NEW(room, hmm_room(h, longest));
    for (i32 k = r->from; k < r->to; k++) {
        sum += hmm_expect(h, t->word + s->first[k], token_count(s, k), NULL, room);
        for (i64 i = s->first[k]; i < s->first[k + 1]; i++) alone += log(h->rate[t->word[i]]);
    }
    mem_free(room);
    const f64 value[2] = {sum / (f64)n, alone / (f64)n};
    set_skill(out, -value[0], -value[1]);
    return fill(out, r->title, "log-likelihood per token", value, "unigram");
}

static err score(const struct hmm *h, const struct token_set *s, const struct hmm_tokens *t, const struct range *r,
                 const struct resources *use, struct scores *out) {
    u8 *path;
    if (h->tag < 0) return score_words(h, s, t, r, out);
    NEW(path, s->ntoken);
    const struct hmm_rows rows = {r->to - r->from, s->first + r->from, t->word, NULL};
    err e = hmm_decode(h, &rows, use, path, NULL);
    if (e >= 0) e = score_tags(h, s, t, path, r, out);
    mem_free(path);
    return e;
}

err hmm_score(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
              struct scores *out) {
    const struct hmm *h = hmm_of(m);
    const struct token_set *s = token_set_of(d);
    const struct range r = range_of(q, s);
    struct hmm_tokens t;
    *out = (struct scores){.skill = (f64)NAN, .records = r.to - r.from};
    if (r.to <= r.from) return 0;
    if (h->tag >= 0 && s->tag < 0)
        return FAIL_AT(E903, d->path, "a file with tags, or: stretto predict MODEL DATA",
                       "the lines have no tag to compare with");
    out->cells = s->first[r.to] - s->first[r.from];
    TRY(hmm_tokens_of(h, s, &t));
    const err e = score(h, s, &t, &r, use, out);
    hmm_tokens_free(&t);
    return e;
}

/* ------------------------------------------------------------------ report -------------------------------------------------- */

static err add_matrix(const struct hmm *h, struct arena *a, struct report_figure *figure) {
    struct str svg = {0};
    const char **label;
    i64 *count;
    ARENA_NEW(a, label, h->L);
    ARENA_NEW(a, count, (i64)h->L * h->L);
    for (i32 l = 0; l < h->L; l++) label[l] = vocab_word(&h->label, l);
    for (i32 k = 0; k < h->L; k++)
        for (i32 l = 0; l < h->L; l++) count[k * h->L + l] = lrint(h->trans[k * h->L + l] * h->left[k]);
    svg_matrix(&svg, label, h->L, count, false);
    *figure = (struct report_figure){.id = "transitions", .heading = "Transitions",
                                     .lead = "How often the label of the row was followed by that of the column in training.",
                                     .svg = arena_strdup(a, str_text(&svg))};
    str_free(&svg);
    return figure->svg ? 0 : -E601;
}

static err add_curve(const struct hmm *h, struct arena *a, struct report_figure *figure) {
    struct str svg = {0};
    const struct chart_layer layer = {
        .mark = MARK_LINE, .role = ROLE_MODEL, .name = "training", .n = h->ncurve, .x0 = 1, .y = h->curve, .hover = true};
    svg_chart(&svg, &(struct chart){.xlabel = "iteration", .ylabel = "log-likelihood per token", .layer = &layer, .n = 1}, false);
    *figure = (struct report_figure){.id = "likelihood", .heading = "Likelihood by iteration",
                                     .lead = "Baum-Welch iterations never decrease the likelihood of the training data.",
                                     .svg = arena_strdup(a, str_text(&svg)), .folded = true};
    str_free(&svg);
    return figure->svg ? 0 : -E601;
}

err hmm_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a, struct report *r) {
    const struct hmm *h = hmm_of(m);
    struct report_figure *figure;
    (void)job, (void)s;
    ARENA_NEW(a, figure, 2);
    TRY(add_matrix(h, a, &figure[0]));
    if (h->ncurve > 1) TRY(add_curve(h, a, &figure[1]));
    r->figure = figure;
    r->nfigure = h->ncurve > 1 ? 2 : 1;
    return 0;
}
