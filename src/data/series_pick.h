/* series_pick.h - a few targets of a series as a series of their own, whose columns may be changed.
 *
 *     targets 0 1 2 3 .. 99 999 | past of each | known of each   --series_pick {2, 7}-->   2 7 | past of 2, 7 | known of 2, 7
 *
 * A report forecasts a handful of series out of many, and asks what a column is worth by giving its windows another one. */
#ifndef STRETTO_DATA_SERIES_PICK_H
#define STRETTO_DATA_SERIES_PICK_H

#include "data/series.h"

/* Copies targets [n] with their covariates and categories into an arena that outlives *out, which is not freed on its own.  The
 * rows, their times and the words are those of s, which outlives *out, too.  A model forecasts the targets of *out as it does
 * those of s: of_model has their numbers.  E601. */
err series_pick(const struct series *s, const i32 *target, i32 n, struct arena *a, struct series *out);

/* True without --memory, or where a copy of n targets takes a small part of what it leaves. */
bool series_pick_fits(const struct series *s, i32 n);
/* One target, whose columns are only read: s itself where it has no other.  *fits false: a copy would not fit, there is none. */
err series_alone(const struct series *s, i32 target, struct arena *a, struct series *out, bool *fits);

/* Copies of the columns of covariate k (0 .. npast + nknown - 1; then the categories), to be restored. */
struct series_kept {
    f32 *v;
    i32 *code;
};
i32 series_covariates(const struct series *s); /* number of them */
const char *series_covariate_name(const struct series *s, i32 k);
err series_keep(const struct series *picked, i32 k, struct arena *a, struct series_kept *out);
/* Rows [from, to) of covariate k get the kept values `shift` rows later, in a circle, of the target `other` targets further. */
void series_turn(struct series *picked, i32 k, const struct series_kept *kept, i64 from, i64 to, i64 shift, i32 other);
void series_restore(struct series *picked, i32 k, const struct series_kept *kept);

#endif
