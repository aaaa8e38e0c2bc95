/* slicing.h - a short training in slices of time that can be stopped and resumed, and what it said; for the tests of slices. */
#ifndef STRETTO_TESTS_LEARN_SLICING_H
#define STRETTO_TESTS_LEARN_SLICING_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/ranks.h"
#include "session.h"

enum { ROWS = 2600, P = 16 };

static inline const char *rows_file(void) {
    static char path[600];
    struct str text = {0};
    if (path[0]) return path;
    str_add(&text, "a\n");
    for (i32 i = 0; i < ROWS; i++) str_addf(&text, "%.3f\n", 5 + 3 * sin(i * 0.26) + sin(i * 0.011) + 0.3 * (i * 37 % 11));
    snprintf(path, sizeof path, "%s", t_file("rows.csv", text.s));
    str_free(&text);
    return path;
}

/* What a run said, and when it is to be stopped. */
struct watcher {
    i64 stop_at; /* 0 = never */
    volatile int stop;
    i32 fewer, more, ranks, cold, warnings, measured;
    char gap[200];
};

static inline void on(void *self, const struct event *e) {
    struct watcher *w = self;
    if (e->kind == EVENT_DETAIL && strstr(e->text, "from here on")) w->fewer++;
    if (e->kind == EVENT_DETAIL && strstr(e->text, "room for")) w->more++;
    if (e->kind == EVENT_DETAIL && strstr(e->text, "initial states are estimated")) w->ranks++;
    if (e->kind == EVENT_DETAIL && strstr(e->text, "against whole windows")) snprintf(w->gap, sizeof w->gap, "%s", e->text);
    if (e->kind == EVENT_WARNING && strstr(e->text, "start from zero")) w->cold++;
    if (e->kind == EVENT_WARNING) w->warnings++;
    bool numbers = e->slices > 1 && e->rounds > 1 && e->forgets > 0 && e->useful > 0 && e->useful < 1;
    if (e->kind == EVENT_VALID && numbers) w->measured++;
    if (e->kind == EVENT_STEP && w->stop_at > 0 && e->step >= w->stop_at) w->stop = 1;
}

/* A trainer that ran, for its data and machine; further options "name", "value", ..., NULL. */
static inline struct session begun(const char *const *more) {
    static const char *const options[] = {"preset", "stream", "target", "a",   "horizon", "2",     "guard",  "no", "base", "last",
                                          "context", "96",    "batch",  "2",   "validate-every", "6", "steps", "24",
                                          "hidden", "9",      "patience", "99", NULL};
    return session_run(rows_file(), options, more);
}

static inline err fit(const struct session *s, i32 least, struct watcher *w, const char *dir, bool resume,
                      struct forecaster **out) {
    struct events events = {.sink = {{on, w}}, .n = 1};
    struct forecast_spec spec = *session_spec(s);
    struct learn_job job = s->t->job;
    struct model *m;
    job.spec = &spec;
    job.run_dir = dir;
    job.resume = resume;
    w->stop = 0;
    job.use.events = &events;
    job.use.stop = &w->stop;
    if (least > 0) { /* else they are those of the options */
        spec.cut.slices = P;
        spec.cut.least = least;
    }
    const err e = ranks_fit(s->t, learner_find("forecast"), &job, &m);
    *out = m ? forecaster_in(m) : NULL;
    return e;
}

#endif
