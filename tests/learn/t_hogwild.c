/* t_hogwild.c - training by threads on shared weights: the loss of one thread, the bits of plain training with one, refusals,
 * gradients that are not finite, stop and resume. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "api/lists.h"
#include "api/ranks.h"
#include "learn/store/account.h"
#include "session.h"

enum { ROWS = 1200 };

static const char *rows_file(void) {
    static char path[600];
    struct str text = {0};
    if (path[0]) return path;
    str_add(&text, "a,kind\n");
    for (i32 i = 0; i < ROWS; i++)
        str_addf(&text, "%.3f,k%d\n", 5 + 3 * sin(i * 0.26) + 2 * sin(i * i * 0.0003) + (i * 37 % 11) / 9., i * 31 % 700);
    snprintf(path, sizeof path, "%s", t_file("rows.csv", text.s));
    str_free(&text);
    return path;
}

/* Prepared with further options "name", "value", ..., NULL; trained for a step or two on the way. */
static struct session begun(const char *threads, const char *const *more) {
    const char *const options[] = {"target", "a", "preset", "short", "horizon", "4", "context", "24", "hidden", "12", "batch",
                                   "16", "base", "last", "guard", "no", "steps", "2", "validate-every", "25", "members", "1",
                                   "dropout", "0", "lr", "0.01", "threads", threads, NULL};
    return session_run(rows_file(), options, more);
}

/* What a run reported. */
struct heard {
    volatile int stop;
    bool stops, stopping; /* soon after training begins */
    pthread_t stopper;
    i32 refused;
    f64 best;
    i64 from, to; /* steps */
    char account[200];
};

/* As a signal handler does: ThreadSanitizer does not see it. */
__attribute__((no_sanitize("thread"), noinline)) static void stop_now(struct heard *h) { h->stop = 1; }

static f64 processor_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (f64)t.tv_sec + 1e-9 * (f64)t.tv_nsec;
}

/* After some work of the others, however long it takes on a busy machine. */
static void *stop_soon(void *heard) {
    const f64 begin = processor_seconds();
    while (processor_seconds() < begin + 0.1) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    stop_now(heard);
    return NULL;
}

static void on(void *self, const struct event *e) {
    struct heard *h = self;
    if (h->stops && !h->stopping && (e->kind == EVENT_VALID || (e->kind == EVENT_BEGIN && e->step > 0)))
        h->stopping = pthread_create(&h->stopper, NULL, stop_soon, h) == 0;
    if (e->kind == EVENT_BEGIN) h->from = e->step;
    if (e->kind == EVENT_BEGIN || e->kind == EVENT_TICK || e->kind == EVENT_END) h->to = e->step;
    if (e->kind == EVENT_VALID) h->best = fmin(h->best, e->valid);
    if (e->kind == EVENT_WARNING && strstr(e->text, "were refused")) h->refused++;
    if (e->kind == EVENT_NOTE && strncmp(e->text, "store hogwild", 13) == 0)
        snprintf(h->account, sizeof h->account, "%s", e->text);
}

static err fit(const struct session *s, i64 steps, struct heard *h, const char *dir, bool resume, struct forecaster **out) {
    struct events events = {.sink = {{on, h}}, .n = 1};
    struct forecast_spec spec = *session_spec(s);
    struct learn_job job = s->t->job;
    struct model *m = NULL;
    spec.for_loop.steps = steps;
    job.spec = &spec;
    job.run_dir = dir;
    job.resume = resume;
    job.use.events = &events;
    job.use.stop = &h->stop;
    h->best = 1e9;
    const err e = ranks_fit(s->t, learner_find("forecast"), &job, &m);
    if (out) *out = m ? forecaster_in(m) : NULL;
    else model_free(m);
    return e;
}

/* Of what one thread reaches, give or take what the order of updates changes from run to run (untrained: 1.3 times as much); a
 * short training is too far from the end to say. */
static void near(f64 loss, f64 one) {
    if (loss > (t_few() ? 1.5 : 1.15) * one) fail_msg("the loss is %g, that of one thread %g", loss, one);
}

static f64 loss_of(const char *threads, const char *store, const char *const *more) {
    struct heard h = {0};
    const char *options[12] = {"store", store};
    for (i32 i = 0; more && more[i]; i++) options[2 + i] = more[i];
    struct session s = begun(threads, options);
    T_OK(fit(&s, t_few() ? 50 : 300, &h, NULL, false, NULL));
    session_end(&s);
    printf("%s threads, %s: %.5f; %s\n", threads, store, h.best, h.account);
    assert_true((h.account[0] != 0) == (strcmp(store, "sync") != 0));
    return h.best;
}

TEST(threads_reach_the_loss_of_one) {
    const f64 one = loss_of("1", "sync", NULL);
    near(loss_of("2", "hogwild", NULL), one);
    near(loss_of("4", "hogwild", NULL), one);
    near(loss_of("4", "hogwild:16", NULL), one);
}

/* For the report. */
TEST(a_run_keeps_an_account_of_its_updates) {
    struct heard h = {0};
    struct forecaster *f;
    struct session s = begun("2", (const char *[]){"store", "hogwild", NULL});
    T_OK(fit(&s, 50, &h, NULL, false, &f));
    const struct store_record *r = f->store;
    i64 updates = 0;
    assert_non_null(r);
    for (i32 k = 0; k < STALE_BINS; k++) updates += r->stale[k];
    assert_true(r->shared);
    assert_string_equal(r->name, "hogwild:0");
    assert_int_equal(r->workers, 2);
    assert_int_equal(r->pushes, 2 * 50);
    assert_int_equal(updates, r->pushes);
    assert_int_equal(r->refused, 0);
    forecast_free(&f->model);
    session_end(&s);
}

TEST(embeddings_reach_the_loss_of_one) {
    static const char *const cat[] = {"cat", "kind", "optim", "adagrad", "lr", "0.03", NULL};
    const f64 one = loss_of("1", "sync", cat);
    near(loss_of("2", "hogwild", cat), one);
    near(loss_of("2", "hogwild:64", cat), one);
}

TEST(one_thread_is_plain_training) {
    struct heard h = {0};
    struct session plain = begun("1", NULL), hogwild = begun("1", (const char *[]){"store", "hogwild", NULL});
    struct forecaster *a, *b;
    T_OK(fit(&plain, 60, &h, NULL, false, &a));
    T_OK(fit(&hogwild, 60, &h, NULL, false, &b));
    assert_int_equal(a->net.ntheta, b->net.ntheta);
    assert_memory_equal(a->theta[0], b->theta[0], sizeof(f32) * (size_t)a->net.ntheta);
    assert_string_equal(h.account, "");
    forecast_free(&a->model);
    forecast_free(&b->model);
    session_end(&plain);
    session_end(&hogwild);
}

/* ------------------------------------------------------------------ not finite ---------------------------------------------- */

/* A value of the training rows. */
static void spoil(const struct session *s) {
    struct series *x = series_of(s->t->job.data);
    x->v[300] = (f32)INFINITY;
}

TEST(gradients_that_are_not_finite_are_refused) {
    struct heard h = {0};
    struct forecaster *f;
    struct session s = begun("2", (const char *[]){"store", "hogwild", "scale", "none", NULL});
    spoil(&s);
    T_OK(fit(&s, 75, &h, NULL, false, &f));
    assert_true(h.refused > 0);
    for (i64 i = 0; i < f->net.ntheta; i++) assert_true(isfinite(f->theta[0][i]));
    forecast_free(&f->model);
    session_end(&s);
    s = begun("2", (const char *[]){"store", "hogwild", "scale", "none", "on-nan", "stop", NULL});
    spoil(&s);
    T_FAILS(fit(&s, 75, &h, NULL, false, NULL), E501);
    assert_non_null(strstr(err_last()->text, "a gradient of thread"));
    session_end(&s);
}

/* ------------------------------------------------------------------ stop and resume ----------------------------------------- */

/* Within a leg. */
static void stopped(const struct session *s, struct heard *h, const char *dir, bool resume) {
    *h = (struct heard){.stops = true};
    assert_int_equal(fit(s, 1000000, h, dir, resume, NULL), STOP_SIGNAL);
    assert_true(h->stopping);
    pthread_join(h->stopper, NULL);
}

TEST(a_run_resumes_where_it_stopped) {
    struct heard first, second;
    char dir[700];
    struct session s = begun("3", (const char *[]){"store", "hogwild", "validate-every", "100000", "batch", "15", NULL});
    snprintf(dir, sizeof dir, "%s/stopped", t_dir());
    stopped(&s, &first, dir, false);
    stopped(&s, &second, dir, true);
    printf("stopped at steps %lld and %lld\n", (long long)first.to, (long long)second.to);
    assert_int_equal(second.from, first.to);
    assert_true(first.to > 0 && second.to > first.to);
    session_end(&s);
}

/* ------------------------------------------------------------------ refusals ------------------------------------------------ */

TEST(what_cannot_be_combined_is_refused) {
    static const char *const with[][2] = {
        {"ranks", "2"}, {"deterministic", "yes"}, {"parallel", "time:4"}, {"parallel", "data"}, {"accumulate", "2"},
        {"heal", "yes"}, {"servers", "1"}, {"codec", "bf16"}, {"shards", "time"}, {"granularity", "8steps"},
        {"server-optim", "adam"}, {"pipeline", "delay1"}, {"plan", "some.plan"}};
    for (size_t i = 0; i < COUNT(with); i++) {
        struct options o;
        T_OK(opt_defaults(&o, api_lists()));
        T_OK(opt_set(&o, "store", "hogwild", &OPT_FLAG));
        T_OK(store_spec_check(&o));
        T_OK(opt_set(&o, with[i][0], with[i][1], &OPT_FLAG));
        if (store_spec_check(&o) != -E106) fail_msg("--%s %s is taken", with[i][0], with[i][1]);
        opt_free(&o);
    }
    struct store_choice c;
    static const char *const bad[] = {"hogwild:1.5", "hogwild:-1", "hogwild:4097", "hogwild:"};
    for (size_t i = 0; i < COUNT(bad); i++) T_FAILS(store_policy_parse(bad[i], &c), E103);
}

TEST(fewer_windows_than_threads_are_refused) {
    struct session s = begun("1", (const char *[]){"store", "hogwild", "batch", "4", NULL});
    stretto_trainer *t;
    T_OK(stretto_config_set(s.c, "threads", "5"));
    T_OK(stretto_trainer_new(s.c, s.d, &t));
    T_FAILS(stretto_trainer_run(t), E106);
    stretto_trainer_free(t);
    session_end(&s);
}

TEST(time_slices_are_refused) {
    struct heard h = {0};
    struct session s = begun("2", (const char *[]){"store", "hogwild", "preset", "stream", "context", "96", "batch", "2", NULL});
    session_spec(&s)->cut.slices = session_spec(&s)->cut.least = 4; /* as `auto` chooses for long contexts */
    T_FAILS(fit(&s, 2, &h, NULL, false, NULL), E401);
    session_end(&s);
}

T_MAIN(cmocka_unit_test(threads_reach_the_loss_of_one), cmocka_unit_test(a_run_keeps_an_account_of_its_updates),
       cmocka_unit_test(embeddings_reach_the_loss_of_one), cmocka_unit_test(one_thread_is_plain_training),
       cmocka_unit_test(gradients_that_are_not_finite_are_refused), cmocka_unit_test(a_run_resumes_where_it_stopped),
       cmocka_unit_test(what_cannot_be_combined_is_refused), cmocka_unit_test(fewer_windows_than_threads_are_refused),
       cmocka_unit_test(time_slices_are_refused))
