/* t_tagger.c - the learner `tagger`: it learns a rule of words and neighbours, for unknown words too; the same weights for any
 * threads and ranks; saved models tag the same; long sentences; files that do not fit. */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/mem.h"
#include "base/rng.h"
#include "learn/tagger/tagger.h"
#include "t.h"

enum { SENTENCES = 240, TESTED = 60 };

/* A word is a stem and an ending.  Its tag follows from the ending, but "or" takes the tag of the next word. */
static const char *const ending[] = {"ing", "ed", "ly", "or"};
static const char *const tag[] = {"GO", "PAST", "HOW"};

static void sentence(struct str *out, u64 seed, i32 k, i32 most, bool tags) {
    i32 kind[64];
    const i32 n = 3 + (i32)(rng_uniform(seed, RNG_TEST, 0, (u64)k) * (f32)(most - 3));
    for (i32 t = 0; t < n; t++) kind[t] = (i32)(rng_uniform(seed, RNG_TEST, 1, (u64)(k * 64 + t)) * (t + 1 < n ? 4 : 3));
    for (i32 t = 0; t < n; t++) {
        const i32 stem = (i32)(rng_uniform(seed, RNG_TEST, 2, (u64)(k * 64 + t)) * 900);
        i32 is = t;
        while (kind[is] == 3) is++;
        str_addf(out, "s%d%s", stem, ending[kind[t]]);
        if (tags) str_addf(out, " %s", tag[kind[is]]);
        str_add(out, "\n");
    }
    str_add(out, "\n");
}

static const char *file(const char *name, u64 seed, i32 n, bool tags) {
    struct str text = {0};
    for (i32 k = 0; k < n; k++) sentence(&text, seed, k, 12, tags);
    const char *path = t_file(name, str_text(&text));
    str_free(&text);
    return path;
}

static stretto_config *config(const char *const *more) {
    static const char *const usual[] = {"task", "tagger", "epochs", "12", "hidden", "16", "batch", "8", "seed", "3", NULL};
    stretto_config *c = stretto_config_new();
    for (const char *const *o = usual; *o; o += 2) T_OK(stretto_config_set(c, o[0], o[1]));
    for (const char *const *o = more; o && *o; o += 2) T_OK(stretto_config_set(c, o[0], o[1]));
    return c;
}

struct trained {
    stretto_config *c;
    stretto_data *d;
    stretto_trainer *t;
};

static struct trained train(const char *path, const char *const *more) {
    struct trained x = {.c = config(more)};
    T_OK(stretto_data_open(x.c, path, &x.d));
    T_OK(stretto_trainer_new(x.c, x.d, &x.t));
    assert_true(stretto_trainer_run(x.t) > 0);
    return x;
}

static void drop(struct trained *x) {
    stretto_trainer_free(x->t);
    stretto_data_free(x->d);
    stretto_config_free(x->c);
}

static const struct tagger *model_in(const struct trained *x) { return tagger_of(stretto_trainer_model(x->t)->m); }

/* Share of tokens of a file whose tag is wrong. */
static f64 wrong(const struct tagger *t, const char *path) {
    struct dataset *d;
    i32 *got;
    i64 n = 0;
    struct pool *pool;
    struct machine *m;
    T_OK(mem_new((void **)&m, 1, sizeof *m));
    T_OK(machine_parse("cpu*2", m));
    T_OK(pool_new(2, &pool));
    const struct resources use = {.kern = kern_best(), .pool = pool, .machine = m, .parallel = "auto"};
    T_OK(token_set_read(path, TOKENS_LAST, &d));
    const struct token_set *s = token_set_of(d);
    T_OK(tagger_decode(t, s, 0, s->nsentence, &use, &got));
    for (i64 k = 0; k < s->ntoken; k++) n += strcmp(vocab_word(&t->tags, got[k]), token_word(token_tag(s), k)) != 0;
    const f64 share = (f64)n / (f64)s->ntoken;
    mem_free(got);
    dataset_free(d);
    pool_free(pool);
    mem_free(m);
    return share;
}

TEST(rule_of_endings_and_neighbours_is_learnt) {
    struct trained x = train(file("train.txt", 1, SENTENCES, true), NULL);
    const f64 share = wrong(model_in(&x), file("test.txt", 2, TESTED, true));
    if (share > 0.02) fail_msg("%.3f of the tags are wrong", share);
    drop(&x);
}

TEST(threads_and_ranks_train_the_same_weights) {
    static const char *const runs[][9] = {{"epochs", "2", "threads", "1", NULL},
                                          {"epochs", "2", "threads", "2", NULL},
                                          {"epochs", "2", "threads", "1", "ranks", "2", NULL},
                                          {"epochs", "2", "threads", "1", "ranks", "3", NULL}};
    const char *path = file("same.txt", 5, 90, true);
    struct trained first = train(path, runs[0]);
    const struct tagger *a = model_in(&first);
    for (u32 i = 1; i < COUNT(runs); i++) {
        struct trained x = train(path, runs[i]);
        const struct tagger *b = model_in(&x);
        assert_int_equal(a->net.ntheta, b->net.ntheta);
        assert_memory_equal(a->theta, b->theta, sizeof *a->theta * (size_t)a->net.ntheta);
        drop(&x);
    }
    drop(&first);
}

TEST(saved_model_tags_the_same) {
    char path[300], *before, *after;
    struct trained x = train(file("train.txt", 1, 90, true), (const char *[]){"epochs", "1", NULL});
    const char *bare = file("bare.txt", 2, 8, false);
    stretto_model *m;
    stretto_data *d;
    snprintf(path, sizeof path, "%s/t.model", t_dir());
    T_OK(stretto_model_open(stretto_trainer_model(x.t), bare, &d));
    T_OK(stretto_predict_file(stretto_trainer_model(x.t), d, "-", 0, &before));
    T_OK(stretto_model_save(stretto_trainer_model(x.t), path));
    T_OK(stretto_model_load(path, &m));
    T_OK(stretto_predict_file(m, d, "-", 0, &after));
    assert_string_equal(before, after);
    assert_non_null(strstr(before, "GO"));
    stretto_text_free(before);
    stretto_text_free(after);
    stretto_data_free(d);
    T_OK(stretto_model_open(m, file("tagged.txt", 2, 8, true), &d)); /* the tag is not taken for the word */
    T_OK(stretto_predict_file(m, d, "-", 0, &after));
    assert_true(after[0] == 's' && strchr(after, ' ') != strrchr(after, ' '));
    stretto_text_free(after);
    stretto_data_free(d);
    stretto_model_free(m);
    drop(&x);
}

/* A sentence that is longer than any batch of the training. */
TEST(long_sentence_is_tagged) {
    struct str text = {0};
    enum { TOKENS = 3000 };
    for (i32 k = 0; k < TOKENS; k++) str_addf(&text, "s%ded PAST\n", k % 7);
    struct trained x = train(file("train.txt", 1, SENTENCES, true), NULL);
    const char *path = t_file("long.txt", str_text(&text));
    assert_true(wrong(model_in(&x), path) < 0.02);
    str_free(&text);
    drop(&x);
}

/* The last sentence is of the validation part, and longer than the net of the training. */
TEST(long_sentence_is_validated) {
    struct str text = {0};
    for (i32 k = 0; k < 20; k++) sentence(&text, 1, k, 12, true);
    for (i32 k = 0; k < 600; k++) str_addf(&text, "s%ded PAST\n", k % 7);
    struct trained x = train(t_file("end.txt", str_text(&text)), (const char *[]){"epochs", "1", NULL});
    const f64 share = model_in(&x)->valid_error;
    assert_true(share >= 0 && share <= 1);
    str_free(&text);
    drop(&x);
}

TEST(file_that_does_not_fit_is_refused) {
    struct trained x = train(file("train.txt", 1, 40, true), (const char *[]){"epochs", "1", NULL});
    stretto_data *d;
    T_FAILS(stretto_model_open(stretto_trainer_model(x.t), t_file("wide.txt", "a b c d\n"), &d), 903);
    drop(&x);
    stretto_config *c = config(NULL);
    stretto_trainer *t;
    T_OK(stretto_data_open(c, t_file("one.txt", "a X\nb X\n\nc X\nd X\n"), &d));
    T_OK(stretto_trainer_new(c, d, &t));
    T_FAILS(stretto_trainer_run(t), 212);
    stretto_trainer_free(t);
    stretto_data_free(d);
    T_OK(stretto_config_set(c, "context", "4"));
    T_FAILS(stretto_config_check(c), 106);
    stretto_config_free(c);
}

T_MAIN(cmocka_unit_test(rule_of_endings_and_neighbours_is_learnt), cmocka_unit_test(threads_and_ranks_train_the_same_weights),
       cmocka_unit_test(saved_model_tags_the_same), cmocka_unit_test(long_sentence_is_tagged),
       cmocka_unit_test(long_sentence_is_validated),
       cmocka_unit_test(file_that_does_not_fit_is_refused))
