/* assign.h - the nearest center of each point, exactly as plain Lloyd finds it, with far fewer distances.
 *
 *     bounds per point and group of 16 centers  -->  groups that may hold a nearer center  -->  f32 products of these groups
 *         -->  candidates within the rounding error  -->  one: the label; several: f64 distances, the lowest index wins
 *
 * Groups are Yinyang's (Ding et al., ICML 2015), the filter by half the distance to the next center is Hamerly's (SDM 2010).
 * Every bound carries a margin for the rounding of f32, so that a closed group never holds the label of plain f64 Lloyd. */
#ifndef STRETTO_LEARN_KMEANS_ASSIGN_H
#define STRETTO_LEARN_KMEANS_ASSIGN_H

#include "learn/kmeans/near.h"
#include "learn/kmeans/points.h"

/* Centers in the scale of the points' f. */
struct centers {
    i32 k, d, groups, stride; /* stride: groups, rounded up for vectors */
    const struct near_ops *near;
    const f64 *c;      /* [k][d] exact; lent */
    f32 *row;          /* [k][d] */
    const f32 **at;    /* [k] rows */
    f32 *panel;        /* [groups][d][LANES], see near.h */
    f32 *start;        /* [groups][LANES] squared norms; infinite beyond k */
    f32 *half;         /* [k][stride] at most half the distance to the nearest other center of a group; 0 = not used */
    f64 far;           /* largest norm */
    f64 rounding;      /* of a product, relative to the sum of its absolute terms */
};
err centers_new(i32 k, i32 d, const struct near_ops *near, struct centers *out);
void centers_free(struct centers *c); /* allowed after a failure, and on {0} */
/* Takes new centers.  half: computes the distances between centers, too; worth it where rows keep their bounds. */
void centers_set(struct centers *c, const struct points *p, const f64 *center, bool half);

/* What is known of each point. */
struct track {
    i32 *label;        /* [n] -1 = none yet */
    f32 *upper;        /* [n] at least the distance to the label's center; infinite: no bound of the row is known */
    f32 *bound;        /* [n][stride] at most the distance to each center of a group but the label's */
    f32 *move, *drift; /* [k], [stride] at least the moves of centers since the last assignment, and their largest in a group */
};
err track_new(i64 n, const struct centers *c, struct track *out);
void track_free(struct track *t); /* allowed after a failure, and on {0} */
void track_reset(struct track *t, i64 n, const struct centers *c);
/* Before centers_set: the centers move from c->c to `center`. */
void track_move(struct track *t, const struct centers *c, const struct points *p, const f64 *center);

struct assign_work; /* of one worker */
err assign_work_new(const struct centers *c, struct assign_work **out);
void assign_work_free(struct assign_work *w); /* NULL is fine */

struct assign_count {
    i64 changed;   /* labels */
    i64 distances; /* computed, of rows * k */
};
/* Labels of rows [from, to); adds to *count. */
void assign_rows(const struct centers *c, const struct points *p, struct track *t, struct assign_work *w, i64 from, i64 to,
                 struct assign_count *count);
/* The label of one row without bounds. */
i32 assign_row(const struct centers *c, const struct points *p, struct assign_work *w, i64 i);
/* A product above least + margin + share * |least| belongs to no candidate, for every point. */
void assign_margin(const struct centers *c, f32 *margin, f32 *share);

#endif
