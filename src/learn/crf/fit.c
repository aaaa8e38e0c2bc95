/* fit.c - from sentences to a model: labels, attributes, weights. */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "learn/crf/crf.h"
#include "learn/crf/devices.h"

err crf_new(struct crf **out) {
    NEW(*out, 1);
    (*out)->tag = -1;
    return 0;
}

void crf_free(struct model *m) {
    struct crf *f = crf_of(m);
    templates_free(&f->t);
    vocab_free(&f->attribute);
    vocab_free(&f->label);
    tag_rule_free(&f->rule);
    mem_free(f->w);
    mem_free(f);
}

/* ------------------------------------------------------------------ data ---------------------------------------------------- */

/* Labels in order of first appearance in the sentences of the training. */
static err take_labels(struct crf *f, const struct token_set *s, struct crf_problem *p) {
    const struct token_column *tag = token_tag(s);
    NEW(p->gold, p->ntoken);
    for (i64 t = 0; t < p->ntoken; t++) {
        const char *word = token_word(tag, t);
        TRY(vocab_code(&f->label, word, (i64)strlen(word), &p->gold[t]));
    }
    f->L = p->L = f->label.n;
    f->Lp = p->Lp = round_up(f->L, CRF_PAD);
    return f->L > 1 ? 0 : token_one_tag(s, p->ntoken);
}

static err take_data(struct crf *f, const struct learn_job *job, struct crf_problem *p) {
    const struct token_set *s = token_set_of(job->data);
    const f64 t0 = clock_now();
    p->nsentence = (i32)job->split.train;
    p->first = s->first;
    p->ntoken = s->first[p->nsentence];
    f->ncolumn = s->ncolumn;
    f->tag = s->tag;
    f->tokens = p->ntoken;
    TRY(take_labels(f, s, p));
    TRY(tag_rule_learn(s, p->ntoken, p->gold, f->L, &f->rule));
    f->items = s->items;
    if (s->items && job->o->template && *job->o->template)
        return FAIL_AT(E106, "--template", "no --template",
                       "the items of CRFsuite's format are the attributes: templates make none");
    if (s->items) f->t.bigram = true;
    else TRY(templates_load(job->o->template, s->ninput, &f->t));
    TRY(features_collect(&f->t, s, p->ntoken, (i32)job->o->cutoff, job->use.pool, &f->attribute, &f->seen, &p->f));
    if (f->attribute.n == 0)
        return FAIL_AT(E214, "--cutoff", "--cutoff 1", "none of %lld attributes occurs %lld times", (long long)f->seen,
                       (long long)job->o->cutoff);
    f->nattr = p->nattr = f->attribute.n;
    p->nrow = p->nattr + p->L;
    p->bigram = f->t.bigram;
    TRY(crf_problem_index(p));
    f->collect_seconds = clock_now() - t0;
    event_note(job->use.events, EVENT_NOTE, "%lld attributes, %lld of them at least %lld times: %lld weights for %d labels",
               (long long)f->seen, (long long)f->nattr, (long long)job->o->cutoff,
               (long long)(f->nattr * f->L + (p->bigram ? (i64)f->L * f->L : 0)), f->L);
    return 0;
}

/* ------------------------------------------------------------------ training ------------------------------------------------ */

/* Without --steps; --epsilon ends L-BFGS before. */
static const i64 usual_iterations[] = {[CRF_QUASI_NEWTON] = 10000, [CRF_SGD] = 50, [CRF_ASGD] = 10};

static enum crf_method method_of(const struct options *o) {
    return strcmp(o->trainer, "asgd") == 0 ? CRF_ASGD : strcmp(o->trainer, "sgd") == 0 ? CRF_SGD : CRF_QUASI_NEWTON;
}

static err train(struct crf *f, const struct learn_job *job, const struct crf_problem *p) {
    const struct options *o = job->o;
    const enum crf_method method = method_of(o);
    const struct crf_settings s = {.method = method, .c = o->c, .l1 = o->l1, .epsilon = o->epsilon,
                                   .history = method == CRF_QUASI_NEWTON ? CRF_HISTORY : 0,
                                   .iterations = opt_is_auto(o, OPT_steps) ? usual_iterations[method] : o->steps,
                                   .seed = (u64)o->seed};
    struct crf_run r;
    struct crf_course out;
    struct snapshots shots = {0};
    err e = crf_run_open(p, &s, &job->use, &r);
    if (e >= 0) e = snapshots_open(job, &shots);
    if (e >= 0) e = method == CRF_QUASI_NEWTON ? crf_minimise(&r, &shots, &out) : crf_descend(&r, &shots, &out);
    if (e == 0) e = map_run_keep(&r.run, &f->model);
    if (e == 0 && r.shared) shared_crf_note(r.shared, job->use.events);
    if (e == 0) {
        f->w = r.w;
        r.w = NULL;
        f->objective = out.objective;
        f->iterations = (i32)out.iterations;
        f->evaluations = (i32)out.evaluations;
        f->model.stopped = out.late ? STOP_TIME : 0;
    }
    snapshots_close(&shots);
    crf_run_close(&r);
    return e;
}

/* Leaves out attributes whose weights are all 0, which --l1 makes many. */
static err prune(struct crf *f) {
    struct vocab kept = {0};
    i64 n = 0;
    for (i64 a = 0; a < f->nattr; a++) {
        const f32 *w = f->w + a * f->Lp;
        const char *word = vocab_word(&f->attribute, (i32)a);
        i32 y = 0, code;
        while (y < f->L && w[y] == 0) y++;
        if (y == f->L) continue;
        const err e = vocab_code(&kept, word, (i64)strlen(word), &code);
        if (e < 0) {
            vocab_free(&kept);
            return e;
        }
        memmove(f->w + n++ * f->Lp, w, sizeof *w * (size_t)f->Lp);
    }
    memmove(f->w + n * f->Lp, f->w + f->nattr * f->Lp, sizeof *f->w * (size_t)f->L * (size_t)f->Lp);
    vocab_free(&f->attribute);
    f->attribute = kept;
    f->nattr = n;
    return 0;
}

static err fit(struct crf *f, const struct learn_job *job) {
    const f64 t0 = clock_now();
    struct crf_problem p = {0};
    err e = take_data(f, job, &p);
    if (e >= 0) e = train(f, job, &p);
    if (e == 0) e = prune(f);
    if (e == 0)
        event_note(job->use.events, EVENT_NOTE, "objective %.2f after %d iterations, %d passes; %lld attributes with a weight",
                   f->objective, f->iterations, f->evaluations, (long long)f->nattr);
    f->model.train_records = p.nsentence;
    f->model.seconds = clock_now() - t0;
    crf_problem_free(&p);
    return e;
}

err crf_fit(const struct learn_job *job, struct model **out) {
    struct crf *f;
    if (token_set_of(job->data)->tag < 0)
        return FAIL_AT(E102, job->data->path, "--target of the column of tags", "a CRF learns from tags");
    TRY(crf_new(&f));
    const err e = fit(f, job);
    if (e != 0) crf_free(&f->model);
    else *out = &f->model;
    return e;
}
