/* fit.c - trains a tagger: batches of sentences, validation by the error of the best paths, the loop of train/loop.h. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "exec/policy.h"
#include "learn/tagger/fit.h"
#include "model/layer.h"

enum { SPANS_KEPT = 256, FORWARD_ROWS = 64 };

#define EMBEDDING_DEVIATION 0.25f

/* Counts words of the training: those of one token count as rare. */
static err find_rare(struct tag_fit *f) {
    const i32 n = f->t->feature[0].words.n + 1;
    i32 *count;
    NEW(f->rare, n);
    NEW(count, n);
    for (i64 k = f->s->first[0]; k < f->s->first[f->split.train]; k++) count[f->ids[k]]++;
    for (i32 w = 1; w < n; w++) f->rare[w] = count[w] == 1;
    mem_free(count);
    return 0;
}

/* Numbers of t->tags for all tokens; those that training has not seen are -1. */
static err find_tags(struct tag_fit *f) {
    const struct token_column *c = token_tag(f->s);
    i32 *code;
    TRY(mem_new((void **)&code, c->word.n + 1, sizeof *code));
    for (i32 w = 0; w < c->word.n; w++) {
        const char *word = vocab_word(&c->word, w);
        code[w] = vocab_find(&f->t->tags, word, (i64)strlen(word));
    }
    NEW(f->tag, f->s->ntoken + 1);
    for (i64 k = 0; k < f->s->ntoken; k++) f->tag[k] = code[c->code[k]];
    mem_free(code);
    return 0;
}

static err choose_tags(struct tag_fit *f) {
    const struct token_column *c = token_tag(f->s);
    for (i64 k = 0; k < f->s->first[f->split.train]; k++) {
        i32 at;
        const char *word = token_word(c, k);
        TRY(vocab_code(&f->t->tags, word, (i64)strlen(word), &at));
    }
    return f->t->tags.n > 1 ? 0 : token_one_tag(f->s, f->s->first[f->split.train]);
}

static i32 longest(const struct token_set *s, i64 n) {
    i32 most = 1;
    for (i64 i = 0; i < n; i++) most = imax(most, token_count(s, (i32)i));
    return most;
}

static f32 *const *inputs(void *self, i64 batch, i32 slot, f32 *loss_scale) {
    struct tag_fit *f = self;
    (void)batch;
    *loss_scale = 1.f / (f32)lmax(1, f->train.slot[slot].tokens);
    return f->train.slot[slot].input;
}

static void fill(void *self, i64 k, i32 slot) { tag_batch_train(&((struct tag_fit *)self)->train, k, slot); }

/* Share of the tokens of the validation sentences whose tag is wrong. */
static err validate(void *self, f64 *loss) {
    struct tag_fit *f = self;
    const struct split *p = &f->split;
    i64 wrong = 0, tokens = 0;
    TRY(tagger_decode_with(&f->valid, &f->engine, f->job->use.kern->arch, p->train, p->validation, f->best));
    for (i64 k = p->train; k < p->validation; k++) {
        const i64 first = f->s->first[k], end = first + tag_batch_steps(&f->valid, k);
        for (i64 i = first; i < end; i++) wrong += f->best[i] != f->tag[i];
        tokens += end - first;
    }
    *loss = (f64)wrong / (f64)tokens;
    return 0;
}

static void stepped(void *self, bool finite) {
    (void)finite;
    snapshots_advance(((struct tag_fit *)self)->shots);
}

/* Snapshots complete a checkpoint without the loop. */
static enum train_saving saving(void *self) {
    (void)self;
    return SAVING_NONE;
}

static struct train_job job_of(struct tag_fit *f) {
    const struct options *o = f->job->o;
    const struct resources *use = &f->job->use;
    struct optim_options hyper;
    struct train_job j = {.exec = f->engine.exec,
                          .store = &f->engine.store,
                          .steps_per_epoch = (f64)f->batches,
                          .rows_per_step = f->engine.B,
                          .prefetch = pool_size(use->pool) > 1 || comm_size(use->comm) > 1,
                          .members = 1,
                          .self = f,
                          .fill = fill,
                          .inputs = inputs,
                          .validate = f->split.validation > f->split.train ? validate : NULL,
                          .stepped = stepped,
                          .checkpoint = f->job->run_dir ? tag_fit_checkpoint : NULL,
                          .saving = saving,
                          .events = use->events,
                          .stop = use->stop,
                          .comm = use->comm};
    opt_give_loop(o, &j.options);
    if (j.steps == 0) j.steps = (i64)ceil((isnan(o->epochs) ? TAGGER_EPOCHS : o->epochs) * (f64)f->batches);
    if (j.max_steps < j.steps) j.max_steps = j.steps;
    j.accumulate = 1;
    j.until = f->until;
    j.refit = f->until > 0;
    opt_give_optim(o, &hyper);
    j.hyper = optim_hyper_of(&hyper);
    return j;
}

static err prepare(struct tag_fit *f) {
    const struct options *o = f->job->o;
    const struct split *p = &f->split;
    struct tagger *t = f->t;
    const i32 most = longest(f->s, p->validation);
    const i32 B = (i32)lmin(o->batch, p->train), forward = engine_forward_rows(&t->net, FORWARD_ROWS);
    const struct optim *optim = optim_find(o->optim);
    struct resources use = f->job->use;
    if (!optim) return FAIL(E103, "there is no optimiser \"%s\"", o->optim);
    if (most > TAGGER_STEPS)
        event_note(use.events, EVENT_NOTE, "the longest sentence has %d tokens: training reads the first %d of a sentence", most,
                   TAGGER_STEPS);
    f->batches = (p->train + B - 1) / B;
    use.steps = f->batches;
    TRY(tagger_net(t, imin(most, TAGGER_STEPS), &t->net));
    TRY(engine_new(&t->net, &use, B, forward, optim, &f->engine));
    TRY(tag_batcher_new(t, f->s, &t->net, B, PREFETCH_SLOTS, &f->train));
    TRY(tag_batcher_new(t, f->s, &t->net, forward, 1, &f->valid));
    f->train.ids = f->valid.ids = f->ids;
    f->train.tag = f->valid.tag = f->tag;
    f->train.rare = f->rare;
    f->train.to = p->train;
    f->train.seed = (u64)o->seed;
    t->model.planned_bytes = engine_planned_bytes(&f->engine);
    return train_state_new(&f->engine.store, &f->state);
}

static err keep(struct tag_fit *f, err reason) {
    struct tagger *t = f->t;
    NEW(t->theta, t->net.ntheta);
    memcpy(t->theta, f->engine.store.theta, sizeof *t->theta * (size_t)t->net.ntheta);
    t->model.stopped = reason;
    t->model.seconds = f->state.seconds;
    t->valid_error = isfinite(f->state.best) ? f->state.best : (f64)NAN;
    t->best_step = f->state.best_step;
    str_addf(&t->model.plan_text, "%s, %d sentences a step\n", f->engine.plan->strategy, f->engine.B);
    NEW(t->model.span, SPANS_KEPT);
    t->model.nspan = exec_spans(step_exec(f->engine.exec), t->model.span, SPANS_KEPT);
    return str_ok(&t->model.plan_text);
}

/* Normal numbers of deviation 1, as layers begin with, would outweigh what the first epochs learn. */
static void shrink_embeddings(const struct net *n, f32 *theta) {
    for (const struct op *op = n->op; op < n->op + n->nop; op++)
        for (i64 i = 0; op->layer->table && i < op->ntheta; i++) theta[op->theta0 + i] *= EMBEDDING_DEVIATION;
}

static err learn(struct tag_fit *f) {
    const struct split *p = &f->split;
    f->t->ncol = f->s->ninput;
    f->t->tag_column = f->s->tag;
    f->t->layers = (i32)f->job->o->layers;
    opt_give_net(f->job->o, &f->t->options);
    f->t->model.train_records = p->train;
    f->t->model.valid_records = p->validation - p->train;
    TRY(choose_tags(f));
    TRY(features_choose(f->t, f->s, 0, p->train));
    TRY(features_ids(f->t, f->s, &f->ids));
    TRY(find_tags(f));
    TRY(find_rare(f));
    TRY(tag_rule_learn(f->s, f->s->first[p->train], f->tag, f->t->tags.n, &f->t->rule));
    NEW(f->best, f->s->ntoken + 1);
    TRY(prepare(f));
    net_weights_init(&f->t->net, (u64)f->job->o->seed, f->engine.store.theta);
    shrink_embeddings(&f->t->net, f->engine.store.theta);
    const struct train_job j = job_of(f);
    TRY(tag_fit_restore(f));
    const err reason = train_run(&j, &f->state);
    if (reason == STOP_SIGNAL && !f->job->run_dir)
        return FAIL(E806, "stopped after %lld steps; there is no run folder for a checkpoint", (long long)f->state.step);
    return reason < 0 || reason == STOP_SIGNAL ? reason : keep(f, reason);
}

static i64 refit_steps(const struct learn_job *job, const struct tag_first *first) {
    const struct split *p = &job->split;
    return (i64)ceil((f64)first->best_step * (f64)p->validation / (f64)p->train);
}

static err fit_once(const struct learn_job *job, struct split split, struct snapshots *shots, struct tag_first *first,
                    struct tagger **out) {
    struct tag_fit f = {.job = job, .split = split, .until = first->ended ? refit_steps(job, first) : 0, .shots = shots,
                        .first = first, .s = token_set_of(job->data)};
    NEW(f.t, 1);
    const err e = learn(&f);
    train_state_free(&f.state);
    engine_free(&f.engine);
    tag_batcher_free(&f.train);
    tag_batcher_free(&f.valid);
    mem_free(f.ids);
    mem_free(f.tag);
    mem_free(f.best);
    mem_free(f.rare);
    if (e == 0) *out = f.t;
    else tagger_free(&f.t->model);
    return e;
}

/* Once more on all sentences before the test part, for as many epochs as validated best. */
static err refit(const struct learn_job *job, struct snapshots *shots, struct tag_first *first, struct tagger **out) {
    const struct split *p = &job->split, all = {p->validation, p->validation, p->test};
    event_note(job->use.events, EVENT_NOTE, "refit on all sentences before the test part: %lld steps",
               (long long)refit_steps(job, first));
    const err e = fit_once(job, all, shots, first, out);
    if (e != 0) return e;
    struct tagger *t = *out;
    t->valid_error = first->valid_error;
    t->best_step = refit_steps(job, first);
    t->model.seconds += first->seconds;
    t->model.valid_records = p->validation - p->train;
    return 0;
}

static err fit(const struct learn_job *job, struct snapshots *shots, struct tagger **out) {
    struct tag_first first = {0};
    TRY(tag_fit_begin(shots, &first));
    if (first.ended) return refit(job, shots, &first, out);
    const err e = fit_once(job, job->split, shots, &first, out);
    if (e != 0) return e;
    struct tagger *t = *out;
    if (!job->o->refit_all || job->split.validation == job->split.train || t->best_step == 0 || t->model.stopped == STOP_TIME)
        return 0;
    first = (struct tag_first){1, t->best_step, t->valid_error, t->model.seconds};
    tagger_free(&t->model);
    *out = NULL;
    return refit(job, shots, &first, out);
}

err tagger_fit(const struct learn_job *job, struct model **out) {
    struct snapshots shots;
    struct tagger *t = NULL;
    err e = snapshots_open(job, &shots);
    if (e >= 0) e = fit(job, &shots, &t);
    snapshots_close(&shots);
    if (t) *out = &t->model;
    return e;
}
