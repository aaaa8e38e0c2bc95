/* tagger.c - the learner `tagger`: a tag for each token, by embeddings, LSTM layers and a CRF (tagger/tagger.h). */
#include "learn/tagger/tagger.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* After each epoch; set as an option, so that a resumed run, whose options are all given, has the same. */
static err resolve_validations(struct learn_job *job) {
    static const struct opt_from from = {.rank = OPT_RANK_PRESET, .origin = "an epoch"};
    const i64 train = job->split.train, B = lmin(job->o->batch, train);
    char text[24];
    if (opt_given(job->o, OPT_validate_every) || train < 1) return 0;
    snprintf(text, sizeof text, "%lld", (long long)((train + B - 1) / B));
    return opt_set_id(job->o, OPT_validate_every, text, &from);
}

/* The last tenth of the training sentences says when to stop, where --validation gives no other part. */
static err resolve(struct learn_job *job) {
    struct split *p = &job->split;
    enum { TENTH = 10 };
    if (strcmp(job->o->preset, "auto") == 0) TRY(opt_preset(job->o, "tagger"));
    TRY(token_set_split(job->o, token_set_of(job->data), p));
    if (p->validation == p->train && opt_is_auto(job->o, OPT_validation)) p->train -= p->train / TENTH;
    return resolve_validations(job);
}

static err open_file(const struct model *m, const struct options *o, const char *path, const struct events *to,
                     struct dataset **out) {
    const struct tagger *t = tagger_of(m);
    (void)o, (void)to;
    return token_set_read_as(path, t->ncol + 1, t->tag_column, out);
}

static err predict(const struct model *m, const struct dataset *d, const struct resources *use,
                   const struct prediction_sink *to) {
    const struct token_set *s = token_set_of(d);
    i32 *best;
    TRY(tagger_decode(tagger_of(m), s, 0, s->nsentence, use, &best));
    const err e = tags_write(s, &tagger_of(m)->tags, best, NULL, to);
    mem_free(best);
    return e;
}

static err score(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
                 struct scores *out) {
    const struct tagger *t = tagger_of(m);
    struct tags_scored asked = {.label = &t->tags, .rule = &t->rule};
    i32 *best;
    *out = (struct scores){.skill = (f64)NAN, .error = (f64)NAN, .baseline = (f64)NAN};
    TRY(tags_range(token_set_of(d), q, &asked));
    if (asked.to <= asked.from) return 0;
    TRY(tagger_decode(t, token_set_of(d), asked.from, asked.to, use, &best));
    asked.best = best;
    const err e = tags_score(token_set_of(d), &asked, out);
    mem_free(best);
    return e;
}

static err report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a, struct report *r) {
    (void)job;
    return tags_report(&tagger_of(m)->tags, s, a, r);
}

static err describe(const struct model *m, struct description *out) {
    const struct tagger *t = tagger_of(m);
    out->parameters = t->net.ntheta;
    model_put_end(m, out->record);
    if (!out->info) return 0;
    js_put_i64(out->info, "tags", t->tags.n);
    js_put_i64(out->info, "words", t->feature[0].words.n);
    js_put_i64(out->info, "features of a token", t->nfeature);
    return 0;
}

static const enum opt_id takes[] = {OPT_preset, OPT_cell, OPT_layers, OPT_hidden, OPT_precision, OPT_steps, OPT_epochs,
                                    OPT_time_limit, OPT_batch, OPT_optim, OPT_lr, OPT_schedule, OPT_warmup, OPT_momentum,
                                    OPT_weight_decay, OPT_clip, OPT_dropout, OPT_validate_every, OPT_patience, OPT_seed,
                                    OPT_refit_all, OPT_parallel, OPT_device, OPT_grains,
                                    OPT_deterministic, OPT_checkpoint_every, OPT_COUNT};

static const struct model_ops ops = {.open = open_file, .predict = predict, .score = score, .describe = describe,
                                     .report = report,
                                     .save = tagger_save, .load = tagger_load, .free = tagger_free, .lines = true};

extern const struct learner learner_tagger;
const struct learner learner_tagger = {
    .name = "tagger",
    .help = "a tag for each token of a sentence, by an LSTM in both directions and a CRF",
    .data = &data_tokens,
    .ops = &ops,
    .takes = takes,
    .resolve = resolve,
    .fit = tagger_fit,
};
