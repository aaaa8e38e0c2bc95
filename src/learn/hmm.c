/* hmm.c - the learner `hmm`: hidden Markov models of words, with tags or hidden states (hmm/hmm.h). */
#include "learn/hmm/hmm.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

err hmm_alloc(struct hmm *h) {
    const i32 L = h->L;
    char name[16];
    NEW(h->theta, hmm_floats(h));
    NEW(h->rate, h->W);
    NEW(h->usual, h->W);
    h->start = h->theta;
    h->trans = h->start + L;
    h->emit = h->trans + (i64)L * L;
    h->left = h->emit + (i64)h->W * L;
    h->emitted = h->left + L;
    h->sums = h->emitted + L;
    for (i32 l = h->label.n; l < L; l++) { /* hidden states are numbered */
        i32 code;
        snprintf(name, sizeof name, "%d", l);
        TRY(vocab_code(&h->label, name, (i64)strlen(name), &code));
    }
    return 0;
}

static void free_model(struct model *m) {
    struct hmm *h = hmm_of(m);
    vocab_free(&h->word);
    vocab_free(&h->label);
    mem_free(h->theta);
    mem_free(h->rate);
    mem_free(h->usual);
    mem_free(h->curve);
    hmm_fixed_free(&h->fixed);
    mem_free(h);
}

/* ------------------------------------------------------------------ data ---------------------------------------------------- */

static err check(const struct options *o) {
    if (!learner_on_cores(o))
        return FAIL_AT(E106, "--device", "no --device", "--task hmm trains on the cores; predict and eval take --device");
    if (o->states > 0 && o->target && *o->target && strcmp(o->target, "0") != 0)
        return FAIL_AT(E106, "--states", "--target COLUMN to count tags   or   --states N for hidden states",
                       "--states is for files without tags, --target names the column of the tags");
    return 0;
}

static err resolve(struct learn_job *job) {
    const struct token_set *s = token_set_of(job->data);
    if (s->tag < 0 && job->o->states == 0)
        return FAIL_AT(E105, "--states", "--states 8", "the file has no tags: the number of hidden states must be given");
    if (s->ninput > 1)
        event_note(job->use.events, EVENT_NOTE, "words are those of %s; %d other column%s not used", token_input(s, 0)->name,
                   s->ninput - 1, s->ninput == 2 ? " is" : "s are");
    return token_set_split(job->o, s, &job->split);
}

static void warn_of_tags(const struct token_set *s, i64 strange, i64 first, const struct events *to) {
    char where[256];
    token_where(s, first, where);
    event_note(to, EVENT_WARNING, "%lld tokens have tags that the training has not seen, first \"%.60s\" at %s: they count "
               "as errors", (long long)strange, token_word(token_tag(s), first), where);
}

static err open_data(const struct model *m, const struct options *o, const char *path, const struct events *to,
                     struct dataset **out) {
    const struct hmm *h = hmm_of(m);
    struct hmm_tokens t;
    i64 strange = 0, first = -1;
    (void)o;
    TRY(token_set_read_as(path, h->ncolumn, h->tag < 0 ? TOKENS_NO_TAG : h->tag, out));
    const struct token_set *s = token_set_of(*out);
    const err e = hmm_tokens_of(h, s, &t);
    if (e < 0) {
        dataset_free(*out);
        return e;
    }
    for (i64 i = 0; t.label && i < s->ntoken; i++) {
        if (t.label[i] >= 0) continue;
        if (strange++ == 0) first = i;
    }
    if (t.unknown > 0)
        event_note(to, EVENT_WARNING, "%lld of %lld tokens are words that the training has not seen: all labels have smoothed "
                   "probabilities for them", (long long)t.unknown, (long long)s->ntoken);
    if (strange > 0)
        warn_of_tags(s, strange, first, to);
    hmm_tokens_free(&t);
    return 0;
}

static const struct model_ops ops = {
    .open = open_data,
    .predict = hmm_predict,
    .score = hmm_score,
    .describe = hmm_describe,
    .decode = hmm_decode_file,
    .report = hmm_report,
    .save = hmm_save,
    .load = hmm_load,
    .free = free_model,
};

static const enum opt_id takes[] = {OPT_states,   OPT_smoothing, OPT_iterations, OPT_tolerance,
                                    OPT_restarts, OPT_seed,      OPT_time_limit, OPT_checkpoint_every,
                                    OPT_device,   OPT_COUNT};

extern const struct learner learner_hmm;
const struct learner learner_hmm = {
    .name = "hmm",
    .help = "tags or hidden states of words in sequences, by a hidden Markov model",
    .data = &data_tokens,
    .ops = &ops,
    .takes = takes,
    .offloads = OFFLOADS_PREDICT,
    .check = check,
    .resolve = resolve,
    .fit = hmm_fit,
};
