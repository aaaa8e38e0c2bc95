/* schedule.c - the next round: promotions, then new trials; see search.h. */
#include <stdlib.h>

#include "base/mem.h"
#include "search/search.h"

void search_free(struct search *s) {
    mem_free(s->trial);
    s->trial = NULL;
    s->n = 0;
}

/* ------------------------------------------------------------------ promotions ---------------------------------------------- */

struct ranked {
    f64 score;
    i32 trial;
};

static int by_score(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? -1 : 1) : x->trial - y->trial;
}

/* Trials that finished the level, apart from the defaults, the best first. */
static i32 rank_level(const struct search *s, i32 level, struct ranked *out) {
    i32 n = 0;
    for (i32 i = 1; i < s->n; i++) {
        if (s->trial[i].failed || s->trial[i].done < s->ladder.end[level]) continue;
        const f64 score = trial_score(s, i, level, NULL);
        if (!isnan(score)) out[n++] = (struct ranked){score, i};
    }
    qsort(out, (size_t)n, sizeof *out, by_score);
    return n;
}

/* The best third of a level goes on, unless it is worse than the defaults by more than the noise of few parts may explain. */
static i32 promote(const struct search *s, i32 level, i32 room, struct ranked *ranked, struct search_job *job) {
    const f64 hopeless = 0.02;
    const i32 n = rank_level(s, level, ranked), best = (n + SEARCH_SPREAD - 1) / SEARCH_SPREAD;
    i32 made = 0;
    for (i32 k = 0; k < best && made < room; k++) {
        const struct trial *t = &s->trial[ranked[k].trial];
        if (ranked[k].score > hopeless) break;
        if (t->done >= s->ladder.end[level + 1]) continue;
        job[made++] = (struct search_job){ranked[k].trial, level + 1};
    }
    return made;
}

static err add_trial(struct search *s, bool *added) {
    struct point at;
    *added = search_propose(s, s->n, &at);
    if (!*added) return 0;
    GROW(s->trial, s->n, s->cap);
    s->trial[s->n++] = (struct trial){.at = at};
    return 0;
}

err search_next(struct search *s, i32 width, struct search_job *job, i32 *n) {
    struct ranked *ranked;
    bool added = true;
    *n = 0;
    width = imin(width, SEARCH_JOBS);
    NEW(ranked, s->n + 1);
    for (i32 level = s->ladder.nlevel - 2; level >= 0; level--) *n += promote(s, level, width - *n, ranked, job + *n);
    mem_free(ranked);
    while (*n < width && (s->most == 0 || s->n < s->most)) {
        TRY(add_trial(s, &added));
        if (!added) break;
        job[(*n)++] = (struct search_job){s->n - 1, s->n == 1 ? s->ladder.nlevel - 1 : 0};
    }
    return 0;
}
