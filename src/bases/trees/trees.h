/* trees.h - gradient-boosted regression trees that forecast every step directly: their inputs, how they grow, and their
 * forecasts.
 *
 *     (origin o, step h, column) --tree_inputs--> x[n] --trees--> sum of leaves + shift = forecast of row o + h
 *
 * One model serves all columns and steps. Inputs are differences from the level of the window, so a series may drift. Trees grow
 * on bins of one byte; gradients are integers, so sums have no order and any number of threads gives the same bits. */
#ifndef STRETTO_BASES_TREES_H
#define STRETTO_BASES_TREES_H

#include "base/pool.h"
#include "bases/base.h"
#include "data/cuts.h"

/* ------------------------------------------------------------------ inputs ------------------------------------------------- */

/* What a forecast is the sum of, besides the leaves. */
enum trees_shift {
    SHIFT_LEVEL,  /* the mean of the last rows: a long season, or the lags */
    SHIFT_LAST,   /* the last observed value */
    SHIFT_SEASON, /* the value at the same phase of the last season */
    SHIFT_KINDS
};

enum trees_calendar { TREES_HOUR = 1, TREES_WEEKDAY = 2, TREES_MONTH = 4 };

/* The inputs follow from these numbers, which are all i32: a base keeps them as text in this order. */
struct trees_shape {
    i32 H, lags;         /* horizon; single lags before the origin */
    i32 season, season2; /* rows; <= 1 = none */
    enum trees_shift shift;
    i32 ncol, npast, nknown, ncat; /* of the series */
    i32 calendar;                  /* sum of enum trees_calendar: fields of the target row's time */
};

enum trees_kind {
    IN_LEVEL,     /* the level itself */
    IN_COLUMN,    /* number of the column */
    IN_LAG,       /* a: rows before the origin */
    IN_MEAN,      /* a: rows */
    IN_DEV,       /* a: rows */
    IN_CHANGE,    /* last value less the one a rows before it */
    IN_PAST,      /* past-only column a: last value */
    IN_PAST_MEAN, /* past-only column a: mean of b rows */
    IN_WORD,      /* category a at the last row */
    IN_STEP,      /* h; the first that depends on the step */
    IN_SEASON,    /* value a seasons of b rows before the row, counted from the last one known */
    IN_NEAR,      /* value beside that of one season of b rows: a rows later */
    IN_PHASE,     /* mean over the last a seasons of b rows at the phase of the row */
    IN_HOUR,
    IN_WEEKDAY,
    IN_MONTH,
    IN_YEARDAY,
    IN_KNOWN,        /* column a known ahead: b rows after the row */
    IN_KNOWN_ON,     /* column a: change since the last row before the origin */
    IN_KNOWN_SEASON, /* column a: change since one season of b rows ago */
    IN_KNOWN_MEAN    /* column a: mean of the b rows up to the row */
};

/* One input: a kind and its numbers. */
struct trees_input {
    u8 kind;
    i32 a, b;
};
enum { TREES_INPUTS = 1024, TREES_LAGS = 12, TREES_NODES = 1 << 22, TREES_DEPTH = 32 };

struct trees_inputs {
    struct trees_shape shape;
    i32 n, norigin; /* inputs; the first norigin of them do not depend on the step */
    i32 level;      /* rows whose mean is the level */
    struct trees_input list[TREES_INPUTS];
};

/* The shape for a series, with calendar fields that repeat within rows [0, rows). */
struct trees_shape trees_shape_of(const struct series *s, const struct base_spec *p, i64 rows);
/* The inputs of a shape; false if these are more than TREES_INPUTS or the shape is out of range. */
bool trees_inputs_make(const struct trees_shape *shape, struct trees_inputs *out);

/* The shape as text of a base: "(24:12:24:168:..)" is written, "24:12:24:168:.." is read. */
void trees_shape_write(const struct trees_shape *q, struct str *out);
bool trees_shape_read(const char *s, size_t n, struct trees_shape *out);

/* What the inputs of one (origin, column) share. */
struct trees_origin {
    const struct series *s;
    i32 col;
    i64 origin;
    f32 level, last; /* series units; 0 before the first observed value */
};
/* Fills u[0, norigin); NaN = missing. */
struct trees_origin trees_origin_take(const struct trees_inputs *p, const struct series *s, i32 col, i64 origin, f32 *u);
/* Fills u[norigin, n) for step h; returns the shift, which the leaves add to. */
f32 trees_step_take(const struct trees_inputs *p, const struct trees_origin *o, i32 h, f32 *u);

/* ------------------------------------------------------------------ trees -------------------------------------------------- */

/* Preorder: the left child of an inner node follows it. A row goes left if its value is <= cut; a missing one by `missing_right`.
 */
struct trees_node {
    f32 cut;   /* of a leaf: its value */
    i32 input; /* -1 = leaf */
    i32 right; /* distance to the right child; 0 in a leaf */
    i32 missing_right;
};

/* The same node for forecasts of many rows: a leaf leads to itself. */
struct trees_walk {
    f32 cut;
    i32 input, missing_right;
    i32 next[2]; /* left, right; from the root of the tree */
};

struct trees {
    struct trees_inputs in;
    f32 start; /* what every forecast begins with */
    i32 ntree, nnode;
    i32 *root; /* [ntree] first node of a tree */
    struct trees_node *node;
    struct trees_walk *walk; /* [nnode], and steps to the deepest leaf [ntree]: trees_link */
    i32 *depth;
};

/* *b = (1 - weight) b + weight t, which b then owns; a weight of 1 leaves nothing of b. */
void base_add_trees(struct base *b, struct trees *t, f64 weight);

err trees_new(const struct trees_inputs *in, i32 nnode, struct trees **out); /* with room for as many trees as nodes */
void trees_free(struct trees *t);                                            /* NULL is allowed */
err trees_link(struct trees *t);                                             /* after its last change, before forecasts */
/* Sums of leaves for n rows x [n][in.n], of at most TREES_ROWS rows. */
enum { TREES_ROWS = 64 };
void trees_apply(const struct trees *t, i32 n, const f32 *x, f32 *out);
/* Adds weight times the forecasts of steps [0, min(H, shape.H)) of one window, the last one repeated behind them. */
err trees_add_rows(const struct trees *t, f64 weight, const struct series *s, const struct row_list *rows, i32 H, f32 *out,
                   i64 ldo);
void trees_add(const struct trees *t, f64 weight, const struct series *s, i32 col, i64 origin, i32 H, f32 *out);

/* As a matrix of f32 [1 + nnode][TREES_FIELDS]: {start, ntree}, then nodes in order. w NULL = only count. */
enum { TREES_FIELDS = 4 };
i64 trees_tensor(const struct trees *t, f32 *w);
/* Reads such a matrix; *out = NULL if it holds no sound trees for these inputs. */
err trees_read(const struct trees_inputs *in, const f32 *w, i64 nw, struct trees **out);

/* ------------------------------------------------------------------ growing ------------------------------------------------ */

/* Rows as bins: bin of row r at input i is bin[i * rows + r]; 0 = missing. */
struct trees_table {
    i64 rows;
    i32 n;
    u8 *bin;
    f32 *y;   /* [rows] target minus shift */
    f32 *fit; /* [rows] forecast so far */
};

struct trees_cuts {
    i32 n;
    i32 *ncut; /* [n] */
    f64 *cut;  /* [n][CUTS_MOST] values of f32 */
};

struct trees_growth {
    i32 leaves, depth, min_rows;
    f64 l2, rate;
    f64 rows_share, inputs_share; /* of a tree, drawn at random */
    bool absolute;                /* loss: absolute error, else squared error */
    u64 seed;
};

struct trees_grower;
/* Work space for trees on a table; pool NULL = one thread. */
err trees_grower_new(const struct trees_table *t, const struct trees_cuts *cuts, const struct trees_growth *g, struct pool *pool,
                     struct trees_grower **out);
void trees_grower_free(struct trees_grower *g); /* NULL is allowed */
/* Grows tree `number` on y - fit and appends it to `to`, which has room for 2 * leaves nodes. A tree without a split is a leaf.
 */
void trees_grow(struct trees_grower *g, i32 number, struct trees *to);
/* Adds the leaves of the tree that has just grown to `fit` of a table with the same bins. */
void trees_fit_add(struct trees_grower *g, struct trees_table *to);

#endif
