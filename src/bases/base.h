/* base.h - base forecasts: simple rules and one linear map, alone or mixed; the network learns a correction of them.
 *
 *     rows < origin of ONE column --base_predict--> H values          a base = weighted parts: 0.6 season(12) + 0.4 ses(0.3)
 *
 * A forecast uses rows before its origin only, in the (scaled) units of the series. A missing cell counts as the last observed
 * value. A base does not change once it is made, so several threads may predict with it; it owns no series. */
#ifndef STRETTO_BASES_BASE_H
#define STRETTO_BASES_BASE_H

#include "base/event.h"
#include "base/str.h"
#include "data/series.h"
#include "kern/kern.h"

/* X(KIND, name, has season, has alpha, rule) */
#define BASE_KINDS(X)                                                                                                            \
    X(LAST, "last", false, false, rule_last)      /* the last observed value */                                                  \
    X(SEASON, "season", true, false, rule_season) /* repeats the last season */                                                  \
    X(GROWTH, "growth", true, false, rule_growth) /* the last season, plus the gain of its mean over the season before */        \
    X(RATIO, "ratio", true, false, rule_ratio)    /* the last season, times that gain (values in original units > 0) */          \
    X(AVERAGE, "average", true, false, rule_average)/* mean of the last three seasons */                                         \
    X(DRIFT, "drift", false, false, rule_drift)   /* the line through the first and the last value */                            \
    X(MEAN, "mean", false, false, rule_mean)      /* mean of all observed values */                                              \
    X(SES, "ses", false, true, rule_ses)          /* simple exponential smoothing */                                             \
    X(THETA, "theta", true, true, rule_theta)     /* smoothing + half the trend, without the season (1 = no season) */           \
    X(RIDGE, "ridge", false, false, NULL)         /* linear map of the window minus its last value */                            \
    X(TREES, "trees", false, false, NULL)         /* gradient-boosted trees (trees/trees.h) */

enum base_kind {
#define X(KIND, ...) BASE_##KIND,
    BASE_KINDS(X)
#undef X
    BASE_NKIND
};

enum { BASE_PARTS_MAX = BASE_NKIND, BASE_LOOK = 4096 }; /* no rule looks further back than BASE_LOOK rows */

struct base_part {
    enum base_kind kind;
    f64 weight;
    i32 season;
    f64 alpha;
};

/* Inputs from the columns known ahead: of each column the means of `group` rows each, from `back` rows before the origin to the
 * end of the horizon. */
struct ahead_inputs {
    i32 ncol, back, group; /* ncol 0 = none */
};

/* w: rows of Hp floats: L lags (oldest first; the row of the last lag is zero), 1 constant, RIDGE_CALENDAR rows with calendar, a
 * row for each input from columns known ahead. One allocation, freed with mem_free. */
enum { RIDGE_CALENDAR = 24 + 7 + 12 };
struct ridge {
    i32 L, H, Hp;
    bool constant; /* fitted; else its row is 0 */
    bool calendar;
    struct ahead_inputs ahead;
    f64 penalty; /* share of the number of fitted windows */
    i64 windows; /* fitted */
    _Alignas(64) f32 w[];
};

struct trees; /* trees/trees.h */
struct pool;

struct base {
    i32 npart;
    struct base_part part[BASE_PARTS_MAX];
    struct ridge *ridge; /* of the part BASE_RIDGE, or NULL */
    struct trees *trees; /* of the part BASE_TREES, or NULL */
};

/* --- forecasts --- */
void base_predict(const struct base *b, const struct series *s, i32 col, i64 origin, i32 H, f32 *out);

/* The same for n (column, origin) rows, row i at out + i * ldo; with kernels (k may be NULL) a ridge runs as one product. */
err base_predict_rows(const struct base *b, const struct series *s, i64 n, const i32 *cols, const i64 *origins, i32 H, f32 *out,
                      i64 ldo, const struct kern *k);

/* --- creation --- */
err base_naive(i32 season, struct base **out); /* repeats the last season; season 0: the last value */
void base_free(struct base *b);                /* NULL is allowed */

/* Whether a ridge has some inputs; with TRIED, validation chooses. */
enum inputs { INPUTS_NEVER, INPUTS_ALWAYS, INPUTS_TRIED };

/* What a base is made for; members that a function does not name are not read. */
struct base_spec {
    i32 L, H;            /* rows that a ridge looks back on; horizon */
    i32 ncol;            /* columns 0..ncol-1 share the base */
    i32 season, season2; /* rows; <= 1 = none */
    enum inputs constant; /* of a ridge */
    enum inputs calendar; /* of a ridge: hour, weekday and month of the origin; needs time */
    enum inputs ahead;    /* of a ridge: the columns known ahead, where there are any */
    i64 train, valid;    /* rows of training; rows before the test part */
    f64 penalty;         /* of a ridge: > 0 = this share of the windows; 0 = chosen on validation (0.1 when there is none) */
    bool refit;          /* a ridge is fitted again on [0, valid) with the penalty found */
    bool absolute;       /* loss of trees: absolute error, else squared error */
    struct pool *pool;   /* threads of trees; NULL = one */
    struct workload *work; /* progress; may be NULL */
};

/* A ridge, fitted on windows inside [0, train); the penalty by windows with targets inside [train, valid). */
err base_ridge(const struct series *s, const struct base_spec *spec, struct base **out);

/* --- as text and tensor: "0.62*season(12) + 0.38*ridge(336,96)"; numbers read back exactly --- */
err base_text(const struct base *b, struct str *out);
err base_label(const struct base *b, struct str *out); /* the same for messages: weights with two decimals */
/* ridge, trees: as base_tensor and base_trees_tensor give them; NULL = none. E601, E901. */
struct base_tensors {
    const f32 *ridge, *trees;
    i64 nridge, ntrees; /* numbers in them */
};
err base_read_all(const char *text, struct base_tensors w, struct base **out);
static inline err base_read(const char *text, const f32 *w, i64 nw, struct base **out) { /* a base without trees */
    return base_read_all(text, (struct base_tensors){.ridge = w, .nridge = nw}, out);
}
i64 base_trees_tensor(const struct base *b, f32 *w, i32 *rows, i32 *cols); /* as base_tensor, of trees */
i64 base_tensor(const struct base *b, f32 *w, i32 *rows, i32 *cols); /* floats; w NULL = only count; 0 without ridge */
const char *base_kind_name(enum base_kind kind);

/* The season of the rows [0, rows) of columns [0, ncol), for series without times: the highest peak of their autocorrelation, if
 * a second season confirms it; 0 = none. */
err season_find(const struct series *s, i32 ncol, i64 rows, i32 *season);

/* --- the choice for preset `long`: forward-chaining folds --- */
enum { CHOICE_FOLDS = 5, CHOICE_ROWS = 4 };
struct choice {
    i32 nrow, nfold;
    enum base_kind row[CHOICE_ROWS];
    i32 season[CHOICE_ROWS];                  /* of a row BASE_SEASON */
    i64 from[CHOICE_FOLDS], to[CHOICE_FOLDS]; /* rows of the folds */
    f64 loss[CHOICE_ROWS][CHOICE_FOLDS];      /* MSE, scaled units; NaN = not measurable */
    f64 gain;   /* mean log ratio of the best naive row's loss to ridge's */
    f64 t;
    i32 naive;  /* index of the best naive row */
    i32 chosen; /* index of the row taken */
};
/* Folds over the last 60 % of [0, valid); final fit on [0, train), penalty on [train, valid). */
err base_choose(const struct series *s, const struct base_spec *spec, struct choice *table, struct base **out);

/* --- the mix for preset `short` --- */
struct mix_row {
    struct base_part part;  /* the best of its family; weight 0 = dropped */
    f64 mae;                /* over the rolling origins, scaled units */
};
enum { MIX_SEASONS = 4 };
struct mix {
    i32 nrow, norigin, nseason;
    i32 season[MIX_SEASONS];
    struct mix_row row[BASE_PARTS_MAX];
};
/* Rolling origins in the last 60 % of [0, train). */
err base_mix(const struct series *s, const struct base_spec *spec, struct mix *table, struct base **out);

/* For a panel: that mix, fitted on [0, valid), or a ridge on [0, train), whichever has the smaller error on windows in
 * [train, valid).  *mixed: the mix. */
err base_panel(const struct series *s, const struct base_spec *spec, struct mix *table, bool *mixed, struct base **out);

/* --- boosted trees: for series that columns known ahead or past-only columns drive (trees/choice.c) --- */

/* Trees that were tried beside another base, on the validation rows [train, valid). */
struct trees_choice {
    bool tried;          /* false: too few rows, or nothing that trees could use */
    i32 ntree, nblock;
    f64 rival, trees;    /* mean losses on the validation windows: of the other base alone, of trees alone */
    f64 both;            /* of the base that was taken */
    f64 t;               /* of the gain over the blocks */
    f64 weight;          /* of the trees; 0 = the other base stays */
};
/* Trees alone, fitted on windows inside [0, train), as many as lower the loss on [train, valid). E301 with too few rows. */
err base_trees(const struct series *s, const struct base_spec *spec, struct base **out);
/* Tries trees beside *b, which was fitted on [0, train). Where validation prefers a mix of both, *b becomes that mix, weighed by
 * validation. E601, E806. */
err base_try_trees(const struct series *s, const struct base_spec *spec, struct trees_choice *table, struct base **b);
/* What the trees of a base read: false if it has none. */
struct trees_needs {
    i32 H, ncol, npast, nknown, ncat;
    bool time;
};
bool base_trees_needs(const struct base *b, struct trees_needs *out);
/* b takes the trees of `from`, a mix with trees, and their weight: b = (1 - w) b + w trees. */
void base_join(struct base *b, struct base *from);
/* A base with the parts of `like`: its trees and its ridge are fitted on windows inside [0, train), with the number of trees and
 * the penalty that it has. E301 with too few rows, E601, E806. */
err base_again(const struct series *s, const struct base_spec *spec, const struct base *like, struct base **out);
/* The same of its trees alone, which b takes: nothing happens where `like` has none. */
err base_trees_again(const struct series *s, const struct base_spec *spec, const struct base *like, struct base *b);

/* --- private to this folder --- */
/* Forecast rows: n times (column, origin). */
struct row_list {
    i64 n;
    const i32 *col;
    const i64 *origin;
};
f32 last_seen(const f32 *x, i64 origin);             /* last observed value before origin; 0 if there is none */
err ridge_new(const struct ridge *shape, struct ridge **out); /* the shape with room for w; sets Hp; E1 */
i32 ridge_rows(const struct ridge *r);               /* rows of w */
void calendar_marks(i64 time, i32 mark[3]);          /* rows (from 0) of hour, weekday and month among the calendar rows */

/* Adds weight times the part's forecast to out[H]. */
typedef void base_rule(const struct base_part *p, const struct series *s, i32 col, i64 origin, i32 H, f32 *out);
base_rule rule_last, rule_season, rule_growth, rule_ratio, rule_average, rule_drift, rule_mean, rule_ses, rule_theta;

#endif
