/* api.h - what the handles of stretto.h are made of.  Only src/api sees it. */
#ifndef STRETTO_API_API_H
#define STRETTO_API_API_H

#include "api/devices.h"
#include "api/lists.h"
#include "learn/kernels.h"
#include "learn/learner.h"
#include "report/status.h"
#include "stretto/stretto.h"

struct stretto_config {
    struct options o;
    volatile int stop; /* set by stretto_backtest_stop, looked at by the backtest with these options */
    struct comm *comm; /* of stretto_config_join, until a trainer takes it; NULL = not joined */
};

struct stretto_data {
    struct dataset *set;
};

struct stretto_model {
    struct model *m;
    struct stretto_config config;  /* the options it was trained with, resolved */
    struct str record;             /* JSON: when, where, on what, how good */
    struct str note;               /* how the last forecasts differ from the options */
    struct str warnings;           /* of the data that were opened last, one a line */
    const struct dataset *last;    /* the data set that `warnings` describe; compared only, never read */
    char *path;
};

/* What one run computes with: machine, thread pool, kernels, ranks, wisdom. */
struct run_context {
    struct machine *machine;
    struct comm *comm;      /* the MPI job that this process is a rank of; NULL = none */
    char no_heal[COMM_PATH]; /* why the launcher rules out --heal: one dead rank would end the others; "" = it does not */
    struct device_wishes devices; /* of --device */
    struct machine *forward[DEVICE_WISHES]; /* one for each of these devices */
    struct machine *host;         /* its cores, where --device names others; else NULL */
    struct machine *ranks;  /* machine of all ranks, if there are several; NULL = machine */
    struct str shares_from; /* source of unequal rank shares, for a note; "" = none */
    struct wisdom wisdom;
    struct resources use;
};
/* joins: all ranks run this verb together (training). Any other verb runs in one process, also under mpirun. */
err run_context_open(const struct options *o, const struct events *events, const volatile int *stop, bool joins,
                  struct run_context *out);
/* The same for a process that has joined: takes *comm, also on failure; it may be NULL. */
err run_context_joined(const struct options *o, const struct events *events, const volatile int *stop, struct comm **comm,
                       struct run_context *out);
void run_context_close(struct run_context *w);
/* Between two fits: the run goes on without these of its devices (bit k: devices.at[k]); on the cores if none is left. */
err run_context_without(u64 lost, struct run_context *w);

/* Sets what options say about the training plan: --parallel, --grains, --micro-batches, --place, --stage-order. */
void plan_wishes(const struct options *o, struct resources *use);

enum { PLAN_BYTES = 64 << 20 }; /* largest file of a saved plan */

err data_handle(struct dataset *set, stretto_data **out); /* takes set */

struct jsonl;

/* Training and validation losses by step, notes and warnings of a training, kept for the report. */
struct curve_point {
    i32 member;
    f64 step, train, valid; /* NaN = not measured */
    bool best, refit;
};
struct history {
    struct curve_point *point;
    i64 n, cap;
    i64 step; /* the last one that was done */
    struct str notes, warnings; /* one a line */
};
err history_csv(const struct history *c, const char *path); /* member,step,train,valid,best */
void history_read(struct history *c, const char *path); /* replaces the points by those in metrics.jsonl: the whole run */
void history_free(struct history *c);

struct stretto_trainer {
    struct options o;              /* resolved copy */
    stretto_data *data;            /* borrowed */
    struct run_context ctx;
    struct events events;
    struct history history;
    const struct learner *learner;
    struct learn_job job;          /* resolved job of the options and this data */
    stretto_model *model;
    struct scores scores;
    char *run_dir, *model_path;
    int lock;                      /* file descriptor of RUN/lock, -1 = none */
    bool resume;
    bool has_print;                /* data.json describes this data already */
    bool unfinished;               /* ranks_finish must still be called */
    bool foreseen;                 /* keep_foresee has checked the free disk space */
    struct err_record late;        /* the first output that failed after the training (keep.h); code 0 = none */
    const char *late_option;       /* the option that names it */
    volatile int stop;
    struct jsonl *metrics;
    struct tensorboard *board; /* NULL = none is asked for */
    struct mirror *mirror;         /* copies the run folder to HDFS; NULL = the model is not there */
    struct status status;          /* of this rank, while there is a run folder */
    stretto_event_fn *fn;
    void *user;
    struct str text, plan_text, print; /* print: data.json, until it is written */
};

/* True if the data had a test split. */
static inline bool trainer_scored(const struct stretto_trainer *t) { return t->scores.table != NULL; }

/* True on ranks > 0 of an MPI job: they train, emit no events and write no results. */
static inline bool trainer_is_silent(const struct stretto_trainer *t) { return comm_rank(t->ctx.comm) > 0; }

static inline err trainer_need_model(const struct stretto_trainer *t) {
    return t->model ? 0 : FAIL(E105, "there is no model yet: run the trainer first");
}

/* api_train.c: makes the job from data and options; `auto` values are not resolved yet. */
err trainer_job(struct stretto_trainer *t, const struct events *to);
/* Runs everything that precedes the first training step, to find its errors, and discards the result. *horizon: resolved. The
 * data are scaled. */
err need_forecaster(const struct options *o, const char *verb); /* E106 where --task is not forecast */
err trainer_check(const struct options *o, stretto_data *data, i64 *horizon, struct split *split);
/* history.c */
/* Passes an event of the library on as one of stretto.h, except those that only the library uses; fn may be NULL. */
void forward_event(const struct event *e, stretto_event_fn *fn, void *user);
void trainer_listen(struct stretto_trainer *t); /* sends its events to the caller and to `history` */

/* api_model.c: the training record that goes into the model file: when, where, on what, how good (JSON). */
err trainer_record(const struct stretto_trainer *t, struct str *out);

/* run_dir.c */
/* Takes RUN/lock, which close(*lock) releases. E704: another process has it. resume: the run is there already. */
err run_dir_lock(const char *run_dir, bool resume, int *lock);
/* After ranks died: takes the new rank number; with `first` this rank now emits the events and writes the files. */
void run_dir_renumber(struct stretto_trainer *t, bool first);
/* On resume: options that nobody gave to the run that began are not given now either, though config.json has their values. */
err run_dir_given(struct stretto_trainer *t);
/* When nothing is left to be refused: a new run deletes what an earlier one left in its folder; opens metrics.jsonl. */
err run_dir_begin(struct stretto_trainer *t);
err run_dir_config(
    const struct stretto_trainer *t); /* writes config.json once every `auto` is resolved, then run.json; no effect without
                                       * a run folder */
bool run_dir_has_checkpoint(const struct stretto_trainer *t);
err run_dir_path(const struct stretto_trainer *t, const char *name, char out[4096]); /* RUN/NAME; E702 if it is too long */
err run_dir_write(const struct stretto_trainer *t, const char *name, struct str *text); /* writes a text and frees it */
err run_dir_status(struct stretto_trainer *t, err e); /* returns e; writes a failure into the status record */
err run_dir_finish(struct stretto_trainer *t); /* after the model is saved: the run cannot be resumed any more */
void run_dir_close(struct stretto_trainer *t);

/* run_data.c: RUN/data.json, the fingerprint of the data. run_data_check, on all ranks before the job is resolved: E215 if
 * a resumed run began with other data and --data-changed does not accept that; otherwise sets the split of the run.
 * run_data_print: after the job is resolved, of data that are not scaled yet. run_data_write writes what it made. */
err run_data_check(struct stretto_trainer *t);
err run_data_print(struct stretto_trainer *t);
err run_data_write(struct stretto_trainer *t);

err text_give(struct str *s, char **out);       /* moves the text to *out; E601 if it is incomplete */
err text_end(err e, struct str *s, char **out); /* as text_give at the end of a function; frees the text if e is a failure */

#endif
