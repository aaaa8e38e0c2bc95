/* tag_results.c - see tag_results.h. */
#include "learn/tag_results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "learn/chunks.h"
#include "report/report.h"

/* ------------------------------------------------------------------ the naive rule ------------------------------------------ */

static const struct token_column *rule_column(const struct token_set *s) { return token_input(s, s->ninput - 1); }

/* Words are numbered in order of first appearance, so those of the first tokens are the first words of the column. */
static err rule_words(const struct token_column *c, i64 ntoken, struct tag_rule *r) {
    i32 n = 0, code;
    for (i64 t = 0; t < ntoken; t++) n = imax(n, c->code[t] + 1);
    for (i32 i = 0; i < n; i++) TRY(vocab_code(&r->word, vocab_word(&c->word, i), (i64)strlen(vocab_word(&c->word, i)), &code));
    return 0;
}

err tag_rule_learn(const struct token_set *s, i64 ntoken, const i32 *gold, i32 L, struct tag_rule *r) {
    const struct token_column *c = rule_column(s);
    i32 *count;
    TRY(rule_words(c, ntoken, r));
    const i64 n = r->word.n;
    NEW(r->label, n + 1);
    NEW(count, (n + 1) * L);
    for (i64 t = 0; t < ntoken; t++) {
        count[(i64)c->code[t] * L + gold[t]]++;
        count[n * L + gold[t]]++;
    }
    for (i64 i = 0; i <= n; i++)
        for (i32 y = 1; y < L; y++)
            if (count[i * L + y] > count[i * L + r->label[i]]) r->label[i] = y;
    mem_free(count);
    return 0;
}

void tag_rule_free(struct tag_rule *r) {
    vocab_free(&r->word);
    mem_free(r->label);
    *r = (struct tag_rule){0};
}

/* *out [ntoken], on the heap. */
static err rule_apply(const struct tag_rule *r, const struct token_set *s, i32 **out) {
    const struct token_column *c = rule_column(s);
    i32 *of_word, *label;
    NEW(of_word, c->word.n + 1);
    for (i32 i = 0; i < c->word.n; i++) {
        const char *word = vocab_word(&c->word, i);
        const i32 at = vocab_find(&r->word, word, (i64)strlen(word));
        of_word[i] = r->label[at < 0 ? r->word.n : at];
    }
    const err e = mem_new((void **)&label, s->ntoken + 1, sizeof *label);
    for (i64 t = 0; e >= 0 && t < s->ntoken; t++) label[t] = of_word[c->code[t]];
    mem_free(of_word);
    *out = e < 0 ? NULL : label;
    return e;
}

/* ------------------------------------------------------------------ lines --------------------------------------------------- */

static err put_line(const struct prediction_sink *to, const char *text) {
    return to->row(to->self, 1, &(struct prediction_cell){.text = text});
}

static err put_sentence(const struct vocab *label, const struct token_set *s, i32 k, const i32 *best,
                        const struct tag_marginals *m, struct str *line, const struct prediction_sink *to) {
    for (i64 t = s->first[k]; t < s->first[k + 1]; t++) {
        line->len = 0;
        for (i32 c = 0; c < s->ncolumn && !s->items; c++) {
            str_add(line, token_word(&s->column[c], t));
            str_add(line, s->tabs ? "\t" : " ");
        }
        str_add(line, vocab_word(label, best[t]));
        for (i32 y = 0; m && y < label->n; y++)
            str_addf(line, "%s%s/%.6g", s->tabs || s->items ? "\t" : " ", vocab_word(label, y), (f64)m->p[t * m->ld + y]);
        TRY(str_ok(line));
        TRY(put_line(to, line->s));
    }
    return put_line(to, "");
}

err tags_write(const struct token_set *s, const struct vocab *label, const i32 *best, const struct tag_marginals *m,
               const struct prediction_sink *to) {
    struct str line = {0};
    err e = 0;
    for (i32 k = 0; e >= 0 && k < s->nsentence; k++) e = put_sentence(label, s, k, best, m, &line, to);
    str_free(&line);
    return e;
}

/* ------------------------------------------------------------------ scores -------------------------------------------------- */

enum { ACCURACY, PRECISION, RECALL, F1, NMETRIC };

struct tags_detail {
    i64 *confusion; /* [L + 1][L + 1] by gold label (row; the last: unknown to the model) and predicted label */
    i32 L;
};

static void free_detail(void *detail) {
    mem_free(((struct tags_detail *)detail)->confusion);
    mem_free(detail);
}

static void fill_row(struct score_row *row, const char *name, enum role role, const struct chunk_count *c) {
    *row = (struct score_row){.name = name, .role = role, .skill = (f64)NAN};
    row->value[ACCURACY] = (f64)NAN;
    row->value[PRECISION] = chunk_precision(c);
    row->value[RECALL] = chunk_recall(c);
    row->value[F1] = chunk_f1(c);
}

static err make_table(const struct token_set *s, const struct chunk_scores *model, const struct chunk_scores *naive,
                      const char *what, struct scores *out) {
    struct arena *a = &out->arena;
    struct score_table *t;
    struct score_row *row;
    const bool chunks = model->all.gold + model->all.found > 0;
    ARENA_NEW(a, t, 1);
    ARENA_NEW(a, row, 2 + model->type.n);
    const struct score_table heads = {.metric = {"accuracy", "precision", "recall", "F1"}, .nmetric = chunks ? NMETRIC : 1,
                                      .row = row, .nrow = 2, .skill_metric = chunks ? F1 : ACCURACY, .best_naive = 1,
                                      .decimals = 2};
    *t = heads;
    t->title = arena_printf(a, "%s %lld tokens, %lld chunks, %%", what, (long long)model->tokens, (long long)model->all.gold);
    fill_row(&row[0], "model", ROLE_MODEL, &model->all);
    fill_row(&row[1], arena_printf(a, "tag per %s", token_input(s, s->ninput - 1)->name), ROLE_NAIVE, &naive->all);
    row[0].value[ACCURACY] = 100 * (f64)model->right / (f64)lmax(1, model->tokens);
    row[1].value[ACCURACY] = 100 * (f64)naive->right / (f64)lmax(1, naive->tokens);
    for (i32 i = 0; i < model->type.n; i++) {
        const char *name;
        TRY(arena_keep(a, &name, vocab_word(&model->type, i)));
        fill_row(&row[t->nrow++], name, ROLE_QUIET, &model->each[i]);
    }
    out->table = t;
    out->error = 100 - (chunks ? row[0].value[F1] : row[0].value[ACCURACY]);
    out->baseline = 100 - (chunks ? row[1].value[F1] : row[1].value[ACCURACY]);
    out->best = row[1].name;
    if (out->baseline > 0) out->skill = row[0].skill = 1 - out->error / out->baseline;
    out->cells = model->tokens;
    return 0;
}

static err count_confusion(const struct token_set *s, const struct tags_scored *q, struct scores *out) {
    const struct token_column *gold = token_tag(s);
    struct tags_detail *d;
    NEW(d, 1);
    out->detail = d;
    out->free_detail = free_detail;
    const i32 L = d->L = q->label->n;
    NEW(d->confusion, (i64)(L + 1) * (L + 1));
    i64 unknown = 0, first = 0;
    for (i64 t = s->first[q->from]; t < s->first[q->to]; t++) {
        const char *word = token_word(gold, t);
        const i32 y = vocab_find(q->label, word, (i64)strlen(word));
        d->confusion[(i64)(y < 0 ? L : y) * (L + 1) + q->best[t]]++;
        if (y < 0 && unknown++ == 0) first = t;
    }
    if (unknown == 0) return 0;
    char where[256];
    token_where(s, first, where);
    snprintf(out->said, sizeof out->said, "%lld token%s with a tag that the training did not have, first \"%.30s\" at %.80s: "
             "counted as missed", (long long)unknown, unknown == 1 ? " comes" : "s come", token_word(gold, first), where);
    return 0;
}

static err score_with(const struct token_set *s, const struct tags_scored *q, const i32 *naive, struct scores *out) {
    const struct chunk_tags gold = {&token_tag(s)->word, token_tag(s)->code}, mine = {q->label, q->best},
                            rule = {q->label, naive};
    struct chunk_scores model = {0}, base = {0};
    err e = chunks_score(&gold, &mine, s->first + q->from, q->to - q->from, &model);
    if (e >= 0) e = chunks_score(&gold, &rule, s->first + q->from, q->to - q->from, &base);
    if (e >= 0) e = make_table(s, &model, &base, q->what, out);
    if (e >= 0) e = count_confusion(s, q, out);
    chunks_free(&model);
    chunks_free(&base);
    out->records = q->to - q->from;
    return e;
}

err tags_score(const struct token_set *s, const struct tags_scored *q, struct scores *out) {
    i32 *naive;
    TRY(rule_apply(q->rule, s, &naive));
    const err e = score_with(s, q, naive, out);
    mem_free(naive);
    return e;
}

err tags_range(const struct token_set *s, const struct scoring *q, struct tags_scored *out) {
    if (s->tag < 0)
        return FAIL_AT(E903, s->set.path, "a file with the tag in every line", "scores need the tags, which these lines lack");
    out->what = q->what ? q->what : "all";
    out->from = q->what ? (i32)q->from : 0;
    out->to = q->what ? (i32)q->to : s->nsentence;
    return 0;
}

/* ------------------------------------------------------------------ report -------------------------------------------------- */

err tags_report(const struct vocab *label, const struct scores *s, struct arena *a, struct report *r) {
    const struct tags_detail *d = s ? s->detail : NULL;
    struct report_figure *figure;
    const char **name;
    struct str svg = {0};
    if (!d) return 0;
    const i32 L = d->L;
    ARENA_NEW(a, name, L + 1);
    for (i32 y = 0; y < L; y++) name[y] = vocab_word(label, y);
    name[L] = "unknown";
    svg_matrix(&svg, name, L + 1, d->confusion, false);
    ARENA_NEW(a, figure, 1);
    err e = str_ok(&svg);
    *figure = (struct report_figure){.id = "confusion", .heading = "Tags",
                                     .lead = "Rows: tags of the file; columns: tags of the model."};
    if (e >= 0) e = arena_keep(a, &figure->svg, str_text(&svg));
    str_free(&svg);
    r->figure = figure;
    r->nfigure = 1;
    return e;
}
