/* t_heal.c - ranks go on without one that dies, at whichever of its messages that is: the model has the bits of the run that lost
 * nobody.  Ranks are threads over a transport on which one falls silent and is gone: any of them, the first, two of three. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"
#include "base/file.h"
#include "base/mem.h"
#include "comm/faulty.h"

enum { RANKS = 3 };

struct rank {
    struct learn_job job;
    struct machine machine, all;
    struct forecaster *f;
    struct comm_loss loss; /* the last */
    i32 losses;
    err e;
    struct err_record why;
    pthread_t thread;
    struct events events;
    char said[300]; /* of the recovery */
};

static void on_heal(void *rank, const struct comm_loss *loss) {
    struct rank *r = rank;
    r->loss = *loss;
    r->losses++;
}

static void on_event(void *rank, const struct event *e) {
    struct rank *r = rank;
    if (e->kind == EVENT_WARNING && strstr(e->text, " died: ")) snprintf(r->said, sizeof r->said, "%s", e->text);
}

/* As ranks part at the end of a run (api/ranks.c): who has left the fit still answers those who have not. */
static err part(struct comm *c) {
    struct comm_loss loss;
    u8 here = 1, all[RANKS];
    for (;;) {
        const err e = comm_allgather(c, "written", &here, sizeof here, all);
        if (e >= 0 || !comm_died(c)) return e;
        TRY(comm_recover(c, &loss));
        if (forecast_healed(c) < 0 && !comm_died(c)) return -err_last()->code;
    }
}

static err fit(struct rank *r) {
    TRY(comm_connect(r->job.use.comm));
    TRY(comm_allow_recovery(r->job.use.comm));
    struct model *m = NULL;
    TRY(forecast_fit(&r->job, &m));
    r->f = forecaster_in(m);
    return part(r->job.use.comm);
}

static void *live(void *rank) {
    struct rank *r = rank;
    r->e = pool_new(1, &r->job.use.pool);
    if (r->e >= 0) r->e = fit(r);
    if (r->e < 0) r->why = *err_last();
    comm_abort(r->job.use.comm); /* a process that ends is seen to */
    pool_free(r->job.use.pool);
    return NULL;
}

/* The job of a session, by itself: fault NULL = nobody dies. */
static void run(const struct session *s, const struct comm_fault *fault, i32 ranks, const char *run_dir, struct rank *r) {
    struct comm *comm[RANKS] = {0};
    const struct comm_fault none = {.rank = -1};
    if (ranks > 1) T_OK(comm_faulty(ranks, fault ? fault : &none, comm));
    for (i32 k = 0; k < ranks; k++) {
        r[k] = (struct rank){.job = {.o = &s->t->o, .data = s->t->data->set, .split = s->t->job.split, .spec = session_spec(s),
                                     .run_dir = run_dir}};
        T_OK(machine_parse("host(cpu)", &r[k].machine));
        T_OK(machine_ranks(&r[k].machine, ranks, &r[k].all));
        r[k].job.use = (struct resources){.kern = s->use->kern, .machine = &r[k].machine, .parallel = s->use->parallel,
                                          .balance = true, .heal = true, .comm = comm[k], .ranks = ranks > 1 ? &r[k].all : NULL,
                                          .store = s->t->job.use.store};
        r[k].events = (struct events){.sink = {{on_event, &r[k]}}, .n = 1};
        r[k].job.use.events = &r[k].events;
        r[k].job.healed = on_heal;
        r[k].job.owner = &r[k];
    }
    for (i32 k = 0; k < ranks; k++) assert_int_equal(pthread_create(&r[k].thread, NULL, live, &r[k]), 0);
    for (i32 k = 0; k < ranks; k++) pthread_join(r[k].thread, NULL);
    for (i32 k = 0; k < ranks; k++) comm_free(comm[k]);
}

static void done(struct rank *r, i32 ranks) {
    for (i32 k = 0; k < ranks; k++)
        if (r[k].f) forecast_free(&r[k].f->model);
}

static bool same_model(const struct forecaster *a, const struct forecaster *b) {
    const size_t spread = sizeof(f32) * (size_t)(a->schema.ntarget * a->spec.nband * a->spec.horizon);
    bool same = a->nmember == b->nmember && a->weight == b->weight && a->spec.nband == b->spec.nband && !a->spread == !b->spread;
    for (i32 m = 0; m < a->nmember && same; m++)
        same = memcmp(a->theta[m], b->theta[m], sizeof(f32) * (size_t)a->net.ntheta) == 0;
    return same && (!a->spread || memcmp(a->spread, b->spread, spread) == 0);
}

/* What is left has the model of `one`; the number of ranks that are left, 0 where not one of them had to heal. */
static i32 check(const struct rank *r, const struct comm_fault *f, const struct rank *one) {
    i32 left = 0, healed = 0;
    for (i32 k = 0; k < RANKS; k++) {
        const bool told = (k == f->rank && f->die) || (k == f->rank2 && f->die2);
        if (r[k].e < 0 && told && strstr(r[k].why.text, "told to die")) continue;
        if (r[k].e != 0) fail_msg("rank %d, deaths at %d and %d: %s", k, (int)f->die, (int)f->die2, r[k].why.text);
        if (!same_model(r[k].f, one->f)) fail_msg("rank %d, deaths at %d and %d: another model", k, (int)f->die, (int)f->die2);
        left++;
        healed += r[k].losses;
    }
    return healed ? left : 0;
}

/* A file that was begun and is not whole. */
static i32 stray(const char *run_dir) {
    char path[1200];
    i32 n = 0;
    struct dirent *d;
    snprintf(path, sizeof path, "%s/checkpoints", run_dir);
    DIR *dir = opendir(path);
    while (dir && (d = readdir(dir))) n += strstr(d->d_name, ".part") != NULL || strstr(d->d_name, ".tmp") != NULL;
    if (dir) closedir(dir);
    return n;
}

/* Dies at every `each`-th of its messages, until it has no more. */
static i32 deaths(const struct session *s, const struct rank *one, struct comm_fault f, u64 each, const char *run_dir) {
    static struct rank r[RANKS];
    i32 healed = 0;
    for (f.die = 5;; f.die += each) {
        run(s, &f, RANKS, run_dir, r);
        const bool died = r[f.rank].e < 0;
        const i32 left = check(r, &f, one);
        if (run_dir && stray(run_dir)) fail_msg("a part of a checkpoint is left after a death at %d", (int)f.die);
        healed += left > 0;
        done(r, RANKS);
        if (!died || t_few()) return healed;
    }
}

static const char *const plain[] = {"target",  "a,b", "horizon", "4", "context", "12", "hidden",         "8", "steps",     "12",
                                    "members", "2",   "batch",   "9", "threads", "1",  "validate-every", "4", "refit-all", "yes",
                                    "gaps",    "mask", NULL};

static void every_phase(const char *const *more, u64 each) {
    static struct rank one[1];
    struct session s = session_run(session_rows(200), plain, more);
    i32 healed = 0;
    run(&s, NULL, 1, NULL, one);
    T_OK(one->e);
    for (i32 k = 0; k < RANKS; k++) healed += deaths(&s, one, (struct comm_fault){.rank = k, .rank2 = -1}, each, NULL);
    if (!t_few() && healed < 3 * RANKS) fail_msg("only %d deaths were survived", healed);
    done(one, 1);
    session_end(&s);
}

TEST(a_rank_dies_at_any_time) {
    every_phase((const char *const[]){"base", "none", "guard", "no", NULL}, 61);
    every_phase((const char *const[]){"base", "ridge", "accumulate", "3", NULL}, 149);
}

TEST(a_rank_dies_where_an_ensemble_ends_early) {
    every_phase((const char *const[]){"members", "4", "member-gain", "100", "base", "none", "guard", "no", NULL}, 127);
}

TEST(a_rank_dies_where_every_row_has_its_loss) {
    every_phase((const char *const[]){"base", "none", "loss-steps", "all", "parallel", "time:3", "batch", "2", NULL}, 331);
}

/* The second one right after the first, while the others meet, and much later. */
TEST(two_ranks_die) {
    static struct rank one[1], r[RANKS];
    static const i32 pairs[][2] = {{0, 1}, {1, 2}, {0, 2}};
    struct session s = session_run(session_rows(200), plain, (const char *const[]){"base", "none", NULL});
    run(&s, NULL, 1, NULL, one);
    T_OK(one->e);
    for (size_t i = 0; i < COUNT(pairs); i++)
        for (u64 gap = 0; gap < (t_few() ? 1 : 60); gap = gap < 8 ? gap + 1 : gap + 17) {
            const struct comm_fault f = {.rank = pairs[i][0], .die = 90, .rank2 = pairs[i][1], .die2 = 90 + gap};
            run(&s, &f, RANKS, NULL, r);
            assert_int_equal(check(r, &f, one), 1);
            done(r, RANKS);
        }
    done(one, 1);
    session_end(&s);
}

/* Rank 1 dies over its part of a validation that rank 0 has and rank 2 has not; rank 0, which is farther now, over the state that
 * it gives to rank 2.  False: rank 2 was as far, and nothing had to be given. */
static bool giver_dies(const struct session *s, const struct rank *one, u64 validation, const char *item) {
    static struct rank r[RANKS];
    const struct comm_fault f = {.rank = 1, .die = 2 * validation, .of = "validation", .rank2 = 0, .die2 = 1, .of2 = item};
    run(s, &f, RANKS, NULL, r);
    const bool gave = r[0].e < 0;
    assert_int_equal(check(r, &f, one), gave ? 1 : 2);
    done(r, RANKS);
    return gave;
}

TEST(the_one_that_gives_its_state_dies) {
    static struct rank one[1];
    static const char *const items[] = {"best_theta", "good", "step"};
    struct session s = session_run(session_rows(200), plain, (const char *const[]){"base", "none", "guard", "no", NULL});
    run(&s, NULL, 1, NULL, one);
    T_OK(one->e);
    for (u64 validation = 2; validation <= (t_few() ? 2 : 4); validation++) /* of four of the first member: steps 4, 8 and 12 */
        for (size_t i = 0; i < COUNT(items); i++) {
            i32 tries = 0;
            while (!giver_dies(&s, one, validation, items[i])) /* it may be slow to see what has come, and be no farther */
                if (++tries == 20) fail_msg("nobody was ever farther than another at validation %d", (int)validation);
        }
    done(one, 1);
    session_end(&s);
}

/* One is in flight nearly always: what the dead one wrote of it goes, the newest whole one stays. */
TEST(a_rank_dies_beside_checkpoints) {
    static struct rank one[1];
    static char dir[600];
    struct session s = session_run(session_rows(200), plain, (const char *const[]){"base", "none", "guard", "no", NULL});
    run(&s, NULL, 1, NULL, one);
    T_OK(one->e);
    snprintf(dir, sizeof dir, "%s/run", t_dir());
    T_OK(file_make_dir(dir));
    session_spec(&s)->checkpoint_every = 1e-4;
    for (i32 k = 0; k < RANKS; k++) deaths(&s, one, (struct comm_fault){.rank = k, .rank2 = -1}, 211, dir);
    done(one, 1);
    session_end(&s);
}

/* Two servers and a worker: a server that dies before the worker has its first weights of a later leg costs nothing, its momentum
 * included. */
TEST(a_server_that_dies_at_the_begin_of_a_leg_leaves_its_momentum) {
    static struct rank one[RANKS], r[RANKS];
    static const char *const more[] = {"base",  "none",     "guard",   "no", "members", "1",  "refit-all", "no",
                                       "steps", "24",       "batch",   "8",  "hidden",  "64", "validate-every", "8",
                                       "store", "diloco:4", "servers", "2",  "ranks",   "3",  NULL};
    struct session s = session_run(session_rows(200), plain, more);
    i32 begins = 0, same = 0;
    run(&s, NULL, RANKS, NULL, one);
    T_OK(one->e);
    for (u64 die = 8; die < 400; die++) {
        const struct comm_fault f = {.rank = 1, .die = die, .rank2 = -1};
        run(&s, &f, RANKS, NULL, r);
        const bool died = r[1].e < 0;
        if (died && (r[0].e < 0 || r[2].e < 0)) fail_msg("death at message %d: %s / %s", (int)die, r[0].why.text, r[2].why.text);
        const bool begin = died && (strstr(r[2].said, "from step 8 ") || strstr(r[2].said, "from step 16 "));
        begins += begin;
        same += begin && same_model(r[0].f, one->f);
        done(r, RANKS);
        if (!died || same > 0) break;
    }
    printf("%d deaths before the end of a leg's first round, %d without loss\n", begins, same);
    assert_true(same > 0);
    done(one, RANKS);
    session_end(&s);
}

T_MAIN(cmocka_unit_test(a_server_that_dies_at_the_begin_of_a_leg_leaves_its_momentum),
       cmocka_unit_test(a_rank_dies_at_any_time), cmocka_unit_test(a_rank_dies_where_an_ensemble_ends_early),
       cmocka_unit_test(a_rank_dies_where_every_row_has_its_loss),
       cmocka_unit_test(two_ranks_die), cmocka_unit_test(the_one_that_gives_its_state_dies),
       cmocka_unit_test(a_rank_dies_beside_checkpoints))
