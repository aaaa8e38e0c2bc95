/* t_loop.c - the training loop on a line y = 2 x + 1: keeps the best, stops, rolls back, goes on bit for bit. */
#include "t.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "train/loop.h"

enum { B = 8, SLOTS = 2 };

struct line {
    struct net net;
    i32 x, y, out;
    struct machine machine;
    struct pool *pool;
    struct plan *plan;
    struct step *exec;
    struct store store;
    struct train_job job;
    f32 *input[SLOTS][NET_BUFS];
    i64 bad_batch;        /* this batch holds a NaN, -1 = none */
    i64 validations, stop_at, steps;
    const f64 *losses;    /* scripted validation losses, or NULL = the real one */
    volatile int stop;
    i64 relays, recuts;
    struct train_state state;
    pthread_t thread;
};

static void fill(void *self, i64 batch, i32 slot) {
    struct line *l = self;
    f32 *x = l->input[slot][l->x], *y = l->input[slot][l->y];
    for (i32 b = 0; b < B; b++) {
        x[b * LANES] = (f32)((batch * 5 + b * 3) % 11) / 11.f;
        y[b * LANES] = 2 * x[b * LANES] + 1;
    }
    if (batch == l->bad_batch) x[0] = (f32)NAN;
}

static f32 *const *inputs(void *self, i64 batch, i32 slot, f32 *scale) {
    struct line *l = self;
    assert_in_range(batch, 0, lmax(l->job.steps, l->job.max_steps) * l->job.accumulate - 1);
    *scale = 1.f / B / (f32)l->job.accumulate;
    return l->input[slot];
}

static err validate(void *self, f64 *loss) {
    struct line *l = self;
    if (l->validations == l->stop_at) l->stop = 1;
    if (l->losses) {
        *loss = l->losses[l->validations++];
        return 0;
    }
    l->validations++;
    f64 w = (f64)l->store.theta[l->net.op[0].theta0], sum = 0; /* the weight of a dense layer comes first */
    sum = (w - 2) * (w - 2);
    *loss = sum;
    return 0;
}

static struct op_spec spec(const char *layer, i32 a, i32 b) {
    struct op_spec s = {.layer = layer, .in = {a, b, -1}, .share = -1};
    return s;
}

static void open_line_as(struct line *l, const struct policy *pipe) {
    i32 dense, loss;
    memset(l, 0, sizeof *l);
    l->bad_batch = l->stop_at = -1;
    net_init(&l->net);
    T_OK(net_input(&l->net, "x", 1, 1, false, &l->x));
    T_OK(net_input(&l->net, "y", 1, 1, false, &l->y));
    struct op_spec d = spec("dense", l->x, -1);
    d.units = 1;
    strcpy(d.name, "line");
    T_OK(net_op(&l->net, &d, &dense));
    struct op_spec e = spec("loss_mse", l->net.op[dense].out, l->y);
    strcpy(e.name, "loss");
    T_OK(net_op(&l->net, &e, &loss));
    T_OK(machine_parse("cpu*1", &l->machine));
    T_OK(pool_new(1, &l->pool));
    struct plan_request q = {.net = &l->net, .machine = &l->machine, .B = B, .train = true, .nstate = 2, .parallel = "serial"};
    T_OK(plan_make(&q, &l->plan));
    T_OK(store_new(&l->net, optim_find("adam"), &l->store));
    T_OK(step_bind(l->plan, &l->net, kern_best(), l->pool, &l->store, NULL, pipe, &l->exec));
    for (i32 s = 0; s < SLOTS; s++) {
        l->input[s][l->x] = mem_alloc(sizeof(f32) * B * LANES);
        l->input[s][l->y] = mem_alloc(sizeof(f32) * B * LANES);
    }
    net_weights_init(&l->net, 1, l->store.theta);
    l->job = (struct train_job){.exec = l->exec, .store = &l->store, .steps = 60, .validate_every = 10, .accumulate = 1,
                                .lr = 0.1f, .seed = 1,
                                .hyper = {.beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .grad_scale = 1},
                                .members = 1, .self = l, .fill = fill, .inputs = inputs, .validate = validate, .stop = &l->stop};
    l->job.late = pipe == policy_find("delay1");
}

static void open_line(struct line *l) { open_line_as(l, policy_find("overlap")); }

static void close_line(struct line *l) {
    for (i32 s = 0; s < SLOTS; s++) {
        mem_free(l->input[s][l->x]);
        mem_free(l->input[s][l->y]);
    }
    step_free(l->exec);
    plan_free(l->plan);
    store_free(&l->store);
    pool_free(l->pool);
}

TEST(loop_learns_the_line_and_keeps_the_best) {
    struct line l;
    struct train_state s;
    open_line(&l);
    T_OK(train_state_new(&l.store, &s));
    l.job.steps = 400;
    assert_int_equal(train_run(&l.job, &s), STOP_STEPS);
    assert_int_equal(s.step, 400);
    assert_int_equal(l.validations, 41); /* before the first step, then every ten */
    assert_true(s.best < 0.1);
    assert_memory_equal(l.store.theta, s.best_theta, sizeof(f32) * (size_t)l.store.ntheta);
    train_state_free(&s);
    close_line(&l);
}

TEST(loop_stops_on_a_plateau) {
    static const f64 script[] = {5, 4, 3, 3.5, 3.2, 3.1, 3.3};
    struct line l;
    struct train_state s;
    open_line(&l);
    l.losses = script;
    l.job.patience = 2;
    T_OK(train_state_new(&l.store, &s));
    assert_int_equal(train_run(&l.job, &s), STOP_PLATEAU);
    assert_int_equal(s.step, 40);
    assert_int_equal(s.best_step, 20);
    train_state_free(&s);
    close_line(&l);
}

/* As good as the best is no gain. */
TEST(loop_counts_its_patience_from_the_last_gain) {
    static const f64 script[] = {5, 5.1, 4, 4.1, 4, 3, 2};
    struct line l;
    struct train_state s;
    open_line(&l);
    l.losses = script;
    l.job.patience = 2;
    T_OK(train_state_new(&l.store, &s));
    assert_int_equal(train_run(&l.job, &s), STOP_PLATEAU);
    assert_int_equal(s.step, 40);
    assert_int_equal(s.best_step, 20);
    train_state_free(&s);
    close_line(&l);
}

/* Rounds of 20, 40, 60 and 100 steps, with losses before the first step and after every ten. */
static err run_rounds(const f64 *script, i64 budget, struct train_state *s) {
    struct line l;
    open_line(&l);
    l.losses = script;
    l.job.steps = 20;
    l.job.max_steps = budget;
    T_OK(train_state_new(&l.store, s));
    const err e = train_run(&l.job, s);
    train_state_free(s);
    close_line(&l);
    return e;
}

TEST(loop_goes_on_while_validation_falls) {
    static const f64 falls_twice[] = {9, 8, 7, 6, 5, 4.5, 4.7, 4.6, 4.99};
    static const f64 hardly_falls[] = {9, 8, 7, 7.1, 6.99, 1, 1};
    static const f64 hardly_falls_below_0[] = {-5, -6, -7, -6.9, -7.01, -9, -9};
    static const f64 fell_early[] = {9, 6, 7, 1, 1};
    static const f64 falls_on[] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0.5, 0.2};
    static const struct {
        const f64 *script;
        i64 budget, steps;
    } run[] = {{falls_twice, 80, 80},   {falls_twice, 1000, 80}, /* the best is before the last quarter of 80 */
               {hardly_falls, 1000, 40}, {hardly_falls_below_0, 1000, 40},
               {fell_early, 1000, 20},  {falls_on, 100, 100}, /* the budget cuts the last round */
               {falls_on, 0, 20}};
    struct train_state s;
    for (size_t i = 0; i < COUNT(run); i++) { /* one call: each inlined copy would have its network on the stack */
        assert_int_equal(run_rounds(run[i].script, run[i].budget, &s), STOP_STEPS);
        assert_int_equal(s.step, run[i].steps);
        assert_true(i > 0 || s.best_step == 50);
    }
}

TEST(loop_of_no_steps_ends) {
    struct line l;
    struct train_state s;
    open_line(&l);
    T_OK(train_state_new(&l.store, &s));
    l.job.steps = 0;
    l.job.prefetch = true;
    assert_int_equal(train_run(&l.job, &s), STOP_STEPS);
    assert_int_equal(s.step, 0);
    train_state_free(&s);
    close_line(&l);
}

/* Stopped at the border of two rounds and in the second, where rates of learning follow the longer schedule. */
TEST(loop_stopped_between_rounds_and_resumed_equals_unbroken) {
    static const f64 script[] = {9, 8, 7, 6, 5, 5.1, 4.99, 4.999, 5};
    struct line a, b;
    struct train_state s, r;
    i32 stops = 0;
    open_line(&a);
    open_line(&b);
    a.losses = b.losses = script;
    a.job.steps = b.job.steps = 20;
    a.job.max_steps = b.job.max_steps = 1000;
    a.job.schedule = b.job.schedule = SCHEDULE_COSINE;
    T_OK(train_state_new(&a.store, &s));
    T_OK(train_state_new(&b.store, &r));
    assert_int_equal(train_run(&a.job, &s), STOP_STEPS);
    assert_int_equal(s.step, 80);
    for (i64 at = 2; at < 7; at += 2) {
        b.stop_at = at;
        const err e = train_run(&b.job, &r);
        b.stop = 0;
        stops += e == STOP_SIGNAL;
        r.place = PLACE_BEGIN; /* which a checkpoint does not hold */
    }
    b.stop_at = -1;
    assert_int_equal(train_run(&b.job, &r), STOP_STEPS);
    assert_int_equal(stops, 3);
    assert_int_equal(r.step, 80);
    assert_memory_equal(a.store.theta, b.store.theta, sizeof(f32) * (size_t)a.store.ntheta);
    train_state_free(&s);
    train_state_free(&r);
    close_line(&a);
    close_line(&b);
}

/* `resume --steps N`: fewer steps than are done end the run, more are taken, whatever the end was when the run was stopped. */
TEST(loop_resumed_with_other_steps_goes_to_these) {
    struct line l;
    struct train_state s;
    open_line(&l);
    T_OK(train_state_new(&l.store, &s));
    l.job.steps = 1000;
    l.job.prefetch = true;
    l.stop_at = 3; /* the validation after step 30: step 31 is the last */
    assert_int_equal(train_run(&l.job, &s), STOP_SIGNAL);
    assert_int_equal(s.step, 31);
    l.stop = 0;
    l.stop_at = -1;
    for (i64 steps = 20; steps <= 100; steps += 40) {
        s.place = PLACE_BEGIN; /* which a checkpoint does not hold */
        l.job.steps = steps;
        assert_int_equal(train_run(&l.job, &s), STOP_STEPS);
        assert_int_equal(s.step, lmax(31, steps));
    }
    train_state_free(&s);
    close_line(&l);
}

TEST(loop_that_is_told_no_loss_takes_all_steps_and_keeps_the_last_weights) {
    f64 script[7];
    struct line l;
    struct train_state s;
    for (size_t i = 0; i < COUNT(script); i++) script[i] = (f64)NAN;
    open_line(&l);
    l.losses = script;
    l.job.patience = 2;
    T_OK(train_state_new(&l.store, &s));
    const f32 first = l.store.theta[l.net.op[0].theta0];
    assert_int_equal(train_run(&l.job, &s), STOP_STEPS);
    assert_int_equal(s.step, 60);
    assert_int_equal(l.validations, 7);
    assert_true(fabs((f64)l.store.theta[l.net.op[0].theta0] - (f64)first) > 0.1);
    train_state_free(&s);
    close_line(&l);
}

TEST(loop_rolls_back_once_and_halves_the_rate) {
    struct line l;
    struct train_state s;
    open_line(&l);
    l.bad_batch = 25;
    T_OK(train_state_new(&l.store, &s));
    err e = train_run(&l.job, &s);
    assert_int_equal(s.rollbacks, 1);
    assert_true(s.lr_factor == 0.5);
    assert_int_equal(e, -E501); /* the batch is the same again: the second time it is an error with its numbers */
    assert_non_null(strstr(err_last()->text, "step 26"));
    assert_true(isfinite(l.store.theta[0]));
    train_state_free(&s);
    close_line(&l);
}

TEST(loop_stopped_and_resumed_equals_unbroken) {
    struct line a, b;
    struct train_state s, r;
    open_line(&a);
    T_OK(train_state_new(&a.store, &s));
    assert_int_equal(train_run(&a.job, &s), STOP_STEPS);
    open_line(&b);
    T_OK(train_state_new(&b.store, &r));
    b.stop_at = 3;
    assert_int_equal(train_run(&b.job, &r), STOP_SIGNAL);
    assert_true(r.step > 0 && r.step < 60);
    b.stop = 0;
    b.stop_at = -1;
    assert_int_equal(train_run(&b.job, &r), STOP_STEPS);
    assert_memory_equal(a.store.theta, b.store.theta, sizeof(f32) * (size_t)a.store.ntheta);
    assert_true(s.best == r.best && s.best_step == r.best_step);
    train_state_free(&s);
    train_state_free(&r);
    close_line(&a);
    close_line(&b);
}

TEST(loop_with_a_prefetch_thread_gives_the_same_bits) {
    struct line a, b;
    struct train_state s, r;
    open_line(&a);
    open_line(&b);
    b.job.prefetch = true;
    T_OK(train_state_new(&a.store, &s));
    T_OK(train_state_new(&b.store, &r));
    assert_int_equal(train_run(&a.job, &s), STOP_STEPS);
    assert_int_equal(train_run(&b.job, &r), STOP_STEPS);
    assert_memory_equal(a.store.theta, b.store.theta, sizeof(f32) * (size_t)a.store.ntheta);
    train_state_free(&s);
    train_state_free(&r);
    close_line(&a);
    close_line(&b);
}

/* Updates a step late: the line is found all the same, a step later. */
TEST(late_loop_learns_the_line) {
    struct line l;
    struct train_state s;
    open_line_as(&l, policy_find("delay1"));
    T_OK(train_state_new(&l.store, &s));
    l.job.steps = 400;
    assert_int_equal(train_run(&l.job, &s), STOP_STEPS);
    assert_int_equal(l.validations, 41);
    assert_true(s.best < 0.1);
    assert_true(isfinite(s.train_loss) && s.train_loss < 0.01);
    train_state_free(&s);
    close_line(&l);
}

TEST(late_loop_names_the_step_that_was_bad) {
    static const i64 bad[] = {25, 29}; /* the second is found out by the validation after it */
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct line l;
        struct train_state s;
        char text[40];
        open_line_as(&l, policy_find("delay1"));
        l.bad_batch = bad[i];
        T_OK(train_state_new(&l.store, &s));
        assert_int_equal(train_run(&l.job, &s), -E501);
        assert_int_equal(s.rollbacks, 1);
        snprintf(text, sizeof text, "at step %d ", (int)bad[i] + 1);
        assert_non_null(strstr(err_last()->text, text));
        assert_true(isfinite(l.store.theta[0]));
        train_state_free(&s);
        close_line(&l);
    }
}

/* A checkpoint in the middle, where an update is due, taken up by another exec: the bits of the run that nobody stopped, and of
 * one that only wrote it. */
struct kept {
    struct line *line;
    struct train_state *to;
    f32 *theta, *state[2];
};
static struct kept kept;

static err keep(void *self, const struct train_state *s, bool last) {
    struct line *l = self;
    assert_true(last);
    const size_t P = (size_t)l->store.ntheta;
    assert_true(s->due);
    T_OK(train_state_new(&l->store, kept.to));
    T_OK(train_state_ahead(kept.to, l->store.ntheta));
    f32 *own[] = {kept.to->best_theta, kept.to->good, kept.to->ahead};
    *kept.to = *s;
    kept.to->best_theta = memcpy(own[0], s->best_theta, P * sizeof(f32));
    kept.to->good = memcpy(own[1], s->good, 3 * P * sizeof(f32));
    kept.to->ahead = memcpy(own[2], s->ahead, P * sizeof(f32));
    memcpy(kept.line->store.theta, l->store.theta, P * sizeof(f32));
    for (i32 k = 0; k < 2; k++) memcpy(kept.line->store.state[k], l->store.state[k], P * sizeof(f32));
    return 0;
}

static enum train_saving nothing_in_flight(void *self) {
    (void)self;
    return SAVING_NONE;
}

static void stop_at_batch_27(void *self, bool finite) {
    struct line *l = self;
    (void)finite;
    if (++l->steps == 27) l->stop = 1;
}

static i64 best_kept;

static err note_best(void *self, const struct train_state *s, bool last) {
    (void)self;
    assert_true(last && s->step % 10 != 0);
    best_kept = s->best_step;
    return 0;
}

/* The time is over between two validations: the model is the best of all, that of the last step too; what is kept for a run that
 * goes on knows of no validation that the unbroken run would not have made. */
TEST(loop_keeps_no_validation_that_the_clock_asked_for) {
    struct line l;
    struct train_state s;
    open_line(&l);
    T_OK(train_state_new(&l.store, &s));
    l.job.checkpoint = note_best;
    l.job.saving = nothing_in_flight;
    l.job.time_limit = 1e-9;
    best_kept = -1;
    assert_int_equal(train_run(&l.job, &s), STOP_TIME);
    assert_int_equal(s.step, 1);
    assert_int_equal(best_kept, 0);
    assert_int_equal(s.best_step, 1);
    train_state_free(&s);
    close_line(&l);
}

TEST(late_loop_stopped_and_resumed_equals_unbroken) {
    struct line a, b, c;
    struct train_state s, r, t;
    open_line_as(&a, policy_find("delay1"));
    open_line_as(&b, policy_find("delay1"));
    open_line_as(&c, policy_find("delay1"));
    T_OK(train_state_new(&a.store, &s));
    T_OK(train_state_new(&b.store, &r));
    assert_int_equal(train_run(&a.job, &s), STOP_STEPS);
    kept = (struct kept){.line = &c, .to = &t};
    b.job.checkpoint = keep;
    b.job.saving = nothing_in_flight;
    b.job.stepped = stop_at_batch_27;
    assert_int_equal(train_run(&b.job, &r), STOP_SIGNAL);
    assert_int_equal(t.step, 27);
    b.stop = 0;
    assert_int_equal(train_run(&b.job, &r), STOP_STEPS);
    assert_int_equal(train_run(&c.job, &t), STOP_STEPS);
    assert_memory_equal(a.store.theta, b.store.theta, sizeof(f32) * (size_t)a.store.ntheta);
    assert_memory_equal(a.store.theta, c.store.theta, sizeof(f32) * (size_t)a.store.ntheta);
    assert_true(s.best == t.best && s.best_step == t.best_step && s.train_loss == r.train_loss);
    train_state_free(&s);
    train_state_free(&r);
    train_state_free(&t);
    close_line(&a);
    close_line(&b);
    close_line(&c);
}

static bool outgrown(void *self, i64 step) {
    (void)self;
    return step % 5 == 0;
}

static err relay(void *self, struct step **exec) {
    struct line *l = self;
    l->relays++;
    *exec = l->exec;
    return 0;
}

static bool uneven(void *self, const f64 *row_seconds) {
    (void)self;
    (void)row_seconds;
    return true;
}

/* Grains that were to move are those of a layout that is gone when it was laid out anew in the same step. */
static err recut(void *self, struct step **exec) {
    struct line *l = self;
    l->recuts++;
    *exec = l->exec;
    return l->state.step % 5 ? 0 : FAIL(E1, "step %lld was laid out anew", (long long)l->state.step);
}

static void *live(void *self) {
    struct line *l = self;
    T_OK(train_run(&l->job, &l->state));
    return NULL;
}

TEST(grains_do_not_move_in_a_layout_that_has_just_been_made) {
    struct line l[2];
    struct comm *comm[2];
    T_OK(comm_threads(2, comm));
    for (i32 r = 0; r < 2; r++) {
        struct train_job *j = &l[r].job;
        open_line(&l[r]);
        j->comm = comm[r];
        j->outgrown = outgrown;
        j->relay = relay;
        j->uneven = uneven;
        j->recut = recut;
        j->validate_every = 5;
        j->steps = 400;
        T_OK(train_state_new(&l[r].store, &l[r].state));
    }
    for (i32 r = 0; r < 2; r++) assert_int_equal(pthread_create(&l[r].thread, NULL, live, &l[r]), 0);
    for (i32 r = 0; r < 2; r++) pthread_join(l[r].thread, NULL);
    for (i32 r = 0; r < 2; r++) {
        assert_int_equal(l[r].relays, 79); /* all but at the end */
        assert_true(l[r].recuts > 0); /* in other steps */
        train_state_free(&l[r].state);
        close_line(&l[r]);
        comm_free(comm[r]);
    }
}

/* The first step of a run touches its memory. */
TEST(the_first_step_counts_alone_only) {
    struct train_state s = {0};
    assert_true(train_step_seconds(&s) == 0);
    train_step_took(&s, 9);
    assert_true(train_step_seconds(&s) == 9);
    train_step_took(&s, 2);
    assert_true(train_step_seconds(&s) == 2);
    train_step_took(&s, 4);
    assert_true(train_step_seconds(&s) == 3 && s.step_count == 2);
}

T_MAIN(cmocka_unit_test(the_first_step_counts_alone_only),
       cmocka_unit_test(grains_do_not_move_in_a_layout_that_has_just_been_made),
       cmocka_unit_test(late_loop_learns_the_line), cmocka_unit_test(late_loop_names_the_step_that_was_bad),
       cmocka_unit_test(late_loop_stopped_and_resumed_equals_unbroken),
       cmocka_unit_test(loop_keeps_no_validation_that_the_clock_asked_for),
       cmocka_unit_test(loop_learns_the_line_and_keeps_the_best), cmocka_unit_test(loop_stops_on_a_plateau),
       cmocka_unit_test(loop_goes_on_while_validation_falls),
       cmocka_unit_test(loop_stopped_between_rounds_and_resumed_equals_unbroken),
       cmocka_unit_test(loop_resumed_with_other_steps_goes_to_these), cmocka_unit_test(loop_of_no_steps_ends),
       cmocka_unit_test(loop_counts_its_patience_from_the_last_gain),
       cmocka_unit_test(loop_that_is_told_no_loss_takes_all_steps_and_keeps_the_last_weights),
       cmocka_unit_test(loop_rolls_back_once_and_halves_the_rate), cmocka_unit_test(loop_stopped_and_resumed_equals_unbroken),
       cmocka_unit_test(loop_with_a_prefetch_thread_gives_the_same_bits))
