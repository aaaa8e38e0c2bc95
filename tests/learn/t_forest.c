/* t_forest.c - random forests: counts, splits against all splits, one forest however its work is shared out, files. */
#define _GNU_SOURCE
#include "t.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "comm/comm.h"
#include "exec/policy.h"
#include "learn/forest/forest.h"
#include "stretto/stretto.h"

/* ------------------------------------------------------------------ small tables of bins ------------------------------------ */

enum { ROWS = 400, INPUTS = 3 };
static u8 bin[INPUTS * ROWS];
static i32 nbin[INPUTS] = {7, 41, 256};
static u32 target_value[ROWS];
static struct bin_target target = {.value = target_value, .unit = 1};
static struct entry entry[ROWS];

static u32 draw(u64 i) { return (u32)(rng_uniform(7, RNG_TEST, 0, i) * 1e6f); }

/* missing: every fifth cell has none. */
static struct tree_data make_data(i32 nclass, bool missing, u64 salt) {
    target.nclass = nclass;
    for (u64 k = 0; k < INPUTS * ROWS; k++)
        bin[k] = missing && draw(salt + 10 * k) % 5 == 0 ? 0 : (u8)(1 + draw(salt + 10 * k + 1) % (u32)(nbin[k / ROWS] - 1));
    for (u64 i = 0; i < ROWS; i++) target_value[i] = nclass > 0 ? draw(salt + 10 * i + 2) % (u32)nclass : draw(salt + 10 * i + 2);
    return (struct tree_data){
        .rows = ROWS, .step = ROWS, .ninput = INPUTS, .nclass = nclass, .bin = bin, .nbin = nbin, .target = &target};
}

TEST(weights_of_rows_are_poisson_and_entries_hold_what_was_drawn) {
    const struct tree_data d = make_data(4, false, 1);
    static i64 seen[16];
    enum { MANY = 200000 };
    for (i64 i = 0; i < MANY; i++) seen[tree_weight(tree_key(3, 5), i)]++;
    f64 p = exp(-1.0);
    for (i32 k = 0; k < 6; k++, p /= k) assert_true(fabs((f64)seen[k] / MANY - p) < 5 * sqrt(p / MANY));
    const u64 key = tree_key(1, 0);
    const i64 n = tree_entries(&d, key, entry);
    i64 at = 0;
    for (i64 i = 0; i < ROWS; i++) {
        if (tree_weight(key, i) == 0) continue;
        assert_int_equal(entry[at].row, i);
        assert_int_equal(entry_weight(entry[at]), tree_weight(key, i));
        assert_int_equal(entry_value(entry[at++]), target_value[i]);
    }
    assert_int_equal(at, n);
}

TEST(counts_equal_those_of_a_plain_loop) {
    for (i32 nclass = 0; nclass < 6; nclass += 5) {
        const struct tree_data d = make_data(nclass, true, 2);
        const i64 n = tree_entries(&d, tree_key(1, 0), entry);
        void *memory;
        T_OK(mem_new(&memory, counts_bytes(nclass), 1));
        for (i32 input = 0; input < INPUTS; input++) {
            const struct counts c = counts_at(memory, nclass);
            memset(memory, 0, (size_t)counts_bytes(nclass));
            counts_add(&d, input, entry, n / 3, c);
            counts_add(&d, input, entry + n / 3, n - n / 3, c);
            for (i32 b = 0; b < BINS; b++) {
                i64 count[6] = {0}, sum = 0;
                for (i64 i = 0; i < n; i++) {
                    if (bin[input * ROWS + (i32)entry[i].row] != b) continue;
                    count[nclass ? entry_value(entry[i]) : 0] += entry_weight(entry[i]);
                    sum += (i64)entry_weight(entry[i]) * entry_value(entry[i]);
                }
                for (i32 k = 0; k < imax(1, nclass); k++) assert_int_equal(c.count[b * imax(1, nclass) + k], count[k]);
                if (nclass == 0) assert_int_equal(c.sum[b], sum);
            }
        }
        mem_free(memory);
    }
}

/* ------------------------------------------------------------------ splits -------------------------------------------------- */

static i64 log_table[4 * ROWS + 1000];

/* Weight of a side * its impurity, in plain floating point. */
static f64 impurity(const struct tree_data *d, const struct forest_spec *q, const f64 *class, f64 n, f64 sum, f64 square) {
    f64 v = 0;
    if (n <= 0) return 0;
    if (d->nclass == 0) return square - sum * sum / n;
    for (i32 k = 0; k < d->nclass; k++) {
        if (q->criterion == CRITERION_GINI) v += class[k] * (1 - class[k] / n);
        else if (class[k] > 0) v -= class[k] * log2(class[k] / n);
    }
    return v;
}

/* Impurity of both sides of a split of n entries, or infinity where a side is too small. */
static f64 split_impurity(const struct tree_data *d, const struct forest_spec *q, i64 n, const struct node_split *s) {
    f64 class[2][8] = {{0}}, weight[2] = {0}, sum[2] = {0}, square[2] = {0};
    i64 rows[2] = {0};
    const struct tree_node v = {.split = (u32)s->input << 9 | (u32)s->missing_right << 8 | (u32)s->bin};
    for (i64 i = 0; i < n; i++) {
        const bool right = !node_left(v, bin[s->input * ROWS + (i32)entry[i].row]);
        const f64 w = entry_weight(entry[i]), y = entry_value(entry[i]), scale = d->class_weight ? d->class_weight[(i32)y] : 1;
        rows[right] += entry_weight(entry[i]);
        weight[right] += w * scale;
        if (d->nclass > 0) class[right][(i32)y] += w * scale;
        sum[right] += w * y;
        square[right] += w * y * y;
    }
    if (rows[0] < q->min_leaf || rows[1] < q->min_leaf) return INFINITY;
    return impurity(d, q, class[0], weight[0], sum[0], square[0]) + impurity(d, q, class[1], weight[1], sum[1], square[1]);
}

static f64 least_impurity(const struct tree_data *d, const struct forest_spec *q, i64 n, i32 input) {
    f64 least = INFINITY;
    for (i32 right = 0; right < 2; right++)
        for (i32 b = right; b < nbin[input]; b++) {
            const struct node_split s = {.input = input, .bin = b, .missing_right = right};
            least = dmin(least, split_impurity(d, q, n, &s));
        }
    return least;
}

static void check_split(const struct tree_data *d, const struct forest_spec *q, i32 input, i64 n) {
    i32 class[8], side[16];
    u32 work[2 * ROWS];
    void *memory;
    struct totals all = {.class = class};
    totals_of(d, entry, n, &all);
    T_OK(mem_new(&memory, counts_bytes(d->nclass), 1));
    counts_add(d, input, entry, n, counts_at(memory, d->nclass));
    const struct node_split s = split_counts(d, q, input, &all, counts_at(memory, d->nclass), side);
    const struct node_split t = split_entries(d, q, input, &all, entry, (i32)n, work, side);
    mem_free(memory);
    assert_int_equal(s.found, t.found);
    const f64 least = least_impurity(d, q, n, input);
    assert_int_equal(s.found, least < INFINITY);
    if (!s.found) return;
    assert_int_equal(s.bin, t.bin);
    assert_int_equal(s.missing_right, t.missing_right);
    assert_true(s.gain == t.gain && s.score == t.score);
    const f64 got = split_impurity(d, q, n, &s);
    assert_true(got < INFINITY);
    assert_true(got - least <= 1e-6 * fmax(1, fabs(least)));
    struct forest_spec gini = *q;
    gini.min_leaf = 0;
    const struct node_split none = {.input = input, .bin = 255};
    const f64 whole = split_impurity(d, &gini, n, &none);
    assert_true(fabs(s.gain - (whole - got)) <= 1e-5 * fmax(1, whole));
}

TEST(splits_are_the_best_of_all_splits) {
    static const f64 weight[] = {1, 2.5, 0.3};
    for (i64 i = 2; i < (i64)COUNT(log_table); i++) log_table[i] = llround((f64)i * log2((f64)i) * (1 << XLOG_BITS));
    for (i32 variant = 0; variant < 8; variant++) {
        struct forest_spec q = {.min_leaf = variant & 1 ? 1 : 9, .criterion = variant & 2 ? CRITERION_ENTROPY : CRITERION_GINI};
        for (i32 round = 0; round < 4; round++) {
            struct tree_data d = make_data(variant < 2 ? 0 : 3, round & 1, (u64)(100 * variant + round));
            if (q.criterion != CRITERION_GINI && d.nclass > 0) d.xlogx = log_table;
            if (variant >= 6) d.class_weight = weight, d.xlogx = NULL;
            const i64 n = tree_entries(&d, tree_key(1, round), entry);
            for (i32 input = 0; input < INPUTS; input++) {
                check_split(&d, &q, input, n);
                check_split(&d, &q, input, 13);
                check_split(&d, &q, input, 2);
            }
        }
    }
}

TEST(gain_ratio_is_defined_where_the_split_information_vanishes) {
    struct tree_data d = make_data(2, false, 9);
    const struct forest_spec q = {.min_leaf = 1, .criterion = CRITERION_GAIN_RATIO};
    i32 class[2], side[4];
    u32 work[2 * ROWS];
    struct totals all = {.class = class};
    d.xlogx = log_table;
    const i64 n = tree_entries(&d, tree_key(1, 0), entry);
    totals_of(&d, entry, n, &all);
    memset(bin, 1, ROWS);
    const struct node_split none = split_entries(&d, &q, 0, &all, entry, (i32)n, work, side);
    assert_false(none.found); /* all rows on one side: no split, so no division by 0 */
    assert_true(none.score == 0);
    bin[entry[3].row] = 2;
    const struct node_split one = split_entries(&d, &q, 0, &all, entry, (i32)n, work, side);
    assert_true(one.found && isfinite(one.score) && one.score >= 0);
    const f64 p = (f64)entry_weight(entry[3]) / (f64)all.weight;
    const f64 information = -p * log2(p) - (1 - p) * log2(1 - p);
    assert_true(fabs(one.score - one.gain / ((f64)all.weight * information)) < 1e-6);
}

/* ------------------------------------------------------------------ whole forests ------------------------------------------- */

/* y: a word of three; a, b: numbers that tell it; c: a word; d: noise with missing cells; e: a number of a, b. */
static const char *table_file(void) {
    static char path[300];
    struct str text = {0};
    if (path[0]) return path;
    str_add(&text, "a,b,c,d,e,y\n");
    for (u64 i = 0; i < 3000; i++) {
        const f64 a = draw(5 * i) / 1e6, b = draw(5 * i + 1) / 1e6;
        const bool noise = draw(5 * i + 2) % 10 == 0;
        const char *y = noise ? "high" : a + b < 0.8 ? "low" : a > b ? "mid" : "high";
        str_addf(&text, "%.5f,%.5f,%c,", a, b, (char)('p' + draw(5 * i + 3) % 5));
        if (draw(5 * i + 4) % 7) str_addf(&text, "%d", (i32)(draw(5 * i + 4) % 50));
        str_addf(&text, ",%.6f,%s\n", sin(6 * a) + b * b, y);
    }
    snprintf(path, sizeof path, "%s", t_file("table.csv", str_text(&text)));
    str_free(&text);
    return path;
}

struct rank {
    struct options o;
    struct dataset *data;
    struct machine machine, all;
    struct comm *comm;
    i32 threads, ranks, fused, piece;
    struct model *m;
    err e;
    struct err_record why;
    pthread_t thread;
};

static err train_rank(struct rank *r) {
    const struct learner *l = learner_find("forest");
    struct forest_spec spec;
    struct learn_job job = {.o = &r->o, .data = r->data, .spec = &spec};
    if (r->comm) TRY(comm_connect(r->comm));
    TRY(pool_new(r->threads, &job.use.pool));
    job.use.machine = &r->machine;
    job.use.ranks = r->ranks > 1 ? &r->all : NULL;
    job.use.comm = r->comm;
    job.use.policy = policy_find("overlap");
    err e = l->resolve(&job);
    if (r->fused > 0) spec.fused = r->fused, spec.piece = r->piece;
    if (e >= 0) e = learner_fit(l, &job, &r->m);
    pool_free(job.use.pool);
    return e;
}

static void *live(void *self) {
    struct rank *r = self;
    r->e = train_rank(r);
    if (r->e < 0) r->why = *err_last();
    return NULL;
}

/* The text of the model that every rank has; options: "name=value name=value". */
static struct rank *train(const char *options, i32 ranks, i32 threads, i32 fused, i32 piece) {
    static struct rank r[4];
    struct comm *comm[4] = {0};
    char machine[64];
    if (ranks > 1) T_OK(comm_threads(ranks, comm));
    for (i32 k = 0; k < ranks; k++) {
        r[k] = (struct rank){.comm = comm[k], .threads = threads, .ranks = ranks, .fused = fused, .piece = piece};
        T_OK(opt_defaults(&r[k].o, NULL));
        char *copy = mem_strdup(options);
        for (char *at = copy, *word; (word = strsep(&at, " "));) {
            char *value = strchr(word, '=');
            *value++ = 0;
            T_OK(opt_set(&r[k].o, word, value, &OPT_FLAG));
        }
        mem_free(copy);
        T_OK(table_set_read(&r[k].o, table_file(), r[k].o.target, false, &r[k].data));
        snprintf(machine, sizeof machine, "cpu*%d", threads);
        T_OK(machine_parse(machine, &r[k].machine));
        snprintf(machine, sizeof machine, "host*%d(cpu*%d)", ranks, threads);
        T_OK(machine_parse(machine, &r[k].all));
    }
    for (i32 k = 0; k < ranks; k++) assert_int_equal(pthread_create(&r[k].thread, NULL, live, &r[k]), 0);
    for (i32 k = 0; k < ranks; k++) pthread_join(r[k].thread, NULL);
    for (i32 k = 0; k < ranks; k++) {
        comm_free(comm[k]);
        if (r[k].e < 0) err_put(&r[k].why);
        T_OK(r[k].e);
    }
    return r;
}

static struct forest *take(struct rank *r) {
    struct forest *f = forest_of(r->m);
    dataset_free(r->data);
    opt_free(&r->o);
    return f;
}

static void same_forest(const struct forest *a, const struct forest *b) {
    assert_int_equal(a->ntree, b->ntree);
    for (i32 k = 0; k < a->ntree; k++) {
        const struct tree *t = &a->tree[k], *u = &b->tree[k];
        assert_int_equal(t->n, u->n);
        assert_int_equal(t->nleaf, u->nleaf);
        assert_memory_equal(t->node, u->node, sizeof *t->node * (size_t)t->n);
        if (t->nleaf) assert_memory_equal(t->leaf, u->leaf, sizeof *t->leaf * (size_t)t->nleaf * (size_t)a->nclass);
    }
    assert_memory_equal(a->vote, b->vote, sizeof *a->vote * (size_t)a->ntree);
    assert_memory_equal(a->importance, b->importance, sizeof *a->importance * (size_t)a->bins.n);
    assert_memory_equal(&a->oob, &b->oob, sizeof a->oob);
    if (a->permuted) assert_memory_equal(a->permuted, b->permuted, sizeof *a->permuted * (size_t)a->bins.n);
    for (i64 i = 0; i < (i64)a->nclass * a->nclass; i++) assert_int_equal(a->confusion[i], b->confusion[i]);
}

static const char *const kinds[] = {
    "target=y trees=13", "target=y trees=13 criterion=entropy min-leaf=4", "target=y trees=13 criterion=gain-ratio depth=6",
    "target=y trees=13 class-weights=balanced voting=weighted importance-by=permutation", "target=e trees=13 min-leaf=3",
    "target=e trees=7 voting=weighted reduce=3 importance-by=permutation", "target=y trees=7 reduce=2"};

TEST(forest_is_the_same_on_any_threads_and_ranks) {
    static const i32 shape[][2] = {{1, 2}, {1, 3}, {2, 1}, {3, 2}};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct forest *one = take(train(kinds[k], 1, 1, 0, 0));
        for (size_t i = 0; i < COUNT(shape); i++) {
            struct rank *r = train(kinds[k], shape[i][0], shape[i][1], 0, 0);
            for (i32 n = 0; n < shape[i][0]; n++) {
                struct forest *f = take(&r[n]);
                same_forest(one, f);
                model_free(&f->model);
            }
            if (t_few()) break;
        }
        model_free(&one->model);
    }
}

TEST(forest_of_many_tasks_equals_that_of_fused_subtrees) {
    static const i32 cut[][2] = {{1, 50}, {40, 100}, {500, 65536}};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct forest *whole = take(train(kinds[k], 1, 1, 0, 0));
        for (size_t i = 0; i < COUNT(cut); i++) {
            struct forest *f = take(train(kinds[k], 1, 2, cut[i][0], cut[i][1]));
            i64 tasks = 0;
            for (i32 n = 0; n < FOREST_STAGES; n++) tasks += f->stage[n].gain;
            assert_true(tasks > 3 * f->ntree);
            same_forest(whole, f);
            model_free(&f->model);
        }
        model_free(&whole->model);
    }
}

TEST(depth_and_leaf_size_are_kept) {
    struct forest *f = take(train("target=y trees=5 depth=3", 1, 1, 0, 0));
    for (i32 k = 0; k < f->ntree; k++) assert_true(f->tree[k].n <= 15);
    model_free(&f->model);
}

/* ------------------------------------------------------------------ quality, files ------------------------------------------ */

static stretto_trainer *learn(const char *const *option, const char *path, stretto_data **data) {
    stretto_config *c = stretto_config_new();
    stretto_trainer *t;
    T_OK(stretto_config_set(c, "task", "forest"));
    T_OK(stretto_config_set(c, "threads", "2"));
    for (; *option; option += 2) T_OK(stretto_config_set(c, option[0], option[1]));
    T_OK(stretto_data_open(c, path, data));
    T_OK(stretto_trainer_new(c, *data, &t));
    assert_true(stretto_trainer_run(t) >= 0);
    stretto_config_free(c);
    return t;
}

/* A number of the first row of the scores. */
static f64 scored(stretto_trainer *t, const char *metric) {
    char key[40];
    snprintf(key, sizeof key, "\"%s\":", metric);
    const char *at = strstr(stretto_trainer_scores(t, 1), key);
    assert_non_null(at);
    return strtod(at + strlen(key), NULL);
}

static f64 score_of(const char *const *option, const char *path, const char *metric) {
    stretto_data *data;
    stretto_trainer *t = learn(option, path, &data);
    const f64 v = scored(t, metric);
    stretto_trainer_free(t);
    stretto_data_free(data);
    return v;
}

TEST(known_function_is_learnt) {
    assert_true(score_of((const char *[]){"target", "e", "ignore", "y", NULL}, table_file(), "R2") > 0.97);
    assert_true(score_of((const char *[]){"target", "e", "ignore", "y", "test", "20%", NULL}, table_file(), "R2") > 0.97);
}

TEST(missing_cells_tell_what_they_know) {
    struct str text = {0};
    str_add(&text, "x,y\n");
    for (u64 i = 0; i < 600; i++) {
        const u32 kind = draw(3 * i) % 3;
        if (kind == 0) str_add(&text, ",yes\n"); /* the cell alone tells the class, from both ends of the numbers */
        else str_addf(&text, "%d,%s\n", (i32)(draw(3 * i + 1) % 1000), draw(3 * i + 1) % 1000 < 500 ? "no" : "maybe");
    }
    const char *path = t_file("missing.csv", str_text(&text));
    assert_true(score_of((const char *[]){"target", "y", "trees", "30", NULL}, path, "accuracy") > 0.97);
    str_free(&text);
}

TEST(reduction_helps_where_most_columns_are_noise) {
    enum { GOOD = 8, NOISE = 400, MANY = 300 };
    struct str text = {0};
    for (i32 j = 0; j < GOOD + NOISE; j++) str_addf(&text, "c%d,", j);
    str_add(&text, "y\n");
    for (u64 i = 0; i < MANY; i++) {
        const bool yes = draw(1000000 + i) % 2;
        for (u64 j = 0; j < GOOD + NOISE; j++)
            str_addf(&text, "%.3f,", (f64)rng_normal(11, RNG_TEST, (u32)j, i) + (j < GOOD && yes ? 0.8 : 0));
        str_addf(&text, "%s\n", yes ? "yes" : "no");
    }
    const char *path = t_file("noise.csv", str_text(&text));
    str_free(&text);
    const f64 plain = score_of((const char *[]){"target", "y", "trees", "60", NULL}, path, "accuracy");
    const f64 fewer = score_of((const char *[]){"target", "y", "trees", "60", "reduce", "20", NULL}, path, "accuracy");
    print_message("20 of %d columns: accuracy %.3f, all: %.3f\n", GOOD + NOISE, fewer, plain);
    assert_true(fewer > plain + 0.02);
}

TEST(loaded_model_predicts_what_the_trained_one_does) {
    for (i32 k = 0; k < 2; k++) {
        const char *const option[] = {"target", k ? "e" : "y", "trees", "20", "min-leaf", "3", NULL};
        char path[300], *before, *after;
        stretto_data *data, *again;
        stretto_model *m;
        stretto_trainer *t = learn(option, table_file(), &data);
        T_OK(stretto_predict_file(stretto_trainer_model(t), data, "-", 0, &before));
        snprintf(path, sizeof path, "%s/f.model", t_dir());
        T_OK(stretto_model_save(stretto_trainer_model(t), path));
        T_OK(stretto_model_load(path, &m));
        T_OK(stretto_model_open(m, table_file(), &again));
        T_OK(stretto_predict_file(m, again, "-", 0, &after));
        assert_string_equal(before, after);
        stretto_text_free(before);
        stretto_text_free(after);
        stretto_data_free(again);
        stretto_model_free(m);
        stretto_trainer_free(t);
        stretto_data_free(data);
    }
}

TEST(numbers_sort_as_numbers) {
    f64 v[1000], spare[1000];
    for (u64 i = 0; i < COUNT(v); i++) v[i] = rng_normal(1, RNG_TEST, 0, i) * pow(10, (f64)(i % 30) - 15);
    v[7] = -INFINITY, v[8] = INFINITY, v[9] = 0, v[10] = -0.0;
    cuts_sort(v, spare, COUNT(v));
    for (size_t i = 1; i < COUNT(v); i++) assert_true(v[i - 1] <= v[i]);
    assert_true(v[0] == -INFINITY && v[999] == INFINITY);
}

TEST(letters_are_recognised_as_well_as_by_other_forests) {
    const char *path = t_shared("data/tabular/letter-recognition.data");
    const char *const option[] = {"target", "Letter", "test", "4000", NULL};
    assert_true(score_of(option, path, "accuracy") > 0.955);
}

T_MAIN(cmocka_unit_test(weights_of_rows_are_poisson_and_entries_hold_what_was_drawn),
       cmocka_unit_test(counts_equal_those_of_a_plain_loop), cmocka_unit_test(splits_are_the_best_of_all_splits),
       cmocka_unit_test(gain_ratio_is_defined_where_the_split_information_vanishes),
       cmocka_unit_test(forest_is_the_same_on_any_threads_and_ranks),
       cmocka_unit_test(forest_of_many_tasks_equals_that_of_fused_subtrees), cmocka_unit_test(depth_and_leaf_size_are_kept),
       cmocka_unit_test(known_function_is_learnt), cmocka_unit_test(missing_cells_tell_what_they_know),
       cmocka_unit_test(reduction_helps_where_most_columns_are_noise),
       cmocka_unit_test(loaded_model_predicts_what_the_trained_one_does), cmocka_unit_test(numbers_sort_as_numbers),
       cmocka_unit_test(letters_are_recognised_as_well_as_by_other_forests))
