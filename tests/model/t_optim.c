/* t_optim.c - the optimisers against the formulas of PyTorch's documentation, written out in f64 over a long hand loop;
 * schedules. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "model/optim/optim.h"
#include "t.h"

enum { N = 37, STEPS = 200 };

struct twin {
    f64 theta[N], a[N], b[N];
};

/* One step of one parameter in f64; g is the raw gradient. */
static void twin_step(const char *name, const struct optim_hyper *h, f64 g, f64 *theta, f64 *a, f64 *b) {
    f64 lr = (f64)h->lr, decay = (f64)h->weight_decay, eps = (f64)h->eps, b1 = (f64)h->beta1, b2 = (f64)h->beta2;
    g *= (f64)h->grad_scale;
    bool adamw = !strcmp(name, "adamw");
    if (adamw)
        *theta -= lr * decay * *theta;
    else
        g += decay * *theta;
    if (!strcmp(name, "sgd")) {
        *a = (f64)h->momentum * *a + g;
        *theta -= lr * *a;
    } else if (adamw || !strcmp(name, "adam")) {
        *a = b1 * *a + (1 - b1) * g;
        *b = b2 * *b + (1 - b2) * g * g;
        f64 m = *a / (1 - pow(b1, (f64)h->step)), v = *b / (1 - pow(b2, (f64)h->step));
        *theta -= lr * m / (sqrt(v) + eps);
    } else if (!strcmp(name, "rmsprop")) {
        *a = b2 * *a + (1 - b2) * g * g;
        *theta -= lr * g / (sqrt(*a) + eps);
    } else if (!strcmp(name, "adagrad")) {
        *a += g * g;
        *theta -= lr * g / (sqrt(*a) + eps);
    } else {
        print_error("optimiser %s has no f64 twin in tests/model/t_optim.c\n", name);
        fail();
    }
}

static struct optim_hyper hyper(void) {
    return (struct optim_hyper){
        .lr = 0.01f, .weight_decay = 0.05f, .momentum = 0.9f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-6f, .grad_scale = 0.5f};
}

/* A gradient that depends on theta, so that an error would grow. */
static f32 gradient(f32 theta, i64 step, i32 i) {
    return theta - 0.3f + 0.5f * (rng_uniform(1, RNG_TEST, (u32)i, (u64)step) - 0.5f);
}

TEST(update_follows_the_formula_for_200_steps_every_optimiser) {
    for (i32 k = 0; k < optim_count(); k++) {
        const struct optim *o = optim_at(k);
        f32 theta[N], grad[N], s0[N] = {0}, s1[N] = {0};
        struct twin t = {0};
        struct optim_hyper h = hyper();
        for (i32 i = 0; i < N; i++) t.theta[i] = (f64)(theta[i] = (f32)i / 8 - 2);
        for (h.step = 1; h.step <= STEPS; h.step++) {
            for (i32 i = 0; i < N; i++) {
                grad[i] = gradient(theta[i], h.step, i);
                twin_step(o->name, &h, (f64)grad[i], &t.theta[i], &t.a[i], &t.b[i]);
            }
            o->update(&h, N, theta, grad, s0, s1);
        }
        t_near64(o->name, theta, t.theta, N, 5e-6);
        if (o->nstate > 0) t_near64(o->state_name[0], s0, t.a, N, 5e-6);
        if (o->nstate > 1) t_near64(o->state_name[1], s1, t.b, N, 5e-6);
    }
}

TEST(update_of_ranges_gives_the_bits_of_the_whole) {
    for (i32 k = 0; k < optim_count(); k++) {
        f32 whole[3][N], cut[3][N], grad[N];
        struct optim_hyper h = hyper();
        for (i32 i = 0; i < N; i++) {
            grad[i] = (f32)i / 3 - 4;
            for (i32 j = 0; j < 3; j++) whole[j][i] = cut[j][i] = (f32)(i + j + 1) / 9;
        }
        h.step = 3;
        optim_at(k)->update(&h, N, whole[0], grad, whole[1], whole[2]);
        optim_at(k)->update(&h, 5, cut[0], grad, cut[1], cut[2]);
        optim_at(k)->update(&h, N - 5, cut[0] + 5, grad + 5, cut[1] + 5, cut[2] + 5);
        assert_memory_equal(whole, cut, sizeof whole);
    }
}

TEST(update_leaves_padded_lanes_zero) {
    for (i32 k = 0; k < optim_count(); k++) {
        f32 zero[16] = {0}, theta[16] = {0}, s0[16] = {0}, s1[16] = {0};
        struct optim_hyper h = hyper();
        for (h.step = 1; h.step < 5; h.step++) optim_at(k)->update(&h, 16, theta, zero, s0, s1);
        assert_memory_equal(theta, zero, sizeof zero);
    }
}

TEST(find_knows_every_name_and_no_other) {
    for (i32 k = 0; k < optim_count(); k++) assert_ptr_equal(optim_find(optim_at(k)->name), optim_at(k));
    assert_null(optim_find("adamx"));
}

static void near(f64 got, f64 want) { assert_true(fabs(got - want) < 1e-12); }

TEST(schedules_warm_up_and_fall_as_stated) {
    enum schedule kind = SCHEDULE_COSINE;
    near(schedule_factor(kind, 0, 120, 20), 0.05);
    near(schedule_factor(kind, 19, 120, 20), 1);
    near(schedule_factor(kind, 20, 120, 20), 1);
    near(schedule_factor(kind, 70, 120, 20), 0.5);
    near(schedule_factor(kind, 120, 120, 20), 0);
    near(schedule_factor(kind, 500, 120, 20), 0);
    kind = SCHEDULE_LINEAR;
    near(schedule_factor(kind, 25, 100, 0), 0.75);
    kind = SCHEDULE_STEP;
    near(schedule_factor(kind, 49, 100, 0), 1);
    near(schedule_factor(kind, 50, 100, 0), 0.1);
    near(schedule_factor(kind, 75, 100, 0), 0.01);
    kind = SCHEDULE_CONSTANT;
    near(schedule_factor(kind, 99, 100, 10), 1);
    near(schedule_factor(kind, 4, 100, 10), 0.5);
    near(schedule_factor(SCHEDULE_COSINE, 5, 5, 5), 0); /* nothing left after the warm-up */
}

T_MAIN(cmocka_unit_test(update_follows_the_formula_for_200_steps_every_optimiser),
       cmocka_unit_test(update_of_ranges_gives_the_bits_of_the_whole), cmocka_unit_test(update_leaves_padded_lanes_zero),
       cmocka_unit_test(find_knows_every_name_and_no_other), cmocka_unit_test(schedules_warm_up_and_fall_as_stated))
