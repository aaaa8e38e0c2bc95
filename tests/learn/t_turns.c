/* t_turns.c - the number of slices while a model's memory changes: fewer and more again, no swinging to and fro, directions that
 * are tried and kept or taken back; a run is repeated by its plan, and resumed in the middle, to the bit.  Ends of slices that
 * are kept (--slice-rounds) go through a checkpoint, on any number of ranks. */
#include "base/rng.h"
#include "learn/slices/slices.h"
#include "slicing.h"

/* ------------------------------------------------------------------ what is decided ----------------------------------------- */

/* A net that forgets after w steps, in sequences of 65536. */
struct world {
    struct slice_view v;
    struct slice_history history;
    i32 turns, swings; /* changes of their number; those that go the other way than the one before */
    i32 way;
};

static struct world world_of(i32 most, i32 least) {
    return (struct world){.v = {.T = 65536, .W = 1, .now = {most, 0}, .most = most, .least = least, .nlayer = 1}};
}

/* An interval in which its memory is w; with directions a round or two less. */
static bool interval(struct world *o, f64 w) {
    struct slice_view *v = &o->v;
    struct slice_choice to;
    const f64 L = (f64)v->T / v->now.slices;
    v->w[0] = v->now.slices > 1 ? w : v->w[0];
    v->again[0] = v->again[1] = slices_again(w, v->T, v->now.slices);
    v->rounds = 1 + ceil(w / L);
    if (!slices_decide(v, &o->history, &to)) return false;
    if (to.slices != v->now.slices) {
        const i32 way = to.slices > v->now.slices ? 1 : -1;
        o->turns++;
        o->swings += o->way == -way;
        o->way = way;
    }
    v->now = to;
    return true;
}

TEST(steps_that_run_again_are_those_that_slices_before_forget) {
    assert_true(fabs(slices_again(100, 4000, 4) - 3 * 100 / 4000.0) < 1e-12);
    assert_true(fabs(slices_again(1500, 4000, 4) - (1000 + 1500 + 1500) / 4000.0) < 1e-12);
    assert_true(slices_again(1e9, 4000, 4) == 1.5 && slices_again(100, 4000, 1) == 0);
}

TEST(a_memory_that_grows_and_shrinks_again_takes_slices_there_and_back_once) {
    struct world o = world_of(32, 1);
    for (i32 i = 0; i < 20; i++) interval(&o, 100 + 600 * i);
    const i32 low = o.v.now.slices;
    assert_true(low <= 4 && o.swings == 0);
    for (i32 i = 20; i-- > 0;) interval(&o, 100 + 600 * i);
    for (i32 i = 0; i < 20; i++) interval(&o, 100);
    assert_int_equal(o.v.now.slices, 32);
    assert_int_equal(o.swings, 1);
}

/* At every memory, with measurements that are a tenth off either way: once the number is found it stays. */
TEST(a_memory_that_is_measured_with_noise_does_not_make_slices_swing) {
    for (f64 w = 50; w < 40000; w *= 1.3) {
        struct world o = world_of(32, 1);
        o.v.now.slices = 8;
        for (i32 i = 0; i < 400; i++) interval(&o, w * (0.9 + 0.2 * (f64)rng_uniform(3, RNG_TEST, (u32)w, (u64)i)));
        if (o.v.now.slices > 1 && o.swings > 3) fail_msg("w %.0f: %d turns, %d swings", w, o.turns, o.swings);
        if (o.turns > 16) fail_msg("w %.0f: %d turns", w, o.turns);
    }
}

TEST(a_number_that_was_given_stays) {
    struct world o = world_of(64, 64);
    for (i32 i = 0; i < 50; i++) interval(&o, 100 * i);
    assert_int_equal(o.v.now.slices, 64);
    o.v.serial = true;
    assert_false(interval(&o, 65536));
}

TEST(slices_that_cannot_come_together_become_fewer_at_once) {
    struct world o = world_of(32, 2);
    o.v.serial = true;
    assert_true(interval(&o, 100) && o.v.now.slices == 16);
    for (i32 i = 0; i < 9; i++) interval(&o, 100);
    assert_int_equal(o.v.now.slices, 2);
}

/* Whole sequences tell nothing: two slices are tried, each time later. */
TEST(whole_sequences_are_cut_again_to_see_ever_less_often) {
    struct world o = world_of(16, 1);
    i32 at[8], n = 0;
    o.v.now.slices = 1;
    for (i32 i = 0; i < 400 && n < 5; i++) {
        const i32 before = o.v.now.slices;
        o.v.serial = before > 1;
        interval(&o, 65536);
        if (before == 1 && o.v.now.slices > 1) at[n++] = i;
    }
    assert_int_equal(n, 5);
    for (i32 k = 2; k < n; k++) assert_true(at[k] - at[k - 1] > at[k - 1] - at[k - 2]);
    struct world p = world_of(16, 1);
    p.v.now.slices = 1;
    for (i32 i = 0; i < 40; i++) interval(&p, 50);
    assert_int_equal(p.v.now.slices, 16);
}

/* A chain whose rounds are `with` in directions and `without` else. */
static void ranked(struct world *o, f64 without, f64 with) {
    struct slice_choice to;
    o->v.rounds = o->v.now.rank > 0 ? with : without;
    o->v.again[0] = o->v.again[1] = o->v.rounds - 1;
    if (slices_decide(&o->v, &o->history, &to)) o->v.now = to, o->turns++;
}

TEST(directions_are_kept_where_they_pay_and_taken_back_where_not) {
    struct world o = world_of(64, 64);
    o.v.rank_most = 4;
    ranked(&o, 40, 6);
    assert_int_equal(o.v.now.rank, 1);
    for (i32 i = 0; i < 40; i++) ranked(&o, 40, 6);
    assert_true(o.v.now.rank >= 1); /* 2 were tried, and are no better */
    assert_true(o.turns <= 14);
    struct world q = world_of(64, 64);
    q.v.rank_most = 4;
    for (i32 i = 0; i < 60; i++) ranked(&q, 9, 9);
    assert_true(q.turns <= 10);
    struct world r = world_of(64, 64);
    r.v.rank_most = r.v.rank_least = 2;
    r.v.now.rank = 2;
    for (i32 i = 0; i < 60; i++) ranked(&r, 40, 20);
    assert_int_equal(r.turns, 0);
    struct world s = world_of(64, 64); /* what was long became short */
    s.v.rank_most = 4;
    ranked(&s, 40, 6);
    for (i32 i = 0; i < 20; i++) ranked(&s, 2, 2);
    assert_int_equal(s.v.now.rank, 0);
}

/* ------------------------------------------------------------------ ends through a checkpoint ------------------------------- */

static struct session kept(const char *rounds, const char *ranks) {
    return begun((const char *[]){"parallel", "time:4", "slice-rounds", rounds, "ranks", ranks, "steps", "200", NULL});
}

/* Stopped on so many ranks, gone on with on others: to the bit the run that was not. */
static void stale(const char *rounds, const char *before, const char *after) {
    static i32 id;
    struct session s = kept(rounds, before), u = kept(rounds, after);
    struct watcher w = {0};
    struct forecaster *f, *g;
    char dir[700];
    T_OK(fit(&s, 0, &w, NULL, false, &f));
    for (i64 at = 3; at <= 90; at += 40) { /* several ranks look around after some dozens of steps */
        struct watcher x = {.stop_at = at}, y = {0};
        snprintf(dir, sizeof dir, "%s/stale%d", t_dir(), id++);
        assert_int_equal(fit(&s, 0, &x, dir, false, &g), STOP_SIGNAL);
        T_OK(fit(&u, 0, &y, dir, true, &g));
        assert_int_equal(y.cold, 0);
        assert_memory_equal(g->theta[0], f->theta[0], sizeof(f32) * (size_t)f->net.ntheta);
        forecast_free(&g->model);
    }
    forecast_free(&f->model);
    session_end(&s);
    session_end(&u);
}

TEST(a_stale_run_that_was_resumed_has_the_bits_of_the_unbroken_one) {
    stale("1", "1", "1");
    stale("2", "1", "1");
}

TEST(a_stale_run_is_resumed_on_other_ranks) {
    stale("1", "2", "2");
    stale("1", "1", "2");
    stale("2", "2", "1");
}

/* Ends of another cut: refused, with a sentence, and the run goes on from zeros. */
TEST(ends_of_another_cut_are_refused) {
    struct session s = kept("1", "1");
    struct watcher x = {.stop_at = 70}, y = {0};
    struct forecaster *f = NULL, *g;
    char dir[700];
    snprintf(dir, sizeof dir, "%s/other", t_dir());
    assert_int_equal(fit(&s, 0, &x, dir, false, &g), STOP_SIGNAL);
    f32 *v = (f32 *)(void *)(size_t)series_col(series_of(s.d->set), 0); /* as if the file had changed */
    v[5] += 1;
    T_OK(fit(&s, 0, &y, dir, true, &f));
    assert_int_equal(y.cold, 1);
    forecast_free(&f->model);
    session_end(&s);
}

/* ------------------------------------------------------------------ a net whose memory changes ------------------------------ */

enum { GROWS = 38, LASTS = 160 };

/* Weights grow for some steps, and with them the memory, and then all but fade. */
struct trip {
    const char *plan; /* to go by, NULL = as is decided */
    i64 stop;         /* and to be resumed after, 0 = not */
    bool given;       /* the number of slices stays, and they are half as long */
    const char *ranks; /* that go on when weights begin to fade; NULL = one */
};

static struct session growing(const struct trip *c, const char *ranks) {
    struct session s = begun((const char *[]){"parallel", "time:16", "context", c->given ? "512" : "1024", "batch", "1", "hidden",
                                              "16", "optim", "adamw", "validate-every", "3", "steps", "6", "ranks", ranks, NULL});
    struct forecast_spec *spec = session_spec(&s);
    spec->steps = LASTS;
    spec->lr = 0.01;
    spec->schedule = SCHEDULE_CONSTANT;
    spec->warmup = 0;
    s.t->job.use.plan_text = c->plan;
    s.t->job.use.plan_path = "saved.plan";
    spec->weight_decay = -5;
    return s;
}

static struct forecaster *grown_and_faded(struct trip c, struct watcher *w) {
    static i32 id;
    struct session s = growing(&c, "1"), more = {0};
    struct session *u = c.ranks ? &more : &s;
    struct forecaster *f = NULL;
    const i32 least = c.plan || c.given ? P : 1;
    char dir[700];
    snprintf(dir, sizeof dir, "%s/turns%d", t_dir(), id++);
    if (c.ranks) more = growing(&c, c.ranks);
    w->stop_at = GROWS;
    assert_int_equal(fit(&s, least, w, dir, false, &f), STOP_SIGNAL);
    session_spec(u)->weight_decay = 30;
    w->stop_at = c.stop;
    if (c.stop > 0) assert_int_equal(fit(u, least, w, dir, true, &f), STOP_SIGNAL);
    w->stop_at = 0;
    T_OK(fit(u, least, w, dir, true, &f));
    session_end(&s);
    if (c.ranks) session_end(&more);
    return f;
}

static void alike(const struct forecaster *f, const struct forecaster *g) {
    assert_int_equal(g->spec.cut.slices, f->spec.cut.slices);
    assert_memory_equal(g->theta[0], f->theta[0], sizeof(f32) * (size_t)f->net.ntheta);
    assert_memory_equal(&g->slices->watch.turns, &f->slices->watch.turns, sizeof f->slices->watch.turns);
    const char *turns = strstr(f->model.plan_text.s, "(turn"), *same = strstr(g->model.plan_text.s, "(turn");
    assert_true(turns && same); /* what stands before has a predicted time, at a rate that is measured */
    assert_string_equal(same, turns);
}

/* Ranks go on where one rank stopped; three of them are stopped once more on the way. */
static void on_ranks(const struct forecaster *f, bool given) {
    for (i32 i = 0; i < 2; i++) {
        struct watcher w = {0};
        const struct trip c = {.given = given, .ranks = i ? "3" : "2", .stop = i ? GROWS + 8 : 0};
        struct forecaster *g = grown_and_faded(c, &w);
        alike(f, g);
        forecast_free(&g->model);
    }
}

/* By its plan; stopped, and resumed, with and without that. */
static void repeated(const struct forecaster *f, bool given) {
    struct watcher x = {0}, y = {0};
    struct forecaster *g = grown_and_faded((struct trip){.plan = f->model.plan_text.s, .given = given}, &x);
    assert_true(x.fewer == 0 && x.more == 0 && x.ranks == 0); /* nobody decided */
    alike(f, g);
    forecast_free(&g->model);
    for (i64 stop = GROWS + 8; stop < LASTS - 4; stop += 41) {
        g = grown_and_faded((struct trip){stop % 2 ? f->model.plan_text.s : NULL, stop, given, NULL}, &y);
        alike(f, g);
        forecast_free(&g->model);
    }
}

/* A number that was given stays; while rounds are many, begins are foreseen. */
TEST(directions_come_and_go_as_memory_does) {
    struct watcher w = {0};
    struct forecaster *f = grown_and_faded((struct trip){.given = true}, &w);
    const struct plan_turns *list = &f->slices->watch.turns;
    assert_true(w.ranks >= 2 && w.fewer == 0 && w.more == 0);
    for (i32 i = 0; i < list->n; i++) assert_int_equal(list->at[i].slices, P);
    assert_int_equal(f->spec.slice_rank, 0); /* in the end there are two rounds */
    repeated(f, true);
    on_ranks(f, true);
    forecast_free(&f->model);
}

TEST(slices_become_fewer_and_more_again_as_memory_goes) {
    struct watcher w = {0};
    struct forecaster *f = grown_and_faded((struct trip){0}, &w);
    const struct plan_turns *list = &f->slices->watch.turns;
    i32 least = P, back = 0;
    for (i32 i = 0, now = P, way = 0; i < list->n; now = list->at[i++].slices) {
        const i32 to = list->at[i].slices > now ? 1 : -1;
        back += way == -to;
        way = to;
        least = imin(least, list->at[i].slices);
    }
    assert_true(w.fewer >= 1 && w.more >= 1);
    assert_true(least < f->spec.cut.slices);
    assert_int_equal(back, 1); /* down, then up, and that was all */
    repeated(f, false);
    on_ranks(f, false);
    forecast_free(&f->model);
}


T_MAIN(cmocka_unit_test(directions_come_and_go_as_memory_does),
       cmocka_unit_test(slices_become_fewer_and_more_again_as_memory_goes),
       cmocka_unit_test(steps_that_run_again_are_those_that_slices_before_forget),
       cmocka_unit_test(a_memory_that_grows_and_shrinks_again_takes_slices_there_and_back_once),
       cmocka_unit_test(a_memory_that_is_measured_with_noise_does_not_make_slices_swing),
       cmocka_unit_test(a_number_that_was_given_stays), cmocka_unit_test(slices_that_cannot_come_together_become_fewer_at_once),
       cmocka_unit_test(whole_sequences_are_cut_again_to_see_ever_less_often),
       cmocka_unit_test(directions_are_kept_where_they_pay_and_taken_back_where_not),
       cmocka_unit_test(a_stale_run_that_was_resumed_has_the_bits_of_the_unbroken_one),
       cmocka_unit_test(a_stale_run_is_resumed_on_other_ranks), cmocka_unit_test(ends_of_another_cut_are_refused))
