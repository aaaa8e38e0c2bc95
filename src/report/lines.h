/* lines.h - scores of the parts of a test: one line for each series, or for each group of series.
 *
 *     sums of a line   n, |e|, e^2, pinball, |y|, inside, ..   --lines_add--> sums over folds   --lines_values--> MAE, MASE, ..
 *
 * Lines are ranked by MASE, which compares series of unlike size, or by MAE where no line has a MASE. */
#ifndef STRETTO_REPORT_LINES_H
#define STRETTO_REPORT_LINES_H

#include "base/arena.h"
#include "base/str.h"

enum { LINE_NAIVES = 3 };

struct score_line {
    const char *name;       /* of the series, or of the group: "north/food" */
    i64 n;                  /* cells scored */
    f64 ae, ee;             /* sums of absolute and squared errors, in the units of the scores */
    f64 ay, pin, inside;    /* sums of |target|, of the mean pinball loss over the quantiles; cells inside the outermost band */
    f64 mase, nmase;        /* sum of cells x MASE, and the cells that have one */
    f64 naive[LINE_NAIVES]; /* sums of absolute errors of the naive forecasts */
};

struct score_lines {
    const char *by; /* "series", or the columns of --by: "region/kind" */
    i32 n;
    struct score_line *line; /* [n] */
    i32 nnaive;
    const char *naive[LINE_NAIVES]; /* "naive", "snaive (12)", "ridge" */
    bool band;                      /* there are quantiles: pin and inside are known */
    bool groups;                    /* lines are groups of series */
};

/* What a line says. NaN = not known. */
struct line_values {
    f64 mae, rmse, mase, wql, coverage;
    i32 best;         /* of the naive forecasts, by MAE; -1 = none */
    f64 naive, skill; /* MAE of it; 1 - MAE / that */
};
void lines_values(const struct score_lines *l, i32 i, struct line_values *out);

/* Adds the sums of b, which has the same lines, to a. */
void lines_add(struct score_lines *a, const struct score_lines *b);
/* A copy in an arena, with its names. E601. */
err lines_copy(struct arena *a, const struct score_lines *from, struct score_lines **out);

/* All lines as CSV, with a heading. */
void lines_csv(struct str *b, const struct score_lines *l);
/* ,"series":[{..},..] or ,"groups":[..]: members of an object that is open. */
void lines_json(struct str *b, const struct score_lines *l);

/* All lines that have an error, worst first: order [*n], room for l->n. *mase: ranked by MASE, else by MAE. E601. */
err lines_order(const struct score_lines *l, i32 *order, i32 *n, bool *mase);

/* The lines for the user, worst first: all of a few, else the three worst, the median and the best. */
enum { LINES_SHOWN = 20 };
struct lines_shown {
    i32 n, line[LINES_SHOWN];
    const char *rank[LINES_SHOWN]; /* "worst", "median", "best"; "" where all lines are shown */
};
/* E601. */
err lines_pick(const struct score_lines *l, struct lines_shown *out);

#endif
