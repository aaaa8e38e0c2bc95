/* t_sequence.c - the learners `classify` and `regress`: they learn what orders and levels of steps say, of whole sequences and of
 * steps; the same weights for any threads and ranks; saved models say the same; the split has its share of each class. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/rng.h"
#include "learn/sequence/ridge.h"
#include "learn/sequence/sequence.h"
#include "t.h"

enum kind { WHOLE, STEPS, NUMBER };

static f64 noise(u64 seed, i32 k, i32 t) { return (f64)rng_uniform(seed, RNG_TEST, (u32)k, (u64)t) - 0.5; }

/* Sequence k: a pulse up and one down; the class says which came first, that of a step the last one before it.  The number is the
 * distance of the two. */
static void sequence(struct str *out, u64 seed, i32 k, enum kind kind) {
    const i32 n = 14 + (i32)(10 * (noise(seed, k, 1000) + 0.5)), a = 2 + (i32)(4 * (noise(seed, k, 1001) + 0.5));
    const i32 b = a + 2 + (i32)(6 * (noise(seed, k, 1002) + 0.5)), up = k % 2;
    for (i32 t = 0; t < n; t++) {
        const i32 pulse = t == a ? (up ? 1 : -1) : t == b ? (up ? -1 : 1) : 0, last = t >= b ? !up : t >= a ? up : 2;
        str_addf(out, "q%d,%d,%.4f,%.4f,", k, t, 2 * pulse + 0.2 * noise(seed, k, t), noise(seed, k, 500 + t));
        if (kind == WHOLE)
            str_addf(out, "%s\n", up ? "up" : "down");
        else if (kind == STEPS)
            str_addf(out, "%d\n", last);
        else
            str_addf(out, "%d\n", b - a);
    }
}

static const char *file(const char *name, u64 seed, i32 n, enum kind kind) {
    struct str text = {0};
    str_add(&text, "id,t,x,z,y\n");
    for (i32 k = 0; k < n; k++) sequence(&text, seed, k, kind);
    const char *path = t_file(name, str_text(&text));
    str_free(&text);
    return path;
}

struct trained {
    stretto_config *c;
    stretto_data *d;
    stretto_trainer *t;
};

static stretto_config *config(const char *task, const char *const *more) {
    const char *const usual[] = {"task", task, "id", "id", "target", "y", "time", "t", "hidden", "16", "seed", "3", NULL};
    stretto_config *c = stretto_config_new();
    for (const char *const *o = usual; *o; o += 2) T_OK(stretto_config_set(c, o[0], o[1]));
    for (const char *const *o = more; o && *o; o += 2) T_OK(stretto_config_set(c, o[0], o[1]));
    return c;
}

static struct trained train(const char *path, const char *task, const char *const *more) {
    struct trained x = {.c = config(task, more)};
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

static const struct sequence_model *model_in(const struct trained *x) { return sequence_of(stretto_trainer_model(x->t)->m); }

/* 1 - error / error of the best plain row, on new sequences. */
static f64 skill(const struct trained *x, const char *path) {
    stretto_data *d;
    char *text;
    double got;
    T_OK(stretto_model_open(stretto_trainer_model(x->t), path, &d));
    T_OK(stretto_eval(stretto_trainer_model(x->t), d, x->c, 0, &text, &got));
    stretto_text_free(text);
    stretto_data_free(d);
    return got;
}

TEST(order_of_pulses_is_learnt) {
    struct trained x = train(file("whole.csv", 1, 200, WHOLE), "classify", NULL);
    assert_false(model_in(&x)->per_step);
    const f64 got = skill(&x, file("new.csv", 2, 100, WHOLE));
    if (!(got > 0.9)) fail_msg("skill %.3f", got);
    drop(&x);
}

TEST(class_of_each_step_is_learnt) {
    struct trained x = train(file("steps.csv", 1, 120, STEPS), "classify", NULL);
    assert_true(model_in(&x)->per_step && model_in(&x)->classes.n == 3);
    const f64 got = skill(&x, file("newsteps.csv", 2, 60, STEPS));
    if (!(got > 0.9)) fail_msg("skill %.3f", got);
    drop(&x);
}

TEST(number_is_learnt_in_both_directions) {
    struct trained x = train(file("number.csv", 1, 200, NUMBER), "regress", (const char *[]){"bidirectional", "yes", NULL});
    const f64 got = skill(&x, file("newnumber.csv", 2, 100, NUMBER));
    if (!(got > 0.5)) fail_msg("skill %.3f", got);
    drop(&x);
}

TEST(threads_and_ranks_train_the_same_weights) {
    static const char *const runs[][15] = {{"threads", "1", NULL},
                                           {"threads", "2", NULL},
                                           {"threads", "1", "ranks", "2", NULL},
                                           {"threads", "1", "ranks", "3", NULL}};
    const char *path = file("same.csv", 5, 60, WHOLE);
    struct trained first = {0};
    for (u32 i = 0; i < COUNT(runs); i++) {
        const char *all[24] = {"epochs", "3", "members", "2", "bidirectional", "yes", "segment", "2"};
        memcpy(all + 8, runs[i], sizeof runs[i]);
        struct trained x = train(path, "classify", all);
        const struct sequence_model *m = model_in(&x);
        assert_int_equal(m->members, 2);
        if (i == 0) first = x;
        const struct sequence_model *a = model_in(&first);
        assert_memory_equal(a->theta, m->theta, sizeof *a->theta * (size_t)(a->members * a->net.ntheta));
        if (i > 0) drop(&x);
    }
    const struct sequence_model *m = model_in(&first);
    assert_true(memcmp(m->theta, m->theta + m->net.ntheta, sizeof *m->theta * (size_t)m->net.ntheta) != 0);
    drop(&first);
}

TEST(saved_model_says_the_same) {
    static const enum kind kinds[] = {WHOLE, STEPS, NUMBER};
    for (u32 i = 0; i < COUNT(kinds); i++) {
        char path[300], *before, *after;
        struct trained x = train(file("t.csv", 1, 40, kinds[i]), kinds[i] == NUMBER ? "regress" : "classify",
                                 (const char *[]){"epochs", "2", "members", "2", NULL});
        stretto_model *m;
        stretto_data *d;
        snprintf(path, sizeof path, "%s/t.model", t_dir());
        T_OK(stretto_model_open(stretto_trainer_model(x.t), file("p.csv", 2, 20, kinds[i]), &d));
        T_OK(stretto_predict_file(stretto_trainer_model(x.t), d, "-", 0, &before));
        T_OK(stretto_model_save(stretto_trainer_model(x.t), path));
        T_OK(stretto_model_load(path, &m));
        T_OK(stretto_predict_file(m, d, "-", 0, &after));
        assert_string_equal(before, after);
        assert_non_null(strstr(before, "q19"));
        stretto_text_free(before);
        stretto_text_free(after);
        stretto_data_free(d);
        stretto_model_free(m);
        drop(&x);
    }
}

/* Rows of one batch do not touch each other, and the padding of the longest one says nothing. */
TEST(prediction_does_not_depend_on_the_other_sequences) {
    struct trained x = train(file("t.csv", 1, 40, WHOLE), "classify", (const char *[]){"epochs", "2", "segment", "3", NULL});
    struct str many = {0}, one = {0};
    char *all, *alone;
    stretto_data *d;
    str_add(&many, "id,t,x,z,y\n");
    str_add(&one, "id,t,x,z,y\n");
    for (i32 k = 0; k < 30; k++) sequence(&many, 7, k, WHOLE);
    for (i32 t = 0; t < 200; t++) str_addf(&many, "long,%d,%.3f,0,up\n", t, noise(7, 99, t));
    sequence(&one, 7, 11, WHOLE);
    T_OK(stretto_model_open(stretto_trainer_model(x.t), t_file("many.csv", str_text(&many)), &d));
    T_OK(stretto_predict_file(stretto_trainer_model(x.t), d, "-", 0, &all));
    stretto_data_free(d);
    T_OK(stretto_model_open(stretto_trainer_model(x.t), t_file("one.csv", str_text(&one)), &d));
    T_OK(stretto_predict_file(stretto_trainer_model(x.t), d, "-", 0, &alone));
    stretto_data_free(d);
    assert_non_null(strstr(all, strstr(alone, "q11")));
    stretto_text_free(all);
    stretto_text_free(alone);
    str_free(&many);
    str_free(&one);
    drop(&x);
}

TEST(split_has_its_share_of_each_class) {
    stretto_config *c = config("classify", NULL);
    stretto_data *d;
    struct split p = {0}, again = {0};
    i64 ups[3] = {0}, first;
    T_OK(stretto_data_open(c, file("split.csv", 1, 100, WHOLE), &d));
    struct sequence_set *s = sequence_set_of(d->set);
    T_OK(sequence_set_split(&c->o, s, &p));
    assert_true(p.train == 60 && p.validation == 80 && p.test == 100);
    const i32 up = sequence_class(s, 1, 0);
    for (i64 k = 0; k < 100; k++) ups[k < p.train ? 0 : k < p.validation ? 1 : 2] += sequence_class(s, s->at[k], 0) == up;
    assert_true(ups[0] == 30 && ups[1] == 10 && ups[2] == 10);
    first = s->at[0];
    T_OK(sequence_set_split(&c->o, s, &again));
    assert_int_equal(s->at[0], first);
    stretto_data_free(d);
    stretto_config_free(c);
}

TEST(rows_are_ordered_by_time_and_padding_is_cut) {
    stretto_config *c = config("classify", NULL);
    stretto_data *d;
    T_OK(stretto_data_open(c, t_file("o.csv", "id,t,x,z,y\na,2,3,1,u\nb,1,5,1,d\na,1,2,,u\nb,2,,,d\nb,3,,,d\na,3,,4,u\n"), &d));
    const struct sequence_set *s = sequence_set_of(d->set);
    assert_true(s->set.nrow == 2 && s->nchannel == 2 && s->length[0] == 3 && s->length[1] == 1);
    assert_true(sequence_value(s, 0, 0, 0) == 2 && sequence_value(s, 0, 1, 0) == 3 && isnan(sequence_value(s, 0, 2, 0)));
    assert_true(!s->per_step && sequence_class(s, 0, 0) != sequence_class(s, 1, 0));
    stretto_data_free(d);
    T_FAILS(stretto_data_open(c, t_file("two.csv", "id,t,x,y\na,1,3,u\na,1,4,u\n"), &d), 211);
    T_FAILS(stretto_data_open(c, t_file("none.csv", "id,t,x,y\na,1,3,u\nb,1,,u\n"), &d), 207);
    stretto_config_free(c);
}

/* y = 3 u0 - u1 / 2 + 1 from many samples: the penalty of one deviation hardly shows. */
TEST(ridge_finds_a_linear_rule) {
    struct ridge_sums q;
    f64 w[6];
    T_OK(ridge_sums_new(2, 2, &q));
    for (i32 i = 0; i < 20000; i++) {
        q.u[0] = noise(1, 0, i);
        q.u[1] = 100 * noise(2, 0, i) + 1000;
        q.y[0] = 3 * q.u[0] - q.u[1] / 2 + 1;
        q.y[1] = 7;
        ridge_sums_add(&q);
    }
    ridge_sums_solve(&q, w);
    assert_true(fabs(w[0] - 3) < 2e-3 && fabs(w[2] + 0.5) < 1e-3 && fabs(w[4] - 1) < 0.1);
    assert_true(fabs(w[1]) < 1e-9 && fabs(w[3]) < 1e-9 && fabs(w[5] - 7) < 1e-6);
    arena_free(&q.arena);
}

TEST(data_that_do_not_fit_are_refused) {
    stretto_config *c = config("classify", (const char *[]){"test", "0", NULL});
    stretto_data *d;
    stretto_trainer *t;
    T_OK(stretto_data_open(c, t_file("one.csv", "id,t,x,y\na,1,3,u\nb,1,4,u\n"), &d));
    T_OK(stretto_trainer_new(c, d, &t));
    T_FAILS(stretto_trainer_run(t), 212);
    stretto_trainer_free(t);
    stretto_data_free(d);
    T_OK(stretto_config_set(c, "scale", "last"));
    T_FAILS(stretto_config_check(c), 106);
    stretto_config_free(c);
}

T_MAIN(cmocka_unit_test(order_of_pulses_is_learnt), cmocka_unit_test(class_of_each_step_is_learnt),
       cmocka_unit_test(number_is_learnt_in_both_directions), cmocka_unit_test(threads_and_ranks_train_the_same_weights),
       cmocka_unit_test(saved_model_says_the_same), cmocka_unit_test(prediction_does_not_depend_on_the_other_sequences),
       cmocka_unit_test(split_has_its_share_of_each_class), cmocka_unit_test(rows_are_ordered_by_time_and_padding_is_cut),
       cmocka_unit_test(ridge_finds_a_linear_rule), cmocka_unit_test(data_that_do_not_fit_are_refused))
