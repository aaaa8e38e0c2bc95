/* api_backtest.c - rolling origins: the test rows cut into folds, each scored after training on what came before.
 *
 *     |---------- train + validation ----------|  fold 1 |  fold 2 |  fold 3 |        refit never: one model for all folds
 *     |---------------- train + validation --------------|  fold 2 |                  refit each: again before every fold */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/json.h"
#include "data/series_build.h"

struct backtest {
    struct stretto_trainer *t;      /* for sinks, resources and resolved options */
    struct forecaster *f;
    i32 folds;
    bool each;
    struct str table;
    struct js *json;
    f64 model, naive;               /* sums of errors over the folds that have any, for the last line */
    i32 scored;                     /* so many have: nothing may be observed in one */
};

static err fit_before(struct backtest *b, i64 rows) {
    const struct stretto_trainer *t = b->t;
    if (t->shop.comm) return FAIL_AT(E803, NULL, "stretto backtest without mpirun or srun", "backtest is run by one process");
    const struct learner *learner = learner_find(t->o.task);
    if (!learner) return FAIL_AT(E103, "--task", "--task forecast", "there is no learner \"%s\"", t->o.task);
    struct split split = t->split;
    i64 held = split.validation - split.train;
    split.train = rows - held;
    split.validation = rows;
    forecast_free(b->f);
    b->f = NULL;
    struct forecast_job job = {.series = t->data->s, .split = split, .spec = t->spec, .use = t->shop.use};
    return learner->fit(&job, &b->f);
}

static err show_fold(struct backtest *b, i32 k, i64 from, i64 to, const struct forecast_scores *scores) {
    const struct stretto_trainer *t = b->t;
    char span[72], title[112];
    struct score_view v;
    struct str json = {0};
    struct js *one = NULL;
    span_label(t->data->s, from, to, span);
    snprintf(title, sizeof title, "fold %d of %d: %s", k + 1, b->folds, span);
    TRY(score_view(b->f, scores, &t->o, title, &v));
    table_text(&b->table, v.table);
    table_json(&json, v.table);
    score_view_free(&v);
    err e = js_parse(str_text(&json), json.len, "fold", &one);
    str_free(&json);
    if (e >= 0) js_push(b->json, one);
    bool original = strcmp(t->o.score_scale, "z") != 0;
    i32 best = score_best(b->f, scores, &t->o);
    if (best < 0) return e;
    b->model += forecast_error(b->f, scores->row[SCORE_MODEL], -1, original);
    b->naive += forecast_error(b->f, scores->row[best], -1, original);
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
}

static err one_fold(struct backtest *b, i32 k, i64 from, i64 to) {
    const struct stretto_trainer *t = b->t;
    struct window_set set = {
        .first = lmax(from, t->spec.context), .end = lmin(to, t->split.test - t->spec.horizon + 1), .stride = t->spec.stride};
    struct forecast_scores scores = {0};
    if (k == 0 || b->each) {
        err e = fit_before(b, from);
        if (e != 0) return e;
    }
    TRY(forecast_score(b->f, t->data->s, &set, &t->shop.use, &scores));
    err e = show_fold(b, k, from, to, &scores);
    forecast_scores_free(&scores);
    return e;
}

static err run(struct backtest *b) {
    struct stretto_trainer *t = b->t;
    TRY(resolve_forecast(&t->o, t->data->s, NULL, &t->spec, &t->split));
    TRY(trainer_marks(t));
    b->folds = (i32)t->o.folds;
    b->each = strcmp(t->o.refit, "each") == 0;
    i64 from = t->split.validation, rows = t->split.test - from;
    if (opt_is_auto(&t->o, OPT_test) || !opt_given(&t->o, OPT_test)) {
        rows = lmin(lmax(rows, (i64)b->folds * t->spec.horizon), t->data->s->nrow / 2);
        from = t->split.test - rows;
        i64 held = t->split.validation - t->split.train;
        t->split.validation = from;
        t->split.train = from - held;
    }
    char fix[96];
    snprintf(fix, sizeof fix, "--folds %lld   or   --test %lld", (long long)lmax(1, rows / t->spec.horizon),
             (long long)b->folds * t->spec.horizon);
    if (rows / b->folds < t->spec.horizon)
        return FAIL_AT(E301, NULL, fix,
                       "%d folds of a horizon of %d need %lld test rows, there are %lld", b->folds, t->spec.horizon,
                       (long long)b->folds * t->spec.horizon, (long long)rows);
    TRY(forecast_check_length(&t->split, &t->spec)); /* the first fold has the fewest rows to train on: maybe fewer than none */
    resolve_notes(&t->o, t->data->s, &t->split, &t->events);
    if (!b->each) schema_limit_words(t->data->s, t->split.train, &t->events); /* else later folds learn more of them */
    TRY(data_scale(t->data, t->split.train));
    for (i32 k = 0; k < b->folds; k++) {
        err e = one_fold(b, k, from + rows * k / b->folds, from + rows * (k + 1) / b->folds);
        if (e != 0) return e;
    }
    last_line(b);
    return 0;
}

stretto_err stretto_backtest(stretto_config *config, stretto_data *data, stretto_event_fn *fn, void *user, int json, char **out) {
    struct backtest b = {.json = js_array()};
    struct str text = {0};
    err e = stretto_trainer_new(config, data, &b.t);
    if (e >= 0) {
        stretto_trainer_on_event(b.t, fn, user);
        e = run(&b);
    }
    forecast_free(b.f);
    stretto_trainer_free(b.t);
    if (e == 0 && json) e = js_text(b.json, &text, 2);
    js_free(b.json);
    if (e == 0) e = text_give(json ? &text : &b.table, out);
    str_free(&text);
    str_free(&b.table);
    return e;
}
