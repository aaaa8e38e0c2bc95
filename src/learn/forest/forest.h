/* forest.h - a random forest (Breiman, 2001), with the options of PRF (Chen, Li, Tang et al.: A Parallel Random Forest
 * Algorithm for Big Data in a Spark Cloud Computing Environment, TPDS 28(4), 2017).
 *
 *     table --bins.h--> bins --stages.h--> trees --vote.h--> out-of-bag scores, importance --file.c--> model file */
#ifndef STRETTO_LEARN_FOREST_FOREST_H
#define STRETTO_LEARN_FOREST_FOREST_H

#include <math.h>

#include "learn/forest/tree.h"
#include "learn/map_run.h"

/* Tasks of a stage, of all trees: counts of (node, input, rows), splits of nodes, subtrees that a worker finishes. */
enum { FOREST_STAGES = 64 };
struct forest_stage {
    i64 gain, split, subtree;
};

/* Sums over scored rows: out of bag, each by the trees that did not see it; of other rows by all trees. */
struct forest_score {
    f64 rows;
    f64 error, absolute;             /* wrong rows; or the sums of squared and of absolute errors */
    f64 naive, naive_absolute;       /* the same for the majority class, or the mean, of the training */
    f64 sum, square;                 /* numbers: of the target and of its square */
};
/* A prediction of a number, beside the mean of the training. */
static inline void forest_add_number(struct forest_score *s, f64 said, f64 y, f64 common) {
    const f64 d = said - y, naive = common - y;
    s->rows++;
    s->error += d * d;
    s->absolute += fabs(d);
    s->naive += naive * naive;
    s->naive_absolute += fabs(naive);
    s->sum += y;
    s->square += y * y;
}
enum { SCORE_SUMS = sizeof(struct forest_score) / sizeof(f64) };

struct forest {
    struct model model; /* first */
    struct forest_spec spec;
    struct bins bins;
    const char *target;
    i32 nclass;           /* 0 = numbers */
    const char **class;   /* [nclass] */
    f64 common;           /* the majority class, or the mean, of the training */
    i32 ntree;
    struct tree *tree;    /* [ntree] */
    f64 *vote;            /* [ntree] weight of a tree; they sum to 1 */
    f64 *importance;      /* [bins.n] decrease of the criterion by splits at an input, as a share */
    f64 *permuted;        /* [bins.n] loss of accuracy, or rise of the mean squared error, out of bag; NULL = not measured */
    struct forest_stage stage[FOREST_STAGES];
    struct forest_score oob;
    i64 *confusion;       /* [nclass][nclass] out of bag: true class, predicted class */
    struct arena arena;   /* names, vote, importance, confusion */
};

static inline struct forest *forest_of(const struct model *m) { return (struct forest *)(uintptr_t)m; }
void forest_free(struct model *m);

/* Classes of the target's words, from the heap: class [nword]; nclass = a word that the training does not have. */
err forest_classes(const struct forest *f, const struct column *c, u32 **class);

/* Room for trees; names and arrays whose size follows from bins and nclass. */
err forest_room(struct forest *f);
struct forest_spec forest_spec_of(const struct options *o);

/* state.c: the trees so far as a checkpoint; on all ranks, the trees of the checkpoint that a resumed run begins with.
 * stage: [FOREST_STAGES] of the trees so far. */
struct snapshot;
struct snapshots;
err forest_list_state(const struct forest *f, const struct forest_stage *stage, struct snapshot *to);
err forest_take_state(const struct snapshots *s, struct forest *f, struct forest_stage *stage);

/* stages.c: grows spec.trees trees, fewer on a stop (f->ntree, f->model.stopped). */
err forest_grow(const struct learn_job *job, const struct tree_data *d, struct forest *f);

/* vote.c: the votes of trees for rows that lie in rows. */
struct vote_tile {
    u8 *bin;    /* [TILE_ROWS][inputs] */
    f64 *vote;  /* [TILE_ROWS][max(1, nclass)] */
    f64 *seen;  /* [TILE_ROWS] sum of the weights of the trees that voted */
    i32 *list;  /* [TILE_ROWS] rows that the present tree votes for */
    u32 *leaf;  /* [TILE_ROWS] their leaves */
    u64 *path;  /* inputs on a path */
};
enum { TILE_ROWS = 512 };
err tile_new(i32 ninput, i32 nclass, struct vote_tile *out);
void tile_free(struct vote_tile *t);
/* Fills `rows` rows from columns: column i begins at bin + stride * i. */
void tile_fill(struct vote_tile *t, const u8 *bin, i64 stride, i32 ninput, i32 rows);
/* leaf[k]: the node that row list[k] reaches. */
void tile_leaves(const struct vote_tile *t, i32 ninput, const struct tree *tree, i32 n);
/* Adds the vote of a tree whose leaf a row has reached to vote [max(1, nclass)]. */
void vote_add(i32 nclass, const struct tree *tree, u32 leaf, f64 weight, f64 *vote);
i32 vote_argmax(const f64 *vote, i32 n); /* the first of the largest */
f32 node_value(struct tree_node leaf);   /* of numbers */

/* outofbag.c */
/* Out-of-bag scores, votes by accuracy, permuted importance: a run of map, merge, update over rows. */
err forest_out_of_bag(const struct learn_job *job, const struct tree_data *d, struct forest *f);
/* predict.c */
/* Predictions of rows [from, to): out [to - from][max(1, nclass)], shares of votes or the number. */
err forest_predict(const struct forest *f, const struct table_set *s, i64 from, i64 to, struct pool *pool, f64 *out);

/* score.c */
err forest_predict_rows(const struct model *m, const struct dataset *d, const struct resources *use,
                        const struct prediction_sink *to);
err forest_score(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
                 struct scores *out);

/* page.c */
err forest_describe(const struct model *m, struct description *out);
err forest_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a, struct report *r);
void forest_tell(const struct forest *f, const struct events *to); /* importance of the inputs, as notes */

/* file.c */
err forest_save(const struct model *m, struct tens_list *tensors, struct str *json);
err forest_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json, struct model **out);

#endif
