/* crf_session.h - a training of the learner crf by way of the public face, for tests that look inside afterwards. */
#ifndef STRETTO_TESTS_LEARN_CRF_SESSION_H
#define STRETTO_TESTS_LEARN_CRF_SESSION_H

#include "api/api.h"
#include "learn/crf/crf.h"
#include "t.h"

struct session {
    stretto_config *c;
    stretto_data *d;
    stretto_trainer *t;
};

/* On the file with options "name", "value", ..., NULL. */
static inline err start(struct session *s, const char *path, const char *const *options) {
    *s = (struct session){.c = stretto_config_new()};
    T_OK(stretto_config_set(s->c, "task", "crf"));
    for (i32 i = 0; options[i]; i += 2) T_OK(stretto_config_set(s->c, options[i], options[i + 1]));
    TRY(stretto_data_open(s->c, path, &s->d));
    TRY(stretto_trainer_new(s->c, s->d, &s->t));
    return stretto_trainer_run(s->t);
}

static inline void end(struct session *s) {
    stretto_trainer_free(s->t);
    stretto_data_free(s->d);
    stretto_config_free(s->c);
}

static inline const struct crf *model_of(const struct session *s) { return crf_of(stretto_trainer_model(s->t)->m); }

#endif
