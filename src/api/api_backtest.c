/* api_backtest.c - rolling origins: the test rows cut into folds, each scored after training on what came before.
 *
 *     |---------- train + validation ----------|  fold 1 |  fold 2 |  fold 3 |        refit never: one model for all folds
 *     |---------------- train + validation --------------|  fold 2 |                  refit each: again before every fold */
#include <stdio.h>
#include <string.h>

#include "api/lost.h"
#include "api/score_file.h"
#include "base/json.h"

enum { FOLDS_MOST = 1000 };

struct backtest {
    struct stretto_trainer *t;      /* provides events, resources and resolved options */
    struct model *m;
    i32 folds;
    bool each;
    i64 border[FOLDS_MOST + 1];
    struct str table;
    struct score_lines *lines;      /* of series or groups, summed over the folds */
    struct arena arena;             /* holds them */
    struct js *json;
    f64 model, naive;               /* sums of errors over the folds with targets, for the last line */
    i32 scored;                     /* number of those folds */
};

static err fit_before(struct backtest *b, i64 rows) {
    const struct stretto_trainer *t = b->t;
    if (t->ctx.comm) return FAIL_AT(E803, NULL, "stretto backtest without mpirun or srun", "backtest is run by one process");
    struct learn_job job = t->job;
    job.split.train = rows - (job.split.validation - job.split.train);
    job.split.validation = rows;
    model_free(b->m);
    b->m = NULL;
    return learner_fit(t->learner, &job, &b->m);
}

static err sum_lines(struct backtest *b, const struct score_lines *l) {
    if (!l) return 0;
    if (!b->lines) return lines_copy(&b->arena, l, &b->lines);
    lines_add(b->lines, l);
    return 0;
}

static err show_fold(struct backtest *b, const struct scores *scores) {
    struct str json = {0};
    struct js *one = NULL;
    struct score_table shown = *scores->table;
    shown.lines = NULL; /* last_line shows those of all folds */
    table_text(&b->table, &shown);
    table_json(&json, scores->table);
    err e = js_parse(str_text(&json), json.len, "fold", &one);
    str_free(&json);
    if (e >= 0) js_push(b->json, one);
    if (e >= 0) e = sum_lines(b, scores->table->lines);
    if (!scores->best) return e;
    b->model += scores->error;
    b->naive += scores->baseline;
    b->scored++;
    return e;
}

static void last_line(struct backtest *b) {
    if (b->scored == 0) {
        str_add(&b->table, "no fold could be scored: none has a target that was observed\n");
        return;
    }
    str_addf(&b->table, "mean over %d folds", b->scored);
    if (b->scored < b->folds) str_addf(&b->table, " of %d (nothing was observed in the others)", b->folds);
    str_addf(&b->table, ": error %.6g, best naive forecast of each fold %.6g", b->model / b->scored, b->naive / b->scored);
    if (b->naive > 0) str_addf(&b->table, ", skill %+.1f%%", 100 * (1 - b->model / b->naive));
    str_add(&b->table, "\n");
    if (b->lines) lines_text(&b->table, b->lines);
}

static err one_fold(struct backtest *b, i32 k) {
    const struct stretto_trainer *t = b->t;
    char what[48];
    struct scores scores = {0};
    if (k == 0 || b->each) {
        err e = fit_before(b, b->border[k]);
        if (e != 0) return e;
    }
    snprintf(what, sizeof what, "fold %d of %d:", k + 1, b->folds);
    const struct scoring fold = {
        .show = &t->o, .what = what, .from = b->border[k], .to = b->border[k + 1], .rows = t->job.split.test};
    TRY(t->learner->ops->score(b->m, t->data->set, &fold, &t->job.use, &scores));
    err e = scores.table ? show_fold(b, &scores) : 0;
    scores_free(&scores);
    return e;
}

static err run(struct backtest *b) {
    struct stretto_trainer *t = b->t;
    TRY(trainer_job(t, &t->events));
    if (!t->learner->folds)
        return FAIL_AT(E106, "--task", "--task forecast", "%s has no rolling origins to test on", t->learner->name);
    b->folds = (i32)lmin(t->o.folds, FOLDS_MOST);
    b->each = strcmp(t->o.refit, "each") == 0;
    TRY(t->learner->folds(&t->job, b->folds, b->each, b->border));
    for (i32 k = 0; k < b->folds; k++) {
        err e;
        do e = one_fold(b, k);
        while (e < 0 && lost_left(t, e, "with this fold from its beginning"));
        if (e != 0) return e;
    }
    last_line(b);
    return score_file(&t->o, b->lines);
}

void stretto_backtest_stop(stretto_config *config) { config->stop = 1; }

stretto_err stretto_backtest(stretto_config *config, stretto_data *data, stretto_event_fn *fn, void *user, int json, char **out) {
    struct backtest b = {.json = js_array()};
    struct str text = {0};
    *out = NULL;
    err e = stretto_trainer_new(config, data, &b.t);
    if (e >= 0) {
        stretto_trainer_on_event(b.t, fn, user);
        b.t->ctx.use.stop = &config->stop;
        e = run(&b);
    }
    config->stop = 0;
    model_free(b.m);
    stretto_trainer_free(b.t);
    if (e == 0 && json) e = js_text(b.json, &text, 2);
    js_free(b.json);
    if (e == 0) e = text_give(json ? &text : &b.table, out);
    str_free(&text);
    str_free(&b.table);
    arena_free(&b.arena);
    return e;
}
