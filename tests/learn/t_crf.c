/* t_crf.c - the learner crf: forward-backward by enumeration and finite differences, anchors of CoNLL-2000, equal bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "kern/kern.h"
#include "learn/chunks.h"
#include "learn/crf/crf.h"
#include "crf_session.h"

/* ------------------------------------------------------------------ one sentence -------------------------------------------- */

enum { L = 3, T = 6, ATTRIBUTES = 5, LP = 8, ROWS = ATTRIBUTES + L };

struct small {
    f32 w[ROWS * LP], E[LP * LP], back[LP * LP], mask[LP], u[(T + 1) * LP], a[(T + 1) * LP], inverse[T];
    f32 d[T * LP], pair[LP * LP];
    i64 at[T + 1];
    i32 attribute[2 * T + CRF_AHEAD], gold[T];
    struct crf_pass p;
};

static f32 draw(u32 *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return (f32)(*seed >> 8) / (f32)(1 << 24) * 2 - 1;
}

static void make(struct small *s, i32 tokens) {
    u32 seed = 7;
    memset(s, 0, sizeof *s);
    for (i32 r = 0; r < ROWS; r++)
        for (i32 y = 0; y < L; y++) s->w[r * LP + y] = 1.5f * draw(&seed);
    for (i32 y = 0; y < L; y++) s->mask[y] = 1;
    for (i32 t = 0; t < tokens; t++) {
        s->at[t + 1] = s->at[t] + 2;
        s->attribute[2 * t] = t * 2 % ATTRIBUTES;
        s->attribute[2 * t + 1] = (t + 3) % ATTRIBUTES;
        s->gold[t] = (t * 5 + 1) % L;
    }
    s->p = (struct crf_pass){.L = L, .Lp = LP, .w = s->w, .scale = 1, .A = s->w + ATTRIBUTES * LP, .E = s->E, .back = s->back,
                             .mask = s->mask,
                             .at = s->at, .attribute = s->attribute, .gold = s->gold, .u = s->u, .a = s->a,
                             .inverse = s->inverse, .top = -1e30f};
}

static f64 evaluate(struct small *s, const struct crf_kern *k, i32 tokens) {
    s->p.top = -1e30f;
    for (i32 i = 0; i < L; i++)
        for (i32 j = 0; j < L; j++) s->p.top = fmaxf(s->p.top, s->p.A[i * LP + j]);
    for (i32 i = 0; i < L; i++)
        for (i32 j = 0; j < L; j++) s->E[i * LP + j] = s->back[j * LP + i] = expf(s->p.A[i * LP + j] - s->p.top);
    memset(s->pair, 0, sizeof s->pair);
    return k->sentence(&s->p, 0, tokens, s->d, s->pair);
}

static f64 path_score(const struct small *s, const i32 *y, i32 tokens) {
    f64 score = 0;
    for (i32 t = 0; t < tokens; t++) {
        for (i64 k = s->at[t]; k < s->at[t + 1]; k++) score += (f64)s->w[s->attribute[k] * LP + y[t]];
        if (t > 0) score += (f64)s->p.A[y[t - 1] * LP + y[t]];
    }
    return score;
}

/* The next path: y counts in base L. */
static bool next_path(i32 *y, i32 tokens) {
    for (i32 t = 0; t < tokens; t++) {
        if (++y[t] < L) return true;
        y[t] = 0;
    }
    return false;
}

/* Sums e^{path score} by label of each token; returns their whole sum. */
static f64 enumerate(const struct small *s, i32 tokens, f64 marginal[T][L]) {
    f64 z = 0;
    i32 y[T] = {0};
    memset(marginal, 0, sizeof(f64) * T * L);
    do {
        const f64 p = exp(path_score(s, y, tokens));
        z += p;
        for (i32 t = 0; t < tokens; t++) marginal[t][y[t]] += p;
    } while (next_path(y, tokens));
    return z;
}

static const struct crf_kern *kernel_at(i32 i) {
    return crf_kern_for(i == 0 ? KERN_REF : i == 1 ? KERN_BASE : (i32)kern_best()->arch);
}

TEST(likelihood_and_marginals_equal_enumeration) {
    for (i32 i = 0; i < 3; i++)
        for (i32 tokens = 1; tokens <= T; tokens++) {
            struct small s;
            f64 marginal[T][L], pair[L][L] = {{0}};
            i32 y[T] = {0};
            make(&s, tokens);
            const f64 nll = evaluate(&s, kernel_at(i), tokens), z = enumerate(&s, tokens, marginal);
            do {
                const f64 p = exp(path_score(&s, y, tokens));
                for (i32 t = 1; t < tokens; t++) pair[y[t - 1]][y[t]] += p;
            } while (next_path(y, tokens));
            assert_true(fabs(nll - (log(z) - path_score(&s, s.gold, tokens))) < 1e-5);
            for (i32 t = 0; t < tokens; t++) {
                f64 sum = 0;
                for (i32 k = 0; k < L; k++) {
                    const f64 got = (f64)s.d[t * LP + k] + (k == s.gold[t]);
                    assert_true(fabs(got - marginal[t][k] / z) < 1e-5);
                    sum += got;
                }
                assert_true(fabs(sum - 1) < 1e-5);
                for (i32 k = L; k < LP; k++) assert_true(s.d[t * LP + k] == 0);
            }
            for (i32 a = 0; a < L; a++)
                for (i32 b = 0; b < L; b++)
                    assert_true(fabs((f64)(s.pair[a * LP + b] * s.E[a * LP + b]) - pair[a][b] / z) < 1e-5);
        }
}

/* Sentences of 1 to T tokens, on one and three threads, with weights that f32 holds and with some that only logarithms hold. */
TEST(marginals_of_sentences_equal_enumeration) {
    for (i32 i = 0; i < 12; i++) {
        struct small s;
        i64 first[] = {0, T};
        f64 want[T][L];
        f32 *p;
        struct pool *pool;
        const i32 tokens = i % T + 1;
        make(&s, tokens);
        for (i32 r = 0; i >= T && r < ROWS * LP; r++) s.w[r] *= 40;
        first[1] = tokens;
        const struct crf f = {.L = L, .Lp = LP, .nattr = ATTRIBUTES, .w = s.w};
        const struct token_set set = {.ntoken = tokens, .nsentence = 1, .first = first};
        const struct features x = {tokens, s.at, s.attribute};
        T_OK(pool_new(i % 2 ? 3 : 1, &pool));
        const struct resources use = {.kern = kern_best(), .pool = pool};
        T_OK(crf_marginals(&f, &set, &x, s.gold, &use, &p));
        const f64 z = enumerate(&s, tokens, want);
        for (i32 t = 0; t < tokens; t++)
            for (i32 y = 0; y < L; y++) assert_true(fabs((f64)p[t * LP + y] - want[t][y] / z) < 2e-5);
        mem_free(p);
        pool_free(pool);
    }
}

TEST(gradient_equals_finite_differences) {
    struct small s;
    const struct crf_kern *ref = &crf_kern_ref;
    const f32 step = 1e-2f;
    for (i32 r = 0; r < ROWS; r++)
        for (i32 y = 0; y < L; y++) {
            f64 g = 0;
            make(&s, T);
            evaluate(&s, kernel_at(2), T);
            for (i32 t = 0; t < T; t++)
                for (i64 k = s.at[t]; r < ATTRIBUTES && k < s.at[t + 1]; k++)
                    if (s.attribute[k] == r) g += (f64)s.d[t * LP + y];
            const i32 a = r - ATTRIBUTES;
            if (a >= 0) g = (f64)(s.pair[a * LP + y] * s.E[a * LP + y]);
            for (i32 t = 1; a >= 0 && t < T; t++) g -= s.gold[t - 1] == a && s.gold[t] == y;
            const f32 w = s.w[r * LP + y];
            s.w[r * LP + y] = w + step;
            const f64 up = evaluate(&s, ref, T);
            s.w[r * LP + y] = w - step;
            const f64 down = evaluate(&s, ref, T);
            assert_true(fabs((up - down) / (2 * (f64)step) - g) < 1e-3);
        }
}

TEST(best_path_equals_enumeration_and_ties_take_the_lowest_label) {
    for (i32 i = 0; i < 3; i++) {
        struct small s;
        f32 v[2 * LP];
        i32 from[T * LP], best[T], y[T] = {0}, want[T] = {0};
        f64 top = -INFINITY;
        make(&s, T);
        do {
            const f64 x = path_score(&s, y, T);
            if (x > top) top = x, memcpy(want, y, sizeof y);
        } while (next_path(y, T));
        kernel_at(i)->score(&s.p, 0, T, s.u);
        kernel_at(i)->decode(s.u, s.p.A, L, LP, T, from, v, best);
        assert_memory_equal(best, want, sizeof want);
        memset(s.u, 0, sizeof s.u);
        memset(s.w, 0, sizeof s.w);
        kernel_at(i)->decode(s.u, s.p.A, L, LP, T, from, v, best);
        for (i32 t = 0; t < T; t++) assert_int_equal(best[t], 0);
    }
}

/* ------------------------------------------------------------------ chunks -------------------------------------------------- */

static struct chunk_scores scores_of(const char *const *gold, const char *const *guess, i32 n) {
    struct vocab a = {0}, b = {0};
    struct chunk_scores s;
    i32 x[32], y[32];
    const i64 first[] = {0, n};
    for (i32 i = 0; i < n; i++) {
        T_OK(vocab_code(&a, gold[i], (i64)strlen(gold[i]), &x[i]));
        T_OK(vocab_code(&b, guess[i], (i64)strlen(guess[i]), &y[i]));
    }
    T_OK(chunks_score(&(struct chunk_tags){&a, x}, &(struct chunk_tags){&b, y}, first, 1, &s));
    vocab_free(&a);
    vocab_free(&b);
    return s;
}

TEST(chunks_follow_the_rules_of_the_shared_task) {
    /* I- after O and after another type opens a chunk; a chunk of another length or type is wrong. */
    const char *gold[] = {"B-NP", "I-NP", "O", "I-VP", "B-PP", "B-NP", "I-NP", "B-NP"};
    const char *guess[] = {"B-NP", "I-NP", "O", "B-VP", "I-NP", "B-NP", "B-NP", "I-NP"};
    struct chunk_scores s = scores_of(gold, guess, 8);
    assert_int_equal(s.all.gold, 5);
    assert_int_equal(s.all.found, 5);
    assert_int_equal(s.all.right, 2);
    assert_int_equal(s.right, 4);
    assert_true(fabs(chunk_f1(&s.all) - 40) < 1e-9);
    chunks_free(&s);
}

/* ------------------------------------------------------------------ templates ----------------------------------------------- */

static struct templates parsed(const char *text) {
    struct templates t;
    T_OK(templates_parse(mem_strdup(text), "x.tpl", 2, &t));
    return t;
}

TEST(templates_spell_words_and_borders) {
    struct dataset *d;
    struct pool *pool;
    struct vocab words = {0};
    struct features f;
    i64 seen;
    T_OK(token_set_read(t_file("three.txt", "a X t\nb Y t\r\n\nc X u\n"), TOKENS_LAST, &d));
    struct templates t = parsed("# words\nU0:%x[-2,0]/%x[1,1]\n\nB\n");
    T_OK(pool_new(2, &pool));
    T_OK(features_collect(&t, token_set_of(d), 3, 1, pool, &words, &seen, &f));
    assert_true(t.bigram);
    assert_int_equal(seen, 3);
    const char *want[] = {"U0:_B-2/Y", "U0:_B-1/_B+1", "U0:_B-2/_B+1"};
    for (i32 i = 0; i < 3; i++) assert_string_equal(vocab_word(&words, f.attribute[f.at[i]]), want[i]);
    features_free(&f);
    vocab_free(&words);
    templates_free(&t);
    pool_free(pool);
    dataset_free(d);
}

TEST(templates_refuse_columns_that_the_data_lack) {
    struct templates t;
    T_FAILS(templates_parse(mem_strdup("U0:%x[0,0]\nU1:%x[0,2]\n"), "x.tpl", 2, &t), 103);
    assert_string_equal(err_last()->where, "x.tpl:2");
    T_FAILS(templates_parse(mem_strdup("U0:%x[0;0]\n"), "x.tpl", 2, &t), 103);
    T_FAILS(templates_parse(mem_strdup("B\n"), "x.tpl", 2, &t), 103);
}

/* ------------------------------------------------------------------ trainings ----------------------------------------------- */

/* Sentences of a small grammar with some noise. */
static const char *sentences(i32 n) {
    static const char *const word[] = {"the", "a", "cat", "dog", "old", "sees", "likes", "."};
    static const char *const tag[] = {"B-NP", "B-NP", "I-NP", "I-NP", "I-NP", "B-VP", "B-VP", "O"};
    struct str text = {0};
    u32 seed = 3;
    for (i32 k = 0; k < n; k++) {
        for (i32 t = 0; t < 3 + k % 9; t++) {
            const i32 i = (i32)((draw(&seed) + 1) * 3.999f), j = draw(&seed) > 0.8f ? (i + 1) % 8 : i;
            str_addf(&text, "%s %c %s\n", word[i], "DDNNAVV."[i], tag[j]);
        }
        str_add(&text, "\n");
    }
    const char *path = t_file("grammar.txt", text.s);
    str_free(&text);
    return path;
}

TEST(weights_have_equal_bits_for_any_threads_and_ranks) {
    static const char *const count[][2] = {{"1", "1"}, {"2", "1"}, {"3", "1"}, {"1", "2"}, {"1", "3"}, {"2", "2"}};
    const char *path = sentences(200);
    struct session first = {0};
    for (size_t i = 0; i < COUNT(count); i++) {
        const char *options[] = {"threads", count[i][0], "ranks", count[i][1], "steps", "12", NULL};
        struct session s;
        T_OK(start(i ? &s : &first, path, options));
        if (i == 0) continue;
        const struct crf *f = model_of(&s), *g = model_of(&first);
        assert_int_equal(f->nattr, g->nattr);
        assert_int_equal(f->iterations, g->iterations);
        assert_memory_equal(f->w, g->w, sizeof *f->w * (size_t)((f->nattr + f->L) * f->Lp));
        end(&s);
    }
    end(&first);
}

TEST(absolute_penalty_makes_weights_zero_and_lowers_its_objective) {
    struct session l1, l2;
    const char *path = sentences(300);
    T_OK(start(&l1, path, (const char *[]){"threads", "1", "c", "0", "l1", "2", "trainer", "owlqn", NULL}));
    T_OK(start(&l2, path, (const char *[]){"threads", "1", NULL}));
    const struct crf *f = model_of(&l1), *g = model_of(&l2);
    assert_true(f->nattr < g->nattr / 2);
    assert_true(f->iterations > 5);
    end(&l1);
    end(&l2);
}

TEST(one_tag_alone_is_refused) {
    struct session s;
    T_FAILS(start(&s, t_file("one.txt", "a x\nb x\n\nc x\n"), (const char *[]){"threads", "1", NULL}), 212);
    assert_string_equal(err_last()->where, "one.txt:1");
    end(&s);
}

TEST(sentence_of_100000_tokens_trains_and_is_tagged) {
    struct str text = {0};
    struct session s;
    char *out = NULL;
    for (i32 i = 0; i < 100000; i++) str_addf(&text, "%s %s\n", i % 3 ? "b" : "a", i % 3 ? "Y" : "X");
    const char *path = t_file("long.txt", text.s);
    str_free(&text);
    T_OK(start(&s, path, (const char *[]){"threads", "2", "steps", "15", NULL}));
    T_OK(stretto_predict_file(stretto_trainer_model(s.t), s.d, "-", 0, &out));
    assert_int_equal(strncmp(out, "a X X\nb Y Y\nb Y Y\na X X\n", 24), 0);
    stretto_text_free(out);
    end(&s);
}

TEST(reader_names_the_line_of_a_wrong_file) {
    struct dataset *d;
    T_FAILS(token_set_read(t_file("ragged.txt", "a X t\n\nb t\n"), TOKENS_LAST, &d), 203);
    assert_string_equal(err_last()->where, "ragged.txt:3");
    T_FAILS(token_set_read(t_file("empty.txt", "\n\r\n"), TOKENS_LAST, &d), 201);
    T_FAILS(token_set_read(t_file("latin.txt", "a t\n\xe9 t\n"), TOKENS_LAST, &d), 202);
    assert_string_equal(err_last()->where, "latin.txt:2");
    T_FAILS(token_set_read(t_file("bare.txt", "a\nb\n"), TOKENS_LAST, &d), 102);
    T_FAILS(token_set_read_as(t_file("wide.txt", "a b c d\n"), 2, 1, &d), 903);
    T_OK(token_set_read_as(t_file("untagged.txt", "a\nb\n"), 2, 1, &d));
    assert_int_equal(token_set_of(d)->tag, -1);
    dataset_free(d);
}

/* ------------------------------------------------------------------ anchors ------------------------------------------------- */

static const char template[] = "U00:%x[-2,0]\nU01:%x[-1,0]\nU02:%x[0,0]\nU03:%x[1,0]\nU04:%x[2,0]\nU05:%x[-1,0]/%x[0,0]\n"
                               "U06:%x[0,0]/%x[1,0]\n\nU10:%x[-2,1]\nU11:%x[-1,1]\nU12:%x[0,1]\nU13:%x[1,1]\nU14:%x[2,1]\n"
                               "U15:%x[-2,1]/%x[-1,1]\nU16:%x[-1,1]/%x[0,1]\nU17:%x[0,1]/%x[1,1]\nU18:%x[1,1]/%x[2,1]\n\n"
                               "U20:%x[-2,1]/%x[-1,1]/%x[0,1]\nU21:%x[-1,1]/%x[0,1]/%x[1,1]\nU22:%x[0,1]/%x[1,1]/%x[2,1]\n\nB\n";

TEST(conll2000_gives_the_published_counts_and_scores) {
    const char *path = t_shared("data/conll2000/train.txt");
    const char *file = t_file("chunk.tpl", template);
    const bool few = t_few();
    const char *options[] = {"template", file, "cutoff", "3", "steps", few ? "3" : "100000", NULL};
    struct session s;
    struct description d = {0};
    stretto_data *test = NULL;
    char *text = NULL;
    double skill;
    T_OK(start(&s, path, options));
    const struct crf *f = model_of(&s);
    assert_int_equal(f->seen, 338551);
    T_OK(crf_describe(&f->model, &d));
    assert_int_equal(f->nattr, 76328);
    assert_int_equal(d.parameters, 1679700);
    assert_true(few || f->objective <= 9042.1);
    T_OK(stretto_model_open(stretto_trainer_model(s.t), t_shared("data/conll2000/test.txt"), &test));
    T_OK(stretto_eval(stretto_trainer_model(s.t), test, NULL, 1, &text, &skill));
    assert_non_null(strstr(text, "tag per column 2"));
    const char *f1 = strstr(text, "\"F1\":");
    assert_true(f1 && (few || strtod(f1 + 5, NULL) >= 93.7));
    stretto_text_free(text);
    stretto_data_free(test);
    end(&s);
}

T_MAIN(cmocka_unit_test(likelihood_and_marginals_equal_enumeration), cmocka_unit_test(marginals_of_sentences_equal_enumeration),
       cmocka_unit_test(gradient_equals_finite_differences),
       cmocka_unit_test(best_path_equals_enumeration_and_ties_take_the_lowest_label),
       cmocka_unit_test(chunks_follow_the_rules_of_the_shared_task), cmocka_unit_test(templates_spell_words_and_borders),
       cmocka_unit_test(templates_refuse_columns_that_the_data_lack),
       cmocka_unit_test(weights_have_equal_bits_for_any_threads_and_ranks),
       cmocka_unit_test(absolute_penalty_makes_weights_zero_and_lowers_its_objective), cmocka_unit_test(one_tag_alone_is_refused),
       cmocka_unit_test(sentence_of_100000_tokens_trains_and_is_tagged), cmocka_unit_test(reader_names_the_line_of_a_wrong_file),
       cmocka_unit_test(conll2000_gives_the_published_counts_and_scores))
