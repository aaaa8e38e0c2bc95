/* api.h - what the handles of stretto.h are made of.  Only src/api sees it. */
#ifndef STRETTO_API_API_H
#define STRETTO_API_API_H

#include "api/lists.h"
#include "data/label.h"
#include "data/series_build.h"
#include "learn/forecast/forecast.h"
#include "learn/forecast/resolve.h"
#include "learn/kernels.h"
#include "learn/learner.h"
#include "model/layer.h"
#include "report/status.h"
#include "report/table.h"
#include "stretto/stretto.h"

struct stretto_config {
    struct options o;
};

struct stretto_data {
    struct series *s;
    char *path;
    bool scaled;
    i64 scale_rows;      /* first rows that the scale is of, those of a training; -1 = it is that of a model */
    char *doubt;         /* of the numbers in the file, to be told; NULL = none */
    char *doubt_fix;
    char decimal;        /* the mark that was found, where other files must not be read otherwise; 0 = they find their own */
    char summary[512];
};

struct stretto_model {
    struct forecaster *f;
    struct stretto_config config;  /* the options it was trained with, resolved */
    struct str record;             /* JSON: when, where, on what, how good */
    struct str note;               /* what the last forecasts had to do differently */
    struct str warnings;           /* of the data that were opened last, one a line */
    char *path;
};

/* Threads, kernels and machine of one run. */
struct workshop {
    struct machine *machine;
    struct comm *comm;      /* the MPI job that this process is a rank of; NULL = none */
    char no_heal[COMM_PATH]; /* why ranks cannot go on without one that dies, where --heal asks for it; "" = they can */
    struct machine *ranks;  /* of all ranks, where there are several; NULL = machine */
    struct str shares_from; /* where unlike shares of ranks came from, for people */
    struct wisdom wisdom;
    struct resources use;
};
/* joins: this verb is run by all ranks together (training); others run alone wherever they are started. */
err workshop_open(const struct options *o, const struct events *events, const volatile int *stop, bool joins,
                  struct workshop *out);
void workshop_close(struct workshop *w);

enum { PLAN_BYTES = 64 << 20 }; /* of a saved plan, at most */

/* --- data --- */
struct read_options read_options_of(const struct options *o);
struct series_options series_options_of(const struct options *o);
err data_read(const struct options *o, bool of_model, const char *path, stretto_data **out); /* of_model: see series_options */
err data_of_series(struct series *s, const char *path, stretto_data **out); /* takes s */
/* By its first rows, those of whoever trains: a trainer with fewer than the one before must not know what it is tested on. */
err data_scale(stretto_data *d, i64 rows);

/* --- results --- */
struct jsonl;
/* A score table made of plain rows; strings point into the scores and title. */
struct score_view {
    struct score_table *table;
    struct arena arena;
};
err score_view(const struct forecaster *f, const struct forecast_scores *s, const struct options *o, const char *title,
               struct score_view *out);
void score_view_free(struct score_view *v);
/* The best naive row and the skill against it, in the units and the step that --score-scale and --score-steps say. */
i32 score_best(const struct forecaster *f, const struct forecast_scores *s, const struct options *o);
f64 score_skill(const struct forecaster *f, const struct forecast_scores *s, const struct options *o);
/* Bands are promises too: how many of the scored cells the outermost one holds; as a sentence, "" without bands. */
struct score_band score_band(const struct forecaster *f, const struct forecast_scores *s);
enum { BAND_SAID = 128 };
const char *score_band_said(const struct score_band *band, char said[BAND_SAID]);

/* The course of training, kept for the curves of the report. */
struct curve_point {
    i32 member;
    f64 step, train, valid; /* NaN = not measured */
    bool best, refit;
};
struct course {
    struct curve_point *point;
    i64 n, cap;
    struct str notes, warnings; /* one a line */
};
struct sink course_sink(struct course *c);
err course_csv(const struct course *c, const char *path); /* member,step,train,valid,best */
void course_free(struct course *c);

struct stretto_trainer {
    struct options o;              /* resolved copy */
    stretto_data *data;            /* borrowed */
    struct workshop shop;
    struct events events;
    struct course course;
    struct forecast_spec spec;
    struct split split;
    stretto_model *model;
    struct forecast_scores scores;
    bool scored;
    char *run_dir, *model_path;
    int lock;                      /* file descriptor of RUN/lock, -1 = none */
    bool resume;
    bool parts;                    /* ranks_part is still to come */
    volatile int stop;
    struct jsonl *metrics;
    struct status status;          /* of this rank, while there is a run folder */
    stretto_event_fn *fn;
    void *user;
    struct str text, plan_text;
};

/* A rank other than 0 of a job of processes: it trains, and neither speaks nor writes. */
static inline bool trainer_is_silent(const struct stretto_trainer *t) { return comm_rank(t->shop.comm) > 0; }

err trainer_marks(struct stretto_trainer *t);   /* api_train.c: tells of doubtful numbers, and keeps how they were read */
void trainer_listen(struct stretto_trainer *t); /* api_train.c: to its own events, for the caller and for the curves */

/* report_fill.c */
err trainer_report(const struct stretto_trainer *t, const char *path);
err trainer_plot(const struct stretto_trainer *t, const char *path);
/* record.c: the training record that goes into the model file: when, where, on what, how good (JSON). */
err trainer_record(const struct stretto_trainer *t, struct str *out);

/* run_dir.c */
err run_dir_open(struct stretto_trainer *t, const char *path, bool resume);
/* Ranks died: this one has another number, and with `first` it is the one that speaks and writes now. */
void run_dir_renumber(struct stretto_trainer *t, bool first);
err run_dir_config(
    const struct stretto_trainer *t); /* writes config.json, once every `auto` is resolved; fine without a run folder */
bool run_dir_has_checkpoint(const struct stretto_trainer *t);
err run_dir_status(struct stretto_trainer *t, err e); /* returns e; a failure is written down in the status record */
err run_dir_finish(struct stretto_trainer *t); /* the model is saved: nothing to resume any more */
void run_dir_close(struct stretto_trainer *t);

err text_give(struct str *s, char **out);       /* moves the text out; E601 when it failed */
err text_end(err e, struct str *s, char **out); /* the same at the end of a function: frees the text when e is a failure */

#endif
