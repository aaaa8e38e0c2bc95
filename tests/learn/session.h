/* session.h - a training by way of the public face, for tests that look inside afterwards. */
#ifndef STRETTO_TESTS_LEARN_SESSION_H
#define STRETTO_TESTS_LEARN_SESSION_H

#include <math.h>
#include <stdio.h>

#include "api/api.h"
#include "base/str.h"
#include "learn/forecast/forecast.h"
#include "learn/series_set.h"
#include "t.h"

struct session {
    stretto_config *c;
    stretto_data *d;
    stretto_trainer *t;
    const struct forecaster *f;  /* what was trained */
    const struct resources *use; /* with what */
};

static inline struct forecast_spec *session_spec(const struct session *s) { return s->t->job.spec; }

/* Trained on the file with options "name", "value", ..., NULL, and more of them (NULL = none). */
static inline struct session session_run(const char *path, const char *const *options, const char *const *more) {
    struct session s = {.c = stretto_config_new()};
    for (i32 i = 0; options[i]; i += 2) T_OK(stretto_config_set(s.c, options[i], options[i + 1]));
    for (i32 i = 0; more && more[i]; i += 2) T_OK(stretto_config_set(s.c, more[i], more[i + 1]));
    T_OK(stretto_data_open(s.c, path, &s.d));
    T_OK(stretto_trainer_new(s.c, s.d, &s.t));
    err e = stretto_trainer_run(s.t);
    if (e < 0) fail_msg("%s: %s", err_last()->where, err_last()->text);
    s.f = forecaster_in(stretto_trainer_model(s.t)->m);
    s.use = &s.t->job.use;
    return s;
}

/* A file of so many rows, one for each test program: two targets with holes, a column of the past, one known ahead, a category,
 * hours. */
static inline const char *session_rows(i32 rows) {
    static char path[600];
    if (path[0]) return path;
    struct str text = {0};
    str_add(&text, "time,a,b,past,ahead,kind\n");
    for (i32 i = 0; i < rows; i++) {
        str_addf(&text, "2024-%02d-%02d %02d:00,", 1 + i / 24 / 28, 1 + i / 24 % 28, i % 24);
        if (i % 41 == 5) str_add(&text, ",");
        else str_addf(&text, "%.3f,", 5 + 3 * sin(i * 0.2618) + 0.3 * (i * 37 % 11));
        str_addf(&text, "%.3f,%d,%d,%s\n", 100 - 20 * cos(i * 0.11), i * 53 % 17, i * 29 % 5, i % 3 ? "calm" : "wild");
    }
    snprintf(path, sizeof path, "%s", t_file("rows.csv", text.s));
    str_free(&text);
    return path;
}

static inline void session_end(struct session *s) {
    stretto_trainer_free(s->t);
    stretto_data_free(s->d);
    stretto_config_free(s->c);
}

#endif
