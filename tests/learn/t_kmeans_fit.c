/* t_kmeans_fit.c - k-means: every iteration equals plain Lloyd, on any threads, ranks and kernels; known minima; files. */
#define _GNU_SOURCE
#include "t.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "comm/comm.h"
#include "exec/policy.h"
#include "learn/kmeans/kmeans.h"

/* ------------------------------------------------------------------ data ---------------------------------------------------- */

/* Multiples of a power of two: sums of them are exact, so that the order of sums does not matter. */
struct data {
    i32 n, d;
    f64 *x;
    struct dataset *set;
    struct options o;
};

static f64 draw(u64 salt, u64 i) { return (f64)rng_uniform(3, RNG_TEST, (u32)salt, i); }

/* Rows from `levels` different values in each column: few levels give duplicates and ties.  Some columns are far from 0. */
static struct data data_new(i32 n, i32 d, i32 levels, f64 offset) {
    struct data t = {.n = n, .d = d};
    struct str text = {0};
    T_OK(mem_new((void **)&t.x, (i64)n * d, sizeof *t.x));
    for (i32 j = 0; j < d; j++) str_addf(&text, "%sc%d", j ? "," : "", j);
    str_add(&text, "\n");
    for (i32 i = 0; i < n; i++)
        for (i32 j = 0; j < d; j++) {
            const u64 at = (u64)i * (u64)d + (u64)j;
            f64 *x = &t.x[at];
            *x = floor(draw((u64)levels, at) * levels) / 4 + (j % 2 ? offset : 0) + (draw(99, (u64)i) < 0.3 ? levels / 2 : 0);
            str_addf(&text, "%s%.17g%s", j ? "," : "", *x, j + 1 == d ? "\n" : "");
        }
    T_OK(str_ok(&text));
    T_OK(opt_defaults(&t.o, NULL));
    T_OK(table_set_read(&t.o, t_file("rows.csv", str_text(&text)), "", false, &t.set));
    str_free(&text);
    return t;
}

static void data_free(struct data *t) {
    dataset_free(t->set);
    opt_free(&t->o);
    mem_free(t->x);
}

/* ------------------------------------------------------------------ training ------------------------------------------------ */

static i32 notes_of_empty;

static void hear(void *self, const struct event *e) {
    (void)self;
    if (e->kind == EVENT_NOTE && strstr(e->text, " empty: ")) notes_of_empty++;
}

struct rank {
    struct options o;
    struct dataset *data;
    struct comm *comm;
    struct machine machine, all;
    i32 threads, ranks;
    enum kern_arch arch;
    struct model *m;
    err e;
    struct err_record why;
    pthread_t thread;
};

static err train_rank(struct rank *r) {
    const struct learner *l = learner_find("kmeans");
    const struct events events = {.sink = {{hear, NULL}}, .n = 1};
    struct learn_job job = {.o = &r->o, .data = r->data};
    if (r->comm) TRY(comm_connect(r->comm));
    TRY(pool_new(r->threads, &job.use.pool));
    job.use.kern = kern_get(r->arch);
    job.use.machine = &r->machine;
    job.use.ranks = r->ranks > 1 ? &r->all : NULL;
    job.use.comm = r->comm;
    job.use.policy = policy_find("overlap");
    if (r->ranks == 1) job.use.events = &events;
    err e = l->resolve(&job);
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

static void set_options(struct options *o, const char *options) {
    char copy[200], *at = copy;
    T_OK(opt_defaults(o, NULL));
    snprintf(copy, sizeof copy, "%s", options);
    for (char *word; (word = strsep(&at, " "));) {
        char *value = strchr(word, '=');
        *value++ = 0;
        T_OK(opt_set(o, word, value, &OPT_FLAG));
    }
}

/* Trains on ranks, which must agree; options: "name=value name=value". */
static struct kmeans *train(struct dataset *data, const char *options, i32 ranks, i32 threads, enum kern_arch arch) {
    static struct rank r[4];
    struct comm *comm[4] = {0};
    char machine[64];
    if (ranks > 1) T_OK(comm_threads(ranks, comm));
    for (i32 k = 0; k < ranks; k++) {
        r[k] = (struct rank){.comm = comm[k], .threads = threads, .ranks = ranks, .arch = arch, .data = data};
        set_options(&r[k].o, options);
        snprintf(machine, sizeof machine, "cpu*%d", threads);
        T_OK(machine_parse(machine, &r[k].machine));
        snprintf(machine, sizeof machine, "host*%d(cpu*%d)", ranks, threads);
        T_OK(machine_parse(machine, &r[k].all));
    }
    for (i32 k = 0; k < ranks; k++) assert_int_equal(pthread_create(&r[k].thread, NULL, live, &r[k]), 0);
    for (i32 k = 0; k < ranks; k++) pthread_join(r[k].thread, NULL);
    for (i32 k = 0; k < ranks; k++) {
        comm_free(comm[k]);
        opt_free(&r[k].o);
        if (r[k].e < 0) err_put(&r[k].why);
        T_OK(r[k].e);
        if (k == 0) continue;
        const struct kmeans *a = kmeans_of(r[0].m), *b = kmeans_of(r[k].m);
        assert_memory_equal(a->center, b->center, sizeof *a->center * (size_t)a->k * (size_t)a->d);
        assert_true(a->inertia == b->inertia);
        model_free(r[k].m);
    }
    return kmeans_of(r[0].m);
}

/* ------------------------------------------------------------------ plain Lloyd --------------------------------------------- */

static i32 nearest(const f64 *x, i32 k, i32 d, const f64 *c) {
    i32 best = 0;
    for (i32 i = 1; i < k; i++)
        if (points_distance(d, x, c + i * d) < points_distance(d, x, c + best * d)) best = i;
    return best;
}

/* The point farthest from the nearest of the centers that are not empty. */
static i32 farthest(const struct data *t, i32 k, const f64 *c, const bool *empty) {
    i32 best = 0;
    f64 most = -1;
    for (i32 i = 0; i < t->n; i++) {
        f64 least = INFINITY;
        for (i32 j = 0; j < k; j++)
            if (!empty[j]) least = fmin(least, points_distance(t->d, t->x + i * t->d, c + j * t->d));
        if (least > most) most = least, best = i;
    }
    return best;
}

/* One iteration from the centers c; number of labels that changed. */
static i32 plain_step(const struct data *t, i32 k, f64 *c, i32 *label) {
    const i32 d = t->d;
    i32 changed = 0;
    f64 *sum;
    i32 *count;
    bool *empty;
    T_OK(mem_new((void **)&sum, (i64)k * d, sizeof *sum));
    T_OK(mem_new((void **)&count, k, sizeof *count));
    T_OK(mem_new((void **)&empty, k, sizeof *empty));
    for (i32 i = 0; i < t->n; i++) {
        const i32 now = nearest(t->x + i * d, k, d, c);
        changed += now != label[i];
        label[i] = now;
        count[now]++;
        for (i32 j = 0; j < d; j++) sum[now * d + j] += t->x[i * d + j];
    }
    for (i32 i = 0; i < k; i++)
        for (i32 j = 0; j < d && count[i]; j++) c[i * d + j] = sum[i * d + j] / count[i];
    for (i32 i = 0; i < k; i++) empty[i] = count[i] == 0;
    for (i32 i = 0; i < k; i++) {
        if (!empty[i]) continue;
        memcpy(c + i * d, t->x + farthest(t, k, c, empty) * d, sizeof *c * (size_t)d);
        empty[i] = false;
    }
    mem_free(sum);
    mem_free(count);
    mem_free(empty);
    return changed;
}

static f64 plain_inertia(const struct data *t, i32 k, const f64 *c) {
    f64 sum = 0;
    for (i32 i = 0; i < t->n; i++) sum += points_distance(t->d, t->x + i * t->d, c + nearest(t->x + i * t->d, k, t->d, c) * t->d);
    return sum;
}

/* Trains with 0, 1, 2, .. iterations and compares the centers and sizes with those of plain Lloyd after as many. */
static void follow(const struct data *t, i32 k, const char *more, enum kern_arch arch) {
    char options[160];
    i32 *label, iterations = 0, changed = 1;
    f64 *c;
    T_OK(mem_new((void **)&label, t->n, sizeof *label));
    T_OK(mem_new((void **)&c, (i64)k * t->d, sizeof *c));
    for (i32 i = 0; i < t->n; i++) label[i] = -1;
    for (;; iterations++) {
        snprintf(options, sizeof options, "clusters=%d lloyd-iterations=%d%s", k, iterations, more);
        struct kmeans *f = train(t->set, options, 1, 1, arch);
        if (iterations == 0) memcpy(c, f->center, sizeof *c * (size_t)k * (size_t)t->d);
        else if (changed) changed = plain_step(t, k, c, label);
        assert_memory_equal(f->center, c, sizeof *c * (size_t)k * (size_t)t->d);
        const f64 inertia = plain_inertia(t, k, c);
        assert_true(fabs(f->inertia - inertia) <= 1e-12 * inertia);
        i64 rows = 0;
        for (i32 i = 0; i < k; i++) rows += f->count[i];
        assert_int_equal(rows, t->n);
        if (!changed) assert_true(f->settled && f->iterations == iterations);
        model_free(&f->model);
        if (!changed || iterations == 60) break;
    }
    assert_true(iterations > 0);
    mem_free(label);
    mem_free(c);
}

static enum kern_arch best_arch(void) { return kern_best()->arch; }

/* One trimmed iteration: means of the rows within mean + trim deviations of the distances in their cluster. */
static void plain_trimmed(const struct data *t, i32 k, f64 trim, f64 *c) {
    const i32 d = t->d;
    f64 sum[16] = {0}, square[16] = {0}, all[16 * 8] = {0};
    i32 label[2000], count[16] = {0}, kept[16] = {0};
    for (i32 i = 0; i < t->n; i++) {
        label[i] = nearest(t->x + i * d, k, d, c);
        const f64 d2 = points_distance(d, t->x + i * d, c + label[i] * d);
        count[label[i]]++;
        sum[label[i]] += sqrt(d2);
        square[label[i]] += d2;
    }
    for (i32 i = 0; i < t->n; i++) {
        const i32 l = label[i];
        const f64 mean = sum[l] / count[l], limit = mean + trim * sqrt(fmax(0, square[l] / count[l] - mean * mean));
        if (sqrt(points_distance(d, t->x + i * d, c + l * d)) > limit) continue;
        kept[l]++;
        for (i32 j = 0; j < d; j++) all[l * d + j] += t->x[i * d + j];
    }
    for (i32 l = 0; l < k; l++)
        for (i32 j = 0; j < d && kept[l]; j++) c[l * d + j] = all[l * d + j] / kept[l];
}

TEST(trimmed_means_equal_a_plain_loop) {
    struct data t = data_new(500, 3, 300, 0);
    char options[120];
    f64 c[16 * 8];
    i64 left_out = 0;
    for (i32 n = 0; n < 8; n++) {
        snprintf(options, sizeof options, "clusters=6 trim=1.5 lloyd-iterations=%d", n);
        struct kmeans *f = train(t.set, options, 1, 1, best_arch());
        if (n == 0) memcpy(c, f->center, sizeof *c * 6 * 3);
        else plain_trimmed(&t, 6, 1.5, c);
        assert_memory_equal(f->center, c, sizeof *c * 6 * 3);
        if (n > 0) assert_true(f->kept < f->inertia && f->left_out > 0);
        else assert_true(f->kept == f->inertia && f->left_out == 0); /* no row has a distance yet */
        left_out += f->left_out;
        model_free(&f->model);
    }
    assert_true(left_out < 8 * 500 / 5);
    data_free(&t);
}

/* Batch number b of ROWS rows moves the centers c, which `seen` rows have moved before. */
enum { BATCH_K = 5, BATCH_ROWS = 64, BATCH_D = 4 };
static void plain_batch(const struct data *t, i64 b, f64 *c, f64 *seen) {
    f64 sum[BATCH_K * BATCH_D] = {0}, count[BATCH_K] = {0};
    for (i32 i = 0; i < BATCH_ROWS; i++) {
        const f64 *x = t->x + (i64)(kmeans_uniform(4, 0, DRAWS_OF_BATCHES + b * BATCH_ROWS + i) * t->n) * BATCH_D;
        const i32 l = nearest(x, BATCH_K, BATCH_D, c);
        count[l]++;
        for (i32 j = 0; j < BATCH_D; j++) sum[l * BATCH_D + j] += x[j];
    }
    for (i32 l = 0; l < BATCH_K; l++) {
        for (i32 j = l * BATCH_D; j < (l + 1) * BATCH_D && count[l] > 0; j++)
            c[j] = seen[l] > 0 ? (seen[l] * c[j] + sum[j]) / (seen[l] + count[l]) : sum[j] / count[l];
        seen[l] += count[l];
    }
}

TEST(batches_equal_running_means) {
    struct data t = data_new(700, BATCH_D, 200, 10);
    f64 c[BATCH_K * BATCH_D], seen[BATCH_K] = {0};
    struct kmeans *seeds = train(t.set, "clusters=5 minibatch=64 seed=4 lloyd-iterations=0", 1, 1, best_arch());
    struct kmeans *pass = train(t.set, "clusters=5 minibatch=64 seed=4 lloyd-iterations=1", 1, 1, best_arch());
    assert_int_equal(pass->iterations, 11); /* batches of one pass */
    memcpy(c, seeds->center, sizeof c);
    for (i64 b = 0; b < pass->iterations; b++) plain_batch(&t, b, c, seen);
    assert_memory_equal(pass->center, c, sizeof c);
    assert_true(pass->inertia < seeds->inertia);
    model_free(&seeds->model);
    model_free(&pass->model);
    data_free(&t);
}

/* Every seed is a row, no two are equal, and the inertia is near that of k-means++. */
TEST(oversampled_seeds_are_different_rows) {
    struct data t = data_new(1500, 3, 1000, 0);
    f64 sum[2] = {0};
    for (i32 seed = 1; seed <= 6; seed++) {
        char options[120];
        for (i32 how = 0; how < 2; how++) {
            const char *seeding = how ? "parallel" : "plusplus";
            snprintf(options, sizeof options, "clusters=30 lloyd-iterations=0 seeding=%s seed=%d", seeding, seed);
            struct kmeans *f = train(t.set, options, 1, 1, best_arch());
            sum[how] += f->inertia;
            for (i32 k = 0; k < 30; k++) {
                i32 same = 0;
                for (i32 i = 0; i < t.n; i++) same += memcmp(t.x + i * 3, f->center + k * 3, 3 * sizeof(f64)) == 0;
                assert_true(same > 0);
                for (i32 j = 0; j < k; j++) assert_true(memcmp(f->center + j * 3, f->center + k * 3, 3 * sizeof(f64)) != 0);
            }
            model_free(&f->model);
        }
    }
    assert_true(sum[1] < 1.2 * sum[0]);
    data_free(&t);
}

TEST(every_iteration_equals_plain_lloyd) {
    static const struct {
        i32 n, d, levels, k;
        f64 offset;
    } of[] = {{400, 1, 40, 7, 0},  {500, 2, 8, 17, 0},     {600, 2, 5, 30, 1000},  {300, 3, 1000, 40, 0},
              {250, 70, 4, 20, 0}, {300, 5, 64, 33, 1e6}, {200, 130, 50, 3, -1e4}, {900, 4, 3, 16, 0}};
    const enum kern_arch arch[] = {KERN_REF, KERN_BASE, best_arch()};
    for (size_t i = 0; i < COUNT(of); i++) {
        struct data t = data_new(of[i].n, of[i].d, of[i].levels, of[i].offset);
        for (size_t a = 0; a < COUNT(arch); a++) {
            if (t_few() && a > 0) break;
            follow(&t, of[i].k, "", arch[a]);
        }
        follow(&t, of[i].k, " seeding=random seed=9", best_arch());
        data_free(&t);
    }
}

/* Few of many random beginnings leave a cluster empty: finds one, and follows it. */
TEST(empty_clusters_move_to_the_farthest_point) {
    struct data t = data_new(300, 2, 100, 0);
    char more[80], options[120];
    notes_of_empty = 0;
    for (i32 seed = 1; seed <= 2000 && notes_of_empty == 0; seed++) {
        snprintf(more, sizeof more, " seeding=random seed=%d", seed);
        snprintf(options, sizeof options, "clusters=60%s", more);
        model_free(&train(t.set, options, 1, 1, best_arch())->model);
    }
    assert_true(notes_of_empty > 0);
    follow(&t, 60, more, best_arch());
    data_free(&t);
}

TEST(one_cluster_is_the_mean_and_a_cluster_for_each_row_costs_nothing) {
    struct data t = data_new(64, 3, 1000, 0);
    struct kmeans *one = train(t.set, "clusters=1", 1, 1, best_arch());
    assert_true(one->settled && fabs(one->inertia - one->total) <= 1e-9 * one->total);
    for (i32 j = 0; j < t.d; j++) assert_true(fabs(one->center[j] - one->mean[j]) < 1e-9 * (1 + fabs(one->mean[j])));
    struct kmeans *all = train(t.set, "clusters=64", 1, 1, best_arch());
    assert_true(all->inertia == 0);
    for (i32 k = 0; k < 64; k++) assert_int_equal(all->count[k], 1);
    model_free(&one->model);
    model_free(&all->model);
    data_free(&t);
}

TEST(more_clusters_than_different_rows_are_refused) {
    struct data t = data_new(200, 1, 3, 0);
    static struct rank r = {.threads = 1, .ranks = 1, .arch = KERN_BASE};
    r.data = t.set;
    set_options(&r.o, "clusters=50");
    T_OK(machine_parse("cpu*1", &r.machine));
    T_FAILS(train_rank(&r), E103);
    opt_free(&r.o);
    data_free(&t);
}

/* ------------------------------------------------------------------ threads, ranks ------------------------------------------ */

/* saved: least share of the distances that are not computed. */
static void same_everywhere(const struct data *t, const char *options, f64 saved) {
    static const i32 shape[][2] = {{1, 2}, {2, 1}, {3, 1}};
    struct kmeans *one = train(t->set, options, 1, 1, best_arch());
    for (size_t i = 0; i < COUNT(shape); i++) {
        struct kmeans *f = train(t->set, options, shape[i][0], shape[i][1], best_arch());
        assert_memory_equal(one->center, f->center, sizeof *f->center * (size_t)f->k * (size_t)f->d);
        assert_memory_equal(one->count, f->count, sizeof *f->count * (size_t)f->k);
        assert_true(one->inertia == f->inertia && one->iterations == f->iterations && one->kept == f->kept);
        model_free(&f->model);
    }
    assert_true(one->saved >= saved);
    model_free(&one->model);
}

TEST(centers_are_the_same_on_any_threads_and_ranks) {
    struct data t = data_new(5000, 6, 1 << 20, 3);
    same_everywhere(&t, "clusters=37 restarts=2 standardize=yes", 0.3);
    same_everywhere(&t, "clusters=20 trim=2 seeding=parallel", 0.3);
    same_everywhere(&t, "clusters=20 minibatch=300", 0);
    data_free(&t);
}

/* ------------------------------------------------------------------ known minima, files ------------------------------------- */

static f64 shared_inertia(const char *name, const char *ignore, const char *more) {
    struct options o;
    struct dataset *set;
    char options[160];
    set_options(&o, "header=no");
    T_OK(opt_set(&o, "ignore", ignore, &OPT_FLAG));
    T_OK(table_set_read(&o, t_shared(name), "", false, &set));
    snprintf(options, sizeof options, "clusters=3 restarts=30%s", more);
    struct kmeans *f = train(set, options, 1, 2, best_arch());
    const f64 inertia = f->inertia;
    model_free(&f->model);
    dataset_free(set);
    opt_free(&o);
    return inertia;
}

TEST(iris_and_wine_reach_their_known_inertia) {
    assert_true(fabs(shared_inertia("data/tabular/iris.csv", "5", "") - 78.9408) < 1e-3);
    assert_true(fabs(shared_inertia("data/tabular/iris.csv", "5", " standardize=yes") - 140.9658) < 1e-2);
    assert_true(fabs(shared_inertia("data/tabular/wine.csv", "14", "") - 2370689.69) < 1);
    assert_true(fabs(shared_inertia("data/tabular/wine.csv", "14", " standardize=yes") - 1277.9285) < 1e-3);
}

static err no_options(const char *text, size_t n, const char *name, struct options *o) {
    (void)text, (void)n, (void)name, (void)o;
    return 0;
}

TEST(a_model_file_keeps_everything) {
    struct data t = data_new(300, 4, 100, 5);
    struct kmeans *f = train(t.set, "clusters=6 standardize=yes", 1, 1, best_arch());
    struct options o;
    struct model *m;
    struct str record = {0};
    const char *path = t_file("k.model", "");
    T_OK(opt_defaults(&o, NULL));
    T_OK(model_to_file(&f->model, path, "{}", "{}"));
    T_OK(model_from_file(path, no_options, &o, &m, &record));
    const struct kmeans *g = kmeans_of(m);
    assert_memory_equal(f->center, g->center, sizeof *f->center * (size_t)f->k * (size_t)f->d);
    assert_memory_equal(f->scale.center, g->scale.center, sizeof(f64) * (size_t)f->d);
    assert_memory_equal(f->scale.spread, g->scale.spread, sizeof(f64) * (size_t)f->d);
    assert_memory_equal(f->count, g->count, sizeof *f->count * (size_t)f->k);
    assert_true(f->inertia == g->inertia && f->settled == g->settled && f->iterations == g->iterations);
    for (i32 j = 0; j < f->d; j++) assert_string_equal(f->scale.name[j], g->scale.name[j]);
    str_free(&record);
    opt_free(&o);
    model_free(m);
    model_free(&f->model);
    data_free(&t);
}

T_MAIN(cmocka_unit_test(every_iteration_equals_plain_lloyd), cmocka_unit_test(empty_clusters_move_to_the_farthest_point),
       cmocka_unit_test(one_cluster_is_the_mean_and_a_cluster_for_each_row_costs_nothing),
       cmocka_unit_test(trimmed_means_equal_a_plain_loop), cmocka_unit_test(batches_equal_running_means),
       cmocka_unit_test(oversampled_seeds_are_different_rows),
       cmocka_unit_test(more_clusters_than_different_rows_are_refused),
       cmocka_unit_test(centers_are_the_same_on_any_threads_and_ranks),
       cmocka_unit_test(iris_and_wine_reach_their_known_inertia), cmocka_unit_test(a_model_file_keeps_everything))
