/* table.h - the score table: the model's row first, then the baselines.
 *
 *     test 1960-01..12      MAE   MASE    wQL   skill (vs best naive)
 *       model              15.8   0.52  0.026   +67%
 *       snaive (12)        47.8   1.57  0.100 */
#ifndef STRETTO_REPORT_TABLE_H
#define STRETTO_REPORT_TABLE_H

#include "report/lines.h"
#include "report/role.h"
#include "report/text.h"

enum { METRICS_MAX = 12 };

struct score_row {
    const char *name; /* "model", "snaive (12)" */
    enum role role;
    f64 value[METRICS_MAX]; /* NaN = undefined for this row */
    f64 skill;              /* 1 - error / error of the best naive row; NaN = not shown */
};

/* Outermost prediction interval of the model: its quantiles, and the fraction of scored values inside. from 0 = none. */
enum { BAND_PARTS = 4 };
struct score_band {
    f64 from, to, coverage;
    i32 npart, last[BAND_PARTS]; /* parts of the horizon: last step of each, from 1 */
    f64 part[BAND_PARTS];        /* coverage of each */
    i32 nstep;                   /* of the horizon; 0 = not known */
    const f64 *step;             /* [nstep] coverage of each */
};

struct score_table {
    const char *title; /* "test 1960-01..12" */
    i32 nmetric;
    const char *metric[METRICS_MAX]; /* "MAE", "MASE", "wQL", ... */
    i32 nrow;
    const struct score_row *row;
    i32 skill_metric; /* metric of the skill */
    i32 best_naive;   /* reference row of the skill, -1 = none */
    i64 windows;      /* number of test windows, 0 = not stated */
    struct score_band band;
    i32 decimals;     /* of every value; 0 = about three digits */
    i32 counts;       /* metrics from this one on are whole numbers; 0 = none */
    const struct score_lines *lines; /* scores of each series or group, which text and JSON show below; NULL = one series */
};

struct figure table_value(const struct score_table *t, i32 row, i32 metric); /* one value of the table as text */
void table_text(struct str *b, const struct score_table *t);
/* The lines that lines_pick() chooses, as a table of their own in an arena; nrow 0 = nothing to show. E601. */
err lines_table(const struct score_lines *l, struct arena *a, struct score_table *out);
void lines_text(struct str *b, const struct score_lines *l);
void table_json(struct str *b, const struct score_table *t); /* one object, no newline */

#endif
