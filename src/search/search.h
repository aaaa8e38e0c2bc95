/* search.h - the schedule of a search: a pure function from the results so far to the next trials.
 *
 *     level 0   o o o o o o o o o     every trial: the first fits of the ladder
 *     level 1   o     o   o           the best third of those that finished level 0: further fits
 *     level 2         o               the best third of these: all fits (asynchronous successive halving, Li et al. 2020)
 *
 * A round is a batch of jobs whose results are all known before the next one is made, so the schedule does not depend on who
 * fits what.  Trial 0 is the defaults; it goes up to the last level in the first round.  Further trials are first the values of
 * space.def alone, then proposals by evolution: a good trial, or two of them mixed, with a few values changed.
 *
 * Errors are compared with those of the defaults on the same records: mean over the parts of log(error / error of the
 * defaults). */
#ifndef STRETTO_SEARCH_SEARCH_H
#define STRETTO_SEARCH_SEARCH_H

#include "search/space.h"

enum { LADDER_LEVELS = 3, LADDER_FITS = 8, LADDER_PARTS = 8, SEARCH_WHY = 160, SEARCH_SPREAD = 3, SEARCH_WIDTH = 8 };

/* The fits of a trial, in order: fit k trains on the records before group `group`, for this share of the steps, and is scored on
 * the parts of that group. */
struct ladder {
    i32 nlevel, nfit;
    i32 end[LADDER_LEVELS];   /* fits of the levels up to this one */
    struct ladder_fit {
        i32 group;
        f64 share;            /* of the training steps; < 1 only where the last level trains the same group again in full */
    } fit[LADDER_FITS];
    i32 nparts;               /* scored in each group */
    i32 block;                /* consecutive parts that hold about as many records as one: they overlap; 1 = they do not */
};
/* groups: 1, 2, 4 or 8; parts: of each.  shorter: trials of one group begin with a quarter of the steps. */
void ladder_make(i32 groups, i32 parts, bool shorter, struct ladder *out);
/* Fits whose errors count at a level: [*from, end[level]). */
i32 ladder_first(const struct ladder *l, i32 level);

struct trial {
    struct point at;
    i32 done;                 /* fits, in the order of the ladder */
    bool failed;
    char why[SEARCH_WHY];     /* of a failure */
    f64 seconds;              /* of all its fits */
    f64 error[LADDER_FITS][LADDER_PARTS]; /* NaN = nothing was observed there */
};

struct search {
    struct space space;
    struct ladder ladder;
    u64 seed;
    f64 least;                /* share of the defaults' mean error that is added to every error: rates may be 0 */
    i32 most;                 /* trials, with the defaults; 0 = no limit */
    struct trial *trial;      /* [n] */
    i32 n;
    i64 cap;
};

struct search_job {
    i32 trial, level;         /* do its fits up to the end of the level */
};

void search_free(struct search *s);
/* The next round: at most `width` (<= SEARCH_JOBS) jobs; new trials are added to s->trial.  *n 0 = the search is over.  E601. */
enum { SEARCH_JOBS = 256 };
err search_next(struct search *s, i32 width, struct search_job *job, i32 *n);

i32 trial_level(const struct search *s, i32 trial); /* the last level it finished, -1 = none */
/* Mean log ratio to the defaults at a level that the trial and the defaults have finished; NaN = nothing to compare.  diff: NULL,
 * or at the last level the ratios of its parts in the order of their records, NaN = nothing observed: [groups * nparts]. */
f64 trial_score(const struct search *s, i32 trial, i32 level, f64 *diff);

/* Which trial the search recommends.  Only trials that finished the last level compete; the best of them is left for the defaults
 * unless its gain is above what the best of so many equally good trials would show by chance. */
struct search_choice {
    i32 trial;                /* 0 = the defaults */
    i32 best, full;           /* the best competitor, 0 = none; how many competed */
    f64 gain;                 /* of the best: 1 - ratio of its error to that of the defaults */
    f64 z, needed;            /* of the best: gain in standard errors (guard.h), and what is asked for */
    char why[SEARCH_WHY];
};
void search_choose(const struct search *s, struct search_choice *out);

/* Share of the variance of scores at level 0 that each dimension explains alone, beyond chance: share [space.n], sum <= 1. */
void search_importance(const struct search *s, f64 *share);

/* propose.c: the point of trial number `trial`; false if no point was found that has not been tried. */
bool search_propose(const struct search *s, i32 trial, struct point *out);

#endif
