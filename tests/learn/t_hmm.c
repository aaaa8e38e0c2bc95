/* t_hmm.c - hidden Markov models: counts, expected counts against the sum over all paths, Baum-Welch, decoding, equal bits. */
#include "t.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/config.h"
#include "base/rng.h"
#include "exec/policy.h"
#include "learn/hmm/hmm.h"

enum { RANKS = 3 };

/* ------------------------------------------------------------------ rig ----------------------------------------------------- */

struct fit {
    const char *machine;
    struct comm *comm;
    struct options o;
    struct dataset *data;
    struct hmm *h;
    struct events events;
    pthread_t thread;
    err e;
};

static void begin(struct fit *f, const char *text, const char *const *option) {
    *f = (struct fit){.machine = "cpu"};
    T_OK(opt_defaults(&f->o, api_lists()));
    for (; *option; option += 2) T_OK(opt_set(&f->o, option[0], option[1], &OPT_API));
    T_OK(data_tokens.read(&f->o, t_file("tokens.txt", text), &f->data));
}

static err run(struct fit *f) {
    struct machine m;
    struct pool *pool;
    struct model *model = NULL;
    TRY(machine_parse(f->machine, &m));
    TRY(pool_new(m.ndevice / m.nrank, &pool));
    struct learn_job job = {.o = &f->o, .data = f->data};
    job.use = (struct resources){.pool = pool, .machine = &m, .comm = f->comm, .kern = kern_best(), .events = &f->events,
                                 .policy = policy_find("overlap")};
    const struct learner *l = learner_find("hmm");
    err e = l->resolve(&job);
    if (e >= 0) e = learner_fit(l, &job, &model);
    f->h = model ? hmm_of(model) : NULL;
    pool_free(pool);
    return e;
}

static void *rank(void *arg) {
    struct fit *f = arg;
    f->e = run(f);
    return NULL;
}

static void end(struct fit *f) {
    if (f->h) model_free(&f->h->model);
    dataset_free(f->data);
    opt_free(&f->o);
}

/* Sentences of random words with tags that follow a pattern. */
static const char *text_of(i32 sentences, bool tags) {
    static char text[1 << 18];
    static const char *const word[] = {"the", "a", "old", "cat", "dog", "sees", "eats", "now"};
    static const char *const tag[] = {"D", "D", "A", "N", "N", "V", "V", "R"};
    i32 n = 0;
    u64 at = 0;
    for (i32 s = 0; s < sentences; s++) {
        const i32 length = 1 + (i32)(rng_uniform(1, RNG_TEST, 0, at++) * 12);
        for (i32 i = 0; i < length; i++) {
            const i32 w = (i32)(rng_uniform(1, RNG_TEST, 0, at++) * 8);
            n += snprintf(text + n, sizeof text - (size_t)n, tags ? "%s %s\n" : "%s\n", word[w], tag[(w + (i % 3 == 2)) % 8]);
        }
        n += snprintf(text + n, sizeof text - (size_t)n, "\n");
    }
    return text;
}

/* A model of L labels and W words with random probabilities; a few are 0. */
static void random_model(struct hmm *h, i32 L, i32 W, u32 seed) {
    *h = (struct hmm){.L = L, .W = W, .tag = -1};
    T_OK(hmm_alloc(h));
    const i64 n = (i64)L * (L + 1) + (i64)W * L;
    for (i64 i = 0; i < n; i++) h->theta[i] = dmax(0, (f64)rng_uniform(seed, RNG_TEST, 1, (u64)i) - 0.1);
    for (i32 k = 0; k <= L; k++) {
        f64 sum = 0;
        for (i32 l = 0; l < L; l++) sum += h->start[k * L + l] += 0.01;
        for (i32 l = 0; l < L; l++) h->start[k * L + l] /= sum;
    }
    for (i32 l = 0; l < L; l++) {
        f64 sum = 0;
        for (i32 w = 0; w < W; w++) sum += h->emit[w * L + l] += 0.001;
        for (i32 w = 0; w < W; w++) h->emit[w * L + l] /= sum;
    }
}

static void free_model(struct hmm *h) {
    hmm_fixed_free(&h->fixed);
    vocab_free(&h->label);
    vocab_free(&h->word);
    mem_free(h->theta);
    mem_free(h->rate);
    mem_free(h->usual);
}

/* Probability of the words and a path, whose labels are the digits of `code`. */
static f64 path_probability(const struct hmm *h, const i32 *word, i32 n, i64 code, u8 *path) {
    f64 p = 1;
    for (i32 t = 0; t < n; t++, code /= h->L) path[t] = (u8)(code % h->L);
    for (i32 t = 0; t < n; t++)
        p *= (t ? h->trans[path[t - 1] * h->L + path[t]] : h->start[path[0]]) * h->emit[word[t] * h->L + path[t]];
    return p;
}

/* Expected counts as the sum over all paths, in the layout of theta. */
static f64 sum_of_paths(const struct hmm *h, const i32 *word, i32 n, f64 *count) {
    const i32 L = h->L;
    f64 total = 0;
    i64 all = 1;
    u8 path[8];
    for (i32 t = 0; t < n; t++) all *= L;
    for (i64 c = 0; c < all; c++) total += path_probability(h, word, n, c, path);
    for (i64 c = 0; c < all; c++) {
        const f64 share = path_probability(h, word, n, c, path) / total;
        count[path[0]] += share;
        for (i32 t = 0; t < n; t++) {
            count[L + L * L + word[t] * L + path[t]] += share;
            if (t) count[L + path[t - 1] * L + path[t]] += share;
        }
    }
    return log(total);
}

/* ------------------------------------------------------------------ tests --------------------------------------------------- */

TEST(expected_counts_are_those_of_the_sum_over_all_paths) {
    for (u32 i = 0; i < 200; i++) {
        struct hmm h;
        f64 have[64] = {0}, want[64] = {0}, room[128];
        i32 word[8];
        const i32 L = 1 + (i32)(i % 4), W = 2 + (i32)(i % 3), n = 1 + (i32)(i % 6), parts = L + L * L + W * L;
        random_model(&h, L, W, i);
        for (i32 t = 0; t < n; t++) word[t] = (i32)(rng_uniform(i, RNG_TEST, 2, (u64)t) * (f32)W);
        const f64 a = hmm_expect(&h, word, n, have, room), b = sum_of_paths(&h, word, n, want);
        assert_true(fabs(a - b) < 1e-10 && fabs(hmm_expect(&h, word, n, NULL, room) - b) < 1e-10);
        for (i32 k = 0; k < parts; k++) assert_true(fabs(have[k] - want[k]) < 1e-10);
        free_model(&h);
    }
}

TEST(the_fixed_point_path_has_the_probability_of_the_best_one) {
    struct pool *pool;
    T_OK(pool_new(2, &pool));
    const struct resources use = {.pool = pool, .kern = kern_best()};
    for (u32 i = 0; i < 100; i++) {
        struct hmm h;
        enum { N = 9 };
        i64 first[N + 1] = {0};
        i32 word[N * 8];
        u8 path[N * 8], best[8];
        f64 logp[N] = {0};
        random_model(&h, 1 + (i32)(i % 4), 3, i);
        T_OK(hmm_fix(&h));
        for (i32 r = 0; r < N; r++) first[r + 1] = first[r] + (r * 5 + (i32)i) % 7; /* some are empty */
        for (i64 t = 0; t < first[N]; t++) word[t] = (i32)(rng_uniform(i, RNG_TEST, 3, (u64)t) * 3);
        T_OK(hmm_decode(&h, &(struct hmm_rows){N, first, word, NULL}, &use, path, logp));
        for (i32 r = 0; r < N; r++) {
            const i32 n = (i32)(first[r + 1] - first[r]);
            i64 all = n > 0;
            f64 most = 0;
            for (i32 t = 0; t < n; t++) all *= h.L;
            for (i64 c = 0; c < all; c++) most = dmax(most, path_probability(&h, word + first[r], n, c, best));
            if (n > 0) assert_true(fabs(log(most) - logp[r]) < 1e-3);
        }
        free_model(&h);
    }
    pool_free(pool);
}

TEST(tags_are_counted_and_smoothed) {
    static const char text[] = "a X\nb Y\na X\n\na Y\n\nb X\nb X\n";
    struct fit f;
    begin(&f, text, (const char *const[]){"task", "hmm", "smoothing", "0.5", NULL});
    T_OK(run(&f));
    const struct hmm *h = f.h;
    assert_true(h->L == 2 && h->W == 3);
    assert_string_equal(vocab_word(&h->label, 0), "X");
    assert_true(fabs(h->start[0] - 2.5 / 4) < 1e-15 && fabs(h->start[1] - 1.5 / 4) < 1e-15);
    assert_true(fabs(h->trans[0] - 1.5 / 3) < 1e-15 && fabs(h->trans[1] - 1.5 / 3) < 1e-15); /* X: 1 to X, 1 to Y */
    assert_true(fabs(h->trans[2] - 1.5 / 2) < 1e-15 && fabs(h->trans[3] - 0.5 / 2) < 1e-15); /* Y: 1 to X */
    assert_true(fabs(h->emit[0] - 2.5 / 5.5) < 1e-15 && fabs(h->emit[1] - 1.5 / 3.5) < 1e-15); /* a */
    assert_true(fabs(h->emit[4] - 0.5 / 5.5) < 1e-15 && fabs(h->emit[5] - 0.5 / 3.5) < 1e-15); /* unknown words */
    assert_true(h->usual[0] == 0 && h->usual[1] == 0 && h->usual[2] == 0);
    assert_true(fabs(h->rate[0] - 3.5 / 7.5) < 1e-12);
    end(&f);
}

static const char *const hidden[] = {"task", "hmm", "states", "3", "iterations", "12", "tolerance", "0", NULL};

/* Baum-Welch by the sum over all paths, from the guess that the learner made: hmm.curve and the last model. */
TEST(baum_welch_is_that_of_a_plain_implementation) {
    static const char text[] = "a\nb\na\nc\n\nb\nb\nc\n\nc\na\n\na\nb\nc\na\nb\n";
    static const i32 word[] = {0, 1, 0, 2, 1, 1, 2, 2, 0, 0, 1, 2, 0, 1}, first[] = {0, 4, 7, 9, 14};
    const i32 L = 2, W = 4;
    for (i32 n = 1; n < 6; n++) {
        struct fit f, g;
        char iterations[8], more[8];
        snprintf(iterations, sizeof iterations, "%d", n);
        snprintf(more, sizeof more, "%d", n + 1);
        begin(&f, text, (const char *const[]){"task", "hmm", "states", "2", "iterations", iterations, "tolerance", "0",
                                              "smoothing", "0.000001", NULL});
        begin(&g, text, (const char *const[]){"task", "hmm", "states", "2", "iterations", more, "tolerance", "0",
                                              "smoothing", "0.000001", NULL});
        T_OK(run(&f));
        T_OK(run(&g));
        f64 count[64] = {0}, likelihood = 0;
        for (i32 r = 0; r < 4; r++) likelihood += sum_of_paths(f.h, word + first[r], first[r + 1] - first[r], count);
        assert_true(fabs(likelihood / 14 - g.h->curve[n]) < 1e-4); /* smoothing has changed f a little */
        for (i32 k = 0; k <= L; k++) {
            const f64 sum = count[k * L] + count[k * L + 1];
            for (i32 l = 0; l < L; l++) assert_true(fabs(count[k * L + l] / sum - g.h->start[k * L + l]) < 1e-4);
        }
        for (i32 l = 0; l < L; l++) {
            f64 sum = 0;
            for (i32 w = 0; w < W; w++) sum += count[L + L * L + w * L + l];
            for (i32 w = 0; w < W; w++) assert_true(fabs(count[L + L * L + w * L + l] / sum - g.h->emit[w * L + l]) < 1e-4);
        }
        end(&f);
        end(&g);
    }
}

TEST(the_likelihood_does_not_fall) {
    for (i32 states = 1; states <= 6; states++) {
        struct fit f;
        char n[8];
        snprintf(n, sizeof n, "%d", states);
        begin(&f, text_of(200, false), (const char *const[]){"task", "hmm", "states", n, "tolerance", "0", NULL});
        T_OK(run(&f));
        assert_true(f.h->ncurve > 1);
        for (i32 i = 1; i < f.h->ncurve; i++) assert_true(f.h->curve[i] >= f.h->curve[i - 1] - 1e-12);
        if (states == 1) assert_true(fabs(f.h->curve[f.h->ncurve - 1] - f.h->curve[1]) < 1e-9);
        end(&f);
    }
}

TEST(iterations_end_by_the_tolerance_and_the_best_restart_is_kept) {
    struct fit f, g;
    begin(&f, text_of(200, false), (const char *const[]){"task", "hmm", "states", "4", "tolerance", "0.001", NULL});
    begin(&g, text_of(200, false),
          (const char *const[]){"task", "hmm", "states", "4", "restarts", "5", "iterations", "40", NULL});
    T_OK(run(&f));
    assert_true(f.h->ncurve > 1 && f.h->ncurve < 100);
    assert_true(f.h->curve[f.h->ncurve - 1] - f.h->curve[f.h->ncurve - 2] < 0.001);
    T_OK(run(&g));
    assert_true(g.h->curve[g.h->ncurve - 1] > f.h->curve[f.h->ncurve - 1]);
    end(&f);
    end(&g);
}

static void on_ranks(const char *text, const char *const *option, i32 ranks, const struct hmm *want) {
    struct comm *comm[RANKS] = {0};
    struct fit f[RANKS];
    T_OK(comm_threads(ranks, comm));
    for (i32 k = 0; k < ranks; k++) {
        begin(&f[k], text, option);
        f[k].comm = comm[k];
        f[k].machine = ranks == 2 ? "host*2(cpu)" : "host*3(cpu*2)";
    }
    for (i32 k = 0; k < ranks; k++) assert_int_equal(pthread_create(&f[k].thread, NULL, rank, &f[k]), 0);
    for (i32 k = 0; k < ranks; k++) pthread_join(f[k].thread, NULL);
    for (i32 k = 0; k < ranks; k++) {
        T_OK(f[k].e);
        assert_memory_equal(want->theta, f[k].h->theta, sizeof(f64) * (size_t)hmm_floats(want));
        end(&f[k]);
        comm_free(comm[k]);
    }
}

TEST(threads_and_ranks_have_the_same_bits) {
    static const char *const counted[] = {"task", "hmm", NULL};
    for (i32 tags = 0; tags < 2; tags++) {
        const char *const *option = tags ? counted : hidden, *text = text_of(300, tags);
        struct fit one, f;
        begin(&one, text, option);
        T_OK(run(&one));
        for (i32 i = 0; i < 3; i++) {
            begin(&f, text, option);
            f.machine = (const char *const[]){"cpu*2", "cpu*3", "host*2(sim*2)"}[i];
            T_OK(run(&f));
            assert_memory_equal(one.h->theta, f.h->theta, sizeof(f64) * (size_t)hmm_floats(one.h));
            end(&f);
        }
        for (i32 ranks = 2; ranks <= RANKS; ranks++) on_ranks(text, option, ranks, one.h);
        end(&one);
    }
}

TEST(a_saved_model_is_the_same_model) {
    for (i32 tags = 0; tags < 2; tags++) {
        struct fit f;
        struct model *m;
        struct options o;
        struct str record = {0};
        char path[700];
        begin(&f, text_of(100, tags), tags ? (const char *const[]){"task", "hmm", NULL} : hidden);
        T_OK(run(&f));
        snprintf(path, sizeof path, "%s/hmm.model", t_dir());
        T_OK(model_to_file(&f.h->model, path, NULL, NULL));
        T_OK(opt_defaults(&o, api_lists()));
        T_OK(model_from_file(path, config_parse, &o, &m, &record));
        const struct hmm *h = hmm_of(m);
        assert_true(h->L == f.h->L && h->W == f.h->W && h->tag == f.h->tag && h->ncurve == f.h->ncurve);
        assert_memory_equal(h->start, f.h->start, sizeof(f64) * (size_t)(h->L * (h->L + 1) + h->W * h->L));
        assert_memory_equal(h->fixed.emit, f.h->fixed.emit, sizeof(i32) * (size_t)(h->W * h->fixed.kern.Lp));
        for (i32 l = 0; l < h->L; l++) assert_string_equal(vocab_word(&h->label, l), vocab_word(&f.h->label, l));
        model_free(m);
        opt_free(&o);
        str_free(&record);
        end(&f);
    }
}

/* The public call on a file, against the path of the same words as one sentence. */
TEST(a_file_is_decoded_as_one_sentence_is) {
    struct fit f;
    stretto_model *m;
    char path[700], *labels, *rows;
    stretto_data *d;
    begin(&f, text_of(100, true), (const char *const[]){"task", "hmm", NULL});
    T_OK(run(&f));
    snprintf(path, sizeof path, "%s/hmm.model", t_dir());
    T_OK(model_to_file(&f.h->model, path, NULL, NULL));
    T_OK(stretto_model_load(path, &m));
    T_OK(stretto_decode_file(m, t_file("long.txt", "the old cat  sees\nthe\tdog now\r\nzebra a cat"), "-", NULL, NULL, &labels));
    T_OK(stretto_model_open(m, t_file("rows.txt", "the\nold\ncat\nsees\nthe\ndog\nnow\nzebra\na\ncat\n"), &d));
    T_OK(stretto_predict_file(m, d, "-", 0, &rows));
    const char *row = strchr(rows, '\n') + 1;
    for (const char *label = labels; *label; label = strchr(label, '\n') + 1, row = strchr(row, '\n') + 1) {
        const char *last = strchr(strchr(row, ',') + 1, ',') + 1;
        assert_memory_equal(last, label, strcspn(label, "\n") + 1);
    }
    assert_int_equal(*row, 0);
    T_FAILS(stretto_decode_file(m, t_file("empty.txt", " \n\n"), "-", NULL, NULL, &labels), E201);
    stretto_text_free(labels);
    stretto_text_free(rows);
    stretto_data_free(d);
    stretto_model_free(m);
    end(&f);
}

T_MAIN(cmocka_unit_test(expected_counts_are_those_of_the_sum_over_all_paths),
       cmocka_unit_test(the_fixed_point_path_has_the_probability_of_the_best_one),
       cmocka_unit_test(tags_are_counted_and_smoothed),
       cmocka_unit_test(baum_welch_is_that_of_a_plain_implementation),
       cmocka_unit_test(the_likelihood_does_not_fall),
       cmocka_unit_test(iterations_end_by_the_tolerance_and_the_best_restart_is_kept),
       cmocka_unit_test(threads_and_ranks_have_the_same_bits),
       cmocka_unit_test(a_saved_model_is_the_same_model),
       cmocka_unit_test(a_file_is_decoded_as_one_sentence_is))
