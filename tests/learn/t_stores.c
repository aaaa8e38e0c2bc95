/* t_stores.c - training through a parameter store: ssp:0 and servers have the bits of synchronous ranks, resumed runs those of
 * undisturbed ones, replays those of the run that was recorded; every policy and codec learns. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/ranks.h"
#include "ckpt/checkpoint.h"
#include "learn/store/account.h"
#include "session.h"

static const char *const small[] = {
    "preset",         "none", "target",     "a",   "horizon", "4",    "context", "16",   "batch",   "16",
    "validate-every", "10",   "steps",      "40",  "hidden",  "20",   "base",    "last", "threads", "1",
    "guard",          "no",   "keep-codec", "yes", "gaps",    "mask", NULL};

struct session_more {
    const char *word[24];
};

static struct session_more more(i32 ranks, const char *store, const char *name, const char *value, const char *name2,
                                const char *value2) {
    enum { TEXTS = 64 };
    static char count[TEXTS][8];
    static i32 next;
    struct session_more m = {{"store", store}};
    i32 n = 2;
    char *text = count[next++ % TEXTS];
    snprintf(text, 8, "%d", ranks);
    m.word[n++] = "ranks", m.word[n++] = text;
    if (name) m.word[n++] = name, m.word[n++] = value;
    if (name2) m.word[n++] = name2, m.word[n++] = value2;
    return m;
}

static struct session trained(const struct session_more *m) { return session_run(session_rows(660), small, m->word); }

static void same_weights(const struct session *a, const struct session *b) {
    assert_int_equal(a->f->net.ntheta, b->f->net.ntheta);
    assert_memory_equal(a->f->theta[0], b->f->theta[0], sizeof(f32) * (size_t)a->f->net.ntheta);
}

/* Of `batch` windows each worker has so many whole micro-batches; their trees are subtrees of that of the batch if it is a power
 * of two.  The number of workers need be none. */
TEST(rounds_of_servers_have_the_bits_where_each_worker_has_a_power_of_two_of_micro_batches) {
    static const struct {
        i32 ranks;
        const char *batch;
        bool same;
    } c[] = {{2, "32", true}, {3, "48", true}, {2, "48", false}, {2, "24", false}};
    for (size_t i = 0; i < COUNT(c); i += t_few() ? 2 : 1) {
        const struct session_more one = more(1, "sync", "batch", c[i].batch, NULL, NULL);
        const struct session_more all = more(c[i].ranks, "ssp:0", "granularity", "1step", "batch", c[i].batch);
        struct session want = trained(&one), got = trained(&all);
        assert_int_equal(want.f->net.ntheta, got.f->net.ntheta);
        const size_t bytes = sizeof(f32) * (size_t)want.f->net.ntheta;
        printf("%d ranks, batch %s\n", c[i].ranks, c[i].batch);
        assert_int_equal(memcmp(want.f->theta[0], got.f->theta[0], bytes) == 0, c[i].same);
        session_end(&want);
        session_end(&got);
    }
}

TEST(synchronous_stores_have_the_bits_of_synchronous_ranks) {
    const struct session_more plain = more(1, "sync", NULL, NULL, NULL, NULL);
    struct session want = trained(&plain);
    const struct session_more c[] = {more(2, "ssp:0", "granularity", "1step", NULL, NULL),
                                     more(4, "ssp:0", "granularity", "1step", NULL, NULL),
                                     more(2, "ssp:0", NULL, NULL, NULL, NULL), /* the plan's messages: any number of workers */
                                     more(3, "ssp:0", NULL, NULL, NULL, NULL),
                                     more(3, "sync", "servers", "1", NULL, NULL),
                                     more(4, "sync", "servers", "2", "granularity", "1step*tensor")};
    for (size_t i = 0; i < COUNT(c); i++) {
        struct session got = trained(&c[i]);
        same_weights(&got, &want);
        session_end(&got);
    }
    session_end(&want);
}

static f64 best_loss(const struct session *s, f64 *untrained) {
    f64 first = 0, best = INFINITY;
    const struct history *c = &s->t->history;
    for (i64 i = 0; i < c->n; i++) {
        if (isnan(c->point[i].valid)) continue;
        if (c->point[i].step == 0) first = c->point[i].valid;
        best = fmin(best, c->point[i].valid);
    }
    *untrained = first;
    return best;
}

/* Lower than a forecast of the last value, which the untrained network gives. */
static void learns(const struct session_more *m) {
    struct session s = trained(m);
    f64 first;
    const f64 best = best_loss(&s, &first);
    printf("%s %s %s: validation loss %.4f, untrained %.4f\n", m->word[1], m->word[4] ? m->word[4] : "",
           m->word[4] ? m->word[5] : "", best, first);
    assert_true(best < 0.995 * first);
    session_end(&s);
}

TEST(every_policy_learns) {
    static const char *const store[] = {"ssp:3", "asp", "dcasgd", "local:5", "easgd:2", "bmuf:5", "diloco:5", "auto", "delay1"};
    for (size_t i = 0; i < COUNT(store); i += t_few() ? 3 : 1) {
        const struct session_more m = more(2, store[i], "steps", "240", NULL, NULL);
        learns(&m);
    }
}

TEST(every_codec_and_granularity_learns) {
    static const char *const c[][3] = {{"sync", "codec", "bf16"},
                                       {"sync", "codec", "fp16"},
                                       {"asp", "codec", "int8"},
                                       {"sync", "codec", "sign"},
                                       {"asp", "codec", "topk:0.05"},
                                       {"sync", "codec", "powersgd:2"},
                                       {"asp", "granularity", "4steps"},
                                       {"asp", "granularity", "1step*tensor"},
                                       {"asp", "granularity", "1step*rows:3"},
                                       {"ssp:1", "granularity", "0.01s"},
                                       {"sync", "granularity", "0.2epochs"},
                                       {"local:5", "shards", "time"}};
    for (size_t i = 0; i < COUNT(c); i += t_few() ? 4 : 1) {
        const struct session_more m = more(2, c[i][0], "steps", "240", c[i][1], c[i][2]);
        learns(&m);
    }
}

/* A pull with a codec adds to the one before. */
TEST(elastic_workers_learn_with_a_codec_as_without) {
    static const char *const codec[] = {"none", "bf16", "int8"};
    f64 plain = 0;
    for (size_t i = 0; i < COUNT(codec); i++) {
        const struct session_more m = more(2, "easgd:2", "steps", "240", "codec", codec[i]);
        struct session s = trained(&m);
        f64 first;
        const f64 best = best_loss(&s, &first);
        printf("%s: validation loss %.4f, untrained %.4f\n", codec[i], best, first);
        if (i == 0) plain = best;
        assert_true(fabs(best - plain) < 0.2 * (first - plain));
        session_end(&s);
    }
}

/* What the report shows (account.h). */
TEST(a_run_keeps_an_account_of_its_pushes) {
    const struct session_more c[] = {more(3, "asp", "servers", "1", NULL, NULL), more(2, "sync", "codec", "int8", NULL, NULL)};
    for (size_t i = 0; i < COUNT(c); i++) {
        struct session s = trained(&c[i]);
        const struct store_record *r = s.f->store;
        i64 pushes = 0;
        assert_non_null(r);
        for (i32 k = 0; k < STALE_BINS; k++) pushes += r->stale[k];
        assert_int_equal(r->workers, 2);
        assert_int_equal(r->servers, i == 0);
        assert_string_equal(r->name, i == 0 ? "asp, 1 server" : "sync, codec int8");
        assert_int_equal(r->pushes, 2 * 40);
        assert_int_equal(pushes, r->pushes);
        assert_int_equal(r->refused, 0);
        assert_true(r->sent > 0 && r->messages > 0 && r->worked > 0);
        assert_true(i == 0 || 2 * r->whole > 3 * r->sent); /* int8; the last weights of a leg go plain */
        session_end(&s);
    }
    const struct session_more plain = more(2, "sync", NULL, NULL, NULL, NULL);
    struct session s = trained(&plain);
    assert_null(s.f->store);
    session_end(&s);
}

/* --- stopped and resumed --- */

struct watcher {
    int stop;
    i64 stop_at;
    i32 later_ms; /* than the validation of that step; 0 = at once */
    bool runs;
    pthread_t thread;
};

static void *stop_later(void *self) {
    struct watcher *w = self;
    nanosleep(&(struct timespec){.tv_nsec = 1000000L * w->later_ms}, NULL);
    __atomic_store_n(&w->stop, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void on(void *self, const struct event *e) {
    struct watcher *w = self;
    if (e->kind != EVENT_VALID || w->stop_at <= 0 || e->step < w->stop_at || w->runs) return;
    w->runs = w->later_ms > 0;
    if (w->runs)
        assert_int_equal(pthread_create(&w->thread, NULL, stop_later, w), 0);
    else
        w->stop = 1;
}

static err fit_watched(const struct session *s, const char *dir, bool resume, struct watcher *w, const char *replay,
                       struct forecaster **out) {
    struct events events = {.sink = {{on, w}}, .n = 1};
    struct learn_job job = s->t->job;
    struct model *m = NULL;
    job.run_dir = dir;
    job.resume = resume;
    job.use.events = &events;
    job.use.stop = &w->stop;
    if (replay) job.use.store.replay = replay;
    const err e = ranks_fit(s->t, learner_find("forecast"), &job, &m);
    *out = m ? forecaster_in(m) : NULL;
    if (w->runs) pthread_join(w->thread, NULL);
    return e;
}

static err fit(const struct session *s, const char *dir, bool resume, i64 stop_at, const char *replay, struct forecaster **out) {
    struct watcher w = {.stop_at = stop_at};
    return fit_watched(s, dir, resume, &w, replay, out);
}

static void resumes(const struct session_more *m, i32 id) {
    char dir[700];
    struct session s = trained(m);
    struct forecaster *f;
    snprintf(dir, sizeof dir, "%s/resumed%d", t_dir(), id);
    assert_int_equal(fit(&s, dir, false, 20, NULL, &f), STOP_SIGNAL);
    assert_null(f);
    T_OK(fit(&s, dir, true, 0, NULL, &f));
    assert_memory_equal(f->theta[0], s.f->theta[0], sizeof(f32) * (size_t)f->net.ntheta);
    forecast_free(&f->model);
    session_end(&s);
}

/* States of codecs, of worker and server optimisers, of spans of time are in the checkpoint. */
TEST(resumed_runs_have_the_bits_of_undisturbed_ones) {
    const struct session_more c[] = {more(2, "ssp:0", "granularity", "1step", NULL, NULL),
                                     more(3, "sync", "servers", "1", "codec", "sign"),
                                     more(2, "sync", "codec", "powersgd:2", NULL, NULL),
                                     more(2, "diloco:5", "codec", "bf16", NULL, NULL),
                                     more(2, "bmuf:10", NULL, NULL, NULL, NULL),
                                     more(2, "local:5", "shards", "time", "decoder", "direct"),
                                     more(2, "local:5", "shards", "time", "loss-steps", "all")};
    for (i32 i = 0; i < (i32)COUNT(c); i += t_few() ? 3 : 1) resumes(&c[i], i);
}

/* Of the newest checkpoint in DIR. */
static i64 step_of_checkpoint(const char *dir) {
    char path[800];
    struct ckpt *found;
    struct str passed = {0};
    i64 step = -1;
    snprintf(path, sizeof path, "%s/checkpoints", dir);
    T_OK(ckpt_newest(path, &passed, &found));
    T_OK(ckpt_take(found, &(struct ckpt_item){"step", DTYPE_I64, &step, 1}, 1));
    ckpt_close(found);
    str_free(&passed);
    return step;
}

/* A codec's residuals of pulls, too. */
TEST(a_stop_between_validations_is_heard_and_keeps_the_bits) {
    const struct session_more c[] = {more(2, "sync", "codec", "sign", NULL, NULL),
                                     more(3, "sync", "servers", "1", "codec", "bf16"),
                                     more(2, "local:5", "codec", "int8", NULL, NULL)};
    enum { LEG = 400 };
    for (i32 i = 0; i < (i32)COUNT(c); i += t_few() ? 3 : 1) {
        struct session_more m = c[i];
        char dir[700];
        struct forecaster *f;
        i32 n = 0;
        while (m.word[n]) n++;
        static const char *const longer[] = {"validate-every", "400", "steps", "800", NULL};
        for (i32 k = 0; longer[k]; k++) m.word[n++] = longer[k];
        struct session s = trained(&m);
        struct watcher w = {.stop_at = LEG, .later_ms = 5};
        snprintf(dir, sizeof dir, "%s/between%d", t_dir(), i);
        assert_int_equal(fit_watched(&s, dir, false, &w, NULL, &f), STOP_SIGNAL);
        const i64 step = step_of_checkpoint(dir);
        printf("stopped at step %lld\n", (long long)step);
        assert_in_range(step, LEG, 2 * LEG - 1);
        T_OK(fit(&s, dir, true, 0, NULL, &f));
        assert_memory_equal(f->theta[0], s.f->theta[0], sizeof(f32) * (size_t)f->net.ntheta);
        forecast_free(&f->model);
        session_end(&s);
    }
}

/* The legs of RUN/order.txt (learn/store/record.c). */
struct leg_line {
    i64 step, local, codec, stale;
};

static i32 legs_of(const char *dir, struct leg_line *leg, i32 most) {
    char path[800], word[8];
    i32 n = 0;
    snprintf(path, sizeof path, "%s/order.txt", dir);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (int c = fgetc(f); c != EOF && n < most; c = fgetc(f)) {
        long long step, last, local, codec, stale;
        if (c != '\n') continue;
        if (fscanf(f, "%4[a-z] %*d %*d %lld %lld %lld %lld %*d %*d %*d %*d %lld", word, &step, &last, &local, &codec,
                   &stale) != 6)
            continue;
        leg[n++] = (struct leg_line){step, local, codec, stale};
    }
    fclose(f);
    return n;
}

/* What followed the clock is in the checkpoint: what auto has chosen, and a codec that was switched off. */
TEST(a_resumed_run_goes_on_with_what_was_chosen) {
    const struct session_more c[] = {more(2, "auto", "codec", "none", NULL, NULL),
                                     more(2, "asp", "codec", "powersgd:4", "keep-codec", "no")};
    setenv("STRETTO_FAULT", "1:0:slow(99)", 1); /* so the other one waits */
    for (i32 i = 0; i < (i32)COUNT(c); i++) {
        struct session s = trained(&c[i]);
        struct leg_line leg[32] = {{0}};
        struct forecaster *f;
        char dir[700];
        snprintf(dir, sizeof dir, "%s/chosen%d", t_dir(), i);
        assert_int_equal(fit(&s, dir, false, 20, NULL, &f), STOP_SIGNAL);
        const i32 before = legs_of(dir, leg, 32);
        T_OK(fit(&s, dir, true, 0, NULL, &f));
        const i32 all = legs_of(dir, leg, 32);
        assert_true(before >= 2 && all > before);
        for (i32 k = 0; k < all; k++)
            printf("step %lld: local %lld, codec %lld, staleness %lld\n", (long long)leg[k].step, (long long)leg[k].local,
                   (long long)leg[k].codec, (long long)leg[k].stale);
        if (i == 0) {
            assert_true(leg[0].stale == 0 && leg[before - 1].stale > 0 && leg[before].stale > 0);
            bool shown = false; /* the report shows the decisions of before the stop, too */
            for (i32 k = 0; k < f->store->ndecision; k++)
                shown |= f->store->decision[k].step <= 20 && strncmp(f->store->decision[k].what, "asynchronous", 12) == 0;
            assert_true(shown);
        }
        if (i == 1) assert_int_equal(leg[before].codec, leg[before - 1].codec);
        forecast_free(&f->model);
        session_end(&s);
    }
    unsetenv("STRETTO_FAULT");
}

TEST(a_replayed_run_has_the_bits_of_the_recorded_one) {
    static const char *const c[][3] = {{"asp", "granularity", "1step*tensor"},
                                       {"ssp:2", "codec", "int8"},
                                       {"easgd:2", "servers", "1"},
                                       {"auto", "keep-codec", "no"},
                                       {"ssp:1", "granularity", "0.01s"}};
    for (i32 i = 0; i < (i32)COUNT(c); i += t_few() ? 3 : 1) {
        const struct session_more m = more(3, c[i][0], c[i][1], c[i][2], NULL, NULL);
        char dir[700], order[800];
        struct session s = trained(&m);
        struct forecaster *f, *g;
        struct leg_line leg[32] = {{0}};
        i64 stale = 0;
        snprintf(dir, sizeof dir, "%s/recorded%d", t_dir(), i);
        snprintf(order, sizeof order, "%s/order.txt", dir);
        const bool chooses = strcmp(c[i][0], "auto") == 0;
        if (chooses) setenv("STRETTO_FAULT", "1:0:slow(99)", 1); /* so it chooses asynchronous legs */
        T_OK(fit(&s, dir, false, 0, NULL, &f));
        unsetenv("STRETTO_FAULT");
        for (i32 k = 0, n = legs_of(dir, leg, 32); k < n; k++) stale += leg[k].stale;
        if (chooses) assert_true(stale > 0);
        T_OK(fit(&s, NULL, false, 0, order, &g));
        assert_memory_equal(f->theta[0], g->theta[0], sizeof(f32) * (size_t)f->net.ntheta);
        forecast_free(&f->model);
        forecast_free(&g->model);
        session_end(&s);
    }
}

/* Legs end where the record says: a stop at a border, and the rest of the record. */
TEST(a_replayed_run_of_elastic_workers_keeps_its_bits_over_a_stop) {
    static const char *const codec[] = {"none", "bf16", "int8"};
    for (i32 i = 0; i < (i32)COUNT(codec); i += t_few() ? 2 : 1) {
        const struct session_more m = more(2, "easgd:2", "codec", codec[i], NULL, NULL);
        char dir[700], again[700], order[800];
        struct session s = trained(&m);
        struct forecaster *f, *g;
        snprintf(dir, sizeof dir, "%s/elastic%d", t_dir(), i);
        snprintf(again, sizeof again, "%s/elastic%d-again", t_dir(), i);
        snprintf(order, sizeof order, "%s/order.txt", dir);
        T_OK(fit(&s, dir, false, 0, NULL, &f));
        assert_int_equal(fit(&s, again, false, 20, order, &g), STOP_SIGNAL);
        T_OK(fit(&s, again, true, 0, order, &g));
        assert_memory_equal(f->theta[0], g->theta[0], sizeof(f32) * (size_t)f->net.ntheta);
        forecast_free(&f->model);
        forecast_free(&g->model);
        session_end(&s);
    }
}

/* --- refusals --- */

/* The words of a line of a file, one of them changed. */
static void edit(const char *from, const char *to, i32 line, i32 word, const char *by) {
    static char text[1 << 16];
    FILE *f = fopen(from, "r"), *g = fopen(to, "w");
    assert_true(f && g);
    for (i32 i = 1; fgets(text, sizeof text, f); i++) {
        i32 k = 0;
        for (char *p = text, *end; *p && i == line; p = end, k++) {
            end = p + strcspn(p, " \n");
            fprintf(g, "%.*s", (int)(k == word ? strlen(by) : (size_t)(end - p)), k == word ? by : p);
            if (*end) fputc(*end++, g);
        }
        if (i != line) fputs(text, g);
    }
    fclose(f);
    assert_int_equal(fclose(g), 0);
}

/* Lines: title, leg, workers of the tickets, events of server 0, of server 1.  A replay would wait for what never comes. */
TEST(a_record_that_cannot_happen_is_refused_with_its_line) {
    const struct {
        const char *store;
        i32 line, word;
        const char *by, *at, *says;
    } c[] = {{"asp", 4, 1, "1", ":4", "event 1 occurs twice"}, /* the first one is a pull: an even number */
             {"asp", 5, 9, "4000000000", ":5", "event 4000000000 is out of range"},
             {"asp", 5, 9, "4294967296", ":5", "event 4294967296 is out of range"},
             {"asp", 4, 0, "39", ":4", "39 events"},
             {"asp", 3, 0, "7", ":3", "worker"},
             {"asp", 2, 4, "11", "--replay", "tickets"},
             {"ssp:1", 2, 11, "2", "--replay", "staleness 2"}};
    char dir[700], order[800], bad[800];
    for (size_t i = 0; i < COUNT(c); i++) {
        const struct session_more m = more(2, c[i].store, NULL, NULL, NULL, NULL);
        struct session s = trained(&m);
        struct forecaster *f;
        snprintf(dir, sizeof dir, "%s/edited%d", t_dir(), (i32)i);
        snprintf(order, sizeof order, "%s/order.txt", dir);
        snprintf(bad, sizeof bad, "%s/bad.txt", dir);
        T_OK(fit(&s, dir, false, 0, NULL, &f));
        forecast_free(&f->model);
        edit(order, bad, c[i].line, c[i].word, c[i].by);
        const err e = fit(&s, NULL, false, 0, bad, &f);
        printf("E%d %s: %s\n", err_last()->code, err_last()->where, err_last()->text);
        assert_int_equal(e, c[i].at[0] == ':' ? -E402 : -E106);
        assert_non_null(strstr(err_last()->where, c[i].at));
        assert_non_null(strstr(err_last()->text, c[i].says));
        session_end(&s);
    }
}

/* One round of two workers and two servers. */
TEST(a_written_record_is_refused_at_the_line_that_is_wrong) {
    static const struct {
        const char *text, *at, *says;
    } c[] = {{"1000\n0 1\n4 0 1 2 3\n4 0 3 1 2\n", ":5", "event 3, number 2 of the line, cannot happen"}, /* before its pull */
             {"1000\n0 0\n4 0 1 2 3\n4 2 0 1 3\n", ":5", "event 2, number 1"}, /* the second ticket of worker 0 first */
             {"1000\n0 1\n4 0 1 2 3\n4 2 3 0 1\n", ":4", "event 1, number 2"}, /* each server waits for the other */
             {"1000\n0 1\n4 0 1 2 3\n4 2 0 3 1\n", NULL, NULL},
             {"1000\n0 1\n4 0 1 2\n4 0 1 2 3\n", ":4", "an event is missing"},
             {"0\n0 1\n4 0 1 2 3\n4 0 1 2 3\n", ":4", "4 events"},
             {"0\n1 0\n0\n0\n", ":3", "one ticket of each worker"}};
    const struct session_more m = more(2, "asp", "steps", "1", NULL, NULL);
    struct session s = trained(&m);
    for (size_t i = 0; i < COUNT(c); i++) {
        struct forecaster *f = NULL;
        char path[800];
        snprintf(path, sizeof path, "%s/written.txt", t_dir());
        FILE *g = fopen(path, "w");
        assert_non_null(g);
        const i32 events = strncmp(c[i].text, "0\n1 0", 5) == 0 ? 0 : 4;
        fprintf(g, "stretto order 3\nleg 0 0 0 1 1 0 2 2 2 %d %s", events, c[i].text);
        assert_int_equal(fclose(g), 0);
        const err e = fit(&s, NULL, false, 0, path, &f);
        if (e < 0) printf("E%d %s: %s\n", err_last()->code, err_last()->where, err_last()->text);
        assert_int_equal(e, c[i].at ? -E402 : 0);
        if (!c[i].at) forecast_free(&f->model);
        if (!c[i].at) continue;
        assert_non_null(strstr(err_last()->where, c[i].at));
        assert_non_null(strstr(err_last()->text, c[i].says));
    }
    session_end(&s);
}

static void refused(const char *const *words, i32 code) {
    stretto_config *c = stretto_config_new();
    stretto_data *d = NULL;
    stretto_trainer *t = NULL;
    err e = 0;
    for (i32 i = 0; small[i]; i += 2) T_OK(stretto_config_set(c, small[i], small[i + 1]));
    for (i32 i = 0; words[i] && e >= 0; i += 2) e = stretto_config_set(c, words[i], words[i + 1]);
    if (e >= 0) T_OK(stretto_data_open(c, session_rows(660), &d));
    if (e >= 0) e = stretto_trainer_new(c, d, &t);
    if (e >= 0) e = stretto_trainer_run(t);
    printf("E%d %s (fix: %s)\n", err_last()->code, err_last()->text, err_last()->fix);
    assert_int_equal(e, -code);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

TEST(what_does_not_fit_is_refused_in_a_sentence) {
    static const struct {
        const char *word[10];
        i32 code;
    } c[] = {{{"store", "spp", "ranks", "2"}, E103},
             {{"store", "ssp:-1", "ranks", "2"}, E103},
             {{"store", "local:0", "ranks", "2"}, E103},
             {{"codec", "zip", "ranks", "2"}, E103},
             {{"codec", "powersgd:0", "ranks", "2"}, E103},
             {{"granularity", "0steps", "ranks", "2"}, E103},
             {{"granularity", "8", "ranks", "2"}, E103},
             {{"granularity", "8steps*cell", "ranks", "2"}, E103},
             {{"store", "asp", "servers", "2", "ranks", "2"}, E106},
             {{"store", "asp", "servers", "5", "ranks", "3"}, E106},
             {{"store", "asp"}, E106},
             {{"store", "local", "threads", "2"}, E106},
             {{"store", "asp", "ranks", "2", "accumulate", "2"}, E106},
             {{"store", "asp", "ranks", "2", "pipeline", "delay1"}, E106},
             {{"store", "asp", "ranks", "2", "deterministic", "yes"}, E106},
             {{"store", "local:4", "ranks", "2", "granularity", "8steps"}, E106},
             {{"store", "delay1", "ranks", "2", "codec", "bf16"}, E106},
             {{"store", "dcasgd", "ranks", "2", "granularity", "8steps"}, E106},
             {{"store", "asp", "ranks", "4", "batch", "3"}, E106},
             {{"store", "asp", "ranks", "2", "loss-steps", "all", "parallel", "time:2"}, E401}};
    for (size_t i = 0; i < COUNT(c); i++) refused(c[i].word, c[i].code);
}

T_MAIN(cmocka_unit_test(rounds_of_servers_have_the_bits_where_each_worker_has_a_power_of_two_of_micro_batches),
       cmocka_unit_test(synchronous_stores_have_the_bits_of_synchronous_ranks), cmocka_unit_test(every_policy_learns),
       cmocka_unit_test(every_codec_and_granularity_learns),
       cmocka_unit_test(elastic_workers_learn_with_a_codec_as_without), cmocka_unit_test(a_run_keeps_an_account_of_its_pushes),
       cmocka_unit_test(resumed_runs_have_the_bits_of_undisturbed_ones),
       cmocka_unit_test(a_stop_between_validations_is_heard_and_keeps_the_bits),
       cmocka_unit_test(a_resumed_run_goes_on_with_what_was_chosen),
       cmocka_unit_test(a_replayed_run_has_the_bits_of_the_recorded_one),
       cmocka_unit_test(a_replayed_run_of_elastic_workers_keeps_its_bits_over_a_stop),
       cmocka_unit_test(a_record_that_cannot_happen_is_refused_with_its_line),
       cmocka_unit_test(a_written_record_is_refused_at_the_line_that_is_wrong),
       cmocka_unit_test(what_does_not_fit_is_refused_in_a_sentence))
