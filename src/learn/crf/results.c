/* results.c - tags of new sentences, and their scores over chunks. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "learn/crf/crf.h"
#include "report/report.h"

/* ------------------------------------------------------------------ decoding ------------------------------------------------ */

struct decoding {
    const struct crf *f;
    const struct crf_kern *kern;
    const struct token_set *s;
    struct features x;
    i32 longest, nworker;
    i32 *best;          /* [ntoken] */
    f32 *u;             /* [nworker][longest][Lp] */
    i32 *from;          /* the same */
    f32 *v;             /* [nworker][2][Lp] */
    atomic_int next;    /* sentence */
};

static void decode_some(void *arg, i32 worker) {
    enum { TOGETHER = 16 };
    struct decoding *d = arg;
    const struct crf *f = d->f;
    const i64 room = (i64)worker * d->longest * f->Lp;
    const struct crf_pass p = {.L = f->L, .Lp = f->Lp, .w = f->w, .at = d->x.at, .attribute = d->x.attribute};
    for (i32 k; (k = atomic_fetch_add(&d->next, TOGETHER)) < d->s->nsentence;)
        for (i32 j = k; j < imin(k + TOGETHER, d->s->nsentence); j++) {
            d->kern->score(&p, d->s->first[j], token_count(d->s, j), d->u + room);
            d->kern->decode(d->u + room, f->w + f->nattr * f->Lp, f->L, f->Lp, token_count(d->s, j), d->from + room,
                            d->v + (i64)worker * 2 * f->Lp, d->best + d->s->first[j]);
        }
}

static void decoding_free(struct decoding *d) {
    features_free(&d->x);
    mem_free(d->best);
    mem_free(d->u);
    mem_free(d->from);
    mem_free(d->v);
}

static err decode(struct decoding *d, struct pool *pool) {
    const struct crf *f = d->f;
    for (i32 j = 0; j < d->s->nsentence; j++) d->longest = imax(d->longest, token_count(d->s, j));
    d->nworker = pool_size(pool);
    const i64 room = (i64)d->nworker * d->longest * f->Lp;
    TRY(features_map(&f->t, d->s, pool, &f->attribute, &d->x));
    NEW(d->best, d->s->ntoken);
    NEW(d->u, room);
    NEW(d->from, room);
    NEW(d->v, (i64)d->nworker * 2 * f->Lp);
    pool_run(pool, decode_some, d);
    return 0;
}

/* The best labels of all tokens; the caller frees *best. */
static err find_labels(const struct crf *f, const struct dataset *d, const struct resources *use, i32 **best) {
    struct decoding x = {.f = f, .kern = crf_kern_for((i32)use->kern->arch), .s = token_set_of(d)};
    const err e = decode(&x, use->pool);
    if (e >= 0) {
        *best = x.best;
        x.best = NULL;
    }
    decoding_free(&x);
    return e;
}

err crf_open(const struct model *m, const struct options *o, const char *path, const struct events *to, struct dataset **out) {
    const struct crf *f = crf_of(m);
    (void)o, (void)to;
    return token_set_read_as(path, f->ncolumn, f->tag, out);
}

/* ------------------------------------------------------------------ predictions --------------------------------------------- */

static err put_line(const struct prediction_sink *to, const char *text) {
    return to->row(to->self, 1, &(struct prediction_cell){.text = text});
}

static err put_sentence(const struct crf *f, const struct token_set *s, i32 k, const i32 *best, struct str *line,
                        const struct prediction_sink *to) {
    for (i64 t = s->first[k]; t < s->first[k + 1]; t++) {
        line->len = 0;
        for (i32 c = 0; c < s->ncolumn; c++) {
            str_add(line, token_word(&s->column[c], t));
            str_add(line, s->tabs ? "\t" : " ");
        }
        str_add(line, vocab_word(&f->label, best[t]));
        TRY(str_ok(line));
        TRY(put_line(to, line->s));
    }
    return put_line(to, "");
}

err crf_predict(const struct model *m, const struct dataset *d, const struct resources *use, const struct prediction_sink *to) {
    const struct crf *f = crf_of(m);
    const struct token_set *s = token_set_of(d);
    struct str line = {0};
    i32 *best = NULL;
    err e = find_labels(f, d, use, &best);
    for (i32 k = 0; e >= 0 && k < s->nsentence; k++) e = put_sentence(f, s, k, best, &line, to);
    str_free(&line);
    mem_free(best);
    return e;
}

/* ------------------------------------------------------------------ scores -------------------------------------------------- */

enum { ACCURACY, PRECISION, RECALL, F1, NMETRIC };

struct crf_detail {
    i64 *confusion; /* [L + 1][L + 1] by gold label (row; the last: unknown to the model) and predicted label */
    i32 L;
};

static void free_detail(void *detail) {
    mem_free(((struct crf_detail *)detail)->confusion);
    mem_free(detail);
}

static void fill_row(struct score_row *row, const char *name, enum role role, const struct chunk_count *c) {
    *row = (struct score_row){.name = name, .role = role, .skill = (f64)NAN};
    row->value[ACCURACY] = (f64)NAN;
    row->value[PRECISION] = chunk_precision(c);
    row->value[RECALL] = chunk_recall(c);
    row->value[F1] = chunk_f1(c);
}

/* Labels of the model's words as tags of the naive rule. */
static err naive_labels(const struct crf *f, const struct token_set *s, i32 *to) {
    const struct token_column *c = token_input(s, s->ninput - 1);
    i32 *tag;
    NEW(tag, c->word.n);
    for (i32 i = 0; i < c->word.n; i++) {
        const char *word = vocab_word(&c->word, i);
        const i32 at = vocab_find(&f->naive_word, word, (i64)strlen(word));
        tag[i] = f->naive_tag[at < 0 ? f->naive_word.n : at];
    }
    for (i64 t = 0; t < s->ntoken; t++) to[t] = tag[c->code[t]];
    mem_free(tag);
    return 0;
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

static err count_confusion(const struct crf *f, const struct token_set *s, i32 from, i32 to, const i32 *best, struct scores *out) {
    const struct token_column *gold = token_tag(s);
    struct crf_detail *d;
    NEW(d, 1);
    out->detail = d;
    out->free_detail = free_detail;
    d->L = f->L;
    NEW(d->confusion, (i64)(f->L + 1) * (f->L + 1));
    i64 unknown = 0;
    for (i64 t = s->first[from]; t < s->first[to]; t++) {
        const char *word = token_word(gold, t);
        const i32 y = vocab_find(&f->label, word, (i64)strlen(word));
        d->confusion[(i64)(y < 0 ? f->L : y) * (f->L + 1) + best[t]]++;
        unknown += y < 0;
    }
    if (unknown > 0)
        snprintf(out->said, sizeof out->said, "%lld token%s with a tag that the training did not have: counted as missed",
                 (long long)unknown, unknown == 1 ? " comes" : "s come");
    return 0;
}

static err score_range(const struct crf *f, const struct token_set *s, i32 from, i32 to, const i32 *best, const i32 *naive,
                       const char *what, struct scores *out) {
    const struct chunk_tags gold = {&token_tag(s)->word, token_tag(s)->code}, mine = {&f->label, best}, rule = {&f->label, naive};
    struct chunk_scores model = {0}, base = {0};
    err e = chunks_score(&gold, &mine, s->first + from, to - from, &model);
    if (e >= 0) e = chunks_score(&gold, &rule, s->first + from, to - from, &base);
    if (e >= 0) e = make_table(s, &model, &base, what, out);
    if (e >= 0) e = count_confusion(f, s, from, to, best, out);
    chunks_free(&model);
    chunks_free(&base);
    out->records = to - from;
    return e;
}

err crf_score(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
              struct scores *out) {
    const struct crf *f = crf_of(m);
    const struct token_set *s = token_set_of(d);
    const i32 from = q->what ? (i32)q->from : 0, to = q->what ? (i32)q->to : s->nsentence;
    i32 *best = NULL, *naive = NULL;
    *out = (struct scores){.skill = (f64)NAN, .error = (f64)NAN, .baseline = (f64)NAN};
    if (s->tag < 0)
        return FAIL_AT(E903, d->path, "a file with the tag in every line", "scores need the tags, which these lines lack");
    if (to <= from) return 0;
    err e = find_labels(f, d, use, &best);
    if (e >= 0) e = mem_new((void **)&naive, s->ntoken, sizeof *naive);
    if (e >= 0) e = naive_labels(f, s, naive);
    if (e >= 0) e = score_range(f, s, from, to, best, naive, q->what ? q->what : "all", out);
    mem_free(best);
    mem_free(naive);
    return e;
}

/* ------------------------------------------------------------------ report -------------------------------------------------- */

err crf_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a, struct report *r) {
    const struct crf *f = crf_of(m);
    const struct crf_detail *d = s ? s->detail : NULL;
    struct report_figure *figure;
    const char **label;
    struct str svg = {0};
    (void)job;
    if (!d) return 0;
    ARENA_NEW(a, label, f->L + 1);
    for (i32 y = 0; y < f->L; y++) label[y] = vocab_word(&f->label, y);
    label[f->L] = "unknown";
    svg_matrix(&svg, label, f->L + 1, d->confusion, false);
    ARENA_NEW(a, figure, 1);
    err e = str_ok(&svg);
    *figure = (struct report_figure){.id = "confusion", .heading = "Tags", .lead = "Rows: tags of the file; columns: tags of the model."};
    if (e >= 0) e = arena_keep(a, &figure->svg, str_text(&svg));
    str_free(&svg);
    r->figure = figure;
    r->nfigure = 1;
    return e;
}
