/* learner.h - what the program knows of learners, data sets and models: the three structs below and no more.
 *
 *     file --data_kind.read--> dataset --learner.resolve, prepare, fit--> model --model_ops--> predictions, scores, facts, file
 *
 * A learner is one file src/learn/NAME.c with `const struct learner learner_NAME` and one line in learners.def.  It embeds struct
 * dataset and struct model as the first members of its own structs.  What it does in between is its own business: a network runs
 * plans, others map, merge and update over slices of their data. */
#ifndef STRETTO_LEARN_LEARNER_H
#define STRETTO_LEARN_LEARNER_H

#include "base/json.h"
#include "opt/opt.h"
#include "ckpt/model_file.h"
#include "data/fingerprint.h"
#include "learn/engine.h"
#include "report/table.h"
#include "train/loop.h"

struct report;      /* report/report.h */
struct share;       /* data/share.h */
struct report_fact;

/* ------------------------------------------------------------------ data ---------------------------------------------------- */

/* Records that a learner trains on: rows of a table, tokens of sentences, edges of a graph. */
struct dataset {
    const struct data_kind *kind;
    i64 nrow;           /* records */
    i32 ncol, ntarget;  /* columns; the first of them are targets */
    char *path;         /* of the file; "standard input", "memory" */
    bool piped;         /* from standard input */
    bool in_memory;     /* of the program that calls the library: no command can read them */
    bool shared;        /* read once for all ranks of the host */
    bool borrowed;      /* .. by another one, which changes the arrays where they are changed */
    char summary[512];  /* one line for the user */
};

enum { DATA_FACTS = 4 };

struct memory_columns { /* [ncol][nrow] values, NaN = missing */
    const f64 *value;
    i64 nrow;
    i32 ncol;
    const char *const *name;
    i64 first_time, step_seconds;
};

struct data_kind {
    const char *name; /* "series" */
    const enum opt_id *takes; /* options of the group data that it reads; OPT_COUNT ends the list; NULL = all */
    err (*read)(const struct options *o, const char *path, struct dataset **out);
    err (*wrap)(const struct options *o, const struct memory_columns *from, struct dataset **out); /* NULL = files alone */
    /* Gives the data set *d to other ranks of this host, or takes one (data/share.h) with the options and the path of read: its
     * arrays are read only.  1: this one cannot be given, each rank reads the file.  NULL = none can. */
    err (*share)(const struct options *o, const char *path, struct share *x, struct dataset **d);
    void (*free)(struct dataset *d);
    /* A data set of its own that holds nothing of the records from `rows` on; it borrows names of d, which must outlive it.
     * Records without an order of time are shuffled by the seed.  NULL = a search cannot hide records of this kind. */
    err (*before)(const struct dataset *d, i64 rows, u64 seed, struct dataset **out);
    u64 (*hash)(const struct dataset *d); /* hash of the contents, which ranks compare */
    /* Writes and compares the fingerprint of a run's data (RUN/data.json). E106 if an earlier training has scaled or
     * limited the data. */
    err (*print)(const struct dataset *d, const struct split *p, struct js **out);
    err (*compare)(const struct dataset *d, const struct js *print, struct data_change *out);
    /* Completes the place of a difference that compare found, by reading the file again with the same options.  NULL = compare
     * says all that can be known. */
    void (*place)(const struct options *o, const struct dataset *d, struct data_change *c);
    const char *(*column)(const struct dataset *d, i32 i);
    /* in original units; NaN = missing or not a number */
    f64 (*value)(const struct dataset *d, i32 column, i64 row);
    void (*label)(const struct dataset *d, i64 row, char out[32]);                 /* label of a record for the user */
    i32 (*facts)(const struct dataset *d, struct report_fact *fact, struct arena *a); /* <= DATA_FACTS; NULL = none */
};

err dataset_new(const struct data_kind *kind, const char *path, size_t size, void *out); /* size: of the struct that embeds it */
void dataset_free(struct dataset *d);                                                 /* NULL is fine */
void dataset_span(const struct dataset *d, i64 from, i64 to, char out[72]);           /* "first..last" of the labels */

/* ------------------------------------------------------------------ models -------------------------------------------------- */

/* Predictions as a table: first the column headings, then rows of cells in that order. */
enum prediction_key { KEY_WORD, KEY_COUNT, KEY_TIME };
struct prediction_column {
    const char *name;
    bool value; /* true: a predicted value; false: a key (series, time or record) */
    enum prediction_key key; /* KEY_COUNT, KEY_TIME: the cells have `count` beside their text */
    bool zoned; /* KEY_TIME: times of a zone */
    i32 zone;   /* seconds east of UTC */
};
struct prediction_cell {
    const char *text; /* NULL = a number */
    f64 number;       /* NaN = an empty cell */
    i32 digits;       /* significant ones; 0 = those that an f32 has */
    i64 count;        /* of a key: the whole number, or seconds since 1970 (UTC where the column is zoned) */
};
struct prediction_sink {
    err (*head)(void *self, i32 ncol, const struct prediction_column *column); /* NULL = not wanted */
    err (*row)(void *self, i32 ncol, const struct prediction_cell *cell);
    void *self;
    bool wide; /* one column for each target, where the model has such a layout */
    i32 samples; /* > 0: so many possible courses instead of forecasts, where the model has a horizon */
    i64 seed;    /* of these */
    bool marginals; /* behind each tag the probabilities of all labels; only for models whose ops say that they have them */
};

/* The records to score, and how to show the scores. */
struct scoring {
    const struct options *show;  /* stride, score-scale, score-steps */
    const char *what;            /* for the title: "test", "fold 1 of 3:"; NULL = records not seen in training, or all
                                  * records if there are none */
    i64 from, to, rows;          /* records [from, to) of the first `rows`; unused if what is NULL */
    const char *since;           /* if what is NULL: the first record to score (--since); NULL or "" = not given */
};

struct scores {
    const struct score_table *table; /* NULL = no records to score */
    f64 skill;            /* 1 - error / baseline; NaN = not known */
    f64 error, baseline;  /* of the model and of the best baseline, in the metric of skill */
    const char *best;     /* name of that baseline, NULL = none */
    i64 records, cells;   /* predictions that were scored, and the numbers or labels in them */
    char said[256];       /* sentence on measured properties of the model (band coverage); "" = none */
    void *detail;         /* private to the learner, for its part of the report */
    void (*free_detail)(void *detail);
    struct arena arena;
};
void scores_free(struct scores *s);

/* Facts of a model. JSON objects are extended; NULL = not requested. */
struct description {
    i32 horizon, context;          /* steps ahead, and past records that it reads; 0 = does not apply */
    i32 ntarget, nquantile;
    const char *const *target;
    const f64 *quantile;
    i64 parameters;
    const char *kernels;           /* how the kernels of this host deviate from the model's settings, for the user; NULL =
                                    * not at all */
    struct js *info;               /* extended by `stretto info` */
    struct js *record;             /* extended: training record in the model file */
    const struct scores *scores;   /* for the record; NULL = none */
};

struct model {
    const struct learner *learner;
    err stopped;              /* why the fit ended: enum stop_reason */
    f64 seconds;              /* training */
    i64 train_records, valid_records;
    i64 planned_bytes;
    struct str plan_text;     /* the plan that ran, "" = none */
    struct task_span *span;   /* [nspan] the last steps of training */
    i32 nspan;
};

struct learn_job;
struct onnx_graph; /* onnx/graph.h */
struct ort;        /* onnx/ort.h */

/* What to leave out of an ONNX graph. */
struct graph_wishes {
    bool mean_only; /* no quantiles */
};

/* The results of a graph beside those of the model. */
struct graph_gap {
    f64 worst;   /* largest difference of two numbers, in deviations of the column (or of the output) */
    i64 windows, cells; /* inputs that ran; numbers that were compared */
};

void graph_gap_add(struct graph_gap *gap, f64 difference); /* one more number; NaN counts as infinite */

struct model_ops {
    /* Reads a data file with the settings of the model; NULL = data->read, then take. */
    err (*open)(const struct model *m, const struct options *o, const char *path, const struct events *to, struct dataset **out);
    /* Applies the model's scale and vocabulary to a data set. E903; emits warnings. NULL = nothing to apply. */
    err (*take)(const struct model *m, struct dataset *d, const struct events *to);
    err (*predict)(const struct model *m, const struct dataset *d, const struct resources *use, const struct prediction_sink *to);
    err (*score)(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
                 struct scores *out);
    err (*describe)(const struct model *m, struct description *out);
    bool lines; /* predictions are whole lines of text: one cell each, without a heading */
    bool marginals; /* predict can write the probabilities of all labels of a token */
    /* Reads one long sequence from a file and writes the most likely label of each step, a line each, into the file `out`; "-":
     * into text.  NULL = the model labels no sequences. */
    err (*decode)(const struct model *m, const struct options *o, const char *path, const char *out, const struct resources *use,
                  struct str *text);
    /* Draws a prediction, or a scored window if scores is not NULL, as an SVG file. NULL = the model has no such plot. */
    err (*plot)(const struct model *m, const struct dataset *d, const struct resources *use, const struct scores *s,
                const char *path);
    /* Writes the learner's part of the HTML report; scores may be NULL. NULL = the common part is enough. */
    err (*report)(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a, struct report *r);
    /* Write and read the tensors and the JSON text; o: the options of the training. After a failed load the caller frees
     * the model. */
    err (*save)(const struct model *m, struct tens_list *tensors, struct str *json);
    err (*load)(const struct st_file *file, const char *path, const struct options *o, const struct js *json,
                struct model **out);
    /* Builds the model as an ONNX graph (docs/onnx.md).  NULL = it has none. */
    err (*graph)(const struct model *m, struct onnx_graph *g, const struct graph_wishes *wish);
    /* Runs an open graph on windows of a data set and compares its results with the model's own. */
    err (*graph_check)(const struct model *m, const struct dataset *d, const struct resources *use, struct ort *run,
                       const struct graph_wishes *wish, struct graph_gap *out);
    void (*free)(struct model *m); /* frees the struct, too; model_free has freed the members of struct model */
};

void model_free(struct model *m); /* NULL is fine */
void model_drop(struct model *m); /* frees the members of struct model only */
void model_put_end(const struct model *m, struct js *record); /* seconds, and what stopped it; record NULL: nothing */

/* The metadata key "stretto.NAME" names the learner that wrote a file. */
err model_to_file(const struct model *m, const char *path, const char *options_json, const char *record_json);
/* parse: reads the text of the options into *o, as a config file is read. */
typedef err options_parser(const char *text, size_t n, const char *name, struct options *o);
err model_from_file(const char *path, options_parser *parse, struct options *o, struct model **out, struct str *record_json);

/* ------------------------------------------------------------------ learners ------------------------------------------------ */

struct learn_job {
    struct options *o;              /* resolve sets every `auto` */
    struct dataset *data;
    struct split split;             /* records of training, validation and test; resolve keeps them if they are set (test > 0) */
    void *spec;                     /* [learner.spec_bytes] written by resolve, read by fit: plain values */
    struct resources use;
    const char *run_dir;            /* for checkpoints; NULL = none */
    bool resume;                    /* continue from the newest checkpoint of run_dir */
    f64 measure;                    /* seconds that a report may measure for; 0 = a share of those of the training */
    f64 spent;                      /* seconds of the time limit that an attempt which lost its device has used */
    void (*healed)(void *owner, const struct comm_loss *loss); /* called after ranks died and the survivors were renumbered;
                                                                * may be NULL */
    /* foresee, before the first step, on rank 0: checks that a model and a checkpoint of these sizes fit on the disk, and
     * reserves space. make_room: releases the reserved space. Either may be NULL. */
    err (*foresee)(void *owner, i64 model, i64 checkpoint);
    void (*make_room)(void *owner);
    void *owner;
};

struct learner {
    const char *name; /* --task NAME */
    const char *help;
    const char *predicts; /* what one prediction is called in messages: "forecast"; NULL = "prediction" */
    const struct data_kind *data;
    const struct model_ops *ops;
    size_t spec_bytes;
    bool numbers;         /* takes neither columns of words nor missing cells */
    /* The options that the learner uses, beside those of its data kind, the output, --threads, --ranks, --memory and --kernel;
     * OPT_COUNT ends the list.  Others, where they are given, are refused.  NULL = all but those of the group task. */
    const enum opt_id *takes;
    /* What deals the rows of a kernel to the devices of --device (offload.h), which `takes` names; the rest runs on the cores. */
    enum learner_offloads { OFFLOADS_NOTHING, OFFLOADS_FIT, OFFLOADS_PREDICT, OFFLOADS_BOTH } offloads;
    /* Each function but fit may be NULL. */
    err (*check)(const struct options *o);   /* E1xx, E4xx: combinations of options that are invalid for any data */
    err (*resolve)(struct learn_job *job);   /* sets every `auto`, split, spec; notes go to job->use.events.  NULL = split_rows */
    err (*prepare)(struct learn_job *job);   /* after resolve, on the calling thread: scales the data */
    err (*ranks)(const struct learn_job *job, i32 n); /* E401 if n ranks cannot share the fit */
    /* resolve and prepare for a backtest of n folds; border [n + 1]: fold k is scored on records border[k] .. border[k + 1] - 1.
     * NULL = the learner has no backtest. */
    err (*folds)(struct learn_job *job, i32 n, bool refit_each, i64 *border);
    err (*fit)(const struct learn_job *job, struct model **out); /* 0, a failure, or a stop reason > 0 without a model */
    /* Called after comm_recover on a rank that has finished its fit: joins the collective calls of ranks that are still
     * fitting. */
    err (*left)(struct comm *c);
};

const char *learner_predicts(const struct learner *l); /* "forecast", "prediction" */
err learner_fit(const struct learner *learner, const struct learn_job *job, struct model **out); /* learner->fit */
const struct learner *learner_find(const char *name);                    /* NULL = none */
const struct learner *learner_at(i32 i);                                 /* NULL = there are no more */
bool learner_on_cores(const struct options *o);                          /* --device names no device but the cores */
bool learner_takes(const struct learner *l, enum opt_id id);             /* the learner uses this option */
err learner_of(const struct options *o, const struct learner **out);     /* the learner of --task; E103 */
err learner_check(const struct options *o); /* E106: an option that the learner of --task does not use; or learner->check */
/* E106: --device for predictions of a learner that predicts on the cores alone. */
err learner_check_devices(const struct learner *l, const struct options *o);
/* Splits a table by --test and --validation; default: a fifth of the rows each. A split that is set (test > 0) stays. */
err split_rows(const struct options *o, i64 rows, struct split *out);

#endif
