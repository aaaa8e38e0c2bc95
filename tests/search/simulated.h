/* simulated.h - for tests of the search: trials whose errors are a known function of the options, plus noise. */
#ifndef STRETTO_TESTS_SIMULATED_H
#define STRETTO_TESTS_SIMULATED_H

#include <string.h>

#include "base/rng.h"
#include "opt/opt.h"
#include "search/search.h"

/* Only these vary: what acts on the simulated error, and two that do not. */
static inline bool sim_fixed(const void *self, enum opt_id id) {
    (void)self;
    return id != OPT_lr && id != OPT_hidden && id != OPT_dropout && id != OPT_cell && id != OPT_batch && id != OPT_layers;
}

static inline void sim_search(struct options *o, struct search *s, i32 groups, u64 seed, i32 most) {
    memset(s, 0, sizeof *s);
    if (opt_defaults(o, NULL) < 0) return;
    s->seed = seed;
    s->most = most;
    space_make(o, sim_fixed, NULL, 4, &s->space);
    ladder_make(groups, 8 / groups, true, &s->ladder);
}

static inline f64 sim_value(const struct search *s, const struct point *p, enum opt_id id, f64 usual) {
    char text[SPACE_TEXT];
    f64 v = usual;
    for (i32 i = 0; i < s->space.n; i++) {
        if (s->space.dim[i].id != id || isnan(p->v[i])) continue;
        point_text(&s->space, p, i, text);
        v = strcmp(text, "gru") == 0 ? 1 : strcmp(text, "lstm") == 0 ? 0 : 0;
        str_to_f64(text, strlen(text), '.', &v);
    }
    return v;
}

/* The least is 1, at lr 0.001, hidden 128, dropout 0.3 and gru; the defaults (0.003, 32, 0, lstm) have about 1.34. */
static inline f64 sim_error(const struct search *s, const struct point *p) {
    const f64 lr = log(sim_value(s, p, OPT_lr, 0.003) / 0.001), hidden = log2(sim_value(s, p, OPT_hidden, 32) / 128);
    const f64 dropout = sim_value(s, p, OPT_dropout, 0) - 0.3;
    const f64 cell = sim_value(s, p, OPT_cell, 0) > 0.5 ? 0 : 0.04;
    return 1 + 0.06 * lr * lr + 0.04 * hidden * hidden + 0.8 * dropout * dropout + cell;
}

/* Results of one fit: noise differs between trials, and is smaller where all parts share it. */
static inline void sim_fit(struct search *s, i32 trial, f64 noise) {
    struct trial *t = &s->trial[trial];
    const i32 k = t->done++;
    for (i32 p = 0; p < s->ladder.nparts; p++) {
        const f64 common = rng_normal(s->seed, RNG_TEST, 1, (u64)(s->ladder.fit[k].group * 8 + p));
        const f64 own = rng_normal(s->seed, RNG_TEST, 2, (u64)((trial * 8 + k) * 8 + p));
        t->error[k][p] = sim_error(s, &t->at) * exp(0.2 * common + noise * own);
    }
}

/* Runs rounds until the search is over. */
static inline err sim_run(struct search *s, i32 width, f64 noise) {
    struct search_job job[SEARCH_JOBS];
    for (i32 n = 1; n > 0;) {
        TRY(search_next(s, width, job, &n));
        for (i32 i = 0; i < n; i++)
            while (s->trial[job[i].trial].done < s->ladder.end[job[i].level]) sim_fit(s, job[i].trial, noise);
    }
    return 0;
}

#endif
