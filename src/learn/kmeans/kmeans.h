/* kmeans.h - the model of the learner `kmeans`, and its parts.
 *
 *     table --points--> x, f --seed--> centers --lloyd: assign, sums, means--> centers, labels, inertia */
#ifndef STRETTO_LEARN_KMEANS_KMEANS_H
#define STRETTO_LEARN_KMEANS_KMEANS_H

#include "learn/kmeans/devices.h"
#include "learn/map_run.h"

struct kmeans {
    struct model model; /* first */
    struct column_scale scale;
    i32 k, d;
    f64 *center;        /* [k][d] standardized where --standardize is given */
    f64 *mean;          /* [d] of the training rows: the naive "one cluster" */
    i64 *count;         /* [k] training rows */
    f64 inertia, total; /* of the training rows: squared distances to the centers, and to the mean */
    f64 kept;           /* the inertia without the rows that --trim left out */
    i64 left_out;       /* these rows */
    i64 iterations, restarts;
    bool settled;       /* no label changed in the last iteration */
    f64 saved;          /* share of the distances of plain Lloyd that were not computed, over all restarts */
    f64 lloyd_seconds;  /* of all restarts, without reading and seeding */
    f64 lloyd_cpu;      /* the same, processor time of all threads */
    struct arena arena; /* names and scales */
};

static inline struct kmeans *kmeans_of(const struct model *m) { return (struct kmeans *)(uintptr_t)m; }

err kmeans_new(i32 k, i32 d, struct kmeans **out);
err kmeans_fit(const struct learn_job *job, struct model **out);
void kmeans_free(struct model *m);

/* seed.c: k rows as first centers [k][d]; restarts differ.  Every rank finds the same. */
enum seed_how { SEED_PLUSPLUS, SEED_PARALLEL, SEED_RANDOM };
struct seeding {
    const struct points *p;
    const struct near_ops *near;
    struct pool *pool;
    u64 seed;
    i32 k;
    enum seed_how how;
};
err kmeans_seed(const struct seeding *q, i32 restart, f64 *center);
/* Draw i of a restart, in [0, 1): centers take the first k, rounds and batches those from their base on. */
#define DRAWS_OF_ROUNDS ((i64)1 << 40)
#define DRAWS_OF_BATCHES ((i64)1 << 41)
f64 kmeans_uniform(u64 seed, i32 restart, i64 i);
/* Moves each center whose flag `empty` is set to the point farthest from its nearest center, the first of such, one after the
 * other.  label: [n] a near center of each point, -1 = not known here.  *row: of the last one. */
err kmeans_reseed(const struct points *p, struct pool *pool, i32 k, const bool *empty, const i32 *label, f64 *center, i64 *row);

/* lloyd.c: Lloyd's iterations (IEEE Trans. Inf. Theory, 1982) from l->model on, as map, merge and update. */
enum lloyd_step {
    STEP_MEANS,   /* labels, and centers at the means of their rows */
    STEP_MEASURE, /* labels and squared distances; centers stay */
    STEP_SPREAD,  /* labels, and mean and deviation of the distances in each cluster; centers stay */
    STEP_TRIMMED, /* labels stay; means of the rows within the limit of their cluster */
};
struct lloyd {
    const struct points *p;
    const struct resources *use;
    struct workload *work;    /* advanced by 1 an iteration */
    struct centers c;
    struct track t;
    struct shared_assign *shared; /* labels come from devices; NULL = from the map */
    struct assign_work **worker; /* [ndevice] */
    i32 ndevice;
    f64 *model;               /* [k][d] centers, [k] counts, enum lloyd_tail, [2][k] sums of distances and of their squares */
    f64 *before;              /* [k][d] centers that the labels belong to */
    f64 *seen;                /* [k] rows of the batches before, where centers are running means; NULL = they are means */
    f64 trim;                 /* rows farther than mean + trim deviations do not move centers; 0 = all rows do */
    f64 *limit;               /* [k] that distance */
    u8 *left_out;             /* [n] rows beyond it */
    bool *empty;              /* [k] */
    enum lloyd_step step;
    struct map_run run;
    /* Between two steps, on all ranks: != 0 ends the iterations.  NULL = none. */
    err (*turn)(void *owner, i64 iterations);
    void *owner;
    bool late;                /* set by turn: the time limit is over */
    f64 distances, all;       /* computed, and those of plain Lloyd */
    i64 reseeded;
};
enum lloyd_tail { LLOYD_CHANGED, LLOYD_DISTANCES, LLOYD_COST, LLOYD_KEPT, LLOYD_LEFT_OUT, LLOYD_NTAIL };
/* trim as above.  E601. */
err lloyd_open(const struct points *p, i32 k, f64 trim, const struct resources *use, struct lloyd *out);
void lloyd_close(struct lloyd *l); /* allowed after a failure, and on {0} */
struct lloyd_outcome {
    i64 iterations;
    bool settled;
    f64 inertia, kept;  /* of all rows; of those that were not left out */
    i64 left_out;
};
/* From the centers of the model, which `from` iterations have moved, to the end of the iterations or of the time limit; returns
 * what turn returned if that is not 0. */
err lloyd_run(struct lloyd *l, i64 from, i64 iterations, struct lloyd_outcome *out);
/* One step from the centers of the model.  first: there are no labels yet. */
err lloyd_step(struct lloyd *l, enum lloyd_step step, bool first);
err lloyd_measure(struct lloyd *l, bool first, struct lloyd_outcome *out); /* inertia, kept and left_out of the model */
static inline f64 *lloyd_counts(const struct lloyd *l) { return l->model + (i64)l->c.k * l->c.d; }
static inline f64 *lloyd_tail(const struct lloyd *l) { return lloyd_counts(l) + l->c.k; }

/* batches.c: moves the centers of l->model by random batches of rows, `most` of them at most; then measures all rows.  Returns
 * what turn returned if that is not 0. */
struct batches {
    i64 rows, most;
    u64 seed;
    i32 restart;
    f64 smooth, best;  /* mean squared distance in a batch, smoothed; the least so far */
    i64 calm;          /* batches since then */
    f64 *seen;         /* [k] rows that moved each center */
};
err batches_run(struct lloyd *l, struct batches *b, i64 from, struct lloyd_outcome *out);

/* results.c */
err kmeans_open(const struct model *m, const struct options *o, const char *path, const struct events *to, struct dataset **out);
err kmeans_take(const struct model *m, struct dataset *d, const struct events *to);
err kmeans_predict(const struct model *m, const struct dataset *d, const struct resources *use, const struct prediction_sink *to);
err kmeans_score(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
                 struct scores *out);
/* Label and distance of rows [from, to). */
err kmeans_label(const struct kmeans *f, const struct dataset *d, const struct resources *use, i64 from, i64 to, i32 *label,
                 f64 *distance, f64 *naive);

/* page.c, file.c */
err kmeans_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a, struct report *r);
err kmeans_describe(const struct model *m, struct description *out);
err kmeans_save(const struct model *m, struct tens_list *list, struct str *json);
err kmeans_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json,
                struct model **out);

#endif
